"""Long calls: what they have done so far, and Ctrl-C, which stops them."""
from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from typing import Any, Callable, Optional

from ._library import WATCH, lib

#: Takes how much of how much is done; called by the thread that made the call. An exception from it stops the call.
Progress = Callable[[int, int], None]

_WAIT = 0.1  # seconds between two looks at the call
_PATIENCE = 2.0  # seconds for a call to end once it is stopped
_GOAL = 0.25  # seconds for a piece


def stoppable(work: Callable[[], Any]) -> Any:
    """Returns what work() does, which an exception in this thread stops: Ctrl-C reaches only the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    return _run(work, lambda: None)


def watched(work: Callable[[Any], None], size: int, progress: Optional[Progress]) -> None:
    """Runs work(watch), and hands on to `progress` what the library tells `watch`. Like stoppable() for the rest."""
    told, before = [0], [-1]

    def watch(user: Any, n_done: int) -> bool:
        told[0] = n_done
        return True

    def look() -> None:
        n_done = told[0]
        if progress is not None and n_done > before[0]:
            progress(n_done, size)
            before[0] = n_done

    callback = WATCH(watch)
    _run(lambda: work(callback), look)


def _run(work: Callable[[], Any], look: Callable[[], None]) -> Any:
    """Runs work() on a thread of its own, so that this one is free for signals and looks now and then. The work owns all
    that it uses: should it not end soon when it is stopped, nobody waits for it."""
    stop, results, failures = ctypes.c_int(0), [], []

    def run() -> None:
        lib.wfs_stop_by(ctypes.byref(stop))
        try:
            results.append(work())
        except BaseException as error:  # for the thread that waits
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_WAIT)
            look()
        look()  # the work may have ended before the first look, or after the last one
    except BaseException:
        stop.value = 1
        thread.join(_PATIENCE)
        raise
    if failures:
        raise failures[0]
    return results[0]


def pieces(begin: int, end: int, first: int) -> Iterator[tuple[int, int]]:
    """Divides a range into pieces, each of which the caller works on before it takes the next one: `first` units, then
    as many as take a moment, so that signals are handled between two of them."""
    length = max(first, 1)
    while begin < end:
        started, stop = time.monotonic(), min(begin + length, end)
        yield begin, stop
        took = max(time.monotonic() - started, 1e-9)
        length = max(1, int(length * min(max(_GOAL / took, 0.25), 4)))
        begin = stop
