"""Runs the examples of the README against a real service, whose account has no jobs yet."""

import contextlib
import io
import os
import re
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from ev_client import EvClient

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
URL = os.environ.get("EV_TEST_URL", "")
KEY = os.environ.get("EV_TEST_KEY", "")


class ReadmeTest(unittest.TestCase):
    @unittest.skipIf(URL == "" or KEY == "", "EV_TEST_URL and EV_TEST_KEY are not set.")
    def test_examples_print_the_documented_output(self):
        examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
        self.assertGreater(len(examples), 9)
        program = "\n".join(examples).replace("https://ev.example.com", URL)
        expected = re.findall(r"^(?:.*print\(.*\) )? ?# (.*)$", program, re.MULTILINE)
        printed = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, EV_KEY=KEY):
            previous = os.getcwd()
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(printed):
                    names = {}
                    exec(compile(program, "README.md", "exec"), names)
            finally:
                os.chdir(previous)
            names["client"].close()
            self.assertIn(b"ev_email", Path(folder, "march.csv").read_bytes())
        self.assertEqual(printed.getvalue().splitlines(), expected)

    def test_names_every_method(self):
        client = EvClient("ev_live_a", "https://ev.example")
        methods = [
            name
            for part in (client, client.jobs, client.keys, client.webhooks, client.verify)
            for name in dir(part)
            if not name.startswith("_") and callable(getattr(part, name))
        ]
        common = {"bulk_status", "get", "list", "update", "wait"}
        missing = [
            name
            for name in methods
            if name not in common and not re.search(rf"\b{name}\b[`(]", README)
        ]
        self.assertEqual(missing, [])
