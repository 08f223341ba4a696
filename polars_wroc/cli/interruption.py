"""Signals that stop the command: it cleans up and exits at once, also during a query."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from types import FrameType
from typing import TypeVar

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
# Seconds.
_INTERVAL = 0.5

Result = TypeVar("Result")


def run_stoppable(work: Callable[[], Result], clean: Callable[[], None]) -> Result:
    """Run ``work``; on a signal run ``clean`` and exit with 128 plus the signal's number.

    Signals that are ignored, as in a background job, stay ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    known = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in known}
    taken = [number for number in known if before[number] not in (signal.SIG_IGN, None)]

    def stop(number: int, _: FrameType | None) -> None:
        for other in taken:
            signal.signal(other, signal.SIG_IGN)
        try:
            clean()
        finally:
            os._exit(128 + number)

    for number in taken:
        signal.signal(number, stop)
    try:
        # Python handles signals in this thread, which a query of Polars would block.
        with ThreadPoolExecutor(1) as other_thread:
            future = other_thread.submit(work)
            # On Windows a wait without a timeout cannot be interrupted.
            while wait([future], timeout=_INTERVAL).not_done:
                pass
            return future.result()
    finally:
        for number in taken:
            signal.signal(number, before[number])
