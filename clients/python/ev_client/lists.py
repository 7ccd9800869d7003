"""Verifies lists of addresses."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional, Sequence, Union, cast

from .connection import Call, Connection
from .models import (
    BatchRequestItem,
    BucketAccess,
    FileDryRun,
    InstantBulk,
    JobStatus,
    QueuedBatch,
    QueuedBulk,
    QueuedFile,
)
from .multipart import Form, ListFile, read_file
from .paths import encode
from .verify import to_body


class Lists:
    """Verifies lists. Its methods are methods of the client."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def bulk(
        self,
        emails: Sequence[str],
        *,
        check_smtp: Optional[bool] = None,
        force_refresh: Optional[bool] = None,
        metadata: Optional[Mapping[str, str]] = None,
        notify: Optional[bool] = None,
        webhook_url: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> Union[InstantBulk, QueuedBulk]:
        """Verifies up to 10 addresses at once (``instant``), or up to 10,000 as a job."""
        body = to_body(
            emails=_to_list(emails),
            check_smtp=check_smtp,
            force_refresh=force_refresh,
            metadata=None if metadata is None else dict(metadata),
            notify=notify,
            webhook_url=webhook_url,
        )
        call = _creation("/v1/verify/bulk", body, idempotency_key)
        return cast(Union[InstantBulk, QueuedBulk], self._connection.json(call))

    def bulk_status(
        self, job_id: str, *, partial: Optional[bool] = None, wait: Optional[int] = None
    ) -> JobStatus:
        """Returns the status of a job, with its results when it has ended.

        Args:
            job_id: ID of the job.
            partial: Includes finished rows before the job is completed.
            wait: Long polling: seconds to wait for progress before the response.
        """
        path = f"/v1/verify/bulk/status/{encode(job_id)}"
        call = Call("GET", path, {"partial": partial, "wait": wait}, wait=wait or 0)
        return cast(JobStatus, self._connection.json(call))

    def batch(
        self,
        emails: Optional[Sequence[str]] = None,
        *,
        items: Optional[Sequence[BatchRequestItem]] = None,
        name: Optional[str] = None,
        deduplicate: Optional[bool] = None,
        check_smtp: Optional[bool] = None,
        force_refresh: Optional[bool] = None,
        metadata: Optional[Mapping[str, str]] = None,
        notify: Optional[bool] = None,
        webhook_url: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> QueuedBatch:
        """Verifies up to 50,000 addresses as a job.

        Args:
            emails: The addresses.
            items: Instead of ``emails``: addresses with your own IDs, which downloads contain.
            name: Display name of the job.
            deduplicate: False verifies and charges repeated addresses again.
            check_smtp: False skips the mail servers.
            force_refresh: True bypasses the result cache.
            metadata: Your key-value pairs, returned with the job and in its events.
            notify: True emails the address of the account when the list is finished.
            webhook_url: URL that gets the events of this job. The response has the secret that
                signs them.
            idempotency_key: Identifies this request, also after a restart of the program.
        """
        body = to_body(
            emails=None if emails is None else _to_list(emails),
            items=None if items is None else list(items),
            name=name,
            deduplicate=deduplicate,
            check_smtp=check_smtp,
            force_refresh=force_refresh,
            metadata=None if metadata is None else dict(metadata),
            notify=notify,
            webhook_url=webhook_url,
        )
        call = _creation("/v1/verify/batch", body, idempotency_key)
        return cast(QueuedBatch, self._connection.json(call))

    def file(
        self,
        file: ListFile,
        *,
        filename: Optional[str] = None,
        column: Union[str, int, None] = None,
        sheet: Optional[str] = None,
        header: Optional[bool] = None,
        encoding: Optional[str] = None,
        all_addresses: Optional[bool] = None,
        keep_external: Optional[bool] = None,
        external_date: Optional[str] = None,
        name: Optional[str] = None,
        deduplicate: Optional[bool] = None,
        check_smtp: Optional[bool] = None,
        force_refresh: Optional[bool] = None,
        metadata: Optional[Mapping[str, str]] = None,
        notify: Optional[bool] = None,
        webhook_url: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> QueuedFile:
        """Verifies a file: CSV, TSV, XLSX, or one address per line. The download keeps its columns.

        Args:
            file: Content as text or bytes, a path (``pathlib.Path``), or an open file. It is read
                into memory.
            filename: Default: the name of the file.
            column: Address column, by name or number from 1. Default: detected.
            sheet: Sheet of a workbook, by name. Default: the first visible one.
            header: Whether the first row is a header. Default: detected.
            encoding: Label of the encoding, such as ``windows-1252``. Default: detected.
            all_addresses: True verifies every address of a row, each as a separate row; False
                one per row. Default: True for a list without a header if ``column`` is not given.
            keep_external: True keeps recent results of other services that the file has in its
                columns; their rows are not verified and not charged.
            external_date: When the file with these results was exported, as ``2026-03-01``.
            name: Display name of the job.
            deduplicate: False verifies and charges repeated addresses again.
            check_smtp: False skips the mail servers.
            force_refresh: True bypasses the result cache.
            metadata: Your key-value pairs, returned with the job and in its events.
            notify: True emails the address of the account when the list is finished.
            webhook_url: URL that gets the events of this job. The response has the secret that
                signs them.
            idempotency_key: Identifies this request, also after a restart of the program.

        Raises:
            OSError: The file cannot be read.
        """
        form = _form(
            file,
            filename,
            column=column,
            sheet=sheet,
            header=header,
            encoding=encoding,
            all_addresses=all_addresses,
            keep_external=keep_external,
            external_date=external_date,
            name=name,
            deduplicate=deduplicate,
            check_smtp=check_smtp,
            force_refresh=force_refresh,
            metadata=None if metadata is None else json.dumps(dict(metadata)),
            notify=notify,
            webhook_url=webhook_url,
        )
        call = _creation("/v1/verify/file", form, idempotency_key)
        return cast(QueuedFile, self._connection.json(call))

    def preview(
        self,
        file: ListFile,
        *,
        filename: Optional[str] = None,
        column: Union[str, int, None] = None,
        sheet: Optional[str] = None,
        header: Optional[bool] = None,
        encoding: Optional[str] = None,
        all_addresses: Optional[bool] = None,
        keep_external: Optional[bool] = None,
        external_date: Optional[str] = None,
        deduplicate: Optional[bool] = None,
        check_smtp: Optional[bool] = None,
        force_refresh: Optional[bool] = None,
    ) -> FileDryRun:
        """Analyzes a file: columns and row counts. Stores, charges and verifies nothing.

        The arguments are those of ``file()``.
        """
        form = _form(
            file,
            filename,
            column=column,
            sheet=sheet,
            header=header,
            encoding=encoding,
            all_addresses=all_addresses,
            keep_external=keep_external,
            external_date=external_date,
            deduplicate=deduplicate,
            check_smtp=check_smtp,
            force_refresh=force_refresh,
            dry_run=True,
        )
        call = Call("POST", "/v1/verify/file", body=form, timeout=SEND_TIMEOUT)
        return cast(FileDryRun, self._connection.json(call))


    def url(
        self,
        url: str,
        *,
        s3: Optional[BucketAccess] = None,
        column: Union[str, int, None] = None,
        sheet: Optional[str] = None,
        header: Optional[bool] = None,
        encoding: Optional[str] = None,
        all_addresses: Optional[bool] = None,
        keep_external: Optional[bool] = None,
        external_date: Optional[str] = None,
        name: Optional[str] = None,
        deduplicate: Optional[bool] = None,
        check_smtp: Optional[bool] = None,
        force_refresh: Optional[bool] = None,
        metadata: Optional[Mapping[str, str]] = None,
        notify: Optional[bool] = None,
        webhook_url: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> QueuedFile:
        """Verifies a file that the service downloads.

        Args:
            url: An https URL, or with ``s3`` an ``s3://bucket/key`` URL.
            s3: Region and credentials of the bucket. The service does not store them.

        The other arguments are those of ``file()``.
        """
        body = to_body(
            url=url,
            s3=s3,
            column=column,
            sheet=sheet,
            header=header,
            encoding=encoding,
            all_addresses=all_addresses,
            keep_external=keep_external,
            external_date=external_date,
            name=name,
            deduplicate=deduplicate,
            check_smtp=check_smtp,
            force_refresh=force_refresh,
            metadata=None if metadata is None else dict(metadata),
            notify=notify,
            webhook_url=webhook_url,
        )
        call = _creation("/v1/verify/url", body, idempotency_key)
        return cast(QueuedFile, self._connection.json(call))

    def preview_url(
        self,
        url: str,
        *,
        s3: Optional[BucketAccess] = None,
        column: Union[str, int, None] = None,
        sheet: Optional[str] = None,
        header: Optional[bool] = None,
        encoding: Optional[str] = None,
        all_addresses: Optional[bool] = None,
        keep_external: Optional[bool] = None,
        external_date: Optional[str] = None,
        deduplicate: Optional[bool] = None,
        check_smtp: Optional[bool] = None,
        force_refresh: Optional[bool] = None,
    ) -> FileDryRun:
        """Analyzes a file at a URL, like ``preview()``. The arguments are those of ``url()``."""
        body = to_body(
            url=url,
            s3=s3,
            column=column,
            sheet=sheet,
            header=header,
            encoding=encoding,
            all_addresses=all_addresses,
            keep_external=keep_external,
            external_date=external_date,
            deduplicate=deduplicate,
            check_smtp=check_smtp,
            force_refresh=force_refresh,
            dry_run=True,
        )
        call = Call("POST", "/v1/verify/url", body=body, timeout=SEND_TIMEOUT)
        return cast(FileDryRun, self._connection.json(call))


def _creation(path: str, body: Any, idempotency_key: Optional[str]) -> Call:
    return Call(
        "POST",
        path,
        body=body,
        creates=True,
        idempotency_key=idempotency_key,
        timeout=SEND_TIMEOUT,
    )


def _form(file: ListFile, filename: Optional[str], **fields: Any) -> Form:
    name, content = read_file(file)
    present = {key: _field_text(value) for key, value in fields.items() if value is not None}
    return Form(present, filename or name, content)


def _field_text(value: Union[str, int, bool]) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _to_list(emails: Sequence[str]) -> Sequence[str]:
    if isinstance(emails, (str, bytes)):
        raise TypeError("emails must be a list of addresses, not one text.")
    return list(emails)


#: The largest batch, 16 MB, takes this long at 1 Mbit/s, in seconds. A download by the service takes
#: up to 90 seconds.
SEND_TIMEOUT = 120.0
