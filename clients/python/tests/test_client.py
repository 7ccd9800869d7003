import json
import re
import unittest
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import parse_qsl

from ev_client import EvApiError, EvClient, EvConnectionError, RateLimit, ResponseInfo

from tests.scripted import Reply, Script

DOCUMENT = Path(__file__).parents[3] / "docs/openapi.json"
GOOD = {"api_key": "ev_live_secret", "base_url": "https://ev.example"}


class ConstructorTest(unittest.TestCase):
    def test_accepts_base_urls(self):
        for base_url, expected in [
            ("https://ev.example", "https://ev.example/v1/credits"),
            ("https://ev.example/", "https://ev.example/v1/credits"),
            ("https://ev.example/v1", "https://ev.example/v1/credits"),
            ("https://ev.example/v1/", "https://ev.example/v1/credits"),
            ("https://www.example.com/ev/", "https://www.example.com/ev/v1/credits"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/credits"),
            ("http://localhost:8080", "http://localhost:8080/v1/credits"),
            ("http://[::1]:8080", "http://[::1]:8080/v1/credits"),
        ]:
            with self.subTest(base_url):
                script = Script(Reply(json={"data": {}}), base_url=base_url)
                script.client.credits()
                self.assertEqual([one.url for one in script.requests], [expected])

    def test_refuses_invalid_arguments(self):
        for arguments, message in [
            ({"base_url": "ev.example"}, "URL of the service"),
            ({"base_url": "ftp://ev.example"}, "URL of the service"),
            ({"base_url": "https://ev.example/?a=b"}, "URL of the service"),
            ({"base_url": "https://ev.example/#a"}, "URL of the service"),
            ({"base_url": "https://ev.example:port"}, "URL of the service"),
            ({"base_url": "https://"}, "URL of the service"),
            ({"base_url": "https://ev.example\r\nHost: a"}, "URL of the service"),
            ({"base_url": None}, "URL of the service"),
            ({"base_url": "https://user:pass@ev.example"}, "user name or password"),
            ({"base_url": "http://ev.example"}, "unencrypted"),
            ({"base_url": "http://localhost.example"}, "unencrypted"),
            ({"api_key": ""}, "api_key"),
            ({"api_key": None}, "api_key"),
            ({"api_key": " ev_live_a"}, "api_key"),
            ({"api_key": "ev_live_a\n"}, "api_key"),
            ({"timeout": 0}, "timeout"),
            ({"retries": -1}, "retries"),
            ({"retries": 1.5}, "retries"),
        ]:
            with self.subTest(arguments), self.assertRaisesRegex(ValueError, message):
                EvClient(**{**GOOD, **arguments})

    def test_sends_the_key_over_http_only_if_allowed(self):
        EvClient(**{**GOOD, "base_url": "http://ev.internal"}, allow_http=True)

    def test_reveals_the_key_in_no_message_or_representation(self):
        with self.assertRaises(ValueError) as caught:
            EvClient("ev_live_secret ", "https://ev.example")
        script = Script(OSError("failed"), api_key="ev_live_secret", retries=0)
        with self.assertRaises(EvConnectionError) as failed:
            script.client.credits()
        client = script.client
        for shown in [caught.exception, failed.exception, client, client._connection]:
            self.assertNotIn("secret", repr(shown) + str(shown))
        self.assertNotIn("secret", repr(script.requests))
        self.assertEqual(repr(client), "EvClient(base_url='https://ev.example')")


#: Method, path, body, and the call that sends them.
CALLS = [
    ("POST", "/v1/verify", {"email": "a"}, lambda c: c.verify("a")),
    (
        "POST",
        "/v1/verify/single?include=flags%2Cevidence",
        {"email": "a", "check_smtp": False},
        lambda c: c.verify.single("a", include=["flags", "evidence"], check_smtp=False),
    ),
    (
        "POST",
        "/v1/verify/single",
        {"email": "a", "force_refresh": True, "async": True},
        lambda c: c.verify.later("a", force_refresh=True),
    ),
    ("POST", "/v1/verify/form", {"email": "a"}, lambda c: c.verify.form("a")),
    ("POST", "/v1/verify/bulk", {"emails": ["a"]}, lambda c: c.bulk(("a",))),
    (
        "GET",
        "/v1/verify/bulk/status/job_1?partial=true&wait=5",
        None,
        lambda c: c.bulk_status("job_1", partial=True, wait=5),
    ),
    (
        "POST",
        "/v1/verify/batch",
        {"items": [{"email": "a", "id": "7"}], "name": "March", "deduplicate": False},
        lambda c: c.batch(
            items=[{"email": "a", "id": "7"}], name="March", deduplicate=False
        ),
    ),
    (
        "POST",
        "/v1/verify/url",
        {"url": "https://a.example/b.csv", "column": "email"},
        lambda c: c.url("https://a.example/b.csv", column="email"),
    ),
    (
        "GET",
        "/v1/jobs/job_1?include=results&partial=false&wait=5",
        None,
        lambda c: c.jobs.get("job_1", include="results", partial=False, wait=5),
    ),
    ("GET", "/v1/domains/shop.example", None, lambda c: c.domain("shop.example")),
    ("GET", "/v1/jobs/a%2Fb", None, lambda c: c.jobs.get("a/b")),
    (
        "GET",
        "/v1/jobs?status=completed",
        None,
        lambda c: list(c.jobs.list(status="completed")),
    ),
    ("POST", "/v1/jobs/job_1/cancel", None, lambda c: c.jobs.cancel("job_1")),
    ("POST", "/v1/jobs/job_1/finish", None, lambda c: c.jobs.finish("job_1")),
    ("POST", "/v1/jobs/job_1/resume", None, lambda c: c.jobs.resume("job_1")),
    (
        "POST",
        "/v1/jobs/job_1/reverify",
        {"only": ["unknown"], "older_than_days": 90},
        lambda c: c.jobs.reverify("job_1", only=["unknown"], older_than_days=90),
    ),
    (
        "GET",
        "/v1/jobs/job_1/changes?from=unknown&to=risky%2Cundeliverable&limit=5",
        None,
        lambda c: list(
            c.jobs.changed_rows(
                "job_1", from_=["unknown"], to=["risky", "undeliverable"], limit=5
            )
        ),
    ),
    ("DELETE", "/v1/jobs/job_1", None, lambda c: c.jobs.delete("job_1")),
    (
        "GET",
        "/v1/schedules?job_id=job_1",
        None,
        lambda c: list(c.schedules.list(job_id="job_1")),
    ),
    ("GET", "/v1/schedules/sch_1", None, lambda c: c.schedules.get("sch_1")),
    (
        "POST",
        "/v1/schedules",
        {"job_id": "job_1", "every_days": 30},
        lambda c: c.schedules.create({"job_id": "job_1", "every_days": 30}),
    ),
    (
        "PATCH",
        "/v1/schedules/sch_1",
        {"active": False},
        lambda c: c.schedules.update("sch_1", {"active": False}),
    ),
    ("DELETE", "/v1/schedules/sch_1", None, lambda c: c.schedules.delete("sch_1")),
    ("GET", "/v1/jobs/job_1/breakdown", None, lambda c: c.jobs.breakdown("job_1")),
    ("GET", "/v1/jobs/job_1/results/7", None, lambda c: c.jobs.row("job_1", 7)),
    (
        "POST",
        "/v1/jobs/job_1/download_url",
        {"format": "xlsx", "filter": ["risky"]},
        lambda c: c.jobs.download_url("job_1", format="xlsx", filter=["risky"]),
    ),
    (
        "GET",
        "/v1/jobs/job_1/results?after=4&class=risky&reason=timeout%2Ccatch_all&search=a&limit=5",
        None,
        lambda c: list(
            c.jobs.rows(
                "job_1",
                after=4,
                class_=["risky"],
                reason=["timeout", "catch_all"],
                search="a",
                limit=5,
            )
        ),
    ),
    (
        "GET",
        "/v1/jobs/job_1/download?format=ndjson&filter=risky&partial=true",
        None,
        lambda c: list(c.jobs.results("job_1", filter=["risky"], partial=True)),
    ),
    (
        "GET",
        "/v1/jobs/job_1/download?format=csv&raw=true&deduplicate=false",
        None,
        lambda c: list(c.jobs.csv("job_1", raw=True, deduplicate=False)),
    ),
    (
        "GET",
        "/v1/history?email=a&search=%40a.b&class=risky%2Cunknown&reason=timeout&source=bulk"
        "&since=2026-06-01&until=2026-06-02&limit=5",
        None,
        lambda c: list(
            c.history(
                email="a",
                search="@a.b",
                class_=["risky", "unknown"],
                reason="timeout",
                source="bulk",
                since="2026-06-01",
                until="2026-06-02",
                limit=5,
            )
        ),
    ),
    ("GET", "/v1/credits", None, lambda c: c.credits()),
    ("GET", "/v1/limits", None, lambda c: c.limits()),
    ("GET", "/v1/account", None, lambda c: c.account.get()),
    ("PATCH", "/v1/account", {"name": "Shop"}, lambda c: c.account.update({"name": "Shop"})),
    ("GET", "/v1/stats?period=week", None, lambda c: c.stats(period="week")),
    (
        "GET",
        "/v1/audit?action=key.created&since=2026-06-01&until=2026-06-02&limit=5",
        None,
        lambda c: list(
            c.audit(action="key.created", since="2026-06-01", until="2026-06-02", limit=5)
        ),
    ),
    ("GET", "/v1/keys", None, lambda c: c.keys.list()),
    ("GET", "/v1/keys/key_1", None, lambda c: c.keys.get("key_1")),
    (
        "POST",
        "/v1/keys",
        {"name": "CI", "scopes": ["*"]},
        lambda c: c.keys.create({"name": "CI", "scopes": ["*"]}),
    ),
    (
        "PATCH",
        "/v1/keys/key_1",
        {"expires_at": None},
        lambda c: c.keys.update("key_1", {"expires_at": None}),
    ),
    (
        "POST",
        "/v1/keys/key_1/rotate",
        {"grace_period_seconds": 0},
        lambda c: c.keys.rotate("key_1", grace_period_seconds=0),
    ),
    (
        "DELETE",
        "/v1/keys/key_1?force=true",
        None,
        lambda c: c.keys.delete("key_1", force=True),
    ),
    ("GET", "/v1/accounts?limit=5", None, lambda c: list(c.accounts.list(limit=5))),
    ("GET", "/v1/accounts/acc_1", None, lambda c: c.accounts.get("acc_1")),
    (
        "POST",
        "/v1/accounts",
        {"name": "Shop", "plan": "free"},
        lambda c: c.accounts.create({"name": "Shop", "plan": "free"}),
    ),
    (
        "PATCH",
        "/v1/accounts/acc_1",
        {"plan": "free"},
        lambda c: c.accounts.update("acc_1", {"plan": "free"}),
    ),
    (
        "POST",
        "/v1/accounts/acc_1/keys",
        {"name": "CI", "scopes": ["*"]},
        lambda c: c.accounts.create_key("acc_1", {"name": "CI", "scopes": ["*"]}),
    ),
    ("GET", "/v1/plans", None, lambda c: c.accounts.plans()),
    ("GET", "/v1/webhooks", None, lambda c: c.webhooks.list()),
    ("GET", "/v1/webhooks/wh_1", None, lambda c: c.webhooks.get("wh_1")),
    (
        "POST",
        "/v1/webhooks",
        {"url": "https://a.example", "events": ["batch.completed"]},
        lambda c: c.webhooks.create(
            {"url": "https://a.example", "events": ["batch.completed"]}
        ),
    ),
    (
        "PATCH",
        "/v1/webhooks/wh_1",
        {"active": False},
        lambda c: c.webhooks.update("wh_1", {"active": False}),
    ),
    (
        "PUT",
        "/v1/webhooks/wh_1",
        {"url": "https://a.example", "events": ["batch.failed"]},
        lambda c: c.webhooks.replace(
            "wh_1", {"url": "https://a.example", "events": ["batch.failed"]}
        ),
    ),
    ("DELETE", "/v1/webhooks/wh_1", None, lambda c: c.webhooks.delete("wh_1")),
    ("POST", "/v1/webhooks/wh_1/test", {}, lambda c: c.webhooks.test("wh_1")),
    ("POST", "/v1/webhooks/wh_1/secret", {}, lambda c: c.webhooks.rotate_secret("wh_1")),
    (
        "GET",
        "/v1/webhooks/wh_1/deliveries?status=failed&event=batch.failed&search=evt_1&limit=5",
        None,
        lambda c: list(
            c.webhooks.deliveries(
                "wh_1", status="failed", event="batch.failed", search="evt_1", limit=5
            )
        ),
    ),
    (
        "GET",
        "/v1/webhooks/wh_1/deliveries/dlv_1",
        None,
        lambda c: c.webhooks.delivery("wh_1", "dlv_1"),
    ),
    (
        "POST",
        "/v1/webhooks/wh_1/deliveries/dlv_1/retry",
        None,
        lambda c: c.webhooks.retry("wh_1", "dlv_1"),
    ),
    (
        "POST",
        "/v1/webhooks/wh_1/recover",
        {"since": "2026-06-01T00:00:00Z"},
        lambda c: c.webhooks.recover("wh_1", since="2026-06-01T00:00:00Z"),
    ),
    ("GET", "/v1/people", None, lambda c: c.people.list()),
    (
        "POST",
        "/v1/people",
        {"name": "Ann", "email": "ann@example.com", "role": "admin"},
        lambda c: c.people.invite({"name": "Ann", "email": "ann@example.com", "role": "admin"}),
    ),
    (
        "PATCH",
        "/v1/people/per_1",
        {"role": "viewer"},
        lambda c: c.people.update("per_1", {"role": "viewer"}),
    ),
    ("POST", "/v1/people/per_1/link", None, lambda c: c.people.link("per_1")),
    (
        "DELETE",
        "/v1/people/per_1/two-factor",
        None,
        lambda c: c.people.reset_two_factor("per_1"),
    ),
    ("DELETE", "/v1/people/per_1", None, lambda c: c.people.delete("per_1")),
    ("GET", "/v1/webhooks/events", None, lambda c: c.webhooks.events()),
    (
        "GET",
        "/v1/events?event=webhook.test&since=2026-06-01&until=2026-06-02&limit=5",
        None,
        lambda c: list(
            c.events.list(event="webhook.test", since="2026-06-01", until="2026-06-02", limit=5)
        ),
    ),
    ("GET", "/v1/events/evt_1", None, lambda c: c.events.get("evt_1")),
    (
        "POST",
        "/v1/feedback",
        {"items": [{"email": "ann@example.com", "kind": "delivered"}]},
        lambda c: c.feedback.submit([{"email": "ann@example.com", "kind": "delivered"}]),
    ),
    ("GET", "/v1/feedback/sources", None, lambda c: c.feedback.sources.list()),
    (
        "POST",
        "/v1/feedback/sources",
        {"provider": "postmark"},
        lambda c: c.feedback.sources.create({"provider": "postmark"}),
    ),
    ("DELETE", "/v1/feedback/sources/fbs_1", None, lambda c: c.feedback.sources.delete("fbs_1")),
    ("GET", "/v1/feedback/report", None, lambda c: c.feedback.report()),
]


class RequestTest(unittest.TestCase):
    def test_carries_the_key_and_the_sandbox_flag(self):
        script = Script(Reply(json={"data": {}}), sandbox=True)
        script.client.credits()
        self.assertEqual(
            dict(script.requests[0].headers),
            {
                "authorization": "Bearer ev_live_test",
                "x-ev-sandbox": "true",
                "accept": "application/json",
            },
        )

    def test_of_each_method(self):
        data = {
            "limits": [],
            "keys": [],
            "people": [],
            "webhooks": [],
            "events": [],
            "sources": [],
            "plans": [],
        }
        page = {"items": [], "next_cursor": None, "has_more": False}
        for method, path, body, call in CALLS:
            with self.subTest(f"{method} {path}"):
                script = Script(Reply(json={"data": {**data, **page}}))
                call(script.client)
                self.assertEqual(script.urls, [f"{method} {path}"])
                self.assertEqual(script.bodies, [body])

    @unittest.skipUnless(DOCUMENT.exists(), "docs/openapi.json is only in the repository.")
    def test_of_each_operation_has_a_method_and_known_parameters(self):
        paths = json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"]
        operations = {
            f"{method.upper()} {re.sub('{.*?}', '*', path)}": {
                parameter["name"]
                for parameter in operation.get("parameters", [])
                if parameter.get("in") == "query"
            }
            for path, methods in paths.items()
            for method, operation in methods.items()
            if path.startswith("/v1/") and isinstance(operation, dict)
        }
        # Other tests call these two.
        called = {"POST /v1/verify/file", "GET /v1/jobs/*/events"}
        for method, url, _, _ in CALLS:
            path, _, query = url.partition("?")
            ids = r"/(job_1|key_1|per_1|acc_1|wh_1|dlv_1|evt_1|fbs_1|sch_1|a%2Fb|shop\.example)(?=/|$)"
            operation = f"{method} {re.sub(ids, '/*', path).replace('/results/7', '/results/*')}"
            called.add(operation)
            self.assertLessEqual({name for name, _ in parse_qsl(query)}, operations[operation])
        # The download of a short list is the one of its job, and email providers send feedback.
        self.assertEqual(
            set(operations) - called,
            {"GET /v1/verify/bulk/download/*", "POST /v1/feedback/*/*"},
        )

    def test_carries_an_idempotency_key_if_it_creates_something(self):
        for call in [
            lambda c: c.verify.later("a"),
            lambda c: c.bulk(["a"]),
            lambda c: c.batch(["a"]),
            lambda c: c.file("a"),
            lambda c: c.jobs.resume("job_1"),
            lambda c: c.keys.create({"name": "CI", "scopes": ["*"]}),
            lambda c: c.keys.rotate("key_1"),
            lambda c: c.webhooks.create({"url": "https://a.example", "events": []}),
            lambda c: c.webhooks.test("wh_1"),
            lambda c: c.webhooks.rotate_secret("wh_1"),
            lambda c: c.webhooks.retry("wh_1", "dlv_1"),
            lambda c: c.webhooks.recover("wh_1", since="2026-06-01T00:00:00Z"),
        ]:
            script = Script(Reply(json={"data": {}}))
            call(script.client)
            self.assertEqual(script.headers("idempotency-key"), ["80000000" * 4], script.urls)

    def test_refuses_an_id_that_would_change_the_path(self):
        script = Script(Reply())
        for job_id in ["", ".", ".."]:
            with self.assertRaises(ValueError):
                script.client.jobs.delete(job_id)
        self.assertEqual(script.urls, [])

    def test_refuses_one_text_as_a_list(self):
        script = Script(Reply())
        for call in [script.client.bulk, script.client.batch]:
            with self.assertRaisesRegex(TypeError, "list of addresses"):
                call("a@example.com")
        self.assertEqual(script.urls, [])

    def test_has_the_timeout_of_its_kind(self):
        for call, timeout in [
            (lambda c: c.credits(), 30),
            (lambda c: c.bulk(["a"]), 120),
            (lambda c: c.batch(["a"]), 120),
            (lambda c: c.file("a"), 120),
            (lambda c: c.preview("a"), 120),
            (lambda c: c.url("https://a.example/"), 120),
            (lambda c: c.preview_url("https://a.example/"), 120),
            (lambda c: c.webhooks.test("wh_1"), 45),
            (lambda c: c.jobs.get("job_1", wait=25), 55),
        ]:
            script = Script(Reply(json={"data": {}}))
            call(script.client)
            call(script.client.with_options(timeout=200))
            wait = 25 if timeout == 55 else 0
            self.assertEqual([one.timeout for one in script.requests], [timeout, 200 + wait])

    def test_is_reported_with_its_response(self):
        seen = []
        headers = {
            "X-Request-Id": "req_1",
            "X-RateLimit-Limit": "500",
            "X-RateLimit-Remaining": "499",
            "X-RateLimit-Reset": "1780315260",
            "Idempotency-Replayed": "true",
        }
        script = Script(
            OSError("failed"),
            Reply(503),
            Reply(json={"data": {}}, headers=headers),
            on_response=seen.append,
        )
        script.client.credits()
        reset_at = datetime(2026, 6, 1, 12, 1, tzinfo=timezone.utc)
        self.assertEqual(
            seen,
            [
                ResponseInfo("GET", "/v1/credits", 503, 1, None, None, False),
                ResponseInfo(
                    "GET", "/v1/credits", 200, 2, "req_1", RateLimit(500, 499, reset_at), True
                ),
            ],
        )


class ErrorTest(unittest.TestCase):
    def fail(self, reply):
        with self.assertRaises(EvApiError) as caught:
            Script(reply, retries=0).client.credits()
        return caught.exception

    def test_has_the_fields_of_the_service(self):
        body = {"success": False, "error": "Not found.", "code": "not_found", "request_id": "b"}
        error = self.fail(Reply(404, body, {"X-Request-Id": "req_1"}))
        self.assertEqual(
            (str(error), error.message, error.status, error.code, error.request_id, error.body),
            ("Not found.", "Not found.", 404, "not_found", "req_1", body),
        )

    def test_has_the_code_of_a_simulated_error(self):
        error = self.fail(Reply(429, {"error": "rate_limit", "retry_after": 90}))
        self.assertEqual((error.code, error.retry_after), ("rate_limit", 90.0))
        error = self.fail(Reply(500, {"error": "server_error", "message": "Simulated."}))
        self.assertEqual((error.code, error.message), ("server_error", "Simulated."))

    def test_of_a_proxy_has_no_code(self):
        error = self.fail(Reply(502, chunks=[b"<h1>Bad Gateway</h1>"]))
        self.assertEqual((error.code, error.body), (None, "<h1>Bad Gateway</h1>"))
        self.assertIn("status 502 has no error message", error.message)

    def test_names_the_target_of_a_redirect(self):
        error = self.fail(Reply(308, headers={"Location": "https://www.ev.example/"}))
        self.assertIn("redirects to https://www.ev.example/.", error.message)

    def test_reports_a_success_that_is_not_json(self):
        error = self.fail(Reply(chunks=[b"<html>"]))
        self.assertEqual((error.status, error.body), (200, "<html>"))

    def test_returns_nothing_without_content(self):
        self.assertIsNone(Script(Reply(204, chunks=[])).client.keys.delete("key_1"))
