"""Sales that were taken back, and the holds they came from."""

from datetime import UTC, datetime, timedelta

from holdfast.insight.sales_traced import SaleMove, Traced, trace

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def move(verb: str, seat: bytes = b"a", minute: int = 0, placed: int | None = None) -> SaleMove:
    return SaleMove(
        at=NOW + timedelta(minutes=minute),
        seat=seat,
        zone=(0, 0),
        verb=verb,
        placed_at=None if placed is None else NOW + timedelta(minutes=placed),
        hold_type=None if placed is None else "CART",
        placed_zone=None if placed is None else (0, 0),
    )


def traced(*moves: SaleMove) -> Traced:
    return trace(moves, lambda sale: sale.placed_at is not None and sale.placed_at >= NOW, lambda _: True)


def test_the_last_sale_before_is_the_one_that_is_taken_back() -> None:
    assert traced(move("convert", placed=1), move("revert_sale")) == Traced(1, 0)
    assert traced(move("convert", placed=-1), move("revert_sale")) == Traced(0, 0), (
        "its hold is not one of those that count"
    )
    assert traced(move("direct_sale"), move("revert_sale")) == Traced(0, 0)
    again = (move("convert", placed=1), move("revert_sale"), move("direct_sale"), move("revert_sale"))
    assert traced(*again) == Traced(1, 0)


def test_a_sale_that_came_from_elsewhere_is_not_traced() -> None:
    assert traced(move("convert", b"a", placed=1), move("revert_sale", b"b")) == Traced(0, 1)
    twice = (move("convert", placed=1), move("revert_sale"), move("revert_sale"))
    assert traced(*twice) == Traced(1, 1), "a sale is taken back once; the second one a migration must have brought"
