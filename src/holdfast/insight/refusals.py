"""Refused reserves, remembered for the audit and written off the path of the answer.

They are sampled and bounded: a stampede refuses thousands a second. But who was kept out of a zone is never sampled away:
such a refusal is kept until it is written. (There are not so many: each of them took a look into the database.)
"""

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call
from holdfast.kernel.counting import PlainCounter
from holdfast.kernel.errors import Refusal, ZoneAccessDenied
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.holds import audit_refusals

REFUSALS = PlainCounter("holdfast_hold_refusals", "Requests for holds that were refused", ("reason",))
LIMIT = 5_000


class _Noted(msgspec.Struct, frozen=True):
    call: Call
    event_id: UUID | None
    action: str
    entity_type: str
    reason: str
    facts: str


class RefusalAudit:
    def __init__(self, database: Database, sample: float) -> None:
        self._database = database
        self._sample = sample
        self._pending: deque[_Noted] = deque(maxlen=LIMIT)
        self._denied: deque[_Noted] = deque()

    def note(self, call: Call, event_id: UUID | None, refusal: Refusal) -> None:
        REFUSALS.add(refusal.code)
        if isinstance(refusal, ZoneAccessDenied):
            self._denied.append(_noted(call, event_id, refusal))
        elif self.sampled():
            self.keep(call, event_id, refusal)

    def sampled(self) -> bool:
        return self._sample >= 1.0 or random.random() < self._sample

    def keep(self, call: Call, event_id: UUID | None, refusal: Refusal) -> None:
        """One that was counted and chosen already."""
        self._pending.append(_noted(call, event_id, refusal))

    async def write(self) -> int:
        """Writes what has gathered, one transaction an organization."""
        denied = await self._write(_drained(self._denied), self._denied.extend)
        return denied + await self._write(_drained(self._pending), lambda unwritten: None)

    async def _write(self, noted: Sequence[_Noted], give_back: Callable[[list[_Noted]], None]) -> int:
        by_organization: dict[UUID, list[_Noted]] = defaultdict(list)
        for entry in noted:
            by_organization[entry.call.organization_id].append(entry)
        written = 0
        while by_organization:
            organization_id, entries = by_organization.popitem()
            try:
                async with self._database.transaction(organization_id) as tx:
                    await audit_refusals(tx, organization_id, _columns(entries))
            except BaseException:
                give_back([*entries, *(entry for others in by_organization.values() for entry in others)])
                raise
            written += len(entries)
        return written


def _noted(call: Call, event_id: UUID | None, refusal: Refusal) -> _Noted:
    facts = msgspec.json.encode(refusal.facts, enc_hook=str).decode()
    if isinstance(refusal, ZoneAccessDenied):
        return _Noted(call, event_id, "zone_access_denied", "Zone", refusal.detail, facts)
    return _Noted(call, event_id, "seat_reserve_failed", "Seat", refusal.code, facts)


def _drained(pending: deque[_Noted]) -> list[_Noted]:
    drained = list(pending)
    pending.clear()
    return drained


def _columns(entries: Iterable[_Noted]) -> list[list[Any]]:
    rows = [
        (
            entry.action,
            entry.entity_type,
            entry.event_id,
            entry.call.principal.actor.value,
            entry.call.principal.user_id,
            entry.call.ip,
            entry.call.user_agent,
            entry.call.request_id,
            entry.reason,
            entry.facts,
        )
        for entry in entries
    ]
    return [list(column) for column in zip(*rows, strict=True)]
