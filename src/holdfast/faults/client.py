"""A client that writes down what it asked, when, and what it was told."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from holdfast.faults.house import House
from holdfast.insight.history_facts import Act, Operation, Outcome, Places
from holdfast.simulation.client import Answer, Client, ServerAway

BOOKING = "/api/private/v2.0/booking"


def unix(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text).timestamp()


class Recorder:
    """Everything the clients of a run have asked for."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []

    def clients(self, urls: list[str]) -> "list[RecordingClient]":
        return [RecordingClient(self, url, f"process {n + 1}") for n, url in enumerate(urls)]


class RecordingClient:
    def __init__(self, recorder: Recorder, url: str, process: str) -> None:
        self._recorder = recorder
        self._client = Client(url)
        self.process = process

    def close(self) -> None:
        self._client.close()

    # What buyers ask for -----------------------------------------------------------------------------------------
    async def reserve(
        self, house: House, owner: str, token: str, ordinal: int, event: House | None = None
    ) -> Operation:
        """`event`: another house's, of which this buyer may know nothing."""
        asked = event or house
        path = f"/api/events/{asked.event_id}/seats/{asked.seats[ordinal]}/reserve"
        facts = {"event_id": asked.event_id, "ordinals": (ordinal,)}
        return await self._ask(Act.RESERVE, house, owner, "POST", path, {}, {"token": token}, facts)

    async def reserve_several(
        self, house: House, owner: str, token: str, ordinals: list[int], places: int
    ) -> Operation:
        body = {
            "seats": [str(house.seats[ordinal]) for ordinal in ordinals],
            "ga": [{"zone_id": "pit", "quantity": places}] if places else [],
        }
        facts = {
            "ordinals": tuple(ordinals),
            "places": (Places(house.pit_no, places),) if places else (),
        }
        path = f"/api/events/{house.event_id}/holds"
        return await self._ask(Act.RESERVE, house, owner, "POST", path, body, {"token": token}, facts)

    async def release(self, house: House, token: str, held: Operation) -> None:
        """Everything the operation gave, one after another."""
        for hold_id, facts in _parts(held):
            path = f"/api/holds/{hold_id}"
            await self._ask(Act.RELEASE, house, held.owner, "DELETE", path, None, {"token": token}, facts)

    async def extend(self, house: House, token: str, held: Operation) -> None:
        for hold_id, facts in _parts(held):
            path = f"/api/holds/{hold_id}/extend"
            await self._ask(Act.EXTEND, house, held.owner, "POST", path, None, {"token": token}, facts)

    async def book(
        self, act: Act, verb: str, house: House, session: str, ordinals: list[int], places: int
    ) -> Operation:
        """Booking v2: lock, sale, unlock, revertsale."""
        body = {
            "sessionId": session,
            "seats": [{"id": house.booking_ids[ordinal]} for ordinal in ordinals],
            "groupOfSeats": [{"id": house.pit_booking_id, "capacity": places}] if places else [],
        }
        facts = {
            "ordinals": tuple(ordinals),
            "places": (Places(house.pit_no, places),) if places else (),
        }
        path = f"{BOOKING}/{verb}?eventId={house.event_id}"
        return await self._ask(act, house, session, "POST", path, body, {"api_key": house.api_key}, facts)

    # Asking and writing down -------------------------------------------------------------------------------------
    async def get(self, path: str, token: str) -> Answer | None:
        """None: no answer came, or none that means anything."""
        try:
            answer = await self._client.send("GET", path, token=token)
        except ServerAway:
            return None
        return None if answer.status >= 500 else answer

    async def _ask(
        self,
        act: Act,
        house: House,
        owner: str,
        method: str,
        path: str,
        body: Any,
        credential: Mapping[str, str],
        facts: dict[str, Any],
    ) -> Operation:
        began, began_s = time.time(), time.monotonic()
        try:
            answer = await self._client.send(method, path, body, **credential)
        except ServerAway:
            told: dict[str, Any] = {"outcome": Outcome.UNKNOWN}
        else:
            told = _told(house, answer, facts)
        operation = Operation(
            act=act,
            organization_id=house.organization_id,
            owner=owner,
            began=began,
            ended=time.time(),
            began_s=began_s,
            ended_s=time.monotonic(),
            process=self.process,
            **{"event_id": house.event_id, **facts, **told},
        )
        self._recorder.operations.append(operation)
        return operation


def _parts(held: Operation) -> list[tuple[UUID, dict[str, Any]]]:
    """Each hold of an operation, with what it holds."""
    targets: list[dict[str, Any]] = [{"ordinals": (ordinal,)} for ordinal in held.ordinals]
    targets += [{"places": (places,)} for places in held.places]
    return [
        (hold_id, {**target, "hold_ids": (hold_id,)}) for hold_id, target in zip(held.hold_ids, targets, strict=True)
    ]


def _told(house: House, answer: Answer, facts: dict[str, Any]) -> dict[str, Any]:
    if answer.status >= 500 or answer.body is None:
        return {"outcome": Outcome.UNKNOWN, "code": f"http_{answer.status}"}
    if answer.body is False:
        return {"outcome": Outcome.REFUSED, "code": "false"}
    if not answer.ok:
        seat = answer.body.get("seat_id") if isinstance(answer.body, dict) else None
        refused = None if seat is None else house.ordinals.get(str(seat))
        return {"outcome": Outcome.REFUSED, "code": answer.reason, "refused_ordinal": refused}
    if answer.body is True:
        return {"outcome": Outcome.DONE}
    holds = answer.data.get("holds", [answer.data])
    by_seat = {str(hold["seat_id"]): hold for hold in holds if hold.get("seat_id") is not None}
    by_zone = {hold["zone_id"]: hold for hold in holds if hold.get("seat_id") is None}
    zone_ids = {zone_no: zone_id for zone_id, zone_no in house.zone_nos.items()}
    ordered = [by_seat[str(house.seats[ordinal])] for ordinal in facts.get("ordinals", ())]
    ordered += [by_zone[zone_ids[places.zone_no]] for places in facts.get("places", ())]
    ends = [unix(hold["held_until"]) for hold in ordered]
    return {
        "outcome": Outcome.DONE,
        "hold_ids": tuple(UUID(hold["hold_id"]) for hold in ordered),
        "until": min((end for end in ends if end is not None), default=None),
    }
