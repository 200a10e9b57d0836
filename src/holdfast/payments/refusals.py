"""What paying and completing can refuse beyond the common cases."""

from collections.abc import Iterable
from uuid import UUID

from holdfast.kernel.errors import Conflict, Forbidden, NotFound, Refusal


class InvalidWebhook(Refusal):
    """One answer for every reason: whoever may send these messages knows what is wrong, nobody else need learn it."""

    code = "invalid_webhook"

    def __init__(self) -> None:
        super().__init__("The message was not accepted.")


class ProviderNotFound(NotFound):
    code = "payment_provider_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such payment provider.")


class PaymentNotFound(NotFound):
    code = "payment_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such payment.")


class RefundNotFound(NotFound):
    code = "refund_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such refund.")


class ProviderKindFixed(Conflict):
    code = "provider_kind_fixed"


class ProviderInUse(Conflict):
    code = "provider_in_use"

    def __init__(self, payments: int) -> None:
        said = "Payments are under way with this provider. Disable it, and remove it when they are over."
        super().__init__(said, payments=payments)


class TooManyProviders(Conflict):
    code = "too_many_providers"

    def __init__(self, limit: int) -> None:
        super().__init__(f"An organization has at most {limit} payment providers.", limit=limit)


class ProviderDisabled(Conflict):
    code = "provider_disabled"

    def __init__(self) -> None:
        super().__init__("This payment provider is disabled: no payment can be begun with it.")


class CheckoutCancelled(Conflict):
    code = "checkout_cancelled"

    def __init__(self) -> None:
        super().__init__("This checkout was cancelled.")


class CheckoutCompleted(Conflict):
    code = "checkout_completed"

    def __init__(self) -> None:
        super().__init__("This checkout is completed already.")


class NoPrice(Conflict):
    code = "no_price"

    def __init__(self, holds: Iterable[UUID]) -> None:
        said = "The event has no price for some of these places, so nobody here knows what is to be paid."
        super().__init__(said, hold_ids=[str(hold) for hold in holds])


class NothingToPay(Conflict):
    code = "nothing_to_pay"

    def __init__(self) -> None:
        super().__init__("Nothing is to be paid for this checkout: complete it.")


class WrongAmount(Conflict):
    code = "wrong_amount"

    def __init__(self, due_minor: int, currency: str | None) -> None:
        said = f"The amount due is {due_minor} (in minor units); nothing was recorded."
        super().__init__(said, due_minor=due_minor, currency=currency)


class PaymentRequired(Refusal):
    code = "payment_required"


class PaymentReferenceUsed(Conflict):
    code = "payment_reference_used"

    def __init__(self) -> None:
        super().__init__("This payment reference was used for another checkout; nothing was changed.")


class PaymentReceived(Conflict):
    code = "payment_received"

    def __init__(self) -> None:
        super().__init__("The money has arrived: the payment cannot be cancelled any more.")


class PaymentOrphaned(Conflict):
    """The money was recorded and bought nothing: it is to be paid back."""

    code = "refund_due"


class PaymentNotStatable(Forbidden):
    code = "payment_reference_forbidden"

    def __init__(self) -> None:
        super().__init__(
            "A payment reference is stated by staff or by an API key. Pay with POST /api/checkouts/{id}/pay."
        )


class NotATestPayment(Conflict):
    code = "not_a_test_payment"

    def __init__(self) -> None:
        super().__init__("This payment was not begun with a test provider, or is over.")


class RefundDone(Conflict):
    code = "refund_done"

    def __init__(self) -> None:
        super().__init__("This refund was done before, under another reference.")
