"""Accounts, which the key of an admin account manages."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, cast

from .connection import Call, Connection
from .models import (
    Account,
    AccountPatch,
    CreatedKeyData,
    NewAccount,
    NewKey,
    Plan,
)
from .pagination import Listing
from .paths import encode


class Accounts:
    """Methods for accounts, by their ID."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, *, limit: Optional[int] = None) -> Listing[Account]:
        """Lists accounts, newest first.

        Args:
            limit: Accounts per page.
        """

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            call = Call("GET", "/v1/accounts", {"limit": limit, "cursor": cursor})
            return cast(Mapping[str, Any], self._data(call))

        return Listing(fetch)

    def get(self, account_id: str) -> Account:
        """Returns an account."""
        return cast(Account, self._data(Call("GET", _path(account_id))))

    def create(self, account: NewAccount, *, idempotency_key: Optional[str] = None) -> Account:
        """Creates an account, which has no keys yet."""
        call = Call(
            "POST", "/v1/accounts", body=account, creates=True, idempotency_key=idempotency_key
        )
        return cast(Account, self._data(call))

    def update(self, account_id: str, changes: AccountPatch) -> Account:
        """Updates an account; omitted fields keep their value."""
        return cast(Account, self._data(Call("PATCH", _path(account_id), body=changes)))

    def create_key(
        self, account_id: str, key: NewKey, *, idempotency_key: Optional[str] = None
    ) -> CreatedKeyData:
        """Creates a key for an account. Only this response contains its secret."""
        call = Call(
            "POST",
            f"{_path(account_id)}/keys",
            body=key,
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(CreatedKeyData, self._data(call))

    def plans(self) -> "List[Plan]":
        """Lists the plans that an account can have."""
        return cast("List[Plan]", self._data(Call("GET", "/v1/plans"))["plans"])

    def _data(self, call: Call) -> Any:
        return self._connection.json(call)["data"]


def _path(account_id: str) -> str:
    return f"/v1/accounts/{encode(account_id)}"
