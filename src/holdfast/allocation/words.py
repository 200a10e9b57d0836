"""What was chosen, in a buyer's words. Pure."""

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby

from holdfast.allocation.floor import Floor
from holdfast.allocation.wish import Rung
from holdfast.seating.layout import Layout

Clusters = Sequence[Sequence[int]]


def described(floor: Floor, clusters: Clusters, rung: Rung, alone: Collection[int] = ()) -> str:
    """One or two sentences: who sits together where, what was split and how far, and who is left alone."""
    if rung is Rung.NEAREST:
        text = _spread(floor, clusters)
    elif len(clusters) == 1:
        (cluster,) = clusters
        together = "" if len(cluster) == 1 else " together"
        text = (
            f"{_counted(len(cluster))}{together} in {_row(floor, cluster[0])}, {seat_numbers(floor.layout, cluster)}."
        )
    else:
        text = _split(floor, clusters)
    if alone:
        text += f" This leaves {_listed(_named(floor, seat) for seat in sorted(alone))} without a free neighbour."
    return text


def _split(floor: Floor, clusters: Clusters) -> str:
    """The largest group first; the others say how far from it they are."""
    main, *others = sorted(clusters, key=lambda cluster: (-len(cluster), floor.place[cluster[0]]))
    parts = [f"{len(main)} together" if len(main) > 1 else "1"]
    parts[0] += f" in {_row(floor, main[0])}, {seat_numbers(floor.layout, main)}"
    for cluster in others:
        count = f"{len(cluster)} together" if len(cluster) > 1 else "1"
        parts.append(
            f"{count} in row {floor.rows[int(floor.row_of[cluster[0]])].name}, {seat_numbers(floor.layout, cluster)}"
        )
        parts[-1] += f", {_apart(floor, main, cluster)}"
    total = sum(map(len, clusters))
    return f"{_counted(total)} in {_number(len(clusters))} groups: {'; '.join(parts)}."


def _apart(floor: Floor, main: Sequence[int], other: Sequence[int]) -> str:
    behind = int(floor.row_of[other[0]]) - int(floor.row_of[main[0]])
    if behind == 0:
        first, second = sorted((main, other), key=lambda cluster: int(floor.place[cluster[0]]))
        between = floor.layout.numbers[second[0]] - floor.layout.numbers[first[-1]] - 1
        if between == 0:
            return "across the aisle"
        return f"{'one seat' if between == 1 else f'{between} seats'} away"
    rows = "one row" if abs(behind) == 1 else f"{_number(abs(behind))} rows"
    return f"{rows} {'behind' if behind > 0 else 'in front'}"


def _spread(floor: Floor, clusters: Clusters) -> str:
    seats = sorted((int(floor.place[seat]), seat) for cluster in clusters for seat in cluster)
    parts = []
    for _, group in groupby((seat for _, seat in seats), key=lambda seat: int(floor.row_of[seat])):
        row = list(group)
        parts.append(f"{len(row)} in {_row(floor, row[0])} ({seat_numbers(floor.layout, row)})")
    if len(seats) == 1:
        return f"{_counted(1)} in {_row(floor, seats[0][1])}, {seat_numbers(floor.layout, [seats[0][1]])}."
    return f"{_counted(len(seats))}, spread: {', '.join(parts)}."


def _row(floor: Floor, seat: int) -> str:
    row = floor.rows[int(floor.row_of[seat])]
    return f"{floor.layout.zones[row.zone_no].name}, row {row.name}"


def seat_numbers(layout: Layout, seats: Sequence[int]) -> str:
    """`seat 4`, `seats 3–6`, `seats 1, 4, 9–10`."""
    numbers = sorted(layout.numbers[seat] for seat in seats)
    stretches: list[list[int]] = []
    for number in numbers:
        if stretches and number == stretches[-1][-1] + 1:
            stretches[-1].append(number)
        else:
            stretches.append([number])
    spelled = [str(s[0]) if len(s) == 1 else f"{s[0]}–{s[-1]}" for s in stretches]
    return f"seat{'' if len(numbers) == 1 else 's'} {', '.join(spelled)}"


def _named(floor: Floor, seat: int) -> str:
    return f"row {floor.rows[int(floor.row_of[seat])].name} seat {floor.layout.numbers[seat]}"


def _listed(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _counted(seats: int) -> str:
    return "1 seat" if seats == 1 else f"{seats} seats"


def _number(count: int) -> str:
    return ("no", "one", "two", "three", "four", "five", "six")[count] if count <= 6 else str(count)
