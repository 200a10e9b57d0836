"""Who takes an organization's money: its payment providers and their secrets."""

import re
import secrets

import msgspec

from holdfast.accounts.principal import Call
from holdfast.accounts.standing import require_administrator
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.problems import Problem
from holdfast.payments.manual import MANUAL
from holdfast.payments.provider import ProviderKind, ProviderRecord, ProviderWithSecret, is_provider_name
from holdfast.payments.refusals import ProviderInUse, ProviderKindFixed, ProviderNotFound, TooManyProviders
from holdfast.store.postgres import payment_providers as store
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.idempotency import lock_key, run_once
from holdfast.store.postgres.trail import write_audit

OVERLAP_S = 86_400.0
PROVIDERS_MAX = 20
_SECRET = re.compile(r"[\x21-\x7e]{16,200}", re.ASCII)
_ENTITY = "PaymentProvider"


class ProviderAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: ProviderKind
    secret: str | None = None
    """Where the provider gives one out; otherwise one is made here."""
    enabled: bool | None = None
    rotate: bool = False
    """A new secret, made here."""


class Providers:
    def __init__(self, database: Database, *, overlap_s: float = OVERLAP_S) -> None:
        """`overlap_s`: so long a secret that was replaced is accepted too."""
        self._database = database
        self._overlap_s = overlap_s

    async def list(self, call: Call) -> list[ProviderRecord]:
        require_administrator(call.principal)
        async with self._database.transaction(call.organization_id) as tx:
            return await store.list_providers(tx, call.organization_id)

    async def put(self, call: Call, name: str, asked: ProviderAsked) -> ProviderWithSecret:
        """Adds it, or changes it. The secret is in the answer where it is new, and cannot be read again: a repetition with
        the same Idempotency-Key is answered without it."""
        require_administrator(call.principal)
        _require_fit(name, asked)
        fresh = asked.secret or (f"whsec_{secrets.token_urlsafe(32)}")
        shown: list[str] = []

        async def work(tx: Transaction) -> ProviderRecord:
            shown.clear()
            organization_id = call.organization_id
            await tx.execute("SELECT pg_advisory_xact_lock($1)", lock_key("payment_providers", organization_id))
            known = await store.find_provider(tx, organization_id, name)
            said: dict[str, object] = {"name": name, "kind": asked.kind.value}
            if known is None:
                if len(await store.list_providers(tx, organization_id)) >= PROVIDERS_MAX:
                    raise TooManyProviders(PROVIDERS_MAX)
                enabled = asked.enabled is not False
                await store.insert_provider(tx, organization_id, name, asked.kind, fresh, enabled)
                shown.append(fresh)
                said["enabled"] = enabled
            else:
                if known.kind is not asked.kind:
                    raise ProviderKindFixed(f"This provider is of the kind {known.kind.value}.", kind=known.kind.value)
                if asked.enabled is not None and asked.enabled != known.enabled:
                    await store.enable_provider(tx, organization_id, name, asked.enabled)
                    said["enabled"] = asked.enabled
                if asked.rotate or (asked.secret is not None and not await self._is_current(tx, call, name, fresh)):
                    await store.rotate_secret(tx, organization_id, name, fresh, self._overlap_s)
                    shown.append(fresh)
                    said["rotated"] = True
            stored = await store.find_provider(tx, organization_id, name)
            assert stored is not None
            action = "payment_provider_added" if known is None else "payment_provider_changed"
            await write_audit(tx, call, action, _ENTITY, organization_id, changes=said)
            return stored

        stored = await run_once(self._database, call, work, ProviderRecord)
        return ProviderWithSecret(**msgspec.structs.asdict(stored), secret=shown[0] if shown else None)

    @staticmethod
    async def _is_current(tx: Transaction, call: Call, name: str, secret: str) -> bool:
        known = await store.find_secrets(tx, call.organization_id, name)
        return known is not None and secrets.compare_digest(known.secrets[0], secret)

    async def delete(self, call: Call, name: str) -> None:
        """At once, both secrets: nothing it says is believed from here on."""
        require_administrator(call.principal)

        async def work(tx: Transaction) -> None:
            under_way = await store.payments_under_way(tx, call.organization_id, name)
            if under_way:
                raise ProviderInUse(under_way)
            if not await store.delete_provider(tx, call.organization_id, name):
                raise ProviderNotFound
            await write_audit(
                tx, call, "payment_provider_removed", _ENTITY, call.organization_id, changes={"name": name}
            )

        if not is_provider_name(name):
            raise ProviderNotFound
        await self._database.run(call.organization_id, work)


def _require_fit(name: str, asked: ProviderAsked) -> None:
    problems: list[Problem] = []
    if not is_provider_name(name) or name == MANUAL:
        said = f"must be 1 to 40 of a-z, 0-9, _ and -, and not {MANUAL}"
        problems.append(Problem("/name", "bad_name", said))
    if asked.secret is not None and not _SECRET.fullmatch(asked.secret):
        said = "must be 16 to 200 printable ASCII characters without spaces"
        problems.append(Problem("/secret", "bad_secret", said))
    if asked.secret is not None and asked.rotate:
        problems.append(Problem("/rotate", "both", "makes a secret: give none beside it"))
    if problems:
        raise InvalidRequest(f"{problems[0].pointer}: {problems[0].detail}", problems)
