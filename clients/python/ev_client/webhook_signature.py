"""Verifies signatures of webhook requests."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import time
from typing import Callable, Iterable, List, Optional, Protocol, Sequence, Tuple, Union, cast

from .errors import EvWebhookError
from .models import WebhookEvent


class Headers(Protocol):
    """Headers of a request, as servers provide them. Names are case-insensitive."""

    def items(self) -> Iterable[Tuple[str, str]]: ...


def verify_webhook(
    body: Union[str, bytes],
    headers: Headers,
    secret: Union[str, Sequence[str]],
    *,
    require_timestamp: bool = False,
    tolerance: float = 300.0,
    now: Callable[[], float] = time.time,
) -> WebhookEvent:
    """Verifies the signature of a webhook request and returns its event.

    Args:
        body: The raw body, not parsed and reserialized.
        headers: Headers of the request.
        secret: Signing secret of the webhook. With several, as during a rotation, any may match.
        require_timestamp: Rejects a request without a timestamp, which could be a replay.
        tolerance: Maximum difference between the timestamp and now, in seconds, in either
            direction.
        now: Returns the current time, in seconds since the epoch.

    Raises:
        EvWebhookError: The request must not be trusted.
        TypeError, ValueError: The body or the secret has the wrong type, or the secret is empty.
    """
    secrets = _validate_secrets(secret)
    content = _to_bytes(body)
    ev_signature = _get_header(headers, "x-ev-signature")
    standard = _read_standard(headers)
    if ev_signature is None and standard is None:
        raise EvWebhookError(
            "The request has no signature: no X-EV-Signature, no webhook-* headers."
        )
    if standard is None and require_timestamp:
        raise EvWebhookError("The request has no timestamp: it has no webhook-* headers.")
    # The headers of Standard Webhooks take precedence: they have a timestamp, and during a
    # rotation both secrets sign them, while only the new one signs X-EV-Signature.
    if standard is not None:
        _check_standard(standard, content, secrets, tolerance, now())
    elif not _is_ev_signed(ev_signature or "", content, secrets):
        raise EvWebhookError("X-EV-Signature does not match this body and secret.")
    return _parse_event(content)


def _is_ev_signed(signature: str, body: bytes, secrets: Sequence[str]) -> bool:
    """X-EV-Signature is a hex HMAC. Its key is the text of the secret, including ``whsec_``."""
    if not re.fullmatch(r"[0-9a-f]{64}", signature):
        return False
    return _is_signed([bytes.fromhex(signature)], body, [one.encode() for one in secrets])


def _check_standard(
    standard: Tuple[str, str, str],
    body: bytes,
    secrets: Sequence[str],
    tolerance: float,
    now: float,
) -> None:
    """Checks the headers of Standard Webhooks 1.0.

    The key is the base64-decoded secret, and the MAC covers ID and timestamp, so it differs from
    X-EV-Signature.
    """
    identifier, timestamp, signature = standard
    is_number = re.fullmatch(r"[0-9]{1,12}", timestamp) is not None
    if not is_number or abs(now - int(timestamp)) > tolerance:
        raise EvWebhookError(
            "webhook-timestamp is too far from the current time. The request may be a replay."
        )
    macs = [_from_base64(one[3:]) for one in signature.split(" ") if one.startswith("v1,")]
    keys = [_from_base64(re.sub("^whsec_", "", one)) for one in secrets]
    signed = f"{identifier}.{timestamp}.".encode() + body
    if not _is_signed([one for one in macs if one], signed, [one for one in keys if one]):
        raise EvWebhookError("webhook-signature does not match this body and secret.")


def _is_signed(macs: Sequence[bytes], signed: bytes, keys: Sequence[bytes]) -> bool:
    return any(
        hmac.compare_digest(hmac.new(key, signed, hashlib.sha256).digest(), mac)
        for key in keys
        for mac in macs
    )


def _parse_event(body: bytes) -> WebhookEvent:
    try:
        event = json.loads(body)
        if isinstance(event["event"], str) and isinstance(event["event_id"], str):
            return cast(WebhookEvent, event)
    except (KeyError, TypeError, ValueError):
        pass
    raise EvWebhookError("The signature is valid, but the body is not an event.")


def _read_standard(headers: Headers) -> Optional[Tuple[str, str, str]]:
    """Returns ID, timestamp and signature.

    If only some of the three headers are present, the signature is invalid, not missing.
    """
    values = [_get_header(headers, f"webhook-{name}") for name in ("id", "timestamp", "signature")]
    if all(value is None for value in values):
        return None
    identifier, timestamp, signature = (value or "" for value in values)
    return identifier, timestamp, signature


def _get_header(headers: Headers, name: str) -> Optional[str]:
    for key, value in headers.items():
        if key.lower() == name:
            return value
    return None


def _validate_secrets(secret: Union[str, Sequence[str]]) -> List[str]:
    secrets = [secret] if isinstance(secret, str) else list(secret or [])
    # An unset variable is None or empty. With an empty key anyone could sign.
    if secrets and all(isinstance(one, str) and one != "" for one in secrets):
        return secrets
    raise ValueError(
        'verify_webhook needs the secret of the webhook ("whsec_..."), but got none. Check that it'
        " is set."
    )


def _to_bytes(body: Union[str, bytes]) -> bytes:
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    raise TypeError("verify_webhook needs the raw body as text or bytes, not a parsed object.")


def _from_base64(text: str) -> bytes:
    """Decodes base64; empty if it is invalid."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return b""
