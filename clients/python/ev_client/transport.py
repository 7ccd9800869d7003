"""HTTP with keep-alive connections, on http.client."""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Request:
    """An HTTP request. Headers and body are not part of its representation: they are secret."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: Optional[bytes] = field(repr=False)
    #: Timeout in seconds for connecting, for each write, and for the start of the response.
    timeout: float


@dataclass(frozen=True)
class Response:
    """The start of an HTTP response, and functions that read and close its body."""

    status: int
    #: Header names are lower-case.
    headers: Mapping[str, str]
    #: Returns the next bytes of the body, or ``b""`` at its end; waits at most the given seconds.
    read: Callable[[float], bytes] = field(repr=False)
    #: Ends the response. Calling it twice has no effect.
    close: Callable[[], None] = field(repr=False)


#: Sends a request without following redirects. Raises OSError (for a timeout: TimeoutError or
#: socket.timeout) or http.client.HTTPException, as ``Response.read`` does.
Transport = Callable[[Request], Response]


class HttpTransport:
    """Sends requests over keep-alive connections. Several threads can use it at the same time.

    Args:
        ssl_context: Trusted certificates. Default: those of the system.
    """

    def __init__(self, ssl_context: Optional[ssl.SSLContext] = None) -> None:
        self._ssl_context = ssl_context
        self._idle: Dict[Tuple[str, str], List[HTTPConnection]] = {}
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Response:
        scheme, host, path, query, _ = urlsplit(request.url)
        connection = self._take_idle((scheme, host)) or self._connect(scheme, host)
        try:
            connection.timeout = request.timeout
            if connection.sock is None:
                connection.connect()
            # The connection forgets its socket if the service closes it after the response.
            sock: Any = connection.sock
            sock.settimeout(request.timeout)
            target = f"{path or '/'}?{query}" if query else path or "/"
            try:
                connection.request(request.method, target, request.body, dict(request.headers))
            except (BrokenPipeError, ConnectionResetError):
                # The service may have responded and closed before the request was complete.
                pass
            response = connection.getresponse()
        except BaseException:
            connection.close()
            raise
        release = partial(self._put_idle, (scheme, host))
        body = _Body(connection, sock, response, release)
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Response(response.status, headers, body.read, body.close)

    def close(self) -> None:
        """Closes the idle connections."""
        with self._lock:
            connections = [one for idle in self._idle.values() for one in idle]
            self._idle.clear()
        for connection in connections:
            connection.close()

    def _connect(self, scheme: str, host: str) -> HTTPConnection:
        if scheme == "http":
            return HTTPConnection(host)
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
        return HTTPSConnection(host, context=self._ssl_context)

    def _take_idle(self, origin: Tuple[str, str]) -> Optional[HTTPConnection]:
        while True:
            with self._lock:
                idle = self._idle.get(origin)
                if not idle:
                    return None
                connection = idle.pop()
            if connection.sock is not None and not _is_readable(connection.sock):
                return connection
            connection.close()

    def _put_idle(self, origin: Tuple[str, str], connection: HTTPConnection) -> None:
        with self._lock:
            self._idle.setdefault(origin, []).append(connection)


class _Body:
    """Reads a response body in chunks as they arrive, and detects a truncated one."""

    def __init__(
        self,
        connection: HTTPConnection,
        sock: Any,
        response: HTTPResponse,
        release: Callable[[HTTPConnection], None],
    ) -> None:
        self._connection = connection
        self._socket = sock
        self._response = response
        self._release = release
        self._is_open = True
        # http.client clears the length when the body is chunked or ends with the connection.
        self._remaining = response.length
        if self._remaining == 0:
            self._finish()

    def read(self, timeout: float) -> bytes:
        if not self._is_open:
            return b""
        try:
            self._socket.settimeout(timeout)
            size = CHUNK_SIZE if self._remaining is None else min(CHUNK_SIZE, self._remaining)
            chunk = self._response.read1(size)
            if self._remaining is not None:
                self._remaining -= len(chunk)
                if chunk == b"":
                    raise IncompleteRead(b"", self._remaining)
        except BaseException:
            self.close()
            raise
        if chunk == b"" or self._remaining == 0:
            self._finish()
        return chunk

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._response.close()
            self._connection.close()

    def _finish(self) -> None:
        """Keeps the connection for the next request, unless the service closes it."""
        if self._response.will_close:
            self.close()
            return
        self._is_open = False
        self._response.close()
        self._release(self._connection)


def _is_readable(sock: socket.socket) -> bool:
    """Whether an idle connection was closed by the service, or has data that was not requested."""
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(timeout=0))


#: Bytes per read.
CHUNK_SIZE = 64 * 1024

TRANSPORT_ERRORS = (OSError, HTTPException)


def is_timeout(error: BaseException) -> bool:
    """Whether an error of a transport is a timeout. In Python 3.9, two types mean it."""
    return isinstance(error, (TimeoutError, socket.timeout))
