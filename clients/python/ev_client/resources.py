"""Plain methods of the client. Made by tools/python-types.mjs: do not edit."""

from __future__ import annotations

from typing import Any, List, Literal, Mapping, Optional, Sequence, Union, cast

from .connection import Call, Connection
from .models import (
    Account,
    AccountPatch,
    Action,
    AuditEntry,
    BreakdownData,
    Class,
    CreatedFeedbackSourceData,
    CreatedKeyData,
    CreatedWebhookData,
    CreditsData,
    Delivery,
    DeliveryDetail,
    DomainAnswerData,
    DownloadLinkData,
    EmittedEvent,
    EmittedEventAnswerData,
    EventListDataEvent,
    EventType,
    FeedbackReport,
    FeedbackSource,
    Job,
    Key,
    KeyPatch,
    Limit,
    NewAccount,
    NewFeedbackSource,
    NewKey,
    NewPerson,
    NewScheduleRequest,
    NewWebhook,
    OwnAccountPatch,
    Person,
    PersonLinkData,
    PersonPatch,
    Plan,
    RecoveredData,
    ResultRowAnswerData,
    ReverifyJob,
    RotatedKeyData,
    RotatedWebhookData,
    Schedule,
    ScheduleChanges,
    StatsData,
    Vocabulary,
    Webhook,
    WebhookPatch,
    WebhookTestData,
)
from .pagination import Listing
from .paths import encode
from .verify import to_body


class OwnAccount:
    """The account of the key."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self) -> Account:
        """Get the account of the key."""
        call = Call("GET", "/v1/account")
        return cast(Account, self._connection.json(call)["data"])

    def update(self, changes: OwnAccountPatch) -> Account:
        """Change the settings of the account.

        Changes the name, the email address, the action policy, or whether people need a second
        factor. Fields that are omitted keep their values. The plan is changed by the
        administrator of the service.
        """
        call = Call("PATCH", "/v1/account", body=changes)
        return cast(Account, self._connection.json(call)["data"])


class Usage:
    """A domain, and data of the account. Its methods are methods of the client."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def domain(self, domain: str) -> DomainAnswerData:
        """Get what is known about a domain.

        Looks the domain up in the DNS and in lists, and adds what earlier verifications and
        your reports tell. It contacts no mail server and is free; it counts toward the rate
        limits of single verifications. What isn't known after 5 seconds is null. In the
        sandbox, no DNS server is asked.
        """
        call = Call("GET", f"/v1/domains/{encode(domain)}")
        return cast(DomainAnswerData, self._connection.json(call)["data"])

    def credits(self) -> CreditsData:
        """Get today's credits.

        A new verification with a definite result costs one credit. ``unknown`` and cached
        results, malformed addresses, duplicates and the sandbox are free. If the plan has no
        daily limit, ``credits_balance`` and ``credits_added`` are null.
        """
        call = Call("GET", "/v1/credits")
        return cast(CreditsData, self._connection.json(call)["data"])

    def limits(self) -> List[Limit]:
        """List all limits and their usage.

        Returns the rate limits for this key and IP address, and the limits of the plan: daily
        credits, unfinished lists and stored rows. Fewer rate limits apply to admin accounts and
        to requests from the machine of the service. For a limit that wasn't used recently,
        ``resets_at`` is the end of a window that starts now.
        """
        call = Call("GET", "/v1/limits")
        return cast("List[Limit]", self._connection.json(call)["data"]["limits"])

    def stats(self, *, period: Optional[Literal["day", "week", "month"]] = None) -> StatsData:
        """Get verification counts by day and by key.

        Returns the counts for today (UTC), or for the last 7 or 30 days including today.
        ``previous`` is the total of the same number of days before.

        Args:
            period: Today, or the last 7 or 30 days.
        """
        call = Call("GET", "/v1/stats", {"period": period})
        return cast(StatsData, self._connection.json(call)["data"])

    def audit(
        self,
        *,
        action: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Listing[AuditEntry]:
        """List the audit log, newest first.

        Returns changes to keys, people, webhooks and the account, sign-ins to the dashboard,
        downloads of results, and requests that were refused for lack of rights (at most 20 in
        an hour for each process), each with the actor and the IP address. Entries are kept for
        a year.

        Args:
            action: Only entries with this action.
            since: Start of the time range, inclusive.
            until: End of the time range, exclusive.
            limit: Maximum number of rows.
        """

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            call = Call(
                "GET",
                "/v1/audit",
                {
                    "action": action,
                    "since": since,
                    "until": until,
                    "limit": limit,
                    "cursor": cursor,
                },
            )
            return cast(Mapping[str, Any], self._connection.json(call)["data"])

        return Listing(fetch)


class Accounts:
    """All accounts, for the key of an admin account."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, *, limit: Optional[int] = None) -> Listing[Account]:
        """List accounts, newest first.

        Requires a key of an admin account.

        Args:
            limit: Maximum number of rows.
        """

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            call = Call("GET", "/v1/accounts", {"limit": limit, "cursor": cursor})
            return cast(Mapping[str, Any], self._connection.json(call)["data"])

        return Listing(fetch)

    def get(self, account_id: str) -> Account:
        """Get an account.

        Requires a key of an admin account.
        """
        call = Call("GET", f"/v1/accounts/{encode(account_id)}")
        return cast(Account, self._connection.json(call)["data"])

    def create(self, account: NewAccount, *, idempotency_key: Optional[str] = None) -> Account:
        """Create an account.

        Requires a key of an admin account. The new account has no keys: create one with ``POST
        /v1/accounts/{id}/keys``.
        """
        call = Call(
            "POST",
            "/v1/accounts",
            body=account,
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(Account, self._connection.json(call)["data"])

    def update(self, account_id: str, changes: AccountPatch) -> Account:
        """Update an account.

        Requires a key of an admin account. Fields that you omit keep their values. A new plan
        applies within a second.
        """
        call = Call("PATCH", f"/v1/accounts/{encode(account_id)}", body=changes)
        return cast(Account, self._connection.json(call)["data"])

    def create_key(
        self,
        account_id: str,
        key: NewKey,
        *,
        idempotency_key: Optional[str] = None,
    ) -> CreatedKeyData:
        """Create an API key for an account.

        Requires a key of an admin account. Works like ``POST /v1/keys``. The new key can't have
        more permissions than the calling key.
        """
        call = Call(
            "POST",
            f"/v1/accounts/{encode(account_id)}/keys",
            body=key,
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(CreatedKeyData, self._connection.json(call)["data"])

    def plans(self) -> List[Plan]:
        """List the plans.

        Requires a key of an admin account. Returns the built-in plans and those of the config
        file.
        """
        call = Call("GET", "/v1/plans")
        return cast("List[Plan]", self._connection.json(call)["data"]["plans"])


class Keys:
    """API keys, by their ID."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> List[Key]:
        """List API keys.

        Returns all keys that aren't deleted.
        """
        call = Call("GET", "/v1/keys")
        return cast("List[Key]", self._connection.json(call)["data"]["keys"])

    def get(self, key_id: str) -> Key:
        """Get an API key."""
        call = Call("GET", f"/v1/keys/{encode(key_id)}")
        return cast(Key, self._connection.json(call)["data"])

    def create(self, key: NewKey, *, idempotency_key: Optional[str] = None) -> CreatedKeyData:
        """Create an API key.

        Returns the key, once: the service stores only its hash. Restrictions that you omit are
        inherited from the calling key, and the new key can't have more permissions than it. A
        ``publishable`` key can only be used for ``POST /v1/verify/form``, from the websites in
        ``allowed_domains``.
        """
        call = Call("POST", "/v1/keys", body=key, creates=True, idempotency_key=idempotency_key)
        return cast(CreatedKeyData, self._connection.json(call)["data"])

    def update(self, key_id: str, changes: KeyPatch) -> Key:
        """Update an API key.

        Fields that you omit keep their values. The change applies to the next request. A key
        can reduce its own permissions, not extend them.
        """
        call = Call("PATCH", f"/v1/keys/{encode(key_id)}", body=changes)
        return cast(Key, self._connection.json(call)["data"])

    def rotate(
        self,
        key_id: str,
        *,
        grace_period_seconds: Optional[int] = None,
        idempotency_key: Optional[str] = None,
    ) -> RotatedKeyData:
        """Rotate an API key.

        Returns a new secret for the key, once. Both secrets work until the grace period ends.
        Dashboard sessions of the key end, except the one that sends this request.

        Args:
            grace_period_seconds: Seconds for which the current secret remains valid.
        """
        call = Call(
            "POST",
            f"/v1/keys/{encode(key_id)}/rotate",
            body=to_body(grace_period_seconds=grace_period_seconds),
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(RotatedKeyData, self._connection.json(call)["data"])

    def delete(self, key_id: str, *, force: Optional[bool] = None) -> None:
        """Delete an API key.

        The key stops working at once, even if it is the calling key, and its dashboard sessions
        end. The last working key of the account is only deleted with ``force=true``; otherwise,
        the response is 409 ``last_key``.

        Args:
            force: Set to true to delete even the last key of the account. You can then create
                another key only on the command line.
        """
        call = Call("DELETE", f"/v1/keys/{encode(key_id)}", {"force": force})
        self._connection.json(call)


class People:
    """People who sign in to the dashboard, by their ID."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> List[Person]:
        """List people.

        Returns the people who sign in to the dashboard of the account, by name.
        """
        call = Call("GET", "/v1/people")
        return cast("List[Person]", self._connection.json(call)["data"]["people"])

    def invite(self, person: NewPerson, *, idempotency_key: Optional[str] = None) -> PersonLinkData:
        """Invite a person.

        Returns a link, once, at which the person sets a password or signs in with the identity
        provider. The role can't have more rights than the caller.
        """
        call = Call(
            "POST",
            "/v1/people",
            body=person,
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(PersonLinkData, self._connection.json(call)["data"])

    def update(self, person_id: str, changes: PersonPatch) -> Person:
        """Update a person.

        Fields that you omit keep their values. A role applies to the next request. People can't
        change their own role.
        """
        call = Call("PATCH", f"/v1/people/{encode(person_id)}", body=changes)
        return cast(Person, self._connection.json(call)["data"])

    def link(self, person_id: str, *, idempotency_key: Optional[str] = None) -> PersonLinkData:
        """Create a new link for a person.

        Returns a link, once, at which the person sets another password; the previous link stops
        working. The current password works until then. A second factor stays.
        """
        call = Call(
            "POST",
            f"/v1/people/{encode(person_id)}/link",
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(PersonLinkData, self._connection.json(call)["data"])

    def reset_two_factor(self, person_id: str) -> None:
        """Remove the second factor of a person.

        For a person who lost the phone and the recovery codes.
        """
        call = Call("DELETE", f"/v1/people/{encode(person_id)}/two-factor")
        self._connection.json(call)

    def delete(self, person_id: str) -> None:
        """Remove a person.

        The sessions of the person end at once. People can't remove themselves.
        """
        call = Call("DELETE", f"/v1/people/{encode(person_id)}")
        self._connection.json(call)


class Schedules:
    """Schedules, which verify lists again at intervals."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(
        self,
        *,
        job_id: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Listing[Schedule]:
        """List schedules, newest first.

        With ``X-EV-Sandbox: true``, returns the schedules of simulated lists, otherwise those
        of live lists.

        Args:
            job_id: Only schedules that were created for this job, or whose latest run is this
                job.
            limit: Maximum number of rows.
        """

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            call = Call(
                "GET",
                "/v1/schedules",
                {"job_id": job_id, "limit": limit, "cursor": cursor},
            )
            return cast(Mapping[str, Any], self._connection.json(call)["data"])

        return Listing(fetch)

    def get(self, schedule_id: str) -> Schedule:
        """Get a schedule."""
        call = Call("GET", f"/v1/schedules/{encode(schedule_id)}")
        return cast(Schedule, self._connection.json(call)["data"])

    def create(
        self,
        schedule: NewScheduleRequest,
        *,
        idempotency_key: Optional[str] = None,
    ) -> Schedule:
        """Re-verify a list at intervals.

        Each run re-verifies the results of the latest run, as ``POST /v1/jobs/{id}/reverify``
        does. The first run is ``every_days`` from now. The schedule belongs to the account:
        deleting the API key that created it doesn't delete the schedule.
        """
        call = Call(
            "POST",
            "/v1/schedules",
            body=schedule,
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(Schedule, self._connection.json(call)["data"])

    def update(self, schedule_id: str, changes: ScheduleChanges) -> Schedule:
        """Change, pause or resume a schedule.

        Fields that you omit keep their values. If you change ``every_days`` or resume the
        schedule, the next run is ``every_days`` from now.
        """
        call = Call("PATCH", f"/v1/schedules/{encode(schedule_id)}", body=changes)
        return cast(Schedule, self._connection.json(call)["data"])

    def delete(self, schedule_id: str) -> None:
        """Delete a schedule.

        The jobs it created are kept.
        """
        call = Call("DELETE", f"/v1/schedules/{encode(schedule_id)}")
        self._connection.json(call)


class Webhooks:
    """Webhooks and their deliveries, by their ID."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> List[Webhook]:
        """List webhook endpoints.

        Oldest first.
        """
        call = Call("GET", "/v1/webhooks")
        return cast("List[Webhook]", self._connection.json(call)["data"]["webhooks"])

    def get(self, webhook_id: str) -> Webhook:
        """Get a webhook endpoint."""
        call = Call("GET", f"/v1/webhooks/{encode(webhook_id)}")
        return cast(Webhook, self._connection.json(call)["data"])

    def create(
        self,
        webhook: NewWebhook,
        *,
        idempotency_key: Optional[str] = None,
    ) -> CreatedWebhookData:
        """Create a webhook endpoint.

        Returns the endpoint with the secret that signs its events, once. Events that happen
        from now on are sent to it.
        """
        call = Call(
            "POST",
            "/v1/webhooks",
            body=webhook,
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(CreatedWebhookData, self._connection.json(call)["data"])

    def update(self, webhook_id: str, changes: WebhookPatch) -> Webhook:
        """Update a webhook endpoint.

        Fields that you omit keep their values.
        """
        call = Call("PATCH", f"/v1/webhooks/{encode(webhook_id)}", body=changes)
        return cast(Webhook, self._connection.json(call)["data"])

    def replace(self, webhook_id: str, webhook: NewWebhook) -> Webhook:
        """Replace a webhook endpoint.

        Fields that you omit get their default values. The secret doesn't change.
        """
        call = Call("PUT", f"/v1/webhooks/{encode(webhook_id)}", body=webhook)
        return cast(Webhook, self._connection.json(call)["data"])

    def delete(self, webhook_id: str) -> None:
        """Delete a webhook endpoint.

        Events are no longer sent to it, and scheduled retries are cancelled.
        """
        call = Call("DELETE", f"/v1/webhooks/{encode(webhook_id)}")
        self._connection.json(call)

    def test(
        self,
        webhook_id: str,
        *,
        event: Optional[EventType] = None,
        idempotency_key: Optional[str] = None,
    ) -> WebhookTestData:
        """Send a test event to a webhook endpoint.

        Sends one event to the endpoint and returns the response of your receiver. The status is
        200 even if the delivery failed. Without a body, it sends ``webhook.test``; with
        ``event``, the example of that event type, marked with ``"sandbox": true``. The endpoint
        can be disabled, and doesn't have to be subscribed to the event. An account can have
        four test events in flight.

        Args:
            event: Send the example of this event type. Default: ``webhook.test``.
        """
        call = Call(
            "POST",
            f"/v1/webhooks/{encode(webhook_id)}/test",
            body=to_body(event=event),
            creates=True,
            idempotency_key=idempotency_key,
            timeout=45.0,
        )
        return cast(WebhookTestData, self._connection.json(call)["data"])

    def rotate_secret(
        self,
        webhook_id: str,
        *,
        grace_period_seconds: Optional[int] = None,
        idempotency_key: Optional[str] = None,
    ) -> RotatedWebhookData:
        """Rotate the secret of a webhook endpoint.

        Returns the new secret, once. ``X-EV-Signature`` uses it from now on. Until the grace
        period ends, ``webhook-signature`` also contains a signature with the previous secret.

        Args:
            grace_period_seconds: Seconds for which events are also signed with the current
                secret.
        """
        call = Call(
            "POST",
            f"/v1/webhooks/{encode(webhook_id)}/secret",
            body=to_body(grace_period_seconds=grace_period_seconds),
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(RotatedWebhookData, self._connection.json(call)["data"])

    def deliveries(
        self,
        webhook_id: str,
        *,
        status: Optional[Literal["pending", "delivered", "retry_scheduled", "failed"]] = None,
        event: Optional[EventType] = None,
        search: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Listing[Delivery]:
        """List the deliveries of a webhook endpoint, newest first.

        Returns one row for each event, with the result of its last attempt. Finished deliveries
        are kept for seven days.

        Args:
            status: Only deliveries with this status.
            event: Only deliveries of this event type.
            search: Only deliveries with this text in the body, ID, status code or error,
                case-insensitive. A search checks up to 100,000 deliveries: while ``has_more`` is
                true, continue with ``next_cursor``, even if the page is empty.
            limit: Maximum number of rows.
        """

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            call = Call(
                "GET",
                f"/v1/webhooks/{encode(webhook_id)}/deliveries",
                {
                    "status": status,
                    "event": event,
                    "search": search,
                    "limit": limit,
                    "cursor": cursor,
                },
            )
            return cast(Mapping[str, Any], self._connection.json(call)["data"])

        return Listing(fetch)

    def delivery(self, webhook_id: str, delivery_id: str) -> DeliveryDetail:
        """Get a delivery with its request and responses."""
        call = Call("GET", f"/v1/webhooks/{encode(webhook_id)}/deliveries/{encode(delivery_id)}")
        return cast(DeliveryDetail, self._connection.json(call)["data"])

    def retry(
        self,
        webhook_id: str,
        delivery_id: str,
        *,
        idempotency_key: Optional[str] = None,
    ) -> Delivery:
        """Retry a delivery.

        Sends the same event again at once, with the usual retries if it fails. The event can
        already be delivered. The endpoint must be active.
        """
        call = Call(
            "POST",
            f"/v1/webhooks/{encode(webhook_id)}/deliveries/{encode(delivery_id)}/retry",
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(Delivery, self._connection.json(call)["data"])

    def recover(
        self,
        webhook_id: str,
        *,
        since: str,
        idempotency_key: Optional[str] = None,
    ) -> RecoveredData:
        """Resend failed deliveries.

        Resends all events whose deliveries failed since a time, for example after an outage of
        your receiver.

        Args:
            since: Resend events from this time on.
        """
        call = Call(
            "POST",
            f"/v1/webhooks/{encode(webhook_id)}/recover",
            body=to_body(since=since),
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(RecoveredData, self._connection.json(call)["data"])

    def events(self) -> List[EventListDataEvent]:
        """List event types.

        Returns the event types that you can subscribe to, each with the JSON Schema of its data
        and an example. ``webhook.test`` isn't included, because it is only sent as a test
        event.
        """
        call = Call("GET", "/v1/webhooks/events")
        return cast("List[EventListDataEvent]", self._connection.json(call)["data"]["events"])


class Events:
    """Events that were emitted for webhooks, by their ID."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(
        self,
        *,
        event: Optional[EventType] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> Listing[EmittedEvent]:
        """List events, newest first.

        Returns the events for webhook endpoints, including simulated and test events. An event
        is created only if an active endpoint is subscribed to it. It is deleted with its last
        delivery.

        Args:
            event: Only events of this type.
            since: Start of the time range, inclusive.
            until: End of the time range, exclusive.
            limit: Maximum number of rows.
        """

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            call = Call(
                "GET",
                "/v1/events",
                {
                    "event": event,
                    "since": since,
                    "until": until,
                    "limit": limit,
                    "cursor": cursor,
                },
            )
            return cast(Mapping[str, Any], self._connection.json(call)["data"])

        return Listing(fetch)

    def get(self, event_id: str) -> EmittedEventAnswerData:
        """Get an event with its deliveries."""
        call = Call("GET", f"/v1/events/{encode(event_id)}")
        return cast(EmittedEventAnswerData, self._connection.json(call)["data"])


class FeedbackSources:
    """The URLs to which email providers send bounces, deliveries and complaints."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self) -> List[FeedbackSource]:
        """List feedback sources.

        Oldest first.
        """
        call = Call("GET", "/v1/feedback/sources")
        return cast("List[FeedbackSource]", self._connection.json(call)["data"]["sources"])

    def create(
        self,
        source: NewFeedbackSource,
        *,
        idempotency_key: Optional[str] = None,
    ) -> CreatedFeedbackSourceData:
        """Create a feedback source.

        Returns a URL for your email provider, which sends bounces, deliveries and complaints to
        it. The source belongs to the account: deleting the API key that created it doesn't
        delete the source.
        """
        call = Call(
            "POST",
            "/v1/feedback/sources",
            body=source,
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(CreatedFeedbackSourceData, self._connection.json(call)["data"])

    def delete(self, source_id: str) -> None:
        """Delete a feedback source.

        Requests to its URL are rejected. The feedback it received is kept.
        """
        call = Call("DELETE", f"/v1/feedback/sources/{encode(source_id)}")
        self._connection.json(call)


class FeedbackReports:
    """The report about feedback."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def report(self) -> FeedbackReport:
        """Compare confidence with outcomes.

        Compares your verdicts with the bounces and deliveries that you reported: their
        confidence, the share of correct verdicts, and the bounces they predicted. Empty in the
        sandbox.
        """
        call = Call("GET", "/v1/feedback/report")
        return cast(FeedbackReport, self._connection.json(call)["data"])


class JobActions:
    """Jobs, by the ``job_id`` of a list."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def cancel(self, job_id: str) -> Job:
        """Cancel a job.

        Stops the job and returns its unused credits. You can still download the results so far,
        with ``partial=true``. If the job is already cancelled, it is returned unchanged, so you
        can repeat the request without an ``Idempotency-Key``.
        """
        call = Call("POST", f"/v1/jobs/{encode(job_id)}/cancel")
        return cast(Job, self._connection.json(call))

    def finish(self, job_id: str) -> Job:
        """Finish a job now.

        Rows that wait for a retry, a pause or a block get the result that is known so far: for
        most of them it is unknown, which is free. Rows in flight end normally. The job is then
        completed as usual, with its events, within seconds or a few minutes. A job that is
        completed or already being finished is returned unchanged, so a request can be repeated
        without an ``Idempotency-Key``.
        """
        call = Call("POST", f"/v1/jobs/{encode(job_id)}/finish")
        return cast(Job, self._connection.json(call))

    def resume(self, job_id: str, *, idempotency_key: Optional[str] = None) -> Job:
        """Resume a cancelled or failed job.

        Continues where the job stopped. Rows with a result keep it, and credits for the others
        are reserved again. ``started_at`` moves forward by the time for which the job was
        stopped. When the job ends, webhooks receive an event, even if they have already
        received ``batch.failed``.
        """
        call = Call(
            "POST",
            f"/v1/jobs/{encode(job_id)}/resume",
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(Job, self._connection.json(call))

    def reverify(
        self,
        job_id: str,
        *,
        only: Optional[Sequence[Class]] = None,
        older_than_days: Optional[int] = None,
        check_smtp: Optional[bool] = None,
        metadata: Optional[Mapping[str, str]] = None,
        notify: Optional[bool] = None,
        webhook_url: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> ReverifyJob:
        """Re-verify a list.

        Creates a job with all rows of a finished list. It re-verifies the rows that match
        ``only`` or ``older_than_days``, or all rows if you set neither, without using cached
        results. The other rows keep their result and cost nothing. Rows without a result are
        always re-verified, rows that aren't addresses never. The name, ``check_smtp`` and
        ``metadata`` of the list apply unless you set them. The re-verification of a simulated
        list is simulated too.

        Args:
            only: Re-verify the rows with these classes.
            older_than_days: Re-verify the rows whose results are older than this number of
                days.
            check_smtp: Set to false to skip the mail server (reason ``smtp_skipped``).
            metadata: Up to 50 key-value pairs, returned with the job and in its events. Keys
                have up to 40 characters and no brackets, values up to 500 characters.
            notify: Set to true to email the address of the account when the list is finished.
                No email is sent if the response already contains the results.
            webhook_url: An https URL to send the events of this job to, in addition to the
                endpoints of the account. The response contains the ``webhook_secret`` that signs
                them.
        """
        call = Call(
            "POST",
            f"/v1/jobs/{encode(job_id)}/reverify",
            body=to_body(
                only=None if only is None else list(only),
                older_than_days=older_than_days,
                check_smtp=check_smtp,
                metadata=metadata,
                notify=notify,
                webhook_url=webhook_url,
            ),
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(ReverifyJob, self._connection.json(call))

    def delete(self, job_id: str) -> None:
        """Delete a job.

        Deletes the job with its addresses and results, including those in the history.
        Statistics keep their counts. A job that is still running is cancelled first.
        """
        call = Call("DELETE", f"/v1/jobs/{encode(job_id)}")
        self._connection.json(call)

    def download_url(
        self,
        job_id: str,
        *,
        format: Optional[Literal["csv", "xlsx", "json", "ndjson"]] = None,
        filter: Optional[Sequence[Class]] = None,
        action: Optional[Sequence[Action]] = None,
        raw: Optional[bool] = None,
        deduplicate: Optional[Union[bool, Literal["address", "canonical"]]] = None,
        vocabulary: Optional[Vocabulary] = None,
        partial: Optional[bool] = None,
        idempotency_key: Optional[str] = None,
    ) -> DownloadLinkData:
        """Create a download URL that needs no API key.

        Returns a URL that works for 24 hours, for anyone who has it, and for this file only. It
        stops working earlier if the job is deleted, or if the API key that created it is
        revoked, rotated or expires. The allowed addresses, allowed domains and rate limit of
        that key apply to the URL too.

        Args:
            format: File format.
            filter: Only rows of these classes.
            action: Only rows with these actions.
            raw: Set to true to leave cells unchanged, as in the download.
            deduplicate: Set to true or ``address`` to get each address once, or to
                ``canonical`` to get each mailbox once. Of rows with the same address, the first
                that matches the filter is returned.
            partial: Set to true to get the results so far of a job that isn't completed.
        """
        call = Call(
            "POST",
            f"/v1/jobs/{encode(job_id)}/download_url",
            body=to_body(
                format=format,
                filter=None if filter is None else list(filter),
                action=None if action is None else list(action),
                raw=raw,
                deduplicate=deduplicate,
                vocabulary=vocabulary,
                partial=partial,
            ),
            creates=True,
            idempotency_key=idempotency_key,
        )
        return cast(DownloadLinkData, self._connection.json(call)["data"])

    def row(self, job_id: str, row: int) -> ResultRowAnswerData:
        """Get a row of a job with its evidence.

        The result has ``flags`` and ``evidence``, as in ``POST
        /v1/verify/single?include=flags,evidence``. A list does not record the SMTP dialogue:
        its addresses share connections.
        """
        call = Call("GET", f"/v1/jobs/{encode(job_id)}/results/{row}")
        return cast(ResultRowAnswerData, self._connection.json(call)["data"])

    def breakdown(self, job_id: str, *, action: Optional[str] = None) -> BreakdownData:
        """Count the results of a job by class, action, reason and operator, and project its
        bounces.

        Returns the counts, most frequent first, with at most 20 operators. ``projection`` has
        the bounce rate to expect of mail to all addresses, to those with the actions ``send``
        and ``send_with_care``, and to those with the actions in ``action``. The counts of a
        running job can be one second old, or up to two minutes for a list of a million rows.

        Args:
            action: Also project the bounces of mail to the rows with these actions, separated
                by commas: send, send_with_care, retry_later, suppress.
        """
        call = Call("GET", f"/v1/jobs/{encode(job_id)}/breakdown", {"action": action})
        return cast(BreakdownData, self._connection.json(call)["data"])
