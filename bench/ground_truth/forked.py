"""Starts jobs as children of one process that has imported everything: the asking side of server.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

_HERE = os.path.dirname(os.path.abspath(__file__))


class NoServer(OSError):
    """The process that forks could not be started, or ended before its time."""


class Forked:
    """Starts each job as a fork of the server. Close it: what still runs is then killed."""

    name = "forked"

    def __init__(self, command=(sys.executable, os.path.join(_HERE, "server.py"))):
        self.said = tempfile.TemporaryFile("w+", errors="replace")
        # In a session of its own: Ctrl-C reaches this process only, which then ends the rest in order.
        self.server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=self.said, text=True, start_new_session=True,
                                       env={**os.environ, "HF_HUB_OFFLINE": "1"})
        try:
            if not self._answer()["ready"]:
                raise NoServer("CUDA was initialised by importing a package")
        except BaseException:
            self.close()
            raise

    def _answer(self) -> dict:
        line = self.server.stdout.readline()
        if not line:
            self.said.seek(0)
            raise NoServer(f"the process that forks ended: {self.said.read()[-1000:].strip()}")
        return json.loads(line)

    def _ask(self, content: dict) -> dict:
        try:
            print(json.dumps(content), file=self.server.stdin, flush=True)
        except BrokenPipeError:
            pass  # the missing answer says so
        return self._answer()

    def start(self, spec_path: str, result_path: str, log_path: str) -> int:
        """The process id, which is also that of the process group."""
        return self._ask({"start": [spec_path, result_path, log_path]})["pid"]

    def code(self, pid: int) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._ask({"ended": pid})["code"]

    def close(self) -> None:
        try:
            self.server.stdin.close()
        except BrokenPipeError:
            pass
        self.server.wait()
        self.server.stdout.close()
        self.said.close()
