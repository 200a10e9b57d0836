"""Routes of people, keys, hold types and policy."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Request, delete, get, patch, post, put
from litestar.params import Body, FromPath, JSONBody, QueryParameter
from litestar.types import ControllerRouterHandler

from holdfast.accounts.principal import Principal, Role, require_staff
from holdfast.accounts.records import (
    ApiKey,
    ConfigAnswer,
    GuestToken,
    Member,
    MemberChange,
    NewApiKey,
    PolicyAnswer,
)
from holdfast.http.auth import call_of, cursor_id, origin_of_request, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.services import services

Asked = Request[Any, Any, Any]
PAGE_MAX = 200

Limit = Annotated[int, QueryParameter(ge=1, le=PAGE_MAX, description="Items at most.")]
Cursor = Annotated[str | None, QueryParameter(description="`next_cursor` of the page before.")]
Document = Annotated[
    dict[str, Any],
    Body(description='Hold types by name, e.g. {"holdTypes": {"COMP": {"validStates": ["LOCKED"]}}}. Replaces all.'),
]
PolicyDocument = Annotated[
    dict[str, Any],
    Body(description="Fields of a seating policy, and `locked_fields`. What is left out is at its default."),
]


class GuestRequest(msgspec.Struct, forbid_unknown_fields=True):
    event_id: str


class NewUser(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    role: Role = Role.CUSTOMER
    tiers: tuple[str, ...] = ()
    email: str | None = None
    display_name: str | None = None
    id: UUID | None = None
    """Of an account elsewhere; left out, a new one."""


class NewKey(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    scopes: tuple[str, ...] = ("*",)
    expires_at: datetime | None = None


class Me(msgspec.Struct, frozen=True, kw_only=True):
    organization_id: UUID
    tenant_id: UUID | None
    actor: str
    role: Role
    user_id: UUID | None
    tiers: list[str]
    guest_event_id: UUID | None
    scopes: list[str]
    tenant_wide: bool


@post("/api/guest-tokens", security=[], summary="Issue a guest's token")
async def issue_guest_token(request: Asked, data: JSONBody[GuestRequest]) -> Data[GuestToken]:
    """A buyer's token without an account, for one event that is on sale."""
    return Data(await services(request).accounts.issue_guest_token(path_id("event_id", data.event_id)))


@get("/api/me", summary="Whose credential this is")
async def show_me(request: Asked) -> Data[Me]:
    """Whose credential this is, and what it may do."""
    return Data(_me((await call_of(request)).principal))


def _me(principal: Principal) -> Me:
    return Me(
        organization_id=principal.organization_id,
        tenant_id=principal.tenant_id,
        actor=principal.actor.value,
        role=principal.role,
        user_id=principal.user_id,
        tiers=sorted(principal.tiers),
        guest_event_id=principal.guest_event_id,
        scopes=sorted(principal.scopes),
        tenant_wide=principal.tenant_wide,
    )


# Hold types and policy ------------------------------------------------------------------------------------------
@get("/api/organizations/config", summary="The organization's hold types")
async def show_organization_config(request: Asked) -> Data[ConfigAnswer]:
    """The organization's hold types as stored and as resolved, with the layer each field came from."""
    call = await call_of(request)
    require_staff(call)
    return Data(await services(request).accounts.organization_config(call))


@post("/api/organizations/config", status_code=200, summary="Store the organization's hold types")
async def store_organization_config(request: Asked, data: JSONBody[Document]) -> Data[ConfigAnswer]:
    """Replaces the organization's hold types. One bad field and nothing is stored; the answer names each."""
    call = await call_of(request)
    return Data(await services(request).accounts.store_organization_config(call, data))


@get("/api/tenants/config", summary="The tenant's hold types")
async def show_tenant_config(request: Asked) -> Data[ConfigAnswer]:
    """The hold types that all organizations of the tenant share. With the tenant's API key."""
    found = services(request)
    access = await found.authenticator.tenant_access(request.scope, origin_of_request(request))
    return Data(await found.accounts.tenant_config(access))


@post("/api/tenants/config", status_code=200, summary="Store the tenant's hold types")
async def store_tenant_config(request: Asked, data: JSONBody[Document]) -> Data[ConfigAnswer]:
    """Replaces the tenant's hold types. With the tenant's API key."""
    found = services(request)
    access = await found.authenticator.tenant_access(request.scope, origin_of_request(request))
    return Data(await found.accounts.store_tenant_config(access, data))


@get("/api/policy", summary="The seating policy")
async def show_policy(request: Asked) -> Data[PolicyAnswer]:
    """The organization's seating policy: what it said, and what is in effect."""
    call = await call_of(request)
    require_staff(call)
    return Data(await services(request).accounts.policy(call))


@put("/api/policy", summary="Replace the seating policy")
async def store_policy(request: Asked, data: JSONBody[PolicyDocument]) -> Data[PolicyAnswer]:
    """Replaces the seating policy whole."""
    call = await call_of(request)
    return Data(await services(request).accounts.store_policy(call, data))


# People ---------------------------------------------------------------------------------------------------------
@post("/api/users", summary="Add a user")
async def create_user(request: Asked, data: JSONBody[NewUser]) -> Data[Member]:
    """A user of the organization, with a role and the tiers that open zones to them."""
    call = await call_of(request)
    member = await services(request).accounts.create_user(
        call,
        role=data.role,
        tiers=data.tiers,
        email=data.email,
        display_name=data.display_name,
        user_id=data.id,
    )
    return Data(member)


@get("/api/users", summary="List users")
async def list_users(request: Asked, limit: Limit = 50, cursor: Cursor = None) -> Page[Member]:
    call = await call_of(request)
    found = await services(request).accounts.list_users(call, cursor_id(cursor), limit + 1)
    return Page(found[:limit], str(found[limit - 1].id) if len(found) > limit else None)


@patch("/api/users/{id:str}", summary="Change a user")
async def change_user(request: Asked, id: FromPath[str], data: JSONBody[MemberChange]) -> Data[Member]:
    """Changes role, tiers, or whether the membership is active; `deactivated` closes the account."""
    call = await call_of(request)
    return Data(await services(request).accounts.change_user(call, path_id("id", id), data))


# API keys -------------------------------------------------------------------------------------------------------
@post("/api/api-keys", summary="Make an API key")
async def create_api_key(request: Asked, data: JSONBody[NewKey]) -> Data[NewApiKey]:
    """A key for another system. Its secret is in this answer and nowhere else."""
    call = await call_of(request)
    made = await services(request).accounts.create_api_key(
        call, name=data.name, scopes=data.scopes, expires_at=data.expires_at
    )
    return Data(made)


@get("/api/api-keys", summary="List API keys")
async def list_api_keys(request: Asked, limit: Limit = 50, cursor: Cursor = None) -> Page[ApiKey]:
    call = await call_of(request)
    found = await services(request).accounts.list_api_keys(call, cursor_id(cursor), limit + 1)
    return Page(found[:limit], str(found[limit - 1].id) if len(found) > limit else None)


@delete("/api/api-keys/{id:str}", status_code=204, summary="Revoke an API key")
async def revoke_api_key(request: Asked, id: FromPath[str]) -> None:
    """Revokes the key for good."""
    call = await call_of(request)
    await services(request).accounts.revoke_api_key(call, path_id("id", id))


ROUTES: list[ControllerRouterHandler] = [
    issue_guest_token,
    show_me,
    show_organization_config,
    store_organization_config,
    show_tenant_config,
    store_tenant_config,
    show_policy,
    store_policy,
    create_user,
    list_users,
    change_user,
    create_api_key,
    list_api_keys,
    revoke_api_key,
]
