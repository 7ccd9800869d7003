"""Schedules, which verify lists again at intervals."""

from __future__ import annotations

from typing import Any, Mapping, Optional, cast

from .connection import Call, Connection
from .models import NewScheduleRequest, Schedule, ScheduleChanges
from .pagination import Listing
from .paths import encode


class Schedules:
    """Methods for schedules, by their ``id``."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(
        self, *, job_id: Optional[str] = None, limit: Optional[int] = None
    ) -> Listing[Schedule]:
        """Lists schedules, newest first.

        Args:
            job_id: Only schedules that were created for this list, or whose latest run it is.
            limit: Schedules per page.
        """

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            query = {"job_id": job_id, "limit": limit, "cursor": cursor}
            answer = self._connection.json(Call("GET", _PATH, query))
            return cast(Mapping[str, Any], answer["data"])

        return Listing(fetch)

    def get(self, schedule_id: str) -> Schedule:
        """Returns a schedule."""
        return cast(Schedule, self._connection.json(Call("GET", _path(schedule_id)))["data"])

    def create(
        self, schedule: NewScheduleRequest, *, idempotency_key: Optional[str] = None
    ) -> Schedule:
        """Creates a schedule. Its first run is after one interval."""
        call = Call("POST", _PATH, body=schedule, creates=True, idempotency_key=idempotency_key)
        return cast(Schedule, self._connection.json(call)["data"])

    def update(self, schedule_id: str, changes: ScheduleChanges) -> Schedule:
        """Changes, pauses (``"active": False``) or resumes a schedule."""
        call = Call("PATCH", _path(schedule_id), body=changes)
        return cast(Schedule, self._connection.json(call)["data"])

    def delete(self, schedule_id: str) -> None:
        """Deletes a schedule. The jobs that it created stay."""
        self._connection.json(Call("DELETE", _path(schedule_id)))


_PATH = "/v1/schedules"


def _path(schedule_id: str) -> str:
    return f"{_PATH}/{encode(schedule_id)}"
