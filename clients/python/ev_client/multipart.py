"""Encodes forms with a file (multipart/form-data, RFC 7578)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, List, Mapping, Tuple, Union

#: Input of a list: its content as text or bytes, a path, or an open file. It is read into memory,
#: so that the request can be retried.
ListFile = Union[str, bytes, "os.PathLike[str]", IO[bytes], IO[str]]


@dataclass(frozen=True)
class Form:
    """Fields, and the file ``file``."""

    fields: Mapping[str, str]
    filename: str
    content: bytes = field(repr=False)

    def encode(self, boundary: str) -> bytes:
        """Returns the body. Fields precede the file, so that the service has them first."""
        parts: List[Tuple[str, bytes]] = [
            (f'name="{name}"', value.encode()) for name, value in self.fields.items()
        ]
        filename = _escape(self.filename)
        parts.append(
            (
                f'name="file"; filename="{filename}"\r\nContent-Type: application/octet-stream',
                self.content,
            )
        )
        encoded = [
            f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode()
            + content
            + b"\r\n"
            for head, content in parts
        ]
        return b"".join(encoded) + f"--{boundary}--\r\n".encode()


def read_file(file: ListFile) -> Tuple[str, bytes]:
    """Returns name and content of a list. Raises OSError if it cannot be read."""
    if isinstance(file, str):
        return DEFAULT_NAME, file.encode()
    if isinstance(file, (bytes, bytearray, memoryview)):
        return DEFAULT_NAME, bytes(file)
    if isinstance(file, os.PathLike):
        path = Path(file)
        return path.name, path.read_bytes()
    content = file.read()
    name: Any = getattr(file, "name", None)
    return (
        os.path.basename(name) if isinstance(name, str) else DEFAULT_NAME,
        content.encode() if isinstance(content, str) else content,
    )


def _escape(filename: str) -> str:
    """Escapes a file name as browsers do."""
    return filename.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


DEFAULT_NAME = "list.csv"
