"""A layout's geometry over HTTP: found by way of its version, kept for ever, in the form and encoding asked for."""

import asyncio
import gzip
import time
from typing import Any
from uuid import UUID

import httpx
import pytest

from holdfast.http.negotiation import accepts_gzip, names_tag, prefers_binary
from holdfast.live.geometry import decode
from holdfast.live.geometry_service import Form, GeometryService
from tests.conftest import TestDatabase
from tests.factories import staff_call, theatre_config
from tests.http.client import bearer
from tests.http.test_reserve import UNKNOWN, refused
from tests.stage import Stage, stage

HALL = theatre_config(3, 10, ga_capacity=50, aisle_after=4)
BINARY = {"Accept": "application/octet-stream"}
PLAIN = {"Accept-Encoding": "identity"}


def path(made: Stage, event_id: str | None = None) -> str:
    return f"/api/events/{event_id or made.event_id}/geometry"


async def ask(made: Stage, where: str | None = None, **headers: str) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return await made.client.get(where or path(made), headers={**made.admin, **sent})


async def address(made: Stage, event_id: str | None = None) -> str:
    answer = await ask(made, path(made, event_id))
    assert answer.status_code == 307, answer.text
    return str(answer.headers["location"])


def test_the_address_without_or_with_a_wrong_version_leads_to_the_right_one(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            where = await address(made)
            assert where.startswith(f"{path(made)}?version=")
            wrong = await ask(made, f"{path(made)}?version=0123")
            assert (wrong.status_code, wrong.headers["location"]) == (307, where)
            assert wrong.headers["cache-control"] == "no-store"
            answer = await ask(made, where)
            assert answer.status_code == 200
            assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
            assert answer.json()["data"]["version"] == where.partition("=")[2]
            followed = await made.client.get(path(made), headers=made.admin, follow_redirects=True)
            assert followed.content == answer.content
            # The same content has the same address; another has another.
            again = await made.post("/api/events", {"name": "Again", "layout_id": answer.json()["data"]["layout_id"]})
            assert (await address(made, again.json()["data"]["id"])).partition("=")[2] == where.partition("=")[2]
            other = await made.make_event(theatre_config(3, 11))
            assert (await address(made, other)).partition("=")[2] != where.partition("=")[2]

    asyncio.run(main())


def test_json_and_the_compact_form_say_the_same_of_every_seat(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            where = await address(made)
            told = (await ask(made, where)).json()["data"]
            binary = await ask(made, where, **BINARY)
            assert binary.headers["content-type"] == "application/octet-stream"
            geometry = decode(binary.content)
            assert told["columns"]["x"] == geometry.columns.x
            assert told["columns"]["row"] == geometry.columns.row
            assert told["zones"][1]["zone_id"] == geometry.zones[1].zone_id == "pit"
            assert told["aisles"] == {str(row): list(after) for row, after in geometry.aisles.items()} != {}
            for seat in made.seats:
                n = seat["ordinal"]
                assert geometry.seat_id(n) == seat["seat_id"]
                assert str(geometry.seat_uuid(n)) == seat["id"]
                assert geometry.rows[geometry.columns.row[n]] == seat["row"]
                assert geometry.columns.number[n] == seat["number"]
                assert {"x": geometry.columns.x[n], "y": geometry.columns.y[n]} == seat["coordinates"]

    asyncio.run(main())


def test_each_form_and_encoding_has_a_tag_of_its_own_and_is_not_sent_twice(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            where = await address(made)
            tags: set[str] = set()
            for form in ({}, BINARY):
                for encoding in (PLAIN, {"Accept-Encoding": "br, gzip;q=0.5"}):
                    answer = await ask(made, where, **form, **encoding)
                    tag = answer.headers["etag"]
                    assert tag.startswith('"')
                    tags.add(tag)
                    assert answer.headers.get("content-encoding") == (None if encoding is PLAIN else "gzip")
                    assert "Accept-Encoding" in answer.headers["vary"]
                    same = await ask(made, where, **form, **encoding, **{"If-None-Match": f'"x", {tag}'})
                    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
                    assert same.headers["cache-control"] == answer.headers["cache-control"]
                    other = await ask(made, where, **form, **encoding, **{"If-None-Match": '"x"'})
                    assert (other.status_code, other.content) == (200, answer.content)
            assert len(tags) == 4

    asyncio.run(main())


def test_who_may_not_see_the_event_finds_no_geometry(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            where = await address(made)
            guest = await made.buyer()
            assert (await made.client.get(where, headers=guest)).status_code == 200
            other = await made.make_event(HALL)
            draft = await made.make_event(HALL, publish=False)
            refused(await made.client.get(path(made, other), headers=guest), 404, "event_not_found")
            refused(await made.client.get(path(made, draft), headers=await made.member()), 404, "event_not_found")
            assert (await ask(made, path(made, draft))).status_code == 307
            refused(await ask(made, path(made, UNKNOWN)), 404, "event_not_found")
            refused(await ask(made, path(made, "x")), 400, "invalid_request")
            refused(await made.client.get(where), 401, "unauthorized")
            stranger = bearer((await made.app.services.accounts.bootstrap("Another")).admin_token)
            refused(await made.client.get(where, headers=stranger), 404, "event_not_found")
            refused(await made.client.get(where, headers={**stranger, "If-None-Match": "*"}), 404, "event_not_found")

    asyncio.run(main())


def test_an_event_with_zones_of_its_own_follows_its_draft(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL) as made:
            lawn: dict[str, Any] = {"zone_id": "lawn", "name": "Lawn", "zone_type": "ga_standing", "capacity": 300}
            event = (await made.post("/api/events", {"name": "Picnic", "zones": [lawn]})).json()["data"]["id"]
            first = await address(made, event)
            told = (await ask(made, first)).json()["data"]
            assert (told["seat_count"], told["zones"][0]["capacity"], told["columns"]["x"]) == (0, 300, [])
            changed = await made.client.patch(
                f"/api/events/{event}", headers=made.admin, json={"zones": [{**lawn, "capacity": 400}]}
            )
            assert changed.status_code == 200, changed.text
            moved = await ask(made, first)
            assert moved.status_code == 307
            assert (await ask(made, moved.headers["location"])).json()["data"]["zones"][0]["capacity"] == 400

    asyncio.run(main())


def test_a_large_layout_is_made_once_for_all_who_ask_and_memory_is_bounded(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, theatre_config(50, 100)) as made:
            call = staff_call(made.first)
            service = GeometryService(made.app.catalogue, bytes_max=60_000)
            event = UUID(made.event_id)
            found = await asyncio.gather(*(service.of_event(call, event) for _ in range(10)))
            assert len(set(map(id, found))) == 1
            bodies = await asyncio.gather(*(service.body(found[0], Form.JSON, gzipped=True) for _ in range(10)))
            assert len(set(map(id, bodies))) == 1
            assert b'"seat_count":5000' in gzip.decompress(bodies[0])
            assert await service.of_event(call, event) is found[0]  # kept, though it is larger than there is room for
            other = UUID(await made.make_event(theatre_config(2, 4)))
            await service.of_event(call, other)
            again = await service.of_event(call, event)
            assert again is not found[0]  # it had to make room
            assert again.version == found[0].version

    asyncio.run(main())


def test_others_are_answered_while_a_large_layout_is_encoded(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, theatre_config(100, 200)) as made:
            view = await made.app.catalogue.event(made.first.organization_id, UUID(made.event_id))
            assert view is not None
            service = GeometryService(made.app.catalogue)
            began = time.monotonic()
            task = asyncio.create_task(service.of_view(view))
            turns = 0
            while not task.done():
                await asyncio.sleep(0.001)
                turns += 1
            assert turns > 1, f"the loop stood still for {time.monotonic() - began:.3f} s"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("accept", "binary"),
    [
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("application/octet-stream", True),
        ("Application/Octet-Stream; q=0.9, */*; q=0.1", True),
        ("application/octet-stream;q=0.5, application/json", False),
        ("application/octet-stream;q=0", False),
        ("application/octet-stream;q=high", False),
    ],
)
def test_the_compact_form_is_for_who_asks_for_it(accept: str, binary: bool) -> None:
    assert prefers_binary(accept) is binary


@pytest.mark.parametrize(
    ("accepted", "gzipped"),
    [("", False), ("gzip", True), ("br, GZIP;q=0.5", True), ("gzip;q=0", False), ("*", True), ("*, gzip;q=0", False)],
)
def test_it_is_compressed_for_who_can_read_that(accepted: str, gzipped: bool) -> None:
    assert accepts_gzip(accepted) is gzipped


@pytest.mark.parametrize(
    ("sent", "same"), [("", False), ('"a"', True), ('W/"a"', True), ('"b", "a"', True), ("*", True), ('"b"', False)]
)
def test_a_tag_is_recognised_however_it_is_sent(sent: str, same: bool) -> None:
    assert names_tag(sent, '"a"') is same
