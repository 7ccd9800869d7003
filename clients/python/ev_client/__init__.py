"""Client of the HTTP API of ev, an email verifier."""

from .client import EvClient
from .connection import ResponseInfo, Stream
from .errors import EvApiError, EvConnectionError, EvError, EvWebhookError
from .models import WebhookEvent
from .pagination import Listing, Page
from .responses import RateLimit
from .transport import HttpTransport, Request, Response, Transport
from .webhook_signature import verify_webhook

__all__ = [
    "EvApiError",
    "EvClient",
    "EvConnectionError",
    "EvError",
    "EvWebhookError",
    "HttpTransport",
    "Listing",
    "Page",
    "RateLimit",
    "Request",
    "Response",
    "ResponseInfo",
    "Stream",
    "Transport",
    "WebhookEvent",
    "verify_webhook",
]
