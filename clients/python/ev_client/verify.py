"""Verifies single addresses."""

from __future__ import annotations

from typing import Any, Callable, Dict, Literal, Mapping, Optional, Sequence, cast

from .connection import Call, Connection
from .errors import EvConnectionError
from .models import AsyncAccepted, FormResult, ScoredResult, SingleResult, VerifyStep
from .responses import to_api_error
from .streams import read_events

#: Additional parts of a result.
Include = Sequence[Literal["flags", "evidence"]]


class Verify:
    """Verifies single addresses. Calling it returns a result with a score.

    The options of all methods: ``check_smtp=False`` skips the mail server, and
    ``force_refresh=True`` bypasses the result cache.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __call__(
        self,
        email: str,
        *,
        include: Optional[Include] = None,
        check_smtp: Optional[bool] = None,
        force_refresh: Optional[bool] = None,
    ) -> ScoredResult:
        """Verifies one address; the result includes a status and a score."""
        body = to_body(email=email, check_smtp=check_smtp, force_refresh=force_refresh)
        call = Call("POST", "/v1/verify", {"include": include}, body)
        return cast(ScoredResult, self._connection.json(call))

    def single(
        self,
        email: str,
        *,
        include: Optional[Include] = None,
        check_smtp: Optional[bool] = None,
        force_refresh: Optional[bool] = None,
        on_step: Optional[Callable[[VerifyStep], object]] = None,
    ) -> SingleResult:
        """Verifies one address.

        Args:
            email: The address.
            include: Additional parts of the result.
            check_smtp: False skips the mail server.
            force_refresh: True bypasses the result cache.
            on_step: Called for each step as it happens. The result then has all parts of
                ``include``, and an invalid address yields a result instead of an error.

        Raises:
            EvApiError: The address is invalid (``invalid_email``), or the service refused the
                request.
            EvConnectionError: No complete response arrived.
        """
        # Without an Idempotency-Key: a cached result is free, so a retry costs nothing.
        body = to_body(email=email, check_smtp=check_smtp, force_refresh=force_refresh)
        if on_step is not None:
            return self._follow(body, on_step)
        call = Call("POST", "/v1/verify/single", {"include": include}, body)
        return cast(SingleResult, self._connection.json(call))

    def later(
        self,
        email: str,
        *,
        check_smtp: Optional[bool] = None,
        force_refresh: Optional[bool] = None,
        metadata: Optional[Mapping[str, str]] = None,
        webhook_url: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> AsyncAccepted:
        """Returns immediately; the webhook event ``verification.completed`` has the result.

        ``metadata`` are your key-value pairs, returned in the event. ``webhook_url`` gets the
        event too; the response has the secret that signs it.
        """
        body = to_body(
            email=email,
            check_smtp=check_smtp,
            force_refresh=force_refresh,
            metadata=None if metadata is None else dict(metadata),
            webhook_url=webhook_url,
        )
        call = Call(
            "POST",
            "/v1/verify/single",
            body={**body, "async": True},
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(AsyncAccepted, self._connection.json(call))

    def form(self, email: str) -> FormResult:
        """Verifies the address of a form within seconds. A publishable key can do only this."""
        call = Call("POST", "/v1/verify/form", body=to_body(email=email))
        return cast(FormResult, self._connection.json(call))

    def _follow(
        self, body: Dict[str, Any], on_step: Callable[[VerifyStep], object]
    ) -> SingleResult:
        call = Call("POST", "/v1/verify/single", body=body, accept="text/event-stream")
        with self._connection.stream(call) as stream:
            for event, data in read_events(stream):
                if event == "result":
                    return cast(SingleResult, data)
                if event == "error":
                    raise to_api_error(data)
                on_step(data)
        raise EvConnectionError("The stream ended before the result. Try again.")


def to_body(**fields: Any) -> Dict[str, Any]:
    """Returns the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
