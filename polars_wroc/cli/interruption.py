"""Told to stop, the command ends at once, in the middle of a query too, and cleans up first."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


@contextmanager
def stoppable(clean: Callable[[], None]) -> Iterator[None]:
    """Run ``clean`` and exit with 128 and the number of the signal when the process is to stop.

    What is ignored, as in a background job, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    known = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in known}
    taken = [number for number in known if before[number] not in (signal.SIG_IGN, None)]
    reading, writing = socket.socketpair()
    writing.settimeout(0)
    # A Python handler would have to wait until the query is done: what the interpreter writes
    # when a signal comes is read by another thread.
    watcher = threading.Thread(target=_watch, args=(reading, taken, clean), daemon=True)
    watcher.start()
    wakeup = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    for number in taken:
        signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])
        signal.set_wakeup_fd(wakeup)
        writing.close()
        # For ever, if the watcher is about to end the process.
        watcher.join()
        reading.close()


def _watch(reading: socket.socket, taken: Collection[int], clean: Callable[[], None]) -> None:
    while came := reading.recv(1):
        if came[0] in taken:
            try:
                clean()
            finally:
                os._exit(128 + came[0])
