"""libwfs through ctypes: its functions, structures and errors. wfs.h is the manual."""
from __future__ import annotations

import ctypes
import errno
import logging
import os
import pathlib
from typing import Any, Callable, Optional, Sequence

from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p

_here = pathlib.Path(__file__).parent
_log = logging.getLogger("wfs")


class WfsError(OSError):
    """What wfs cannot do, and why: `strerror`, which names the file itself. `errno` tells the kinds apart; subclasses are
    also Python's own exceptions."""

    def __str__(self) -> str:
        return f"[Errno {self.errno}] {self.strerror}"


class _NotFound(WfsError, FileNotFoundError):
    pass


class _Directory(WfsError, IsADirectoryError):
    pass


class _NotDirectory(WfsError, NotADirectoryError):
    pass


class _NotPermitted(WfsError, PermissionError):
    pass


class _Invalid(WfsError, ValueError):
    pass


_KINDS = {errno.ENOENT: _NotFound, errno.EISDIR: _Directory, errno.ENOTDIR: _NotDirectory, errno.EINVAL: _Invalid,
          errno.EACCES: _NotPermitted, errno.EPERM: _NotPermitted}


class Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("message", c_char * 1020)]

    def exception(self, path: Optional[str]) -> Exception:
        message = self.message.decode(errors="replace")
        if self.code == errno.ENOMEM:
            return MemoryError(message)
        kind = _KINDS.get(self.code, WfsError)
        return kind(self.code, message, path) if path is not None else kind(self.code, message)


class Entry(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("size", c_uint64), ("mtime", c_int64), ("mtime_nanoseconds", c_uint32),
                ("mode", c_uint32), ("unused", c_uint64 * 4)]


class Tensor(ctypes.Structure):
    _fields_ = [("name", POINTER(c_char)), ("name_length", c_size_t), ("dtype", c_char_p), ("shape", POINTER(c_uint64)),
                ("n_elements", c_uint64), ("refusal", c_char_p), ("rank", c_uint32), ("unused32", c_uint32),
                ("unused", c_uint64 * 4)]


class Slice(ctypes.Structure):
    _fields_ = [("start", c_uint64), ("count", c_uint64), ("step", c_uint64)]


_LOG = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
WATCH = ctypes.CFUNCTYPE(c_bool, c_void_p, c_uint64)
_ERROR = POINTER(Error)

# Function: result, arguments.
_FUNCTIONS: dict[str, tuple[Any, Sequence[Any]]] = {
    "version": (c_char_p, []),
    "allow": (None, [c_uint]),
    "context_new": (c_void_p, [c_uint, _LOG, c_void_p]),
    "context_free": (None, [c_void_p]),
    "stop_by": (None, [POINTER(c_int)]),
    "open": (c_void_p, [c_void_p, c_char_p, POINTER(c_char_p), _ERROR]),
    "close": (None, [c_void_p]),
    "note_count": (c_size_t, [c_void_p]),
    "note": (c_char_p, [c_void_p, c_size_t]),
    "stat": (c_bool, [c_void_p, c_char_p, POINTER(Entry), _ERROR]),
    "list_open": (c_void_p, [c_void_p, c_char_p, c_bool, _ERROR]),
    "list_count": (c_size_t, [c_void_p]),
    "list_entry": (POINTER(Entry), [c_void_p, c_size_t]),
    "list_close": (None, [c_void_p]),
    "file_open": (c_void_p, [c_void_p, c_char_p, _ERROR]),
    "file_size": (c_uint64, [c_void_p]),
    "file_read": (c_int64, [c_void_p, c_uint64, c_void_p, c_size_t, _ERROR]),
    "file_write": (c_bool, [c_void_p, c_int, _ERROR]),
    "file_write_range": (c_bool, [c_void_p, c_uint64, c_uint64, c_int, _ERROR]),
    "file_parts": (c_bool, [c_void_p, c_size_t, POINTER(c_uint64), _ERROR]),
    "file_copy": (c_bool, [c_void_p, c_char_p, _ERROR]),
    "file_copy_watched": (c_bool, [c_void_p, c_char_p, WATCH, c_void_p, _ERROR]),
    "file_close": (None, [c_void_p]),
    "tensor_count": (c_size_t, [c_void_p]),
    "tensor_at": (c_bool, [c_void_p, c_size_t, POINTER(Tensor), _ERROR]),
    "tensor_find": (c_bool, [c_void_p, c_char_p, c_size_t, POINTER(c_size_t), _ERROR]),
    "tensor_size": (c_bool, [c_void_p, c_size_t, c_char_p, POINTER(Slice), POINTER(c_uint64), _ERROR]),
    "tensor_read": (c_bool, [c_void_p, c_size_t, c_char_p, POINTER(Slice), c_void_p, c_uint64, _ERROR]),
    "tensor_map": (c_void_p, [c_void_p, c_size_t, c_char_p, POINTER(Slice), POINTER(c_uint64)]),
    "unmap": (None, [c_void_p, c_uint64]),
    "info_json": (c_void_p, [c_void_p, _ERROR]),
    "architectures_json": (c_void_p, [c_void_p, _ERROR]),
    "quantizations_json": (c_void_p, [c_void_p, c_bool, _ERROR]),
    "compare": (c_void_p, [c_void_p, c_char_p, c_char_p, POINTER(c_char_p), _ERROR]),
    "compare_attestation": (c_void_p, [c_void_p, c_char_p, c_char_p, POINTER(c_char_p), _ERROR]),
    "diff": (c_void_p, [c_void_p, c_char_p, c_char_p, POINTER(c_char_p), _ERROR]),
    "attest": (c_void_p, [c_void_p, POINTER(c_char_p), c_size_t, _ERROR]),
    "text_free": (None, [c_void_p]),
}


def _load() -> ctypes.CDLL:
    """The wheel's library, or the one that $WFS_LIBRARY or the system has."""
    path = os.environ.get("WFS_LIBRARY") or str(_here / "libwfs.so.0")
    library = ctypes.CDLL(path if os.path.exists(path) else "libwfs.so.0")
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, "wfs_" + name)
        function.restype, function.argtypes = result, arguments
    return library


lib = _load()


def call(function: Callable[..., Any], *arguments: Any, path: Any = None) -> Any:
    """Calls a function that can fail, with an error as the last argument; raises its failure, which is about `path`, or
    about that of several paths that the message names."""
    error = Error()
    result = function(*arguments, byref(error))
    if result is None or result is False or result == -1:
        one = _named(path, error.message) if isinstance(path, tuple) else path
        raise error.exception(os.fspath(one) if one is not None else None)
    return result


def _named(paths: tuple[Any, ...], message: bytes) -> Any:
    named = [path for path in paths if os.fsencode(path) in message]
    return max(named, key=lambda path: len(os.fsencode(path)), default=paths[0])


def call_for_text(function: Callable[..., Any], *arguments: Any, path: Any = None) -> bytes:
    """Like call(), for a function that returns a text, which it frees."""
    pointer = call(function, *arguments, path=path)
    try:
        return ctypes.string_at(pointer)
    finally:
        lib.wfs_text_free(pointer)


def encode_words(words: Sequence[Any]) -> Any:
    """The list of words that C takes, with NULL at its end."""
    return (c_char_p * (len(words) + 1))(*[encode_path(word) for word in words], None)


def encode_path(path: Any) -> bytes:
    return _without_nul(os.fsencode(path))


def _without_nul(text: bytes) -> bytes:
    if b"\0" in text:
        raise ValueError("embedded null byte")
    return text


def version() -> str:
    text: bytes = lib.wfs_version()
    return text.decode()


class Context:
    """The threads of reads, and where messages go."""

    def __init__(self, threads: int = 0, log: Optional[Callable[[str], None]] = None) -> None:
        self._arguments = threads, log
        take = log or _log.warning
        self._callback = _LOG(lambda user, line: take(line.decode(errors="replace")))
        self.pointer = lib.wfs_context_new(threads, self._callback, None)
        if self.pointer is None:
            raise MemoryError("out of memory")

    def __reduce__(self) -> Any:
        return (shared_context, ()) if self is _shared else (Context, self._arguments)

    def __del__(self) -> None:
        if getattr(self, "pointer", None) is not None:
            lib.wfs_context_free(self.pointer)


_shared: Optional[Context] = None


def shared_context() -> Context:
    global _shared
    if _shared is None:
        _shared = Context()
    return _shared


def _forget_context() -> None:
    """In the child of a fork: the parent's threads are not here, so that models opened from now on get new ones."""
    global _shared
    if _shared is not None:
        _kept.append(_shared)
    _shared = None


_kept: list[Context] = []
os.register_at_fork(after_in_child=_forget_context)


class _Mapping:
    def __init__(self, address: int, size: int) -> None:
        self._address, self._size = address, size

    def __del__(self, unmap: Callable[[int, int], None] = lib.wfs_unmap) -> None:
        unmap(self._address, self._size)


def mapped_view(address: int, size: int) -> memoryview:
    """Shows the bytes of a mapping, which ends when nothing shows them any more."""
    array = (c_char * size).from_address(address)
    array._mapping = _Mapping(address, size)  # type: ignore[attr-defined]
    return memoryview(array).cast("B")
