"""Reads lines, CSV records, NDJSON objects and events from chunks of bytes."""

from __future__ import annotations

import codecs
import json
from typing import Any, Dict, Iterable, Iterator, List, Tuple


def read_lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Iterates the lines of a text without their LF; a CR before it is kept."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
    rest = ""
    for chunk in chunks:
        *lines, rest = (rest + decoder.decode(chunk)).split("\n")
        yield from lines
    rest += decoder.decode(b"", final=True)
    if rest != "":
        yield rest


def read_records(chunks: Iterable[bytes]) -> Iterator[str]:
    """Iterates the raw records of a CSV without their line breaks. Quoted cells may span lines."""
    record: List[str] = []
    is_quoted = False
    for line in read_lines(chunks):
        record.append(line)
        # RFC 4180: an odd number of quotes in a line opens or closes a cell that spans lines.
        if line.count('"') % 2 == 1:
            is_quoted = not is_quoted
        if not is_quoted:
            text = "\n".join(record)
            yield text[:-1] if text.endswith("\r") else text
            record = []
    if record:
        yield "\n".join(record)


def read_objects(chunks: Iterable[bytes]) -> Iterator[Any]:
    """Iterates the objects of an NDJSON text."""
    for line in read_lines(chunks):
        if line.strip() != "":
            yield json.loads(line)


def read_events(chunks: Iterable[bytes]) -> Iterator[Tuple[str, Any]]:
    """Iterates type and data of a ``text/event-stream``. Drops an incomplete last event."""
    fields: Dict[str, str] = {}
    for line in read_lines(chunks):
        line = line.rstrip("\r")
        name, _, value = line.partition(":")
        if name != "":
            fields[name] = value[1:] if value.startswith(" ") else value
        elif line == "":
            if "data" in fields:
                yield fields.get("event", "message"), json.loads(fields["data"])
            fields = {}
