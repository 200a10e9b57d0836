"""Who is over the limit by what this process has seen: an estimate, for the order of the answers only."""

from holdfast.holds.recent import USERS_MAX, RecentHolds


def test_a_user_is_over_the_limit_with_one_hold_too_many_in_the_window() -> None:
    recent, user = RecentHolds(300), 7
    recent.note(user, 9, now=0.0)
    assert not recent.too_many(user, 1, 10, now=1.0)
    assert recent.too_many(user, 2, 10, now=1.0)
    recent.note(user, 1, now=100.0)
    assert recent.too_many(user, 1, 10, now=299.0)
    assert not recent.too_many(user, 1, 10, now=301.0)  # the first nine have left the window


def test_who_has_no_limit_or_no_name_is_never_over_it() -> None:
    recent, user = RecentHolds(300), 7
    recent.note(user, 100, now=0.0)
    recent.note(0, 100, now=0.0)
    assert not recent.too_many(user, 1, None, now=0.0)
    assert not recent.too_many(0, 1, 10, now=0.0)
    assert recent.too_many(8, 11, 10, now=0.0)


def test_it_remembers_a_bounded_number_of_users() -> None:
    recent, first = RecentHolds(300), 7
    recent.note(first, 10, now=0.0)
    for user in range(100, 100 + USERS_MAX):
        recent.note(user, 1, now=0.0)
    assert not recent.too_many(first, 1, 10, now=0.0)  # forgotten: the database knows
