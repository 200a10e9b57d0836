"""The operator at the machine, as the services see them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import UUID

from holdfast.accounts.principal import Call, Principal, Role
from holdfast.accounts.refusals import OrganizationNotFound
from holdfast.holds.lifecycle import Actor
from holdfast.settings import Settings
from holdfast.store.postgres import accounts

if TYPE_CHECKING:
    from holdfast.app import Application


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator["Application"]:
    """The application without server or duties. It is imported here: commands that need none of it start sooner."""
    from holdfast.app import Application

    application = await Application.open(settings, work=False, serve=False)
    try:
        yield application
    finally:
        await application.close()


@asynccontextmanager
async def operating(settings: Settings, organization_id: UUID) -> AsyncIterator[tuple["Application", Call]]:
    """The application, and a call in the name of an administrator of the organization."""
    async with opened(settings) as application:
        yield application, await operator_call(application, organization_id)


async def operator_call(application: "Application", organization_id: UUID) -> Call:
    async with application.database.transaction(organization_id) as tx:
        organization = await accounts.find_organization(tx, organization_id)
    if organization is None:
        raise OrganizationNotFound
    return Call(
        principal=Principal(
            organization_id=organization_id,
            tenant_id=organization.tenant_id,
            actor=Actor.ADMIN,
            role=Role.ADMIN,
            subject="operator",
        )
    )
