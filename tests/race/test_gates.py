"""Two gates, one ticket: one lets in. Each race with its control."""

import asyncio
from typing import Any
from uuid import UUID

from holdfast.accounts.principal import Role
from holdfast.gates.answers import AdmissionAnswer
from holdfast.gates.scan import Direction, ScanAsked
from holdfast.kernel.ids import new_id
from tests.conftest import TestDatabase
from tests.factories import staff_call, theatre_config
from tests.race.ground import Ground, all_at_once, changed, deadlocks, ground, until_seen
from tests.tickets import issue

ROUNDS = 100
GATES = 4
TICKET_LOCK = "t.id = p_ticket FOR UPDATE;"
# Without its lock, and with a breath between looking and writing, as any slow machine would have.
LOOKED = "v_passes := v_reason IS NULL OR coalesce(p_passed, false);\n    -- Whoever"
WITHOUT_LOCK = changed("admit", (TICKET_LOCK, "t.id = p_ticket;"), (LOOKED, f"PERFORM pg_sleep(0.01);\n{LOOKED}"))
ROOM = "WHERE p_anyway OR p_capacity IS NULL OR zone_attendance.present < p_capacity"
WITHOUT_ROOM = changed("count_in", (ROOM, "WHERE true"))


async def scan(g: Ground, n: int, ticket: UUID, **said: Any) -> AdmissionAnswer:
    asked = ScanAsked(**{"scan_id": new_id(), "direction": Direction.IN, "ticket_id": ticket, "gate": str(n), **said})
    call = staff_call(g.event.organization, Role.SCANNER)
    return await g.apps[n % len(g.apps)].services.gates.scan(call, g.event.id, asked)


async def attendance_faults(g: Ground) -> list[str]:
    rows = await g.sql(
        """
        SELECT a.present, a.entered, i.present AS inside, i.entered AS tickets, z.capacity FROM zone_attendance a
        JOIN (SELECT event_id, day, zone_no, sum(inside::integer + others_inside) AS present,
                count(*) FILTER (WHERE entries > 0) AS entered FROM ticket_days GROUP BY 1, 2, 3) i
          USING (event_id, day, zone_no)
        LEFT JOIN event_zones z USING (event_id, zone_no)
        WHERE a.present <> i.present OR a.entered <> i.entered OR a.present > z.capacity
        """
    )
    return [str(dict(row)) for row in rows]


# One ticket ---------------------------------------------------------------------------------------------------------
async def one_ticket_at_several_gates(g: Ground, rounds: int) -> list[str]:
    faults: list[str] = []
    for n in range(rounds):
        (ticket,) = await issue(g.apps[0], g.organization_id, g.event.id, n)
        answers = await all_at_once(scan(g, gate, ticket) for gate in range(GATES))
        admitted = [answer for answer in answers if answer.outcome == "admit"]
        if len(admitted) != 1:
            faults.append(f"{len(admitted)} gates let the ticket in")
        faults += [f"refused for {a.reason}" for a in answers if a.outcome == "refuse" and a.reason != "already_used"]
    return faults + await attendance_faults(g)


def test_of_several_gates_that_scan_one_ticket_one_lets_in(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, theatre_config(10, 10)) as g:
            assert await one_ticket_at_several_gates(g, ROUNDS) == []
        assert await deadlocks(database) == 0

    asyncio.run(run())


def test_control_without_the_tickets_lock_several_gates_let_it_in(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, theatre_config(10, 10), control=[WITHOUT_LOCK]) as g:
            assert "gates let the ticket in" in (await one_ticket_at_several_gates(g, 5))[0]

    asyncio.run(run())


def test_one_scan_that_is_sent_twice_at_once_counts_once(database: TestDatabase) -> None:
    async def run() -> None:
        async with ground(database, theatre_config(2, 10), event={"days": []}) as g:
            for n in range(20):
                (ticket,) = await issue(g.apps[0], g.organization_id, g.event.id, n)
                scan_id = new_id()
                answers = await all_at_once(scan(g, gate, ticket, scan_id=scan_id, gate="A") for gate in range(GATES))
                assert {answer.outcome for answer in answers} == {"admit"}
                assert sorted(answer.duplicate for answer in answers) == [False, True, True, True]
            assert await attendance_faults(g) == []

    asyncio.run(run())


# One zone -----------------------------------------------------------------------------------------------------------
async def a_crowd_at_a_zone(g: Ground, people: int, capacity: int) -> list[str]:
    """More tickets than there is room, in and out at several gates."""
    tickets = await issue(g.apps[0], g.organization_id, g.event.id, zone="pit", quantity=people)
    await g.sql("UPDATE event_zones SET capacity = $2, sold = $2 WHERE event_id = $1", g.event.id, capacity)
    faults: list[str] = []
    for _ in range(3):
        answers = await all_at_once(scan(g, n, ticket) for n, ticket in enumerate(tickets))
        faults += await attendance_faults(g)
        inside = [ticket for ticket, answer in zip(tickets, answers, strict=True) if answer.inside]
        if len(inside) != capacity:
            faults.append(f"{len(inside)} people are in a zone for {capacity}")
        faults += [f"refused for {a.reason}" for a in answers if a.reason not in (None, "zone_full")]
        left = await all_at_once(scan(g, n, t, direction=Direction.OUT) for n, t in enumerate(inside))
        faults += [f"not let out: {a.reason}" for a in left if a.outcome != "admit"]
    return faults


def test_a_zone_never_holds_more_people_than_it_has_room_for(database: TestDatabase) -> None:
    async def run() -> None:
        event = {"admission": {"entitlement": "unlimited_multi_day"}}
        async with ground(database, theatre_config(1, 2, ga_capacity=40), event=event) as g:
            assert await a_crowd_at_a_zone(g, 40, 15) == []
        assert await deadlocks(database) == 0

    asyncio.run(run())


def test_control_without_the_capacity_in_the_update_the_zone_overflows(database: TestDatabase) -> None:
    async def run() -> None:
        event = {"admission": {"entitlement": "unlimited_multi_day"}}
        config = theatre_config(1, 2, ga_capacity=40)
        async with ground(database, config, event=event, control=[WITHOUT_ROOM]) as g:
            found = await until_seen(lambda: a_crowd_at_a_zone(g, 40, 15), tries=1)
            assert any("people are in a zone for 15" in fault for fault in found), found

    asyncio.run(run())
