"""Money taken outside, at a till or by a system of the organiser's: a person or their system states the reference. Pure."""

from collections.abc import Sequence
from typing import Final

from holdfast.accounts.principal import Principal
from holdfast.checkout.checkout import Line, due_minor, needs_payment
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.problems import Problem
from holdfast.payments.payment import AMOUNT_MAX_MINOR, REFERENCE_CHARS, unpriced
from holdfast.payments.refusals import NothingToPay, PaymentNotStatable, WrongAmount
from holdfast.seating.reading import text_fault

MANUAL: Final = "manual"


def require_statement(reference: str | None, amount_minor: int | None) -> None:
    """Every fault of what was said, before anything is looked at."""
    problems: list[Problem] = []
    fault = None if reference is None else text_fault(reference, REFERENCE_CHARS)
    if fault is not None:
        problems.append(Problem("/payment_reference", *fault))
    if amount_minor is not None:
        if reference is None:
            problems.append(Problem("/amount_minor", "no_reference", "needs a payment_reference beside it"))
        if not 0 <= amount_minor <= AMOUNT_MAX_MINOR:
            said = f"must be between 0 and {AMOUNT_MAX_MINOR}"
            problems.append(Problem("/amount_minor", "out_of_range", said))
    if problems:
        raise InvalidRequest(f"{problems[0].pointer}: {problems[0].detail}", problems)


def require_may_state(principal: Principal, buyers_state_payment: bool) -> None:
    if not principal.is_staff and not buyers_state_payment:
        raise PaymentNotStatable


def stated_amount_minor(lines: Sequence[Line], amount_minor: int | None, currency: str | None) -> int | None:
    """What was paid by what was said: the amount due, where nothing else was. Whoever says another is told at once."""
    if not needs_payment(lines):
        raise NothingToPay
    if unpriced(lines):
        return amount_minor
    due = due_minor(lines)
    if amount_minor not in (None, due):
        raise WrongAmount(due, currency)
    return due
