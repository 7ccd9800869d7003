"""Types of requests and responses. Made by tools/python-types.mjs: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired

# Class of the result. Jobs count rows by class; downloads and the history can be filtered by
# it.
Class = Literal["deliverable", "undeliverable", "risky", "unknown"]

# Reason for the result.
Reason = Literal[
        "accepted_email",
        "role_account",
        "possible_typo",
        "catch_all",
        "low_deliverability",
        "low_quality",
        "disposable_email",
        "mailbox_full",
        "spam_trap",
        "blocklisted",
        "mailbox_disabled",
        "rejected_email",
        "invalid_email",
        "invalid_domain",
        "no_mx_record",
        "does_not_accept_mail",
        "dns_error",
        "no_connect",
        "timeout",
        "unavailable_smtp",
        "invalid_smtp",
        "greylisted",
        "probe_blocked",
        "smtp_skipped",
        "no_address",
        "unexpected_error",
    ]

ReverifyJob = Any

# low: accepted, no concerns. medium: accepted, with lower quality or certainty. high: mail
# will bounce or do harm. unknown: no conclusive answer.
RiskLevel = Literal["low", "medium", "high", "unknown"]


class Account(TypedDict):
    id: str
    name: str
    # Name of a plan; see `GET /v1/plans`.
    plan: str
    # Receives alerts about webhooks, and the emails about finished lists that were submitted
    # with `notify`. Null: alerts go to the address of the service.
    email: Optional[str]
    # Whether the account can manage accounts and open the Health page.
    admin: bool
    created_at: str


class AccountAnswer(TypedDict):
    success: Literal[True]
    data: Account


class AccountPage(TypedDict):
    success: Literal[True]
    data: AccountPageData


class AccountPageData(TypedDict):
    items: List[Account]
    # Value of `cursor` for the next page. Null on the last page.
    next_cursor: Optional[str]
    # Whether there is a next page.
    has_more: bool


class AccountPatch(TypedDict):
    # Unique name.
    name: NotRequired[str]
    # Name of a plan; see `GET /v1/plans`.
    plan: NotRequired[str]
    # Receives alerts about webhooks, and the emails about finished lists that were submitted
    # with `notify`. Null: alerts go to the address of the service.
    email: NotRequired[Optional[str]]
    # Whether the account can manage accounts and open the Health page.
    admin: NotRequired[bool]


class AsyncAccepted(TypedDict):
    success: Literal[True]
    verification_id: str
    status: Literal["queued"]
    # The endpoint of this job. Only present with `webhook_url`.
    webhook_id: NotRequired[str]
    # Signs the events that it gets. Not returned again.
    webhook_secret: NotRequired[str]


class AuditEntry(TypedDict):
    id: str
    action: Literal[
        "account.created",
        "account.updated",
        "key.created",
        "key.updated",
        "key.rotated",
        "key.revoked",
        "webhook.created",
        "webhook.updated",
        "webhook.rotated",
        "webhook.deleted",
        "feedback_source.created",
        "feedback_source.deleted",
        "session.started",
        "session.refused",
        "session.ended",
        "results.downloaded",
        "results.shared",
        "job.finished",
    ]
    # `key`: a request with an API key. `link`: a signed URL that was created with the key.
    # `session`: a dashboard session. `command_line`: a command on a machine of the service.
    # `service`: the service itself.
    actor: Literal["key", "link", "session", "command_line", "service"]
    # Key of the request or the session.
    key_id: Optional[str]
    session_id: Optional[str]
    # Client address of the request.
    ip: Optional[str]
    # ID of the key, webhook, account, session or job.
    target_id: Optional[str]
    # Its name at that time; of a webhook the host, of a session the name of its key.
    target_name: Optional[str]
    # Names of the changed fields. Null if the action is not an update.
    changed: Optional[List[str]]
    created_at: str


class AuditPage(TypedDict):
    success: Literal[True]
    data: AuditPageData


class AuditPageData(TypedDict):
    items: List[AuditEntry]
    # Value of `cursor` for the next page. Null on the last page.
    next_cursor: Optional[str]
    # Whether there is a next page.
    has_more: bool


class BatchRequest(TypedDict):
    emails: NotRequired[List[str]]
    # Use it instead of `emails` to add your own IDs, which are returned in downloads.
    items: NotRequired[List[BatchRequestItem]]
    # Display name.
    name: NotRequired[str]
    # Set to false to verify and charge repeated addresses again.
    deduplicate: NotRequired[bool]
    # Set to false to skip the mail server (reason `smtp_skipped`).
    check_smtp: NotRequired[bool]
    # Set to true to contact the mail server even if a cached result exists.
    force_refresh: NotRequired[bool]
    # Up to 50 key-value pairs of your own, returned with the job and in its events. A key has
    # up to 40 characters and no brackets, a value up to 500.
    metadata: NotRequired[Dict[str, str]]
    # Set to true to send an email to the address of the account when the list is done. None
    # is sent for a list that is answered at once.
    notify: NotRequired[bool]
    # An https URL that gets the events of this job, in addition to the endpoints of the
    # account. The response has the `webhook_secret` that signs them.
    webhook_url: NotRequired[str]


class BatchRequestItem(TypedDict):
    email: str
    id: NotRequired[str]


class Breakdown(TypedDict):
    success: Literal[True]
    data: BreakdownData


class BreakdownData(TypedDict):
    # Rows of the list.
    total: int
    # Rows with a result. Each group of counts adds up to it.
    done: int
    classes: ClassCounts
    # One count for each reason and class. `catch_all` may have two: feedback makes some of
    # its addresses deliverable.
    reasons: List[BreakdownDataReason]
    operators: List[BreakdownDataOperator]
    # Rows of all other operators.
    operators_left: int


_BreakdownDataReasonKeywords = TypedDict(
    "_BreakdownDataReasonKeywords",
    {"class": "Literal['deliverable', 'undeliverable', 'risky', 'unknown']"},
)


class BreakdownDataReason(_BreakdownDataReasonKeywords):
    reason: Reason
    count: int


class BreakdownDataOperator(TypedDict):
    # Operator of the mail servers of the domain. Null if it is unknown because no mail server
    # was looked up or the results are simulated.
    operator: Optional[str]
    count: int
    classes: ClassCounts


class BucketAccess(TypedDict):
    """Credentials to read the bucket of an s3:// URL. They are not stored."""

    # URL of a service other than Amazon S3, such as `https://s3.example.com`.
    endpoint: NotRequired[str]
    region: str
    access_key_id: str
    secret_access_key: str
    session_token: NotRequired[str]


_BulkItemKeywords = TypedDict(
    "_BulkItemKeywords",
    {"class": "Class"},
)


class BulkItem(_BulkItemKeywords):
    # The address that was verified.
    email: str
    # True if the class is `deliverable` or `risky`. False if it is `undeliverable` or
    # `unknown`.
    valid: bool
    # True if mail is expected to arrive. This includes some risky addresses.
    deliverable: bool
    risk_level: RiskLevel
    reason: Reason
    # Whether the result came from the cache.
    cached: bool


class CalibrationBin(TypedDict):
    # Verdicts with a known outcome.
    count: int
    # Mean confidence.
    predicted: float
    # Share of correct verdicts.
    observed: float


class CalibrationFigures(TypedDict):
    # Verdicts with a known outcome.
    count: int
    # Mean confidence.
    predicted: float
    # Share of correct verdicts.
    observed: float
    # Mean squared difference of confidence and outcome. 0 is best.
    brier_score: float
    # Expected calibration error: mean difference of confidence and share of correct verdicts
    # in ten ranges of confidence. 0 is best.
    calibration_error: float


class CalibrationLevel(TypedDict):
    # Results that feedback confirmed, weighted by age, with the trend.
    correct: float
    # Results with feedback, weighted by age.
    total: float
    # The share of the level above counts as this many results.
    prior_weight: Optional[float]
    # After this time a result has half its weight. Null if results do not age.
    half_life_days: Optional[float]
    # How much of correct / total is the extrapolation of its trend. Null if results do not
    # age.
    trend: Optional[float]


class Change(TypedDict):
    row: int
    # Empty if the address was erased.
    email: str
    before: ChangeBefore
    after: ChangeAfter


_ChangeBeforeKeywords = TypedDict(
    "_ChangeBeforeKeywords",
    {"class": "Literal['deliverable', 'undeliverable', 'risky', 'unknown']"},
)


class ChangeBefore(_ChangeBeforeKeywords):
    reason: Reason
    # When the result was determined. Null if the address was erased.
    checked_at: Optional[str]


_ChangeAfterKeywords = TypedDict(
    "_ChangeAfterKeywords",
    {"class": "Literal['deliverable', 'undeliverable', 'risky', 'unknown']"},
)


class ChangeAfter(_ChangeAfterKeywords):
    reason: Reason
    # When the result was determined. Null if the address was erased.
    checked_at: Optional[str]


class ChangePage(TypedDict):
    success: Literal[True]
    data: ChangePageData


class ChangePageData(TypedDict):
    # The job that this one verifies again. Null if it is a new list.
    previous_job_id: Optional[str]
    # Rows that were verified again so far.
    verified: int
    # Rows whose class has changed.
    changed: int
    # Rows by class before and after. They add up to `verified`.
    counts: List[ChangePageDataCount]
    items: List[Change]
    # Value of `cursor` for the next page. Null on the last page.
    next_cursor: Optional[str]
    # Whether there is a next page.
    has_more: bool


_ChangePageDataCountKeywords = TypedDict(
    "_ChangePageDataCountKeywords",
    {"from": "Literal['deliverable', 'undeliverable', 'risky', 'unknown']"},
)


class ChangePageDataCount(_ChangePageDataCountKeywords):
    to: Literal["deliverable", "undeliverable", "risky", "unknown"]
    count: int


class ClassCounts(TypedDict):
    deliverable: int
    risky: int
    undeliverable: int
    unknown: int


class Counts(TypedDict):
    verifications: int
    # Verifications answered from the cache.
    cached: int
    credits: int
    deliverable: int
    undeliverable: int
    risky: int
    unknown: int


class CreatedFeedbackSource(TypedDict):
    success: Literal[True]
    data: CreatedFeedbackSourceData


class CreatedFeedbackSourceData(TypedDict):
    id: str
    # The email provider.
    provider: Literal[
        "ses",
        "sendgrid",
        "mailgun",
        "postmark",
        "sparkpost",
    ]
    # The URL to set at the provider.
    url: str
    # For `ses` the ARN of the topic, otherwise the last characters of the key.
    key_hint: str
    # HTTP Basic authentication to set at the provider. Null for a provider with a key of its
    # own. Returned only once.
    basic_auth: Optional[CreatedFeedbackSourceDataBasicAuth]
    created_at: str
    # When the provider last sent an authentic request. Null if it never did.
    last_received_at: Optional[str]


class CreatedFeedbackSourceDataBasicAuth(TypedDict):
    """HTTP Basic authentication to set at the provider. Null for a provider with a key of its own. Returned only once."""

    username: str
    password: str


class CreatedKey(TypedDict):
    success: Literal[True]
    data: CreatedKeyData


class CreatedKeyData(TypedDict):
    id: str
    name: str
    # First characters of the secret.
    prefix: str
    # The secret of the key, returned only once.
    key: str
    # Last characters of the secret.
    hint: str
    # Whether the key is for forms on websites. Its only scope is `verify:form`.
    publishable: bool
    # Whether all requests of the key are in the sandbox.
    test: bool
    scopes: List[Literal[
        "verify:single",
        "verify:bulk",
        "jobs:read",
        "jobs:write",
        "webhooks:read",
        "webhooks:write",
        "feedback:read",
        "feedback:write",
        "account:read",
        "account:write",
        "audit:read",
        "keys:write",
        "accounts:write",
        "dashboard",
        "*",
        "verify:form",
    ]]
    allowed_ips: List[str]
    allowed_domains: List[str]
    rate_limit_per_minute: Optional[int]
    created_at: str
    expires_at: Optional[str]
    last_used_at: Optional[str]


class CreatedWebhook(TypedDict):
    success: Literal[True]
    data: CreatedWebhookData


class CreatedWebhookData(TypedDict):
    id: str
    url: str
    events: List[Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
    ]]
    active: bool
    description: Optional[str]
    # The job whose events alone it gets. Only present for an endpoint of a job.
    job_id: NotRequired[str]
    # Names of the custom headers. Their values are never returned.
    header_names: List[str]
    # The secret that signs events (`X-EV-Signature`: HMAC-SHA256 of the body, keyed with this
    # whole text). Returned only once.
    secret: str
    created_at: str
    updated_at: str
    # Human-readable reason why the service disabled the endpoint. Null if it did not.
    disabled_reason: Optional[str]
    # Machine-readable reason why the service disabled the endpoint. Null if it did not.
    # `gone`: the endpoint answered with 410. `failing`: all attempts failed for five days.
    disabled_code: Optional[Literal["gone", "failing"]]
    # Start of continuous failures. Null if the last attempt succeeded. After five days the
    # endpoint is disabled.
    failing_since: Optional[str]
    # Share of successful attempts on the days of `daily_attempts`. Null if there were no
    # attempts.
    success_rate: Optional[float]
    # Attempts by day, oldest first: the last seven days on which events were sent. Tests are
    # not counted.
    daily_attempts: List[CreatedWebhookDataDailyAttempt]


class CreatedWebhookDataDailyAttempt(TypedDict):
    # UTC.
    date: str
    delivered: int
    failed: int


class Credits(TypedDict):
    success: Literal[True]
    data: CreditsData


class CreditsData(TypedDict):
    account_id: str
    api_key_id: str
    api_key_name: str
    plan: str
    # Available credits, without those reserved. Null if the plan has no limit.
    credits_balance: Optional[int]
    # Credits charged in the current period.
    credits_consumed: int
    # Credits reserved for verifications in progress. Unused ones are returned.
    credits_held: int
    # Credits of the plan per period. Null if the plan has no limit.
    credits_added: Optional[int]
    period: Literal["day"]
    # End of the current period.
    resets_at: str
    last_updated: str


class Delivery(TypedDict):
    id: str
    webhook_id: str
    # Identical for all attempts and endpoints.
    event_id: str
    event: Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
        "webhook.test",
    ]
    # `pending`: due now. `delivered`: the endpoint answered with 2xx. `retry_scheduled`: the
    # last attempt failed, and another one follows. `failed`: no further attempts.
    status: Literal["pending", "delivered", "retry_scheduled", "failed"]
    # Number of attempts. A manual retry restarts it at 0.
    attempt: int
    # `scheduled`: sent because the event happened. `manual`: resent on request. `test`: a
    # test event.
    trigger: Literal["scheduled", "manual", "test"]
    # HTTP status of the response. Null if none arrived.
    status_code: Optional[int]
    duration_ms: Optional[int]
    # Human-readable error. Null if there is none.
    error: Optional[str]
    # Machine-readable error. Null if there is none. `http_status`: the response was not 2xx.
    # `redirect`: the response was 3xx; redirects are not followed. `timeout`: no response
    # within 30 seconds. `connection_failed`: no connection, or it was closed before the
    # response. `tls_error`: no TLS, or an invalid certificate. `dns_error`: the host name has
    # no address or could not be resolved. `address_not_public`: the address is in a network
    # that the service does not send to. `invalid_url`: the URL cannot be used.
    # `invalid_response`: the response was not HTTP/1.1 or was too long. `secret_unreadable`:
    # the signing secret cannot be read. `interrupted`: the service was stopped before the
    # response. `request_failed`: any other failure.
    error_code: Optional[Literal[
        "http_status",
        "redirect",
        "timeout",
        "connection_failed",
        "tls_error",
        "dns_error",
        "address_not_public",
        "invalid_url",
        "invalid_response",
        "secret_unreadable",
        "interrupted",
        "request_failed",
    ]]
    # Null if the delivery is finished or the endpoint is disabled.
    next_attempt_at: Optional[str]
    created_at: str
    # When the delivery is deleted and can no longer be retried. Null if it is not finished.
    expires_at: Optional[str]


class DeliveryAnswer(TypedDict):
    success: Literal[True]
    data: Delivery


class DeliveryAttempt(TypedDict):
    number: int
    # `scheduled`: sent because the event happened. `manual`: resent on request. `test`: a
    # test event.
    trigger: Literal["scheduled", "manual", "test"]
    started_at: str
    url: str
    # HTTP status of the response. Null if none arrived.
    status_code: Optional[int]
    duration_ms: int
    # Human-readable error. Null if there is none.
    error: Optional[str]
    # Machine-readable error. Null if there is none. `http_status`: the response was not 2xx.
    # `redirect`: the response was 3xx; redirects are not followed. `timeout`: no response
    # within 30 seconds. `connection_failed`: no connection, or it was closed before the
    # response. `tls_error`: no TLS, or an invalid certificate. `dns_error`: the host name has
    # no address or could not be resolved. `address_not_public`: the address is in a network
    # that the service does not send to. `invalid_url`: the URL cannot be used.
    # `invalid_response`: the response was not HTTP/1.1 or was too long. `secret_unreadable`:
    # the signing secret cannot be read. `interrupted`: the service was stopped before the
    # response. `request_failed`: any other failure.
    error_code: Optional[Literal[
        "http_status",
        "redirect",
        "timeout",
        "connection_failed",
        "tls_error",
        "dns_error",
        "address_not_public",
        "invalid_url",
        "invalid_response",
        "secret_unreadable",
        "interrupted",
        "request_failed",
    ]]
    # Start of the response body. Null if no response arrived.
    response_excerpt: Optional[str]
    # Null if no response arrived.
    response_headers: Optional[Dict[str, str]]


class DeliveryDetail(TypedDict):
    id: str
    webhook_id: str
    # Identical for all attempts and endpoints.
    event_id: str
    event: Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
        "webhook.test",
    ]
    # `pending`: due now. `delivered`: the endpoint answered with 2xx. `retry_scheduled`: the
    # last attempt failed, and another one follows. `failed`: no further attempts.
    status: Literal["pending", "delivered", "retry_scheduled", "failed"]
    # Number of attempts. A manual retry restarts it at 0.
    attempt: int
    # `scheduled`: sent because the event happened. `manual`: resent on request. `test`: a
    # test event.
    trigger: Literal["scheduled", "manual", "test"]
    # HTTP status of the response. Null if none arrived.
    status_code: Optional[int]
    duration_ms: Optional[int]
    # Human-readable error. Null if there is none.
    error: Optional[str]
    # Machine-readable error. Null if there is none. `http_status`: the response was not 2xx.
    # `redirect`: the response was 3xx; redirects are not followed. `timeout`: no response
    # within 30 seconds. `connection_failed`: no connection, or it was closed before the
    # response. `tls_error`: no TLS, or an invalid certificate. `dns_error`: the host name has
    # no address or could not be resolved. `address_not_public`: the address is in a network
    # that the service does not send to. `invalid_url`: the URL cannot be used.
    # `invalid_response`: the response was not HTTP/1.1 or was too long. `secret_unreadable`:
    # the signing secret cannot be read. `interrupted`: the service was stopped before the
    # response. `request_failed`: any other failure.
    error_code: Optional[Literal[
        "http_status",
        "redirect",
        "timeout",
        "connection_failed",
        "tls_error",
        "dns_error",
        "address_not_public",
        "invalid_url",
        "invalid_response",
        "secret_unreadable",
        "interrupted",
        "request_failed",
    ]]
    # Null if the delivery is finished or the endpoint is disabled.
    next_attempt_at: Optional[str]
    created_at: str
    # When the delivery is deleted and can no longer be retried. Null if it is not finished.
    expires_at: Optional[str]
    request: DeliveryDetailRequest
    # Response to the last attempt. Null if none arrived.
    response: Optional[DeliveryDetailResponse]
    # Oldest first; at most the last 60.
    attempts: List[DeliveryAttempt]


class DeliveryDetailRequest(TypedDict):
    url: str
    # Headers of the last attempt. The values of custom headers are hidden. Signatures are
    # included only if the key has the scope `webhooks:write`.
    headers: Dict[str, str]
    # The exact body that is sent and signed.
    body: str


class DeliveryDetailResponse(TypedDict):
    """Response to the last attempt. Null if none arrived."""

    status_code: int
    headers: Dict[str, str]
    # Start of the response body.
    body: str


class DeliveryDetailAnswer(TypedDict):
    success: Literal[True]
    data: DeliveryDetail


class DeliveryPage(TypedDict):
    success: Literal[True]
    data: DeliveryPageData


class DeliveryPageData(TypedDict):
    items: List[Delivery]
    # Value of `cursor` for the next page. Null on the last page.
    next_cursor: Optional[str]
    # Whether there is a next page.
    has_more: bool


class Details(TypedDict):
    # Whether the text is a well-formed address.
    syntax_valid: bool
    # Whether the domain exists.
    domain_exists: bool
    # Whether the domain has a mail server: an MX record, or else its own address.
    mx_record: bool
    # Whether the mail server accepts mail for the address. Also false if it was not
    # contacted.
    smtp_valid: bool


class DownloadLink(TypedDict):
    success: Literal[True]
    data: DownloadLinkData


class DownloadLinkData(TypedDict):
    # The URL. Requires no API key.
    url: str
    expires_at: str


class DownloadLinkRequest(TypedDict):
    # File format.
    format: NotRequired[Literal["csv", "xlsx", "json", "ndjson"]]
    # Only rows of these classes.
    filter: NotRequired[List[Literal["deliverable", "undeliverable", "risky", "unknown"]]]
    # As in the download.
    raw: NotRequired[bool]
    # Set to true or `address` to get each address once: the first of the rows with the same
    # address that the filter selects. Set to `canonical` to get each mailbox once: the rows
    # with the same `canonical` address.
    deduplicate: NotRequired[Union[bool, Literal["address", "canonical"]]]
    # As in the download.
    partial: NotRequired[bool]


_DownloadRowKeywords = TypedDict(
    "_DownloadRowKeywords",
    {"class": "Class"},
)


class DownloadRow(_DownloadRowKeywords):
    # Number of the row in the list, from 1.
    row: int
    # Your ID, as submitted with the address.
    id: NotRequired[str]
    # The address that was verified.
    email: str
    # True if the class is `deliverable` or `risky`. False if it is `undeliverable` or
    # `unknown`.
    valid: bool
    # True if mail is expected to arrive. This includes some risky addresses.
    deliverable: bool
    risk_level: RiskLevel
    # Domain of the address. Empty if it has none.
    provider: str
    # Duration in milliseconds.
    response_time: int
    # How certain the result is, from 0 to 100. It does not rate the address itself.
    confidence: int
    details: Details
    reason: Reason
    # Whether the result came from the cache.
    cached: bool
    # Seconds after which a retry is useful, if known.
    retry_after: NotRequired[int]
    flags: NotRequired[DownloadRowFlags]
    # Suggested address if the domain is probably misspelled. Null if it is not.
    did_you_mean: NotRequired[Optional[str]]
    # The canonical spelling of the address at its provider: `ann@gmail.com` for
    # `A.nn+news@googlemail.com`. Addresses with the same one are the same mailbox. Null if
    # the text is not an address.
    canonical: NotRequired[Optional[str]]
    # The mail server that was contacted, or the first one of the domain if none was.
    mx_host: NotRequired[Optional[str]]
    # When the address was verified. Earlier than now if the result is cached.
    checked_at: NotRequired[str]
    # Operator of the mail servers of the domain.
    operator: NotRequired[Optional[str]]
    # SMTP reply code of the mail server. Null if it sent none.
    smtp_code: NotRequired[Optional[int]]
    # Reply of the mail server, or what was observed if it sent none.
    smtp_text: NotRequired[Optional[str]]
    previous_class: NotRequired[Any]
    previous_reason: NotRequired[Reason]
    # True if the address was erased. Only the class of its result is left.
    erased: NotRequired[Literal[True]]
    # The result is simulated.
    sandbox: NotRequired[Literal[True]]
    # Cells of the uploaded file by column name.
    input: NotRequired[Dict[str, str]]


class DownloadRowFlags(TypedDict):
    # Whether the domain provides temporary addresses.
    is_disposable: bool
    # Whether the address belongs to a function, such as `info@`.
    is_role: bool
    # Whether the domain accepts every address. Null if it was not tested.
    is_catch_all: Optional[bool]
    # Whether the domain is a free email provider.
    is_free: bool
    # Whether the address is an alias of a forwarding service.
    is_relay: bool


class EmittedEvent(TypedDict):
    event_id: str
    event: Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
        "webhook.test",
    ]
    timestamp: str
    # Whether it is a simulated event.
    sandbox: bool
    # As sent to the endpoints. `GET /v1/webhooks/events` has its JSON Schema.
    data: Dict[str, Any]


class EmittedEventAnswer(TypedDict):
    success: Literal[True]
    data: EmittedEventAnswerData


class EmittedEventAnswerData(TypedDict):
    event_id: str
    event: Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
        "webhook.test",
    ]
    timestamp: str
    # Whether it is a simulated event.
    sandbox: bool
    # As sent to the endpoints. `GET /v1/webhooks/events` has its JSON Schema.
    data: Dict[str, Any]
    # Its deliveries, one for each endpoint that was subscribed and still exists.
    deliveries: List[Delivery]


class EmittedEventPage(TypedDict):
    success: Literal[True]
    data: EmittedEventPageData


class EmittedEventPageData(TypedDict):
    items: List[EmittedEvent]
    # Value of `cursor` for the next page. Null on the last page.
    next_cursor: Optional[str]
    # Whether there is a next page.
    has_more: bool


class ErrorBody(TypedDict):
    success: Literal[False]
    # Human-readable message.
    error: str
    # Machine-readable code.
    code: Literal[
        "invalid_request",
        "invalid_json",
        "invalid_email",
        "emails_required",
        "empty_list",
        "too_many_emails",
        "invalid_webhook_url",
        "invalid_list_url",
        "list_unreachable",
        "list_access_denied",
        "list_http_error",
        "invalid_event",
        "authentication_error",
        "key_expired",
        "key_revoked",
        "ip_restricted",
        "domain_restricted",
        "insufficient_scope",
        "not_found",
        "method_not_allowed",
        "request_timeout",
        "last_key",
        "account_exists",
        "job_not_ready",
        "job_not_cancellable",
        "job_not_finishable",
        "job_not_resumable",
        "job_not_reverifiable",
        "idempotency_in_progress",
        "payload_too_large",
        "unsupported_media_type",
        "expectation_failed",
        "idempotency_mismatch",
        "rate_limit",
        "quota_exceeded",
        "concurrent_jobs_exceeded",
        "stored_rows_exceeded",
        "headers_too_large",
        "server_error",
        "service_unavailable",
        "insufficient_storage",
    ]
    # ID of the request, also in the header `X-Request-Id` and in the log.
    request_id: str


class EventList(TypedDict):
    success: Literal[True]
    data: EventListData


class EventListData(TypedDict):
    events: List[EventListDataEvent]


class EventListDataEvent(TypedDict):
    event: Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
    ]
    description: str
    # JSON Schema of `data`.
    schema: Dict[str, Any]
    # Example of the complete body.
    example: Dict[str, Any]


class Evidence(TypedDict):
    """The facts that a result is based on, with `?include=evidence`: replies of DNS and mail servers, signals and feedback. Later versions may add fields and values."""

    # The syntax error of the address. Null if it has none.
    syntax: Optional[EvidenceSyntax]
    # The address without what its provider ignores, such as dots and tags.
    canonical: Optional[str]
    # Operator of the mail servers of the domain.
    operator: Optional[str]
    # How mail for the domain is routed. Null if it was not looked up.
    route: Optional[EvidenceRoute]
    # Name of the egress from which the mail server was contacted.
    egress: Optional[str]
    # The mail server that was contacted. Null if none was.
    host: Optional[str]
    # Its IP address.
    ip: Optional[str]
    # Whether the SMTP session was encrypted.
    tls: bool
    # What the mail server said about the address. Null if it was not asked.
    answer: Optional[EvidenceAnswer]
    # Whether the domain accepts every address. Null if it was not tested.
    catch_all: Optional[bool]
    # Why no mail server was asked. literal: the domain is an IP address. unwanted:
    # `check_smtp` is false. sandbox: the result is simulated. finished: the list was finished
    # before the address was probed.
    skipped: Optional[Literal["literal", "unwanted", "sandbox", "finished"]]
    # The message of an internal error.
    failure: Optional[str]
    # Duration of the DNS lookups.
    dns_ms: Optional[int]
    # Duration of connecting.
    connect_ms: Optional[int]
    # Lines of the SMTP session, with `C: ` or `S: `.
    dialogue: NotRequired[List[str]]
    # Signals from outside the SMTP session, if any were looked for.
    signals: NotRequired[List[EvidenceSignal]]
    # The newest feedback about the address.
    feedback: NotRequired[EvidenceFeedback]
    # The feedback about a catch-all domain.
    domain_feedback: NotRequired[EvidenceDomainFeedback]
    # The measurements that the confidence is based on.
    calibration: NotRequired[EvidenceCalibration]


class EvidenceSyntax(TypedDict):
    """The syntax error of the address. Null if it has none."""

    # Index of the first wrong character, in UTF-16 code units.
    at: int
    message: str
    # The violated clause of a standard.
    rule: str


class EvidenceRoute(TypedDict):
    """How mail for the domain is routed. Null if it was not looked up."""

    # mx: has MX records. implicit: has no MX record, but an address. null-mx: accepts no mail
    # (RFC 7505). no-domain: does not exist. no-mail: has neither MX record nor address.
    # unknown: DNS gave no conclusive answer.
    kind: Literal[
        "mx",
        "implicit",
        "null-mx",
        "no-domain",
        "no-mail",
        "unknown",
    ]
    # Mail servers, most preferred first.
    hosts: List[EvidenceRouteHost]
    # Why the answer of the DNS server was not used.
    detail: NotRequired[str]


class EvidenceRouteHost(TypedDict):
    preference: int
    host: str


class EvidenceAnswer(TypedDict):
    """What the mail server said about the address. Null if it was not asked."""

    # accepted, rejected: the mail server decided about the address. blocked: it refused ev.
    # deferred: it asked to try again later. no-response: it sent no usable reply.
    kind: Literal[
        "accepted",
        "rejected",
        "blocked",
        "deferred",
        "no-response",
    ]
    # The cause of the outcome.
    why: Literal[
        "recipient",
        "cannot-verify",
        "restricted",
        "no-mailbox",
        "disabled",
        "full",
        "moved",
        "not-hosted",
        "no-mail",
        "blocklist",
        "rdns",
        "sender",
        "tls",
        "auth",
        "policy",
        "greylist",
        "rate",
        "too-many",
        "busy",
        "no-address",
        "dns",
        "connect",
        "timeout",
        "closed",
        "garbage",
        "not-public",
        "smtputf8",
        "own-limit",
    ]
    # The step of the SMTP session.
    stage: Literal[
        "connect",
        "greeting",
        "ehlo",
        "starttls",
        "mail",
        "rcpt",
        "rset",
    ]
    # SMTP reply code. Null without a reply.
    code: Optional[int]
    # Enhanced status code (RFC 3463).
    enhanced_code: Optional[str]
    # The reply of the mail server, or what was observed if it sent none.
    text: str
    # The meaning and the recommended action, as text.
    meaning: str
    # Set if the reply is unknown to ev, but servers gave it to random recipients, which do
    # not exist.
    learned: NotRequired[EvidenceAnswerLearned]


class EvidenceAnswerLearned(TypedDict):
    """Set if the reply is unknown to ev, but servers gave it to random recipients, which do not exist."""

    # domain: this domain. operator: other domains of its operator. software: domains of other
    # operators with the same server software.
    scope: Literal["domain", "operator", "software"]
    # Number of domains whose server gave the reply to a random recipient.
    domains: int


class EvidenceSignal(TypedDict):
    name: Literal["policies", "parking", "typo-network", "gravatar"]
    # Points that it adds to the confidence that the address is not deliverable.
    shift: int
    detail: str


class EvidenceFeedback(TypedDict):
    """The newest feedback about the address."""

    summary: str
    kind: Literal["delivered", "bounced", "complained"]
    occurred_at: str
    # SMTP reply code.
    code: Optional[int]
    enhanced_code: Optional[str]
    text: Optional[str]
    # Whether it decided the result: no newer evidence contradicts it.
    decides: bool


class EvidenceDomainFeedback(TypedDict):
    """The feedback about a catch-all domain."""

    # Addresses that received mail.
    delivered: float
    # Addresses whose mail bounced.
    bounced: float
    # Lower bound of the bounce rate.
    bounce_rate_min: float
    # Upper bound of the bounce rate.
    bounce_rate_max: float


class EvidenceCalibration(TypedDict):
    """The measurements that the confidence is based on."""

    # The confidence of the reason without feedback.
    fixed_confidence: int
    reason: CalibrationLevel
    operator: Optional[CalibrationLevel]
    domain: Optional[CalibrationLevel]


class FeedbackAnswer(TypedDict):
    success: Literal[True]
    data: RecordedFeedback


class FeedbackItem(TypedDict):
    # The recipient.
    email: str
    # What happened to the message.
    kind: Literal["delivered", "bounced", "complained"]
    # SMTP reply code of a bounce.
    code: NotRequired[int]
    # Enhanced status code (RFC 3463).
    enhanced_code: NotRequired[str]
    # Diagnostic text of a bounce. 500 characters are stored.
    text: NotRequired[str]
    # When it happened. Default: now.
    occurred_at: NotRequired[str]
    # ID of the event in your system. An item with the ID of an earlier one is a duplicate.
    # Without it, an item that equals an earlier one is.
    id: NotRequired[str]


class FeedbackReport(TypedDict):
    total: CalibrationFigures
    fixed_confidence: Any
    # The verdicts by confidence in ranges of 10 %, lowest first, without empty ones.
    bins: List[CalibrationBin]
    # The same with the fixed confidence.
    fixed_bins: List[CalibrationBin]
    # What verdicts predicted, by the field `deliverable`.
    outcomes: FeedbackReportOutcomes
    # By reason, most verdicts first. Verdicts of catch-all domains with enough reports are
    # counted by risk, such as `catch_all/low`.
    reasons: List[FeedbackReportReason]
    # By reason and operator, most verdicts first, at most 100.
    operators: List[FeedbackReportOperator]
    # Recorded feedback by day and source, newest first, at most 30 rows.
    received: List[FeedbackReportReceivedItem]


class FeedbackReportOutcomes(TypedDict):
    """What verdicts predicted, by the field `deliverable`."""

    # Mail that bounced, and was not deliverable by its verdict.
    predicted_bounces: int
    # Mail that bounced, and was deliverable by its verdict.
    missed_bounces: int
    # Mail that arrived, and was deliverable by its verdict.
    kept_deliveries: int
    # Mail that arrived, and was not deliverable by its verdict.
    lost_deliveries: int


class FeedbackReportReason(TypedDict):
    reason: str
    # Verdicts with a known outcome.
    count: int
    # Mean confidence.
    predicted: float
    # Share of correct verdicts.
    observed: float
    # Mean squared difference of confidence and outcome. 0 is best.
    brier_score: float
    # Expected calibration error: mean difference of confidence and share of correct verdicts
    # in ten ranges of confidence. 0 is best.
    calibration_error: float


class FeedbackReportOperator(TypedDict):
    reason: str
    operator: Optional[str]
    # Verdicts with a known outcome.
    count: int
    # Mean confidence.
    predicted: float
    # Share of correct verdicts.
    observed: float
    # Mean squared difference of confidence and outcome. 0 is best.
    brier_score: float
    # Expected calibration error: mean difference of confidence and share of correct verdicts
    # in ten ranges of confidence. 0 is best.
    calibration_error: float


class FeedbackReportReceivedItem(TypedDict):
    # Day in UTC.
    date: str
    # `api`, `import` for `ev feedback import`, or the provider of a source.
    source: str
    delivered: int
    bounced: int
    complained: int


class FeedbackReportAnswer(TypedDict):
    success: Literal[True]
    data: FeedbackReport


class FeedbackRequest(TypedDict):
    items: List[FeedbackItem]


class FeedbackSource(TypedDict):
    id: str
    # The email provider.
    provider: Literal[
        "ses",
        "sendgrid",
        "mailgun",
        "postmark",
        "sparkpost",
    ]
    # The URL to set at the provider.
    url: str
    # For `ses` the ARN of the topic, otherwise the last characters of the key.
    key_hint: str
    created_at: str
    # When the provider last sent an authentic request. Null if it never did.
    last_received_at: Optional[str]


class FeedbackSourceList(TypedDict):
    success: Literal[True]
    data: FeedbackSourceListData


class FeedbackSourceListData(TypedDict):
    sources: List[FeedbackSource]
    total: int


class FileDryRun(TypedDict):
    success: Literal[True]
    dry_run: Literal[True]
    # Columns of the list, truncated if there are very many.
    columns: List[FileDryRunColumn]
    # Name of the address column.
    column: Optional[str]
    # Null if none was found; send `column` then.
    column_number: Optional[int]
    header: bool
    # Encoding with which the file is read, as a WHATWG label.
    encoding: str
    delimiter: Literal[",", ";", "\t", "|"]
    # Format of the file: text as it is or compressed, or a workbook.
    format: Literal["text", "gzip", "zip", "xlsx"]
    # The sheet that is read. Null if the file is not a workbook.
    sheet: Optional[str]
    # Names of the sheets. Empty if the file is not a workbook.
    sheets: List[str]
    # Numbers of the columns that hold addresses, among them `column_number`. Without
    # `all_addresses`, the others are not verified.
    address_columns: List[int]
    # True if cells of the address column hold several addresses, or lines of a list without
    # other columns. Without `all_addresses`, such a cell is `invalid_email`, and of such a
    # line the first address is verified.
    has_several: bool
    # True if each address of a row is verified as a separate row.
    all_addresses: bool
    rows: Optional[int]
    total_emails: Optional[int]
    # Rows with a well-formed address, whether it exists or not.
    valid_emails: Optional[int]
    # Rows with a malformed address; in a response without `no_address`, also those without
    # one.
    invalid_format_emails: Optional[int]
    # Rows without an address: blank between other rows, empty in the address column, or with
    # a placeholder such as `n/a`. Their reason is `no_address` and their class `unknown`;
    # they are free, and no duplicates.
    no_address: Optional[int]
    duplicates: Optional[int]
    # Maximum cost of the list.
    credits_needed: Optional[int]
    # Credits left today. Null if the plan has no limit.
    credits_balance: Optional[int]
    # Estimated duration.
    estimated_time: Optional[str]
    # The first five rows. Long cells are truncated.
    preview: List[List[str]]


class FileDryRunColumn(TypedDict):
    number: int
    name: Optional[str]


class FormRequest(TypedDict):
    # The address, at most 254 octets.
    email: str


_FormResultKeywords = TypedDict(
    "_FormResultKeywords",
    {"class": "Literal['deliverable', 'risky', 'undeliverable', 'unknown']"},
)


class FormResult(_FormResultKeywords):
    # The address, as sent.
    email: str
    # Whether the form should accept the address: false if it is undeliverable.
    allow: bool
    # The address that was probably intended. Null if there is none.
    did_you_mean: Optional[str]
    # A sentence for the visitor.
    message: str
    # The result is simulated.
    sandbox: NotRequired[Literal[True]]


class HistoryPage(TypedDict):
    success: Literal[True]
    data: HistoryPageData


class HistoryPageData(TypedDict):
    items: List[Verification]
    # Value of `cursor` for the next page. Null on the last page.
    next_cursor: Optional[str]
    # Whether there is a next page.
    has_more: bool


class InstantBulk(TypedDict):
    success: Literal[True]
    instant: Literal[True]
    job_id: str
    status: Literal["completed"]
    total_emails: int
    # Rows with a well-formed address, whether it exists or not.
    valid_emails: int
    # Rows with a malformed address; in a response without `no_address`, also those without
    # one.
    invalid_format_emails: int
    results: List[BulkItem]
    summary: InstantBulkSummary
    message: str
    # The endpoint of this job. Only present with `webhook_url`.
    webhook_id: NotRequired[str]
    # Signs the events that it gets. Not returned again.
    webhook_secret: NotRequired[str]


class InstantBulkSummary(TypedDict):
    total: int
    # Deliverable or risky rows.
    valid: int
    # All other rows: undeliverable, unknown or malformed.
    invalid: int


class Job(TypedDict):
    success: Literal[True]
    job_id: str
    status: Literal[
        "queued",
        "processing",
        "completed",
        "failed",
        "cancelled",
    ]
    # Percentage of processed rows. 100 only if the job is completed.
    progress: int
    total_emails: int
    processed_emails: int
    # Estimated remaining time.
    estimated_time: Optional[str]
    created_at: str
    started_at: Optional[str]
    error: Optional[JobError]
    # The results are simulated.
    sandbox: NotRequired[Literal[True]]
    # Why the job is waiting, such as a mail provider that throttles or a DNS server that
    # fails its check. Only present while it waits.
    status_detail: NotRequired[str]
    # Rows per second over the last 30 seconds, or since the previous request if it is older.
    # Null if not yet known.
    rate_per_second: NotRequired[Optional[float]]
    # Estimated remaining seconds. Null if unknown or if the job has finished.
    seconds_left: NotRequired[Optional[int]]
    # What the job waits for: the causes that affect most rows. Only present while rows wait.
    waiting_for: NotRequired[List[JobWaitingForItem]]
    type: Literal["single", "bulk", "batch", "file"]
    name: Optional[str]
    # The metadata of the job, as submitted. Empty if there is none.
    metadata: Dict[str, str]
    # The endpoint of this job. Only present if the job was created with `webhook_url`.
    webhook_id: NotRequired[str]
    # The job that this one verifies again. Only present if there is one.
    previous_job_id: NotRequired[str]
    # The schedule that created the job. Only present if there is one.
    schedule_id: NotRequired[str]
    # When the job was asked to finish without further retries. Only present if it was.
    finish_requested_at: NotRequired[str]
    data: JobData


class JobError(TypedDict):
    code: str
    message: str


class JobWaitingForItem(TypedDict):
    # Null if the cause is not a provider.
    operator: Optional[str]
    emails: int
    # `refused`: the provider blocks the service. `throttled`: the provider asked to slow
    # down. `unknown_users`: the provider rejected many recipients in a row as unknown.
    # `asked_again_later`: mail servers asked for a later retry, as greylists do. `postponed`:
    # not asked yet, for example because other domains at the same IP address come first.
    # `pace`: addresses are probed at the rate that the provider accepts, in turn with other
    # lists. `dns_check`: the DNS server fails its check. `no_worker`: no process works on
    # lists. `queued`: the list has not started.
    reason: Literal[
        "dns_check",
        "no_worker",
        "queued",
        "refused",
        "throttled",
        "unknown_users",
        "asked_again_later",
        "postponed",
        "pace",
    ]
    # Earliest time of the next attempt. Null if it is not known.
    until: Optional[str]
    # The same in one sentence.
    detail: str


class JobData(TypedDict):
    # In the order of the list. Filled if the job is completed, or with `partial=true`.
    results: NotRequired[List[JobItem]]
    summary: JobSummary
    completed_at: Optional[str]
    # The counts add up to the processed rows.
    classes: JobDataClasses
    # Rows without an address, which are part of the unknown ones.
    no_address: int
    # URL of the results. Requires an API key. Null if the job is not completed.
    download_url: Optional[str]


class JobDataClasses(TypedDict):
    """The counts add up to the processed rows."""

    deliverable: int
    risky: int
    undeliverable: int
    unknown: int


_JobItemKeywords = TypedDict(
    "_JobItemKeywords",
    {"class": "Class"},
)


class JobItem(_JobItemKeywords):
    # Your ID, as submitted with the address.
    id: NotRequired[str]
    # The address that was verified.
    email: str
    # True if the class is `deliverable` or `risky`. False if it is `undeliverable` or
    # `unknown`.
    valid: bool
    # True if mail is expected to arrive. This includes some risky addresses.
    deliverable: bool
    risk_level: RiskLevel
    reason: Reason
    # Whether the result came from the cache.
    cached: bool
    # True if the address was erased. Only the class of its result is left.
    erased: NotRequired[Literal[True]]


class JobPage(TypedDict):
    success: Literal[True]
    data: JobPageData


class JobPageData(TypedDict):
    items: List[ListedJob]
    # Value of `cursor` for the next page. Null on the last page.
    next_cursor: Optional[str]
    # Whether there is a next page.
    has_more: bool


class JobProgress(TypedDict):
    status: Literal[
        "queued",
        "processing",
        "completed",
        "failed",
        "cancelled",
    ]
    # Percentage of processed rows. 100 only if the job is completed.
    progress: int
    total_emails: int
    processed_emails: int
    # The counts add up to the processed rows.
    classes: JobProgressClasses
    # Rows per second over the last 30 seconds, or since the previous request if it is older.
    # Null if not yet known.
    rate_per_second: Optional[float]
    # Estimated remaining seconds. Null if unknown or if the job has finished.
    seconds_left: Optional[int]
    # What the job waits for: the causes that affect most rows. Only present while rows wait.
    waiting_for: NotRequired[List[JobProgressWaitingForItem]]
    summary: JobSummary


class JobProgressClasses(TypedDict):
    """The counts add up to the processed rows."""

    deliverable: int
    risky: int
    undeliverable: int
    unknown: int


class JobProgressWaitingForItem(TypedDict):
    # Null if the cause is not a provider.
    operator: Optional[str]
    emails: int
    # `refused`: the provider blocks the service. `throttled`: the provider asked to slow
    # down. `unknown_users`: the provider rejected many recipients in a row as unknown.
    # `asked_again_later`: mail servers asked for a later retry, as greylists do. `postponed`:
    # not asked yet, for example because other domains at the same IP address come first.
    # `pace`: addresses are probed at the rate that the provider accepts, in turn with other
    # lists. `dns_check`: the DNS server fails its check. `no_worker`: no process works on
    # lists. `queued`: the list has not started.
    reason: Literal[
        "dns_check",
        "no_worker",
        "queued",
        "refused",
        "throttled",
        "unknown_users",
        "asked_again_later",
        "postponed",
        "pace",
    ]
    # Earliest time of the next attempt. Null if it is not known.
    until: Optional[str]
    # The same in one sentence.
    detail: str


class JobStatus(TypedDict):
    success: Literal[True]
    job_id: str
    status: Literal[
        "queued",
        "processing",
        "completed",
        "failed",
        "cancelled",
    ]
    # Percentage of processed rows. 100 only if the job is completed.
    progress: int
    total_emails: int
    processed_emails: int
    # Estimated remaining time.
    estimated_time: Optional[str]
    created_at: str
    started_at: Optional[str]
    error: Optional[JobStatusError]
    # The results are simulated.
    sandbox: NotRequired[Literal[True]]
    data: JobStatusData


class JobStatusError(TypedDict):
    code: str
    message: str


class JobStatusData(TypedDict):
    # In the order of the list. Filled if the job is completed, or with `partial=true`.
    results: List[JobItem]
    summary: JobSummary
    completed_at: Optional[str]


class JobSummary(TypedDict):
    total: int
    # Deliverable or risky rows.
    valid: int
    # Undeliverable rows.
    invalid: int
    # Rows without a conclusive result.
    unknown: int
    # Rows that could not be verified because of an internal error. In a cancelled or failed
    # job, also rows that were never tried.
    failed: int


class Key(TypedDict):
    id: str
    name: str
    # First characters of the secret.
    prefix: str
    # Last characters of the secret.
    hint: str
    # Whether the key is for forms on websites. Its only scope is `verify:form`.
    publishable: bool
    # Whether all requests of the key are in the sandbox.
    test: bool
    scopes: List[Literal[
        "verify:single",
        "verify:bulk",
        "jobs:read",
        "jobs:write",
        "webhooks:read",
        "webhooks:write",
        "feedback:read",
        "feedback:write",
        "account:read",
        "account:write",
        "audit:read",
        "keys:write",
        "accounts:write",
        "dashboard",
        "*",
        "verify:form",
    ]]
    allowed_ips: List[str]
    allowed_domains: List[str]
    rate_limit_per_minute: Optional[int]
    created_at: str
    expires_at: Optional[str]
    last_used_at: Optional[str]


class KeyAnswer(TypedDict):
    success: Literal[True]
    data: Key


class KeyList(TypedDict):
    success: Literal[True]
    data: KeyListData


class KeyListData(TypedDict):
    keys: List[Key]
    total: int


class KeyPatch(TypedDict):
    # Display name.
    name: NotRequired[str]
    # Permissions of the key; `*` grants all. They cannot exceed those of the calling key.
    scopes: NotRequired[List[Literal[
        "verify:single",
        "verify:bulk",
        "jobs:read",
        "jobs:write",
        "webhooks:read",
        "webhooks:write",
        "feedback:read",
        "feedback:write",
        "account:read",
        "account:write",
        "audit:read",
        "keys:write",
        "accounts:write",
        "dashboard",
        "*",
    ]]]
    # Client IP addresses and CIDRs that may use the key. Empty allows any.
    allowed_ips: NotRequired[List[str]]
    # Websites that may use the key from a browser, including subdomains. Empty allows any; a
    # publishable key needs at least one.
    allowed_domains: NotRequired[List[str]]
    # Limit of this key in addition to that of the plan. Null for none.
    rate_limit_per_minute: NotRequired[Optional[int]]
    # When the key stops working. Null if it does not expire.
    expires_at: NotRequired[Optional[str]]


class KeyRotation(TypedDict):
    # How long the current secret remains valid.
    grace_period_seconds: NotRequired[int]


class Limit(TypedDict):
    # Machine-readable limit name.
    name: Literal[
        "ip:single",
        "ip:bulk",
        "ip:form",
        "account:plan",
        "key:own",
        "session",
        "credits",
        "concurrent_jobs",
        "stored_rows",
        "stored_feedback",
    ]
    # Human-readable limit name.
    text: str
    # Maximum per window, or at any time.
    limit: int
    # What is left.
    remaining: int
    # Length of the window. Null for limits that apply at any time.
    window_seconds: Optional[float]
    # End of the current window. Null for limits that apply at any time.
    resets_at: Optional[str]


class Limits(TypedDict):
    success: Literal[True]
    data: LimitsData


class LimitsData(TypedDict):
    limits: List[Limit]


class ListedJob(TypedDict):
    job_id: str
    status: Literal[
        "queued",
        "processing",
        "completed",
        "failed",
        "cancelled",
    ]
    # Percentage of processed rows. 100 only if the job is completed.
    progress: int
    total_emails: int
    processed_emails: int
    # Estimated remaining time.
    estimated_time: Optional[str]
    created_at: str
    started_at: Optional[str]
    error: Optional[ListedJobError]
    # The results are simulated.
    sandbox: NotRequired[Literal[True]]
    # Why the job is waiting, such as a mail provider that throttles or a DNS server that
    # fails its check. Only present while it waits.
    status_detail: NotRequired[str]
    # Rows per second over the last 30 seconds, or since the previous request if it is older.
    # Null if not yet known.
    rate_per_second: NotRequired[Optional[float]]
    # Estimated remaining seconds. Null if unknown or if the job has finished.
    seconds_left: NotRequired[Optional[int]]
    # What the job waits for: the causes that affect most rows. Only present while rows wait.
    waiting_for: NotRequired[List[ListedJobWaitingForItem]]
    type: Literal["single", "bulk", "batch", "file"]
    name: Optional[str]
    # The metadata of the job, as submitted. Empty if there is none.
    metadata: Dict[str, str]
    # The endpoint of this job. Only present if the job was created with `webhook_url`.
    webhook_id: NotRequired[str]
    # The job that this one verifies again. Only present if there is one.
    previous_job_id: NotRequired[str]
    # The schedule that created the job. Only present if there is one.
    schedule_id: NotRequired[str]
    # When the job was asked to finish without further retries. Only present if it was.
    finish_requested_at: NotRequired[str]
    data: ListedJobData


class ListedJobError(TypedDict):
    code: str
    message: str


class ListedJobWaitingForItem(TypedDict):
    # Null if the cause is not a provider.
    operator: Optional[str]
    emails: int
    # `refused`: the provider blocks the service. `throttled`: the provider asked to slow
    # down. `unknown_users`: the provider rejected many recipients in a row as unknown.
    # `asked_again_later`: mail servers asked for a later retry, as greylists do. `postponed`:
    # not asked yet, for example because other domains at the same IP address come first.
    # `pace`: addresses are probed at the rate that the provider accepts, in turn with other
    # lists. `dns_check`: the DNS server fails its check. `no_worker`: no process works on
    # lists. `queued`: the list has not started.
    reason: Literal[
        "dns_check",
        "no_worker",
        "queued",
        "refused",
        "throttled",
        "unknown_users",
        "asked_again_later",
        "postponed",
        "pace",
    ]
    # Earliest time of the next attempt. Null if it is not known.
    until: Optional[str]
    # The same in one sentence.
    detail: str


class ListedJobData(TypedDict):
    summary: JobSummary
    completed_at: Optional[str]
    # The counts add up to the processed rows.
    classes: ListedJobDataClasses
    # Rows without an address, which are part of the unknown ones.
    no_address: int
    # URL of the results. Requires an API key. Null if the job is not completed.
    download_url: Optional[str]


class ListedJobDataClasses(TypedDict):
    """The counts add up to the processed rows."""

    deliverable: int
    risky: int
    undeliverable: int
    unknown: int


class NewAccount(TypedDict):
    # Unique name.
    name: str
    # Name of a plan; see `GET /v1/plans`.
    plan: str
    # Receives alerts about webhooks, and the emails about finished lists that were submitted
    # with `notify`. Null: alerts go to the address of the service.
    email: NotRequired[Optional[str]]


class NewFeedbackSource(TypedDict):
    # The email provider.
    provider: Literal[
        "ses",
        "sendgrid",
        "mailgun",
        "postmark",
        "sparkpost",
    ]
    # What authenticates the provider: for `ses` the ARN of the SNS topic, for `sendgrid` the
    # verification key of the Event Webhook, for `mailgun` the HTTP webhook signing key.
    # Omitted for `postmark` and `sparkpost`: then a password is returned.
    key: NotRequired[str]


class NewKey(TypedDict):
    # Display name.
    name: str
    # Permissions of the key; `*` grants all. They cannot exceed those of the calling key.
    scopes: NotRequired[List[Literal[
        "verify:single",
        "verify:bulk",
        "jobs:read",
        "jobs:write",
        "webhooks:read",
        "webhooks:write",
        "feedback:read",
        "feedback:write",
        "account:read",
        "account:write",
        "audit:read",
        "keys:write",
        "accounts:write",
        "dashboard",
        "*",
    ]]]
    # Set to true instead of `scopes` for a key of forms on websites, which may be part of a
    # page. It needs `allowed_domains`. Without `rate_limit_per_minute` it can send 120
    # requests per minute.
    publishable: NotRequired[bool]
    # Set to true for a test key (`ev_test_…`): all its requests are in the sandbox, as with
    # `X-EV-Sandbox: true`. A test key can only manage test keys.
    test: NotRequired[bool]
    # Client IP addresses and CIDRs that may use the key. Empty allows any.
    allowed_ips: NotRequired[List[str]]
    # Websites that may use the key from a browser, including subdomains. Empty allows any; a
    # publishable key needs at least one.
    allowed_domains: NotRequired[List[str]]
    # Limit of this key in addition to that of the plan. Null for none.
    rate_limit_per_minute: NotRequired[Optional[int]]
    # When the key stops working. Null if it does not expire.
    expires_at: NotRequired[Optional[str]]


class NewScheduleRequest(TypedDict):
    # The list to verify again. It may still be running.
    job_id: str
    # Days between two runs.
    every_days: int
    # Verify rows with results of these classes.
    only: NotRequired[List[Literal["deliverable", "undeliverable", "risky", "unknown"]]]
    # Verify rows with results older than this many days.
    older_than_days: NotRequired[int]
    # Whether an email is sent to the address of the account at the end of each run.
    notify: NotRequired[bool]


class NewWebhook(TypedDict):
    # An https URL that is reachable from the internet.
    url: str
    events: List[Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
    ]]
    active: NotRequired[bool]
    # Human-readable description.
    description: NotRequired[Optional[str]]
    # Custom headers to send with each event, such as `Authorization`: up to 10, each value
    # with up to 2,000 printable ASCII characters. Values are stored encrypted and never
    # returned. Headers that HTTP or the service sets are rejected.
    headers: NotRequired[Dict[str, str]]


class OwnAccountPatch(TypedDict):
    # Unique name.
    name: NotRequired[str]
    # Receives alerts about webhooks, and the emails about finished lists that were submitted
    # with `notify`. Null: alerts go to the address of the service.
    email: NotRequired[Optional[str]]


class Plan(TypedDict):
    name: str
    # Requests of an account per window, with all its keys.
    requests: int
    window_seconds: float
    # Null: unlimited.
    credits_per_day: Optional[int]
    # Unfinished lists. Null: unlimited.
    concurrent_jobs: Optional[int]
    # Stored rows of all lists. Null: unlimited.
    stored_rows: Optional[int]
    # Stored bounces, deliveries and complaints. Null: unlimited.
    stored_feedback: Optional[int]
    # API keys that are not revoked. Null: 500.
    keys: Optional[int]


class PlanList(TypedDict):
    success: Literal[True]
    data: PlanListData


class PlanListData(TypedDict):
    plans: List[Plan]


class QueuedBatch(TypedDict):
    success: Literal[True]
    job_id: str
    status: Literal["queued"]
    total_emails: int
    # Rows with a well-formed address, whether it exists or not.
    valid_emails: int
    # Rows with a malformed address; in a response without `no_address`, also those without
    # one.
    invalid_format_emails: int
    # Rows without an address: blank between other rows, empty in the address column, or with
    # a placeholder such as `n/a`. Their reason is `no_address` and their class `unknown`;
    # they are free, and no duplicates.
    no_address: int
    # Rows that repeat the address of an earlier row.
    duplicates: int
    estimated_time: str
    message: str
    # The endpoint of this job. Only present with `webhook_url`.
    webhook_id: NotRequired[str]
    # Signs the events that it gets. Not returned again.
    webhook_secret: NotRequired[str]
    # URL of the job.
    status_url: str
    # URL of the results. Requires an API key. Returns 409 `job_not_ready` until the job is
    # completed.
    download_url: str


class QueuedBulk(TypedDict):
    success: Literal[True]
    job_id: str
    status: Literal["queued"]
    total_emails: int
    # Rows with a well-formed address, whether it exists or not.
    valid_emails: int
    # Rows with a malformed address; in a response without `no_address`, also those without
    # one.
    invalid_format_emails: int
    estimated_time: str
    message: str
    # The endpoint of this job. Only present with `webhook_url`.
    webhook_id: NotRequired[str]
    # Signs the events that it gets. Not returned again.
    webhook_secret: NotRequired[str]


class QueuedFile(TypedDict):
    success: Literal[True]
    job_id: str
    status: Literal["queued"]
    total_emails: int
    # Rows with a well-formed address, whether it exists or not.
    valid_emails: int
    # Rows with a malformed address; in a response without `no_address`, also those without
    # one.
    invalid_format_emails: int
    # Rows without an address: blank between other rows, empty in the address column, or with
    # a placeholder such as `n/a`. Their reason is `no_address` and their class `unknown`;
    # they are free, and no duplicates.
    no_address: int
    # Rows that repeat the address of an earlier row.
    duplicates: int
    estimated_time: str
    message: str
    # The endpoint of this job. Only present with `webhook_url`.
    webhook_id: NotRequired[str]
    # Signs the events that it gets. Not returned again.
    webhook_secret: NotRequired[str]
    # URL of the job.
    status_url: str
    # URL of the results. Requires an API key. Returns 409 `job_not_ready` until the job is
    # completed.
    download_url: str
    # Name of the address column.
    column: Optional[str]
    column_number: int
    header: bool
    # Encoding with which the file is read, as a WHATWG label.
    encoding: str
    # The sheet that is read. Null if the file is not a workbook.
    sheet: Optional[str]
    rows: int
    # Numbers of the columns that hold addresses, among them `column_number`. Without
    # `all_addresses`, the others are not verified.
    address_columns: List[int]
    # True if cells of the address column hold several addresses, or lines of a list without
    # other columns. Without `all_addresses`, such a cell is `invalid_email`, and of such a
    # line the first address is verified.
    has_several: bool
    # True if each address of a row is verified as a separate row.
    all_addresses: bool


class RecordedFeedback(TypedDict):
    received: int
    recorded: int
    # Items that were recorded before.
    duplicates: int
    # Invalid items, by their index in the request.
    rejected: List[RecordedFeedbackRejectedItem]


class RecordedFeedbackRejectedItem(TypedDict):
    index: int
    error: str


class Recovered(TypedDict):
    success: Literal[True]
    data: RecoveredData


class RecoveredData(TypedDict):
    # Number of events that are resent.
    recovered: int


class Recovery(TypedDict):
    # Resend events from this time on.
    since: str


class ResultPage(TypedDict):
    success: Literal[True]
    data: ResultPageData


class ResultPageData(TypedDict):
    items: List[ResultRow]
    # Value of `cursor` for the next page. Null on the last page.
    next_cursor: Optional[str]
    # Whether there is a next page.
    has_more: bool


_ResultRowKeywords = TypedDict(
    "_ResultRowKeywords",
    {"class": "Optional[Literal['deliverable', 'undeliverable', 'risky', 'unknown']]"},
)


class ResultRow(_ResultRowKeywords):
    """The result fields are null while the row has no result."""

    # Number of the row in the list, from 1.
    row: int
    email: str
    # True if the class is `deliverable` or `risky`. False if it is `undeliverable` or
    # `unknown`.
    valid: Optional[bool]
    # True if mail is expected to arrive. This includes some risky addresses.
    deliverable: Optional[bool]
    risk_level: Optional[RiskLevel]
    reason: Optional[Reason]
    cached: Optional[bool]
    confidence: Optional[int]
    did_you_mean: Optional[str]
    # Operator of the mail servers of the domain.
    operator: Optional[str]
    # The mail server that was contacted, or the first one of the domain if none was.
    mx_host: Optional[str]
    # SMTP reply code of the mail server. Null if it sent none.
    smtp_code: Optional[int]
    # Reply of the mail server, or what was observed if it sent none.
    smtp_text: Optional[str]
    checked_at: Optional[str]
    # True if the address was erased. Only the class of its result is left.
    erased: NotRequired[Literal[True]]


class ReverifyRequest(TypedDict):
    # Verify rows with results of these classes.
    only: NotRequired[List[Literal["deliverable", "undeliverable", "risky", "unknown"]]]
    # Verify rows with results older than this many days.
    older_than_days: NotRequired[int]
    # Set to false to skip the mail server (reason `smtp_skipped`).
    check_smtp: NotRequired[bool]
    # Up to 50 key-value pairs of your own, returned with the job and in its events. A key has
    # up to 40 characters and no brackets, a value up to 500.
    metadata: NotRequired[Dict[str, str]]
    # Set to true to send an email to the address of the account when the list is done. None
    # is sent for a list that is answered at once.
    notify: NotRequired[bool]
    # An https URL that gets the events of this job, in addition to the endpoints of the
    # account. The response has the `webhook_secret` that signs them.
    webhook_url: NotRequired[str]


class RotatedKey(TypedDict):
    success: Literal[True]
    data: RotatedKeyData


class RotatedKeyData(TypedDict):
    id: str
    name: str
    # First characters of the secret.
    prefix: str
    # The secret of the key, returned only once.
    key: str
    # Last characters of the secret.
    hint: str
    # Whether the key is for forms on websites. Its only scope is `verify:form`.
    publishable: bool
    # Whether all requests of the key are in the sandbox.
    test: bool
    scopes: List[Literal[
        "verify:single",
        "verify:bulk",
        "jobs:read",
        "jobs:write",
        "webhooks:read",
        "webhooks:write",
        "feedback:read",
        "feedback:write",
        "account:read",
        "account:write",
        "audit:read",
        "keys:write",
        "accounts:write",
        "dashboard",
        "*",
        "verify:form",
    ]]
    allowed_ips: List[str]
    allowed_domains: List[str]
    rate_limit_per_minute: Optional[int]
    created_at: str
    expires_at: Optional[str]
    last_used_at: Optional[str]
    # When the previous secret stops working.
    previous_key_expires_at: str


class RotatedWebhook(TypedDict):
    success: Literal[True]
    data: RotatedWebhookData


class RotatedWebhookData(TypedDict):
    id: str
    url: str
    events: List[Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
    ]]
    active: bool
    description: Optional[str]
    # The job whose events alone it gets. Only present for an endpoint of a job.
    job_id: NotRequired[str]
    # Names of the custom headers. Their values are never returned.
    header_names: List[str]
    # The secret that signs events (`X-EV-Signature`: HMAC-SHA256 of the body, keyed with this
    # whole text). Returned only once.
    secret: str
    created_at: str
    updated_at: str
    # Human-readable reason why the service disabled the endpoint. Null if it did not.
    disabled_reason: Optional[str]
    # Machine-readable reason why the service disabled the endpoint. Null if it did not.
    # `gone`: the endpoint answered with 410. `failing`: all attempts failed for five days.
    disabled_code: Optional[Literal["gone", "failing"]]
    # Start of continuous failures. Null if the last attempt succeeded. After five days the
    # endpoint is disabled.
    failing_since: Optional[str]
    # Share of successful attempts on the days of `daily_attempts`. Null if there were no
    # attempts.
    success_rate: Optional[float]
    # Attempts by day, oldest first: the last seven days on which events were sent. Tests are
    # not counted.
    daily_attempts: List[RotatedWebhookDataDailyAttempt]
    # Until then, `webhook-signature` also has a signature of the previous secret. Absent if
    # no previous secret is valid.
    previous_secret_expires_at: str


class RotatedWebhookDataDailyAttempt(TypedDict):
    # UTC.
    date: str
    delivered: int
    failed: int


class Schedule(TypedDict):
    id: str
    # The list for which the schedule was created.
    job_id: str
    # Days between two runs.
    every_days: int
    # Rows with results of these classes are verified again. Null: no such condition.
    only: Optional[List[Literal["deliverable", "undeliverable", "risky", "unknown"]]]
    # Rows with older results are verified again. Null: no such condition.
    older_than_days: Optional[int]
    # Whether an email is sent to the address of the account at the end of each run.
    notify: bool
    # False if the schedule is paused.
    active: bool
    # The results are simulated.
    sandbox: NotRequired[Literal[True]]
    # Null while the schedule is paused.
    next_run_at: Optional[str]
    last_run: Optional[ScheduleLastRun]
    # Why the last run created no job, or why the schedule was paused (`results_deleted`).
    # Null if the last run created a job.
    last_error: Optional[ScheduleLastError]
    # The job of the latest run, which the next run verifies again.
    last_job_id: Optional[str]
    created_at: str


class ScheduleLastRun(TypedDict):
    at: str
    # `started`: a job was created. `skipped`: there was nothing to do. `failed`: no job could
    # be created. The schedule stays active in all cases.
    status: Literal["started", "skipped", "failed"]


class ScheduleLastError(TypedDict):
    """Why the last run created no job, or why the schedule was paused (`results_deleted`). Null if the last run created a job."""

    code: Literal[
        "previous_run_unfinished",
        "nothing_to_verify",
        "credits_exceeded",
        "concurrent_jobs_exceeded",
        "stored_rows_exceeded",
        "results_deleted",
    ]
    message: str


class ScheduleAnswer(TypedDict):
    success: Literal[True]
    data: Schedule


class ScheduleChanges(TypedDict):
    # Days between two runs.
    every_days: NotRequired[int]
    only: NotRequired[Optional[List[Literal["deliverable", "undeliverable", "risky", "unknown"]]]]
    older_than_days: NotRequired[Optional[int]]
    # Whether an email is sent to the address of the account at the end of each run.
    notify: NotRequired[bool]
    # False if the schedule is paused.
    active: NotRequired[bool]


class SchedulePage(TypedDict):
    success: Literal[True]
    data: SchedulePageData


class SchedulePageData(TypedDict):
    items: List[Schedule]
    # Value of `cursor` for the next page. Null on the last page.
    next_cursor: Optional[str]
    # Whether there is a next page.
    has_more: bool


_ScoredResultKeywords = TypedDict(
    "_ScoredResultKeywords",
    {"class": "Class"},
)


class ScoredResult(_ScoredResultKeywords):
    # The address that was verified.
    email: str
    # True if the class is `deliverable` or `risky`. False if it is `undeliverable` or
    # `unknown`.
    valid: bool
    # True if mail is expected to arrive. This includes some risky addresses.
    deliverable: bool
    risk_level: RiskLevel
    # Domain of the address. Empty if it has none.
    provider: str
    # Duration in milliseconds.
    response_time: int
    # How certain the result is, from 0 to 100. It does not rate the address itself.
    confidence: int
    details: Details
    reason: Reason
    # Whether the result came from the cache.
    cached: bool
    # The class. The sandbox reports `unknown` as `risky` here; `class` and `reason` have the
    # simulated values.
    status: Literal["deliverable", "undeliverable", "risky", "unknown"]
    # Quality of the address from 0 (do not send) to 100 (send).
    score: int
    # Whether the domain provides temporary addresses.
    is_disposable: bool
    # Whether the address belongs to a function, such as `info@`.
    is_role: bool
    # Whether the domain accepts every address. Null if it was not tested.
    is_catch_all: Optional[bool]
    # Whether the domain is a free email provider.
    is_free: bool
    # Seconds after which a retry is useful, if known.
    retry_after: NotRequired[int]
    flags: NotRequired[ScoredResultFlags]
    # Suggested address if the domain is probably misspelled. Null if it is not.
    did_you_mean: NotRequired[Optional[str]]
    # The canonical spelling of the address at its provider: `ann@gmail.com` for
    # `A.nn+news@googlemail.com`. Addresses with the same one are the same mailbox. Null if
    # the text is not an address.
    canonical: NotRequired[Optional[str]]
    # The mail server that was contacted, or the first one of the domain if none was.
    mx_host: NotRequired[Optional[str]]
    # When the address was verified. Earlier than now if the result is cached.
    checked_at: NotRequired[str]
    evidence: NotRequired[Evidence]
    # Whether the result is simulated.
    sandbox: bool


class ScoredResultFlags(TypedDict):
    # Whether the domain provides temporary addresses.
    is_disposable: bool
    # Whether the address belongs to a function, such as `info@`.
    is_role: bool
    # Whether the domain accepts every address. Null if it was not tested.
    is_catch_all: Optional[bool]
    # Whether the domain is a free email provider.
    is_free: bool
    # Whether the address is an alias of a forwarding service.
    is_relay: bool


class SecretRotation(TypedDict):
    # How long the current secret is still used to sign.
    grace_period_seconds: NotRequired[int]


_SingleResultKeywords = TypedDict(
    "_SingleResultKeywords",
    {"class": "Class"},
)


class SingleResult(_SingleResultKeywords):
    # The address that was verified.
    email: str
    # True if the class is `deliverable` or `risky`. False if it is `undeliverable` or
    # `unknown`.
    valid: bool
    # True if mail is expected to arrive. This includes some risky addresses.
    deliverable: bool
    risk_level: RiskLevel
    # Domain of the address. Empty if it has none.
    provider: str
    # Duration in milliseconds.
    response_time: int
    # How certain the result is, from 0 to 100. It does not rate the address itself.
    confidence: int
    details: Details
    reason: Reason
    # Whether the result came from the cache.
    cached: bool
    # Seconds after which a retry is useful, if known.
    retry_after: NotRequired[int]
    flags: NotRequired[SingleResultFlags]
    # Suggested address if the domain is probably misspelled. Null if it is not.
    did_you_mean: NotRequired[Optional[str]]
    # The canonical spelling of the address at its provider: `ann@gmail.com` for
    # `A.nn+news@googlemail.com`. Addresses with the same one are the same mailbox. Null if
    # the text is not an address.
    canonical: NotRequired[Optional[str]]
    # The mail server that was contacted, or the first one of the domain if none was.
    mx_host: NotRequired[Optional[str]]
    # When the address was verified. Earlier than now if the result is cached.
    checked_at: NotRequired[str]
    evidence: NotRequired[Evidence]
    # The result is simulated.
    sandbox: NotRequired[Literal[True]]


class SingleResultFlags(TypedDict):
    # Whether the domain provides temporary addresses.
    is_disposable: bool
    # Whether the address belongs to a function, such as `info@`.
    is_role: bool
    # Whether the domain accepts every address. Null if it was not tested.
    is_catch_all: Optional[bool]
    # Whether the domain is a free email provider.
    is_free: bool
    # Whether the address is an alias of a forwarding service.
    is_relay: bool


class Stats(TypedDict):
    success: Literal[True]
    data: StatsData


_StatsDataKeywords = TypedDict(
    "_StatsDataKeywords",
    {"from": "str"},
)


class StatsData(_StatsDataKeywords):
    period: Literal["day", "week", "month"]
    to: str
    total: Counts
    previous: Counts
    days: List[StatsDataDay]
    keys: List[StatsDataKey]


class StatsDataDay(TypedDict):
    date: str
    verifications: int
    # Verifications answered from the cache.
    cached: int
    credits: int
    deliverable: int
    undeliverable: int
    risky: int
    unknown: int


class StatsDataKey(TypedDict):
    key_id: str
    key_name: Optional[str]
    verifications: int
    # Verifications answered from the cache.
    cached: int
    credits: int
    deliverable: int
    undeliverable: int
    risky: int
    unknown: int


class UrlRequest(TypedDict):
    # URL of the list: https://host/path, or s3://bucket/key with `s3`.
    url: str
    s3: NotRequired[BucketAccess]
    # The address column, by name or by number from 1. Detected if omitted.
    column: NotRequired[Union[str, int]]
    # The sheet of a workbook, by name. The first visible one if omitted.
    sheet: NotRequired[str]
    # Whether the first row has column names. Detected if omitted.
    header: NotRequired[bool]
    # A label of the WHATWG Encoding Standard, such as `windows-1252`. Detected if omitted.
    encoding: NotRequired[str]
    # Verify every address of a row, in all `address_columns` and in cells with several, each
    # as a separate row with the cells of its row. If false, one address per row. If omitted,
    # true for a list without a header, unless `column` is given.
    all_addresses: NotRequired[bool]
    # Display name. Default: the name of the file.
    name: NotRequired[str]
    # Set to false to verify and charge repeated addresses again.
    deduplicate: NotRequired[bool]
    # Set to false to skip the mail server (reason `smtp_skipped`).
    check_smtp: NotRequired[bool]
    # Set to true to contact the mail server even if a cached result exists.
    force_refresh: NotRequired[bool]
    # Up to 50 key-value pairs of your own, returned with the job and in its events. A key has
    # up to 40 characters and no brackets, a value up to 500.
    metadata: NotRequired[Dict[str, str]]
    # Set to true to send an email to the address of the account when the list is done. None
    # is sent for a list that is answered at once.
    notify: NotRequired[bool]
    # An https URL that gets the events of this job, in addition to the endpoints of the
    # account. The response has the `webhook_secret` that signs them.
    webhook_url: NotRequired[str]
    # Set to true to preview the file. Nothing is stored, charged or verified.
    dry_run: NotRequired[bool]


class Verification(TypedDict):
    id: str
    # The address that was verified.
    email: str
    # True if the class is `deliverable` or `risky`. False if it is `undeliverable` or
    # `unknown`.
    valid: bool
    # True if mail is expected to arrive. This includes some risky addresses.
    deliverable: bool
    risk_level: RiskLevel
    reason: Reason
    # Whether the result came from the cache.
    cached: bool
    source: Literal["single", "bulk", "batch", "file"]
    # Job of the verification. Null for single verifications.
    job_id: Optional[str]
    created_at: str


class VerifyStepSyntax(TypedDict):
    step: Literal["syntax"]
    ok: bool
    address: Optional[VerifyStepSyntaxAddress]
    did_you_mean: Optional[str]
    # Human-readable description of the step.
    text: str


class VerifyStepSyntaxAddress(TypedDict):
    local: str
    domain: str


class VerifyStepDomain(TypedDict):
    step: Literal["domain"]
    # Null if DNS gave no conclusive answer.
    ok: Optional[bool]
    kind: Literal[
        "mx",
        "implicit",
        "null-mx",
        "no-domain",
        "no-mail",
        "unknown",
    ]
    # Mail servers, most preferred first.
    hosts: List[VerifyStepDomainHost]
    # Operator of the mail servers.
    operator: Optional[str]
    # Human-readable description of the step.
    text: str


class VerifyStepDomainHost(TypedDict):
    preference: int
    host: str


class VerifyStepServer(TypedDict):
    step: Literal["server"]
    # Null if no mail server was contacted.
    host: Optional[str]
    ip: Optional[str]
    ok: bool
    # Human-readable description of the step.
    text: str


class VerifyStepLine(TypedDict):
    step: Literal["line"]
    # A line of the SMTP session: `C: …` or `S: …`.
    text: str


class VerifyStepCached(TypedDict):
    step: Literal["cached"]
    checked_at: str
    # Human-readable description of the step.
    text: str


class Webhook(TypedDict):
    id: str
    url: str
    events: List[Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
    ]]
    active: bool
    description: Optional[str]
    # The job whose events alone it gets. Only present for an endpoint of a job.
    job_id: NotRequired[str]
    # Names of the custom headers. Their values are never returned.
    header_names: List[str]
    # Last characters of the secret.
    secret_hint: str
    created_at: str
    updated_at: str
    # Human-readable reason why the service disabled the endpoint. Null if it did not.
    disabled_reason: Optional[str]
    # Machine-readable reason why the service disabled the endpoint. Null if it did not.
    # `gone`: the endpoint answered with 410. `failing`: all attempts failed for five days.
    disabled_code: Optional[Literal["gone", "failing"]]
    # Start of continuous failures. Null if the last attempt succeeded. After five days the
    # endpoint is disabled.
    failing_since: Optional[str]
    # Share of successful attempts on the days of `daily_attempts`. Null if there were no
    # attempts.
    success_rate: Optional[float]
    # Attempts by day, oldest first: the last seven days on which events were sent. Tests are
    # not counted.
    daily_attempts: List[WebhookDailyAttempt]
    # Until then, `webhook-signature` also has a signature of the previous secret. Absent if
    # no previous secret is valid.
    previous_secret_expires_at: NotRequired[str]


class WebhookDailyAttempt(TypedDict):
    # UTC.
    date: str
    delivered: int
    failed: int


class WebhookAnswer(TypedDict):
    success: Literal[True]
    data: Webhook


class WebhookList(TypedDict):
    success: Literal[True]
    data: WebhookListData


class WebhookListData(TypedDict):
    webhooks: List[Webhook]
    total: int


class WebhookPatch(TypedDict):
    # An https URL that is reachable from the internet.
    url: NotRequired[str]
    events: NotRequired[List[Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
    ]]]
    # Set to true to enable the endpoint, also after the service disabled it.
    active: NotRequired[bool]
    # Human-readable description.
    description: NotRequired[Optional[str]]
    # Custom headers to send with each event, such as `Authorization`: up to 10, each value
    # with up to 2,000 printable ASCII characters. Values are stored encrypted and never
    # returned. Headers that HTTP or the service sets are rejected. Null removes a header;
    # headers that are not named keep their values. A URL with another origin removes all
    # headers that are not in this request.
    headers: NotRequired[Dict[str, Optional[str]]]


class WebhookTest(TypedDict):
    success: Literal[True]
    data: WebhookTestData


class WebhookTestData(TypedDict):
    delivery_id: str
    event_id: str
    event: Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
        "webhook.test",
    ]
    status: Literal["delivered", "failed"]
    # HTTP status of the response. Null if none arrived.
    status_code: Optional[int]
    duration_ms: int
    # Human-readable error. Null if there is none.
    error: Optional[str]
    # Machine-readable error. Null if there is none. `http_status`: the response was not 2xx.
    # `redirect`: the response was 3xx; redirects are not followed. `timeout`: no response
    # within 30 seconds. `connection_failed`: no connection, or it was closed before the
    # response. `tls_error`: no TLS, or an invalid certificate. `dns_error`: the host name has
    # no address or could not be resolved. `address_not_public`: the address is in a network
    # that the service does not send to. `invalid_url`: the URL cannot be used.
    # `invalid_response`: the response was not HTTP/1.1 or was too long. `secret_unreadable`:
    # the signing secret cannot be read. `interrupted`: the service was stopped before the
    # response. `request_failed`: any other failure.
    error_code: Optional[Literal[
        "http_status",
        "redirect",
        "timeout",
        "connection_failed",
        "tls_error",
        "dns_error",
        "address_not_public",
        "invalid_url",
        "invalid_response",
        "secret_unreadable",
        "interrupted",
        "request_failed",
    ]]
    response_excerpt: Optional[str]


class WebhookTestRequest(TypedDict):
    # The event type to send an example of.
    event: NotRequired[Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
        "webhook.test",
    ]]


VerifyStep = Union[
        VerifyStepSyntax,
        VerifyStepDomain,
        VerifyStepServer,
        VerifyStepLine,
        VerifyStepCached,
    ]
