"""What a reader may rely on everywhere: who imports whom, whose rows a query reads, and how files are named.

Each guard is a function from sources to the faults in them, and is shown here to find a fault when there is one.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

Sources = Mapping[str, str]
"""Texts by path; of Python modules, relative to `src/holdfast`."""

PACKAGE = "holdfast"
SLICES = (
    "accounts",
    "holds",
    "seating",
    "insight",
    "live",
    "compat",
    "webhooks",
    "allocation",
    "checkout",
    "payments",
    "tickets",
    "gates",
)
WITH_IO = frozenset(
    (
        "checkout/ending.py",
        "checkout/box_office.py",
        "checkout/reading.py",
        "accounts/sign_in_service.py",
        "compat/booking_v2.py",
        "holds/best_available.py",
        "holds/orphan_guard.py",
        "holds/companions.py",
        "insight/analytics_service.py",
        "insight/invariants.py",
        "insight/occupancy_service.py",
        "insight/public_service.py",
        "insight/refusals.py",
        "insight/registry.py",
        "live/availability.py",
        "live/geometry_service.py",
        "checkout/reading.py",
        "payments/providers_service.py",
        "payments/receiving.py",
        "payments/settlement.py",
        "seating/offers.py",
        "seating/event_writing.py",
        "seating/places_service.py",
        "seating/series_service.py",
        "seating/files_service.py",
        "seating/migration_service.py",
        "tickets/reading.py",
        "tickets/returns_service.py",
    )
)
"""Files of a slice, beside its service.py, that talk to the store. Everything else in a slice is pure."""
WIRING = ("app.py", "cli.py", "server.py", "server_process.py", "deployment.py", "commands/", "bench/", "faults/")
"""Who may put the parts of the product together."""
LINES_MAX = 600
LONGER: dict[str, int] = {}
"""Files that are too long and to be divided: they may not grow."""


@pytest.fixture(scope="module")
def package(repository: Path) -> Sources:
    return read(repository / "src" / PACKAGE, "*.py")


@pytest.fixture(scope="module")
def texts(repository: Path) -> Sources:
    """Every file of the repository that people read."""
    found: dict[str, str] = {}
    for folder in ("src", "tests", "docs", "deploy", "scripts", "examples", ".ci", ".github"):
        found |= {f"{folder}/{path}": text for path, text in read(repository / folder, "*").items()}
    for path in repository.iterdir():
        if (
            path.is_file()
            and path.suffix in (".md", ".toml", ".lock", ".yml", ".yaml", "")
            and path.name != ".coverage"
        ):
            found[path.name] = path.read_text("utf-8", errors="replace")
    return found


def read(root: Path, pattern: str) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): path.read_text("utf-8", errors="replace")
        for path in sorted(root.rglob(pattern))
        if path.is_file() and "__pycache__" not in path.parts
    }


# Who imports whom -----------------------------------------------------------------------------------------------------
def imports(source: str) -> Iterator[str]:
    """Every module imported, wherever the import stands; `from a import b` counts as `a.b`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used here"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def forbidden_of(path: str) -> tuple[str, ...]:
    """What a module may not import, as prefixes."""
    part = path.split("/")[0]
    wiring = tuple(
        f"{PACKAGE}.{name}" for name in ("app", "cli", "server", "deployment", "commands", "bench", "faults")
    )
    if path.startswith(WIRING):
        return ()
    if part == "kernel":
        return (PACKAGE, "asyncpg", "litestar")
    if part in SLICES:
        beyond = (f"{PACKAGE}.http", f"{PACKAGE}.workers", "litestar", *wiring)
        if path.endswith("/service.py") or path in WITH_IO:
            return beyond
        return (f"{PACKAGE}.store", "asyncpg", *beyond)
    if part == "store":
        services = tuple(f"{PACKAGE}.{name}.service" for name in SLICES)
        return (*services, f"{PACKAGE}.compat", f"{PACKAGE}.http", f"{PACKAGE}.workers", "litestar", *wiring)
    if part == "http":
        return (f"{PACKAGE}.workers", *wiring)
    if part == "workers":
        return (f"{PACKAGE}.http", "litestar", *wiring)
    return (f"{PACKAGE}.workers", f"{PACKAGE}.app")


ALLOWED = {("kernel/ids.py", "asyncpg.pgproto.pgproto.UUID")}


def import_faults(sources: Sources) -> list[str]:
    faults: list[str] = []
    for path, source in sources.items():
        for name in imports(source):
            if (path, name) in ALLOWED or (path.startswith("kernel/") and name.startswith(f"{PACKAGE}.kernel.")):
                continue
            if any(name == prefix or name.startswith(f"{prefix}.") for prefix in forbidden_of(path)):
                faults.append(f"{path} imports {name}")
    return faults


def test_parts_import_only_what_lies_below_them(package: Sources) -> None:
    assert len(package) > 50
    assert import_faults(package) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("kernel/errors.py", "from holdfast.holds import plan"),
        ("kernel/errors.py", "import asyncpg"),
        ("kernel/ids.py", "import asyncpg"),
        ("holds/plan.py", "from holdfast.store.postgres.database import Database"),
        ("holds/plan.py", "from holdfast.store import catalogue"),
        ("holds/claims.py", "import asyncpg"),
        ("seating/event.py", "from litestar import Request"),
        ("accounts/standing.py", "def late() -> None:\n    import holdfast.http.auth"),
        ("insight/brand_new.py", "from holdfast.store.postgres import holds"),
        ("holds/service.py", "from holdfast.http.problem import STATUSES"),
        ("holds/service.py", "from holdfast.workers.expire_holds import ExpireHolds"),
        ("compat/booking_v2.py", "from holdfast.http import auth"),
        ("store/catalogue.py", "from holdfast.seating.service import SeatingService"),
        ("store/postgres/holds.py", "from holdfast.http.problem import STATUSES"),
        ("http/holds.py", "from holdfast.workers import loop"),
        ("http/holds.py", "from holdfast.app import Application"),
        ("workers/loop.py", "from holdfast.http import api"),
        ("settings.py", "from holdfast.app import Application"),
    ],
)
def test_an_import_that_goes_upward_is_found(path: str, source: str) -> None:
    assert len(import_faults({path: source})) == 1


def test_imports_that_go_downward_are_let_through() -> None:
    below = {
        "kernel/ids.py": "from asyncpg.pgproto.pgproto import UUID\nfrom holdfast.kernel.errors import Refusal",
        "holds/plan.py": "from holdfast.seating.view import EventView",
        "holds/service.py": "from holdfast.store.catalogue import Catalogue",
        "http/holds.py": "from holdfast.holds.service import HoldsService",
        "app.py": "from holdfast.workers.loop import Duties\nfrom holdfast.http.api import build_api",
    }
    assert import_faults(below) == []


# Whose rows a query reads ---------------------------------------------------------------------------------------------
def tenant_tables(repository: Path) -> dict[str, str]:
    """Each table of the migrations with the column that says whose its rows are."""
    tables: dict[str, str] = {}
    for text in read(repository / "src" / PACKAGE / "store/postgres/migrations", "*.sql").values():
        for name, columns in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", text, re.DOTALL):
            if "organization_id" in columns:
                tables[name] = "organization_id"
            elif "tenant_id" in columns:
                tables[name] = "tenant_id"
    return tables


def unscoped_tables(statement: str, tables: Mapping[str, str]) -> list[str]:
    """Tables that a statement reads or writes without saying whose rows it means.

    Each mention of a table needs a condition on the column of its own, or the column among those inserted.
    """
    named: dict[str, list[str]] = {}
    for table in re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:ONLY\s+)?(\w+)\b", statement):
        if table in tables:
            named.setdefault(tables[table], []).append(table)
    found: list[str] = []
    for column, mentioned in named.items():
        conditions = len(re.findall(rf"\b{column}\s*=", statement))
        inserted = len(re.findall(rf"\bINTO\s+\w+\s*\(\s*{column}\b", statement))
        if conditions + inserted < len(mentioned):
            found += mentioned
    return found


def statements(source: str) -> Iterator[str]:
    """The SQL of a Python module: its strings, with the module's own strings put into those made of parts."""
    tree = ast.parse(source)
    prose = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    named: dict[str, ast.expr] = {}
    for assigned in tree.body:
        if isinstance(assigned, ast.Assign) and isinstance(assigned.targets[0], ast.Name):
            named[assigned.targets[0].id] = assigned.value
    parts = {
        inner.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for inner in node.values
        if isinstance(inner, ast.FormattedValue) and isinstance(inner.value, ast.Name)
    }
    skipped = prose | {id(named[name]) for name in parts if name in named}
    within = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for inner in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in skipped | within:
            text = _text(node, named)
            if text is not None:
                yield text


def _text(node: ast.expr, named: Mapping[str, ast.expr]) -> str | None:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    text = ""
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            whole = isinstance(value.value, ast.Name) and value.value.id in named
            text += (_text(named[value.value.id], named) or "") if whole else "…"  # type: ignore[attr-defined]
        else:
            text += _text(value, named) or ""
    return text


ACROSS_ORGANIZATIONS = (
    # In the engine's role, which sees these columns and no others.
    "SELECT organization_id FROM organizations",
    "SELECT organization_id FROM organizations WHERE tenant_id = $1",
    "SELECT organization_id FROM events WHERE id = $1 AND status IN ('published', 'live') LIMIT 1",
    "FROM holds h WHERE h.status = 'active' AND h.held_until <= holdfast_now() - make_interval(secs => $1)",
    "FROM holds h WHERE h.status = 'active' AND h.held_until IS NOT NULL",
    "FROM checkouts c WHERE c.status IN ('open', 'paying')",
    "FROM outbox ORDER BY xid LIMIT $1) DELETE FROM outbox o USING oldest f",
    "SELECT DISTINCT organization_id, event_id FROM occupancy_changes",
    "SELECT organization_id, id FROM events WHERE status IN ('published', 'live')",
    "SELECT DISTINCT organization_id FROM webhook_endpoints WHERE enabled",
    "SELECT c.organization_id FROM checkouts c WHERE c.id = $1 LIMIT 1",
    "FROM payments p WHERE p.status = 'received' AND p.received_at <= holdfast_now() - make_interval(secs => $1)",
    "SELECT count(*) FROM webhook_deliveries WHERE status = 'pending' AND next_attempt_at <= holdfast_now()",
    "FROM outbox o WHERE o.xid >= pg_snapshot_xmin($1::text::pg_snapshot)"
    " AND NOT pg_visible_in_snapshot(o.xid, $1::text::pg_snapshot) AND (o.organization_id = ANY ($2)) IS TRUE",
)


def query_faults(sources: Sources, tables: Mapping[str, str]) -> list[str]:
    faults: list[str] = []
    for path, source in sources.items():
        for statement in statements(source):
            plain = " ".join(statement.split())
            across = any(
                plain == known or (known.startswith("FROM") and known in plain) for known in ACROSS_ORGANIZATIONS
            )
            unscoped = [] if across else unscoped_tables(statement, tables)
            if unscoped:
                faults.append(f"{path}: {', '.join(unscoped)} without its owner in: {plain[:100]}")
    return faults


FUNCTIONS_ACROSS = frozenset(("50_feed.sql",))
"""In the engine's role: whoever follows the change feed follows it for all organizations."""


def function_faults(sources: Sources, tables: Mapping[str, str]) -> list[str]:
    faults: list[str] = []
    for path, source in sources.items():
        if path in FUNCTIONS_ACROSS:
            continue
        for statement in re.sub(r"--[^\n]*", "", source).split(";"):
            unscoped = unscoped_tables(statement, tables)
            if unscoped:
                faults.append(
                    f"{path}: {', '.join(unscoped)} without its owner in: {' '.join(statement.split())[:100]}"
                )
    return faults


def test_every_query_says_whose_rows_it_means(repository: Path) -> None:
    tables = tenant_tables(repository)
    assert len(tables) >= 18
    assert tables["tenants"] == "tenant_id"
    store = read(repository / "src" / PACKAGE / "store/postgres", "*.py")
    assert sum(1 for source in store.values() for _ in statements(source)) > 100
    assert query_faults(store, tables) == []


def test_every_statement_of_the_sql_functions_says_whose_rows_it_means(repository: Path) -> None:
    functions = read(repository / "src" / PACKAGE / "store/postgres/functions", "*.sql")
    assert len(functions) >= 8
    assert function_faults(functions, tenant_tables(repository)) == []


@pytest.mark.parametrize(
    "source",
    [
        'Q = "SELECT * FROM holds WHERE id = $1"',
        'Q = """\nUPDATE events SET name = $2\nWHERE id = $1\n"""',
        'Q = "DELETE FROM event_whitelist"',
        'Q = "INSERT INTO venues (id, name) VALUES ($1, $2)"',
        'Q = "SELECT * FROM tenants"',
        'Q = "SELECT organization_id FROM holds"',
        'Q = "SELECT 1 FROM events e JOIN holds h ON h.event_id = e.id WHERE e.organization_id = $1"',
        'def f(c):\n    return f"SELECT {c} FROM users WHERE id = $1"',
        '_PART = "SELECT * FROM holds h"\nQ = f"{_PART} WHERE h.id = $1"',
        '_PART = "SELECT * FROM holds h"\n\nasync def f(tx):\n    await tx.fetch(f"{_PART} ORDER BY 1")',
    ],
)
def test_a_query_for_anybodys_rows_is_found(repository: Path, source: str) -> None:
    assert len(query_faults({"store/postgres/x.py": source}, tenant_tables(repository))) == 1


def test_a_query_for_ones_own_rows_is_let_through(repository: Path) -> None:
    source = '''"""Rows FROM holds, in words."""
_PART = "SELECT * FROM holds h"
Q = f"{_PART} WHERE h.organization_id = $1"
R = "INSERT INTO venues (organization_id, id) VALUES ($1, $2)"
S = "SELECT holdfast_now()"
'''
    assert query_faults({"store/postgres/x.py": source}, tenant_tables(repository)) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE holds h SET status = 'expired' WHERE h.id = ANY (p_holds);",
        "BEGIN SELECT 1; DELETE FROM outbox WHERE id = 1; END",
        "-- organization_id = p_org\nSELECT * FROM event_seats s;",
        "WITH x AS (UPDATE event_seats s SET state = 'held' WHERE s.organization_id = p_org) SELECT * FROM events e;",
    ],
)
def test_a_statement_for_anybodys_rows_is_found(repository: Path, statement: str) -> None:
    assert len(function_faults({"x.sql": statement}, tenant_tables(repository))) == 1


# Words, lengths and names ---------------------------------------------------------------------------------------------
WORKPLACE = re.compile(r"(?<![\w.])/" + r"work/")
REGISTRIES = re.compile("|".join(re.escape(".".join(host)) for host in (
    ("pypi", "org"), ("files", "pythonhosted", "org"), ("registry", "npmjs", "org"), ("registry", "yarnpkg", "com"),
    ("docker", "io"), ("ghcr", "io"), ("quay", "io"), ("crates", "io"),
)))  # fmt: skip
NAMELESS = frozenset(("utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"))


def word_faults(sources: Sources) -> list[str]:
    faults = [f"{path} names a place on somebody's machine" for path, text in sources.items() if WORKPLACE.search(text)]
    for path, text in sources.items():
        found = None if path == "uv.lock" else REGISTRIES.search(text)
        if found:
            faults.append(f"{path} names {found[0]}")
    return faults


def length_faults(sources: Sources) -> list[str]:
    lengths = {path: text.count("\n") for path, text in sources.items() if path.startswith("src/")}
    return [f"{path} has {lines} lines" for path, lines in lengths.items() if lines > LONGER.get(path, LINES_MAX)]


def name_faults(sources: Sources) -> list[str]:
    """A file is named after what is in it."""
    return [path for path in sources if NAMELESS & {part.split(".")[0].strip("_").lower() for part in path.split("/")}]


def test_no_file_names_a_machine_or_a_registry(texts: Sources) -> None:
    assert len(texts) > 100
    assert "README.md" in texts
    assert word_faults(texts) == []


def test_files_are_short_enough_to_read_and_named_after_what_they_hold(texts: Sources) -> None:
    assert length_faults(texts) == []
    assert name_faults(texts) == []


def test_bad_words_lengths_and_names_are_found() -> None:
    place, host = "/wo" + "rk/", "https://" + "py" + "pi.org/simple"
    assert word_faults({"docs/a.md": f"see {place}main"}) == ["docs/a.md names a place on somebody's machine"]
    assert word_faults({"uv.lock": f"{place}x"}) != []
    assert len(word_faults({"pyproject.toml": f'index = "{host}"'})) == 1
    assert word_faults({"uv.lock": host, "docs/b.md": "at work/life balance; framework/x"}) == []
    assert length_faults({"src/holdfast/a.py": "\n" * 601}) == ["src/holdfast/a.py has 601 lines"]
    assert length_faults({"src/holdfast/a.py": "\n" * 600}) == []
    bad = ("src/holdfast/utils.py", "src/holdfast/holds/helpers.py", "tests/manager/a.py", "src/_util.py")
    assert name_faults(dict.fromkeys(bad, "")) == list(bad)
    assert name_faults({"src/holdfast/holds/plan.py": "", "docs/management.md": ""}) == []
