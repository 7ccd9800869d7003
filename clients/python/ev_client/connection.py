"""Sends requests with retries."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Type, Union, cast
from urllib.parse import urlencode

from .errors import EvApiError, EvConnectionError
from .multipart import Form
from .responses import RateLimit, parse_api_error, parse_rate_limit, parse_success
from .transport import TRANSPORT_ERRORS, Request, Response, Transport, is_timeout


@dataclass(frozen=True)
class ResponseInfo:
    """Metadata of a response, passed to ``on_response``."""

    method: str
    path: str
    status: int
    #: Attempt number, from 0.
    attempt: int
    request_id: Optional[str]
    rate_limit: Optional[RateLimit]
    #: Whether this is the stored response to an earlier request with the same idempotency key.
    replayed: bool


@dataclass(frozen=True)
class Call:
    """A call of the API."""

    method: str
    #: Path including ``/v1``, with encoded segments.
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    #: Sent as multipart if it is a Form, otherwise as JSON.
    body: Union[Mapping[str, Any], Form, None] = None
    accept: str = "application/json"
    #: Whether the request is not idempotent and must carry an Idempotency-Key.
    creates: bool = False
    #: The Idempotency-Key. Default: a new one.
    idempotency_key: Optional[str] = None
    #: Default timeout in seconds.
    timeout: float = 30.0
    #: Seconds that the service may hold the request (long polling).
    wait: float = 0.0


@dataclass(frozen=True)
class Connection:
    """Settings that all calls share. The headers are not printed: they contain the key."""

    base_url: str
    headers: Mapping[str, str] = field(repr=False)
    #: Timeout in seconds; None for the default of each call.
    timeout: Optional[float]
    retries: int
    on_response: Callable[[ResponseInfo], object]
    transport: Transport
    #: Returns the wall-clock time, in seconds since the epoch.
    now: Callable[[], float]
    #: Returns a time that never goes back, in seconds.
    monotonic: Callable[[], float]
    sleep: Callable[[float], object]
    #: Returns a number from 0 up to, but not including, 1.
    random: Callable[[], float]

    def json(self, call: Call) -> Any:
        """Sends a request and returns the parsed body of the response, None if it has none."""
        return self._send(call, self._read_json)

    def stream(self, call: Call) -> "Stream":
        """Sends a request and returns the body of the response as a stream."""
        return cast(Stream, self._send(call, self._read_stream))

    def with_options(self, timeout: Optional[float], retries: Optional[int]) -> "Connection":
        """Returns a copy with other settings; None keeps a setting."""
        return replace(
            self,
            timeout=self.timeout if timeout is None else timeout,
            retries=self.retries if retries is None else retries,
        )

    def random_hex(self) -> str:
        """Returns 128 random bits in hex."""
        return "".join(f"{int(self.random() * 2**32):08x}" for _ in range(4))

    def _send(self, call: Call, read: Callable[[Response, float], Any]) -> Any:
        timeout = (call.timeout if self.timeout is None else self.timeout) + call.wait
        # All attempts share one key, so that the service applies the request once.
        request = self._build_request(call, timeout)
        attempt = 0
        while True:
            try:
                return self._try_once(call, request, attempt, read)
            except (EvApiError, EvConnectionError) as error:
                delay = self._retry_delay(error, attempt)
                if delay is None:
                    raise
            self.sleep(delay)
            attempt += 1

    def _try_once(
        self,
        call: Call,
        request: Request,
        attempt: int,
        read: Callable[[Response, float], Any],
    ) -> Any:
        deadline = self.monotonic() + request.timeout
        try:
            response = self.transport(request)
        except TRANSPORT_ERRORS as error:
            raise to_connection_error(error, request.timeout) from error
        self.on_response(_response_info(call, response, attempt))
        if 200 <= response.status < 300:
            return read(response, deadline)
        text = self._read_text(response, deadline)
        # An earlier attempt deleted it, but its response was lost.
        if call.method == "DELETE" and attempt > 0 and response.status == 404:
            return None
        raise parse_api_error(response.status, response.headers, text, self.now())

    def _read_json(self, response: Response, deadline: float) -> Any:
        text = self._read_text(response, deadline)
        return parse_success(response.status, response.headers, text)

    def _read_text(self, response: Response, deadline: float) -> str:
        """Reads a whole body until the deadline of the attempt."""
        chunks: List[bytes] = []
        try:
            while True:
                remaining = deadline - self.monotonic()
                if remaining <= 0:
                    raise TimeoutError("The response did not end in time.")
                chunk = response.read(remaining)
                if chunk == b"":
                    return b"".join(chunks).decode("utf-8-sig", "replace")
                chunks.append(chunk)
        except TRANSPORT_ERRORS as error:
            raise to_connection_error(error, None) from error
        finally:
            response.close()

    def _read_stream(self, response: Response, _deadline: float) -> "Stream":
        return Stream(response, 30.0 if self.timeout is None else self.timeout)

    def _build_request(self, call: Call, timeout: float) -> Request:
        headers: Dict[str, str] = {**self.headers, "accept": call.accept}
        body: Optional[bytes] = None
        if isinstance(call.body, Form):
            boundary = self.random_hex()
            headers["content-type"] = f"multipart/form-data; boundary={boundary}"
            body = call.body.encode(boundary)
        elif call.body is not None:
            headers["content-type"] = "application/json"
            body = json.dumps(call.body, ensure_ascii=False).encode()
        if call.creates:
            headers["idempotency-key"] = self._idempotency_key(call)
        return Request(call.method, _build_url(self.base_url, call), headers, body, timeout)

    def _idempotency_key(self, call: Call) -> str:
        if call.idempotency_key is None:
            return self.random_hex()
        if re.fullmatch(r"[\x20-\x7e]{1,255}", call.idempotency_key):
            return call.idempotency_key
        raise ValueError("idempotency_key must be 1 to 255 printable ASCII characters.")

    def _retry_delay(
        self, error: Union[EvApiError, EvConnectionError], attempt: int
    ) -> Optional[float]:
        """Returns the seconds before the next attempt, or None to give up."""
        if attempt >= self.retries or not _is_transient(error):
            return None
        retry_after = error.retry_after if isinstance(error, EvApiError) else None
        # An earlier retry would be refused again, so a Retry-After that is too long ends the call.
        if retry_after is not None and retry_after > RETRY_AFTER_MAX:
            return None
        back_off = min(BACK_OFF_MAX, BACK_OFF * 2.0**attempt)
        # Full jitter: clients that failed together must not retry together, even with equal
        # Retry-After.
        jitter: float = self.random() * (back_off if retry_after is None else BACK_OFF)
        return (retry_after or 0.0) + jitter


class Stream:
    """The body of a response: an iterable of chunks of bytes, in the order of arrival.

    Iterate to the end, or close it: as a context manager, or with ``close()``. Iterating raises
    EvConnectionError if a chunk does not arrive in time or the body is incomplete.
    """

    def __init__(self, response: Response, timeout: float) -> None:
        self._response = response
        self._timeout = timeout

    def __iter__(self) -> Iterator[bytes]:
        try:
            while True:
                chunk = self._response.read(self._timeout)
                if chunk == b"":
                    return
                yield chunk
        except TRANSPORT_ERRORS as error:
            raise to_connection_error(error, self._timeout) from error
        finally:
            self.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(
        self,
        _type: Optional[Type[BaseException]],
        _error: Optional[BaseException],
        _traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the download. Closing twice has no effect."""
        self._response.close()


def to_connection_error(error: BaseException, timeout: Optional[float]) -> EvConnectionError:
    """Converts an error of the transport."""
    if is_timeout(error):
        within = "in time" if timeout is None else f"within {timeout:g} s"
        return EvConnectionError(
            f"No response {within}. Set timeout to wait longer.", timed_out=True
        )
    return EvConnectionError(f"The connection failed: {error or type(error).__name__}")


def _build_url(base_url: str, call: Call) -> str:
    query: Dict[str, str] = {}
    for name, value in call.query.items():
        if isinstance(value, Mapping):
            query.update({f"{name}[{key}]": _query_value(one) for key, one in value.items()})
        elif value is not None:
            query[name] = _query_value(value)
    return f"{base_url}{call.path}?{urlencode(query)}" if query else base_url + call.path


def _query_value(value: Any) -> str:
    """Formats a query parameter. Lists are sent as a comma-separated value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(str(one) for one in value)
    return str(value)


def _response_info(call: Call, response: Response, attempt: int) -> ResponseInfo:
    headers = response.headers
    return ResponseInfo(
        method=call.method,
        path=call.path,
        status=response.status,
        attempt=attempt,
        request_id=headers.get("x-request-id"),
        rate_limit=parse_rate_limit(headers),
        replayed=headers.get("idempotency-replayed") == "true",
    )


def _is_transient(error: Union[EvApiError, EvConnectionError]) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, EvConnectionError):
        return True
    # An earlier attempt, whose response was lost, may still be in progress.
    return error.status in TRANSIENT_STATUSES or error.code == "idempotency_in_progress"


#: Retryable status codes. 501 and 505 are permanent.
TRANSIENT_STATUSES = frozenset({408, 429, 500, 502, 503, 504})
#: Seconds before the first retry, at most; doubles with each retry up to the maximum.
BACK_OFF = 0.5
BACK_OFF_MAX = 8.0
#: Longest Retry-After, in seconds: limits per minute are waited for, longer ones are reported.
RETRY_AFTER_MAX = 60.0
