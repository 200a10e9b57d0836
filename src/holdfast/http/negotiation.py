"""What a client can read, and what it has already: the Accept headers and If-None-Match."""

BINARY = "application/octet-stream"
JSON = "application/json"


def weights(header: str) -> dict[str, float]:
    """What is named in an Accept header of any kind, with its weight; what cannot be read has none."""
    found: dict[str, float] = {}
    for part in header.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        if name:
            found[name] = max(weight, found.get(name, 0.0))
    return found


def prefers_binary(accept: str) -> bool:
    """Named, and not less wanted than JSON."""
    wanted = weights(accept)
    return wanted.get(BINARY, 0.0) > 0.0 and wanted[BINARY] >= wanted.get(JSON, 0.0)


def accepts_gzip(accept_encoding: str) -> bool:
    wanted = weights(accept_encoding)
    return wanted.get("gzip", wanted.get("*", 0.0)) > 0.0


def names_tag(if_none_match: str, tag: str) -> bool:
    """By the weak comparison, as If-None-Match is meant."""
    named = [part.strip().removeprefix("W/") for part in if_none_match.split(",")]
    return tag in named or named == ["*"]
