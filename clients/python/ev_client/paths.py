"""Builds paths of the API."""

from __future__ import annotations

from urllib.parse import quote


def encode(segment: str) -> str:
    """Encodes an ID as a segment of a path."""
    if not isinstance(segment, str) or segment in ("", ".", ".."):
        raise ValueError(f"{segment!r} is not an ID.")
    return quote(segment, safe="")
