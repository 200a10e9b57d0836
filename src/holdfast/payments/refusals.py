"""What paying can refuse beyond the common cases."""

from holdfast.kernel.errors import Conflict, Refusal


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
