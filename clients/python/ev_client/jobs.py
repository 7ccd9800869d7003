"""Jobs: status, results, and their end."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Literal, Mapping, Optional, Sequence, Union, cast

from .connection import Call, Stream
from .errors import EvConnectionError
from .models import (
    Action,
    Change,
    ChangePageData,
    Class,
    DownloadRow,
    Job,
    JobProgress,
    ListedJob,
    Reason,
    ResultRow,
    Vocabulary,
)
from .pagination import Listing
from .paths import encode
from .resources import JobActions
from .streams import read_events, read_objects, read_records


class Jobs(JobActions):
    """Methods for jobs, by the ``job_id`` of a list."""

    def get(
        self,
        job_id: str,
        *,
        include: Optional[Literal["results"]] = None,
        partial: Optional[bool] = None,
        wait: Optional[int] = None,
    ) -> Job:
        """Returns a job.

        Args:
            job_id: ID of the job.
            include: ``"results"`` includes the results.
            partial: With ``include``: includes finished rows before the job is completed.
            wait: Long polling: seconds to wait for progress before the response.
        """
        query = {"include": include, "partial": partial, "wait": wait}
        call = Call("GET", _path(job_id), query, wait=wait or 0)
        return cast(Job, self._connection.json(call))

    def list(
        self,
        *,
        status: Optional[
            Literal["queued", "processing", "completed", "failed", "cancelled"]
        ] = None,
        metadata: Optional[Mapping[str, str]] = None,
        include_sandbox: bool = False,
        limit: Optional[int] = None,
    ) -> Listing[ListedJob]:
        """Lists jobs, newest first.

        Args:
            status: Only jobs with this status.
            metadata: Only jobs with these pairs in their metadata.
            include_sandbox: Whether jobs of the sandbox are listed too.
            limit: Jobs per page.
        """

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            query = {
                "status": status,
                "metadata": metadata,
                "include_sandbox": "true" if include_sandbox else None,
                "limit": limit,
                "cursor": cursor,
            }
            return _data(self._connection.json(Call("GET", "/v1/jobs", query)))

        return Listing(fetch)

    def changes(
        self,
        job_id: str,
        *,
        from_: Optional[Sequence[Class]] = None,
        to: Optional[Sequence[Class]] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> ChangePageData:
        """Returns the counts of a job that verifies a list again, with a page of changed rows.

        Args:
            job_id: ID of the job.
            from_: Only rows that had one of these classes.
            to: Only rows that have one of these classes now.
            limit: Rows per page.
            cursor: ``next_cursor`` of the previous page.
        """
        query = {"from": from_, "to": to, "limit": limit, "cursor": cursor}
        answer = self._connection.json(Call("GET", f"{_path(job_id)}/changes", query))
        return cast(ChangePageData, answer["data"])

    def changed_rows(
        self,
        job_id: str,
        *,
        from_: Optional[Sequence[Class]] = None,
        to: Optional[Sequence[Class]] = None,
        limit: Optional[int] = None,
    ) -> Listing[Change]:
        """Lists the rows whose class has changed.

        Any page may be short or empty. The arguments are those of ``changes()``.
        """

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            page = self.changes(job_id, from_=from_, to=to, limit=limit, cursor=cursor)
            return cast(Mapping[str, Any], page)

        return Listing(fetch)

    def wait(
        self,
        job_id: str,
        *,
        on_progress: Optional[Callable[[Job], object]] = None,
        max_wait: Optional[float] = None,
    ) -> Job:
        """Waits until a job is completed, failed or cancelled, and returns it.

        Args:
            job_id: ID of the job.
            on_progress: Called with the job at first and whenever it has progressed.
            max_wait: Seconds to wait. Default: no limit.

        Raises:
            TimeoutError: The job has not ended after ``max_wait`` seconds. It continues.
        """
        started = self._connection.monotonic()
        last_processed = -1
        polls = 0
        while True:
            elapsed = self._connection.monotonic() - started
            remaining = LONG_POLL if max_wait is None else max(0.0, max_wait - elapsed)
            job = self.get(job_id, wait=0 if polls == 0 else int(min(LONG_POLL, remaining)))
            is_done = job["status"] not in ("queued", "processing")
            if on_progress is not None and (job["processed_emails"] != last_processed or is_done):
                on_progress(job)
            if is_done:
                return job
            last_processed = job["processed_emails"]
            pause = min(PAUSE_MAX, PAUSE * 1.5**polls)
            elapsed = self._connection.monotonic() - started
            if max_wait is not None and elapsed + pause > max_wait:
                raise TimeoutError(f"The job has not ended after {max_wait:g} s. It continues.")
            self._connection.sleep(pause)
            polls += 1

    def events(self, job_id: str) -> Iterator[JobProgress]:
        """Streams the progress: the current state, every change, and finally the end of the job.

        Raises:
            EvConnectionError: The stream ended before the job did.
        """
        with self._connection.stream(Call("GET", f"{_path(job_id)}/events")) as stream:
            for event, data in read_events(stream):
                yield cast(JobProgress, data)
                if event == "end":
                    return
        raise EvConnectionError("The event stream ended before the job did. Call events() again.")

    def download(
        self,
        job_id: str,
        *,
        format: Optional[Literal["csv", "xlsx", "json", "ndjson"]] = None,
        filter: Optional[Sequence[Class]] = None,
        action: Optional[Sequence[Action]] = None,
        partial: Optional[bool] = None,
        raw: Optional[bool] = None,
        deduplicate: Union[bool, Literal["address", "canonical"], None] = None,
        vocabulary: Optional[Vocabulary] = None,
    ) -> Stream:
        """Downloads the results as a stream of bytes.

        Args:
            job_id: ID of the job.
            format: Default: CSV.
            filter: Returns only results of these classes.
            action: Returns only results with these actions.
            partial: Returns the available results of a job that is not completed.
            raw: Disables the escaping of CSV cells that a spreadsheet could run as formulas.
            deduplicate: Returns each address once; with "canonical", each mailbox.
            vocabulary: Writes the columns and words of another service. Only for CSV and XLSX.
        """
        query = {
            "format": format,
            "filter": filter,
            "action": action,
            "partial": partial,
            "raw": raw,
            "deduplicate": deduplicate,
            "vocabulary": vocabulary,
        }
        return self._connection.stream(Call("GET", f"{_path(job_id)}/download", query))

    def csv(
        self,
        job_id: str,
        *,
        filter: Optional[Sequence[Class]] = None,
        action: Optional[Sequence[Action]] = None,
        partial: Optional[bool] = None,
        raw: Optional[bool] = None,
        deduplicate: Union[bool, Literal["address", "canonical"], None] = None,
        vocabulary: Optional[Vocabulary] = None,
    ) -> Iterator[str]:
        """Iterates the CSV records, starting with the header, each without its line break.

        The arguments are those of ``download()``.
        """
        with self.download(
            job_id,
            format="csv",
            filter=filter,
            action=action,
            partial=partial,
            raw=raw,
            deduplicate=deduplicate,
            vocabulary=vocabulary,
        ) as stream:
            yield from read_records(stream)

    def results(
        self,
        job_id: str,
        *,
        filter: Optional[Sequence[Class]] = None,
        action: Optional[Sequence[Action]] = None,
        partial: Optional[bool] = None,
    ) -> Iterator[DownloadRow]:
        """Iterates the results in the order of the list.

        Args:
            job_id: ID of the job.
            filter: Returns only results of these classes.
            action: Returns only results with these actions.
            partial: Returns the available results of a job that is not completed.
        """
        with self.download(
            job_id, format="ndjson", filter=filter, action=action, partial=partial
        ) as stream:
            yield from read_objects(stream)

    def rows(
        self,
        job_id: str,
        *,
        after: Optional[int] = None,
        class_: Optional[Sequence[Class]] = None,
        action: Optional[Sequence[Action]] = None,
        reason: Optional[Sequence[Reason]] = None,
        search: Optional[str] = None,
        sort: Optional[Literal["row", "email", "class", "reason", "operator"]] = None,
        order: Optional[Literal["asc", "desc"]] = None,
        count: Optional[bool] = None,
        limit: Optional[int] = None,
    ) -> Listing[ResultRow]:
        """Lists the rows, including those without a result.

        In the order of the list, any page may be short or empty.

        Args:
            job_id: ID of the job.
            after: Starts behind the row with this number.
            class_: Only rows of these classes.
            action: Only rows with these actions.
            reason: Only rows with these reasons.
            search: Only rows whose address contains this text.
            sort: Sorts the rows. Default: the order of the list.
            order: Direction of ``sort``. Default: ascending.
            count: True adds ``total`` and ``offset`` to each page.
            limit: Rows per page.
        """

        def fetch(cursor: Optional[str]) -> Mapping[str, Any]:
            query = {
                "after": after if cursor is None else None,
                "class": class_,
                "action": action,
                "reason": reason,
                "search": search,
                "sort": sort,
                "order": order,
                "count": count,
                "limit": limit,
                "cursor": cursor,
            }
            return _data(self._connection.json(Call("GET", f"{_path(job_id)}/results", query)))

        return Listing(fetch)


def _path(job_id: str) -> str:
    return f"/v1/jobs/{encode(job_id)}"


def _data(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], answer["data"])


#: Seconds of a long poll. Below the idle timeout of proxies (60 s).
LONG_POLL = 25
#: A job progresses many times per second, and the free plan allows ten requests per minute: the
#: pause grows from 0.5 s to 8 s.
PAUSE = 0.5
PAUSE_MAX = 8.0
