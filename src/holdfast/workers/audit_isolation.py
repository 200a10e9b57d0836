"""Every hour: whether anything crosses from one organization to another. The answer has always been no.

Rows and references are looked at from within each organization (`store/postgres/isolation.py`), the walls in the
database's catalogue, and of the warm tier's keys a sample: a key names its organization, and what it is about must be the
organization's own.
"""

import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import structlog
from prometheus_client import Gauge

from holdfast.kernel.ids import parse_id
from holdfast.store.postgres.database import Database
from holdfast.store.postgres.isolation import (
    Finding,
    events_on_sale_of,
    hold_faults,
    organizations,
    reference_faults,
    unknown_of,
    wall_faults,
)
from holdfast.store.redis.connection import Client
from holdfast.store.redis.warm import Warm

log = structlog.get_logger(__name__)

FAULTS = Gauge("holdfast_isolation_faults", "What crossed between organizations when last looked at: always 0")
AUDITED = Gauge("holdfast_isolation_audited_timestamp_seconds", "When that was looked at last; 0: not yet")

PAUSE_S = 3600.0
FIRST_PAUSE_S = 60.0
"""A process that has just begun has other things to do."""
EVENTS_MAX = 100
"""Events on sale of an organization whose seats are looked at one by one, the newest."""
KEYS_MAX = 20_000
METAS_MAX = 2_000
PAGE = 500

_Named = dict[UUID, dict[str, set[UUID]]]
"""Ids that keys name: by organization, and by what they are ids of."""


class AuditIsolation:
    name = "audit_isolation"

    def __init__(self, database: Database, warm: Warm | None) -> None:
        self._database = database
        self._warm = warm
        self._begun = False

    async def once(self) -> float:
        if not self._begun:
            self._begun = True
            return FIRST_PAUSE_S
        found = await self.audit()
        for finding in found:
            log.error(
                "isolation_fault",
                organization_id=None if finding.organization_id is None else str(finding.organization_id),
                where=finding.where,
                said=finding.said,
                reference=finding.reference,
            )
        FAULTS.set(len(found))
        AUDITED.set(time.time())
        return PAUSE_S

    async def audit(self) -> list[Finding]:
        async with self._database.transaction(engine=True) as tx:
            every = await organizations(tx)
        async with self._database.transaction() as tx:
            found = await wall_faults(tx)
        for organization_id in every:
            found += await self._of_organization(organization_id)
        if self._warm is not None:
            found += await self._of_keys(self._warm)
        return found

    async def _of_organization(self, organization_id: UUID) -> list[Finding]:
        """In short transactions: none of this need be of one instant, as each search is."""
        async with self._database.transaction(organization_id) as tx:
            found = await reference_faults(tx, organization_id)
            on_sale = await events_on_sale_of(tx, organization_id, EVENTS_MAX)
        for event_id in on_sale:
            async with self._database.transaction(organization_id) as tx:
                found += await hold_faults(tx, organization_id, event_id)
        return found

    # The warm tier -----------------------------------------------------------------------------------------------
    async def _of_keys(self, warm: Warm) -> list[Finding]:
        named: _Named = {}
        metas = 0
        async for key in self._sample(warm):
            owner, what, name = key_parts(warm.keys.namespace, key)
            if owner is None:
                continue
            if what == "hold" and metas < METAS_MAX:
                metas += 1
                what, name = "event", await self._event_of(warm, key)
            if what in ("event", "layout") and name is not None:
                named.setdefault(owner, {}).setdefault(f"{what}s", set()).add(name)
        found: list[Finding] = []
        for organization_id, by_kind in named.items():
            for kind, ids in by_kind.items():
                async with self._database.transaction(organization_id) as tx:
                    strangers = await unknown_of(tx, organization_id, kind, sorted(ids))
                said = f"keys of the organization name {kind} that are not its own"
                found += [Finding(organization_id, "warm tier", said, str(one)) for one in strangers]
        return found

    async def _sample(self, warm: Warm) -> AsyncIterator[bytes]:
        """Keys of organizations, page by page: one long call would seem to the breaker like a server that hangs."""
        scan: AsyncIterator[bytes] | None = None

        async def page(client: Client) -> list[bytes]:
            nonlocal scan
            if scan is None:
                scan = aiter(client.scan_iter(match=f"{warm.keys.namespace}:org:*", count=PAGE))
            keys: list[bytes] = []
            async for key in scan:
                keys.append(key)
                if len(keys) == PAGE:
                    break
            return keys

        for _ in range(KEYS_MAX // PAGE):
            keys = await warm.call("scan", page)
            for key in keys or ():
                yield key
            if keys is None or len(keys) < PAGE:
                return

    @staticmethod
    async def _event_of(warm: Warm, key: bytes) -> UUID | None:
        raw: Any = await warm.call("meta", lambda client: client.execute_command("HGET", key, "event_id"))
        return parse_id(raw.decode("latin-1")) if isinstance(raw, bytes) else None


def key_parts(namespace: str, key: bytes) -> tuple[UUID | None, str, UUID | None]:
    """Whose key it is, what it is about (event, layout, seat, hold) and which; None for what is no id."""
    words = key.decode("latin-1").removeprefix(f"{namespace}:org:").split(":")
    if len(words) < 3:
        return None, "", None
    return parse_id(words[0].strip("{}")), words[1], parse_id(words[2])
