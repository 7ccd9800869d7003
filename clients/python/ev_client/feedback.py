"""Feedback about sent mail."""

from __future__ import annotations

from typing import Optional, Sequence, cast

from .connection import Call, Connection
from .models import FeedbackItem, RecordedFeedback


class Feedback:
    """Methods that report bounces, deliveries and complaints."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def submit(
        self, items: Sequence[FeedbackItem], *, idempotency_key: Optional[str] = None
    ) -> RecordedFeedback:
        """Reports up to 1,000 bounces, deliveries and complaints. A repeated item counts once."""
        call = Call(
            "POST",
            "/v1/feedback",
            body={"items": list(items)},
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(RecordedFeedback, self._connection.json(call)["data"])
