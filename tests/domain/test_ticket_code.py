"""Ticket codes: what is accepted is byte for byte what was issued."""

from datetime import date, timedelta
from uuid import UUID

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.tickets.code import CODE_CHARS, TicketPayload, day_spans, read_code, short_words, signed_part, whole_code
from holdfast.tickets.picture import draw_png, draw_svg, qr_code
from holdfast.tickets.ticket import Entitlement

KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
PUBLIC = KEY.public_key().public_bytes_raw()
PAYLOAD = TicketPayload(
    k="key-1", t=UUID(int=1), e=UUID(int=2), o=UUID(int=3), v=1, s="Row A, seat 1", z="Stalls", d="20260501",
    n=Entitlement.SINGLE_ENTRY, m=None,
)  # fmt: skip


def issued(payload: TicketPayload = PAYLOAD) -> str:
    part = signed_part(payload)
    return whole_code(part, KEY.sign(part))


def accepted(code: str) -> bool:
    read = read_code(code)
    return read is not None and read.is_signed_by(PUBLIC)


def test_a_code_says_what_was_put_into_it() -> None:
    read = read_code(issued())
    assert read is not None
    assert read.payload == PAYLOAD
    assert read.is_signed_by(PUBLIC)
    assert not read.is_signed_by(Ed25519PrivateKey.generate().public_key().public_bytes_raw())


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_a_code_with_any_character_changed_added_or_left_out_is_refused(data: st.DataObject) -> None:
    code = issued()
    at = data.draw(st.integers(0, len(code) - 1))
    letter = data.draw(st.sampled_from("ABCxyz0189-_.= +/\n\0é"))
    changed = data.draw(st.sampled_from([
        code[:at] + letter + code[at + 1 :], code[:at] + code[at + 1 :], code[:at] + letter + code[at:], code + letter,
    ]))  # fmt: skip
    assert changed == code or not accepted(changed)


def test_the_bits_left_over_at_the_end_of_base64_are_not_anything() -> None:
    # 64 bytes are 86 characters; the last has four bits to spare, and sixteen spellings of the same bytes.
    code = issued()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    same = [c for c in alphabet if accepted(code[:-1] + c)]
    assert same == [code[-1]]


@pytest.mark.parametrize(
    "code",
    ["", "HF1", "HF1..", "HF2" + issued()[3:], issued().lower(), issued() + "=", " " + issued(), issued() + "\n",
     "HF1." + "A" * CODE_CHARS + ".A", "https://example.com/ticket", "HF1.e30.AAAA"],
)  # fmt: skip
def test_what_is_no_code_is_none(code: str) -> None:
    assert not accepted(code)


def test_another_spelling_of_the_same_json_is_refused_though_it_is_signed() -> None:
    import base64

    for raw in (
        msgspec.json.encode(PAYLOAD).replace(b",", b", ", 1),
        msgspec.json.encode(PAYLOAD)[:-1] + b',"x":1}',
        msgspec.json.encode({**msgspec.to_builtins(PAYLOAD), "t": str(UUID(int=1)).upper().replace("0", "0")})
        .replace(b'"v":1', b'"v":1.0'),
    ):  # fmt: skip
        part = b"HF1." + base64.urlsafe_b64encode(raw).rstrip(b"=")
        assert read_code(whole_code(part, KEY.sign(part))) is None


def test_days_that_follow_one_another_are_one_span() -> None:
    first = date(2026, 4, 29)
    days = [first + timedelta(days=n) for n in (0, 1, 2, 3, 5, 7, 8)]
    assert day_spans(reversed(days)) == "20260429-20260502 20260504 20260506-20260507"
    assert day_spans([]) == ""


def test_the_largest_ticket_still_fits_into_a_qr_code() -> None:
    days = day_spans(date(2026, 1, 1) + timedelta(days=2 * n) for n in range(183))
    words = short_words("🎭" * 200)
    code = issued(msgspec.structs.replace(PAYLOAD, d=days, s=words, z=words, k="kkkkkkkk"))
    assert len(code) <= CODE_CHARS
    assert accepted(code)
    assert read_code(code).payload.d == days  # type: ignore[union-attr]
    assert draw_png(code).startswith(b"\x89PNG")
    ordinary = qr_code(issued())
    assert ordinary.error == "M"


def test_pictures_show_the_very_squares_of_the_code_with_a_quiet_zone() -> None:
    import io

    from PIL import Image

    code = issued()
    squares = [[bool(square) for square in row] for row in qr_code(code).matrix]
    image = Image.open(io.BytesIO(draw_png(code))).convert("L")
    side = len(squares)
    assert image.size == ((side + 8) * 8, (side + 8) * 8)
    for y in range(side + 8):
        for x in range(side + 8):
            within = 4 <= x < side + 4 and 4 <= y < side + 4
            dark = squares[y - 4][x - 4] if within else False
            assert (image.getpixel((x * 8 + 4, y * 8 + 4)) == 0) is dark
    svg = draw_svg(code).decode()
    assert svg.startswith(("<svg", "<?xml"))
    assert "<script" not in svg
