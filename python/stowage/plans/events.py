"""What apply did, in order: counted always, and kept one by one while `stowage.verify` watches."""

from __future__ import annotations

import dataclasses

OUT, BACK = ("start", "gradient"), ("fetch", "parameter", "upload")


@dataclasses.dataclass(frozen=True)
class Event:
    """`what` is "pass" (one begins), "pack", "start", "release", "unpack" or "fetch"; `key` that of the
    call, or of the call that starts the storage; `bytes` those of the storage. "gradient": one goes to
    the host; "parameter": an updated one comes back; "update": one is made as a gradient comes, for which
    `key` is the parameter's name, as for both; "upload": a streamed block's parameters come, `key`
    is the block's path."""

    what: str
    key: str
    bytes: int = 0


class Events:
    """`bytes_out`, `bytes_back`: moved so far, to the host and back. `passes`: so many began."""

    def __init__(self) -> None:
        self.bytes_out = self.bytes_back = self.passes = 0
        self.watchers: list[list[Event]] = []

    def note(self, what: str, key: str, size: int = 0) -> None:
        if what in OUT:
            self.bytes_out += size
        elif what in BACK:
            self.bytes_back += size
        elif what == "pass":
            self.passes += 1
        for watcher in self.watchers:
            watcher.append(Event(what, key, size))
