"""The operator at the machine, as the services see them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from holdfast.accounts.principal import Call, Principal, Role
from holdfast.accounts.refusals import OrganizationNotFound
from holdfast.app import Application
from holdfast.holds.lifecycle import Actor
from holdfast.settings import Settings
from holdfast.store.postgres import accounts


@asynccontextmanager
async def operating(settings: Settings, organization_id: UUID) -> AsyncIterator[tuple[Application, Call]]:
    """The application without server or duties, and a call in the name of an administrator of the organization."""
    application = await Application.open(settings, work=False, serve=False)
    try:
        yield application, await operator_call(application, organization_id)
    finally:
        await application.close()


async def operator_call(application: Application, organization_id: UUID) -> Call:
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
