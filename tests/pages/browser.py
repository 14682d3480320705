"""A headless Chromium that opens one page: over pipes, by the DevTools protocol
(https://chromedevtools.github.io/devtools-protocol/), with the standard library alone."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_browser() -> str | None:
    """A Chromium of this machine; none: there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One tab. `errors`: what its console said; `requests`: what it asked for."""

    def __init__(self, program: str) -> None:
        self.profile = tempfile.mkdtemp(prefix="stowage-pages-")
        read_commands, self.commands = os.pipe()
        self.events, write_events = os.pipe()
        # Chromium reads commands from descriptor 3 and writes events to 4.
        shell = f'exec "$0" "$@" 3<&{read_commands} 4>&{write_events}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, program, "--headless", "--remote-debugging-pipe", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
             f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(read_commands, write_events), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_commands)
        os.close(write_events)
        self.rest = b""
        self.sent = 0
        self.session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self.send("Target.attachToTarget", {"targetId": target, "flatten": True})
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        os.close(self.commands)
        os.close(self.events)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            piece = os.read(self.events, 1 << 16)
            if not piece:
                raise RuntimeError("Chromium ended")
            self.rest += piece
        message, _, self.rest = self.rest.partition(b"\0")
        event: dict[str, Any] = json.loads(message)
        self.note(event)
        return event

    def note(self, event: dict[str, Any]) -> None:
        method, about = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = about["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(value.get("value")) for value in about["args"]))
        elif method == "Log.entryAdded":
            self.errors.append(about["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])

    def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.sent += 1
        message: dict[str, Any] = {"id": self.sent, "method": method, "params": params or {}}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while (event := self.receive()).get("id") != self.sent:
            pass
        if "error" in event:
            raise RuntimeError(f"{method}: {event['error']['message']}")
        result: dict[str, Any] = event["result"]
        return result

    def show(self, width: int, height: int, scheme: str) -> None:
        """The size of the window, and the colours that its user prefers: "light" or "dark"."""
        self.send("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.send("Emulation.setEmulatedMedia",
                  {"media": "", "features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, page: pathlib.Path) -> None:
        self.errors.clear()
        self.requests.clear()
        self.send("Page.navigate", {"url": page.resolve().as_uri()})
        end = time.monotonic() + 60
        while self.value("document.documentElement?.dataset.ready || ''") != "yes":
            if time.monotonic() > end:
                raise RuntimeError(f"the page is not ready after 60 s: {self.errors}")
            time.sleep(0.05)
        self.settle()

    def settle(self) -> None:
        """Until what the page has asked for is drawn."""
        self.value("new Promise((done) => setTimeout(() => requestAnimationFrame(() => done(1)), 120))")

    def value(self, expression: str) -> Any:
        """What the expression gives in the page, waited for where it is a promise."""
        result = self.send("Runtime.evaluate", {"expression": expression, "returnByValue": True,
                                                "awaitPromise": True})
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        self.send("Input.dispatchKeyEvent", {"type": "keyDown", "key": key, **text,
                                             "windowsVirtualKeyCode": 9 if key == "Tab" else 0})
        self.send("Input.dispatchKeyEvent", {"type": "keyUp", "key": key})

    def move(self, x: float, y: float) -> None:
        self.send("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def screenshot(self, file: pathlib.Path) -> None:
        """The whole page, as a PNG."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        picture = self.send("Page.captureScreenshot",
                            {"format": "png", "captureBeyondViewport": True, "clip": clip})
        file.write_bytes(base64.b64decode(picture["data"]))
