"""People who sign in to the dashboard."""

from __future__ import annotations

from typing import Any, List, Optional, cast

from .connection import Call, Connection
from .models import NewPerson, Person, PersonLinkData, PersonPatch
from .paths import encode


class People:
    """Methods for people, by their ID."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> "List[Person]":
        """Lists the people of the account."""
        return cast("List[Person]", self._data(Call("GET", "/v1/people"))["people"])

    def invite(self, person: NewPerson, *, idempotency_key: Optional[str] = None) -> PersonLinkData:
        """Invites a person. Only this response contains the link."""
        call = Call(
            "POST", "/v1/people", body=person, creates=True, idempotency_key=idempotency_key
        )
        return cast(PersonLinkData, self._data(call))

    def update(self, person_id: str, changes: PersonPatch) -> Person:
        """Updates a person; omitted fields keep their value."""
        return cast(Person, self._data(Call("PATCH", _path(person_id), body=changes)))

    def link(self, person_id: str, *, idempotency_key: Optional[str] = None) -> PersonLinkData:
        """Creates a new link, at which the person sets another password."""
        call = Call(
            "POST", f"{_path(person_id)}/link", creates=True, idempotency_key=idempotency_key
        )
        return cast(PersonLinkData, self._data(call))

    def reset_two_factor(self, person_id: str) -> None:
        """Removes the second factor of a person who lost it."""
        self._connection.json(Call("DELETE", f"{_path(person_id)}/two-factor"))

    def delete(self, person_id: str) -> None:
        """Removes a person; the sessions end at once."""
        self._connection.json(Call("DELETE", _path(person_id)))

    def _data(self, call: Call) -> Any:
        return self._connection.json(call)["data"]


def _path(person_id: str) -> str:
    return f"/v1/people/{encode(person_id)}"
