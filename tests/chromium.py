"""A real browser for tests, told what to do through the DevTools protocol over a pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any, Literal

import axe_core_python

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# For a machine that is busy; nobody waits so long where all is well.
_PATIENCE = 180.0
_AXE = Path(axe_core_python.__file__).parent / "axe.min.js"
_VIOLATIONS = """axe.run(document, OPTIONS).then(found =>
  found.violations.map(one => [one.id, one.help, one.nodes.map(node => node.html)]))"""


def browser() -> str | None:
    """Path of a browser, if there is one."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


class Chromium:
    """One page of a headless browser, with what it printed and what it asked the network for."""

    def __init__(self, path: str, folder: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        options = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"),
            # Nothing that a fresh profile does first, and no memory that a container may lack.
            *("--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"),
            f"--user-data-dir={folder / 'browser'}",
        ]
        # The protocol's pipes are 3 and 4.
        command = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(  # noqa: S603  (our own pages)
            ["/bin/bash", "-c", command, "bash", path, *options],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self._session = b"", 0, ""
        self._shown: Path | None = None
        self.printed: list[str] = []
        self.requests: list[str] = []
        try:
            # The page that a browser begins with may not be there yet.
            page = self.call("Target.createTarget", url="about:blank")["targetId"]
            attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and give its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])

    def open(
        self,
        path: Path,
        *,
        width: int = 1200,
        height: int = 900,
        scheme: Literal["light", "dark"] = "light",
        media: Literal["screen", "print"] = "screen",
        until: str = "true",
    ) -> None:
        """Open a file and wait until an expression is true there."""
        self._shown = None
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.printed.clear()
        self.requests.clear()
        self.call("Page.navigate", url=path.as_uri())
        self.wait(f"document.readyState === 'complete' && ({until})")

    def show(self, path: Path, *, until: str) -> None:
        """Open a file, or keep it if it is open since a test that only read it."""
        if path != self._shown:
            self.open(path, until=until)
            self._shown = path

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + _PATIENCE
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, f"{expression} was never true: {self.printed}"
            time.sleep(0.05)

    def evaluate(self, expression: str) -> Any:
        """Value of an expression, or of the promise that it is."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def broken_rules(self, *tags: str) -> Any:
        """Rules of axe-core with any of the tags, or of all, that elements of the page break."""
        self.call("Runtime.evaluate", expression=_AXE.read_text(encoding="utf-8"))
        assert self.evaluate("axe.version")
        options = {"resultTypes": ["violations"]} | ({"runOnly": tags} if tags else {})
        return self.evaluate(_VIOLATIONS.replace("OPTIONS", json.dumps(options)))

    def press(self, key: str, text: str = "") -> None:
        """Press a key where the focus is."""
        for kind in ("keyDown", "keyUp"):
            down = {"text": text} if text and kind == "keyDown" else {}
            codes = {"Enter": 13, " ": 32, "Tab": 9, "ArrowRight": 39}
            code = {"windowsVirtualKeyCode": codes[key], "code": "Space" if key == " " else key}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, **code, **down)

    def picture(self, path: Path) -> None:
        """Save the whole page as a PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """End the browser."""
        self._process.terminate()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], deadline - time.monotonic())
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 16)
            assert part, "the browser has ended"
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, params: dict[str, Any]) -> None:
        if event == "Runtime.consoleAPICalled":
            self.printed.append(str(params["args"]))
        elif event == "Runtime.exceptionThrown":
            self.printed.append(str(params["exceptionDetails"]))
        elif event == "Log.entryAdded":
            self.printed.append(str(params["entry"]["text"]))
        elif event == "Network.requestWillBeSent":
            self.requests.append(str(params["request"]["url"]))
