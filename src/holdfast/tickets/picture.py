"""A ticket's code as a QR code. Pure."""

import io

import segno

QUIET_ZONE = 4
"""Empty squares around it, as the standard wants: without them some scanners see nothing."""
PNG_SCALE = 8


def qr_code(code: str) -> segno.QRCode:
    """With as much redundancy as there is room for: a crease must not keep anybody out."""
    for error in ("m", "l"):
        try:
            return segno.make_qr(code, error=error, boost_error=False, encoding="utf-8", mode="byte")
        except segno.DataOverflowError:
            if error == "l":
                raise
    raise AssertionError("unreachable")


def draw_svg(code: str) -> bytes:
    out = io.BytesIO()
    qr_code(code).save(out, kind="svg", border=QUIET_ZONE, scale=4, light="#fff", title="Ticket", nl=False)
    return out.getvalue()


def draw_png(code: str) -> bytes:
    out = io.BytesIO()
    qr_code(code).save(out, kind="png", border=QUIET_ZONE, scale=PNG_SCALE)
    return out.getvalue()
