"""SIGINT and SIGTERM, heeded where it is safe: what is half asked or half written is finished first."""

from __future__ import annotations

import signal

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Within it, the signals are noted; `check` raises KeyboardInterrupt if one came."""

    def __enter__(self) -> Interrupts:
        self.came = False
        self.before = {each: signal.signal(each, self._note) for each in _SIGNALS}
        return self

    def __exit__(self, *_) -> None:
        for each, handler in self.before.items():
            signal.signal(each, handler)

    def _note(self, *_) -> None:
        self.came = True

    def check(self) -> None:
        if self.came:
            raise KeyboardInterrupt
