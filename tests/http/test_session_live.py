"""A signed-in browser and the rest of the product: holding seats, watching an event."""

import asyncio
import itertools
from typing import Any

import msgspec
import websockets

from tests.conftest import TestDatabase
from tests.http.browsers import browser, make_person
from tests.http.test_live import viewer
from tests.stage import stage

ANN = "ann@example.org"


def test_a_signed_in_organiser_holds_and_watches_from_our_own_pages_alone(database: TestDatabase) -> None:
    async def main() -> None:
        async with stage(database) as made:
            await make_person(made.client, made.admin, ANN)
            async with browser(made.client) as b:
                assert (await b.sign_in(ANN)).status_code == 201
                # The hottest route takes the ordinary way, and asks for the token as every other does.
                path = made.seat_path(0)
                bare = await made.client.post(path, headers=b.cookie_header)
                assert (bare.status_code, bare.json()["error"]) == (403, "csrf_failed")
                assert (await made.seat(0))["state"] == "available"
                held = await b.ask("POST", path)
                assert held.status_code == 201, held.text
                (row,) = await made.sql("SELECT user_id, actor FROM holds")
                assert (str(row["user_id"]), row["actor"]) == (b.session["user"]["id"], "ADMIN")

                url = made.client.base_url
                own, foreign = f"http://{url.host}:{url.port}", "https://evil.example"
                host = f"{url.host}:{url.port}"
                for more, status in (
                    ({}, 200),
                    ({"Sec-Fetch-Site": "same-origin"}, 200),
                    ({"Origin": own}, 200),
                    ({"Sec-Fetch-Site": "cross-site"}, 403),
                    ({"Sec-Fetch-Site": "same-site"}, 403),
                    ({"Origin": foreign}, 403),
                ):
                    headers = {**b.cookie_header, "Host": host, **more}
                    async with viewer(made.client, made.event_id, headers) as seen:
                        assert seen.status == status, more
                numbers = itertools.count(1)
                socket = f"ws://{host}/api/events/{made.event_id}/ws"

                async def first(**headers: Any) -> Any:
                    sent = {name.replace("_", "-"): value for name, value in headers.items()}
                    origin = sent.pop("Origin", None)
                    async with websockets.connect(
                        socket, additional_headers={**b.cookie_header, **sent}, origin=origin
                    ) as opened:
                        await b.ask("POST", made.seat_path(next(numbers)))
                        text = await asyncio.wait_for(opened.recv(), 5)
                        return msgspec.json.decode(text)

                for headers in ({}, {"Origin": foreign}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
                    assert (await first(**headers))["error"] == "csrf_failed", headers
                assert "error" not in await first(Origin=own)
                snapshot = await b.ask("GET", f"/api/events/{made.event_id}/availability")
                assert snapshot.status_code == 200
                assert "cookie" in snapshot.headers["vary"]
                # Signed out, the cookie opens nothing any more.
                await b.ask("DELETE", "/api/session")
                async with viewer(made.client, made.event_id, {**b.cookie_header, "Host": host}) as seen:
                    assert seen.status == 401
                assert (await b.ask("POST", made.seat_path(20))).status_code == 401
                # A token in the address counts for itself, whatever cookie the browser sends along.
                token = (await made.buyer())["Authorization"].removeprefix("Bearer ")
                headers = {**b.cookie_header, "Host": host}
                async with viewer(made.client, made.event_id, headers, f"?access_token={token}") as seen:
                    assert seen.status == 200

    asyncio.run(main())
