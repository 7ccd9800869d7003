"""Feedback about sent mail."""

from __future__ import annotations

from typing import List, Optional, Sequence, cast

from .connection import Call, Connection
from .models import (
    CreatedFeedbackSourceData,
    FeedbackItem,
    FeedbackReport,
    FeedbackSource,
    NewFeedbackSource,
    RecordedFeedback,
)
from .paths import encode


class Feedback:
    """Methods that report bounces, deliveries and complaints, and their report."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
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

    def report(self) -> FeedbackReport:
        """Compares the confidence of verdicts with their reported outcomes."""
        call = Call("GET", "/v1/feedback/report", {})
        return cast(FeedbackReport, self._connection.json(call)["data"])


class FeedbackSources:
    """Methods for the URLs to which email providers send events."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> "List[FeedbackSource]":
        """Lists sources, oldest first."""
        data = self._connection.json(Call("GET", _PATH))["data"]
        return cast("List[FeedbackSource]", data["sources"])

    def create(
        self, source: NewFeedbackSource, *, idempotency_key: Optional[str] = None
    ) -> CreatedFeedbackSourceData:
        """Creates a source. Only this response contains its password, if it has one."""
        call = Call(
            "POST", _PATH, body=source, creates=True, idempotency_key=idempotency_key
        )
        return cast(CreatedFeedbackSourceData, self._connection.json(call)["data"])

    def delete(self, source_id: str) -> None:
        """Deletes a source. Its feedback stays."""
        self._connection.json(Call("DELETE", f"{_PATH}/{encode(source_id)}"))


_PATH = "/v1/feedback/sources"
