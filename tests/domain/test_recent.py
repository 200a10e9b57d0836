"""Who is over the limit by what this process has seen: an estimate, for the order of the answers only."""

from holdfast.holds.recent import USERS_MAX, RecentHolds
from holdfast.kernel.ids import new_id


def test_a_user_is_over_the_limit_with_one_hold_too_many_in_the_window() -> None:
    recent, user = RecentHolds(300), new_id()
    recent.note(user, 9, now=0.0)
    assert not recent.too_many(user, 1, 10, now=1.0)
    assert recent.too_many(user, 2, 10, now=1.0)
    recent.note(user, 1, now=100.0)
    assert recent.too_many(user, 1, 10, now=299.0)
    assert not recent.too_many(user, 1, 10, now=301.0)  # the first nine have left the window


def test_who_has_no_limit_or_no_name_is_never_over_it() -> None:
    recent, user = RecentHolds(300), new_id()
    recent.note(user, 100, now=0.0)
    recent.note(None, 100, now=0.0)
    assert not recent.too_many(user, 1, None, now=0.0)
    assert not recent.too_many(None, 1, 10, now=0.0)
    assert recent.too_many(new_id(), 11, 10, now=0.0)


def test_it_remembers_a_bounded_number_of_users() -> None:
    recent, first = RecentHolds(300), new_id()
    recent.note(first, 10, now=0.0)
    for _ in range(USERS_MAX):
        recent.note(new_id(), 1, now=0.0)
    assert not recent.too_many(first, 1, 10, now=0.0)  # forgotten: the database knows
