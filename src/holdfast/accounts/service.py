"""Looks after tenants, organizations, their people, their keys, their hold types and their policy."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

import msgspec

from holdfast.accounts.credentials import (
    GUEST_TTL_S,
    MAX_TOKEN_TTL_S,
    TOKEN_TTL_S,
    ApiKeyText,
    TokenClaims,
    TokenKeys,
    at_least,
    new_api_key,
)
from holdfast.accounts.inputs import read_scopes, read_tiers, require_texts
from holdfast.accounts.principal import Call, Principal, Role
from holdfast.accounts.records import (
    OPERATOR,
    ApiKey,
    Bootstrap,
    ConfigAnswer,
    GuestToken,
    IssuedToken,
    Member,
    MemberChange,
    NewApiKey,
    Organization,
    Origin,
    PolicyAnswer,
    origin_of,
)
from holdfast.accounts.refusals import (
    ApiKeyNotFound,
    OrganizationNotFound,
    RoleTooHigh,
    UserInactive,
    UserNotFound,
)
from holdfast.accounts.sign_in import MAY_SIGN_IN
from holdfast.accounts.standing import (
    GuestStandings,
    TenantAccess,
    highest_grantable,
    key_principal,
    require_administrator,
    require_key,
    token_principal,
)
from holdfast.holds.hold_types import HoldTypesConfig, parse_hold_types_config, resolve_hold_types
from holdfast.kernel.errors import EventNotFound, Forbidden, InvalidRequest, NotFound
from holdfast.kernel.ids import new_id
from holdfast.kernel.problems import Problem
from holdfast.seating.policy import SeatingPolicy, parse_policy
from holdfast.store.postgres import accounts as store
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.idempotency import run_once
from holdfast.store.postgres.sign_ins import end_sign_ins

BOOTSTRAP_TTL_S = 7 * 86_400
HOLD_TYPES_CHANGED = "EventHoldTypesChanged"
"""To those who watch an event: what is held may be shown otherwise from now on."""

Changed = Callable[[UUID], None]


class AccountsService:
    def __init__(self, database: Database, keys: TokenKeys, *, guest_ttl_s: int = GUEST_TTL_S) -> None:
        self._database = database
        self._keys = keys
        self._guest_ttl_s = guest_ttl_s
        self._guests = GuestStandings()
        self.on_config_change: list[Changed] = []
        """Called with an organization's id after its hold types or policy changed: this process's caches drop."""
        self.on_access_change: list[Changed] = []
        """Called with an organization's id after a membership or key of it changed."""

    # Starting -----------------------------------------------------------------------------------------------
    async def create_tenant(self, name: str) -> tuple[UUID, str]:
        """The tenant's id and its first API key."""
        require_texts({"/tenant": name})
        key = new_api_key(new_id(), of_tenant=True)
        async with self._database.transaction(tenant_id=key.owner_id) as tx:
            await store.insert_tenant(tx, key.owner_id, name)
            await store.insert_tenant_api_key(tx, key, "first key", ("*",))
        return key.owner_id, key.text

    async def create_organization(self, tenant_id: UUID, name: str) -> Organization:
        require_texts({"/organization": name})
        organization = Organization(organization_id=new_id(), tenant_id=tenant_id, name=name)
        async with self._database.transaction(organization.organization_id, tenant_id=tenant_id) as tx:
            await self._insert_organization(tx, organization)
        return organization

    async def bootstrap(
        self, organization: str, *, tenant: str | None = None, tenant_id: UUID | None = None
    ) -> Bootstrap:
        """A first organization with everything to begin: all of it, or nothing. Joins `tenant_id` if given."""
        require_texts({"/organization": organization, "/tenant": tenant or organization})
        tenant_key = new_api_key(tenant_id or new_id(), of_tenant=True)
        made = Organization(organization_id=new_id(), tenant_id=tenant_key.owner_id, name=organization)
        key = new_api_key(made.organization_id)
        async with self._database.transaction(made.organization_id, tenant_id=made.tenant_id) as tx:
            if tenant_id is None:
                await store.insert_tenant(tx, made.tenant_id, tenant or organization)
                await store.insert_tenant_api_key(tx, tenant_key, "first key", ("*",))
            await self._insert_organization(tx, made)
            now = await tx.now()
            admin = _new_member(new_id(), role=Role.ADMIN, tiers=(), created_at=now, display_name="Administrator")
            await self._insert_member(tx, made.organization_id, OPERATOR, admin)
            await self._insert_key(tx, OPERATOR, key, "first key", ("*",), None)
        return Bootstrap(
            tenant_id=made.tenant_id,
            organization_id=made.organization_id,
            admin_user_id=admin.id,
            admin_token=self._sign(made, admin.id, Role.ADMIN, (), now.timestamp(), BOOTSTRAP_TTL_S),
            api_key=key.text,
            tenant_api_key=tenant_key.text if tenant_id is None else None,
        )

    async def _insert_organization(self, tx: Transaction, organization: Organization) -> None:
        if not await store.tenant_exists(tx, organization.tenant_id):
            raise NotFound("There is no such tenant.")
        await store.insert_organization(tx, organization.organization_id, organization.tenant_id, organization.name)
        await store.audit(
            tx,
            organization.organization_id,
            OPERATOR,
            "organization_created",
            "organization",
            organization.organization_id,
            {"name": organization.name, "tenant_id": organization.tenant_id},
        )

    # Credentials --------------------------------------------------------------------------------------------
    async def principal_of_token(self, text: str) -> tuple[Principal, float]:
        """Who a token's bearer is, and for how many seconds that can be relied on at most."""
        claims = self._keys.verify(text)
        async with self._database.transaction(claims.organization_id) as tx:
            standing = await store.standing(tx, claims.organization_id, claims.user_id)
        principal = token_principal(claims, standing)
        if claims.guest_event_id is not None and standing is not None:
            self._guests.remember(claims.organization_id, standing)
        assert standing is not None
        return principal, claims.expires_at - standing.now

    def guest_at_once(self, text: str) -> tuple[Principal, float] | None:
        """`principal_of_token` for a guest of an organization asked about a moment ago; None: it takes a look."""
        claims = self._keys.verify(text)
        standing = self._guests.get(claims.organization_id) if claims.guest_event_id is not None else None
        if standing is None:
            return None
        return token_principal(claims, standing), claims.expires_at - standing.now

    async def principal_of_key(self, key: ApiKeyText, organization_id: UUID | None) -> tuple[Principal, float]:
        """The same for an API key. A tenant's key says for which organization it acts."""
        if not key.of_tenant:
            if organization_id not in (None, key.owner_id):
                raise Forbidden("This API key has no such organization.")
            async with self._database.transaction(key.owner_id) as tx:
                standing = await store.key_standing(tx, key.owner_id, key.key_id)
            principal = key_principal(key, standing, key.owner_id)
        else:
            async with self._database.transaction(organization_id, tenant_id=key.owner_id) as tx:
                standing = await store.tenant_key_standing(tx, key.owner_id, key.key_id)
                require_key(key, standing)
                if organization_id is None:
                    raise InvalidRequest(
                        "A tenant's key acts for one of its organizations: name it in X-Organization-ID.",
                        [Problem("/headers/X-Organization-ID", "missing", "X-Organization-ID is missing")],
                    )
                organization = await store.find_organization(tx, organization_id)
            if organization is None or organization.tenant_id != key.owner_id:
                raise Forbidden("This API key has no such organization.")
            principal = key_principal(key, standing, organization_id)
        assert standing is not None
        return principal, float("inf") if standing.remaining_s is None else standing.remaining_s

    async def tenant_access_of_key(self, key: ApiKeyText, origin: Origin) -> TenantAccess:
        async with self._database.transaction(tenant_id=key.owner_id) as tx:
            standing = await store.tenant_key_standing(tx, key.owner_id, key.key_id)
        require_key(key, standing)
        assert standing is not None
        if "*" not in standing.scopes:
            raise Forbidden("This API key lacks the scope for this.", required_scope="*")
        return TenantAccess(tenant_id=key.owner_id, origin=origin)

    async def issue_token(
        self,
        organization_id: UUID,
        role: Role,
        user_id: UUID | None = None,
        tiers: Iterable[str] = (),
        ttl_s: int = TOKEN_TTL_S,
    ) -> IssuedToken:
        """The operator's way to a token: a user not known is made, one that lacks the role or tiers is given them."""
        wanted = read_tiers("/tiers", tiers)
        if not 0 < ttl_s <= MAX_TOKEN_TTL_S:
            raise InvalidRequest(
                f"A token lives from 1 to {MAX_TOKEN_TTL_S} seconds.",
                [Problem("/ttl", "out_of_range", f"must be from 1 to {MAX_TOKEN_TTL_S}")],
            )
        bearer = user_id or new_id()

        async def work(tx: Transaction) -> tuple[Organization, Member, datetime]:
            organization = await store.find_organization(tx, organization_id)
            if organization is None:
                raise OrganizationNotFound
            now = await tx.now()
            known = await store.find_member(tx, organization_id, bearer)
            if known is None:
                known = _new_member(bearer, role=role, tiers=wanted, created_at=now)
                await self._insert_member(tx, organization_id, OPERATOR, known)
            elif known.deactivated_at is not None or not known.active:
                raise UserInactive
            elif not at_least(known.role, role) or not set(wanted) <= set(known.tiers):
                raised = role if at_least(role, known.role) else known.role
                change = MemberChange(role=raised, tiers=tuple(sorted({*known.tiers, *wanted})))
                known = await self._change(tx, organization_id, OPERATOR, known, change)
            return organization, known, now

        organization, member, now = await self._database.run(organization_id, work)
        token = self._sign(organization, bearer, role, member.tiers, now.timestamp(), ttl_s)
        expires_at = datetime.fromtimestamp(int(now.timestamp()) + ttl_s, UTC)
        return IssuedToken(user_id=bearer, token=token, expires_at=expires_at)

    async def issue_guest_token(self, event_id: UUID) -> GuestToken:
        """For a buyer without an account: good for one event that is on sale. Nothing is written."""
        async with self._database.transaction(engine=True) as tx:
            organization_id = await store.organization_of_event(tx, event_id)
        if organization_id is None:
            raise EventNotFound
        async with self._database.transaction(organization_id) as tx:
            organization = await store.find_organization(tx, organization_id)
            now = (await tx.now()).timestamp()
        assert organization is not None
        user_id = new_id()
        token = self._sign(organization, user_id, Role.CUSTOMER, (), now, self._guest_ttl_s, event_id)
        return GuestToken(
            user_id=user_id,
            event_id=event_id,
            organization_id=organization_id,
            token=token,
            expires_at=datetime.fromtimestamp(int(now) + self._guest_ttl_s, UTC),
            expires_in_seconds=self._guest_ttl_s,
        )

    def _sign(
        self,
        organization: Organization,
        user_id: UUID,
        role: Role,
        tiers: tuple[str, ...],
        now: float,
        ttl_s: int,
        guest_event_id: UUID | None = None,
    ) -> str:
        return self._keys.sign(
            TokenClaims(
                user_id=user_id,
                organization_id=organization.organization_id,
                tenant_id=organization.tenant_id,
                role=role,
                tiers=tiers,
                issued_at=int(now),
                expires_at=int(now) + ttl_s,
                guest_event_id=guest_event_id,
            )
        )

    # People -------------------------------------------------------------------------------------------------
    async def create_user(
        self,
        call: Call,
        *,
        role: Role = Role.CUSTOMER,
        tiers: Iterable[str] = (),
        email: str | None = None,
        display_name: str | None = None,
        user_id: UUID | None = None,
    ) -> Member:
        require_grant(call, role)
        require_texts({"/email": email, "/display_name": display_name})
        wanted = read_tiers("/tiers", tiers)
        bearer = user_id or new_id()

        async def work(tx: Transaction) -> Member:
            now = await tx.now()
            member = _new_member(
                bearer, role=role, tiers=wanted, created_at=now, email=email, display_name=display_name
            )
            await self._insert_member(tx, call.organization_id, origin_of(call), member)
            return member

        return await run_once(self._database, call, work, Member)

    async def list_users(self, call: Call, after: UUID | None, limit: int) -> list[Member]:
        require_administrator(call.principal)
        async with self._database.transaction(call.organization_id) as tx:
            return await store.list_members(tx, call.organization_id, after, limit)

    async def change_user(self, call: Call, user_id: UUID, change: MemberChange) -> Member:
        require_administrator(call.principal)
        require_texts({"/email": change.email, "/display_name": change.display_name})
        if change.tiers is not msgspec.UNSET:
            change = msgspec.structs.replace(change, tiers=read_tiers("/tiers", change.tiers))

        async def work(tx: Transaction) -> Member:
            known = await store.find_member(tx, call.organization_id, user_id)
            if known is None:
                raise UserNotFound
            require_grant(call, known.role)
            if change.role is not msgspec.UNSET:
                require_grant(call, change.role)
            return await self._change(tx, call.organization_id, origin_of(call), known, change)

        return await run_once(self._database, call, work, Member)

    async def deactivate_user(self, call: Call, user_id: UUID) -> Member:
        return await self.change_user(call, user_id, MemberChange(deactivated=True))

    async def _insert_member(self, tx: Transaction, organization_id: UUID, origin: Origin, member: Member) -> None:
        await store.insert_user(tx, organization_id, member)
        await store.store_membership(tx, organization_id, member.id, member.role, member.tiers, member.active)
        said = {"role": member.role, "tiers": member.tiers, "active": member.active}
        await store.audit(tx, organization_id, origin, "user_created", "user", member.id, said)
        self._after_commit(tx, self.on_access_change, organization_id)

    async def _change(
        self, tx: Transaction, organization_id: UUID, origin: Origin, known: Member, change: MemberChange
    ) -> Member:
        """The caller's transaction has locked the user's row (`find_member`)."""
        role = known.role if change.role is msgspec.UNSET else change.role
        tiers = known.tiers if change.tiers is msgspec.UNSET else change.tiers
        active = known.active if change.active is msgspec.UNSET else change.active
        await store.change_user(tx, organization_id, known.id, change)
        await store.store_membership(tx, organization_id, known.id, role, tiers, active)
        changed = await store.find_member(tx, organization_id, known.id)
        assert changed is not None
        if changed.deactivated_at is not None or not changed.active or changed.role not in MAY_SIGN_IN:
            await end_sign_ins(tx, organization_id, known.id)  # they do not come back with the user
        # The audit names what was changed; personal data stays out of it.
        said = {
            "fields": [name for name in change.__struct_fields__ if getattr(change, name) is not msgspec.UNSET],
            "before": {"role": known.role, "tiers": known.tiers, "active": known.active},
            "after": {"role": changed.role, "tiers": changed.tiers, "active": changed.active},
            "deactivated": changed.deactivated_at is not None,
        }
        await store.audit(tx, organization_id, origin, "membership_changed", "user", known.id, said)
        self._after_commit(tx, self.on_access_change, organization_id)
        return changed

    # API keys -----------------------------------------------------------------------------------------------
    async def create_api_key(
        self, call: Call, *, name: str, scopes: Iterable[str] = ("*",), expires_at: datetime | None = None
    ) -> NewApiKey:
        require_administrator(call.principal)
        require_texts({"/name": name})
        allowed = read_scopes(scopes)
        if expires_at is not None and expires_at.tzinfo is None:
            raise InvalidRequest(
                "expires_at needs an offset from UTC.", [Problem("/expires_at", "bad_time", "needs an offset, e.g. Z")]
            )
        once = call.idempotency
        key = new_api_key(call.organization_id)
        if once is not None:
            key = msgspec.structs.replace(key, secret=self._repeatable_secret(key.key_id, once.key))

        async def work(tx: Transaction) -> NewApiKey:
            if expires_at is not None and expires_at <= await tx.now():
                raise InvalidRequest(
                    "expires_at has passed.", [Problem("/expires_at", "out_of_range", "must be in the future")]
                )
            made = await self._insert_key(tx, origin_of(call), key, name, allowed, expires_at)
            # The stored answer of an Idempotency-Key must not hold the secret: it is derived anew when repeated.
            return NewApiKey(
                id=made.id,
                name=made.name,
                prefix=made.prefix,
                scopes=made.scopes,
                created_at=made.created_at,
                expires_at=made.expires_at,
                secret="",
            )

        made = await run_once(self._database, call, work, NewApiKey)
        if once is not None:
            key = msgspec.structs.replace(key, key_id=made.id, secret=self._repeatable_secret(made.id, once.key))
        return msgspec.structs.replace(made, secret=key.text)

    def _repeatable_secret(self, key_id: UUID, once: str) -> str:
        return self._keys.derived_secret(str(key_id), once)

    async def list_api_keys(self, call: Call, after: UUID | None, limit: int) -> list[ApiKey]:
        require_administrator(call.principal)
        async with self._database.transaction(call.organization_id) as tx:
            return await store.list_api_keys(tx, call.organization_id, after, limit)

    async def revoke_api_key(self, call: Call, key_id: UUID) -> None:
        """For good, and again without effect."""
        require_administrator(call.principal)

        async def work(tx: Transaction) -> None:
            revoked = await store.revoke_api_key(tx, call.organization_id, key_id)
            if revoked is None:
                raise ApiKeyNotFound
            if revoked:
                await store.audit(tx, call.organization_id, origin_of(call), "api_key_revoked", "api_key", key_id, {})
                self._after_commit(tx, self.on_access_change, call.organization_id)

        await self._database.run(call.organization_id, work)

    async def _insert_key(
        self,
        tx: Transaction,
        origin: Origin,
        key: ApiKeyText,
        name: str,
        scopes: tuple[str, ...],
        expires_at: datetime | None,
    ) -> ApiKey:
        made = await store.insert_api_key(tx, key, name, scopes, expires_at)
        said = {"name": name, "scopes": scopes, "expires_at": expires_at}
        await store.audit(tx, key.owner_id, origin, "api_key_created", "api_key", made.id, said)
        return made

    # Hold types ---------------------------------------------------------------------------------------------
    async def organization_config(self, call: Call) -> ConfigAnswer:
        async with self._database.transaction(call.organization_id) as tx:
            return await self._organization_config(tx, call.organization_id)

    async def store_organization_config(self, call: Call, document: object) -> ConfigAnswer:
        """Replaces the organization's layer whole. Raises ConfigInvalid with every bad field, and stores nothing."""
        require_administrator(call.principal)
        config = parse_hold_types_config(document)

        async def work(tx: Transaction) -> ConfigAnswer:
            await store.store_organization_config(tx, call.organization_id, msgspec.json.encode(config).decode())
            said = {"config": config}
            await store.audit(
                tx,
                call.organization_id,
                origin_of(call),
                "organization_config_changed",
                "organization",
                call.organization_id,
                said,
            )
            await store.tell_events_on_sale(tx, call.organization_id, HOLD_TYPES_CHANGED)
            self._after_commit(tx, self.on_config_change, call.organization_id)
            return await self._organization_config(tx, call.organization_id)

        return await run_once(self._database, call, work, ConfigAnswer)

    async def _organization_config(self, tx: Transaction, organization_id: UUID) -> ConfigAnswer:
        organization = await store.find_organization(tx, organization_id)
        if organization is None:
            raise OrganizationNotFound
        await store.enter_tenant(tx, organization.tenant_id)
        tenant = _config(await store.tenant_config(tx, organization.tenant_id))
        own = _config(await store.organization_config(tx, organization_id))
        return _config_answer(tenant, own, stored=own)

    async def tenant_config(self, access: TenantAccess) -> ConfigAnswer:
        async with self._database.transaction(tenant_id=access.tenant_id) as tx:
            config = _config(await store.tenant_config(tx, access.tenant_id))
        return _config_answer(config, None, stored=config)

    async def store_tenant_config(self, access: TenantAccess, document: object) -> ConfigAnswer:
        """Replaces the tenant's layer; every organization of the tenant finds it in its audit."""
        config = parse_hold_types_config(document)
        async with self._database.transaction(engine=True) as tx:
            organizations = await store.organizations_of_tenant(tx, access.tenant_id)
        async with self._database.transaction(tenant_id=access.tenant_id) as tx:
            await store.store_tenant_config(tx, access.tenant_id, msgspec.json.encode(config).decode())
            for organization_id in organizations:
                await store.enter_organization(tx, organization_id)
                await store.audit(
                    tx,
                    organization_id,
                    access.origin,
                    "tenant_config_changed",
                    "tenant",
                    access.tenant_id,
                    {"config": config},
                )
                await store.tell_events_on_sale(tx, organization_id, HOLD_TYPES_CHANGED)
                self._after_commit(tx, self.on_config_change, organization_id)
        return _config_answer(config, None, stored=config)

    # Policy -------------------------------------------------------------------------------------------------
    async def policy(self, call: Call) -> PolicyAnswer:
        async with self._database.transaction(call.organization_id) as tx:
            text = await store.policy(tx, call.organization_id)
        return _policy_answer(None if text is None else parse_policy(msgspec.json.decode(text)))

    async def store_policy(self, call: Call, document: object) -> PolicyAnswer:
        """Replaces the policy whole: what it does not say is at its default again."""
        require_administrator(call.principal)
        policy = parse_policy(document)

        async def work(tx: Transaction) -> PolicyAnswer:
            before = await store.policy(tx, call.organization_id)
            stated = msgspec.json.encode(policy.stored())
            await store.store_policy(tx, call.organization_id, stated.decode())
            said = {"before": before and msgspec.Raw(before.encode()), "after": msgspec.Raw(stated)}
            await store.audit(
                tx,
                call.organization_id,
                origin_of(call),
                "policy_changed",
                "organization",
                call.organization_id,
                said,
            )
            self._after_commit(tx, self.on_config_change, call.organization_id)
            return _policy_answer(policy)

        return await run_once(self._database, call, work, PolicyAnswer)

    @staticmethod
    def _after_commit(tx: Transaction, hooks: list[Changed], organization_id: UUID) -> None:
        for hook in hooks:
            tx.after_commit(partial(hook, organization_id))


def _config(text: str | None) -> HoldTypesConfig:
    return parse_hold_types_config(msgspec.json.decode(text or "{}"))


def _config_answer(
    tenant: HoldTypesConfig | None, organization: HoldTypesConfig | None, stored: HoldTypesConfig
) -> ConfigAnswer:
    resolved = resolve_hold_types(tenant, organization)
    return ConfigAnswer(
        stored=msgspec.to_builtins(stored),
        resolved={"holdTypes": {name: found.values_json() for name, found in resolved.items()}},
        layers={"holdTypes": {name: found.layers_json() for name, found in resolved.items()}},
    )


def _policy_answer(policy: SeatingPolicy | None) -> PolicyAnswer:
    known = policy or SeatingPolicy()
    effective: dict[str, Any] = {**known.values(), "locked_fields": sorted(known.locked_fields)}
    return PolicyAnswer(stored=None if policy is None else policy.stored(), effective=effective)


def _new_member(
    user_id: UUID,
    *,
    role: Role,
    tiers: tuple[str, ...],
    created_at: datetime,
    email: str | None = None,
    display_name: str | None = None,
) -> Member:
    return Member(
        id=user_id,
        email=email,
        display_name=display_name,
        role=role,
        tiers=tiers,
        active=True,
        created_at=created_at,
        deactivated_at=None,
    )


def require_grant(call: Call, role: Role) -> None:
    require_administrator(call.principal)
    highest = highest_grantable(call.principal)
    if highest is None or not at_least(highest, role):
        raise RoleTooHigh
