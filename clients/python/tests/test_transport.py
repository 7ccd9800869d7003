import contextlib
import socket
import threading
import unittest
from http.client import IncompleteRead, RemoteDisconnected

from ev_client import EvClient, HttpTransport, Request


class Server:
    """Accepts connections one after another and runs one script for each."""

    def __init__(self, *scripts):
        self.requests = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, args=[scripts])
        self._thread.start()

    def _run(self, scripts):
        for script in scripts:
            connection, _ = self._listener.accept()
            with connection:
                script(connection, self)

    def read_request(self, connection):
        """Reads one request; returns False at the end of the connection."""
        content = b""
        while b"\r\n\r\n" not in content:
            received = connection.recv(65536)
            if received == b"":
                return False
            content += received
        head, _, body = content.partition(b"\r\n\r\n")
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                while len(body) < int(line[15:]):
                    body += connection.recv(65536)
        self.requests.append((head.split(b" ")[1].decode(), body))
        return True

    def close(self):
        self._thread.join(10)
        self._listener.close()


def answer(*contents):
    """Sends one response per request, and waits for the client to close the connection."""

    def run(connection, server):
        for content in contents:
            server.read_request(connection)
            connection.sendall(content)
        server.read_request(connection)

    return run


def answer_and_close(content):
    def run(connection, server):
        server.read_request(connection)
        connection.sendall(content)

    return run


def fixed(body, extra=b""):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s" % (len(body), extra, body)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class TransportTest(unittest.TestCase):
    def start(self, *scripts):
        self.server = Server(*scripts)
        self.transport = HttpTransport()
        # Clean-ups run in reverse: the client closes first.
        self.addCleanup(self.server.close)
        self.addCleanup(self.transport.close)

    def send(self, path="/", body=None, timeout=10.0):
        method = "GET" if body is None else "POST"
        return self.transport(Request(method, self.server.url + path, {}, body, timeout))

    def read(self, response):
        chunks = []
        while not chunks or chunks[-1] != b"":
            chunks.append(response.read(10))
        return b"".join(chunks)

    def test_reuses_a_connection(self):
        chunked = CHUNKED + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
        self.start(answer(fixed(b"one"), chunked, fixed(b""), fixed(b"four")))
        bodies = [
            self.read(self.send("/a?b=c", b"x" * 100_000)),
            self.read(self.send("/b")),
            self.read(self.send("/c")),
            self.read(self.send("/d")),
        ]
        self.assertEqual(bodies, [b"one", b"abc", b"", b"four"])
        self.assertEqual([path for path, _ in self.server.requests], ["/a?b=c", "/b", "/c", "/d"])
        self.assertEqual(self.server.requests[0][1], b"x" * 100_000)

    def test_opens_a_new_connection_if_the_service_closed_the_idle_one(self):
        self.start(
            answer_and_close(fixed(b"one")),
            answer_and_close(fixed(b"two", b"Connection: close\r\n")),
        )
        self.assertEqual(self.read(self.send()), b"one")
        # Blocks until the end of the connection has arrived.
        (idle,) = [one for many in self.transport._idle.values() for one in many]
        self.assertEqual(idle.sock.recv(1, socket.MSG_PEEK), b"")
        self.assertEqual(self.read(self.send()), b"two")
        self.assertEqual(list(self.transport._idle.values()), [[]])

    def test_does_not_reuse_a_connection_whose_body_was_not_read(self):
        self.start(answer(fixed(b"one")), answer(fixed(b"two")))
        self.send().close()
        self.assertEqual(self.read(self.send()), b"two")

    def test_reads_a_body_that_ends_with_the_connection(self):
        self.start(answer_and_close(b"HTTP/1.1 200 OK\r\nX-Name: Value\r\n\r\nabc"))
        response = self.send()
        self.assertEqual((response.headers["x-name"], self.read(response)), ("Value", b"abc"))

    def test_fails_if_a_body_is_incomplete(self):
        truncated = [
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
            CHUNKED + b"9\r\nabc",
            CHUNKED + b"3\r\nabc\r\n",
        ]
        self.start(*[answer_and_close(content) for content in truncated])
        for content in truncated:
            with self.subTest(content), self.assertRaises(IncompleteRead):
                self.read(self.send())

    def test_fails_if_no_response_arrives(self):
        self.start(answer_and_close(b""))
        with self.assertRaises((RemoteDisconnected, ConnectionResetError)):
            self.send()

    def test_times_out_before_the_response_and_within_its_body(self):
        def stall(*contents):
            def run(connection, server):
                for content in contents:
                    server.read_request(connection)
                    connection.sendall(content)
                # Ends the test if the client does not.
                connection.settimeout(5)
                with contextlib.suppress(socket.timeout):
                    while connection.recv(65536):
                        pass

            return run

        self.start(stall(), stall(fixed(b"abc")), stall(fixed(b"abc")[:-1]))
        with self.assertRaises(socket.timeout):
            self.send(timeout=0.02)
        self.assertEqual(self.read(self.send()), b"abc")
        # On the same connection.
        with self.assertRaises(socket.timeout):
            self.send(timeout=0.02)
        response = self.send()
        self.assertEqual(response.read(10), b"ab")
        with self.assertRaises(socket.timeout):
            response.read(0.02)

    def test_reads_the_response_to_a_request_that_the_service_did_not_read(self):
        def refuse(connection, server):
            connection.recv(10)
            connection.sendall(b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\n\r\n")

        self.start(refuse)
        self.assertEqual(self.send("/", b"x" * 10_000_000).status, 413)

    def test_is_closed_with_the_client(self):
        self.start(answer(fixed(b'{"data": {}}')))
        with EvClient("ev_live_a", self.server.url) as client:
            self.assertEqual(client.credits(), {})
