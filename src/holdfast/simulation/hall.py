"""The seats and zones of an event as buyers see them, learnt through the API."""

import random
from typing import Any

import msgspec

from holdfast.simulation.client import Client

PAGE = 500


class Seat(msgspec.Struct, frozen=True):
    id: str
    booking_id: int
    zone: str
    row: str
    number: int
    category: str


class Place(msgspec.Struct, frozen=True):
    """A general-admission zone."""

    zone_id: str
    booking_id: int


class HallUnreadable(Exception):
    pass


class Hall:
    def __init__(self, seats: list[Seat], places: list[Place], restricted: frozenset[str]) -> None:
        self.places = places
        self.open = _rows([seat for seat in seats if seat.zone not in restricted])
        self.restricted = _rows([seat for seat in seats if seat.zone in restricted])

    @classmethod
    async def learn(cls, client: Client, event_id: str) -> "Hall":
        token = await guest_token(client, event_id)
        event = (await _read(client, f"/api/events/{event_id}", token))["data"]
        zones = (await _read(client, f"/api/events/{event_id}/zones", token))["data"]
        restricted = frozenset(zone["zone_id"] for zone in event["zones"] if zone["access_mode"] != "public")
        places = [Place(z["zone_id"], z["booking_id"]) for z in zones if z["zone_id"] not in restricted]
        seats: list[Seat] = []
        cursor: str | None = ""
        while cursor is not None:
            after = f"&cursor={cursor}" if cursor else ""
            page = await _read(client, f"/api/events/{event_id}/seats?limit={PAGE}{after}", token)
            seats += msgspec.convert(page["data"], list[Seat])
            cursor = page["next_cursor"]
        return cls(seats, places, restricted)

    def choose(self, chance: random.Random, count: int, *, restricted: bool = False) -> list[Seat]:
        """Neighbours in a row. Like people, most want the front and the middle: there they meet."""
        rows = self.restricted if restricted else self.open
        if not rows:
            return []
        row = rows[min(len(rows) - 1, int(len(rows) * chance.betavariate(1.1, 1.6)))]
        count = min(count, len(row))
        start = round((len(row) - count) * chance.betavariate(2, 2))
        return row[start : start + count]


def _rows(seats: list[Seat]) -> list[list[Seat]]:
    rows: dict[tuple[str, str], list[Seat]] = {}
    for seat in seats:
        rows.setdefault((seat.zone, seat.row), []).append(seat)
    return list(rows.values())


async def guest_token(client: Client, event_id: str) -> str:
    answer = await client.send("POST", "/api/guest-tokens", {"event_id": event_id})
    if not answer.ok:
        raise HallUnreadable(f"the server gives no guest token for the event: {answer.reason}")
    return str(answer.data["token"])


async def _read(client: Client, path: str, token: str) -> Any:
    answer = await client.send("GET", path, token=token)
    if not answer.ok:
        raise HallUnreadable(f"the server does not show the event: {answer.reason}")
    return answer.body
