"""Exceptions of the client."""

from __future__ import annotations

from typing import Any, Optional


class EvError(Exception):
    """Base class of all exceptions of this package, except for invalid arguments."""


class EvApiError(EvError):
    """The service responded with an error.

    Attributes:
        message: Human-readable description.
        status: HTTP status code.
        code: Machine-readable error code. None if the response is not from the service, but
            from a proxy.
        request_id: ID of the request, for support.
        retry_after: Wait requested by the service (Retry-After), in seconds, or None.
        body: Response body: parsed if it is JSON, otherwise text.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: Optional[str] = None,
        request_id: Optional[str] = None,
        retry_after: Optional[float] = None,
        body: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.body = body


class EvConnectionError(EvError):
    """No complete response arrived: a network error, a timeout, or a broken connection.

    Attributes:
        message: Human-readable description.
        timed_out: Whether the timeout of the client ended the attempt.
    """

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.timed_out = timed_out


class EvWebhookError(EvError):
    """A webhook request failed verification and must not be trusted."""
