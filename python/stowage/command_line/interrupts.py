"""Ctrl-C (SIGINT) while a command runs somebody's code, or the program.

Python raises KeyboardInterrupt wherever it is at that moment. Within a callback of its own (of a weak
reference, __del__) it prints a traceback and goes on, and code may catch the exception, as a library does
around an import. So a handler notes the signal as well: nothing is written after it.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

SOON = 0.01  # seconds


class Interrupts:
    """`came`: a SIGINT, since the command began."""

    def __init__(self) -> None:
        self.came = False
        self.hook_before = sys.unraisablehook

    def check(self) -> None:
        """Raises KeyboardInterrupt where one came. Called before a file is written."""
        if self.came:
            raise KeyboardInterrupt

    def on_signal(self, *_: object) -> NoReturn:
        self.came = True
        raise KeyboardInterrupt

    def on_unraisable(self, what: Any) -> None:
        """Of an exception in a callback, which goes no further: raised once more, outside of it."""
        if what.exc_type is not KeyboardInterrupt:
            self.hook_before(what)
            return
        timer = threading.Timer(SOON, _thread.interrupt_main)
        timer.daemon = True
        timer.start()

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """While a command runs. Where the process ignores SIGINT (nohup), or another thread than the main
        one runs the command, all is as it was."""
        self.came = False
        if (threading.current_thread() is not threading.main_thread()
                or signal.getsignal(signal.SIGINT) is not signal.default_int_handler):
            yield
            return
        self.hook_before = sys.unraisablehook
        signal.signal(signal.SIGINT, self.on_signal)
        sys.unraisablehook = self.on_unraisable
        try:
            yield
        finally:
            sys.unraisablehook = self.hook_before
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextlib.contextmanager
    def left_to_child(self) -> Iterator[None]:
        """While a program runs that a terminal's Ctrl-C reaches as well, and that ends by its own rules:
        it may have a plan to write."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)
        if before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, lambda *_: None)  # the program gets the usual one
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


INTERRUPTS = Interrupts()
