"""API keys."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, cast

from .connection import Call, Connection
from .models import CreatedKeyData, Key, KeyPatch, NewKey, RotatedKeyData
from .paths import encode


class Keys:
    """Methods for API keys, by their ID."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> "List[Key]":
        """Lists the keys."""
        return cast("List[Key]", self._data(Call("GET", "/v1/keys"))["keys"])

    def get(self, key_id: str) -> Key:
        """Returns a key, without its secret."""
        return cast(Key, self._data(Call("GET", _path(key_id))))

    def create(self, key: NewKey, *, idempotency_key: Optional[str] = None) -> CreatedKeyData:
        """Creates a key. Only this response contains its secret."""
        call = Call("POST", "/v1/keys", body=key, creates=True, idempotency_key=idempotency_key)
        return cast(CreatedKeyData, self._data(call))

    def update(self, key_id: str, changes: KeyPatch) -> Key:
        """Updates a key; omitted fields keep their value."""
        return cast(Key, self._data(Call("PATCH", _path(key_id), body=changes)))

    def rotate(
        self,
        key_id: str,
        *,
        grace_period_seconds: Optional[int] = None,
        idempotency_key: Optional[str] = None,
    ) -> RotatedKeyData:
        """Issues a new secret; the old one stays valid during the grace period (default: a day)."""
        body: Mapping[str, Any] = (
            {}
            if grace_period_seconds is None
            else {"grace_period_seconds": grace_period_seconds}
        )
        call = Call(
            "POST",
            f"{_path(key_id)}/rotate",
            body=body,
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(RotatedKeyData, self._data(call))

    def delete(self, key_id: str, *, force: Optional[bool] = None) -> None:
        """Revokes a key.

        Args:
            key_id: ID of the key.
            force: Also deletes the last key of the account, which otherwise fails with
                ``last_key``.
        """
        self._connection.json(Call("DELETE", _path(key_id), {"force": force}))

    def _data(self, call: Call) -> Any:
        return self._connection.json(call)["data"]


def _path(key_id: str) -> str:
    return f"/v1/keys/{encode(key_id)}"
