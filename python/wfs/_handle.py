"""Open models, which their files and tensors share."""
from __future__ import annotations

import os
import weakref
from typing import Any, Callable, Sequence

from ._library import Context, call, encode_path, encode_words, lib
from ._long import stoppable


class Handle:
    """An open model. It closes when the last object that uses it is gone. Another process, or a copy, opens it again."""

    def __init__(self, source: Any, words: Sequence[str], context: Context) -> None:
        self._arguments = source, words, context
        self._context = context
        self._is_remote = any("://" in os.fsdecode(word) for word in [source, *words])
        arguments = encode_path(source), encode_words(words)
        self.pointer = stoppable(lambda: call(lib.wfs_open, context.pointer, *arguments, path=source))
        weakref.finalize(self, _close_model, self.pointer, context)

    def __reduce__(self) -> Any:
        return Handle, self._arguments

    def call(self, function: Callable[..., Any], *arguments: Any, path: Any = None) -> Any:
        """Like call(), for one that may wait for a server."""
        if not self._is_remote:
            return call(function, *arguments, path=path)
        return stoppable(lambda: call(function, *arguments, path=path))


def _close_model(pointer: int, context: Context) -> None:
    """Closes a model; `context` lives until then."""
    lib.wfs_close(pointer)
