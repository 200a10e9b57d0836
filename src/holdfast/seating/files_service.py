"""Layouts in files and pictures: in and out of the store, whatever the format."""

import asyncio
from uuid import UUID

import msgspec

from holdfast.accounts.principal import Call, require_staff
from holdfast.compat.layout_file import LayoutFormat, Note
from holdfast.compat.layout_formats import CheckedFile, guessed_format, read_layout, relocated, write_layout
from holdfast.kernel.errors import EventNotFound, InvalidRequest
from holdfast.kernel.problems import Problem
from holdfast.seating.answers import LayoutAnswer
from holdfast.seating.picture import By, Scene, Standing, scene_of
from holdfast.seating.reading import text_fault
from holdfast.seating.service import SeatingService
from holdfast.seating.validate import NAME_CHARS, LayoutInvalid, parse_layout
from holdfast.store.catalogue import Catalogue
from holdfast.store.postgres import inventory
from holdfast.store.postgres.database import Database

THREAD_FROM_BYTES = 20_000
"""Larger files are read and written in a thread: the loop has requests to answer."""


class ImportedLayout(LayoutAnswer, frozen=True, kw_only=True):
    notes: tuple[Note, ...]
    """What the format could not carry, or what was assumed."""


class FileCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A file whose layout could be stored."""

    format: LayoutFormat
    name: str | None
    seat_count: int
    total_capacity: int
    zones: int
    notes: tuple[Note, ...]


class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    format: LayoutFormat
    name: str
    version: int
    content: bytes
    notes: tuple[Note, ...]


class LayoutFiles:
    def __init__(self, database: Database, catalogue: Catalogue, seating: SeatingService) -> None:
        self._database = database
        self._catalogue = catalogue
        self._seating = seating

    async def check(self, call: Call, layout_format: LayoutFormat | None, content: bytes) -> FileCheck:
        """Stores nothing. Raises LayoutInvalid with every problem, by its place in the file."""
        require_staff(call)
        found = layout_format or guessed_format("", content)
        checked = await _read(found, content)
        return FileCheck(
            format=found,
            name=checked.name,
            seat_count=checked.layout.seat_count,
            total_capacity=checked.layout.total_capacity,
            zones=len(checked.layout.zones),
            notes=checked.notes,
        )

    async def import_layout(
        self, call: Call, venue_id: UUID, name: str | None, layout_format: LayoutFormat | None, content: bytes
    ) -> ImportedLayout:
        """Without a name, the file's own."""
        require_staff(call)
        checked = await _read(layout_format or guessed_format("", content), content)
        wanted = name if name is not None else checked.name
        if wanted is None:
            said = "is missing, and the file names none"
            raise InvalidRequest(f"name {said}.", [Problem("/name", "missing", said)])
        fault = text_fault(wanted, NAME_CHARS)
        if fault is not None:
            raise InvalidRequest(f"name {fault[1]}.", [Problem("/name", *fault)])
        try:
            stored = await self._seating.create_layout(call, venue_id, wanted, checked.config)
        except LayoutInvalid as error:  # the organization's policy
            raise relocated(error, checked.places) from None
        return _with_notes(stored, checked)

    async def import_version(
        self, call: Call, layout_id: UUID, layout_format: LayoutFormat | None, content: bytes
    ) -> ImportedLayout:
        require_staff(call)
        checked = await _read(layout_format or guessed_format("", content), content)
        try:
            stored = await self._seating.create_version(call, layout_id, checked.config)
        except LayoutInvalid as error:
            raise relocated(error, checked.places) from None
        return _with_notes(stored, checked)

    async def export(
        self, call: Call, layout_id: UUID, version: int | None, layout_format: LayoutFormat
    ) -> ExportedFile:
        found = await self._seating.get_layout(call, layout_id, version)
        assert isinstance(found.config, msgspec.Raw)
        config, name = bytes(found.config), found.name
        if layout_format is LayoutFormat.NATIVE or len(config) < THREAD_FROM_BYTES:
            written = write_layout(layout_format, config, name)
        else:
            written = await asyncio.to_thread(write_layout, layout_format, config, name)
        return ExportedFile(
            format=layout_format, name=name, version=found.version, content=written.content, notes=written.notes
        )

    async def layout_scene(self, call: Call, layout_id: UUID, version: int | None, by: By) -> Scene:
        found = await self._seating.get_layout(call, layout_id, version)
        assert isinstance(found.config, msgspec.Raw)
        config, name = bytes(found.config), found.name

        def scene() -> Scene:
            return scene_of(parse_layout(layout_id, msgspec.json.decode(config)), name, by=by)

        return await asyncio.to_thread(scene)

    async def event_scene(self, call: Call, event_id: UUID, by: By) -> Scene:
        """As the seats stand now. For staff: hold types are nobody else's business."""
        require_staff(call)
        view = await self._catalogue.fresh_event(call.organization_id, event_id)
        if view is None:
            raise EventNotFound
        layout = view.layout
        count = layout.seat_count
        async with self._database.transaction(call.organization_id) as tx:
            seats = await inventory.list_seats(
                tx, call.organization_id, event_id, range(count), state=None, hold_type=None, limit=count
            )
            zones = await inventory.list_zones(tx, call.organization_id, event_id)
        # A draft has no inventory yet: everything in it is to be had.
        states = ["available"] * count
        hold_types: list[str | None] = [None] * count
        for row in seats:
            states[row["ordinal"]] = row["state"]
            hold_types[row["ordinal"]] = row["hold_type"]
        counts = {row["zone_no"]: (row["held"], row["sold"]) for row in zones}
        standing = Standing(states=states, hold_types=hold_types, counts=counts)
        return await asyncio.to_thread(scene_of, layout, view.name, by=by, standing=standing)


async def _read(layout_format: LayoutFormat, content: bytes) -> CheckedFile:
    if len(content) < THREAD_FROM_BYTES:
        return read_layout(layout_format, content)
    return await asyncio.to_thread(read_layout, layout_format, content)


def _with_notes(stored: LayoutAnswer, checked: CheckedFile) -> ImportedLayout:
    return ImportedLayout(**msgspec.structs.asdict(stored), notes=checked.notes)
