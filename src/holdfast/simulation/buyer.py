"""One simulated buyer: comes, chooses, holds, and then buys, lets go, hesitates or forgets."""

import asyncio
import random
import time
from typing import Any
from uuid import UUID, uuid4

import msgspec

from holdfast.simulation.client import Answer, Client, ServerAway
from holdfast.simulation.hall import Hall, HallUnreadable, Seat, guest_token
from holdfast.simulation.tally import Tally

BOOKING = "/api/private/v2.0/booking"
AWAY_PAUSE_S = 0.5


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How buyers behave; the shares are of visits and add up to at most 1, the rest forget their holds."""

    think_s: tuple[float, float]
    release: float
    extend: float
    sell: float = 0.0
    """Buy at the box office."""
    check_out: float = 0.0
    """Of those who hold something: go to checkout; one in ten of them never pays."""
    arrive: float = 0.0
    """Of those who bought: come to the gate at once."""
    several: float = 0.35
    places: float = 0.12
    best: float = 0.15
    """Of those who want several seats: how many let the box office choose."""
    return_when_sold: int | None = None
    """Above so many seats sold by this crowd, buyers bring some back: a show that never ends."""


LEISURELY = Manner(
    think_s=(0.4, 2.4), release=0.14, extend=0.08, sell=0.12, check_out=0.45, arrive=0.3, return_when_sold=900
)
RUSH = Manner(think_s=(0.0, 0.02), release=0.30, extend=0.05, sell=0.20, several=0.25)


class Crowd(msgspec.Struct, kw_only=True):
    """What the buyers of one process have in common."""

    url: str
    event_id: str
    hall: Hall
    manner: Manner
    tally: Tally
    api_key: str | None = None
    """Sales go through booking v2, which takes an API key; without one nobody buys."""
    member_tokens: list[str] = []
    """Of members who may enter the restricted zones."""
    acknowledged: set[UUID] = msgspec.field(default_factory=set)
    provider: str | None = None
    """Of the test kind: without one nobody pays at a checkout."""
    sold: list[list[Seat]] = msgspec.field(default_factory=list)
    tickets: list[list[str]] = msgspec.field(default_factory=list)
    sold_seats: int = 0


class Buyer:
    def __init__(self, crowd: Crowd, number: int, seed: int | None = None) -> None:
        self._crowd = crowd
        self._chance = random.Random(None if seed is None else seed + number)
        self._client = Client(crowd.url)
        tokens = crowd.member_tokens
        self._member = tokens[number] if number < len(tokens) else None

    async def shop(self) -> None:
        """Visit after visit, until cancelled."""
        try:
            while True:
                try:
                    await self._visit()
                except (ServerAway, HallUnreadable) as error:
                    self._crowd.tally.fault(str(error))
                    await asyncio.sleep(AWAY_PAUSE_S)
                await self._think()
        finally:
            self._client.close()

    async def _visit(self) -> None:
        crowd, chance = self._crowd, self._chance
        token = self._member or await guest_token(self._client, crowd.event_id)
        what = chance.random()
        if crowd.api_key is not None and what < crowd.manner.sell:
            await self._buy(crowd.api_key)
            return
        holds = await self._hold(token)
        if not holds:
            return
        await self._think()
        then = chance.random()
        if then < crowd.manner.release:
            for hold in holds:
                await self._ask("release", "DELETE", f"/api/holds/{hold}", token=token)
        elif then < crowd.manner.release + crowd.manner.extend:
            await self._ask("extend", "POST", f"/api/holds/{holds[0]}/extend", token=token)
        elif then < crowd.manner.release + crowd.manner.extend + crowd.manner.check_out and crowd.provider is not None:
            await self._check_out(crowd.provider, token)
        # All others forget about it: the hold runs out.

    async def _hold(self, token: str) -> list[str]:
        crowd, chance = self._crowd, self._chance
        base = f"/api/events/{crowd.event_id}"
        what = chance.random()
        if crowd.hall.places and (what < crowd.manner.places or not crowd.hall.open):
            wanted = [{"zone_id": chance.choice(crowd.hall.places).zone_id, "quantity": chance.randint(1, 4)}]
            return self._held(await self._ask("hold_ga", "POST", f"{base}/holds", {"ga": wanted}, token=token))
        restricted = self._member is not None and chance.random() < 0.5
        if what > 1 - crowd.manner.several:
            if chance.random() < crowd.manner.best and not restricted:
                wish = {"quantity": chance.randint(2, 4)}
                return self._held(await self._ask("best", "POST", f"{base}/best-available", wish, token=token))
            seats = crowd.hall.choose(chance, chance.randint(2, 4), restricted=restricted)
            return await self._pick([seat.id for seat in seats], token) if seats else []
        seats = crowd.hall.choose(chance, 1, restricted=restricted)
        if not seats:
            return []
        return await self._pick([seats[0].id], token)

    async def _pick(self, seats: list[str], token: str) -> list[str]:
        """These; or, where they would leave somebody's seat alone, what the answer offers instead."""
        answer = await self._send("hold", "POST", *self._request(seats), token=token)
        if answer.reason == "orphan_seat" and answer.body["alternatives"]:
            instead = [seat["id"] for seat in answer.body["alternatives"][0]["seats"]]
            answer = await self._send("hold", "POST", *self._request(instead), token=token)
        return self._held(answer if answer.ok else None)

    def _request(self, seats: list[str]) -> tuple[str, Any]:
        base = f"/api/events/{self._crowd.event_id}"
        return (f"{base}/seats/{seats[0]}/reserve", {}) if len(seats) == 1 else (f"{base}/holds", {"seats": seats})

    def _held(self, answer: Answer | None) -> list[str]:
        if answer is None:
            return []
        found = [hold["hold_id"] for hold in answer.data.get("holds", [answer.data])]
        self._crowd.acknowledged.update(map(UUID, found))
        return found

    async def _check_out(self, provider: str, token: str) -> None:
        """All that is held, paid for, to tickets; some of the buyers come to the gate at once."""
        crowd, chance = self._crowd, self._chance
        opened = await self._ask("check_out", "POST", f"/api/events/{crowd.event_id}/checkouts", token=token)
        if opened is None:
            return
        await self._think()
        path = f"/api/checkouts/{opened.data['id']}"
        if chance.random() < 0.1:
            return
        begun = await self._ask("pay", "POST", f"{path}/pay", {"provider": provider}, token=token)
        if begun is None:
            return
        await self._think()
        await self._ask("money", "POST", f"/api/payments/{begun.data['payment']['id']}/simulate", token=token)
        done = await self._ask("buy", "POST", f"{path}/complete", token=token)
        if done is None:
            return
        tickets: list[str] = done.data["tickets"]
        crowd.sold_seats += len(tickets)
        if crowd.api_key is None or chance.random() >= crowd.manner.arrive:
            crowd.tickets.append(tickets)  # and perhaps brought back
            return
        for ticket in tickets:
            where = f"/api/events/{crowd.event_id}/admissions"
            await self._ask("arrive", "POST", where, {"ticket_id": ticket, "gate": "Main"}, api_key=crowd.api_key)

    async def _buy(self, api_key: str) -> None:
        """At the box office: locked, paid, sold. Or somebody brings tickets back."""
        crowd, chance = self._crowd, self._chance
        limit = crowd.manner.return_when_sold
        if limit is not None and crowd.sold_seats > limit and await self._bring_back(api_key):
            return
        seats = crowd.hall.choose(chance, chance.randint(1, 4))
        session = str(uuid4())
        if not seats or not await self._book("lock", "lock", seats, api_key, session):
            return
        await self._think()
        if await self._book("sell", "sale", seats, api_key, session):
            crowd.sold.append(seats)
            crowd.sold_seats += len(seats)

    async def _bring_back(self, api_key: str) -> bool:
        """False: nobody here has anything to bring back."""
        crowd, chance = self._crowd, self._chance
        if crowd.tickets and (not crowd.sold or chance.random() < 0.5):
            tickets = crowd.tickets.pop(chance.randrange(len(crowd.tickets)))
            body = {"ticket_ids": tickets, "reason": "brought back"}
            where = f"/api/events/{crowd.event_id}/tickets/revert"
            if await self._ask("return", "POST", where, body, api_key=api_key) is not None:
                crowd.sold_seats -= len(tickets)
            return True
        if not crowd.sold:
            return False
        seats = crowd.sold.pop(chance.randrange(len(crowd.sold)))
        if await self._book("return", "revertsale", seats, api_key, str(uuid4())):
            crowd.sold_seats -= len(seats)
        return True

    async def _book(self, verb: str, path: str, seats: list[Seat], api_key: str, session: str) -> bool:
        body = {"sessionId": session, "seats": [{"id": seat.booking_id} for seat in seats]}
        where = f"{BOOKING}/{path}?eventId={self._crowd.event_id}"
        answer = await self._ask(verb, "POST", where, body, api_key=api_key)
        if answer is not None and answer.body is not True:
            self._crowd.tally.done[verb] -= 1
            self._crowd.tally.refused["booking_false"] += 1
        return answer is not None and answer.body is True

    async def _ask(self, verb: str, method: str, path: str, body: Any = None, **credential: str) -> Answer | None:
        """The answer, where it was a success; whatever came is counted."""
        answer = await self._send(verb, method, path, body, **credential)
        return answer if answer.ok else None

    async def _send(self, verb: str, method: str, path: str, body: Any = None, **credential: str) -> Answer:
        tally = self._crowd.tally
        begun = time.perf_counter()
        answer = await self._client.send(method, path, body, **credential)
        tally.took(time.perf_counter() - begun)
        if answer.ok:
            tally.done[verb] += 1
            return answer
        if answer.status >= 500 and answer.status != 503:
            tally.fault(f"{method} {path.partition('?')[0]}: {answer.status} {answer.reason}")
        tally.refused[answer.reason] += 1
        return answer

    async def _think(self) -> None:
        await asyncio.sleep(self._chance.uniform(*self._crowd.manner.think_s))


async def run_crowd(crowd: Crowd, buyers: int, seconds: float | None) -> None:
    """All buyers at once, for so many seconds; without end where none are given."""
    tasks = [asyncio.create_task(Buyer(crowd, number).shop()) for number in range(buyers)]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
