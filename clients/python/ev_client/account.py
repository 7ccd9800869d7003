"""Data of the account."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Optional, Sequence, cast

from .connection import Call
from .models import Class, Reason, Verification
from .pagination import Listing
from .resources import Usage


class Account(Usage):
    """Data of the account. Its methods are methods of the client."""

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
            call = Call("GET", "/v1/history", {**query, "cursor": cursor})
            return cast(Mapping[str, Any], self._connection.json(call)["data"])

        return Listing(fetch)
