"""Tickets in people's hands: reading them, their codes and pictures, and the keys that sign them."""

import base64
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, Role, require_staff
from holdfast.accounts.standing import require_administrator
from holdfast.kernel.errors import EventNotFound, Forbidden, TicketNotFound
from holdfast.seating.answers import Part, part_of
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import ticket_keys, trail
from holdfast.store.postgres import ticket_reading as store
from holdfast.store.postgres.database import Database, Transaction
from holdfast.store.postgres.events import share_event
from holdfast.store.postgres.idempotency import run_once
from holdfast.tickets.answers import Jwk, Jwks, Rotated, TicketRecord, TicketView, ticket_payload
from holdfast.tickets.code import signed_part, whole_code
from holdfast.tickets.reading import ticket_views
from holdfast.tickets.refusals import TicketVoid
from holdfast.tickets.ticket import TicketStatus


class TicketsService:
    def __init__(self, database: Database, catalogue: Catalogue) -> None:
        self._database = database
        self._catalogue = catalogue

    # Reading -------------------------------------------------------------------------------------------------
    async def get(self, call: Call, ticket_id: UUID) -> TicketView:
        """With its code. For its owner, the attendee it names, and staff; to others it does not exist."""
        async with self._database.transaction(call.organization_id) as tx:
            return await self._read(tx, call, ticket_id)

    async def code(self, call: Call, ticket_id: UUID) -> str:
        """What its QR code says."""
        code = (await self.get(call, ticket_id)).code
        if not isinstance(code, str):
            raise TicketVoid
        return code

    async def mine(self, call: Call, event_id: UUID | None, before: UUID | None, limit: int) -> Part[TicketView]:
        """The caller's own, the newest first; none of an API key, which is nobody."""
        user_id, guest_of = call.principal.user_id, call.principal.guest_event_id
        if user_id is None or (guest_of is not None and event_id not in (None, guest_of)):
            return Part([], None)
        event_id = event_id or guest_of
        async with self._database.transaction(call.organization_id) as tx:
            found = await store.tickets_of_user(tx, call.organization_id, user_id, event_id, before, limit + 1)
            views = await ticket_views(tx, self._catalogue, call.organization_id, found)
        return part_of(views, limit, lambda ticket: str(ticket.id))

    async def of_event(
        self, call: Call, event_id: UUID, status: TicketStatus | None, after: UUID | None, limit: int
    ) -> Part[TicketView]:
        require_staff(call)
        if await self._catalogue.event(call.organization_id, event_id) is None:
            raise EventNotFound
        async with self._database.transaction(call.organization_id) as tx:
            found = await store.tickets_of_event(tx, call.organization_id, event_id, status, after, limit + 1)
            views = await ticket_views(tx, self._catalogue, call.organization_id, found)
        return part_of(views, limit, lambda ticket: str(ticket.id))

    # Issuing anew --------------------------------------------------------------------------------------------
    async def reissue(self, call: Call, ticket_id: UUID) -> TicketView:
        """Another code for the same ticket; those before are worth nothing. For its owner, and organisers."""

        async def work(tx: Transaction) -> int:
            ticket = await _seen_ticket(tx, call, ticket_id)
            if not (call.principal.is_staff or _owns(call, ticket)):
                raise Forbidden("Only whoever bought the ticket, or an organiser, can have it issued anew.")
            await share_event(tx, ticket.event_id)
            version = await store.reissue_ticket(tx, call.organization_id, ticket_id)
            if version is None:
                raise TicketVoid
            changes = {"code_version": version}
            await trail.write_audit(
                tx, call, "ticket_reissued", "Ticket", ticket_id, event_id=ticket.event_id, changes=changes
            )
            return version

        # What is kept for a repetition is not the code: that is in nobody's table.
        await run_once(self._database, call, work, int)
        return await self.get(call, ticket_id)

    # Keys ----------------------------------------------------------------------------------------------------
    async def keys(self, call: Call) -> Jwks:
        """What verifies the organization's tickets: for everybody who has a credential of it."""
        async with self._database.transaction(call.organization_id) as tx:
            await ticket_keys.ticket_signer(tx, call.organization_id)
            found = await ticket_keys.public_keys(tx, call.organization_id)
        return Jwks([Jwk(kid=key.id, x=_base64url(key.public_key)) for key in found])

    async def rotate_key(self, call: Call) -> Rotated:
        """Codes read from here on are signed with another key; those that are out stay good."""
        require_administrator(call.principal)

        async def work(tx: Transaction) -> Rotated:
            retired, key_id = await ticket_keys.rotate_key(tx, call.organization_id)
            rotated = Rotated(key_id=key_id, retired_key_id=retired)
            changes = msgspec.to_builtins(rotated)
            await trail.write_audit(
                tx, call, "ticket_key_rotated", "Organization", call.organization_id, changes=changes
            )
            return rotated

        return await run_once(self._database, call, work, Rotated)

    async def _read(self, tx: Transaction, call: Call, ticket_id: UUID) -> TicketView:
        ticket = await _seen_ticket(tx, call, ticket_id)
        (view,) = await ticket_views(tx, self._catalogue, call.organization_id, [ticket])
        if ticket.status is TicketStatus.VOID:
            return msgspec.structs.replace(view, code=None)
        signer = await ticket_keys.ticket_signer(tx, call.organization_id)
        part = signed_part(ticket_payload(view, call.organization_id, signer.key_id))
        return msgspec.structs.replace(view, code=whole_code(part, signer.sign(part)))


async def _seen_ticket(tx: Transaction, call: Call, ticket_id: UUID) -> TicketRecord:
    ticket = await store.find_ticket(tx, call.organization_id, ticket_id)
    if ticket is None or not _may_see(call, ticket):
        raise TicketNotFound
    return ticket


def _may_see(call: Call, ticket: TicketRecord) -> bool:
    principal = call.principal
    if principal.role is not Role.CUSTOMER:
        return True
    if principal.guest_event_id not in (None, ticket.event_id):
        return False
    return _owns(call, ticket) or (principal.user_id is not None and principal.user_id == ticket.attendee_user_id)


def _owns(call: Call, ticket: TicketRecord) -> bool:
    return call.principal.user_id is not None and call.principal.user_id == ticket.user_id


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
