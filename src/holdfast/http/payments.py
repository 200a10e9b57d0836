"""Paying, completing, providers' messages, payment providers and refunds over HTTP."""

from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Request, delete, get, post, put
from litestar.params import FromPath, JSONBody, QueryParameter
from litestar.types import ControllerRouterHandler

from holdfast.accounts.principal import Call, Principal, Role
from holdfast.checkout.answers import CheckoutView
from holdfast.holds.lifecycle import Actor
from holdfast.http.auth import call_of, cursor_id, origin_of_request, path_id
from holdfast.http.envelope import Data, Page
from holdfast.http.seating import page_of
from holdfast.http.services import services
from holdfast.payments.payment import Payment, PaymentBegun, Refund, RefundStatus
from holdfast.payments.provider import EventKind, ProviderRecord, ProviderWithSecret
from holdfast.payments.providers_service import ProviderAsked
from holdfast.payments.service import CompleteAsked, PaymentsService

Asked = Request[Any, Any, Any]
Limit = Annotated[int, QueryParameter(ge=1, le=200, description="Items at most.")]
Cursor = Annotated[str | None, QueryParameter(description="`next_cursor` of the page before.")]
Status = Annotated[RefundStatus | None, QueryParameter(description="Only refunds with this status.")]
OfEvent = Annotated[str | None, QueryParameter(description="Only refunds of this event.")]

NOBODY = Principal(
    organization_id=UUID(int=0), tenant_id=None, actor=Actor.SYSTEM, role=Role.CUSTOMER, subject="unknown"
)


class PayBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    provider: str


class SimulateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    outcome: EventKind = EventKind.SUCCEEDED
    amount_minor: int | None = None
    currency: str | None = None


class RefundDoneBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reference: str


class MessageAccepted(msgspec.Struct, frozen=True):
    received: bool = True


# Paying and completing --------------------------------------------------------------------------------------------
@post("/api/checkouts/{checkout_id:str}/pay", status_code=200, opt={"scope": "checkout"}, summary="Begin to pay")
async def pay(request: Asked, checkout_id: FromPath[str], data: JSONBody[PayBody]) -> Data[PaymentBegun]:
    """Fixes the amount and waits for the provider's word; the answer has what the page hands to the provider. Repeated, it
    is the same payment."""
    call = await call_of(request)
    return Data(await _payments(request).pay(call, path_id("checkout_id", checkout_id), data.provider))


@post(
    "/api/checkouts/{checkout_id:str}/pay/cancel",
    status_code=200,
    opt={"scope": "checkout"},
    summary="Cancel a payment that was begun",
)
async def cancel_payment(request: Asked, checkout_id: FromPath[str]) -> Data[CheckoutView]:
    """The checkout is open again, unless the money has arrived."""
    call = await call_of(request)
    return Data(await _payments(request).cancel_payment(call, path_id("checkout_id", checkout_id)))


@post(
    "/api/checkouts/{checkout_id:str}/complete",
    status_code=200,
    opt={"scope": "checkout"},
    summary="Complete a checkout",
)
async def complete(
    request: Asked, checkout_id: FromPath[str], data: JSONBody[CompleteAsked | None] = None
) -> Data[CheckoutView]:
    """Everything in it is sold and has its tickets, or nothing is. Staff and API keys state money they have taken as
    `payment_reference`. Repeated, it is the same answer."""
    call = await call_of(request)
    asked = data or CompleteAsked()
    return Data(await _payments(request).complete(call, path_id("checkout_id", checkout_id), asked))


# Providers' messages ----------------------------------------------------------------------------------------------
@post(
    "/api/payments/webhook/{provider:str}",
    status_code=200,
    security=[],
    summary="A payment provider's message",
)
async def receive_message(request: Asked, provider: FromPath[str]) -> Data[MessageAccepted]:
    """Signed by the provider (`Stripe-Signature`). 200 once what it says is recorded; 400 `invalid_webhook`, for whatever
    reason, where it is not believed."""
    origin = origin_of_request(request)
    call = Call(principal=NOBODY, ip=origin.ip, user_agent=origin.user_agent, request_id=origin.request_id)
    signatures = [value for name, value in request.scope["headers"] if name == b"stripe-signature"]
    signature = signatures[0].decode("latin-1") if len(signatures) == 1 else None
    await _payments(request).receiving.receive(call, provider, signature, await request.body())
    return Data(MessageAccepted())


@post(
    "/api/payments/{payment_id:str}/simulate",
    status_code=200,
    opt={"scope": "checkout"},
    summary="Let the test provider speak",
)
async def simulate_payment(
    request: Asked, payment_id: FromPath[str], data: JSONBody[SimulateBody | None] = None
) -> Data[Payment]:
    """Only for payments that were begun with a provider of the kind `test`: it says that the money is there, or is not."""
    call = await call_of(request)
    said = data or SimulateBody()
    payment = path_id("payment_id", payment_id)
    return Data(await _payments(request).simulate(call, payment, said.outcome, said.amount_minor, said.currency))


# Payment providers ------------------------------------------------------------------------------------------------
@get("/api/payments/providers", summary="List payment providers")
async def list_providers(request: Asked) -> Data[list[ProviderRecord]]:
    call = await call_of(request)
    return Data(await _payments(request).providers.list(call))


@put("/api/payments/providers/{name:str}", summary="Add or change a payment provider")
async def put_provider(request: Asked, name: FromPath[str], data: JSONBody[ProviderAsked]) -> Data[ProviderWithSecret]:
    """A new secret is in this answer and cannot be read again; the one before is accepted for another day."""
    call = await call_of(request)
    return Data(await _payments(request).providers.put(call, name, data))


@delete("/api/payments/providers/{name:str}", status_code=204, summary="Remove a payment provider")
async def delete_provider(request: Asked, name: FromPath[str]) -> None:
    call = await call_of(request)
    await _payments(request).providers.delete(call, name)


# Payments and refunds ---------------------------------------------------------------------------------------------
@get("/api/payments/{payment_id:str}", summary="A payment")
async def get_payment(request: Asked, payment_id: FromPath[str]) -> Data[Payment]:
    call = await call_of(request)
    return Data(await _payments(request).payment(call, path_id("payment_id", payment_id)))


@get("/api/refunds", summary="List refunds, oldest first")
async def list_refunds(
    request: Asked, status: Status = None, event_id: OfEvent = None, cursor: Cursor = None, limit: Limit = 50
) -> Page[Refund]:
    """Money that bought nothing, or bought what was taken back."""
    call = await call_of(request)
    event = None if event_id is None else path_id("event_id", event_id)
    return page_of(await _payments(request).refunds(call, status, event, cursor_id(cursor), limit))


@post("/api/refunds/{refund_id:str}/done", status_code=200, summary="Note that money was paid back")
async def refund_done(request: Asked, refund_id: FromPath[str], data: JSONBody[RefundDoneBody]) -> Data[Refund]:
    call = await call_of(request)
    return Data(await _payments(request).refund_done(call, path_id("refund_id", refund_id), data.reference))


def _payments(request: Asked) -> PaymentsService:
    return services(request).payments


ROUTES: list[ControllerRouterHandler] = [
    pay,
    cancel_payment,
    complete,
    receive_message,
    simulate_payment,
    list_providers,
    put_provider,
    delete_provider,
    get_payment,
    list_refunds,
    refund_done,
]
