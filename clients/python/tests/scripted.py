"""A client with scripted responses and a clock that only waits advance."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Union

from ev_client import EvClient, Request, Response

#: Monday, June 1, 2026, 12:00:00 UTC.
NOW = 1_780_315_200.0


@dataclass
class Reply:
    """A scripted response. An exception among the chunks is raised when it is read."""

    status: int = 200
    json: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Instead of ``json``.
    chunks: Optional[List[Union[bytes, Exception]]] = None
    #: Seconds that each read takes.
    read_time: float = 0.0


class Script:
    """Returns the scripted responses in turn; the last one repeats."""

    def __init__(self, *replies: Union[Reply, Exception], **options: Any) -> None:
        self.replies = replies
        self.requests: List[Request] = []
        self.waits: List[float] = []
        self.read_timeouts: List[float] = []
        self.closed = 0
        self.time = 0.0
        self.client = EvClient(
            **{
                "api_key": "ev_live_test",
                "base_url": "https://ev.example",
                "transport": self._send,
                "now": lambda: NOW + self.time,
                "monotonic": lambda: self.time,
                "sleep": self._sleep,
                "random": lambda: 0.5,
                **options,
            }
        )

    @property
    def urls(self) -> List[str]:
        """Method and path of each request."""
        start = len("https://ev.example")
        return [f"{request.method} {request.url[start:]}" for request in self.requests]

    @property
    def bodies(self) -> List[Any]:
        """Parsed JSON body of each request; None if it had none."""
        return [json.loads(one.body) if one.body is not None else None for one in self.requests]

    def headers(self, name: str) -> List[Optional[str]]:
        """A header of each request."""
        return [request.headers.get(name) for request in self.requests]

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    def _send(self, request: Request) -> Response:
        index = min(len(self.requests), len(self.replies) - 1)
        self.requests.append(request)
        reply = self.replies[index]
        if isinstance(reply, Exception):
            raise reply
        chunks = list(
            [json.dumps({} if reply.json is None else reply.json).encode()]
            if reply.chunks is None
            else reply.chunks
        )

        def read(timeout: float) -> bytes:
            self.read_timeouts.append(timeout)
            self.time += reply.read_time
            chunk = chunks.pop(0) if chunks else b""
            if isinstance(chunk, Exception):
                raise chunk
            return chunk

        def close() -> None:
            self.closed += 1

        headers: Dict[str, str] = {name.lower(): value for name, value in reply.headers.items()}
        return Response(reply.status, headers, read, close)
