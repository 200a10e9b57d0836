"""After a migration everything above the database goes by the new layout: memory, Valkey, viewers, webhooks."""

import asyncio
from uuid import UUID

import msgspec

from holdfast.live.codec import decode_snapshot
from holdfast.live.viewing import EventStream
from holdfast.store.redis.warm import Warm
from holdfast.workers.fan_out_webhooks import FanOutWebhooks
from tests.conftest import TestDatabase
from tests.http.migration_ground import HALL, ON_SALE, add_version, apply, faults, inventory, plan, sell, without_rows
from tests.stage import Stage, stage


async def agree(made: Stage) -> None:
    """Until memory and Valkey say what the database says."""
    async with asyncio.timeout(8):
        while True:
            view = await made.app.catalogue.fresh_event(made.first.organization_id, UUID(made.event_id))
            assert view is not None
            status = await made.app.reconciler.status(view)
            if status.consistent and status.hot.loaded:
                return
            await asyncio.sleep(0.05)


def test_memory_and_valkey_follow_the_seats_to_their_new_numbers(database: TestDatabase, valkey: str) -> None:
    async def main() -> None:
        async with stage(database, HALL, event=ON_SALE, work=True, redis_url=valkey) as made:
            await sell(made, "party", 2, 3, 21)
            buyer = await made.buyer()
            moved, kept = (await made.reserve(5, buyer)).json()["data"], (await made.reserve(15, buyer)).json()["data"]
            available = f"/api/events/{made.event_id}/availability"
            binary = {**made.admin, "Accept": "application/octet-stream"}
            assert len(decode_snapshot((await made.client.get(available, headers=binary)).content).values) == 40
            await agree(made)
            planned = await plan(made, await add_version(made, without_rows(HALL, "A")))
            assert (await apply(made, planned["id"])).status_code == 200
            seats = await inventory(made)
            read = decode_snapshot((await made.client.get(available, headers=binary)).content)
            taken = {seat["ordinal"] for seat in seats.values() if seat["state"] != "available"}
            assert len(read.values) == 30
            assert {n for n, value in enumerate(read.values) if value & 0b11} == taken
            await agree(made)
            warm = made.app.warm
            assert isinstance(warm, Warm)
            bitmap: set[int] = set()
            async with asyncio.timeout(8):
                while bitmap != taken:
                    bits = await warm.get_bitmap(made.first.organization_id, UUID(made.event_id))
                    bitmap = {8 * n + b for n, byte in enumerate(bits or b"") for b in range(8) if byte & (128 >> b)}
                    await asyncio.sleep(0.05)
            listed = await warm.holds_of_event(made.first.organization_id, UUID(made.event_id))
            where = {move["hold_id"]: move["to_seat"]["id"] for move in planned["moves"]}
            expected = {moved["hold_id"]: where[moved["hold_id"]], kept["hold_id"]: kept["seat_id"]}
            assert {str(hold.hold_id): str(hold.seat_id) for hold in listed or []} == expected
            # A seat that took somebody else's number is free to whoever wants it, and the number's seat is refused.
            for name, seat in seats.items():
                other = await made.buyer()
                answer = await made.client.post(
                    f"/api/events/{made.event_id}/seats/{seat['id']}/reserve", headers=other
                )
                assert answer.status_code == (201 if seat["state"] == "available" else 409), (name, answer.text)
            assert await faults(made) == []

    asyncio.run(main())


def test_viewers_are_told_to_load_everything_again_and_webhooks_name_the_right_seats(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database, HALL, event=ON_SALE, webhook_private_targets=True) as made:
            answer = await made.post("/api/webhooks", {"url": "http://127.0.0.1:9999/told"})
            assert answer.status_code == 201, answer.text
            fan_out = FanOutWebhooks(made.app.database, made.app.catalogue)
            await sell(made, "party", 2)  # told only after the migration, in the old numbers
            stream = EventStream()
            heard: list[tuple[str, bytes]] = []
            watching = asyncio.Event()

            async def watch() -> None:
                live = f"/api/events/{made.event_id}/live"
                async with made.client.stream("GET", live, headers=made.admin) as response:
                    async for piece in response.aiter_bytes():
                        heard.extend((kind, data) for kind, _, data in stream.feed(piece))
                        watching.set()

            viewer = asyncio.create_task(watch())
            await watching.wait()
            heard.clear()
            planned = await plan(made, await add_version(made, without_rows(HALL, "A")))
            assert (await apply(made, planned["id"])).status_code == 200
            async with asyncio.timeout(8):
                while not {"resync", "notice"} <= {kind for kind, _ in heard}:
                    await asyncio.sleep(0.02)
            notice = next(msgspec.json.decode(data) for kind, data in heard if kind == "notice")
            assert (notice["kind"], notice["layout_version"], notice["moved"]) == ("EventMigrated", 2, 1)
            assert "party" not in repr(heard)
            seat = next(seat for seat in (await inventory(made)).values() if seat["state"] == "available")
            held = await made.client.post(f"/api/events/{made.event_id}/seats/{seat['id']}/reserve", headers=made.admin)
            assert held.status_code == 201
            async with asyncio.timeout(8):
                while not any(kind == "seats" and seat["ordinal"] in told(data) for kind, data in heard):
                    await asyncio.sleep(0.02)
            viewer.cancel()
            await asyncio.gather(viewer, return_exceptions=True)
            while await fan_out.once() == 0.0:
                pass
            rows = await made.sql(
                "SELECT kind, body FROM webhook_messages WHERE kind <> 'WebhookTest' ORDER BY outbox_id"
            )
            bodies = {(row["kind"], n): msgspec.json.decode(row["body"])["data"] for n, row in enumerate(rows)}
            named = [(kind, body["seats"][0]["seat_id"]) for (kind, _), body in bodies.items() if "seats" in body]
            assert named == [("SeatReserved", "A-3"), ("SeatSold", "A-3"), ("SeatReserved", seat["seat_id"])]
            (moved,) = [body for (kind, _), body in bodies.items() if kind == "HoldersMoved"]
            assert moved["holders"][0]["session_id"] == "party"
            assert moved["holders"][0]["from_seat"]["seat_id"] == "A-3"
            assert [kind for kind, _ in bodies if kind == "EventMigrated"] == ["EventMigrated"]

    def told(data: bytes) -> list[int]:
        found: list[int] = msgspec.json.decode(data).get("ordinals", [])
        return found

    asyncio.run(main())
