"""Runs against a real service: EV_TEST_URL and EV_TEST_KEY name it, in sandbox mode.

The service must be allowed to send webhooks to 127.0.0.1.
"""

import json
import os
import socket
import tempfile
import threading
import unittest
import uuid
from pathlib import Path

from ev_client import EvApiError, EvClient, EvWebhookError, verify_webhook

URL = os.environ.get("EV_TEST_URL", "")
KEY = os.environ.get("EV_TEST_KEY", "")
#: A webhook request that the service signed: body, headers and both secrets of a rotation.
SIGNED = json.loads(os.environ.get("EV_TEST_WEBHOOK", "null"))


@unittest.skipIf(URL == "" or KEY == "", "EV_TEST_URL and EV_TEST_KEY are not set.")
class ServiceTest(unittest.TestCase):
    def setUp(self):
        self.seen = []
        self.client = EvClient(KEY, URL, sandbox=True, on_response=self.seen.append)
        self.addCleanup(self.client.close)

    def test_verifies_one_address(self):
        result = self.client.verify.single("role@example.com", include=["flags"])
        self.assertEqual((result["reason"], result["class"]), ("role_account", "risky"))
        self.assertTrue(result["flags"]["is_role"])
        self.assertEqual(self.client.verify("invalid@example.com")["status"], "undeliverable")
        self.assertEqual(self.client.verify.later("valid@example.com")["status"], "queued")
        self.assertIsNotNone(self.seen[0].request_id)
        self.assertIsNotNone(self.seen[0].rate_limit)

    def test_verifies_the_address_of_a_form(self):
        result = self.client.verify.form("typo@gmial.com")
        self.assertEqual((result["class"], result["allow"]), ("risky", True))
        self.assertEqual(result["did_you_mean"], "typo@gmail.com")

    def test_follows_the_steps(self):
        steps = []
        result = self.client.verify.single("catchall@example.com", on_step=steps.append)
        self.assertEqual((result["reason"], steps[0]["step"]), ("catch_all", "syntax"))

    def test_raises_the_errors_of_the_service(self):
        with self.assertRaises(EvApiError) as caught:
            self.client.verify.single("not an address")
        error = caught.exception
        self.assertEqual((error.status, error.code), (400, "invalid_email"))
        self.assertRegex(error.request_id, ".")
        for name, status in [("auth", 401), ("ratelimit", 429), ("server", 500)]:
            with self.assertRaises(EvApiError) as caught:
                self.client.with_options(retries=0).verify.single(f"error-{name}@example.com")
            self.assertEqual(caught.exception.status, status)

    def test_verifies_a_short_list_at_once(self):
        short = self.client.bulk(["valid@example.com", "invalid@example.com"])
        self.assertEqual(
            [row["reason"] for row in short["results"]], ["accepted_email", "rejected_email"]
        )
        status = self.client.bulk_status(short["job_id"])
        self.assertEqual(status["data"]["summary"]["total"], 2)

    def test_verifies_a_list_as_a_job(self):
        items = [{"email": f"valid{n}@example.com", "id": str(n)} for n in range(60)]
        key = uuid.uuid4().hex
        sent = self.client.batch(items=items, name="March", idempotency_key=key)
        again = self.client.batch(items=items, name="March", idempotency_key=key)
        self.assertEqual((again["job_id"], self.seen[-1].replayed), (sent["job_id"], True))
        progress = []
        job = self.client.wait_for_job(sent["job_id"], on_progress=progress.append)
        self.assertEqual((job["status"], progress[-1]["status"]), ("completed", "completed"))
        self.assertEqual(list(self.client.jobs.events(job["job_id"]))[-1]["progress"], 100)
        rows = list(self.client.jobs.results(job["job_id"], filter=["deliverable"]))
        self.assertEqual([row["id"] for row in rows], [item["id"] for item in items])
        pages = self.client.jobs.rows(job["job_id"], limit=25)
        self.assertEqual([row["email"] for row in pages], [item["email"] for item in items])
        pages = self.client.jobs.rows(job["job_id"], sort="row", order="desc", count=True)
        self.assertEqual(next(iter(pages))["row"], 60)
        self.assertEqual(self.client.jobs.row(job["job_id"], 2)["email"], items[1]["email"])
        self.assertEqual(self.client.jobs.breakdown(job["job_id"])["total"], 60)
        self.assertIn("March", [one["name"] for one in self.client.jobs.list(limit=1)])
        with self.assertRaises(EvApiError) as caught:
            self.client.jobs.cancel(job["job_id"])
        self.assertEqual(caught.exception.status, 409)
        self.client.jobs.delete(job["job_id"])
        with self.assertRaises(EvApiError) as caught:
            self.client.jobs.get(job["job_id"])
        self.assertEqual((caught.exception.status, caught.exception.code), (404, "not_found"))

    def test_verifies_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "märz.csv")
            path.write_text("Name,E-mail\r\nAnn,valid@example.com\r\nBen,invalid@example.com\r\n")
            self.assertEqual(self.client.preview(path)["rows"], 2)
            sent = self.client.file(path, name="March", column="E-mail")
        self.client.jobs.wait(sent["job_id"], max_wait=300)
        header, ann, _ben = self.client.jobs.csv(sent["job_id"])
        self.assertEqual(header.split(",")[:3], ["Name", "E-mail", "ev_class"])
        self.assertEqual(ann.split(",")[:2], ["Ann", "valid@example.com"])
        with self.client.jobs.download(sent["job_id"]) as chunks:
            self.assertTrue(b"".join(chunks).startswith(b"Name,E-mail,ev_class"))
        with self.client.jobs.download(sent["job_id"], format="xlsx") as chunks:
            self.assertTrue(b"".join(chunks).startswith(b"PK"))

    def test_reads_the_account(self):
        email = f"valid-{uuid.uuid4().hex}@example.com"
        self.client.verify.single(email)
        self.assertEqual([one["email"] for one in self.client.history(email=email)], [email])
        self.assertGreater(self.client.credits()["credits_consumed"] + 1, 0)
        self.assertGreater(len(self.client.limits()), 0)
        self.assertIn("days", self.client.stats(period="week"))

    def test_manages_keys(self):
        key = self.client.keys.create({"name": "CI", "scopes": ["verify:single"]})
        rotated = self.client.keys.rotate(key["id"], grace_period_seconds=0)
        self.assertNotEqual(rotated["key"], key["key"])
        with EvClient(rotated["key"], URL, sandbox=True) as client:
            self.assertTrue(client.verify.single("valid@example.com")["valid"])
            with self.assertRaises(EvApiError) as caught:
                client.credits()
            self.assertEqual(caught.exception.status, 403)
        self.assertEqual(self.client.keys.update(key["id"], {"name": "New"})["name"], "New")
        self.assertEqual(self.client.keys.get(key["id"])["name"], "New")
        self.client.keys.delete(key["id"])
        self.assertNotIn(key["id"], [one["id"] for one in self.client.keys.list()])

    def test_manages_webhooks(self):
        webhooks = self.client.webhooks
        # A port that refuses connections.
        unused = socket.socket()
        self.addCleanup(unused.close)
        unused.bind(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{unused.getsockname()[1]}/hook"
        webhook = {"url": url, "events": ["batch.completed"]}
        created = webhooks.create(webhook)
        self.addCleanup(webhooks.delete, created["id"])
        self.assertEqual(webhooks.update(created["id"], {"active": False})["active"], False)
        self.assertEqual(webhooks.replace(created["id"], webhook)["active"], True)
        self.assertNotEqual(webhooks.rotate_secret(created["id"])["secret"], created["secret"])
        self.assertEqual(webhooks.get(created["id"])["url"], webhook["url"])
        self.assertIn(created["id"], [one["id"] for one in webhooks.list()])
        self.assertEqual(webhooks.test(created["id"])["error_code"], "connection_failed")
        (delivery,) = webhooks.deliveries(created["id"])
        self.assertEqual(webhooks.delivery(created["id"], delivery["id"])["event"], "webhook.test")
        recovered = webhooks.recover(created["id"], since="2026-01-01T00:00:00Z")
        self.assertEqual(recovered, {"recovered": 0})
        self.assertIn("batch.completed", [one["event"] for one in webhooks.events()])

    @unittest.skipIf(SIGNED is None, "EV_TEST_WEBHOOK is not set.")
    def test_accepts_a_webhook_request_of_the_service(self):
        body, headers, secrets = (SIGNED[name] for name in ("body", "headers", "secrets"))
        ev_headers = {"X-EV-Signature": headers["X-EV-Signature"]}
        standard = [(headers, secret) for secret in secrets]
        for sent, secret in [*standard, (ev_headers, secrets[0])]:
            event = verify_webhook(body, sent, secret, require_timestamp=sent is headers)
            self.assertEqual(event, json.loads(body))
        with self.assertRaises(EvWebhookError):
            verify_webhook(body + " ", headers, secrets)

    def test_reuses_its_connection(self):
        ports = set()
        for _ in range(3):
            self.client.credits()
            ((connection,),) = self.client._connection.transport._idle.values()
            ports.add(connection.sock.getsockname()[1])
        self.assertEqual(len(ports), 1)

    def test_is_used_by_several_threads(self):
        results = []
        threads = [
            threading.Thread(
                target=lambda: results.append(self.client.verify("valid@example.com")["status"])
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, ["deliverable"] * 4)
