"""Tickets as people hold them: who may read them, their codes and pictures, and the keys behind them."""

import asyncio
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import segno
from PIL import Image

from holdfast.kernel.errors import TicketNotFound
from holdfast.kernel.ids import new_id
from holdfast.tickets.code import read_code
from tests.conftest import TestDatabase
from tests.factories import buyer_call
from tests.http.client import bearer
from tests.http.contents import user
from tests.http.gate_ground import Gates, gates
from tests.tickets import issue


def run(work: Any) -> None:
    asyncio.run(work)


# Reading ------------------------------------------------------------------------------------------------------------
def test_a_ticket_is_for_its_owner_the_attendee_and_staff(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            owner, attendee, stranger = [await user(g.made) for _ in range(3)]
            (ticket,) = await g.tickets(3, user_id=owner.user_id, attendee_user_id=attendee.user_id)
            seen = await g.ticket(ticket, bearer(owner.token))
            assert seen["seat"] == {
                "id": g.made.seats[3]["id"],
                "seat_id": "A-4",
                "row": "A",
                "number": 4,
            }
            assert (seen["zone"]["zone_id"], seen["event"]["name"], seen["status"]) == ("stalls", "Evening", "valid")
            assert (seen["entitlement"], seen["valid_days"], seen["code_version"]) == ("single_entry", [], 1)
            for headers in (bearer(attendee.token), g.scanner, g.made.admin, g.made.api_key):
                assert (await g.ticket(ticket, headers))["code"] == seen["code"]
            for headers in (bearer(stranger.token), await g.made.buyer()):
                for path in (ticket, f"{ticket}.svg", f"{ticket}.png", str(new_id()), f"{new_id()}.png"):
                    answer = await g.made.client.get(f"/api/tickets/{path}", headers=headers)
                    assert (answer.status_code, answer.json()["error"]) == (404, "ticket_not_found")
                answer = await g.made.client.post(f"/api/tickets/{ticket}/reissue", headers=headers)
                assert answer.status_code == 404
            for headers in (bearer(attendee.token), g.scanner):
                answer = await g.made.client.post(f"/api/tickets/{ticket}/reissue", headers=headers)
                assert answer.status_code == 403
            for name in ("x", "x.svg", ticket + ".gif", ticket[:-1]):
                assert (await g.made.client.get(f"/api/tickets/{name}", headers=g.made.admin)).status_code == 400

    run(main())


def test_buyers_list_their_own_tickets_and_staff_an_events(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            made, me, other = g.made, await user(g.made), await user(g.made)
            mine = await g.tickets(0, 1, user_id=me.user_id)
            named = await g.tickets(2, user_id=other.user_id, attendee_user_id=me.user_id)
            await g.tickets(zone="pit", quantity=2, user_id=other.user_id)
            elsewhere = await made.make_event()
            (abroad,) = await issue(made.app, made.first.organization_id, elsewhere, 0, user_id=me.user_id)

            async def read(path: str, headers: dict[str, str], **params: str) -> list[dict[str, Any]]:
                found: list[dict[str, Any]] = []
                while True:
                    answer = await made.client.get(path, headers=headers, params={"limit": "2", **params})
                    assert answer.status_code == 200, answer.text
                    found += answer.json()["data"]
                    if answer.json()["next_cursor"] is None:
                        return found
                    params["cursor"] = answer.json()["next_cursor"]

            listed = await read("/api/tickets", bearer(me.token))
            assert {t["id"] for t in listed} == {*mine, *named, str(abroad)}
            assert all("code" not in t for t in listed)
            here = await read("/api/tickets", bearer(me.token), event_id=made.event_id)
            assert {t["id"] for t in here} == {*mine, *named}
            assert await read("/api/tickets", made.api_key) == []
            path = f"/api/events/{made.event_id}/tickets"
            assert len(await read(path, made.admin)) == 5
            await made.sql("UPDATE tickets SET status = 'void', voided_at = now() WHERE id = $1", UUID(mine[0]))
            assert [t["id"] for t in await read(path, made.admin, status="void")] == [mine[0]]
            assert len(await read(path, made.admin, status="valid")) == 4
            for headers in (bearer(me.token), g.scanner):
                assert (await made.client.get(path, headers=headers)).status_code == 403
            assert (await made.client.get(path, headers=made.admin, params={"status": "x"})).status_code == 400

    run(main())


def test_a_guest_sees_tickets_of_their_one_event_only(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            guest, elsewhere = new_id(), UUID(await g.made.make_event())
            (ticket,) = await g.tickets(0, user_id=guest)
            tickets = g.made.app.services.tickets
            here = buyer_call(g.made.first, guest, guest_event_id=UUID(g.made.event_id))
            there = buyer_call(g.made.first, guest, guest_event_id=elsewhere)
            assert str((await tickets.get(here, UUID(ticket))).id) == ticket
            assert [str(t.id) for t in (await tickets.mine(here, None, None, 10)).items] == [ticket]
            with pytest.raises(TicketNotFound):
                await tickets.get(there, UUID(ticket))
            for event_id in (None, UUID(g.made.event_id)):
                assert (await tickets.mine(there, event_id, None, 10)).items == []

    run(main())


# Codes --------------------------------------------------------------------------------------------------------------
def test_the_pictures_show_the_code_and_stay_in_no_cache(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            ticket, void = await g.tickets(0, 1)
            code = await g.code(ticket)
            png = await g.made.client.get(f"/api/tickets/{ticket}.png", headers=g.scanner)
            svg = await g.made.client.get(f"/api/tickets/{ticket}.svg", headers=g.scanner)
            plain = await g.made.client.get(f"/api/tickets/{ticket}", headers=g.scanner)
            assert [a.headers["content-type"].partition(";")[0] for a in (png, svg)] == ["image/png", "image/svg+xml"]
            assert {a.headers["cache-control"] for a in (png, svg, plain)} == {"no-store"}
            expected = segno.make_qr(code, error="m", boost_error=False, encoding="utf-8", mode="byte")
            squares = [list(row) for row in expected.matrix]
            image = Image.open(io.BytesIO(png.content)).convert("L")
            drawn = [[int(image.getpixel((x * 8 + 36, y * 8 + 36)) == 0) for x in range(len(squares))]
                     for y in range(len(squares))]  # fmt: skip
            assert drawn == squares
            await g.made.sql("UPDATE tickets SET status = 'void', voided_at = now() WHERE id = $1", UUID(void))
            assert (await g.ticket(void))["code"] is None
            for path in (f"{void}.png", f"{void}/reissue"):
                method = "POST" if path.endswith("reissue") else "GET"
                answer = await g.made.client.request(method, f"/api/tickets/{path}", headers=g.made.admin)
                assert (answer.status_code, answer.json()["error"]) == (409, "ticket_void")

    run(main())


def test_a_ticket_issued_anew_has_another_code_and_the_same_id(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            owner = await user(g.made)
            (ticket,) = await g.tickets(0, user_id=owner.user_id)
            before = await g.code(ticket)
            headers = {**bearer(owner.token), "Idempotency-Key": "once"}
            for _ in range(2):
                answer = await g.made.client.post(f"/api/tickets/{ticket}/reissue", headers=headers)
                assert (answer.status_code, answer.json()["data"]["code_version"]) == (200, 2)
            assert answer.json()["data"]["id"] == ticket
            assert answer.json()["data"]["code"] != before
            kept = await g.made.sql("SELECT convert_from(answer, 'UTF8') AS answer FROM idempotency_keys")
            assert [row["answer"] for row in kept] == ["2"]  # no code in any table
            audit = await g.made.client.get("/api/audit", headers=g.made.admin, params={"action": "ticket_reissued"})
            assert [entry["changes"] for entry in audit.json()["data"]] == [{"code_version": 2}]

    run(main())


# Keys ---------------------------------------------------------------------------------------------------------------
def test_keys_are_made_once_however_many_ask_and_rotated_by_administrators(database: TestDatabase) -> None:
    async def main() -> None:
        async with gates(database) as g:
            made = g.made
            guest = await made.buyer()
            asked = [made.client.get("/api/ticket-keys", headers=guest) for _ in range(10)]
            sets = {json.dumps(answer.json()["data"]) for answer in await asyncio.gather(*asked)}
            assert len(sets) == 1
            (key,) = json.loads(sets.pop())["keys"]
            assert key.keys() == {"kid", "x", "kty", "crv", "use"}
            (ticket,) = await g.tickets(0)
            old = await g.code(ticket)
            for headers in (guest, g.scanner, await made.member("organizer")):
                assert (await made.client.post("/api/ticket-keys/rotate", headers=headers)).status_code == 403
            rotated = await made.client.post("/api/ticket-keys/rotate", headers=made.admin)
            assert rotated.json()["data"]["retired_key_id"] == key["kid"]
            new = await g.code(ticket)
            read = read_code(new)
            assert read is not None
            assert read.payload.k == rotated.json()["data"]["key_id"] != key["kid"]
            keys = (await made.client.get("/api/ticket-keys", headers=guest)).json()["data"]["keys"]
            assert [k["kid"] for k in keys] == [key["kid"], read.payload.k]
            assert await g.verdict(old) == ("admit", None)
            assert await g.verdict(new) == ("refuse", "already_used")
            (row,) = await made.sql("SELECT private_key FROM ticket_keys WHERE retired_at IS NULL")
            document = (await made.client.get("/openapi.json")).text
            assert "private" not in json.dumps(json.loads(document)["components"])
            trail = await made.sql("SELECT t::text AS row FROM audit_entries t")
            assert not any(row["private_key"].hex() in entry["row"] for entry in trail)

    run(main())


def test_codes_are_verified_without_a_connection_by_the_script_in_the_documentation(
    database: TestDatabase, repository: Path, tmp_path: Path
) -> None:
    async def main() -> None:
        async with gates(database, days=["2030-05-01", "2030-05-02"]) as g:
            (ticket,) = await g.tickets(0)
            code = await g.code(ticket)
            keys = tmp_path / "keys.json"
            keys.write_text((await g.made.client.get("/api/ticket-keys", headers=g.scanner)).text)
            first = await g.made.app.services.accounts.bootstrap("Other")
            others = tmp_path / "others.json"
            answer = await g.made.client.get("/api/ticket-keys", headers=bearer(first.admin_token))
            others.write_text(json.dumps(answer.json()["data"]))  # the bare key set is read as well

            def verify(said: str, file: Path = keys, *more: str) -> tuple[int, str]:
                command = [sys.executable, "-I", str(repository / "docs/verify_ticket.py"), "--keys", str(file)]
                done = subprocess.run([*command, *more, said], capture_output=True, text=True, timeout=30)
                assert done.stderr == ""
                return done.returncode, done.stdout.strip()

            genuine = verify(code, keys, "--event", g.made.event_id, "--day", "2030-05-02")
            assert genuine == (
                0,
                f"GENUINE: Stalls, Row A, seat 1; unlimited_multi_day; ticket {ticket}, code 1",
            )
            middle = len(code) // 2
            altered = code[:middle] + ("A" if code[middle] != "A" else "B") + code[middle + 1 :]
            assert verify(altered)[0] == 1
            assert verify(code[:-2] + ("AA" if code[-2:] != "AA" else "BB"))[0] == 1
            assert verify(code, others) == (1, "REFUSE: it was signed with a key that is not in the file")
            assert verify(code, keys, "--event", str(new_id())) == (1, "REFUSE: it is for another event")
            assert verify(code, keys, "--day", "2030-05-03")[0] == 1
            assert verify("nonsense")[0] == 1
            # Void is not known offline: the upload will tell.
            await g.made.sql("UPDATE tickets SET status = 'void', voided_at = now() WHERE id = $1", UUID(ticket))
            assert verify(code)[0] == 0

    run(main())


# An event's settings ------------------------------------------------------------------------------------------------
def test_an_event_says_how_it_lets_in_and_tickets_out_already_keep_their_terms(database: TestDatabase) -> None:
    async def main() -> None:
        limited = {
            "entitlement": "limited_reentry_per_day",
            "max_daily_entries": 2,
            "timezone": "Europe/Berlin",
            "zones": {"pit": {"entitlement": "single_entry", "valid_days": ["2030-05-02"]}},
        }
        days = ["2030-05-01", "2030-05-02"]
        async with gates(database, days=days, admission=limited) as g:
            made = g.made
            event = f"/api/events/{made.event_id}"
            shown = (await made.client.get(event, headers=await made.buyer())).json()["data"]["admission"]
            assert shown == limited
            (seat,), (place,) = await g.tickets(0), await g.tickets(zone="pit")
            assert await terms(g, seat) == ("limited_reentry_per_day", 2, days)
            assert await terms(g, place) == ("single_entry", None, ["2030-05-02"])
            await g.patch(name="Renamed")  # what is not said stays
            assert (await made.client.get(event, headers=made.admin)).json()["data"]["admission"] == limited
            await g.patch(admission={"entitlement": "single_entry"})
            (later,) = await g.tickets(1)
            assert await terms(g, later) == ("single_entry", None, days)
            assert await terms(g, seat) == ("limited_reentry_per_day", 2, days)
            await g.patch(admission=None)
            (usual,) = await g.tickets(2)
            assert await terms(g, usual) == ("unlimited_multi_day", None, days)
            wrong = await made.client.patch(event, headers=made.admin, json={"admission": {"zones": {"moon": {}}}})
            assert wrong.status_code == 422
            assert wrong.json()["errors"][0]["pointer"] == "/admission/zones/moon"

    run(main())


async def terms(g: Gates, ticket: str) -> tuple[str, int | None, list[str]]:
    seen = await g.ticket(ticket)
    return seen["entitlement"], seen["max_daily_entries"], seen["valid_days"]
