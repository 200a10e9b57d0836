"""What organisers type about people and keys: checked, and put in order."""

from collections.abc import Iterable
from typing import Any

import msgspec

from holdfast.accounts.credentials import SCOPES
from holdfast.kernel.errors import InvalidRequest
from holdfast.kernel.problems import Problem
from holdfast.seating.reading import text_fault

NAME_CHARS = 200
MAX_TIERS = 50


def require_texts(texts: dict[str, Any]) -> None:
    problems = [
        Problem(pointer, *fault)
        for pointer, text in texts.items()
        if text is not None and text is not msgspec.UNSET and (fault := text_fault(text, NAME_CHARS))
    ]
    if problems:
        raise InvalidRequest(f"{problems[0].pointer}: {problems[0].detail}", problems)


def read_tiers(pointer: str, tiers: Iterable[str]) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(tiers))
    if len(wanted) > MAX_TIERS:
        problem = Problem(pointer, "too_many_tiers", f"at most {MAX_TIERS} tiers")
        raise InvalidRequest(f"{pointer}: {problem.detail}", [problem])
    require_texts({f"{pointer}/{place}": tier for place, tier in enumerate(wanted)})
    return tuple(sorted(wanted))


def read_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    wanted = tuple(dict.fromkeys(scopes))
    problems = [
        Problem(f"/scopes/{place}", "unknown_scope", f"must be one of {', '.join(SCOPES)}")
        for place, scope in enumerate(wanted)
        if scope not in SCOPES
    ]
    if not wanted:
        problems = [Problem("/scopes", "empty", f"name at least one of {', '.join(SCOPES)}")]
    if problems:
        raise InvalidRequest(f"{problems[0].pointer}: {problems[0].detail}", problems)
    return wanted
