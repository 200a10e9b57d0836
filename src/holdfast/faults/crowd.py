"""The crowd: buyers with a cart, sessions of booking v2, and some who try another organization's door."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from holdfast.faults.client import Recorder, RecordingClient
from holdfast.faults.house import House
from holdfast.insight.history_facts import Act, Operation, Outcome

CONTESTED = 16
"""The first seats of a hall, which everybody wants."""
THINK_S = 0.05
KEEP_S = 0.8
AWAY_S = 0.1
"""Whoever lost the server waits this long before asking again."""

Turn = Callable[[], Awaitable[None]]


class Crowd:
    def __init__(self, houses: list[House], urls: list[str], recorder: Recorder, sessions: int) -> None:
        self._houses = houses
        self._urls = urls
        self._recorder = recorder
        self._sessions = sessions
        self._over = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def go_home(self) -> None:
        """From any thread."""
        if self._loop is None:
            self._over.set()
        else:
            self._loop.call_soon_threadsafe(self._over.set)

    async def shop(self) -> None:
        """Until it is over."""
        self._loop = asyncio.get_running_loop()
        turns: list[Awaitable[None]] = []
        for house in self._houses:
            for n, guest in enumerate(house.guests):
                buyer = _Buyer(self, house, guest.user_id, guest.token, random.Random(f"{house.name}{n}"))
                turns.append(buyer.shop())
            for n in range(self._sessions):
                turns.append(_Clerk(self, house, random.Random(f"{house.name}-{n}"), f"clerk{n}").sell())
        await asyncio.gather(*turns)

    def clients(self) -> list[RecordingClient]:
        return self._recorder.clients(self._urls)

    def other(self, house: House) -> House:
        return next(each for each in self._houses if each is not house)

    async def pause(self, seconds: float) -> None:
        """Cut short when the crowd is to go home."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()


def _pick(house: House, dice: random.Random) -> int:
    return dice.randrange(CONTESTED) if dice.random() < 0.5 else dice.randrange(len(house.seats))


class _Buyer:
    def __init__(self, crowd: Crowd, house: House, owner: str, token: str, dice: random.Random) -> None:
        self._crowd = crowd
        self._house = house
        self._owner = owner
        self._token = token
        self._dice = dice
        self._clients = crowd.clients()

    async def shop(self) -> None:
        turns: list[Turn] = [self._one, self._several, self._places, self._next_door]
        try:
            while not self._crowd.over:
                await self._crowd.pause(self._dice.expovariate(1 / THINK_S))
                await self._dice.choices(turns, (70, 12, 15, 3))[0]()
        finally:
            for client in self._clients:
                client.close()

    @property
    def _client(self) -> RecordingClient:
        return self._dice.choice(self._clients)

    async def _one(self) -> None:
        seat = _pick(self._house, self._dice)
        await self._keep(await self._client.reserve(self._house, self._owner, self._token, seat))

    async def _several(self) -> None:
        seats = sorted({_pick(self._house, self._dice) for _ in range(self._dice.randint(2, 4))})
        places = self._dice.choice((0, 0, 2))
        await self._keep(await self._client.reserve_several(self._house, self._owner, self._token, seats, places))

    async def _places(self) -> None:
        places = self._dice.randint(1, 8)
        await self._keep(await self._client.reserve_several(self._house, self._owner, self._token, [], places))

    async def _next_door(self) -> None:
        other = self._crowd.other(self._house)
        seat = _pick(other, self._dice)
        await self._client.reserve(self._house, self._owner, self._token, seat, event=other)

    async def _keep(self, held: Operation) -> None:
        """Then gives it back, keeps it longer, or walks away from it."""
        if held.outcome is Outcome.UNKNOWN:
            await self._crowd.pause(AWAY_S)
        if held.outcome is not Outcome.DONE:
            return
        choice = self._dice.random()
        if choice < 0.55:
            await self._crowd.pause(self._dice.uniform(0.0, KEEP_S))
        if choice < 0.15:
            await self._client.extend(self._house, self._token, held)
        elif choice < 0.55:
            await self._client.release(self._house, self._token, held)


class _Clerk:
    """Sells through booking v2, and takes most of it back later, so that there is something to sell."""

    def __init__(self, crowd: Crowd, house: House, dice: random.Random, name: str) -> None:
        self._crowd = crowd
        self._house = house
        self._dice = dice
        self._name = name
        self._clients = crowd.clients()

    async def sell(self) -> None:
        n = 0
        sold: list[Operation] = []
        try:
            while not self._crowd.over:
                await self._crowd.pause(self._dice.expovariate(1 / THINK_S))
                n += 1
                done = await self._one_session(f"{self._name}-{n}")
                sold += [done] if done is not None else []
                if len(sold) > 3:
                    await self._take_back(sold.pop(self._dice.randrange(len(sold))))
        finally:
            for client in self._clients:
                client.close()

    async def _one_session(self, session: str) -> Operation | None:
        seats = [_pick(self._house, self._dice)] if self._dice.random() < 0.8 else []
        places = 0 if seats else self._dice.randint(1, 3)
        locked = await self._book(Act.LOCK, "lock", session, seats, places)
        if locked.outcome is Outcome.UNKNOWN:
            await self._crowd.pause(AWAY_S)
        if locked.outcome is not Outcome.DONE:
            return None
        await self._crowd.pause(self._dice.uniform(0.0, KEEP_S))
        if self._dice.random() < 0.3:
            await self._book(Act.RELEASE, "unlock", session, seats, places)
            return None
        done = await self._book(Act.SELL, "sale", session, seats, places)
        return done if done.outcome is Outcome.DONE else None

    async def _take_back(self, sold: Operation) -> None:
        places = sum(each.quantity for each in sold.places)
        await self._book(Act.REVERT, "revertsale", sold.owner, list(sold.ordinals), places)

    async def _book(self, act: Act, verb: str, session: str, seats: list[int], places: int) -> Operation:
        return await self._dice.choice(self._clients).book(act, verb, self._house, session, seats, places)
