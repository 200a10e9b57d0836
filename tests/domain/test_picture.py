"""Pictures of layouts: every seat is in them, readable for everybody, and of the colour that it should be."""

import io
import itertools
import xml.etree.ElementTree as ET
from uuid import UUID

import numpy as np
from hypothesis import HealthCheck, given, settings
from PIL import Image, ImageColor

from holdfast.seating.picture import CATEGORY_COLOURS, INK, PAPER, STATE_COLOURS, By, Standing, draw_svg, scene_of
from holdfast.seating.picture_png import draw_png
from holdfast.seating.validate import parse_layout
from tests.domain.configs import Config, layout_configs
from tests.factories import theatre_config

LAYOUT_ID = UUID(int=3)


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [part / 255 for part in ImageColor.getrgb(colour)[:3]]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@given(layout_configs())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_layout_can_be_drawn_with_a_title_for_every_seat(config: Config) -> None:
    layout = parse_layout(LAYOUT_ID, config)
    for by in (By.ZONE, By.CATEGORY):
        scene = scene_of(layout, "A <name>", by=by)
        drawing = ET.fromstring(draw_svg(scene))
        titles = list(drawing.iter("{http://www.w3.org/2000/svg}title"))
        assert len(titles) == layout.seat_count + 1
        assert sum(mark.count for mark in scene.marks) == layout.seat_count
        inside = (scene.xs >= scene.left) & (scene.xs <= scene.left + scene.width)
        inside &= (scene.ys >= scene.top) & (scene.ys <= scene.top + scene.height)
        assert inside.all()


def test_seats_without_coordinates_are_set_out_apart_from_each_other() -> None:
    config = theatre_config(3, 4)
    for seat in config["zones"][0]["seats"][4:]:
        del seat["coordinates"]
    scene = scene_of(parse_layout(LAYOUT_ID, config), "House")
    distances = np.hypot(scene.xs[:, None] - scene.xs, scene.ys[:, None] - scene.ys)
    np.fill_diagonal(distances, np.inf)
    assert distances.min() > 2 * scene.radius


def test_states_and_categories_differ_in_lightness_and_writing_is_dark() -> None:
    for colours in (STATE_COLOURS, CATEGORY_COLOURS):
        for (one, _), (other, _) in itertools.combinations(colours.values(), 2):
            assert contrast(one, other) > 1.2, (one, other)
    for fill, outline in [*STATE_COLOURS.values(), *CATEGORY_COLOURS.values()]:
        assert contrast(outline, PAPER) > 3, outline  # a pale seat is seen by its edge
        assert contrast(fill, outline) > 1.5
    assert contrast(INK, PAPER) > 12


def test_a_png_shows_each_seat_in_its_colour() -> None:
    layout = parse_layout(LAYOUT_ID, theatre_config(2, 5))
    states = ["available", "held", "sold", "blocked", "available"] * 2
    standing = Standing(states=states, hold_types=[None] * 10)
    scene = scene_of(layout, "House", by=By.STATE, standing=standing)
    with Image.open(io.BytesIO(draw_png(scene, 800))) as opened:
        image = opened.convert("RGB")
    scale = image.width / scene.width
    for ordinal, state in enumerate(states):
        x, y = (scene.xs[ordinal] - scene.left) * scale, (scene.ys[ordinal] - scene.top) * scale
        seen = np.array(image.getpixel((int(x), int(y))), dtype=np.int64)
        assert np.abs(seen - np.array(ImageColor.getrgb(STATE_COLOURS[state][0]))).max() < 24, (ordinal, state)


def test_a_very_long_plan_does_not_take_all_memory() -> None:
    config = theatre_config(1, 2)
    config["zones"][0]["seats"][0]["coordinates"] = {"x": 0, "y": -1_000_000}
    config["zones"][0]["seats"][1]["coordinates"] = {"x": 1, "y": 1_000_000}
    with Image.open(io.BytesIO(draw_png(scene_of(parse_layout(LAYOUT_ID, config), "Road"), 4000))) as image:
        assert image.width * image.height <= 20_000_000
