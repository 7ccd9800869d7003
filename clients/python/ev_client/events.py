"""Events that were emitted for webhooks."""

from __future__ import annotations

from typing import Any, Mapping, Optional, cast

from .connection import Call, Connection
from .models import EmittedEvent, EmittedEventAnswerData, EventType
from .pagination import Listing
from .paths import encode



class Events:
    """Methods for events, by their ID."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(
        self,
        *,
        event: Optional[EventType] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Listing[EmittedEvent]:
        """Lists events, newest first.

        Args:
            event: Only events of this type.
            since: Only events from this time on (ISO 8601).
            until: Only events before this time (ISO 8601).
            limit: Events per page.
        """
        query = {"event": event, "since": since, "until": until, "limit": limit}

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            return cast(
                Mapping[str, Any],
                self._data(Call("GET", "/v1/events", {**query, "cursor": cursor})),
            )

        return Listing(fetch)

    def get(self, event_id: str) -> EmittedEventAnswerData:
        """Returns an event with its deliveries."""
        call = Call("GET", f"/v1/events/{encode(event_id)}")
        return cast(EmittedEventAnswerData, self._data(call))

    def _data(self, call: Call) -> Any:
        return self._connection.json(call)["data"]
