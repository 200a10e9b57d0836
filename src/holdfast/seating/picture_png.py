"""The scene of `picture.py` as a PNG."""

import io
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from holdfast.seating.picture import PAPER, Label, Scene, Shape

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

SHARPER = 2
"""Painted so many times larger, and made smaller at the end: that smooths every edge."""
PIXELS_MAX = 60_000_000
"""Of the larger painting; a plan that is very long gets fewer pixels across instead of more memory."""
LEAST_TEXT_PX = 9
"""Smaller writing, in the larger painting, cannot be read and is left out."""
_FONTS = Path("/usr/share/fonts/truetype/dejavu")


def draw_png(scene: Scene, width: int) -> bytes:
    scale = width * SHARPER / scene.width
    scale *= min(1.0, (PIXELS_MAX / (scale * scene.width * scale * scene.height)) ** 0.5)
    size = max(1, round(scene.width * scale)), max(1, round(scene.height * scale))
    image = Image.new("RGB", size, PAPER)
    painter = _Painter(image, scene, scale)
    painter.seats()
    painter.boxes()
    painter.spots()
    for label in scene.labels:
        painter.label(label)
    smaller = image.resize((max(1, size[0] // SHARPER), max(1, size[1] // SHARPER)), Image.Resampling.BOX)
    out = io.BytesIO()
    # Few colours: a palette makes the file a third as large.
    smaller.quantize(128, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(out, "PNG", optimize=False)
    return out.getvalue()


class _Painter:
    def __init__(self, image: Image.Image, scene: Scene, scale: float) -> None:
        self._image = image
        self._draw = ImageDraw.Draw(image)
        self._scene = scene
        self._scale = scale

    def seats(self) -> None:
        scene = self._scene
        xs = ((scene.xs - scene.left) * self._scale).tolist()
        ys = ((scene.ys - scene.top) * self._scale).tolist()
        radius = max(1.8, scene.radius * self._scale)
        for at, mark in enumerate(scene.marks):
            for ordinal in np.flatnonzero(scene.mark_of == at).tolist():
                self._shape(scene.shapes[ordinal], xs[ordinal], ys[ordinal], radius, mark.fill, mark.outline)

    def spots(self) -> None:
        for spot in self._scene.spots:
            x, y = self._at(spot.x, spot.y)
            self._shape(spot.shape, x, y, spot.radius * self._scale, spot.fill, spot.outline)

    def boxes(self) -> None:
        for box in self._scene.boxes:
            corners = (*self._at(box.x, box.y), *self._at(box.x + box.width, box.y + box.height))
            line = max(1, round(box.height / 60 * self._scale))
            self._draw.rounded_rectangle(corners, box.rounding * self._scale, box.fill, box.outline, line)

    def label(self, label: Label) -> None:
        size = round(label.size * self._scale)
        if size < LEAST_TEXT_PX:
            return
        x, y = self._at(label.x, label.y)
        anchor = "ls" if label.anchor == "start" else "ms"
        halo = max(1, round(0.12 * size)) if label.halo else 0
        font = _font(size, label.bold)
        self._draw.text((x, y), label.text, label.colour, font, anchor, stroke_width=halo, stroke_fill=PAPER)

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return (x - self._scene.left) * self._scale, (y - self._scene.top) * self._scale

    def _shape(self, shape: Shape, x: float, y: float, radius: float, fill: str, outline: str) -> None:
        line = round(0.2 * radius)
        edge = outline if line else None
        if shape is Shape.CIRCLE:
            self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill, edge, line)
        elif shape is Shape.SQUARE:
            half = 0.92 * radius
            self._draw.rectangle((x - half, y - half, x + half, y + half), fill, edge, line)
        else:
            half = 1.15 * radius
            corners = [(x, y - half), (x + half, y), (x, y + half), (x - half, y)]
            self._draw.polygon(corners, fill, edge, line or 1)


@lru_cache(maxsize=64)
def _font(size: int, bold: bool) -> Font:
    """The system's, where it has one with many scripts; else the one that comes with the library."""
    file = _FONTS / ("DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf")
    return ImageFont.truetype(file, size) if file.exists() else ImageFont.load_default(size)
