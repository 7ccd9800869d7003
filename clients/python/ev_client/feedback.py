"""Feedback about sent mail."""

from __future__ import annotations

from typing import Optional, Sequence, cast

from .connection import Call, Connection
from .models import FeedbackItem, RecordedFeedback
from .resources import FeedbackReports, FeedbackSources


class Feedback(FeedbackReports):
    """Methods that report bounces, deliveries and complaints, and their report."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.sources = FeedbackSources(connection)

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
