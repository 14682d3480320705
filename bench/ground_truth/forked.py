"""Starts jobs as children of one process that has imported everything: the asking side of server.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from process import Fresh, Starter

_HERE = os.path.dirname(os.path.abspath(__file__))


class NoServer(OSError):
    """The process that forks could not be started, or ended before its time."""


class Forked:
    """Starts each job as a fork of the server. Close it: what still runs is then killed.

    `preload`: modules that the server imports beforehand, MODULE, or MODULE:NAME for a name that a module
    loads only when it is asked for it.
    """

    name = "forked"

    def __init__(self, target: str, preload: tuple[str, ...],
                 command: tuple[str, ...] = (sys.executable, os.path.join(_HERE, "server.py"))) -> None:
        self.said = tempfile.TemporaryFile("w+", errors="replace")
        # In a session of its own: Ctrl-C reaches this process only, which then ends the rest in order.
        self.server = subprocess.Popen([*command, target, *preload], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=self.said, text=True,
                                       start_new_session=True,
                                       env={**os.environ, "HF_HUB_OFFLINE": "1"})
        try:
            if not self._answer()["ready"]:
                raise NoServer("CUDA was initialised by importing a package")
        except BaseException:
            self.close()
            raise

    def _answer(self) -> dict[str, Any]:
        line = self.server.stdout.readline()
        if not line:
            self.said.seek(0)
            raise NoServer(f"the process that forks ended: {self.said.read()[-1000:].strip()}")
        return json.loads(line)

    def _ask(self, content: dict[str, Any]) -> dict[str, Any]:
        try:
            print(json.dumps(content), file=self.server.stdin, flush=True)
        except BrokenPipeError:
            pass  # the missing answer says so
        return self._answer()

    def start(self, spec_path: str, result_path: str, log_path: str) -> int:
        return self._ask({"start": [spec_path, result_path, log_path]})["pid"]

    def code(self, pid: int) -> int | None:
        return self._ask({"ended": pid})["code"]

    def close(self) -> None:
        try:
            self.server.stdin.close()
        except BrokenPipeError:
            pass
        self.server.wait()
        self.server.stdout.close()
        self.said.close()


def forked_or_fresh(target: str, preload: tuple[str, ...], who: str) -> Starter:
    """Forks jobs from one process; where it cannot, says so as `who` and starts each afresh. Close it."""
    try:
        return Forked(target, preload)
    except NoServer as error:
        print(f"{who}: each job is started afresh: {error}", file=sys.stderr)
        return Fresh(target)
