import base64
import hashlib
import hmac
import json
import unittest
from email.message import Message

from ev_client import EvWebhookError, verify_webhook

from tests.scripted import NOW

SECRET = "whsec_" + base64.b64encode(b"k" * 24).decode()
OTHER = "whsec_" + base64.b64encode(b"o" * 24).decode()
BODY = json.dumps({"event": "batch.completed", "event_id": "evt_1", "data": {}}).encode()


def mac(key, content):
    return hmac.new(key, content, hashlib.sha256).digest()


def ev_headers(secret=SECRET, body=BODY):
    return {"X-EV-Signature": mac(secret.encode(), body).hex()}


def standard_headers(secret=SECRET, body=BODY, at=NOW):
    key = base64.b64decode(secret[6:])
    signature = base64.b64encode(mac(key, f"evt_1.{int(at)}.".encode() + body)).decode()
    return {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(at)),
        "webhook-signature": f"v1a,AAAA v1,AAAA v1,{signature}",
    }


def verify(headers, body=BODY, secret=SECRET, **options):
    return verify_webhook(body, headers, secret, now=lambda: NOW, **options)


class SignatureTest(unittest.TestCase):
    def refuse(self, message, headers, **options):
        with self.assertRaisesRegex(EvWebhookError, message):
            verify(headers, **options)

    def test_returns_the_event(self):
        for headers in [ev_headers(), standard_headers()]:
            for body in [BODY, BODY.decode(), bytearray(BODY)]:
                self.assertEqual(verify(headers, body)["event_id"], "evt_1")

    def test_accepts_headers_of_a_server_in_any_case(self):
        message = Message()
        message["x-ev-signature"] = ev_headers()["X-EV-Signature"]
        self.assertEqual(verify(message)["event"], "batch.completed")

    def test_matches_a_signature_of_openssl(self):
        # Computed with: openssl dgst -sha256 -hmac
        self.assertEqual(
            ev_headers("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b"{}")["X-EV-Signature"],
            "6cbbcdf2c8016ca85b50543b19e8e121ef16137967bdfa3ce660972922bafaeb",
        )

    def test_refuses_another_body_or_secret(self):
        self.refuse("X-EV-Signature does not match", ev_headers(body=b"{}"))
        self.refuse("X-EV-Signature does not match", ev_headers(OTHER))
        self.refuse("webhook-signature does not match", standard_headers(body=b"{}"))
        self.refuse("webhook-signature does not match", standard_headers(OTHER))

    def test_refuses_a_malformed_signature(self):
        good = ev_headers()["X-EV-Signature"]
        for signature in ["", "zz", good.upper(), good[:-2], good + "\n"]:
            self.refuse("does not match", {"X-EV-Signature": signature})

    def test_refuses_missing_headers(self):
        self.refuse("no signature", {})
        self.refuse("no timestamp", ev_headers(), require_timestamp=True)
        partial = {**ev_headers(), "webhook-id": "evt_1"}
        self.refuse("webhook-timestamp", partial)

    def test_refuses_a_timestamp_beyond_the_tolerance(self):
        for offset in [-300, 300]:
            self.assertEqual(verify(standard_headers(at=NOW + offset))["event_id"], "evt_1")
        for offset in [-301, 301]:
            self.refuse("replay", standard_headers(at=NOW + offset))
        self.refuse("replay", standard_headers(at=NOW - 11), tolerance=10)
        self.refuse("replay", {**standard_headers(), "webhook-timestamp": "x"})

    def test_accepts_both_secrets_of_a_rotation(self):
        for headers in [ev_headers(), standard_headers()]:
            self.assertEqual(verify(headers, secret=[OTHER, SECRET])["event_id"], "evt_1")

    def test_refuses_a_missing_secret(self):
        for secret in [None, "", [], [""], [SECRET, None]]:
            with self.assertRaisesRegex(ValueError, "needs the secret"):
                verify(ev_headers(""), secret=secret)

    def test_refuses_a_secret_without_a_key(self):
        self.refuse("does not match", standard_headers("whsec_"), secret="whsec_")

    def test_refuses_a_parsed_body(self):
        with self.assertRaisesRegex(TypeError, "raw body"):
            verify(ev_headers(), json.loads(BODY))

    def test_refuses_a_body_that_is_not_an_event(self):
        for body in [b"[]", b"{}", b"null", b"x", b'{"event": 1, "event_id": "a"}']:
            self.refuse("not an event", ev_headers(body=body), body=body)
