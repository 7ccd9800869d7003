import socket
import unittest
from http.client import IncompleteRead, RemoteDisconnected

from ev_client import EvApiError, EvConnectionError

from tests.scripted import Reply, Script

BUSY = Reply(503, {"success": False, "error": "Busy", "code": "service_unavailable"})
FINE = Reply(json={"data": {"plan": "free"}})
BROKEN = ConnectionRefusedError(111, "Connection refused")


def limited(retry_after):
    return Reply(429, {"error": "Slower", "code": "rate_limit"}, {"Retry-After": retry_after})


class RetryTest(unittest.TestCase):
    def test_follows_a_transient_error(self):
        for failure in [
            *[Reply(status) for status in (408, 429, 500, 502, 503, 504)],
            Reply(502, chunks=[b"<h1>Bad Gateway</h1>"]),
            Reply(chunks=[b'{"da', IncompleteRead(b"")]),
            BROKEN,
            RemoteDisconnected("closed"),
            TimeoutError("timed out"),
            socket.timeout("timed out"),
        ]:
            with self.subTest(failure):
                script = Script(failure, FINE)
                self.assertEqual(script.client.credits(), {"plan": "free"})
                self.assertEqual(len(script.requests), 2)

    def test_does_not_follow_a_permanent_error(self):
        for status in [300, 400, 401, 403, 404, 405, 409, 413, 415, 422, 501, 505, 507]:
            with self.subTest(status):
                script = Script(Reply(status), FINE)
                with self.assertRaises(EvApiError) as caught:
                    script.client.credits()
                self.assertEqual((caught.exception.status, len(script.requests)), (status, 1))

    def test_happens_three_times_and_raises_the_last_error(self):
        script = Script(BROKEN, BUSY, BROKEN, BUSY, FINE)
        with self.assertRaises(EvApiError):
            script.client.credits()
        self.assertEqual(len(script.requests), 4)

    def test_happens_as_often_as_set(self):
        script = Script(BROKEN, retries=1)
        for client, attempts in [(script.client, 2), (script.client.with_options(retries=0), 1)]:
            script.requests.clear()
            with self.assertRaises(EvConnectionError):
                client.credits()
            self.assertEqual(len(script.requests), attempts)

    def test_delays_double_up_to_eight_seconds_with_full_jitter(self):
        draws = iter([0.5, 0.5, 0.5, 0.25, 1, 1, 0])
        script = Script(BUSY, retries=7, random=lambda: next(draws))
        with self.assertRaises(EvApiError):
            script.client.credits()
        self.assertEqual(script.waits, [0.25, 0.5, 1, 1, 8, 8, 0])

    def test_delay_is_at_least_retry_after(self):
        for text, wait in [
            ("7", 7.25),
            ("Mon, 01 Jun 2026 12:00:07 GMT", 7.25),
            ("Mon, 01 Jun 2026 11:59:00 GMT", 0.25),
            ("soon", 0.25),
            ("60", 60.25),
        ]:
            with self.subTest(text):
                script = Script(limited(text), FINE)
                script.client.credits()
                self.assertEqual(script.waits, [wait])

    def test_delay_of_more_than_a_minute_fails_the_call(self):
        script = Script(limited("61"), FINE)
        with self.assertRaises(EvApiError) as caught:
            script.client.credits()
        self.assertEqual((caught.exception.retry_after, script.waits), (61.0, []))

    def test_has_one_idempotency_key_for_all_attempts(self):
        draws = iter(range(1000))
        script = Script(BROKEN, BUSY, Reply(), random=lambda: next(draws) % 97 / 97)
        script.client.batch(["a@example.com"])
        script.client.batch(["a@example.com"])
        first, second, third, other = script.headers("idempotency-key")
        self.assertRegex(first, "^[0-9a-f]{32}$")
        self.assertEqual([first, first], [second, third])
        self.assertNotEqual(first, other)

    def test_has_the_key_of_the_caller(self):
        script = Script(BROKEN, Reply())
        script.client.bulk(["a@example.com"], idempotency_key="order-7")
        self.assertEqual(script.headers("idempotency-key"), ["order-7", "order-7"])

    def test_refuses_a_key_that_is_invalid_in_a_header(self):
        for key in ["", "a\n", "ä", "a" * 256]:
            script = Script(Reply())
            with self.assertRaises(ValueError):
                script.client.batch(["a@example.com"], idempotency_key=key)
            self.assertEqual(script.requests, [])

    def test_waits_for_the_attempt_whose_response_was_lost(self):
        pending = Reply(409, {"success": False, "error": "", "code": "idempotency_in_progress"})
        script = Script(BROKEN, pending, Reply(json={"job_id": "job_1"}))
        self.assertEqual(script.client.batch(["a@example.com"]), {"job_id": "job_1"})

    def test_succeeds_if_an_earlier_attempt_deleted_it(self):
        missing = Reply(404, {"success": False, "error": "No such job", "code": "not_found"})
        self.assertIsNone(Script(BROKEN, missing).client.jobs.delete("job_1"))
        with self.assertRaises(EvApiError):
            Script(missing).client.jobs.delete("job_1")


class TimeoutTest(unittest.TestCase):
    def test_is_reported(self):
        with self.assertRaises(EvConnectionError) as caught:
            Script(socket.timeout("timed out"), retries=0, timeout=5).client.credits()
        self.assertTrue(caught.exception.timed_out)
        self.assertEqual(
            str(caught.exception), "No response within 5 s. Set timeout to wait longer."
        )

    def test_covers_the_whole_body(self):
        script = Script(Reply(chunks=[b"{", b" ", b" ", b"}"], read_time=2), retries=0, timeout=5)
        with self.assertRaises(EvConnectionError) as caught:
            script.client.credits()
        self.assertTrue(caught.exception.timed_out)
        self.assertEqual((script.read_timeouts, script.closed), ([5, 3, 1], 1))

    def test_of_a_stream_covers_each_chunk(self):
        script = Script(Reply(chunks=[b"a,b\n", b"c,d\n"], read_time=4), timeout=5)
        self.assertEqual(list(script.client.jobs.csv("job_1")), ["a,b", "c,d"])
        self.assertEqual(script.read_timeouts, [5, 5, 5])

    def test_is_not_set_for_a_broken_connection(self):
        with self.assertRaises(EvConnectionError) as caught:
            Script(BROKEN, retries=0).client.credits()
        self.assertFalse(caught.exception.timed_out)
        self.assertIn("Connection refused", str(caught.exception))
