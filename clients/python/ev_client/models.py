"""Types of requests and responses. Made by tools/python-types.mjs: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired

# What to do with the address, by the action policy of the account. `send`: mail it.
# `send_with_care`: mail it in small batches and watch the bounces. `retry_later`: re-verify
# it before you mail it. `suppress`: do not mail it.
Action = Literal["send", "send_with_care", "retry_later", "suppress"]

# What is known about the address. `deliverable`: the mailbox accepts mail. `undeliverable`:
# mail will bounce. `risky`: it may accept mail, see the `reason`. `unknown`: no answer could
# be obtained.
Class = Literal["deliverable", "risky", "undeliverable", "unknown"]

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
        "external_deliverable",
        "external_risky",
        "external_do_not_mail",
        "external_undeliverable",
        "external_unknown",
    ]

# Risk of sending to the address. `low`: it is accepted. `medium`: it is accepted, with a
# lower quality or certainty. `high`: mail would bounce or do harm. `unknown`: no answer could
# be obtained.
RiskLevel = Literal["low", "medium", "high", "unknown"]

# Another service whose columns and words are written in place of those of ev, for programs
# that read its exports. Only for `csv` and `xlsx`.
Vocabulary = Literal["zerobounce", "neverbounce", "kickbox", "reacher"]

EventType = Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
        "webhook.test",
    ]


class Account(TypedDict):
    id: str
    name: str
    # Name of a plan; see `GET /v1/plans`.
    plan: str
    # Email address for alerts about failing webhooks, and for finished lists that were
    # submitted with `notify`. If null, the address of the service receives the alerts.
    email: Optional[str]
    # Whether the account can manage accounts and open the Health page.
    admin: bool
    # Decides about `action` in results: `balanced`, `strict` or `lenient`. If null, the
    # policy of the service does.
    action_policy: Optional[Literal["balanced", "strict", "lenient"]]
    # Whether people who sign in to the dashboard with a password need a second factor. Those
    # without one can only set one up then, and API keys cannot sign in. The identity provider
    # asks for its own second factor.
    two_factor_required: bool
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
    # Email address for alerts about failing webhooks, and for finished lists that were
    # submitted with `notify`. If null, the address of the service receives the alerts.
    email: NotRequired[Optional[str]]
    # Whether the account can manage accounts and open the Health page.
    admin: NotRequired[bool]
    # Decides about `action` in results: `balanced`, `strict` or `lenient`. If null, the
    # policy of the service does.
    action_policy: NotRequired[Optional[Literal["balanced", "strict", "lenient"]]]
    # Whether people who sign in to the dashboard with a password need a second factor. Those
    # without one can only set one up then, and API keys cannot sign in. The identity provider
    # asks for its own second factor.
    two_factor_required: NotRequired[bool]


class AsyncAccepted(TypedDict):
    success: Literal[True]
    verification_id: str
    status: Literal["queued"]
    # ID of the endpoint for `webhook_url`. Only present if you set it.
    webhook_id: NotRequired[str]
    # Secret that signs the events sent to `webhook_url`. Returned only once.
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
        "person.invited",
        "person.joined",
        "person.updated",
        "person.removed",
        "person.password_changed",
        "person.totp_enabled",
        "person.totp_disabled",
        "person.recovery_codes_created",
        "person.recovery_code_used",
        "person.identity_linked",
        "person.identity_unlinked",
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
        "request.refused",
    ]
    # `key`: a request with an API key. `link`: a signed URL that was created with the key.
    # `session`: a dashboard session. `command_line`: a command on a machine of the service.
    # `service`: the service itself.
    actor: Literal["key", "link", "session", "command_line", "service"]
    # ID of the API key that sent the request or signed in.
    key_id: Optional[str]
    # ID of the person whose dashboard session it was. Null for a key.
    person_id: Optional[str]
    # Name of that person at the time.
    person_name: Optional[str]
    session_id: Optional[str]
    # IP address that sent the request.
    ip: Optional[str]
    # ID of the key, person, webhook, account, session or job. For `request.refused`, the ID
    # of another account that was asked for.
    target_id: Optional[str]
    # Name of the target at the time. For a webhook, the host of its URL; for a session, the
    # name of its key or person; for `request.refused`, the path and the error code.
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
    # Addresses with your own IDs, which downloads contain. Use either `items` or `emails`.
    items: NotRequired[List[BatchRequestItem]]
    # Display name.
    name: NotRequired[str]
    # Set to false to verify and charge an address each time it occurs.
    deduplicate: NotRequired[bool]
    # Set to false to skip the mail server (reason `smtp_skipped`).
    check_smtp: NotRequired[bool]
    # Set to true to contact the mail server even if a cached result exists.
    force_refresh: NotRequired[bool]
    # Up to 50 key-value pairs, returned with the job and in its events. Keys have up to 40
    # characters and no brackets, values up to 500 characters.
    metadata: NotRequired[Dict[str, str]]
    # Set to true to email the address of the account when the list is finished. No email is
    # sent if the response already contains the results.
    notify: NotRequired[bool]
    # An https URL to send the events of this job to, in addition to the endpoints of the
    # account. The response contains the `webhook_secret` that signs them.
    webhook_url: NotRequired[str]


class BatchRequestItem(TypedDict):
    email: str
    id: NotRequired[str]


class BounceProjection(TypedDict):
    """Mail to every address."""

    # Addresses that are mailed.
    addresses: int
    # Expected share of the mail that bounces, 0 to 1.
    bounce_rate: float
    # The rate of one mailing is between this and `bounce_rate_max` in 95% of cases.
    bounce_rate_min: float
    bounce_rate_max: float


class Breakdown(TypedDict):
    success: Literal[True]
    data: BreakdownData


class BreakdownData(TypedDict):
    # Rows of the list.
    total: int
    # Rows with a result. The counts of each group add up to this number.
    done: int
    classes: ClassCounts
    # Rows by reason and class. `catch_all` can occur with two classes, because feedback makes
    # some of its addresses deliverable.
    reasons: List[BreakdownDataReason]
    operators: List[BreakdownDataOperator]
    # Rows of all operators that aren't listed.
    operators_left: int
    # Rows by action, by the action policy of the account.
    actions: BreakdownDataActions
    projection: ListProjection


_BreakdownDataReasonKeywords = TypedDict(
    "_BreakdownDataReasonKeywords",
    {"class": "Literal['deliverable', 'risky', 'undeliverable', 'unknown']"},
)


class BreakdownDataReason(_BreakdownDataReasonKeywords):
    reason: Reason
    count: int


class BreakdownDataOperator(TypedDict):
    # Provider that runs the mail servers. Null if no mail server was looked up or the results
    # are simulated.
    operator: Optional[str]
    count: int
    classes: ClassCounts


class BreakdownDataActions(TypedDict):
    """Rows by action, by the action policy of the account."""

    send: int
    send_with_care: int
    retry_later: int
    suppress: int


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
    action: Action


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
    # Brier score: the mean squared difference between confidence and outcome. 0 is best.
    brier_score: float
    # Expected calibration error: the mean difference between confidence and the share of
    # correct verdicts, over ten ranges of confidence. 0 is best.
    calibration_error: float


class CalibrationLevel(TypedDict):
    # Results that feedback confirmed, weighted by age and extrapolated with the trend.
    correct: float
    # Results with feedback, weighted by age.
    total: float
    # Weight of the more general level, as a number of results.
    prior_weight: Optional[float]
    # Days after which a result has half its weight. Null if results don't age.
    half_life_days: Optional[float]
    # Part of `correct / total` that is extrapolated from its trend. Null if results don't
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
    {"class": "Literal['deliverable', 'risky', 'undeliverable', 'unknown']"},
)


class ChangeBefore(_ChangeBeforeKeywords):
    reason: Reason
    # When the result was determined. Null if the address was erased.
    checked_at: Optional[str]


_ChangeAfterKeywords = TypedDict(
    "_ChangeAfterKeywords",
    {"class": "Literal['deliverable', 'risky', 'undeliverable', 'unknown']"},
)


class ChangeAfter(_ChangeAfterKeywords):
    reason: Reason
    # When the result was determined. Null if the address was erased.
    checked_at: Optional[str]


class ChangePage(TypedDict):
    success: Literal[True]
    data: ChangePageData


class ChangePageData(TypedDict):
    # The job that this job re-verifies. Null for a new list.
    previous_job_id: Optional[str]
    # Rows re-verified so far.
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
    {"from": "Literal['deliverable', 'risky', 'undeliverable', 'unknown']"},
)


class ChangePageDataCount(_ChangePageDataCountKeywords):
    to: Literal["deliverable", "risky", "undeliverable", "unknown"]
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
    risky: int
    undeliverable: int
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
    # HTTP Basic credentials to set at the provider. Null if the provider signs its requests.
    # Returned only once.
    basic_auth: Optional[CreatedFeedbackSourceDataBasicAuth]
    created_at: str
    # When the provider last sent a valid request. Null if it never did.
    last_received_at: Optional[str]


class CreatedFeedbackSourceDataBasicAuth(TypedDict):
    """HTTP Basic credentials to set at the provider. Null if the provider signs its requests. Returned only once."""

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
    # Whether this is a publishable key for forms on websites. Its only scope is
    # `verify:form`.
    publishable: bool
    # Whether this is a test key: all of its requests are simulated.
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
        "people:write",
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
    # The only job whose events are sent to this endpoint. Only present if it was created with
    # `webhook_url`.
    job_id: NotRequired[str]
    # Names of the custom headers. Their values are never returned.
    header_names: List[str]
    # The secret that signs events (`X-EV-Signature`: HMAC-SHA256 of the body, keyed with this
    # whole text). Returned only once.
    secret: str
    created_at: str
    updated_at: str
    # Why the service disabled the endpoint, as text. Null if it didn't.
    disabled_reason: Optional[str]
    # Why the service disabled the endpoint. `gone`: the endpoint responded with 410.
    # `failing`: all attempts failed for five days. Null if it didn't disable the endpoint.
    disabled_code: Optional[Literal["gone", "failing"]]
    # When the endpoint started to fail. Null if the last attempt succeeded. The service
    # disables an endpoint that has failed for five days.
    failing_since: Optional[str]
    # Share of successful attempts in `daily_attempts`, from 0 to 1. Null if there were none.
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
    # Credits you can use now. Reserved credits are already subtracted. Null if the plan has
    # no limit.
    credits_balance: Optional[int]
    # Credits charged in the current period.
    credits_consumed: int
    # Credits reserved for verifications in progress. Unused credits are returned to the
    # balance.
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
    # `pending`: about to be sent. `delivered`: the endpoint responded with 2xx.
    # `retry_scheduled`: the last attempt failed and another one is scheduled. `failed`: all
    # attempts failed.
    status: Literal["pending", "delivered", "retry_scheduled", "failed"]
    # Number of attempts. A manual retry restarts it at 0.
    attempt: int
    # `scheduled`: sent because the event happened. `manual`: resent on request. `test`: a
    # test event.
    trigger: Literal["scheduled", "manual", "test"]
    # HTTP status of the response. Null if there was no response.
    status_code: Optional[int]
    duration_ms: Optional[int]
    # What went wrong, as text. Null if the attempt succeeded.
    error: Optional[str]
    # What went wrong. Null if the attempt succeeded. `http_status`: the response was not 2xx.
    # `redirect`: the response was 3xx; redirects are not followed. `timeout`: no response
    # within 30 seconds. `connection_failed`: no connection, or it was closed before the
    # response. `tls_error`: no TLS, or an invalid certificate. `dns_error`: the host name has
    # no address or could not be resolved. `address_not_public`: the host has a private
    # address. `invalid_url`: the URL isn't valid. `invalid_response`: the response was not
    # HTTP/1.1 or was too long. `secret_unreadable`: the signing secret cannot be read.
    # `interrupted`: the service was stopped before the response. `request_failed`: any other
    # failure.
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
    # When the next attempt is due. Null if there is none.
    next_attempt_at: Optional[str]
    created_at: str
    # When the delivery is deleted. After that, it can't be retried. Null until it is
    # finished.
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
    # HTTP status of the response. Null if there was no response.
    status_code: Optional[int]
    duration_ms: int
    # What went wrong, as text. Null if the attempt succeeded.
    error: Optional[str]
    # What went wrong. Null if the attempt succeeded. `http_status`: the response was not 2xx.
    # `redirect`: the response was 3xx; redirects are not followed. `timeout`: no response
    # within 30 seconds. `connection_failed`: no connection, or it was closed before the
    # response. `tls_error`: no TLS, or an invalid certificate. `dns_error`: the host name has
    # no address or could not be resolved. `address_not_public`: the host has a private
    # address. `invalid_url`: the URL isn't valid. `invalid_response`: the response was not
    # HTTP/1.1 or was too long. `secret_unreadable`: the signing secret cannot be read.
    # `interrupted`: the service was stopped before the response. `request_failed`: any other
    # failure.
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
    # Start of the response body. Null if there was no response.
    response_excerpt: Optional[str]
    # Null if there was no response.
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
    # `pending`: about to be sent. `delivered`: the endpoint responded with 2xx.
    # `retry_scheduled`: the last attempt failed and another one is scheduled. `failed`: all
    # attempts failed.
    status: Literal["pending", "delivered", "retry_scheduled", "failed"]
    # Number of attempts. A manual retry restarts it at 0.
    attempt: int
    # `scheduled`: sent because the event happened. `manual`: resent on request. `test`: a
    # test event.
    trigger: Literal["scheduled", "manual", "test"]
    # HTTP status of the response. Null if there was no response.
    status_code: Optional[int]
    duration_ms: Optional[int]
    # What went wrong, as text. Null if the attempt succeeded.
    error: Optional[str]
    # What went wrong. Null if the attempt succeeded. `http_status`: the response was not 2xx.
    # `redirect`: the response was 3xx; redirects are not followed. `timeout`: no response
    # within 30 seconds. `connection_failed`: no connection, or it was closed before the
    # response. `tls_error`: no TLS, or an invalid certificate. `dns_error`: the host name has
    # no address or could not be resolved. `address_not_public`: the host has a private
    # address. `invalid_url`: the URL isn't valid. `invalid_response`: the response was not
    # HTTP/1.1 or was too long. `secret_unreadable`: the signing secret cannot be read.
    # `interrupted`: the service was stopped before the response. `request_failed`: any other
    # failure.
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
    # When the next attempt is due. Null if there is none.
    next_attempt_at: Optional[str]
    created_at: str
    # When the delivery is deleted. After that, it can't be retried. Null until it is
    # finished.
    expires_at: Optional[str]
    request: DeliveryDetailRequest
    # Response to the last attempt. Null if there was none.
    response: Optional[DeliveryDetailResponse]
    # The last 60 attempts, oldest first.
    attempts: List[DeliveryAttempt]


class DeliveryDetailRequest(TypedDict):
    url: str
    # Headers of the last attempt. The values of custom headers are hidden. Signatures are
    # included only if the key has the scope `webhooks:write`.
    headers: Dict[str, str]
    # The body, exactly as sent and signed.
    body: str


class DeliveryDetailResponse(TypedDict):
    """Response to the last attempt. Null if there was none."""

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
    # Whether the mail server accepts mail for the address. False if it wasn't contacted.
    smtp_valid: bool


class DomainAnswer(TypedDict):
    success: Literal[True]
    data: DomainAnswerData


class DomainAnswerData(TypedDict):
    # The domain, in ASCII.
    domain: str
    # `mx`: it has MX records. `implicit`: its own address receives mail. `null-mx`: it
    # declares that it accepts no mail. `no-mail`: it has no mail server. `no-domain`: it does
    # not exist. `unknown`: the DNS lookup failed, or the domain is on your blocklist.
    mail: Literal[
        "mx",
        "implicit",
        "null-mx",
        "no-mail",
        "no-domain",
        "unknown",
    ]
    # Mail servers, preferred first.
    mx_hosts: List[str]
    # Operator of the mail servers.
    operator: Optional[str]
    # Name of the operator, for people.
    provider: Optional[str]
    # Whether the domain accepts mail for every address, if a verification has found that out
    # in the last days. Otherwise null.
    is_catch_all: Optional[bool]
    is_disposable: bool
    is_free: bool
    is_relay: bool
    is_blocklisted: bool
    # Suggested domain, if this one looks misspelled. Otherwise null.
    did_you_mean: Optional[str]
    # Policies that the domain publishes. Null if a DNS lookup failed.
    policies: Optional[MailPolicies]
    # Outcomes of addresses that your account reported. Null without any.
    feedback: Optional[DomainFeedback]
    # The facts are simulated.
    sandbox: NotRequired[Literal[True]]


class DomainFeedback(TypedDict):
    # Addresses that mail reached.
    delivered: int
    # Addresses that don't exist.
    bounced: int
    # Lower end of the 95% Wilson interval.
    bounce_rate_min: float
    bounce_rate_max: float


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
    filter: NotRequired[List[Literal["deliverable", "risky", "undeliverable", "unknown"]]]
    # Only rows with these actions.
    action: NotRequired[List[Literal["send", "send_with_care", "retry_later", "suppress"]]]
    # Set to true to leave cells unchanged, as in the download.
    raw: NotRequired[bool]
    # Set to true or `address` to get each address once, or to `canonical` to get each mailbox
    # once. Of rows with the same address, the first that matches the filter is returned.
    deduplicate: NotRequired[Union[bool, Literal["address", "canonical"]]]
    vocabulary: NotRequired[Vocabulary]
    # Set to true to get the results so far of a job that isn't completed.
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
    action: Action
    # Reason for the action, as a sentence.
    action_reason: str
    # Seconds to wait before you retry the address. Only present if known.
    retry_after: NotRequired[int]
    flags: NotRequired[DownloadRowFlags]
    # Suggested address, if the domain looks misspelled. Otherwise null.
    did_you_mean: NotRequired[Optional[str]]
    # Canonical form of the address at its provider, such as `ann@gmail.com` for
    # `A.nn+news@googlemail.com`. Addresses with the same canonical form are the same mailbox.
    # Null if the text isn't an address.
    canonical: NotRequired[Optional[str]]
    # The mail server that was contacted. If none was, the preferred mail server of the
    # domain.
    mx_host: NotRequired[Optional[str]]
    # When the address was verified. For a cached result, this is in the past.
    checked_at: NotRequired[str]
    # The service whose result the list brought with it. ev has not tested the address. Only
    # present in rows with such a result.
    checked_by: NotRequired[Literal[
        "zerobounce",
        "neverbounce",
        "kickbox",
        "reacher",
        "ev",
    ]]
    # Operator of the mail servers of the domain.
    operator: NotRequired[Optional[str]]
    # SMTP reply code of the mail server. Null if it didn't reply.
    smtp_code: NotRequired[Optional[int]]
    # Reply of the mail server. If it didn't reply, what happened instead.
    smtp_text: NotRequired[Optional[str]]
    # Class before the re-verification.
    previous_class: NotRequired[Class]
    previous_reason: NotRequired[Reason]
    # True if the address was erased. Only the class of its result is kept.
    erased: NotRequired[Literal[True]]
    # The result is simulated.
    sandbox: NotRequired[Literal[True]]
    # Cells of the uploaded file by column name.
    input: NotRequired[Dict[str, str]]


class DownloadRowFlags(TypedDict):
    # Whether the domain provides temporary addresses.
    is_disposable: bool
    # Whether the address belongs to a role, such as `info@`, rather than a person.
    is_role: bool
    # Whether the domain accepts mail for every address. Null if it wasn't tested.
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
    # Whether the event is simulated.
    sandbox: bool
    # Data of the event. For its JSON Schema, see `GET /v1/webhooks/events`.
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
    # Whether the event is simulated.
    sandbox: bool
    # Data of the event. For its JSON Schema, see `GET /v1/webhooks/events`.
    data: Dict[str, Any]
    # Deliveries of the event, one for each subscribed endpoint that still exists.
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
    # What was refused, in more detail than `code`, for texts of your own. New reasons may be
    # added.
    reason: NotRequired[str]
    # The last part of `error`, if it says what to do in terms of this API. A program for
    # people can replace it.
    remedy: NotRequired[str]
    # ID of the request. The header `X-Request-Id` and the log contain it too.
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
    """The facts behind a result: answers of DNS and mail servers, signals and feedback. Only present with `?include=evidence`. New versions can add fields and values."""

    # The syntax error of the address. Null if it has none.
    syntax: Optional[EvidenceSyntax]
    # Canonical form of the address, without parts that its provider ignores, such as dots and
    # tags.
    canonical: Optional[str]
    # Operator of the mail servers of the domain.
    operator: Optional[str]
    # Where mail for the domain is sent. Null if it wasn't looked up.
    route: Optional[EvidenceRoute]
    # Name of the egress from which the mail server was contacted.
    egress: Optional[str]
    # The mail server that was contacted. Null if none was contacted.
    host: Optional[str]
    # IP address of the mail server.
    ip: Optional[str]
    # Whether the SMTP session was encrypted.
    tls: bool
    # Answer of the mail server about the address. Null if it wasn't asked.
    answer: Optional[EvidenceAnswer]
    # Whether the domain accepts mail for every address. Null if it wasn't tested.
    catch_all: Optional[bool]
    # Why no mail server was asked. `literal`: the domain is an IP address. `unwanted`:
    # `check_smtp` is false. `sandbox`: the result is simulated. `finished`: the list was
    # finished before the address was probed.
    skipped: Optional[Literal["literal", "unwanted", "sandbox", "finished"]]
    # Message of the internal error. Null if there was none.
    failure: Optional[str]
    # Duration of the DNS lookups in milliseconds.
    dns_ms: Optional[int]
    # Time to connect in milliseconds.
    connect_ms: Optional[int]
    # Lines of the SMTP session: `C: …` from ev, `S: …` from the mail server.
    dialogue: NotRequired[List[str]]
    # Signals from outside the SMTP session. Only present if signals are turned on.
    signals: NotRequired[List[EvidenceSignal]]
    # What another service said about the address. Only present if ev has not tested it.
    external: NotRequired[EvidenceExternal]
    # The newest feedback about the address.
    feedback: NotRequired[EvidenceFeedback]
    # The feedback about a catch-all domain.
    domain_feedback: NotRequired[EvidenceDomainFeedback]
    # The measurements behind the confidence.
    calibration: NotRequired[EvidenceCalibration]


class EvidenceSyntax(TypedDict):
    """The syntax error of the address. Null if it has none."""

    # Position of the first invalid character, in UTF-16 code units from 0.
    at: int
    message: str
    # The section of the standard that the address violates.
    rule: str


class EvidenceRoute(TypedDict):
    """Where mail for the domain is sent. Null if it wasn't looked up."""

    # `mx`: the domain has MX records. `implicit`: it has an address but no MX record.
    # `null-mx`: it doesn't accept mail (RFC 7505). `no-domain`: it doesn't exist. `no-mail`:
    # it has neither an MX record nor an address. `unknown`: the DNS lookup failed.
    kind: Literal[
        "mx",
        "implicit",
        "null-mx",
        "no-domain",
        "no-mail",
        "unknown",
    ]
    # Mail servers in order of preference.
    hosts: List[EvidenceRouteHost]
    # Why the answer of the DNS server wasn't trusted, or that it answers no query.
    detail: NotRequired[str]


class EvidenceRouteHost(TypedDict):
    preference: int
    host: str


class EvidenceAnswer(TypedDict):
    """Answer of the mail server about the address. Null if it wasn't asked."""

    # `accepted`, `rejected`: the mail server accepted or rejected the address. `blocked`: it
    # refused to talk to ev. `deferred`: it asked to retry later. `no-response`: it sent no
    # usable reply.
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
    # Reply of the mail server. If it didn't reply, what happened instead.
    text: str
    # What the reply means and what to do, as text.
    meaning: str
    # Present if no rule knows the reply, but servers sent it for random recipients, which
    # don't exist.
    learned: NotRequired[EvidenceAnswerLearned]


class EvidenceAnswerLearned(TypedDict):
    """Present if no rule knows the reply, but servers sent it for random recipients, which don't exist."""

    # Where the reply was learned. `domain`: from this domain. `operator`: from other domains
    # of its operator. `software`: from domains of other operators with the same server
    # software.
    scope: Literal["domain", "operator", "software"]
    # Number of domains whose server sent this reply for a random recipient.
    domains: int


class EvidenceSignal(TypedDict):
    name: Literal["policies", "parking", "typo-network", "gravatar"]
    # Points added to the confidence that the address isn't deliverable.
    shift: int
    detail: str


class EvidenceExternal(TypedDict):
    """What another service said about the address. Only present if ev has not tested it."""

    summary: str
    by: Literal[
        "zerobounce",
        "neverbounce",
        "kickbox",
        "reacher",
        "ev",
    ]
    # The word of the service.
    status: str
    # Its second word, such as a sub-status.
    detail: Optional[str]


class EvidenceFeedback(TypedDict):
    """The newest feedback about the address."""

    summary: str
    kind: Literal["delivered", "bounced", "complained"]
    occurred_at: str
    # SMTP reply code.
    code: Optional[int]
    enhanced_code: Optional[str]
    text: Optional[str]
    # Whether this feedback decided the result. Newer evidence overrides feedback.
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
    """The measurements behind the confidence."""

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
    # Diagnostic text of a bounce. The first 500 characters are stored.
    text: NotRequired[str]
    # When it happened. Default: now.
    occurred_at: NotRequired[str]
    # Whether your provider calls a bounce permanent. With true, a bounce without a code means
    # that the mailbox does not exist. With false, the bounce does not change verdicts.
    permanent: NotRequired[bool]
    # ID of the event in your system. An item with the ID of an earlier item is a duplicate.
    # Items without an ID are compared by their content.
    id: NotRequired[str]


class FeedbackReport(TypedDict):
    total: CalibrationFigures
    # The same figures, with the fixed confidence of each reason.
    fixed_confidence: CalibrationFigures
    # Verdicts by confidence, in ranges of 10 percent, lowest first. Empty ranges are omitted.
    bins: List[CalibrationBin]
    # The same, with the fixed confidence of each reason.
    fixed_bins: List[CalibrationBin]
    # How the field `deliverable` of the verdicts compares with what happened.
    outcomes: FeedbackReportOutcomes
    # Figures by reason, most frequent first. Catch-all domains with enough feedback are
    # counted by risk, such as `catch_all/low`.
    reasons: List[FeedbackReportReason]
    # By reason and operator, most verdicts first, at most 100.
    operators: List[FeedbackReportOperator]
    # Recorded feedback by day and source, newest first, at most 30 rows.
    received: List[FeedbackReportReceivedItem]


class FeedbackReportOutcomes(TypedDict):
    """How the field `deliverable` of the verdicts compares with what happened."""

    # Messages that bounced, to addresses whose verdict was not deliverable.
    predicted_bounces: int
    # Messages that bounced, to addresses whose verdict was deliverable.
    missed_bounces: int
    # Messages that arrived, at addresses whose verdict was deliverable.
    kept_deliveries: int
    # Messages that arrived, at addresses whose verdict was not deliverable.
    lost_deliveries: int


class FeedbackReportReason(TypedDict):
    reason: str
    # Verdicts with a known outcome.
    count: int
    # Mean confidence.
    predicted: float
    # Share of correct verdicts.
    observed: float
    # Brier score: the mean squared difference between confidence and outcome. 0 is best.
    brier_score: float
    # Expected calibration error: the mean difference between confidence and the share of
    # correct verdicts, over ten ranges of confidence. 0 is best.
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
    # Brier score: the mean squared difference between confidence and outcome. 0 is best.
    brier_score: float
    # Expected calibration error: the mean difference between confidence and the share of
    # correct verdicts, over ten ranges of confidence. 0 is best.
    calibration_error: float


class FeedbackReportReceivedItem(TypedDict):
    # Day in UTC.
    date: str
    # Where the feedback came from: `api`, `import` (`ev feedback import`) or the provider of
    # a source.
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
    # When the provider last sent a valid request. Null if it never did.
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
    # Names of the columns. Truncated if there are very many.
    columns: List[FileDryRunColumn]
    # Name of the address column.
    column: Optional[str]
    # Number of the address column, from 1. Null if none was found: set `column`.
    column_number: Optional[int]
    header: bool
    # Encoding of the file, as a WHATWG label.
    encoding: str
    delimiter: Literal[",", ";", "\t", "|"]
    # Format of the file: text, compressed text, or a workbook.
    format: Literal["text", "gzip", "zip", "xlsx"]
    # Name of the sheet that is read. Null if the file isn't a workbook.
    sheet: Optional[str]
    # Names of all sheets. Empty if the file isn't a workbook.
    sheets: List[str]
    # Numbers of all columns that contain addresses, including `column_number`. Only
    # `column_number` is verified unless `all_addresses` is true.
    address_columns: List[int]
    # Whether some cells of the address column contain several addresses. Unless
    # `all_addresses` is true, such a cell is `invalid_email`; in a list without other
    # columns, the first address of the line is verified.
    has_several: bool
    # Whether every address of a row is verified, each as a separate row.
    all_addresses: bool
    # The service whose results the file has in its columns. Null if none is recognized.
    external_source: Optional[Literal[
        "zerobounce",
        "neverbounce",
        "kickbox",
        "reacher",
        "ev",
    ]]
    # Rows that keep such a result because `keep_external` is true. They are not verified and
    # not charged.
    kept_external: int
    rows: Optional[int]
    total_emails: Optional[int]
    # Rows with a well-formed address. It doesn't have to exist.
    valid_emails: Optional[int]
    # Rows with a malformed address. If the response has no `no_address`, this includes rows
    # without an address.
    invalid_format_emails: Optional[int]
    # Rows without an address: blank between other rows, empty in the address column, or with
    # a placeholder such as `n/a`. They are free, and their reason is `no_address`.
    no_address: Optional[int]
    duplicates: Optional[int]
    # Credits that the list costs at most.
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
    # Whether the form should accept the address. False only if it is undeliverable.
    allow: bool
    # What to do with the address, by the action policy of the account, if the form accepts
    # it.
    action: Literal["send", "send_with_care", "retry_later", "suppress"]
    # Suggested address, if the domain looks misspelled. Otherwise null.
    did_you_mean: Optional[str]
    # Message for the visitor.
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
    # Rows with a well-formed address. It doesn't have to exist.
    valid_emails: int
    # Rows with a malformed address. If the response has no `no_address`, this includes rows
    # without an address.
    invalid_format_emails: int
    results: List[BulkItem]
    summary: InstantBulkSummary
    message: str
    # ID of the endpoint for `webhook_url`. Only present if you set it.
    webhook_id: NotRequired[str]
    # Secret that signs the events sent to `webhook_url`. Returned only once.
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
    # Percentage of processed rows. 100 only when the job is completed.
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
    # Why the job is waiting, for example because a mail provider limits the rate. Only
    # present while it waits.
    status_detail: NotRequired[str]
    # Rows per second over the last 30 seconds, or since your previous request if that is
    # longer ago. Null if not known yet.
    rate_per_second: NotRequired[Optional[float]]
    # Estimated remaining seconds. Null if unknown or if the job has finished.
    seconds_left: NotRequired[Optional[int]]
    # What the job waits for: the causes that affect most rows. Only present while rows wait.
    waiting_for: NotRequired[List[JobWaitingForItem]]
    type: Literal["single", "bulk", "batch", "file"]
    name: Optional[str]
    # Metadata of the job. Empty if none was submitted.
    metadata: Dict[str, str]
    # ID of the endpoint for `webhook_url`. Only present if the job was created with one.
    webhook_id: NotRequired[str]
    # The job that this job re-verifies. Only present in a re-verification.
    previous_job_id: NotRequired[str]
    # The schedule that created the job. Only present in a scheduled job.
    schedule_id: NotRequired[str]
    # When the job was asked to finish without further retries. Only present if it was.
    finish_requested_at: NotRequired[str]
    data: JobData


class JobError(TypedDict):
    code: str
    message: str


class JobWaitingForItem(TypedDict):
    # The mail provider. Null if the cause isn't a provider.
    operator: Optional[str]
    emails: int
    # `refused`: the provider blocks the service. `throttled`: the provider asked to slow
    # down. `unknown_users`: the provider rejected many recipients in a row as unknown.
    # `retrying`: mail servers asked for a later retry, as greylists do. `postponed`: not
    # asked yet, for example because other domains at the same IP address come first.
    # `rate_limited`: addresses are probed at the rate that the provider accepts, in turn with
    # other lists. `dns_retry`: the lookup of their domains failed, and is repeated.
    # `dns_check`: the DNS server fails its check. `no_worker`: no process works on lists.
    # `queued`: the list has not started.
    reason: Literal[
        "dns_check",
        "no_worker",
        "queued",
        "refused",
        "throttled",
        "unknown_users",
        "retrying",
        "postponed",
        "dns_retry",
        "rate_limited",
    ]
    # Earliest time of the next attempt. Null if not known.
    until: Optional[str]
    # The cause as a sentence.
    detail: str


class JobData(TypedDict):
    # Results in the order of the list. Empty until the job is completed, unless you set
    # `partial=true`.
    results: NotRequired[List[JobItem]]
    summary: JobSummary
    completed_at: Optional[str]
    # Processed rows by class.
    classes: JobDataClasses
    # Rows without an address. They also count as `unknown`.
    no_address: int
    # URL of the results. Requires an API key. Null if the job is not completed.
    download_url: Optional[str]


class JobDataClasses(TypedDict):
    """Processed rows by class."""

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
    action: Action
    # True if the address was erased. Only the class of its result is kept.
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
    # Percentage of processed rows. 100 only when the job is completed.
    progress: int
    total_emails: int
    processed_emails: int
    # Processed rows by class.
    classes: JobProgressClasses
    # Rows per second over the last 30 seconds, or since your previous request if that is
    # longer ago. Null if not known yet.
    rate_per_second: Optional[float]
    # Estimated remaining seconds. Null if unknown or if the job has finished.
    seconds_left: Optional[int]
    # What the job waits for: the causes that affect most rows. Only present while rows wait.
    waiting_for: NotRequired[List[JobProgressWaitingForItem]]
    summary: JobSummary


class JobProgressClasses(TypedDict):
    """Processed rows by class."""

    deliverable: int
    risky: int
    undeliverable: int
    unknown: int


class JobProgressWaitingForItem(TypedDict):
    # The mail provider. Null if the cause isn't a provider.
    operator: Optional[str]
    emails: int
    # `refused`: the provider blocks the service. `throttled`: the provider asked to slow
    # down. `unknown_users`: the provider rejected many recipients in a row as unknown.
    # `retrying`: mail servers asked for a later retry, as greylists do. `postponed`: not
    # asked yet, for example because other domains at the same IP address come first.
    # `rate_limited`: addresses are probed at the rate that the provider accepts, in turn with
    # other lists. `dns_retry`: the lookup of their domains failed, and is repeated.
    # `dns_check`: the DNS server fails its check. `no_worker`: no process works on lists.
    # `queued`: the list has not started.
    reason: Literal[
        "dns_check",
        "no_worker",
        "queued",
        "refused",
        "throttled",
        "unknown_users",
        "retrying",
        "postponed",
        "dns_retry",
        "rate_limited",
    ]
    # Earliest time of the next attempt. Null if not known.
    until: Optional[str]
    # The cause as a sentence.
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
    # Percentage of processed rows. 100 only when the job is completed.
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
    # Results in the order of the list. Empty until the job is completed, unless you set
    # `partial=true`.
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
    # Whether this is a publishable key for forms on websites. Its only scope is
    # `verify:form`.
    publishable: bool
    # Whether this is a test key: all of its requests are simulated.
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
        "people:write",
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
    # Permissions of the key. `*` grants all. The key can't have more permissions than the
    # calling key.
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
        "people:write",
        "accounts:write",
        "dashboard",
        "*",
    ]]]
    # IP addresses and CIDR ranges that can use the key. If empty, every address can.
    allowed_ips: NotRequired[List[str]]
    # Domains of the websites that can use the key from a browser, including their subdomains.
    # If empty, every website can. A publishable key needs at least one.
    allowed_domains: NotRequired[List[str]]
    # Requests per minute that this key can send, in addition to the limit of the plan. Null:
    # no additional limit.
    rate_limit_per_minute: NotRequired[Optional[int]]
    # When the key stops working. Null if it does not expire.
    expires_at: NotRequired[Optional[str]]


class KeyRotation(TypedDict):
    # Seconds for which the current secret remains valid.
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
    # The maximum within a window, or at any time.
    limit: int
    # How much is left.
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


class ListProjection(TypedDict):
    before: BounceProjection
    # Mail to the addresses with the actions `send` and `send_with_care`.
    after: BounceProjection
    # Mail to the addresses with the actions of the query. Only present with `action`.
    selected: NotRequired[BounceProjection]
    # Bounces and deliveries that the account reported about such results, weighted by their
    # age. With 0, the rates are assumptions.
    reports: int
    # Reported complaints of the last 30 days for each reported delivery. Null without
    # deliveries. Verification predicts no complaints.
    complaint_rate: Optional[float]
    # Limits of Amazon SES and Gmail, for comparison.
    limits: ListProjectionLimits


class ListProjectionLimits(TypedDict):
    """Limits of Amazon SES and Gmail, for comparison."""

    ses_bounce_review: float
    ses_bounce_pause: float
    gmail_complaints: float


class ListedJob(TypedDict):
    job_id: str
    status: Literal[
        "queued",
        "processing",
        "completed",
        "failed",
        "cancelled",
    ]
    # Percentage of processed rows. 100 only when the job is completed.
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
    # Why the job is waiting, for example because a mail provider limits the rate. Only
    # present while it waits.
    status_detail: NotRequired[str]
    # Rows per second over the last 30 seconds, or since your previous request if that is
    # longer ago. Null if not known yet.
    rate_per_second: NotRequired[Optional[float]]
    # Estimated remaining seconds. Null if unknown or if the job has finished.
    seconds_left: NotRequired[Optional[int]]
    # What the job waits for: the causes that affect most rows. Only present while rows wait.
    waiting_for: NotRequired[List[ListedJobWaitingForItem]]
    type: Literal["single", "bulk", "batch", "file"]
    name: Optional[str]
    # Metadata of the job. Empty if none was submitted.
    metadata: Dict[str, str]
    # ID of the endpoint for `webhook_url`. Only present if the job was created with one.
    webhook_id: NotRequired[str]
    # The job that this job re-verifies. Only present in a re-verification.
    previous_job_id: NotRequired[str]
    # The schedule that created the job. Only present in a scheduled job.
    schedule_id: NotRequired[str]
    # When the job was asked to finish without further retries. Only present if it was.
    finish_requested_at: NotRequired[str]
    data: ListedJobData


class ListedJobError(TypedDict):
    code: str
    message: str


class ListedJobWaitingForItem(TypedDict):
    # The mail provider. Null if the cause isn't a provider.
    operator: Optional[str]
    emails: int
    # `refused`: the provider blocks the service. `throttled`: the provider asked to slow
    # down. `unknown_users`: the provider rejected many recipients in a row as unknown.
    # `retrying`: mail servers asked for a later retry, as greylists do. `postponed`: not
    # asked yet, for example because other domains at the same IP address come first.
    # `rate_limited`: addresses are probed at the rate that the provider accepts, in turn with
    # other lists. `dns_retry`: the lookup of their domains failed, and is repeated.
    # `dns_check`: the DNS server fails its check. `no_worker`: no process works on lists.
    # `queued`: the list has not started.
    reason: Literal[
        "dns_check",
        "no_worker",
        "queued",
        "refused",
        "throttled",
        "unknown_users",
        "retrying",
        "postponed",
        "dns_retry",
        "rate_limited",
    ]
    # Earliest time of the next attempt. Null if not known.
    until: Optional[str]
    # The cause as a sentence.
    detail: str


class ListedJobData(TypedDict):
    summary: JobSummary
    completed_at: Optional[str]
    # Processed rows by class.
    classes: ListedJobDataClasses
    # Rows without an address. They also count as `unknown`.
    no_address: int
    # URL of the results. Requires an API key. Null if the job is not completed.
    download_url: Optional[str]


class ListedJobDataClasses(TypedDict):
    """Processed rows by class."""

    deliverable: int
    risky: int
    undeliverable: int
    unknown: int


class MailPolicies(TypedDict):
    # SPF record. Null without one.
    spf: Optional[str]
    # Policy of the DMARC record. Null without a valid one.
    dmarc: Optional[Literal["none", "quarantine", "reject"]]
    # Whether the domain announces MTA-STS.
    mta_sts: bool


class NewAccount(TypedDict):
    # Unique name.
    name: str
    # Name of a plan; see `GET /v1/plans`.
    plan: str
    # Email address for alerts about failing webhooks, and for finished lists that were
    # submitted with `notify`. If null, the address of the service receives the alerts.
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
    # Key that authenticates the provider. `ses`: the ARN of the SNS topic. `sendgrid`: the
    # verification key of the Event Webhook. `mailgun`: the HTTP webhook signing key. Omit it
    # for `postmark` and `sparkpost`: the response contains a password instead.
    key: NotRequired[str]


class NewKey(TypedDict):
    # Display name.
    name: str
    # Permissions of the key. `*` grants all. The key can't have more permissions than the
    # calling key.
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
        "people:write",
        "accounts:write",
        "dashboard",
        "*",
    ]]]
    # Set to true instead of `scopes` for a key of forms on websites, which may be part of a
    # page. It needs `allowed_domains`. Without `rate_limit_per_minute` it can send 120
    # requests per minute.
    publishable: NotRequired[bool]
    # Set to true to create a test key (`ev_test_…`). All of its requests are simulated, as
    # with `X-EV-Sandbox: true`. A test key can only manage test keys.
    test: NotRequired[bool]
    # IP addresses and CIDR ranges that can use the key. If empty, every address can.
    allowed_ips: NotRequired[List[str]]
    # Domains of the websites that can use the key from a browser, including their subdomains.
    # If empty, every website can. A publishable key needs at least one.
    allowed_domains: NotRequired[List[str]]
    # Requests per minute that this key can send, in addition to the limit of the plan. Null:
    # no additional limit.
    rate_limit_per_minute: NotRequired[Optional[int]]
    # When the key stops working. Null if it does not expire.
    expires_at: NotRequired[Optional[str]]


class NewPerson(TypedDict):
    # Display name.
    name: str
    # Email address, with which the person signs in. Case does not matter.
    email: str
    # `admin`: everything in the account. `member`: verify, and manage lists, webhooks and
    # feedback. `viewer`: read only.
    role: Literal["admin", "member", "viewer"]


class NewScheduleRequest(TypedDict):
    # The list to re-verify. It can still be running.
    job_id: str
    # Days between two runs.
    every_days: int
    # Re-verify the rows with these classes.
    only: NotRequired[List[Literal["deliverable", "risky", "undeliverable", "unknown"]]]
    # Re-verify the rows whose results are older than this number of days.
    older_than_days: NotRequired[int]
    # Whether to email the address of the account at the end of each run.
    notify: NotRequired[bool]


class NewWebhook(TypedDict):
    # An https URL that the service can reach, with a public address.
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
    # returned. You can't set headers that HTTP or the service sets.
    headers: NotRequired[Dict[str, str]]


class OwnAccountPatch(TypedDict):
    # Unique name.
    name: NotRequired[str]
    # Email address for alerts about failing webhooks, and for finished lists that were
    # submitted with `notify`. If null, the address of the service receives the alerts.
    email: NotRequired[Optional[str]]
    # Decides about `action` in results: `balanced`, `strict` or `lenient`. If null, the
    # policy of the service does.
    action_policy: NotRequired[Optional[Literal["balanced", "strict", "lenient"]]]
    # Whether people who sign in to the dashboard with a password need a second factor. Those
    # without one can only set one up then, and API keys cannot sign in. The identity provider
    # asks for its own second factor.
    two_factor_required: NotRequired[bool]


class Person(TypedDict):
    id: str
    name: str
    email: str
    role: Literal["admin", "member", "viewer"]
    # Whether the person has accepted an invitation.
    joined: bool
    # Whether sign-in with the password asks for a second factor.
    two_factor: bool
    # Whether the person signs in with the identity provider.
    identity_provider: bool
    created_at: str
    # When the open link expires. Null if there is none.
    invitation_expires_at: Optional[str]
    last_signed_in_at: Optional[str]


class PersonAnswer(TypedDict):
    success: Literal[True]
    data: Person


class PersonLink(TypedDict):
    success: Literal[True]
    data: PersonLinkData


class PersonLinkData(TypedDict):
    id: str
    name: str
    email: str
    role: Literal["admin", "member", "viewer"]
    # Whether the person has accepted an invitation.
    joined: bool
    # Whether sign-in with the password asks for a second factor.
    two_factor: bool
    # Whether the person signs in with the identity provider.
    identity_provider: bool
    created_at: str
    # When the open link expires. Null if there is none.
    invitation_expires_at: Optional[str]
    last_signed_in_at: Optional[str]
    # Page where the person sets a password. Returned only once. It works once, for seven
    # days.
    url: str


class PersonList(TypedDict):
    success: Literal[True]
    data: PersonListData


class PersonListData(TypedDict):
    people: List[Person]
    total: int


class PersonPatch(TypedDict):
    # Display name.
    name: NotRequired[str]
    # `admin`: everything in the account. `member`: verify, and manage lists, webhooks and
    # feedback. `viewer`: read only.
    role: NotRequired[Literal["admin", "member", "viewer"]]


class Plan(TypedDict):
    name: str
    # Requests that an account can send per window, with all of its keys together.
    requests: int
    window_seconds: float
    # Null: unlimited.
    credits_per_day: Optional[int]
    # Lists that can be unfinished at the same time. Null: unlimited.
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
    # Rows with a well-formed address. It doesn't have to exist.
    valid_emails: int
    # Rows with a malformed address. If the response has no `no_address`, this includes rows
    # without an address.
    invalid_format_emails: int
    # Rows without an address: blank between other rows, empty in the address column, or with
    # a placeholder such as `n/a`. They are free, and their reason is `no_address`.
    no_address: int
    # Rows that repeat the address of an earlier row.
    duplicates: int
    estimated_time: str
    message: str
    # ID of the endpoint for `webhook_url`. Only present if you set it.
    webhook_id: NotRequired[str]
    # Secret that signs the events sent to `webhook_url`. Returned only once.
    webhook_secret: NotRequired[str]
    # URL of the job.
    status_url: str
    # URL of the results. Requires an API key, and returns 409 `job_not_ready` until the job
    # is completed.
    download_url: str


class QueuedBulk(TypedDict):
    success: Literal[True]
    job_id: str
    status: Literal["queued"]
    total_emails: int
    # Rows with a well-formed address. It doesn't have to exist.
    valid_emails: int
    # Rows with a malformed address. If the response has no `no_address`, this includes rows
    # without an address.
    invalid_format_emails: int
    estimated_time: str
    message: str
    # ID of the endpoint for `webhook_url`. Only present if you set it.
    webhook_id: NotRequired[str]
    # Secret that signs the events sent to `webhook_url`. Returned only once.
    webhook_secret: NotRequired[str]


class QueuedFile(TypedDict):
    success: Literal[True]
    job_id: str
    status: Literal["queued"]
    total_emails: int
    # Rows with a well-formed address. It doesn't have to exist.
    valid_emails: int
    # Rows with a malformed address. If the response has no `no_address`, this includes rows
    # without an address.
    invalid_format_emails: int
    # Rows without an address: blank between other rows, empty in the address column, or with
    # a placeholder such as `n/a`. They are free, and their reason is `no_address`.
    no_address: int
    # Rows that repeat the address of an earlier row.
    duplicates: int
    estimated_time: str
    message: str
    # ID of the endpoint for `webhook_url`. Only present if you set it.
    webhook_id: NotRequired[str]
    # Secret that signs the events sent to `webhook_url`. Returned only once.
    webhook_secret: NotRequired[str]
    # URL of the job.
    status_url: str
    # URL of the results. Requires an API key, and returns 409 `job_not_ready` until the job
    # is completed.
    download_url: str
    # Name of the address column.
    column: Optional[str]
    column_number: int
    header: bool
    # Encoding of the file, as a WHATWG label.
    encoding: str
    # Name of the sheet that is read. Null if the file isn't a workbook.
    sheet: Optional[str]
    rows: int
    # Numbers of all columns that contain addresses, including `column_number`. Only
    # `column_number` is verified unless `all_addresses` is true.
    address_columns: List[int]
    # Whether some cells of the address column contain several addresses. Unless
    # `all_addresses` is true, such a cell is `invalid_email`; in a list without other
    # columns, the first address of the line is verified.
    has_several: bool
    # Whether every address of a row is verified, each as a separate row.
    all_addresses: bool
    # The service whose results the file has in its columns. Null if none is recognized.
    external_source: Optional[Literal[
        "zerobounce",
        "neverbounce",
        "kickbox",
        "reacher",
        "ev",
    ]]
    # Rows that keep such a result because `keep_external` is true. They are not verified and
    # not charged.
    kept_external: int


class RecordedFeedback(TypedDict):
    received: int
    recorded: int
    # Items that were already recorded.
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
    # Number of rows that match the filter. Only with `count` or `sort`.
    total: NotRequired[int]
    # Number of these rows before this page. Only with `count` or `sort`.
    offset: NotRequired[int]


_ResultRowKeywords = TypedDict(
    "_ResultRowKeywords",
    {"class": "Optional[Literal['deliverable', 'risky', 'undeliverable', 'unknown']]"},
)


class ResultRow(_ResultRowKeywords):
    """A row of a list. Fields of the result are null until the row has a result."""

    # Number of the row in the list, from 1.
    row: int
    # The address that was verified.
    email: str
    action: Optional[Action]
    action_reason: Optional[str]
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
    # The mail server that was contacted. If none was, the preferred mail server of the
    # domain.
    mx_host: Optional[str]
    # SMTP reply code of the mail server. Null if it didn't reply.
    smtp_code: Optional[int]
    # Reply of the mail server. If it didn't reply, what happened instead.
    smtp_text: Optional[str]
    checked_at: Optional[str]
    # Who obtained the result: `ev`, `sandbox` for a simulated one, or the service whose
    # result the list brought with it.
    checked_by: Optional[str]
    # True if the address was erased. Only the class of its result is kept.
    erased: NotRequired[Literal[True]]


class ResultRowAnswer(TypedDict):
    success: Literal[True]
    data: ResultRowAnswerData


class ResultRowAnswerData(TypedDict):
    # Number of the row in the list, from 1.
    row: int
    # The address that was verified.
    email: str
    # Null while the row has no result, and if the address was erased.
    result: Optional[SingleResult]
    # True if the address was erased. Only the class of its result is kept.
    erased: NotRequired[Literal[True]]


class ReverifyJob(Job):
    # Secret that signs the events sent to `webhook_url`. Returned only once.
    webhook_secret: NotRequired[str]


class ReverifyRequest(TypedDict):
    # Re-verify the rows with these classes.
    only: NotRequired[List[Literal["deliverable", "risky", "undeliverable", "unknown"]]]
    # Re-verify the rows whose results are older than this number of days.
    older_than_days: NotRequired[int]
    # Set to false to skip the mail server (reason `smtp_skipped`).
    check_smtp: NotRequired[bool]
    # Up to 50 key-value pairs, returned with the job and in its events. Keys have up to 40
    # characters and no brackets, values up to 500 characters.
    metadata: NotRequired[Dict[str, str]]
    # Set to true to email the address of the account when the list is finished. No email is
    # sent if the response already contains the results.
    notify: NotRequired[bool]
    # An https URL to send the events of this job to, in addition to the endpoints of the
    # account. The response contains the `webhook_secret` that signs them.
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
    # Whether this is a publishable key for forms on websites. Its only scope is
    # `verify:form`.
    publishable: bool
    # Whether this is a test key: all of its requests are simulated.
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
        "people:write",
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
    # The only job whose events are sent to this endpoint. Only present if it was created with
    # `webhook_url`.
    job_id: NotRequired[str]
    # Names of the custom headers. Their values are never returned.
    header_names: List[str]
    # The secret that signs events (`X-EV-Signature`: HMAC-SHA256 of the body, keyed with this
    # whole text). Returned only once.
    secret: str
    created_at: str
    updated_at: str
    # Why the service disabled the endpoint, as text. Null if it didn't.
    disabled_reason: Optional[str]
    # Why the service disabled the endpoint. `gone`: the endpoint responded with 410.
    # `failing`: all attempts failed for five days. Null if it didn't disable the endpoint.
    disabled_code: Optional[Literal["gone", "failing"]]
    # When the endpoint started to fail. Null if the last attempt succeeded. The service
    # disables an endpoint that has failed for five days.
    failing_since: Optional[str]
    # Share of successful attempts in `daily_attempts`, from 0 to 1. Null if there were none.
    success_rate: Optional[float]
    # Attempts by day, oldest first: the last seven days on which events were sent. Tests are
    # not counted.
    daily_attempts: List[RotatedWebhookDataDailyAttempt]
    # When the previous secret expires. Until then, `webhook-signature` also contains a
    # signature with it. Absent if there is no previous secret.
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
    # Re-verify the rows with these classes. Null: all classes.
    only: Optional[List[Literal["deliverable", "risky", "undeliverable", "unknown"]]]
    # Re-verify the rows whose results are older than this number of days. Null: any age.
    older_than_days: Optional[int]
    # Whether to email the address of the account at the end of each run.
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
    # The job of the latest run. The next run re-verifies it.
    last_job_id: Optional[str]
    created_at: str


class ScheduleLastRun(TypedDict):
    at: str
    # `started`: a job was created. `skipped`: there was nothing to re-verify. `failed`: no
    # job could be created. The schedule stays active in all three cases.
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
    only: NotRequired[Optional[List[Literal["deliverable", "risky", "undeliverable", "unknown"]]]]
    older_than_days: NotRequired[Optional[int]]
    # Whether to email the address of the account at the end of each run.
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
    action: Action
    # Reason for the action, as a sentence.
    action_reason: str
    # The class of the result, except that a simulated `unknown` is `risky` here. `class` has
    # the simulated value.
    status: Literal["deliverable", "risky", "undeliverable", "unknown"]
    # Quality of the address from 0 (do not send) to 100 (send).
    score: int
    # Whether the domain provides temporary addresses.
    is_disposable: bool
    # Whether the address belongs to a role, such as `info@`, rather than a person.
    is_role: bool
    # Whether the domain accepts mail for every address. Null if it wasn't tested.
    is_catch_all: Optional[bool]
    # Whether the domain is a free email provider.
    is_free: bool
    # Seconds to wait before you retry the address. Only present if known.
    retry_after: NotRequired[int]
    flags: NotRequired[ScoredResultFlags]
    # Suggested address, if the domain looks misspelled. Otherwise null.
    did_you_mean: NotRequired[Optional[str]]
    # Canonical form of the address at its provider, such as `ann@gmail.com` for
    # `A.nn+news@googlemail.com`. Addresses with the same canonical form are the same mailbox.
    # Null if the text isn't an address.
    canonical: NotRequired[Optional[str]]
    # The mail server that was contacted. If none was, the preferred mail server of the
    # domain.
    mx_host: NotRequired[Optional[str]]
    # When the address was verified. For a cached result, this is in the past.
    checked_at: NotRequired[str]
    evidence: NotRequired[Evidence]
    # Whether the result is simulated.
    sandbox: bool


class ScoredResultFlags(TypedDict):
    # Whether the domain provides temporary addresses.
    is_disposable: bool
    # Whether the address belongs to a role, such as `info@`, rather than a person.
    is_role: bool
    # Whether the domain accepts mail for every address. Null if it wasn't tested.
    is_catch_all: Optional[bool]
    # Whether the domain is a free email provider.
    is_free: bool
    # Whether the address is an alias of a forwarding service.
    is_relay: bool


class SecretRotation(TypedDict):
    # Seconds for which events are also signed with the current secret.
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
    action: Action
    # Reason for the action, as a sentence.
    action_reason: str
    # Seconds to wait before you retry the address. Only present if known.
    retry_after: NotRequired[int]
    flags: NotRequired[SingleResultFlags]
    # Suggested address, if the domain looks misspelled. Otherwise null.
    did_you_mean: NotRequired[Optional[str]]
    # Canonical form of the address at its provider, such as `ann@gmail.com` for
    # `A.nn+news@googlemail.com`. Addresses with the same canonical form are the same mailbox.
    # Null if the text isn't an address.
    canonical: NotRequired[Optional[str]]
    # The mail server that was contacted. If none was, the preferred mail server of the
    # domain.
    mx_host: NotRequired[Optional[str]]
    # When the address was verified. For a cached result, this is in the past.
    checked_at: NotRequired[str]
    evidence: NotRequired[Evidence]
    # The service whose result the list brought with it. ev has not tested the address. Only
    # present in rows with such a result.
    checked_by: NotRequired[Literal[
        "zerobounce",
        "neverbounce",
        "kickbox",
        "reacher",
        "ev",
    ]]
    # The result is simulated.
    sandbox: NotRequired[Literal[True]]


class SingleResultFlags(TypedDict):
    # Whether the domain provides temporary addresses.
    is_disposable: bool
    # Whether the address belongs to a role, such as `info@`, rather than a person.
    is_role: bool
    # Whether the domain accepts mail for every address. Null if it wasn't tested.
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
    risky: int
    undeliverable: int
    unknown: int


class StatsDataKey(TypedDict):
    key_id: str
    key_name: Optional[str]
    verifications: int
    # Verifications answered from the cache.
    cached: int
    credits: int
    deliverable: int
    risky: int
    undeliverable: int
    unknown: int


class UrlRequest(TypedDict):
    # URL of the list: https://host/path, or s3://bucket/key with `s3`.
    url: str
    s3: NotRequired[BucketAccess]
    # Name or number (from 1) of the address column. Default: detected.
    column: NotRequired[Union[str, int]]
    # Name of the sheet to read from a workbook. Default: the first visible sheet.
    sheet: NotRequired[str]
    # Whether the first row contains column names. Default: detected.
    header: NotRequired[bool]
    # Encoding of the file, as a WHATWG label such as `windows-1252`. Default: detected.
    encoding: NotRequired[str]
    # Set to true to verify every address of a row, each as a separate row with the other
    # cells of its row. Set to false to verify one address per row. Default: true for a list
    # without a header, unless you set `column`.
    all_addresses: NotRequired[bool]
    # Set to true to keep recent results of ZeroBounce, NeverBounce, Kickbox, Reacher or ev
    # that the file has in its columns. Their rows are not verified and not charged, and their
    # reason begins with `external_`.
    keep_external: NotRequired[bool]
    # When the file with these results was exported, such as `2026-03-01`. For rows without a
    # date of their own; without either, a row is verified.
    external_date: NotRequired[str]
    # Display name. Default: the name of the file.
    name: NotRequired[str]
    # Set to false to verify and charge an address each time it occurs.
    deduplicate: NotRequired[bool]
    # Set to false to skip the mail server (reason `smtp_skipped`).
    check_smtp: NotRequired[bool]
    # Set to true to contact the mail server even if a cached result exists.
    force_refresh: NotRequired[bool]
    # Up to 50 key-value pairs, returned with the job and in its events. Keys have up to 40
    # characters and no brackets, values up to 500 characters.
    metadata: NotRequired[Dict[str, str]]
    # Set to true to email the address of the account when the list is finished. No email is
    # sent if the response already contains the results.
    notify: NotRequired[bool]
    # An https URL to send the events of this job to, in addition to the endpoints of the
    # account. The response contains the `webhook_secret` that signs them.
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
    # What to do with the address, by the reason and the action policy of the account.
    action: Literal["send", "send_with_care", "retry_later", "suppress"]
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
    # Mail servers in order of preference.
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
    # The only job whose events are sent to this endpoint. Only present if it was created with
    # `webhook_url`.
    job_id: NotRequired[str]
    # Names of the custom headers. Their values are never returned.
    header_names: List[str]
    # Last characters of the secret.
    secret_hint: str
    created_at: str
    updated_at: str
    # Why the service disabled the endpoint, as text. Null if it didn't.
    disabled_reason: Optional[str]
    # Why the service disabled the endpoint. `gone`: the endpoint responded with 410.
    # `failing`: all attempts failed for five days. Null if it didn't disable the endpoint.
    disabled_code: Optional[Literal["gone", "failing"]]
    # When the endpoint started to fail. Null if the last attempt succeeded. The service
    # disables an endpoint that has failed for five days.
    failing_since: Optional[str]
    # Share of successful attempts in `daily_attempts`, from 0 to 1. Null if there were none.
    success_rate: Optional[float]
    # Attempts by day, oldest first: the last seven days on which events were sent. Tests are
    # not counted.
    daily_attempts: List[WebhookDailyAttempt]
    # When the previous secret expires. Until then, `webhook-signature` also contains a
    # signature with it. Absent if there is no previous secret.
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
    # An https URL that the service can reach, with a public address.
    url: NotRequired[str]
    events: NotRequired[List[Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
    ]]]
    # Set to true to enable the endpoint, even if the service disabled it.
    active: NotRequired[bool]
    # Human-readable description.
    description: NotRequired[Optional[str]]
    # Custom headers to send with each event, such as `Authorization`: up to 10, each value
    # with up to 2,000 printable ASCII characters. Values are stored encrypted and never
    # returned. You can't set headers that HTTP or the service sets. Set a header to null to
    # remove it. Headers that you omit keep their values, unless you change the origin of the
    # URL: then they are removed.
    headers: NotRequired[Dict[str, Optional[str]]]


class WebhookTest(TypedDict):
    success: Literal[True]
    data: WebhookTestData


class WebhookTestData(TypedDict):
    delivery_id: str
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
    status: Literal["delivered", "failed"]
    # HTTP status of the response. Null if there was no response.
    status_code: Optional[int]
    # What went wrong, as text. Null if the attempt succeeded.
    error: Optional[str]
    # What went wrong. Null if the attempt succeeded. `http_status`: the response was not 2xx.
    # `redirect`: the response was 3xx; redirects are not followed. `timeout`: no response
    # within 30 seconds. `connection_failed`: no connection, or it was closed before the
    # response. `tls_error`: no TLS, or an invalid certificate. `dns_error`: the host name has
    # no address or could not be resolved. `address_not_public`: the host has a private
    # address. `invalid_url`: the URL isn't valid. `invalid_response`: the response was not
    # HTTP/1.1 or was too long. `secret_unreadable`: the signing secret cannot be read.
    # `interrupted`: the service was stopped before the response. `request_failed`: any other
    # failure.
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
    duration_ms: int
    response_excerpt: Optional[str]


class WebhookTestRequest(TypedDict):
    # Send the example of this event type. Default: `webhook.test`.
    event: NotRequired[Literal[
        "batch.completed",
        "batch.failed",
        "verification.completed",
        "quota.warning",
        "quota.exceeded",
        "webhook.test",
    ]]


class BatchCompletedEvent(TypedDict):
    """A list is finished. Here, valid counts deliverable rows only; summary.valid of the job also counts risky rows."""

    event: Literal["batch.completed"]
    # Identical for all attempts.
    event_id: str
    # When the event happened.
    timestamp: str
    # Only present if the event is simulated.
    sandbox: NotRequired[Literal[True]]
    data: BatchCompletedEventData


class BatchCompletedEventData(TypedDict):
    job_id: str
    total: int
    # Deliverable rows. `summary.valid` of the job is `valid` + `risky`.
    valid: int
    # Undeliverable rows.
    invalid: int
    risky: int
    unknown: int
    failed: int
    # URL of the results. Requires an API key.
    download_url: str
    # Metadata of the job. Empty if none was submitted.
    metadata: Dict[str, str]
    # The job that this job re-verifies. Only present in a re-verification.
    previous_job_id: NotRequired[str]
    # The schedule that created the job. Only present in a scheduled job.
    schedule_id: NotRequired[str]


class BatchFailedEvent(TypedDict):
    """A list could not be completed."""

    event: Literal["batch.failed"]
    # Identical for all attempts.
    event_id: str
    # When the event happened.
    timestamp: str
    # Only present if the event is simulated.
    sandbox: NotRequired[Literal[True]]
    data: BatchFailedEventData


class BatchFailedEventData(TypedDict):
    job_id: str
    total: int
    processed: int
    error: str
    message: str
    # Metadata of the job. Empty if none was submitted.
    metadata: Dict[str, str]
    # The job that this job re-verifies. Only present in a re-verification.
    previous_job_id: NotRequired[str]
    # The schedule that created the job. Only present in a scheduled job.
    schedule_id: NotRequired[str]


class VerificationCompletedEvent(TypedDict):
    """The verification of a single address with "async": true is finished."""

    event: Literal["verification.completed"]
    # Identical for all attempts.
    event_id: str
    # When the event happened.
    timestamp: str
    # Only present if the event is simulated.
    sandbox: NotRequired[Literal[True]]
    data: VerificationCompletedEventData


_VerificationCompletedEventDataKeywords = TypedDict(
    "_VerificationCompletedEventDataKeywords",
    {"class": "Class"},
)


class VerificationCompletedEventData(_VerificationCompletedEventDataKeywords):
    verification_id: str
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
    action: Action
    # Reason for the action, as a sentence.
    action_reason: str
    # Metadata of the job. Empty if none was submitted.
    metadata: Dict[str, str]


class QuotaWarningEvent(TypedDict):
    """You have used 80 or 95 percent of your credits for the period."""

    event: Literal["quota.warning"]
    # Identical for all attempts.
    event_id: str
    # When the event happened.
    timestamp: str
    # Only present if the event is simulated.
    sandbox: NotRequired[Literal[True]]
    data: QuotaWarningEventData


class QuotaWarningEventData(TypedDict):
    plan: str
    # Credits of the period.
    limit: int
    # Credits that are used or reserved.
    used: int
    remaining: int
    # The share that was reached: 80, 95 or 100.
    threshold_percent: int
    # When the next period begins.
    resets_at: str


class QuotaExceededEvent(TypedDict):
    """You have used all of your credits for the period."""

    event: Literal["quota.exceeded"]
    # Identical for all attempts.
    event_id: str
    # When the event happened.
    timestamp: str
    # Only present if the event is simulated.
    sandbox: NotRequired[Literal[True]]
    data: QuotaExceededEventData


class QuotaExceededEventData(TypedDict):
    plan: str
    # Credits of the period.
    limit: int
    # Credits that are used or reserved.
    used: int
    remaining: int
    # The share that was reached: 80, 95 or 100.
    threshold_percent: int
    # When the next period begins.
    resets_at: str


class WebhookTestEvent(TypedDict):
    """A test event. It needs no subscription."""

    event: Literal["webhook.test"]
    # Identical for all attempts.
    event_id: str
    # When the event happened.
    timestamp: str
    # Only present if the event is simulated.
    sandbox: NotRequired[Literal[True]]
    data: WebhookTestEventData


class WebhookTestEventData(TypedDict):
    webhook_id: str
    message: str


VerifyStep = Union[
        VerifyStepSyntax,
        VerifyStepDomain,
        VerifyStepServer,
        VerifyStepLine,
        VerifyStepCached,
    ]


WebhookEvent = Union[
        BatchCompletedEvent,
        BatchFailedEvent,
        VerificationCompletedEvent,
        QuotaWarningEvent,
        QuotaExceededEvent,
        WebhookTestEvent,
    ]
