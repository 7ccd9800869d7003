"""The account: history, credits, limits, statistics."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, cast

from .connection import Call, Connection
from .models import Account as AccountData
from .models import (
    AuditEntry,
    Class,
    CreditsData,
    Limit,
    OwnAccountPatch,
    Reason,
    StatsData,
    Verification,
)
from .pagination import Listing


class OwnAccount:
    """Methods for the account of the key."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self) -> AccountData:
        """Returns the account of the key."""
        return cast(AccountData, self._connection.json(Call("GET", "/v1/account"))["data"])

    def update(self, changes: OwnAccountPatch) -> AccountData:
        """Changes its name or email address; omitted fields keep their value."""
        call = Call("PATCH", "/v1/account", body=changes)
        return cast(AccountData, self._connection.json(call)["data"])


class Account:
    """Data of the account. Its methods are methods of the client."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def history(
        self,
        *,
        email: Optional[str] = None,
        search: Optional[str] = None,
        class_: Optional[Sequence[Class]] = None,
        reason: Optional[Reason] = None,
        source: Optional[Literal["single", "bulk", "batch", "file"]] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Listing[Verification]:
        """Lists verifications, newest first.

        Args:
            email: Only this address.
            search: Only addresses that contain this text.
            class_: Only results of these classes.
            reason: Only results with this reason.
            source: Only verifications of this kind.
            since: Only verifications from this time on (ISO 8601).
            until: Only verifications before this time (ISO 8601).
            limit: Verifications per page.
        """
        query = {
            "email": email,
            "search": search,
            "class": class_,
            "reason": reason,
            "source": source,
            "since": since,
            "until": until,
            "limit": limit,
        }

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            return cast(Mapping[str, Any], self._get("/v1/history", {**query, "cursor": cursor}))

        return Listing(fetch)

    def credits(self) -> CreditsData:
        """Returns the remaining credits."""
        return cast(CreditsData, self._get("/v1/credits", {}))

    def limits(self) -> List[Limit]:
        """Returns the usage of each rate limit that applies to this key and IP address."""
        return cast(List[Limit], self._get("/v1/limits", {})["limits"])

    def stats(self, *, period: Optional[Literal["day", "week", "month"]] = None) -> StatsData:
        """Returns verification counts by day and by key."""
        return cast(StatsData, self._get("/v1/stats", {"period": period}))

    def audit(
        self,
        *,
        action: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Listing[AuditEntry]:
        """Lists the audit log, newest first.

        Args:
            action: Only entries with this action, such as ``key.created``.
            since: Only entries from this time on (ISO 8601).
            until: Only entries before this time (ISO 8601).
            limit: Entries per page.
        """
        query = {"action": action, "since": since, "until": until, "limit": limit}

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            return cast(Mapping[str, Any], self._get("/v1/audit", {**query, "cursor": cursor}))

        return Listing(fetch)

    def _get(self, path: str, query: Dict[str, Any]) -> Any:
        return self._connection.json(Call("GET", path, query))["data"]
