"""At the gates: who gets in, who does not, and what staff are told."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast.kernel.ids import new_id
from holdfast.tickets.code import read_code, whole_code
from tests.conftest import TestDatabase
from tests.factories import theatre_config, with_companions
from tests.http.gate_ground import Gates, gates, uuid_of

DAYS = ["2030-05-01", "2030-05-02", "2030-05-03"]


def run(work: Any) -> None:
    asyncio.run(work)


# Single entry -------------------------------------------------------------------------------------------------------
def test_a_single_entry_ticket_lets_in_once_and_says_where_it_was_used(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, admission={"timezone": "Europe/Berlin"}) as g:
            await g.to_time("2030-07-01", 17, 42)
            (ticket,) = await g.tickets(2, attendee_name="Ada")
            code = await g.code(ticket)
            first = await g.scan(code, gate="B")
            assert (first["outcome"], first["reason"], first["inside"], first["entries_today"]) == (
                "admit",
                None,
                True,
                1,
            )
            assert first["message"] == "Welcome. Stalls, row A, seat 3."
            assert first["seat"]["seat_id"] == "A-3"
            assert first["attendee"]["name"] == "Ada"
            assert first["day"] == "2030-07-01"
            again = await g.scan(code, gate="A")
            assert (again["outcome"], again["reason"]) == ("refuse", "already_used")
            assert again["message"] == "Already used at gate B at 19:42."
            await g.pass_time(2 * 86_400)
            later = await g.scan(code)
            assert later["message"] == "Already used at gate B on 1 July 2030 at 19:42."
            assert await g.faults() == []

    run(main())


def test_a_ticket_can_be_named_by_its_id(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            (ticket,) = await g.tickets(0)
            assert await g.verdict(ticket_id=ticket) == ("admit", None)
            assert await g.verdict(await g.code(ticket)) == ("refuse", "already_used")
            assert await g.verdict(ticket_id=str(new_id())) == ("refuse", "unknown_ticket")

    run(main())


# Entitlements, days and exits ---------------------------------------------------------------------------------------
def test_entries_of_a_limited_ticket_are_counted_by_the_day(database: TestDatabase) -> None:
    terms = {"entitlement": "limited_reentry_per_day", "max_daily_entries": 2, "day_ends_at": "05:00"}

    async def main() -> None:
        async with gates(database, days=DAYS, admission=terms) as g:
            (ticket,) = await g.tickets(0)
            code = await g.code(ticket)
            await g.to_time(DAYS[0])
            assert (await g.scan(code))["entries_left_today"] == 1
            assert (await g.scan(code))["entries_left_today"] == 0
            await g.to_time(DAYS[1], 4, 59)  # by the event's clock still the first day
            refused = await g.scan(code)
            assert (refused["reason"], refused["day"]) == ("no_entries_left", DAYS[0])
            assert refused["message"] == "No entries left today: all 2 entries used, the last at 19:30."
            await g.to_time(DAYS[1], 5, 0)
            assert await g.verdict(code) == ("admit", None)
            await g.to_time("2030-05-07")
            wrong = await g.scan(code)
            assert (wrong["outcome"], wrong["reason"]) == ("refuse", "wrong_day")
            assert wrong["message"] == "Not valid today. Valid on 1 May 2030, 2 May 2030 and 3 May 2030."
            assert await g.faults() == []

    run(main())


def test_without_exit_scans_somebody_who_comes_in_again_is_one_person(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, days=DAYS) as g:
            await g.to_time(DAYS[0])
            (ticket,) = await g.tickets(zone="pit")
            code = await g.code(ticket)
            for entries in (1, 2, 3):
                answer = await g.scan(code)
                assert (answer["outcome"], answer["entries_today"]) == ("admit", entries)
            assert [(await g.attendance())[name] for name in ("present", "entered")] == [1, 1]
            assert await g.verdict(code, direction="out") == ("admit", None)
            assert (await g.attendance())["present"] == 0
            assert (await g.scan(code, direction="out"))["reason"] == "not_inside"
            assert await g.verdict(code) == ("admit", None)
            assert [(await g.attendance())[name] for name in ("present", "entered")] == [1, 1]
            assert await g.faults() == []

    run(main())


def test_with_exit_scans_whoever_is_inside_cannot_come_in(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, days=DAYS, admission={"exit_scans": True}) as g:
            await g.to_time(DAYS[0])
            (ticket,) = await g.tickets(0)
            code = await g.code(ticket)
            assert await g.verdict(code, gate="A") == ("admit", None)
            again = await g.scan(code)
            assert (again["reason"], again["message"]) == (
                "already_inside",
                "Already inside: came in at gate A at 19:30.",
            )
            left = await g.scan(code, direction="out")
            assert (left["outcome"], left["message"], left["inside"]) == ("admit", "Goodbye.", False)
            assert await g.verdict(code) == ("admit", None)
            # Inside yesterday does not matter today; and whoever leaves after midnight leaves yesterday.
            await g.to_time(DAYS[1], 0, 30)
            out = await g.scan(code, direction="out")
            assert (out["outcome"], out["inside"]) == ("admit", False)
            assert await g.verdict(code) == ("admit", None)
            await g.to_time(DAYS[2])
            assert await g.verdict(code) == ("admit", None)
            assert await g.faults() == []

    run(main())


def test_a_zone_that_counts_its_places_fills_up_and_lets_in_again_when_somebody_leaves(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, theatre_config(1, 2, ga_capacity=2), days=DAYS) as g:
            await g.to_time(DAYS[0])
            tickets = [*await g.tickets(zone="pit", quantity=2), *await g.tickets(0, 1)]
            await g.made.sql("UPDATE event_zones SET capacity = 1, sold = 1 WHERE event_id = $1", g.made.event_id)
            first, second, *seats = [await g.code(ticket) for ticket in tickets]
            assert await g.verdict(first) == ("admit", None)
            full = await g.scan(second)
            assert (full["reason"], full["entries_today"], full["inside"]) == ("zone_full", 0, False)
            assert full["message"] == "Pit is full. Please wait until somebody has left."
            for seat in seats:  # numbered seats cannot overflow: each has its own
                assert await g.verdict(seat) == ("admit", None)
            assert await g.verdict(first, direction="out") == ("admit", None)
            assert await g.verdict(second) == ("admit", None)
            occupancy = await g.made.client.get(f"/api/events/{g.made.event_id}/occupancy", headers=g.made.admin)
            shown = occupancy.json()["data"]
            assert shown["live_attendees"] == 3
            assert [zone["live_attendees"] for zone in shown["by_zone"]] == [2, 1]
            assert await g.verdict(second, direction="out") == ("admit", None)
            occupancy = await g.made.client.get(f"/api/events/{g.made.event_id}/occupancy", headers=g.made.admin)
            assert occupancy.json()["data"]["live_attendees"] == 2
            by_zone = (await g.attendance())["days"][0]["zones"]
            assert [(z["present"], z["entered"], z["capacity"]) for z in by_zone] == [(2, 2, 2), (0, 2, 2)]
            assert await g.faults() == []

    run(main())


# What is refused ----------------------------------------------------------------------------------------------------
def test_codes_that_are_none_are_refused_each_for_its_own_reason_and_written_down(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            made = g.made
            (ticket,) = await g.tickets(0)
            code = await g.code(ticket)
            elsewhere = await made.make_event()
            (stranger,) = await issue_elsewhere(g, elsewhere)
            read = read_code(code)
            assert read is not None
            forged = whole_code(read.signed, bytes(64))
            unknown = code.replace(read.signed.decode(), _resigned(code, k="nokey"))
            other = code.replace(read.signed.decode(), _resigned(code, o=str(new_id())))
            cases = {
                "hello": "unreadable_code",
                code + "A": "unreadable_code",
                forged: "forged_code",
                unknown: "unknown_key",
                code.replace(read.signed.decode(), _resigned(code, k="a\0b")): "unreadable_code",
                other: "other_organization",
                await g.code(stranger): "other_event",
            }
            for said, reason in cases.items():
                answer = await g.scan(said, gate="A")
                assert (answer["outcome"], answer["reason"], answer["ticket"]) == ("refuse", reason, None)
                assert answer["message"].endswith(".")
            assert (await g.scan(ticket_id=stranger))["reason"] == "other_event"
            log = await made.client.get(g.path, headers=made.admin)
            assert [entry["reason"] for entry in log.json()["data"]] == ["other_event", *reversed(cases.values())]
            audit = await made.client.get("/api/audit", headers=made.admin, params={"action": "ticket_code_forged"})
            assert [entry["changes"]["reason"] for entry in audit.json()["data"]] == ["unknown_key", "forged_code"]
            assert await g.verdict(code) == ("admit", None)

    run(main())


async def issue_elsewhere(g: Gates, event_id: str) -> list[str]:
    from tests.tickets import issue

    return [str(t) for t in await issue(g.made.app, g.made.first.organization_id, event_id, 0)]


def _resigned(code: str, **changes: Any) -> str:
    import base64

    import msgspec

    raw = code.split(".")[1]
    payload = msgspec.json.decode(base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)))
    return "HF1." + base64.urlsafe_b64encode(msgspec.json.encode({**payload, **changes})).rstrip(b"=").decode()


def test_a_void_ticket_and_a_replaced_code_are_refused(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            void, reissued = await g.tickets(0, 1)
            old = await g.code(void)
            await g.made.sql(
                "UPDATE tickets SET status = 'void', voided_at = now(), void_reason = 'x' WHERE id = $1", UUID(void)
            )
            assert await g.verdict(old) == ("refuse", "void")
            before = await g.code(reissued)
            answer = await g.made.client.post(f"/api/tickets/{reissued}/reissue", headers=g.made.admin)
            assert answer.status_code == 200, answer.text
            assert (await g.scan(before))["reason"] == "replaced_code"
            assert await g.verdict(answer.json()["data"]["code"]) == ("admit", None)
            told = (await g.scan(before, gate="A"))["message"]
            assert told.startswith(
                "This code was replaced by a newer one. Please show the newest. The newest was used at"
            )

    run(main())


def test_a_ticket_of_a_membership_lets_in_while_the_membership_is_active(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, days=DAYS) as g:
            await g.to_time(DAYS[0])
            made = g.made
            user = (await made.post("/api/users", {"display_name": "Member"})).json()["data"]["id"]
            (row,) = await made.sql("SELECT id FROM memberships WHERE user_id = $1", UUID(user))
            (ticket,) = await g.tickets(0, associated_membership_id=row["id"])
            (gone,) = await g.tickets(1, associated_membership_id=new_id())
            code = await g.code(ticket)
            assert await g.verdict(code) == ("admit", None)
            await made.client.patch(f"/api/users/{user}", headers=made.admin, json={"active": False})
            assert await g.verdict(code) == ("refuse", "membership_inactive")
            assert await g.verdict(code, direction="out") == ("admit", None)
            await made.client.patch(f"/api/users/{user}", headers=made.admin, json={"active": True})
            assert await g.verdict(code) == ("admit", None)
            await made.client.patch(f"/api/users/{user}", headers=made.admin, json={"deactivated": True})
            assert await g.verdict(code) == ("refuse", "membership_inactive")
            assert await g.verdict(ticket_id=gone) == ("refuse", "membership_inactive")

    run(main())


def test_nobody_is_let_in_to_what_was_cancelled_or_is_over(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, days=DAYS) as g:
            await g.to_time(DAYS[0])
            (ticket,) = await g.tickets(0)
            code = await g.code(ticket)
            assert await g.verdict(code) == ("admit", None)
            made = g.made
            await made.post(f"/api/events/{made.event_id}/status", {"status": "live"})
            await made.post(f"/api/events/{made.event_id}/status", {"status": "archived"})
            assert await g.verdict(code) == ("refuse", "event_over")
            assert await g.verdict(code, direction="out") == ("admit", None)
            made.event_id = await made.make_event(theatre_config(1, 2))
            (ticket,) = await g.tickets(0)
            await made.post(f"/api/events/{made.event_id}/status", {"status": "cancelled"})
            assert await g.verdict(ticket_id=ticket) == ("refuse", "event_cancelled")

    run(main())


def test_staff_are_told_of_wheelchairs_and_their_companions(database: TestDatabase) -> None:
    async def main() -> None:
        config = with_companions(theatre_config(1, 8), (0, 1), (3, 4), (6, 7))
        async with gates(database, config) as g:
            buyer = new_id()
            chair, companion = await g.tickets(0, 1, user_id=buyer)
            (alone,) = await g.tickets(3, user_id=buyer)
            (apart,) = await g.tickets(6, user_id=buyer)
            await g.tickets(7, user_id=new_id())
            (plain,) = await g.tickets(2)
            notes = [(await g.scan(ticket_id=t))["accessibility_note"] for t in (chair, companion, alone, apart, plain)]
            assert notes == [
                "Wheelchair ticket, companion reserved: A-2.",
                "Companion of the wheelchair user in A-1.",
                "Wheelchair ticket, companion reserved: A-5.",
                "Wheelchair ticket, the companion's seat A-8 is sold to somebody else.",
                None,
            ]

    run(main())


# Repetition, and bodies that cannot be ------------------------------------------------------------------------------
def test_a_scan_that_is_sent_again_counts_once_and_its_id_is_no_one_elses(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            first, second = [await g.code(ticket) for ticket in await g.tickets(0, 1)]
            scan_id = uuid_of(1)
            one = await g.scan(first, scan_id=scan_id, gate="A")
            two = await g.scan(first, scan_id=scan_id, gate="A")
            assert (one["outcome"], one["duplicate"], two["duplicate"]) == ("admit", False, True)
            assert {**two, "duplicate": False} == one
            for body in ({"code": second}, {"code": first, "direction": "out"}, {"code": "junk"}):
                answer = await g.made.client.post(g.path, headers=g.scanner, json={**body, "scan_id": scan_id})
                assert (answer.status_code, answer.json()["error"]) == (409, "scan_id_reused")
            refused = await g.scan(first, scan_id=uuid_of(2))
            again = await g.scan(first, scan_id=uuid_of(2))
            assert (again["reason"], again["message"]) == ("already_used", refused["message"])
            assert len(await g.made.sql("SELECT 1 FROM admissions")) == 2

    run(main())


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/code"),
        ({"code": "x", "ticket_id": uuid_of(1)}, "/code"),
        ({"ticket_id": "x"}, "/ticket_id"),
        ({"code": "x", "direction": "sideways"}, "/direction"),
        ({"code": "x", "scan_id": "1"}, "/scan_id"),
        ({"code": "x", "scanned_at": "2030-01-01T00:00:00"}, "/scanned_at"),
        ({"code": "x", "gate": ""}, "/gate"),
        ({"code": "x", "gate": "g" * 101}, "/gate"),
        ({"code": "x", "gate": "a\0b"}, "/gate"),
        ({"code": "x" * 10_001}, "/code"),
        ({"code": 1}, "/code"),
        ({"code": "x", "organization_id": uuid_of(1)}, "/organization_id"),
        ({"source": "offline_sync"}, "/scans"),
        ({"source": "offline_sync", "scans": []}, "/scans"),
        ({"source": "scanner", "code": "x"}, "/source"),
        ({"scans": [{"scan_id": uuid_of(1), "scanned_at": "2030-01-01T00:00:00Z", "code": "x"}]}, "/source"),
        ({"source": "offline_sync", "scans": [{"scan_id": uuid_of(1), "code": "x"}]}, "/scans/0/scanned_at"),
        ({"source": "offline_sync", "scans": [{"scan_id": "1", "scanned_at": "2030-01-01T00:00:00Z", "code": "x"}]},
         "/scans/0/scan_id"),
        ({"source": "offline_sync", "scans": [{"scan_id": uuid_of(1), "scanned_at": "9999-12-31T23:59:59Z",
                                               "code": "x"}]}, "/scans/0/scanned_at"),
        ({"source": "offline_sync", "code": "x", "scans": [
            {"scan_id": uuid_of(1), "scanned_at": "2030-01-01T00:00:00Z", "code": "x"}]}, "/code"),
        ({"source": "offline_sync", "scans": [
            {"scan_id": uuid_of(n), "scanned_at": "2030-01-01T00:00:00Z", "code": "x"} for n in range(1001)]}, "/scans"),
    ],
)  # fmt: skip
def test_a_body_that_cannot_be_is_refused_with_its_place(
    gate_house: Gates, loop: asyncio.AbstractEventLoop, body: dict[str, Any], pointer: str
) -> None:
    async def main() -> None:
        answer = await gate_house.made.client.post(gate_house.path, headers=gate_house.scanner, json=body)
        assert answer.status_code == 400, answer.text
        assert answer.json()["errors"][0]["pointer"] == pointer
        assert await gate_house.made.sql("SELECT 1 FROM admissions") == []

    loop.run_until_complete(main())


@pytest.fixture(scope="module")
def loop() -> Any:
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture(scope="module")
def gate_house(shared_database: TestDatabase, loop: asyncio.AbstractEventLoop) -> Any:
    context = gates(shared_database)
    yield loop.run_until_complete(context.__aenter__())
    loop.run_until_complete(context.__aexit__(None, None, None))


def test_the_gates_are_for_those_who_work_there(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            made = g.made
            (ticket,) = await g.tickets(0)
            body = {"ticket_id": ticket, "direction": "out"}
            for headers, status in (
                (await made.buyer(), 403),
                (await made.member(), 403),
                (g.scanner, 200),
                (await made.member("organizer"), 200),
                (made.api_key, 200),
            ):
                assert (await made.client.post(g.path, headers=headers, json=body)).status_code == status
                attendance = await made.client.get(f"/api/events/{made.event_id}/attendance", headers=headers)
                assert attendance.status_code == status
            assert (await made.client.get(g.path, headers=g.scanner)).status_code == 403
            key = await made.post("/api/api-keys", {"name": "gate", "scopes": ["admissions"]})
            gate = {"X-API-Key": key.json()["data"]["secret"]}
            assert (await made.client.post(g.path, headers=gate, json=body)).status_code == 200
            reader = await made.post("/api/api-keys", {"name": "reader", "scopes": ["read"]})
            other = {"X-API-Key": reader.json()["data"]["secret"]}
            assert (await made.client.post(g.path, headers=other, json=body)).status_code == 403
            sources = await made.sql("SELECT source FROM admissions ORDER BY id")
            assert [row["source"] for row in sources] == ["scanner", "web", "api", "api"]

    run(main())


def test_the_log_pages_and_filters(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            made = g.made
            one, two = await g.tickets(0, 1)
            for ticket in (one, two, one):
                await g.scan(ticket_id=ticket)

            async def read(**params: str) -> Any:
                answer = await made.client.get(g.path, headers=made.admin, params=params)
                assert answer.status_code == 200, answer.text
                return answer.json()

            page = await read(limit="2")
            rest = await read(limit="2", cursor=page["next_cursor"])
            assert [e["ticket_id"] for e in page["data"] + rest["data"]] == [one, two, one]
            assert rest["next_cursor"] is None
            assert [e["outcome"] for e in (await read(ticket_id=one))["data"]] == ["refuse", "admit"]
            assert len((await read(outcome="admit"))["data"]) == 2
            assert page["data"][0]["seat"]["seat_id"] == "A-1"
            assert (await read(conflict="true"))["data"] == []

    run(main())


def test_a_night_is_one_day_from_the_gates_point_of_view(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database, days=DAYS, admission={"day_ends_at": "06:00", "exit_scans": True}) as g:
            (ticket,) = await g.tickets(0)
            await g.to_time(DAYS[0], 23, 0)
            assert await g.verdict(ticket_id=ticket) == ("admit", None)
            await g.pass_time(timedelta(hours=4).total_seconds())
            assert await g.verdict(ticket_id=ticket) == ("refuse", "already_inside")
            assert (await g.attendance())["present"] == 1
            await g.pass_time(timedelta(hours=4).total_seconds())
            assert (await g.attendance())["present"] == 0

    run(main())
