"""The client."""

from __future__ import annotations

import ipaddress
import re
import secrets
import time
from types import TracebackType
from typing import Callable, Optional, Type
from urllib.parse import urlsplit

from .account import Account
from .connection import Connection, ResponseInfo
from .feedback import Feedback
from .jobs import Jobs
from .lists import Lists
from .resources import Accounts, Events, Keys, OwnAccount, People, Schedules, Webhooks
from .transport import HttpTransport, Transport
from .verify import Verify


class EvClient:
    """Client of the API, with one method for each operation.

    Several threads can use a client at the same time. ``close()``, or leaving a ``with`` block,
    closes its idle connections.

    Args:
        api_key: The secret of an API key: ``ev_live_...``.
        base_url: URL of the service: ``https://ev.example.com``.
        sandbox: Simulates results by the start of the address. Contacts no mail server and
            charges nothing.
        timeout: Seconds per attempt; for streams until the response starts, and then per chunk.
            Default: 30 s, 120 s for calls that send a list, and 45 s for ``webhooks.test()``.
        retries: Maximum number of retries per call.
        on_response: Called for every response, including those that are retried: for logs and
            metrics.
        allow_http: Allows sending the key unencrypted to another machine.
        transport: Sends the requests. Default: ``HttpTransport()``.
        now: Returns the wall-clock time, in seconds since the epoch.
        monotonic: Returns a time that never goes back, in seconds.
        sleep: Waits a number of seconds.
        random: Returns a number from 0 up to, but not including, 1.

    Raises:
        ValueError: An argument is invalid.
    """

    def __init__(
        self,
        api_key: str,
        base_url: str,
        *,
        sandbox: bool = False,
        timeout: Optional[float] = None,
        retries: int = 3,
        on_response: Optional[Callable[[ResponseInfo], object]] = None,
        allow_http: bool = False,
        transport: Optional[Transport] = None,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        random: Callable[[], float] = secrets.SystemRandom().random,
    ) -> None:
        headers = {"authorization": f"Bearer {_validate_key(api_key)}"}
        if sandbox:
            headers["x-ev-sandbox"] = "true"
        self._use(
            Connection(
                base_url=_validate_url(base_url, allow_http),
                headers=headers,
                timeout=_validate_timeout(timeout),
                retries=_validate_retries(retries),
                on_response=on_response or (lambda _: None),
                transport=transport or HttpTransport(),
                now=now,
                monotonic=monotonic,
                sleep=sleep,
                random=random,
            )
        )

    def _use(self, connection: Connection) -> None:
        self._connection = connection
        lists = Lists(connection)
        account = Account(connection)
        self.verify = Verify(connection)
        self.bulk = lists.bulk
        self.bulk_status = lists.bulk_status
        self.batch = lists.batch
        self.file = lists.file
        self.preview = lists.preview
        self.url = lists.url
        self.preview_url = lists.preview_url
        self.jobs = Jobs(connection)
        self.schedules = Schedules(connection)
        self.wait_for_job = self.jobs.wait
        self.account = OwnAccount(connection)
        self.history = account.history
        self.domain = account.domain
        self.credits = account.credits
        self.limits = account.limits
        self.stats = account.stats
        self.audit = account.audit
        self.keys = Keys(connection)
        self.people = People(connection)
        self.accounts = Accounts(connection)
        self.events = Events(connection)
        self.webhooks = Webhooks(connection)
        self.feedback = Feedback(connection)

    def with_options(
        self, *, timeout: Optional[float] = None, retries: Optional[int] = None
    ) -> "EvClient":
        """Returns a client with another timeout or number of retries, on the same connections."""
        client = EvClient.__new__(EvClient)
        client._use(
            self._connection.with_options(
                _validate_timeout(timeout), None if retries is None else _validate_retries(retries)
            )
        )
        return client

    def close(self) -> None:
        """Closes the idle connections. The client remains usable."""
        if isinstance(self._connection.transport, HttpTransport):
            self._connection.transport.close()

    def __enter__(self) -> "EvClient":
        return self

    def __exit__(
        self,
        _type: Optional[Type[BaseException]],
        _error: Optional[BaseException],
        _traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"EvClient(base_url={self._connection.base_url!r})"


def _validate_url(base_url: str, allow_http: bool) -> str:
    """Returns the URL of the service without a trailing slash and without ``/v1``."""
    message = (
        'base_url must be the URL of the service, such as "https://ev.example.com", not'
        f" {base_url!r}."
    )
    if not isinstance(base_url, str) or re.search(r"[\x00-\x20\x7f]", base_url):
        raise ValueError(message)
    try:
        url = urlsplit(base_url)
        _ = url.port
    except ValueError:
        raise ValueError(message) from None
    if url.username is not None or url.password is not None:
        raise ValueError(
            "base_url must not contain a user name or password. Set the key in api_key."
        )
    is_plain = "?" not in base_url and "#" not in base_url
    if url.scheme not in ("http", "https") or not url.hostname or not is_plain:
        raise ValueError(message)
    if url.scheme == "http" and not allow_http and not _is_loopback(url.hostname):
        raise ValueError(
            f"base_url {base_url!r} would send the key unencrypted. Use https, or set allow_http."
        )
    return re.sub(r"/v1$", "", f"{url.scheme}://{url.netloc}{url.path}".rstrip("/"))


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _validate_key(api_key: str) -> str:
    # The message does not repeat the key, as messages are logged.
    if isinstance(api_key, str) and re.fullmatch(r"[\x21-\x7e]+", api_key):
        return api_key
    raise ValueError('api_key must be an API key such as "ev_live_...", without spaces around it.')


def _validate_timeout(timeout: Optional[float]) -> Optional[float]:
    if timeout is None or timeout > 0:
        return timeout
    raise ValueError(f"timeout must be a positive number of seconds, not {timeout}.")


def _validate_retries(retries: int) -> int:
    if isinstance(retries, int) and retries >= 0:
        return retries
    raise ValueError(f"retries must be a whole number of at least 0, not {retries}.")
