"""Layouts as files over HTTP: what goes in comes out, what cannot stand leaves no trace, and pictures show the truth."""

import asyncio
import xml.etree.ElementTree as ET
from typing import Any

import httpx
import msgspec
import pytest

from tests.conftest import TestDatabase
from tests.factories import theatre_config
from tests.http.contents import contents
from tests.stage import Stage, stage

TABLES = ("venues", "layouts", "layout_versions", "audit_entries", "outbox", "idempotency_keys")
SIX = "zone,row,number,x,y,category\n"
CSV = SIX + "stalls,A,1,10,50,wheelchair\nstalls,A,2,30,50,\n"
SVG_SPACE = "{http://www.w3.org/2000/svg}"


async def venue_of(made: Stage) -> str:
    answer = await made.post("/api/venues", {"name": "Hall"})
    venue: str = answer.json()["data"]["id"]
    return venue


async def imported(made: Stage, content: str | bytes, **params: str) -> httpx.Response:
    venue = await venue_of(made)
    return await made.client.post(
        f"/api/venues/{venue}/layouts/import", content=content, params=params, headers=made.admin
    )


async def exported(made: Stage, layout: str, **params: str) -> httpx.Response:
    return await made.client.get(f"/api/layouts/{layout}/export", params=params, headers=made.admin)


def test_a_layout_goes_in_and_out_in_every_format(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database) as made:
            config = theatre_config(2, 4, ga_capacity=30, aisle_after=2)
            config["zones"][0]["seats"][0].update(category="wheelchair", companion_seat_id="A-2")
            first = await imported(made, msgspec.json.encode(config), format="native", name="Große Bühne")
            assert first.status_code == 201, first.text
            data = first.json()["data"]
            assert (data["name"], data["version"], data["seat_count"], data["notes"]) == ("Große Bühne", 1, 8, [])
            media = {"csv": "text/csv", "svg": "image/svg+xml", "native": "application/json"}
            for name in ("native", "csv", "svg"):
                out = await exported(made, data["id"], format=name, version="1")
                assert out.status_code == 200
                assert out.headers["content-type"].startswith(media[name])
                assert out.headers["x-layout-notes"] == "0"
                ending = {"native": "json"}.get(name, name)
                assert f'filename="Gro_e B_hne-v1.{ending}"' in out.headers["content-disposition"]
                assert "filename*=UTF-8''Gro%C3%9Fe%20B%C3%BChne" in out.headers["content-disposition"]
                again = await made.client.post(
                    f"/api/layouts/{data['id']}/versions/import", content=out.content, headers=made.admin
                )
                assert again.status_code == 201, again.text
                version = again.json()["data"]["version"]
                whole = await made.client.get(f"/api/layouts/{data['id']}?version={version}", headers=made.admin)
                assert whole.json()["data"]["config"] == config

    asyncio.run(main())


def test_a_pretix_plan_brings_its_name_and_its_notes(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database) as made:
            layout = await imported(made, CSV, format="csv", name="Hall")
            layout_id = layout.json()["data"]["id"]
            out = await exported(made, layout_id, format="pretix")
            assert [zone["zone_id"] for zone in out.json()["zones"]] == ["stalls"]
            back = await imported(made, out.content)
            assert back.status_code == 201, back.text
            assert back.json()["data"]["name"] == "Hall"
            assert {note["code"] for note in back.json()["data"]["notes"]} == {"field_not_kept", "size_not_kept"}
            ga = await imported(made, msgspec.json.encode(theatre_config(1, 2, ga_capacity=5)), name="With a pit")
            notes = await exported(made, ga.json()["data"]["id"], format="pretix", notes="true")
            told = notes.json()["data"]
            assert (told["format"], told["version"]) == ("pretix", 1)
            assert {note["pointer"] for note in told["notes"]} == {"/focal_point", "/zones/1"}

    asyncio.run(main())


def test_a_check_counts_and_stores_nothing(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, layout_limit_bytes=100_000) as made:
            before = await contents(made, TABLES)
            checked = await made.client.post("/api/layouts/check", content=CSV, headers=made.admin)
            assert checked.status_code == 200, checked.text
            assert checked.json()["data"] == {
                "format": "csv",
                "name": None,
                "seat_count": 2,
                "total_capacity": 2,
                "zones": 1,
                "notes": [],
            }
            bad = await made.client.post(
                "/api/layouts/check?format=csv", content=SIX + "a,A,x,,,\n", headers=made.admin
            )
            assert (bad.status_code, bad.json()["error"]) == (422, "invalid_layout")
            large = await made.client.post("/api/layouts/check", content=b"x" * 100_001, headers=made.admin)
            assert (large.status_code, large.json()["error"]) == (413, "body_too_large")
            assert await contents(made, TABLES) == before

    asyncio.run(main())


BROKEN: list[tuple[str, bytes, int, str]] = [
    ("native", b"{", 422, ""),
    ("native", b"\xff\xfe", 422, ""),
    ("native", b"[" * 100_000, 422, ""),
    ("native", b'{"zones": "none"}', 422, "/zones"),
    ("native", msgspec.json.encode({"zones": [{"zone_id": "a", "seats": [{}]}]}), 422, "/zones/0/name"),
    ("csv", b"", 422, "/lines/1"),
    ("csv", SIX.encode() + b"a,A,1,0,0,\na,A,1,0,0,\n", 422, "/lines/3/seat_id"),
    ("csv", SIX.encode() + b"caf\xe9,A,1,0,0,\n", 422, "/lines/2"),
    ("pretix", b"[]", 422, ""),
    ("pretix", b'{"name": "x", "categories": [], "zones": []}', 422, "/zones"),
    ("svg", b"<svg><script/></svg>", 422, "/lines/1/columns/6"),
    ("svg", b'<!DOCTYPE x [<!ENTITY a "b">]><svg>&a;</svg>', 422, ""),
    ("svg", b"not xml", 422, "/lines/1/columns/1"),
    ("docx", b"PK", 400, "/format"),
]  # fmt: skip


def test_a_file_that_cannot_stand_is_explained_and_leaves_no_trace(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database) as made:
            venue = await venue_of(made)
            layout = await made.client.post(
                f"/api/venues/{venue}/layouts/import?name=Hall", content=CSV, headers=made.admin
            )
            before = await contents(made, TABLES)
            for name, content, status, pointer in BROKEN:
                for path in (
                    f"/api/venues/{venue}/layouts/import?name=x",
                    f"/api/layouts/{layout.json()['data']['id']}/versions/import?name=x",
                    "/api/layouts/check?name=x",
                ):
                    answer = await made.client.post(f"{path}&format={name}", content=content, headers=made.admin)
                    assert answer.status_code == status, (name, content[:50], answer.text)
                    assert answer.headers["content-type"] == "application/problem+json"
                    assert pointer in {problem["pointer"] for problem in answer.json()["errors"]}, answer.text
            assert await contents(made, TABLES) == before

    asyncio.run(main())


def test_a_million_seats_are_refused_and_the_server_lives(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database) as made:
            before = await contents(made, TABLES[1:3])
            seats = b",".join([b'{"seat_id":"x","row":"A","number":1}'] * 1_000_000)
            native = b'{"zones":[{"zone_id":"a","name":"a","zone_type":"reserved_seating","seats":[%s]}]}' % seats
            answer = await imported(made, native, format="native", name="x")
            assert answer.status_code == 422
            assert [problem["code"] for problem in answer.json()["errors"]].count("too_many_seats") == 1
            lines = SIX.encode() + b"a,A,1,,,\n" * 1_000_000
            answer = await imported(made, lines, name="x")
            assert answer.status_code == 422
            assert [problem["code"] for problem in answer.json()["errors"]] == ["too_many_seats"]
            assert (await made.client.get("/healthz")).status_code == 200
            assert await contents(made, TABLES[1:3]) == before

    asyncio.run(main())


def test_a_name_is_needed_and_the_policy_speaks_of_the_files_lines(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database) as made:
            nameless = await imported(made, CSV)
            assert (nameless.status_code, nameless.json()["errors"][0]["pointer"]) == (400, "/name")
            blank = await imported(made, CSV, name=" ")
            assert (blank.status_code, blank.json()["errors"][0]["pointer"]) == (400, "/name")
            await made.client.put("/api/policy", json={"allow_vip_zones": False}, headers=made.admin)
            vip = "zone,row,number,x,y,category,zone_type\nbox,A,1,,,,vip_reserved\n"
            refused = await imported(made, vip, name="Hall")
            assert refused.status_code == 422, refused.text
            assert refused.json()["errors"][0]["pointer"] == "/lines/2/zone_type"

    asyncio.run(main())


def test_files_and_pictures_are_for_staff(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database) as made:
            layout = (await imported(made, CSV, name="Hall")).json()["data"]["id"]
            guest = await made.buyer()
            before = await contents(made, TABLES)
            client = made.client
            answers = [
                await client.post("/api/layouts/check", content=CSV, headers=guest),
                await client.post(f"/api/layouts/{layout}/versions/import", content=CSV, headers=guest),
                await client.get(f"/api/layouts/{layout}/export?format=csv", headers=guest),
                await client.get(f"/api/layouts/{layout}/picture.svg", headers=guest),
                await client.get(f"/api/events/{made.event_id}/picture.svg", headers=guest),
            ]
            assert {answer.status_code for answer in answers} == {403}
            nobody = await client.post("/api/layouts/check", content=CSV)
            assert nobody.status_code == 401
            assert await contents(made, TABLES) == before

    asyncio.run(main())


def titles(drawing: bytes) -> set[str]:
    return {found.text or "" for found in ET.fromstring(drawing).iter(f"{SVG_SPACE}title")}


def words(drawing: bytes) -> set[str]:
    return {found.text or "" for found in ET.fromstring(drawing).iter(f"{SVG_SPACE}text")}


def test_an_events_picture_shows_how_its_seats_stand(database: TestDatabase) -> None:
    async def main() -> None:
        overrides = {"overrides": {"orphan_avoidance_strict": False}}
        async with stage(database, theatre_config(2, 3, ga_capacity=40), event=overrides) as made:
            buyer = await made.buyer()
            assert (await made.reserve(0, buyer)).status_code == 201
            ga = {"ga": [{"zone_id": "pit", "quantity": 4}]}
            assert (await made.post(f"/api/events/{made.event_id}/holds", ga, buyer)).status_code == 201
            blocked = {"seats": [made.seats[5]["id"]], "reason": "camera"}
            assert (await made.post(f"/api/events/{made.event_id}/seats/block", blocked)).status_code == 200
            by_state = await made.client.get(f"/api/events/{made.event_id}/picture.svg", headers=made.admin)
            assert by_state.status_code == 200
            assert by_state.headers["content-type"] == "image/svg+xml"
            said = titles(by_state.content)
            assert any(title.startswith("Stalls, row A, seat 1 (A-1): held") for title in said)
            assert "Stalls, row A, seat 2 (A-2): available" in said
            assert any(title.startswith("Stalls, row B, seat 3 (B-3): blocked") for title in said)
            assert {"available (4)", "held (1)", "blocked (1)", "Pit", "36 left, 4 held, 0 sold", "A"} <= words(
                by_state.content
            )
            hold_type = (await made.seat(0))["hold_type"]
            for by, legend in (("hold_type", f"{hold_type} (1)"), ("zone", "Stalls (6)"), ("category", "standard (6)")):
                drawn = await made.client.get(f"/api/events/{made.event_id}/picture.svg?by={by}", headers=made.admin)
                assert legend in words(drawn.content), by
            wrong = await made.client.get(f"/api/events/{made.event_id}/picture.svg?by=mood", headers=made.admin)
            assert wrong.status_code == 400

    asyncio.run(main())


def test_a_draft_and_an_event_without_a_layout_have_pictures_too(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database) as made:
            draft = await made.make_event(theatre_config(1, 2), publish=False)
            drawn = await made.client.get(f"/api/events/{draft}/picture.svg", headers=made.admin)
            assert "available (2)" in words(drawn.content)
            zones: list[dict[str, Any]] = [
                {"zone_id": "lawn", "name": "Lawn", "zone_type": "ga_standing", "capacity": 50}
            ]
            lawn = await made.post("/api/events", {"name": "Picnic", "zones": zones})
            drawn = await made.client.get(
                f"/api/events/{lawn.json()['data']['id']}/picture.svg?by=state", headers=made.admin
            )
            assert {"Picnic", "Lawn", "50 places"} <= words(drawn.content)

    asyncio.run(main())


@pytest.mark.parametrize("by", ["zone", "category"])
def test_a_layouts_picture_names_zones_rows_and_seats(database: TestDatabase, by: str) -> None:
    async def main() -> None:
        async with stage(database) as made:
            layout = (await imported(made, CSV, name="<Hall> & Co")).json()["data"]["id"]
            drawn = await made.client.get(f"/api/layouts/{layout}/picture.svg?by={by}", headers=made.admin)
            assert {"<Hall> & Co", "stalls", "A"} <= words(drawn.content)
            assert "stalls, row A, seat 1 (stalls-A-1), wheelchair" in titles(drawn.content)
            gone = await made.client.get(f"/api/layouts/{layout}/picture.svg?version=9", headers=made.admin)
            assert gone.status_code == 404

    asyncio.run(main())
