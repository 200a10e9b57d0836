"""Gates without a connection: what they did is a fact, and what should not have been is reported."""

import asyncio
import random
from datetime import timedelta
from typing import Any
from uuid import UUID

from tests.conftest import TestDatabase
from tests.http.gate_ground import Gates, gates, uuid_of

DAYS = ["2030-05-01", "2030-05-02"]


def run(work: Any) -> None:
    asyncio.run(work)


async def minutes_ago(g: Gates, minutes: float) -> str:
    return (await g.now() - timedelta(minutes=minutes)).isoformat()


async def taken(g: Gates, number: int, code: str, minutes: float, **said: Any) -> dict[str, Any]:
    return {"scan_id": uuid_of(number), "code": code, "scanned_at": await minutes_ago(g, minutes), "gate": "N", **said}


def results(answer: dict[str, Any]) -> list[str]:
    return [scan["result"] for scan in answer["scans"]]


def test_scans_are_applied_in_the_order_in_which_they_were_taken(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, days=DAYS, admission={"exit_scans": True}) as g:
            await g.to_time(DAYS[0])
            (ticket,) = await g.tickets(0)
            code = await g.code(ticket)
            scans = [
                await taken(g, 1, code, 60),
                await taken(g, 2, code, 50, direction="out"),
                await taken(g, 3, code, 40),
                await taken(g, 4, code, 30, direction="out"),
                await taken(g, 5, code, 20),
            ]
            shuffled = random.Random(7).sample(scans, k=len(scans))
            answer = await g.upload(*shuffled)
            assert results(answer) == ["applied"] * 5
            assert [scan["scan_id"] for scan in answer["scans"]] == [scan["scan_id"] for scan in shuffled]
            assert (answer["applied"], answer["conflicts"]) == (5, 0)
            last = next(s for s in answer["scans"] if s["scan_id"] == uuid_of(5))["admission"]
            assert (last["entries_today"], last["inside"]) == (3, True)
            assert (await g.attendance())["present"] == 1
            again = await g.upload(*scans)
            assert results(again) == ["duplicate"] * 5
            assert {scan["first_result"] for scan in again["scans"]} == {"applied"}
            assert (await g.attendance())["present"] == 1
            assert await g.faults() == []

    run(main())


def test_a_ticket_let_in_at_two_gates_is_a_conflict_and_both_people_are_inside(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            (ticket,) = await g.tickets(0)
            code = await g.code(ticket)
            assert await g.verdict(code, gate="S", scan_id=uuid_of(9)) == ("admit", None)
            answer = await g.upload(await taken(g, 1, code, 10), await taken(g, 2, code, 5, outcome_at_gate="refuse"))
            assert results(answer) == ["conflict", "refused"]
            conflict, refused = answer["scans"]
            assert conflict["conflicts_with"]["scan_id"] == uuid_of(9)
            assert (conflict["conflicts_with"]["gate"], conflict["conflicts_with"]["source"]) == ("S", "scanner")
            admission = conflict["admission"]
            assert (admission["outcome"], admission["reason"], admission["entries_today"]) == (
                "admit",
                "already_used",
                2,
            )
            assert admission["message"].startswith(
                "Let in at gate N without a connection, though: Already used at gate S"
            )
            assert refused["admission"]["reason"] == "refused_at_gate"
            assert (await g.attendance())["present"] == 2
            assert [await g.verdict(code, direction="out") for _ in range(3)] == [
                ("admit", None),
                ("admit", None),
                ("refuse", "not_inside"),
            ]
            assert (await g.attendance())["present"] == 0
            log = await g.made.client.get(g.path, headers=g.made.admin, params={"conflict": "true"})
            assert [entry["scan_id"] for entry in log.json()["data"]] == [uuid_of(1)]
            assert await g.faults() == []

    run(main())


def test_what_a_gate_could_not_know_is_a_conflict_and_what_is_no_ticket_counts_nobody(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, days=DAYS) as g:
            await g.to_time(DAYS[0])
            void, replaced, fine = await g.tickets(0, 1, 2)
            codes = [await g.code(ticket) for ticket in (void, replaced, fine)]
            await g.made.sql("UPDATE tickets SET status = 'void', voided_at = now() WHERE id = $1", UUID(void))
            await g.made.client.post(f"/api/tickets/{replaced}/reissue", headers=g.made.admin)
            pit = await g.tickets(zone="pit", quantity=3)
            await g.made.sql("UPDATE event_zones SET capacity = 3, sold = 3 WHERE event_id = $1", g.made.event_id)
            await g.made.sql(
                "INSERT INTO zone_attendance SELECT organization_id, id, $2::date, 1, 3, 0 FROM events WHERE id = $1",
                UUID(g.made.event_id),
                (await g.now()).date(),
            )
            full = await g.code(pit[0])
            said = [*codes, full, "junk", codes[2][:-4] + "AAAA"]
            answer = await g.upload(*[await taken(g, n, code, 30 - n) for n, code in enumerate(said)])
            assert results(answer) == ["conflict", "conflict", "applied", "conflict", "conflict", "conflict"]
            reasons = [scan["admission"]["reason"] for scan in answer["scans"]]
            assert reasons == ["void", "replaced_code", None, "zone_full", "unreadable_code", "forged_code"]
            assert [zone["present"] for zone in (await g.attendance())["days"][0]["zones"]] == [3, 4]

    run(main())


def test_scans_of_the_future_and_of_long_ago_are_not_believed(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, days=DAYS) as g:
            await g.to_time(DAYS[0])
            (ticket,) = await g.tickets(0)
            code = await g.code(ticket)
            answer = await g.upload(
                await taken(g, 1, code, -3),
                await taken(g, 2, code, 60 * 24 * 30 + 1),
                await taken(g, 3, code, -1),  # a clock a minute ahead is only human
            )
            assert results(answer) == ["refused", "refused", "applied"]
            reasons = [scan["admission"]["reason"] for scan in answer["scans"]]
            assert reasons == ["scanned_in_future", "scanned_too_long_ago", None]
            assert answer["scans"][2]["admission"]["scanned_at"] <= (await g.now()).isoformat()
            assert (await g.attendance())["present"] == 1
            assert await g.faults() == []

    run(main())


def test_an_upload_belongs_to_the_days_on_which_it_was_scanned(database: TestDatabase) -> None:
    async def main() -> None:
        terms = {"entitlement": "limited_reentry_per_day", "max_daily_entries": 1}
        async with gates(database, days=DAYS, admission=terms) as g:
            await g.to_time(DAYS[1])
            (ticket,) = await g.tickets(0)
            code = await g.code(ticket)
            answer = await g.upload(await taken(g, 1, code, 24 * 60), await taken(g, 2, code, 10))
            assert results(answer) == ["applied", "applied"]
            assert [scan["admission"]["day"] for scan in answer["scans"]] == DAYS
            third = await g.upload(await taken(g, 3, code, 5))
            assert (results(third), third["scans"][0]["admission"]["reason"]) == (["conflict"], "no_entries_left")
            days = (await g.attendance())["days"]
            # Without exit scans somebody who comes in again has gone out: one person, on either day.
            assert [(day["day"], day["present"], day["entered"]) for day in days] == [(d, 1, 1) for d in DAYS]
            assert await g.faults() == []

    run(main())


def test_somebody_who_left_and_has_come_in_since_is_inside_though_the_exit_is_told_late(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, days=DAYS) as g:
            await g.to_time(DAYS[0])
            (ticket,) = await g.tickets(0)
            code = await g.code(ticket)
            assert await g.verdict(code) == ("admit", None)
            await g.pass_time(1800)
            assert await g.verdict(code) == ("admit", None)
            answer = await g.upload(await taken(g, 1, code, 15, direction="out"))
            told = answer["scans"][0]
            assert (told["result"], told["admission"]["reason"], told["admission"]["inside"]) == (
                "applied",
                "superseded",
                True,
            )
            gone = await g.upload(
                await taken(g, 2, code, 0, direction="out"), await taken(g, 3, code, -1, direction="out")
            )
            assert results(gone) == ["applied", "conflict"]
            assert (await g.attendance())["present"] == 0
            assert await g.faults() == []

    run(main())


def test_an_id_of_another_scan_is_refused_alone_and_the_rest_is_applied(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            one, two = [await g.code(ticket) for ticket in await g.tickets(0, 1)]
            answer = await g.upload(await taken(g, 1, one, 9), await taken(g, 1, two, 8), await taken(g, 2, two, 7))
            assert results(answer) == ["applied", "refused", "applied"]
            assert (answer["scans"][1]["error"], answer["scans"][1]["admission"]) == ("scan_id_reused", None)
            unknown = await g.made.client.post(
                f"/api/events/{uuid_of(1)}/admissions",
                headers=g.scanner,
                json={"source": "offline_sync", "scans": [await taken(g, 5, one, 1)]},
            )
            assert (unknown.status_code, unknown.json()["error"]) == (404, "event_not_found")

    run(main())


def test_attendance_follows_tickets_to_other_zone_numbers(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, days=DAYS) as g:
            await g.to_time(DAYS[0])
            seat, gone = await g.tickets(0, 1)
            for ticket in (seat, gone):
                assert await g.verdict(ticket_id=ticket) == ("admit", None)
            organization = g.made.first.organization_id
            # As a migration leaves them: one ticket in another zone, one whose seat is no more.
            await g.made.sql("UPDATE tickets SET zone_no = 1, ordinal = NULL WHERE id = $1", UUID(seat))
            await g.made.sql(
                "UPDATE tickets SET layout_version = 1, status = 'void', voided_at = now() WHERE id = $1", UUID(gone)
            )
            await g.made.sql("SELECT recount_attendance($1, $2)", organization, UUID(g.made.event_id))
            assert [zone["present"] for zone in (await g.attendance())["days"][0]["zones"]] == [0, 1]
            assert await g.faults() == []
            for ticket in (seat, gone):
                assert await g.verdict(ticket_id=ticket, direction="out") == ("admit", None)
            assert (await g.attendance())["present"] == 0
            assert await g.faults() == []

    run(main())


def test_somebody_whose_ticket_is_moved_while_they_are_inside_is_counted_where_they_came_in(
    database: TestDatabase,
) -> None:
    async def main() -> None:
        async with gates(database, days=DAYS) as g:
            await g.to_time(DAYS[0])
            (ticket,) = await g.tickets(0)
            assert await g.verdict(ticket_id=ticket) == ("admit", None)
            await g.made.sql("UPDATE tickets SET zone_no = 1, ordinal = NULL WHERE id = $1", UUID(ticket))
            assert await g.verdict(ticket_id=ticket) == ("admit", None)
            assert [zone["present"] for zone in (await g.attendance())["days"][0]["zones"]] == [1, 0]
            assert await g.verdict(ticket_id=ticket, direction="out") == ("admit", None)
            assert await g.verdict(ticket_id=ticket) == ("admit", None)
            assert [zone["present"] for zone in (await g.attendance())["days"][0]["zones"]] == [0, 1]

    run(main())
