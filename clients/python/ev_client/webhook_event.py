"""Types of webhook events. ``event`` determines the type of ``data``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Literal, TypedDict, Union

from .models import SingleResult

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class BatchCompleted(TypedDict):
    job_id: str
    total: int
    # Deliverable addresses only; a job's summary counts risky ones as valid too.
    valid: int
    invalid: int
    risky: int
    unknown: int
    failed: int
    download_url: str
    # As submitted with the list.
    metadata: Dict[str, str]
    # The job that this one verifies again.
    previous_job_id: NotRequired[str]
    # The schedule that created the job.
    schedule_id: NotRequired[str]


class BatchFailed(TypedDict):
    job_id: str
    total: int
    processed: int
    error: str
    message: str
    metadata: Dict[str, str]
    # The job that this one verifies again.
    previous_job_id: NotRequired[str]
    # The schedule that created the job.
    schedule_id: NotRequired[str]


class VerificationCompleted(SingleResult):
    verification_id: str
    metadata: Dict[str, str]


class Quota(TypedDict):
    plan: str
    limit: int
    used: int
    remaining: int
    threshold_percent: int
    resets_at: str


class WebhookTestMessage(TypedDict):
    webhook_id: str
    message: str


class _Envelope(TypedDict):
    # The same for every attempt; use it to ignore duplicates.
    event_id: str
    timestamp: str
    # Present and true for simulated events.
    sandbox: NotRequired[Literal[True]]


class BatchCompletedEvent(_Envelope):
    event: Literal["batch.completed"]
    data: BatchCompleted


class BatchFailedEvent(_Envelope):
    event: Literal["batch.failed"]
    data: BatchFailed


class VerificationCompletedEvent(_Envelope):
    event: Literal["verification.completed"]
    data: VerificationCompleted


class QuotaEvent(_Envelope):
    event: Literal["quota.warning", "quota.exceeded"]
    data: Quota


class WebhookTestEvent(_Envelope):
    """Sent only by the test operation."""

    event: Literal["webhook.test"]
    data: WebhookTestMessage


WebhookEvent = Union[
    BatchCompletedEvent,
    BatchFailedEvent,
    VerificationCompletedEvent,
    QuotaEvent,
    WebhookTestEvent,
]
