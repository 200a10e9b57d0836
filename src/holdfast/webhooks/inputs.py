"""What organisers say about an endpoint: checked, every fault at once."""

from collections.abc import Iterable

from holdfast.kernel.errors import Unprocessable
from holdfast.kernel.problems import Problem, quoted
from holdfast.seating.reading import text_fault
from holdfast.webhooks.message import KINDS

DESCRIPTION_CHARS = 200


def kind_problems(kinds: Iterable[str]) -> list[Problem]:
    return [
        Problem(f"/kinds/{place}", "unknown_kind", f"there is no kind {quoted(kind)}; known are {', '.join(KINDS)}")
        for place, kind in enumerate(kinds)
        if kind not in KINDS
    ]


def description_problems(description: str | None) -> list[Problem]:
    fault = None if description is None else text_fault(description, DESCRIPTION_CHARS)
    return [] if fault is None else [Problem("/description", *fault)]


def refuse(problems: list[Problem]) -> None:
    if problems:
        raise Unprocessable(f"{problems[0].pointer}: {problems[0].detail}", problems)
