import io
import json
import tempfile
import unittest
from email import message_from_bytes
from http.client import IncompleteRead
from pathlib import Path

from ev_client import EvApiError, EvConnectionError

from tests.scripted import Reply, Script


def sse(*events):
    return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events).encode()


def in_pieces(content, size=3):
    return [content[start : start + size] for start in range(0, len(content), size)]


class MetadataTest(unittest.TestCase):
    def test_is_sent_as_json_and_as_query(self):
        pages = Reply(json={"data": {"items": [], "next_cursor": None, "has_more": False}})
        script = Script(Reply(json={}), Reply(json={}), Reply(json={}), pages)
        metadata = {"customer": "42"}
        script.client.batch(["a@example.com"], metadata=metadata)
        script.client.file("a@example.com", metadata=metadata)
        script.client.verify.later("a@example.com", metadata=metadata)
        script.client.jobs.list(metadata=metadata).page()
        requests = script.requests
        self.assertEqual(json.loads(requests[0].body)["metadata"], metadata)
        self.assertIn(json.dumps(metadata).encode(), requests[1].body)
        self.assertEqual(json.loads(requests[2].body)["metadata"], metadata)
        self.assertTrue(requests[3].url.endswith("/v1/jobs?metadata%5Bcustomer%5D=42"))


class StepsTest(unittest.TestCase):
    STEPS = [
        ("step", {"step": "syntax", "text": "ö"}),
        ("step", {"step": "line", "text": "S: 250"}),
    ]

    def test_are_reported_before_the_result(self):
        content = b": comment\r\n" + sse(*self.STEPS, ("result", {"reason": "catch_all"}))
        script = Script(Reply(chunks=in_pieces(content)))
        seen = []
        result = script.client.verify.single("a@example.com", on_step=seen.append)
        self.assertEqual(result, {"reason": "catch_all"})
        self.assertEqual([step["text"] for step in seen], ["ö", "S: 250"])
        self.assertEqual(script.headers("accept"), ["text/event-stream"])
        self.assertGreater(script.closed, 0)

    def test_end_with_the_error_of_the_service(self):
        body = {"success": False, "error": "Broken.", "code": "internal", "request_id": "req_1"}
        script = Script(Reply(chunks=[sse(("error", body))]))
        with self.assertRaises(EvApiError) as caught:
            script.client.verify.single("a@example.com", on_step=lambda step: None)
        error = caught.exception
        self.assertEqual((error.status, error.code, error.request_id), (500, "internal", "req_1"))

    def test_fail_if_the_stream_ends_before_the_result(self):
        script = Script(Reply(chunks=[sse(*self.STEPS)]))
        with self.assertRaisesRegex(EvConnectionError, "ended before the result"):
            script.client.verify.single("a@example.com", on_step=lambda step: None)


class FileTest(unittest.TestCase):
    def parts(self, script):
        """Returns the name, the file name and the content of each part."""
        (request,) = script.requests
        head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
        return [
            (
                part.get_param("name", header="content-disposition"),
                part.get_filename(),
                part.get_payload(decode=True),
            )
            for part in message_from_bytes(head + request.body).get_payload()
        ]

    def test_is_sent_after_its_fields(self):
        script = Script(Reply())
        script.client.file(
            "email\r\na@example.com\r\n", column=1, header=True, name="Mär", check_smtp=False
        )
        self.assertEqual(
            self.parts(script),
            [
                ("column", None, b"1"),
                ("header", None, b"true"),
                ("name", None, "Mär".encode()),
                ("check_smtp", None, b"false"),
                ("file", "list.csv", b"email\r\na@example.com\r\n"),
            ],
        )

    def test_is_a_workbook_with_a_sheet(self):
        script = Script(Reply())
        script.client.preview(b"PK", filename="march.xlsx", sheet="Customers")
        parts = self.parts(script)
        self.assertIn(("sheet", None, b"Customers"), parts)
        self.assertIn(("file", "march.xlsx", b"PK"), parts)

    def test_is_a_path_or_an_open_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "march.csv")
            path.write_bytes(b"a@example.com\xff")
            script = Script(Reply())
            script.client.file(path)
            self.assertEqual(self.parts(script), [("file", "march.csv", b"a@example.com\xff")])
            script = Script(Reply())
            with path.open("rb") as file:
                script.client.file(file, filename='a"b.csv')
            self.assertEqual(
                self.parts(script), [("file", "a%22b.csv", b"a@example.com\xff")]
            )
        script = Script(Reply())
        script.client.file(io.StringIO("ä@example.com"))
        self.assertEqual(self.parts(script), [("file", "list.csv", "ä@example.com".encode())])

    def test_is_previewed_without_an_idempotency_key(self):
        script = Script(Reply(json={"rows": 2}))
        self.assertEqual(script.client.preview(b"a"), {"rows": 2})
        self.assertEqual(self.parts(script)[0], ("dry_run", None, b"true"))
        self.assertEqual(script.headers("idempotency-key"), [None])


class UrlTest(unittest.TestCase):
    def test_is_sent_with_its_options(self):
        script = Script(Reply())
        s3 = {"region": "us-east-1", "access_key_id": "a", "secret_access_key": "b"}
        script.client.url("s3://lists/a.csv", s3=s3, column=2, header=True, metadata={"a": "b"})
        self.assertEqual(
            script.bodies,
            [
                {
                    "url": "s3://lists/a.csv",
                    "s3": s3,
                    "column": 2,
                    "header": True,
                    "metadata": {"a": "b"},
                }
            ],
        )
        self.assertNotEqual(script.headers("idempotency-key"), [None])

    def test_is_previewed_without_an_idempotency_key(self):
        script = Script(Reply(json={"rows": 2}))
        self.assertEqual(script.client.preview_url("https://a.example/"), {"rows": 2})
        self.assertEqual(script.bodies, [{"url": "https://a.example/", "dry_run": True}])
        self.assertEqual(script.headers("idempotency-key"), [None])


class JobTest(unittest.TestCase):
    def job(self, status, processed):
        return Reply(json={"status": status, "processed_emails": processed})

    def test_is_polled_until_it_has_ended(self):
        script = Script(
            self.job("queued", 0),
            self.job("processing", 0),
            self.job("processing", 7),
            self.job("completed", 9),
        )
        seen = []
        job = script.client.wait_for_job(
            "job_1", on_progress=lambda one: seen.append(one["processed_emails"])
        )
        self.assertEqual((job["status"], seen), ("completed", [0, 7, 9]))
        self.assertEqual(script.waits, [0.5, 0.75, 1.125])
        waits = [url.split("wait=")[1] for url in script.urls]
        self.assertEqual(waits, ["0", "25", "25", "25"])

    def test_is_waited_for_at_most_max_wait(self):
        script = Script(self.job("processing", 0))
        with self.assertRaisesRegex(TimeoutError, "has not ended after 3 s"):
            script.client.wait_for_job("job_1", max_wait=3)
        self.assertEqual(script.waits, [0.5, 0.75, 1.125])
        waits = [url.split("wait=")[1] for url in script.urls]
        self.assertEqual(waits, ["0", "2", "1", "0"])

    def test_pauses_grow_to_eight_seconds(self):
        script = Script(*[self.job("processing", 0)] * 9, self.job("failed", 0))
        self.assertEqual(script.client.wait_for_job("job_1")["status"], "failed")
        self.assertEqual(script.waits[-2:], [8.0, 8.0])

    def test_streams_its_progress(self):
        content = sse(("progress", {"progress": 50}), ("end", {"progress": 100}))
        script = Script(Reply(chunks=[content, OSError("not read")]))
        self.assertEqual(
            list(script.client.jobs.events("job_1")), [{"progress": 50}, {"progress": 100}]
        )
        script = Script(Reply(chunks=[sse(("progress", {"progress": 50}))]))
        with self.assertRaisesRegex(EvConnectionError, "before the job did"):
            list(script.client.jobs.events("job_1"))

    def test_results_are_parsed_as_they_arrive(self):
        content = '{"email":"ä@example.com"}\n\n{"email":"b@example.com"}\n'.encode()
        script = Script(Reply(chunks=in_pieces(content)))
        rows = script.client.jobs.results("job_1")
        self.assertEqual([row["email"] for row in rows], ["ä@example.com", "b@example.com"])

    def test_csv_records_may_span_lines(self):
        content = '\ufeffname,email\r\n"A ""B""\nC",a@example.com\r\nlast,b@example.com'.encode()
        script = Script(Reply(chunks=in_pieces(content)))
        self.assertEqual(
            list(script.client.jobs.csv("job_1")),
            ["name,email", '"A ""B""\nC",a@example.com', "last,b@example.com"],
        )

    def test_download_fails_if_it_is_interrupted_and_is_not_restarted(self):
        script = Script(Reply(chunks=[b"a,b\n", IncompleteRead(b"")]))
        received = []
        with self.assertRaises(EvConnectionError):
            for chunk in script.client.jobs.download("job_1"):
                received.append(chunk)
        self.assertEqual((received, len(script.requests)), ([b"a,b\n"], 1))

    def test_download_is_closed_if_its_reader_stops(self):
        script = Script(Reply(chunks=[b"a\n", b"b\n"]))
        for _ in script.client.jobs.csv("job_1"):
            break
        self.assertGreater(script.closed, 0)


class ListingTest(unittest.TestCase):
    PAGES = [
        Reply(json={"data": {"items": [1, 2], "next_cursor": "c/2", "has_more": True}}),
        Reply(json={"data": {"items": [], "next_cursor": "c3", "has_more": True}}),
        Reply(json={"data": {"items": [3], "next_cursor": None, "has_more": False}}),
    ]

    def test_iterates_all_pages_lazily(self):
        script = Script(*self.PAGES)
        items = iter(script.client.history(limit=2))
        self.assertEqual([next(items), next(items), len(script.urls)], [1, 2, 1])
        self.assertEqual(list(items), [3])
        self.assertEqual(
            script.urls,
            [
                "GET /v1/history?limit=2",
                "GET /v1/history?limit=2&cursor=c%2F2",
                "GET /v1/history?limit=2&cursor=c3",
            ],
        )

    def test_fetches_one_page(self):
        script = Script(*self.PAGES)
        page = script.client.jobs.list().page("c1")
        self.assertEqual((page.items, page.next_cursor, page.has_more), ([1, 2], "c/2", True))
        self.assertEqual(script.urls, ["GET /v1/jobs?cursor=c1"])

    def test_starts_behind_a_row_only_on_the_first_page(self):
        script = Script(*self.PAGES)
        list(script.client.jobs.rows("job_1", after=7))
        self.assertEqual(
            [url.split("?")[1] for url in script.urls], ["after=7", "cursor=c%2F2", "cursor=c3"]
        )
