"""Refused reserves, remembered for the audit: sampled, bounded, and written off the path of the answer."""

import random
from collections import defaultdict, deque
from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call
from holdfast.kernel.counting import PlainCounter
from holdfast.kernel.errors import Refusal
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.holds import audit_refusals

REFUSALS = PlainCounter("holdfast_hold_refusals", "Requests for holds that were refused", ("reason",))
LIMIT = 5_000


class RefusalAudit:
    def __init__(self, database: Database, sample: float) -> None:
        self._database = database
        self._sample = sample
        self._pending: deque[tuple[Call, UUID | None, str, str]] = deque(maxlen=LIMIT)

    def note(self, call: Call, event_id: UUID | None, refusal: Refusal) -> None:
        REFUSALS.add(refusal.code)
        if not self.sampled():
            return
        self.keep(call, event_id, refusal)

    def sampled(self) -> bool:
        return self._sample >= 1.0 or random.random() < self._sample

    def keep(self, call: Call, event_id: UUID | None, refusal: Refusal) -> None:
        """One that was counted and chosen already."""
        facts = msgspec.json.encode(refusal.facts, enc_hook=str).decode()
        self._pending.append((call, event_id, refusal.code, facts))

    async def write(self) -> int:
        """Writes what has gathered, one transaction an organization."""
        by_organization: dict[UUID, list[tuple[Call, UUID | None, str, str]]] = defaultdict(list)
        while self._pending:
            entry = self._pending.popleft()
            by_organization[entry[0].organization_id].append(entry)
        written = 0
        for organization_id, entries in by_organization.items():
            columns: list[list[Any]] = [
                [event_id for _, event_id, _, _ in entries],
                [call.principal.actor.value for call, _, _, _ in entries],
                [call.principal.user_id for call, _, _, _ in entries],
                [call.ip for call, _, _, _ in entries],
                [call.user_agent for call, _, _, _ in entries],
                [call.request_id for call, _, _, _ in entries],
                [code for _, _, code, _ in entries],
                [facts for _, _, _, facts in entries],
            ]
            async with self._database.transaction(organization_id) as tx:
                await audit_refusals(tx, organization_id, columns)
            written += len(entries)
        return written
