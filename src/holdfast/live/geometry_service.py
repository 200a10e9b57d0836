"""The geometry of an event's layout, made once a version and kept as it is sent: a version never changes."""

import asyncio
import gzip
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from enum import StrEnum
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call
from holdfast.kernel.errors import EventNotFound
from holdfast.live.geometry import decode, encode, geometry_of
from holdfast.seating.layout import Layout
from holdfast.seating.sight import may_see
from holdfast.seating.view import EventView
from holdfast.store.catalogue import Catalogue

THREAD_FROM_SEATS = 2_000
"""Larger layouts are encoded in a thread: the loop has requests to answer."""
GZIP_LEVEL = 9

LayoutKey = tuple[UUID, UUID, int | bytes, bytes]
"""Whose, which layout in which version, and what the event's overlay says of its zones."""


class Form(StrEnum):
    BINARY = "bin"
    JSON = "json"


class GeometryVersion:
    """One version of a layout, in the forms it was asked for."""

    __slots__ = ("bodies", "making", "seat_count", "version")

    def __init__(self, binary: bytes, seat_count: int) -> None:
        self.version = hashlib.blake2b(binary, digest_size=12).hexdigest()
        """Names the content: another layout, or another way of telling it, has another."""
        self.seat_count = seat_count
        self.bodies: dict[tuple[Form, bool], bytes] = {(Form.BINARY, False): binary}
        self.making: dict[tuple[Form, bool], asyncio.Task[bytes]] = {}

    @property
    def size(self) -> int:
        return sum(map(len, self.bodies.values()))


class HoldTypeShown(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    display_name: str
    display_color: str
    display_icon: str | None


class GeometryService:
    def __init__(self, catalogue: Catalogue, bytes_max: int = 64 * 1024 * 1024) -> None:
        """`bytes_max`: what is kept in memory; the least recently asked for goes first."""
        self._catalogue = catalogue
        self._bytes_max = bytes_max
        self._kept: OrderedDict[LayoutKey, GeometryVersion] = OrderedDict()
        self._encoding: dict[LayoutKey, asyncio.Task[GeometryVersion]] = {}

    async def hold_types(self, call: Call, event_id: UUID) -> list[HoldTypeShown]:
        """How what is held or sold is shown: the same to everybody who may see the event."""
        view = await self._catalogue.event(call.organization_id, event_id)
        if view is None or not may_see(call, view.id, view.status):
            raise EventNotFound
        return [
            HoldTypeShown(
                name=name,
                display_name=resolved.hold_type.display_name,
                display_color=resolved.hold_type.display_color,
                display_icon=resolved.hold_type.display_icon,
            )
            for name, resolved in sorted(view.hold_types.items())
        ]

    async def of_event(self, call: Call, event_id: UUID) -> GeometryVersion:
        """For everybody who may see the event."""
        view = await self._catalogue.event(call.organization_id, event_id)
        if view is None or not may_see(call, view.id, view.status):
            raise EventNotFound
        return await self.of_view(view)

    async def of_view(self, view: EventView) -> GeometryVersion:
        key = _key(view)
        known = self._kept.get(key)
        if known is not None:
            self._kept.move_to_end(key)
            return known
        task = self._encoding.get(key)
        if task is None:
            task = self._encoding[key] = asyncio.create_task(self._encode(key, view.layout))
            task.add_done_callback(lambda _: self._encoding.pop(key, None))
        # Shielded: one caller who gives up must not take it from the others who wait for it.
        return await asyncio.shield(task)

    async def body(self, geometry: GeometryVersion, form: Form, *, gzipped: bool) -> bytes:
        """As it is sent. Made when it is first asked for."""
        wanted = (form, gzipped)
        known = geometry.bodies.get(wanted)
        if known is not None:
            return known
        task = geometry.making.get(wanted)
        if task is None:
            task = geometry.making[wanted] = asyncio.create_task(self._make(geometry, form, gzipped))
            task.add_done_callback(lambda _: geometry.making.pop(wanted, None))
        return await asyncio.shield(task)

    async def _encode(self, key: LayoutKey, layout: Layout) -> GeometryVersion:
        binary = await _aside(layout.seat_count, lambda: encode(geometry_of(layout)))
        made = GeometryVersion(binary, layout.seat_count)
        self._kept[key] = made
        self._make_room()
        return made

    async def _make(self, geometry: GeometryVersion, form: Form, gzipped: bool) -> bytes:
        if gzipped:
            plain = await self.body(geometry, form, gzipped=False)
            made = await _aside(geometry.seat_count, lambda: gzip.compress(plain, GZIP_LEVEL, mtime=0))
        else:
            binary = geometry.bodies[Form.BINARY, False]
            made = await _aside(geometry.seat_count, lambda: _as_json(binary, geometry.version))
        geometry.bodies[form, gzipped] = made
        self._make_room()
        return made

    def _make_room(self) -> None:
        size = sum(kept.size for kept in self._kept.values())
        while size > self._bytes_max and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            size -= dropped.size


async def _aside(seat_count: int, work: Callable[[], bytes]) -> bytes:
    return work() if seat_count < THREAD_FROM_SEATS else await asyncio.to_thread(work)


def _as_json(binary: bytes, version: str) -> bytes:
    told = msgspec.to_builtins(decode(binary), str_keys=True)
    return msgspec.json.encode({"data": {"version": version, **told}})


def _key(view: EventView) -> LayoutKey:
    if view.layout_id is not None and view.layout_version is not None:
        return view.organization_id, view.layout_id, view.layout_version, view.overlay.zones_key
    # An event's own zones have no version, and may change while it is a draft: they are known by what they are.
    return view.organization_id, view.id, hashlib.blake2b(view.layout.pack(), digest_size=16).digest(), b""
