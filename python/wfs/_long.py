"""Long calls: what they have done so far, and Ctrl-C, which stops them."""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, Callable, Optional

from ._library import WATCH

#: Takes how much of how much is done; called by the thread that made the call. An exception from it stops the call.
Progress = Callable[[int, int], None]

_WAIT = 0.1  # seconds between two looks at the call
_PATIENCE = 2.0  # seconds for a call to end once it is stopped
_GOAL = 0.25  # seconds for a piece


def watched(work: Callable[[Any], None], size: int, progress: Optional[Progress], patience: float = _PATIENCE) -> None:
    """Runs work(watch) on a thread of its own, so that this one is free for signals. The work owns all that it uses: once
    it is stopped it may take longer to end than anybody waits for it."""
    told, stopped, failure = [0], threading.Event(), []

    def watch(user: Any, n_done: int) -> bool:
        told[0] = n_done
        return not stopped.is_set()

    def run() -> None:
        try:
            work(WATCH(watch))
        except BaseException as error:  # for the thread that waits
            failure.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        _wait(thread, told, size, progress)
    except BaseException:
        stopped.set()
        thread.join(patience)
        raise
    if failure:
        raise failure[0]


def left_alone(work: Callable[[], Any]) -> Any:
    """Returns what work() does, which the library cannot stop: Ctrl-C leaves it to end by itself."""
    results: list[Any] = []
    watched(lambda watch: results.append(work()), 0, None, patience=0)
    return results[0]


def _wait(thread: threading.Thread, told: list[int], size: int, progress: Optional[Progress]) -> None:
    before = -1
    while True:
        thread.join(_WAIT)
        ended, n_done = not thread.is_alive(), told[0]
        if progress is not None and n_done > before:
            progress(n_done, size)
            before = n_done
        if ended:
            return


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
