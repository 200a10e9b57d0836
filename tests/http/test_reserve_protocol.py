"""The short way of the reserve route, byte by byte: what a client sees must not depend on which way a request took."""

import asyncio
import json
from typing import Any
from uuid import UUID

import uvicorn

from tests.conftest import TestDatabase
from tests.stage import Stage, stage


async def exchange(made: Stage, raw: bytes, answers: int, *, chunks: int = 1) -> list[tuple[int, dict[str, str], Any]]:
    """Sends raw bytes, in so many pieces, and reads so many answers."""
    port = made.client.base_url.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    size = max(1, len(raw) // chunks)
    for at in range(0, len(raw), size):
        writer.write(raw[at : at + size])
        await writer.drain()
        if chunks > 1:
            await asyncio.sleep(0.002)
    found = [await asyncio.wait_for(read_answer(reader), 10) for _ in range(answers)]
    writer.close()
    return found


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], Any]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers["content-length"]))
    return int(head[0].split(" ")[1]), headers, json.loads(body)


def request(made: Stage, n: int, who: dict[str, str], body: bytes = b"{}", **more: str) -> bytes:
    lines = {
        "Host": "localhost",
        **who,
        "Content-Length": str(len(body)),
        **{k.replace("_", "-"): v for k, v in more.items()},
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {made.seat_path(n)} HTTP/1.1\r\n{head}\r\n".encode() + body


def test_pipelined_requests_are_answered_in_order(database: TestDatabase) -> None:
    async def scenario() -> None:
        async with stage(database) as made:
            who = await made.buyer()
            await made.reserve(0, who)  # from here on the credential is remembered
            raw = b"".join(request(made, n, who) for n in (1, 2, 3))
            answers = await exchange(made, raw, 3)
            assert [status for status, _, _ in answers] == [201, 201, 201]
            assert [a["data"]["seat_id"] for _, _, a in answers] == [made.seats[n]["id"] for n in (1, 2, 3)]

    asyncio.run(scenario())


def test_a_request_in_many_small_pieces_is_understood(database: TestDatabase) -> None:
    async def scenario() -> None:
        async with stage(database) as made:
            who = await made.buyer()
            await made.reserve(0, who)
            [(status, headers, _)] = await exchange(
                made, request(made, 1, who, b'{"source":"scanner"}', X_Request_Id="my-own-id-1"), 1, chunks=30
            )
            assert status == 201
            assert headers["x-request-id"] == "my-own-id-1"

    asyncio.run(scenario())


def test_both_ways_give_the_same_headers_and_the_same_refusals(database: TestDatabase) -> None:
    async def scenario() -> None:
        async with stage(database) as made:
            who, other = await made.buyer(), await made.buyer()
            slow = await made.reserve(0, who)  # the first of a credential goes the ordinary way
            fast = await made.reserve(0, who)
            same = {
                "x-content-type-options",
                "referrer-policy",
                "content-security-policy",
                "cache-control",
                "content-type",
            }
            assert {k: slow.headers[k] for k in same} == {k: fast.headers[k] for k in same}
            assert slow.status_code == 201
            assert fast.status_code == 200
            first, second = await made.reserve(0, other), await made.reserve(0, other)
            first_problem, second_problem = first.json(), second.json()
            for problem in (first_problem, second_problem):
                problem.pop("expires_in")
                problem.pop("detail")
            assert first_problem == second_problem
            for bad in (b"{", b'{"source":"x"}', b"[" * 3000, b'{"colour":"red"}', b'{"holdType":7}'):
                short = await made.client.post(made.seat_path(1), headers=who, content=bad)
                long = await made.client.post(made.seat_path(1), headers={**who, "Idempotency-Key": "k"}, content=bad)
                assert short.status_code == long.status_code == 400
                assert short.content == long.content

    asyncio.run(scenario())


def test_a_guest_of_one_event_finds_no_other_on_either_way(database: TestDatabase) -> None:
    async def scenario() -> None:
        async with stage(database) as made:
            who = await made.buyer()
            other = await made.make_event()
            seats = (await made.client.get(f"/api/events/{other}/seats", headers=made.admin)).json()["data"]
            path = f"/api/events/{other}/seats/{seats[0]['id']}/reserve"
            slow = await made.client.post(path, headers=who)
            assert (await made.reserve(0, who)).status_code == 201
            await made.client.get(f"/api/events/{other}", headers=made.admin)  # in memory: nothing stops the short way
            fast = await made.client.post(path, headers=who)
            assert (slow.status_code, slow.json()["error"]) == (404, "event_not_found")
            assert fast.content == slow.content
            assert await made.sql("SELECT FROM holds WHERE event_id = $1", UUID(other)) == []

    asyncio.run(scenario())


def test_a_body_without_end_neither_stalls_nor_fills_the_server(database: TestDatabase) -> None:
    async def scenario() -> None:
        async with stage(database) as made:
            who = await made.buyer()
            await made.reserve(0, who)
            answer = await made.client.post(made.seat_path(1), headers=who, content=b" " * 200_000)
            assert answer.status_code == 413
            assert answer.json()["error"] == "body_too_large"
            assert (await made.reserve(1, who)).status_code == 201

    asyncio.run(scenario())


def test_connection_close_is_honoured(database: TestDatabase) -> None:
    async def scenario() -> None:
        async with stage(database) as made:
            who = await made.buyer()
            await made.reserve(0, who)
            [(status, headers, _)] = await exchange(made, request(made, 1, who, Connection="close"), 1)
            assert status == 201
            assert headers["connection"] == "close"

    asyncio.run(scenario())


def test_a_buyer_who_hangs_up_keeps_the_hold_that_was_made(database: TestDatabase) -> None:
    async def scenario() -> None:
        async with stage(database) as made:
            who = await made.buyer()
            await made.reserve(0, who)
            _, writer = await asyncio.open_connection("127.0.0.1", made.client.base_url.port)
            writer.write(request(made, 1, who))
            await writer.drain()
            writer.close()
            for _ in range(100):
                if (await made.seat(1))["state"] == "held":
                    break
                await asyncio.sleep(0.02)
            assert (await made.reserve(1, who)).status_code == 200

    asyncio.run(scenario())


def test_an_idle_connection_is_closed_and_a_busy_one_is_not(database: TestDatabase) -> None:
    async def scenario() -> None:
        async with stage(database) as made:
            who = await made.buyer()
            await made.reserve(0, who)
            config = uvicorn.Config(
                made.app.asgi,
                host="127.0.0.1",
                port=0,
                log_level="warning",
                http=made.app.protocol,
                timeout_keep_alive=1,
            )
            server = uvicorn.Server(config)
            task = asyncio.create_task(server.serve())
            while not server.started:
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for n in range(4):  # longer than the limit in all, never so long at once
                writer.write(request(made, n, who))
                assert (await asyncio.wait_for(read_answer(reader), 5))[0] in (200, 201)
                await asyncio.sleep(0.5)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            server.should_exit = True
            await task

    asyncio.run(scenario())
