"""Told to stop, the command ends at once, in the middle of a query too, and cleans up first."""

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
    """Run ``clean`` and exit with 128 and the number of the signal when the process is to stop.

    What is ignored, as in a background job, stays so.
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
        # Python handles signals in this thread, which must not wait for a query of Polars.
        with ThreadPoolExecutor(1) as other_thread:
            future = other_thread.submit(work)
            # On Windows a wait without a limit cannot be interrupted.
            while wait([future], timeout=_INTERVAL).not_done:
                pass
            return future.result()
    finally:
        for number in taken:
            signal.signal(number, before[number])
