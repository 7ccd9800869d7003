"""Webhooks and their deliveries."""

from __future__ import annotations

from typing import Any, List, Literal, Mapping, Optional, Union, cast

from .connection import Call, Connection
from .models import (
    CreatedWebhookData,
    Delivery,
    DeliveryDetail,
    EventListDataEvent,
    EventType,
    NewWebhook,
    RecoveredData,
    RotatedWebhookData,
    Webhook,
    WebhookPatch,
    WebhookTestData,
)
from .pagination import Listing
from .paths import encode
from .verify import to_body


class Webhooks:
    """Methods for webhooks, by their ID."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> "List[Webhook]":
        """Lists webhooks, oldest first."""
        return cast("List[Webhook]", self._data(Call("GET", "/v1/webhooks"))["webhooks"])

    def get(self, webhook_id: str) -> Webhook:
        """Returns a webhook, without its secret."""
        return cast(Webhook, self._data(Call("GET", _path(webhook_id))))

    def create(
        self, webhook: NewWebhook, *, idempotency_key: Optional[str] = None
    ) -> CreatedWebhookData:
        """Creates a webhook. Only this response contains its signing secret."""
        return cast(CreatedWebhookData, self._create("/v1/webhooks", webhook, idempotency_key))

    def update(self, webhook_id: str, changes: WebhookPatch) -> Webhook:
        """Updates a webhook; omitted fields keep their value."""
        return cast(Webhook, self._data(Call("PATCH", _path(webhook_id), body=changes)))

    def replace(self, webhook_id: str, webhook: NewWebhook) -> Webhook:
        """Replaces a webhook; omitted fields get their default. The secret is kept."""
        return cast(Webhook, self._data(Call("PUT", _path(webhook_id), body=webhook)))

    def delete(self, webhook_id: str) -> None:
        """Deletes a webhook."""
        self._connection.json(Call("DELETE", _path(webhook_id)))

    def test(
        self,
        webhook_id: str,
        *,
        event: Optional[EventType] = None,
        idempotency_key: Optional[str] = None,
    ) -> WebhookTestData:
        """Sends a test event, or an example of another event type, once.

        Returns the response of the receiver, or the failure.
        """
        path = f"{_path(webhook_id)}/test"
        body = to_body(event=event)
        return cast(
            WebhookTestData, self._create(path, body, idempotency_key, timeout=TEST_TIMEOUT)
        )

    def rotate_secret(
        self,
        webhook_id: str,
        *,
        grace_period_seconds: Optional[int] = None,
        idempotency_key: Optional[str] = None,
    ) -> RotatedWebhookData:
        """Issues a new signing secret, which only this response contains.

        Both secrets sign during the grace period (default: a day).
        """
        body = to_body(grace_period_seconds=grace_period_seconds)
        answer = self._create(f"{_path(webhook_id)}/secret", body, idempotency_key)
        return cast(RotatedWebhookData, answer)

    def deliveries(
        self,
        webhook_id: str,
        *,
        status: Optional[Literal["pending", "delivered", "retry_scheduled", "failed"]] = None,
        event: Optional[EventType] = None,
        search: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Listing[Delivery]:
        """Lists deliveries, newest first. ``limit`` is the number of deliveries per page."""
        query = {"status": status, "event": event, "search": search, "limit": limit}

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            path = f"{_path(webhook_id)}/deliveries"
            call = Call("GET", path, {**query, "cursor": cursor})
            return cast(Mapping[str, Any], self._data(call))

        return Listing(fetch)

    def delivery(self, webhook_id: str, delivery_id: str) -> DeliveryDetail:
        """Returns a delivery with its attempts."""
        call = Call("GET", _delivery_path(webhook_id, delivery_id))
        return cast(DeliveryDetail, self._data(call))

    def retry(
        self, webhook_id: str, delivery_id: str, *, idempotency_key: Optional[str] = None
    ) -> Delivery:
        """Retries a delivery."""
        path = f"{_delivery_path(webhook_id, delivery_id)}/retry"
        return cast(Delivery, self._create(path, None, idempotency_key))

    def recover(
        self, webhook_id: str, *, since: str, idempotency_key: Optional[str] = None
    ) -> RecoveredData:
        """Retries all failed deliveries since a time (ISO 8601)."""
        path = f"{_path(webhook_id)}/recover"
        return cast(RecoveredData, self._create(path, {"since": since}, idempotency_key))

    def events(self) -> "List[EventListDataEvent]":
        """Lists the event types, each with the schema of its data and an example."""
        data = self._data(Call("GET", "/v1/webhooks/events"))
        return cast("List[EventListDataEvent]", data["events"])

    def _create(
        self,
        path: str,
        body: Union[Mapping[str, Any], NewWebhook, None],
        idempotency_key: Optional[str],
        timeout: float = 30.0,
    ) -> Any:
        return self._data(
            Call(
                "POST",
                path,
                body=body,
                creates=True,
                idempotency_key=idempotency_key,
                timeout=timeout,
            )
        )

    def _data(self, call: Call) -> Any:
        return self._connection.json(call)["data"]


def _path(webhook_id: str) -> str:
    return f"/v1/webhooks/{encode(webhook_id)}"


def _delivery_path(webhook_id: str, delivery_id: str) -> str:
    return f"{_path(webhook_id)}/deliveries/{encode(delivery_id)}"


#: The service itself waits up to 30 s for the receiver.
TEST_TIMEOUT = 45.0
