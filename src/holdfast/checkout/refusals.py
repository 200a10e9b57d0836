"""What a checkout refuses."""

from collections.abc import Iterable
from uuid import UUID

from holdfast.checkout.checkout import Checkout, CheckoutStatus
from holdfast.kernel.errors import Conflict, HoldInCheckout


class NoHolds(Conflict):
    """There is nothing that could be taken into a checkout."""

    code = "no_holds"


class HoldsExpired(Conflict):
    """`hold_ids`: those that are over. Nothing was changed."""

    code = "holds_expired"

    def __init__(self, hold_ids: Iterable[UUID], advice: str = "") -> None:
        listed = sorted(map(str, hold_ids))
        said = "A hold has ended" if len(listed) == 1 else f"{len(listed)} holds have ended"
        advice = advice or "Whoever still wants the places must hold them again."
        super().__init__(f"{said}, and nothing was done. {advice}", hold_ids=listed)


class SeveralOwners(Conflict):
    code = "several_owners"


class CheckoutExpired(Conflict):
    code = "checkout_expired"

    def __init__(self, hold_ids: Iterable[UUID] = ()) -> None:
        super().__init__("The time of this checkout is over.")
        listed = sorted(map(str, hold_ids))
        if listed:
            self.facts["hold_ids"] = listed


class CheckoutPaying(Conflict):
    """What is being paid for stays as it is."""

    code = "checkout_paying"

    def __init__(
        self, said: str = "This checkout is being paid for: cancel the payment first.", **facts: object
    ) -> None:
        super().__init__(said, **facts)


class CheckoutEnded(Conflict):
    """`checkout_status` says how."""

    code = "checkout_not_open"


def held_elsewhere(hold_ids: Iterable[UUID], said: str = "A hold is in a checkout already.") -> HoldInCheckout:
    return HoldInCheckout(said, hold_ids=sorted(map(str, hold_ids)))


def require_open(checkout: Checkout) -> None:
    """Only what is open can be changed."""
    match checkout.seen_as:
        case CheckoutStatus.OPEN:
            return
        case CheckoutStatus.PAYING:
            raise CheckoutPaying
        case CheckoutStatus.EXPIRED:
            raise CheckoutExpired
        case ended:
            raise CheckoutEnded(f"This checkout is {ended.value}.", checkout_status=ended.value)
