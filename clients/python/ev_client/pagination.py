"""Lists in pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Generic, Iterator, List, Mapping, Optional, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Page(Generic[T]):
    """A page of a list, with the cursor of the next one."""

    items: List[T]
    #: None on the last page.
    next_cursor: Optional[str]
    has_more: bool


class Listing(Generic[T]):
    """A paginated list: iterating it fetches all pages, ``page()`` fetches one.

    Args:
        fetch: Returns the data of the first page (None), or of the page at a cursor.
    """

    def __init__(self, fetch: Callable[[Optional[str]], Mapping[str, Any]]) -> None:
        self._fetch = fetch

    def page(self, cursor: Optional[str] = None) -> Page[T]:
        """Fetches the first page, or the page at a cursor."""
        data = self._fetch(cursor)
        return Page(data["items"], data["next_cursor"], data["has_more"])

    def __iter__(self) -> Iterator[T]:
        cursor: Optional[str] = None
        while True:
            page = self.page(cursor)
            yield from page.items
            if page.next_cursor is None:
                return
            cursor = page.next_cursor
