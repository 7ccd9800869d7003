"""Reads headers and bodies of responses."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Any, Mapping, Optional

from .errors import EvApiError
from .models import ErrorBody


@dataclass(frozen=True)
class RateLimit:
    """State of the rate limit that is closest to exhaustion."""

    limit: int
    remaining: int
    reset_at: datetime


def parse_rate_limit(headers: Mapping[str, str]) -> Optional[RateLimit]:
    """Reads the X-RateLimit headers; None if there are none, as in the response of a proxy."""
    limit, remaining, reset = (
        _parse_integer(headers.get(f"x-ratelimit-{name}"))
        for name in ("limit", "remaining", "reset")
    )
    if limit is None or remaining is None or reset is None:
        return None
    return RateLimit(limit, remaining, datetime.fromtimestamp(reset, timezone.utc))


def parse_success(status: int, headers: Mapping[str, str], text: str) -> Any:
    """Parses the body of a successful response."""
    if status == 204:
        return None
    try:
        return json.loads(text)
    except ValueError:
        raise EvApiError(
            f"The response with status {status} is not JSON. A proxy sent it, or base_url is"
            " wrong.",
            status=status,
            request_id=headers.get("x-request-id"),
            body=text,
        ) from None


def parse_api_error(status: int, headers: Mapping[str, str], text: str, now: float) -> EvApiError:
    """Converts an error response of the service, the sandbox or a proxy.

    Args:
        now: Wall-clock time, in seconds since the epoch.
    """
    try:
        body = json.loads(text)
    except ValueError:
        body = text
    fields = body if isinstance(body, dict) else {}
    retry_after = (
        headers.get("retry-after")
        or _to_text(fields.get("retry_after"))
        or _to_text(fields.get("retryAfter"))
    )
    simulated_code = _to_text(fields.get("error")) if fields.get("success") is None else None
    return EvApiError(
        _error_message(status, headers, fields),
        status=status,
        code=_to_text(fields.get("code")) or simulated_code,
        request_id=headers.get("x-request-id") or _to_text(fields.get("request_id")),
        retry_after=_parse_retry_after(retry_after, now),
        body=body,
    )


def to_api_error(body: ErrorBody) -> EvApiError:
    """Converts an error sent after the response had started. Only internal errors occur then."""
    return EvApiError(
        body["error"],
        status=500,
        code=body["code"],
        request_id=body["request_id"],
        body=body,
    )


def _error_message(status: int, headers: Mapping[str, str], fields: Mapping[str, Any]) -> str:
    for name in ("message", "detail", "error"):
        message = _to_text(fields.get(name))
        if message is not None:
            return message
    if 300 <= status < 400:
        target = headers.get("location", "another URL")
        return f"The service redirects to {target}. Set base_url to the final URL."
    return f"The response with status {status} has no error message. A proxy may have sent it."


def _parse_retry_after(text: Optional[str], now: float) -> Optional[float]:
    """Parses Retry-After (RFC 9110, section 10.2.3): seconds, or a date."""
    if text is None:
        return None
    seconds = _parse_integer(text)
    if seconds is not None:
        return float(seconds)
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return max(0.0, at.timestamp() - now)


def _parse_integer(text: Optional[str]) -> Optional[int]:
    return int(text) if text is not None and re.fullmatch(r"\s*[0-9]{1,10}\s*", text) else None


def _to_text(value: Any) -> Optional[str]:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return str(value)
    return value if isinstance(value, str) and value != "" else None
