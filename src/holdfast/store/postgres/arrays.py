"""Array parameters as PostgreSQL's own text form, `{1,2,NULL}`, cast in the query (`$1::text::integer[]`).

The driver's array encoder examines every element through an abstract base class, which took more time than all the rest
of a batch's way out of this process; joining strings takes a tenth of it (see docs/decisions/0005).
"""

from collections.abc import Iterable
from uuid import UUID


def integers(values: Iterable[int | None]) -> str:
    return "{" + ",".join(["NULL" if v is None else str(v) for v in values]) + "}"


def uuids(values: Iterable[UUID | None]) -> str:
    return "{" + ",".join(["NULL" if v is None else v.hex for v in values]) + "}"


def booleans(values: Iterable[bool]) -> str:
    return "{" + ",".join(["t" if v else "f" for v in values]) + "}"


def texts(values: Iterable[str | None]) -> str:
    return "{" + ",".join(["NULL" if v is None else quoted(v) for v in values]) + "}"


def quoted(value: str) -> str:
    if "\\" in value or '"' in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{value}"'
