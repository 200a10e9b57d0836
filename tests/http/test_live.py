"""Watching an event: server-sent events, WebSocket and the snapshot, as a viewer finds them."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import websockets

from holdfast.live.codec import decode_snapshot
from tests.conftest import TestDatabase
from tests.stage import Stage, stage

SOON_S = 5.0


class Viewer:
    """A reader of server-sent events on a connection of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self.last_id = ""

    async def open(self) -> None:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.status = int(head[0].split(" ")[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}

    async def next(self, *kinds: str) -> dict[str, Any]:
        """The next message of these kinds; others are passed over."""
        while True:
            fields: dict[str, str] = {}
            block = await asyncio.wait_for(self._reader.readuntil(b"\n\n"), SOON_S)
            for line in block.decode().strip("\n").split("\n"):
                name, _, value = line.partition(": ")
                fields[name] = value
            self.last_id = fields.get("id", self.last_id)
            if fields.get("event") in kinds:
                return {"event": fields["event"], "id": fields.get("id"), **msgspec.json.decode(fields["data"])}

    async def body(self) -> Any:
        return msgspec.json.decode(await self._reader.read(-1))


@asynccontextmanager
async def viewer(
    client: httpx.AsyncClient, event_id: str, headers: dict[str, str], query: str = "", **more: str
) -> AsyncIterator[Viewer]:
    url = client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    lines = {"Host": url.host, **headers, **{name.replace("_", "-"): value for name, value in more.items()}}
    said = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    writer.write(f"GET /api/events/{event_id}/live{query} HTTP/1.1\r\n{said}\r\n".encode())
    made = Viewer(reader, writer)
    try:
        await made.open()
        yield made
    finally:
        writer.close()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def snapshot(made: Stage, headers: dict[str, str], **more: str) -> httpx.Response:
    return await made.client.get(f"/api/events/{made.event_id}/availability", headers={**headers, **more})


def seen(message: dict[str, Any]) -> dict[int, tuple[int, str | None]]:
    """State and hold type by ordinal."""
    names = message.get("hold_types", [None])
    return {
        ordinal: (value & 3, names[(value >> 2) & 31])
        for ordinal, value in zip(message.get("ordinals", []), message.get("values", []), strict=True)
    }


def test_a_viewer_sees_a_hold_and_its_release(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer, other = await made.buyer(), await made.buyer()
            async with viewer(made.client, made.event_id, other) as watching:
                assert watching.status == 200
                assert watching.headers["content-type"].startswith("text/event-stream")
                await watching.next("resync")
                held = await made.reserve(3, buyer)
                assert held.status_code == 201
                message = await watching.next("seats")
                assert seen(message) == {3: (1, "CART")}
                assert message["versions"] == [1]
                await made.client.delete(f"/api/holds/{held.json()['data']['hold_id']}", headers=buyer)
                message = await watching.next("seats")
                assert seen(message) == {3: (0, None)}
                assert message["versions"] == [2]
                assert "user" not in str(message)

    run(check())


def test_the_snapshot_tells_every_seat_and_the_stream_continues_from_it(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            assert (await made.reserve(1, buyer)).status_code == 201
            await made.app.feed.caught_up()
            answer = await snapshot(made, buyer)
            data = answer.json()["data"]
            assert data["states"][1] == "h"
            assert data["states"].count("a") == len(made.seats) - 1
            assert data["hold_types"] == {"CART": [1]}
            assert (await made.reserve(2, buyer)).status_code == 201
            query = f"?last_event_id={data['sequence']}"
            async with viewer(made.client, made.event_id, buyer, query) as watching:
                message = await watching.next("seats", "resync")
                assert message["event"] == "seats"
                changed = seen(message)
                if 2 not in changed:  # it was not yet known when the viewer came
                    changed |= seen(await watching.next("seats"))
                assert changed[2] == (1, "CART")

    run(check())


def test_the_binary_snapshot_says_the_same_in_a_byte_a_seat(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            await made.reserve(4, buyer)
            await made.post(f"/api/events/{made.event_id}/seats/block", {"seats": [made.seats[0]["id"]], "reason": "x"})
            await made.app.feed.caught_up()
            answer = await snapshot(made, buyer, Accept="application/octet-stream")
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["content-encoding"] == "gzip"
            read = decode_snapshot(answer.content)
            assert [read.state(n) for n in range(len(made.seats))] == [
                {0: "blocked", 4: "held"}.get(n, "available") for n in range(len(made.seats))
            ]
            assert read.hold_type(4) == "CART"
            assert read.zones[0].capacity == 100
            plain = await snapshot(made, buyer, **{"Accept": "application/octet-stream", "Accept-Encoding": "identity"})
            assert "content-encoding" not in plain.headers
            assert decode_snapshot(plain.content).values == read.values

    run(check())


def test_an_unchanged_snapshot_is_not_sent_again(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            first = await snapshot(made, buyer)
            tag = first.headers["etag"]
            assert (await snapshot(made, buyer, **{"If-None-Match": tag})).status_code == 304
            assert (await snapshot(made, buyer, **{"If-None-Match": f'"other", {tag}'})).status_code == 304
            await made.reserve(0, buyer)
            await made.app.feed.caught_up()
            await asyncio.sleep(0.12)
            again = await snapshot(made, buyer, **{"If-None-Match": tag})
            assert again.status_code == 200
            assert again.headers["etag"] != tag

    run(check())


def test_a_viewer_who_comes_back_is_told_what_it_missed(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            async with viewer(made.client, made.event_id, buyer) as watching:
                await watching.next("resync")
                await made.reserve(0, buyer)
                await watching.next("seats")
                last_id = watching.last_id
            await made.reserve(1, buyer)
            await made.hold(buyer, ga=[{"zone_id": "pit", "quantity": 7}])
            await made.app.feed.caught_up()
            async with viewer(made.client, made.event_id, buyer, Last_Event_ID=last_id) as again:
                message = await again.next("seats", "resync")
                assert message["event"] == "seats"
                assert 1 in seen(message)
                assert [zone["held"] for zone in message["zones"]] == [7]

    run(check())


def test_a_viewer_from_another_node_resumes_where_it_was(database: TestDatabase) -> None:
    """The node that it comes to began to watch the event only now, and reaches back into the outbox."""

    async def check() -> None:
        async with stage(database) as one:
            buyer = await one.buyer()
            async with viewer(one.client, one.event_id, buyer) as watching:
                await watching.next("resync")
                last_id = watching.last_id
            await one.reserve(5, buyer)
            async with stage(database, organization=one.first) as two:
                await two.app.feed.caught_up()
                async with viewer(two.client, one.event_id, buyer, Last_Event_ID=last_id) as again:
                    message = await again.next("seats", "resync")
                    assert message["event"] == "seats"
                    assert seen(message) == {5: (1, "CART")}

    run(check())


def test_only_what_says_everything_up_to_there_can_be_resumed_from(database: TestDatabase) -> None:
    """A viewer who leaves right after an `occupancy` or a `notice` must not skip seats that were still to be sent."""

    async def check() -> None:
        async with stage(database, live_coalesce_ms=300) as made:
            buyer = await made.buyer()
            async with viewer(made.client, made.event_id, buyer) as watching:
                await watching.next("resync")
                before = watching.last_id
                await made.reserve(0, buyer)
                await made.post(f"/api/events/{made.event_id}/status", {"status": "live"})
                assert (await watching.next("notice", "occupancy"))["id"] is None
                assert watching.last_id == before
            async with viewer(made.client, made.event_id, buyer, Last_Event_ID=before) as again:
                assert 0 in seen(await again.next("seats"))

    run(check())


def test_viewers_of_an_event_that_is_read_anew_are_told_to_load_it_again(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            async with viewer(made.client, made.event_id, buyer) as watching:
                await watching.next("resync")
                (event,) = made.app.hot.events()
                made.app.hot.drop((event.organization_id, event.event_id), "test")
                await watching.next("resync")
                await made.reserve(3, buyer)
                assert seen(await watching.next("seats")) == {3: (1, "CART")}

    run(check())


def test_what_cannot_be_resumed_is_resynced(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            for last_id in ("nonsense", "1.2", "1.2.3.4", "-1.2.3", "1.1.1", "99999999999999.9999999999.1", "é.1.1"):
                async with viewer(made.client, made.event_id, buyer, Last_Event_ID=last_id) as watching:
                    assert (await watching.next("seats", "resync"))["event"] == "resync", last_id

    run(check())


def test_places_and_what_happens_to_the_event_are_told_too(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            async with viewer(made.client, made.event_id, buyer) as watching:
                await watching.next("resync")
                await made.hold(buyer, ga=[{"zone_id": "pit", "quantity": 3}])
                message = await watching.next("seats")
                assert [(zone["capacity"], zone["held"], zone["sold"]) for zone in message["zones"]] == [(100, 3, 0)]
                counted = await watching.next("occupancy")
                assert counted["event"]["held"] == 3
                assert counted["event"]["total"] == len(made.seats) + 100
                await made.post(f"/api/events/{made.event_id}/status", {"status": "cancelled"})
                notice = await watching.next("notice")
                assert notice["status"] == "cancelled"

    run(check())


def test_viewers_learn_of_other_colours_and_any_of_them_may_ask_for_them(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            async with viewer(made.client, made.event_id, buyer) as watching:
                await watching.next("resync")
                types = {"COMP": {"displayName": "Guests", "displayColor": "#a0522d", "displayIcon": "gift"}}
                assert (await made.post("/api/organizations/config", {"holdTypes": types})).status_code == 200
                assert (await watching.next("notice"))["kind"] == "EventHoldTypesChanged"
                shown = await made.client.get(f"/api/events/{made.event_id}/hold-types", headers=buyer)
                assert [one["name"] for one in shown.json()["data"]] == ["CART", "COMP", "RESERVED"]
                assert shown.json()["data"][1] == {"name": "COMP", **types["COMP"]}

    run(check())


def test_a_change_made_by_another_process_is_seen(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as one, stage(database, organization=one.first) as two:
            buyer = await one.buyer()
            async with viewer(two.client, one.event_id, buyer) as watching:
                await watching.next("resync")
                began = asyncio.get_running_loop().time()
                assert (await one.reserve(9, buyer)).status_code == 201
                message = await watching.next("seats")
                assert seen(message) == {9: (1, "CART")}
                assert asyncio.get_running_loop().time() - began < SOON_S

    run(check())


async def told(socket: websockets.ClientConnection, kind: str) -> dict[str, Any]:
    while True:
        message: dict[str, Any] = msgspec.json.decode(await asyncio.wait_for(socket.recv(), SOON_S))
        if message["type"] == kind:
            return message


def test_the_same_messages_come_over_a_websocket(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            base = str(made.client.base_url).replace("http", "ws").rstrip("/")
            token = buyer["Authorization"].removeprefix("Bearer ")
            async with websockets.connect(f"{base}/api/events/{made.event_id}/ws?access_token={token}") as socket:
                first = await told(socket, "resync")
                await made.reserve(3, buyer)
                message = await told(socket, "seats")
                assert seen(message["data"]) == {3: (1, "CART")}
            resumed = f"{base}/api/events/{made.event_id}/ws?last_event_id={first['id']}"
            async with websockets.connect(resumed, additional_headers=buyer) as socket:
                message = await told(socket, "seats")
                assert seen(message["data"]) == {3: (1, "CART")}

    run(check())


def test_who_may_not_watch_is_told_why(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            other = await made.make_event()
            draft = await made.make_event(publish=False)
            member = await made.member()
            cases = [
                (made.event_id, {}, 401),
                (made.event_id, {"Authorization": "Bearer nonsense"}, 401),
                (other, buyer, 404),
                ("00000000-0000-0000-0000-000000000000", member, 404),
                ("seats", member, 400),
                (draft, member, 404),
                (draft, made.admin, 400),
            ]
            base = str(made.client.base_url).replace("http", "ws").rstrip("/")
            for event_id, headers, status in cases:
                async with viewer(made.client, event_id, headers, Connection="close") as refused:
                    assert refused.status == status
                    assert (await refused.body())["status"] == status
                answer = await made.client.get(f"/api/events/{event_id}/availability", headers=headers)
                assert answer.status_code == status
                async with websockets.connect(f"{base}/api/events/{event_id}/ws", additional_headers=headers) as socket:
                    assert msgspec.json.decode(await socket.recv())["status"] == status
                    await socket.wait_closed()
                    assert socket.close_code == 4000 + status
            query = f"?access_token={buyer['Authorization'].removeprefix('Bearer ')}"
            async with viewer(made.client, made.event_id, {}, query) as watching:
                assert watching.status == 200
            async with viewer(made.client, made.event_id, buyer, query, Connection="close") as refused:
                assert refused.status == 401

    run(check())


def test_more_viewers_than_there_is_room_for_are_refused(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database, live_clients=2) as made:
            buyer = await made.buyer()
            async with viewer(made.client, made.event_id, buyer) as one, viewer(made.client, made.event_id, buyer):
                assert one.status == 200
                async with viewer(made.client, made.event_id, buyer, Connection="close") as third:
                    assert third.status == 503
                    assert third.headers["retry-after"] == "5"
            await asyncio.sleep(0.1)
            async with viewer(made.client, made.event_id, buyer) as again:
                assert again.status == 200

    run(check())


def test_a_viewer_behind_another_server_gets_the_same_stream(database: TestDatabase) -> None:
    from tests.http.client import serving

    async def check() -> None:
        async with stage(database) as made, serving(made.app.asgi) as client:
            buyer = await made.buyer()
            async with client.stream("GET", f"/api/events/{made.event_id}/live", headers=buyer) as answer:
                lines = answer.aiter_lines()
                kinds: list[str] = []
                await made.reserve(3, buyer)
                async for line in lines:
                    kinds += [line.removeprefix("event: ")] if line.startswith("event: ") else []
                    if kinds and kinds[-1] == "seats":
                        break
                assert kinds[0] == "resync"

    run(check())


def test_compression_is_what_the_client_can_read(database: TestDatabase) -> None:
    async def check() -> None:
        async with stage(database) as made:
            buyer = await made.buyer()
            path = f"/api/events/{made.event_id}/availability"
            for accepted, packed in (("gzip", True), ("br", False), ("gzip;q=0", False), ("*", True), ("", False)):
                request = made.client.build_request("GET", path, headers={**buyer, "Accept-Encoding": accepted})
                answer = await made.client.send(request, stream=True)
                raw = b"".join([part async for part in answer.aiter_raw()])
                assert (answer.headers.get("content-encoding") == "gzip") is packed, accepted
                body = gzip.decompress(raw) if packed else raw
                assert len(msgspec.json.decode(body)["data"]["states"]) == len(made.seats)

    run(check())
