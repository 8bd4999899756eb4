"""Models: their files, and what wfs has to say of them."""
from __future__ import annotations

import ctypes
import io
import json
import os
import stat as stat_module
import weakref
from collections.abc import Iterator, Mapping
from ctypes import byref
from typing import Any, Callable, NamedTuple, Optional, Union

from . import _tables
from ._handle import Handle
from ._library import Context, Entry, WfsError, call, call_for_text, encode_path, encode_words, lib, shared_context
from ._long import Progress, pieces, stoppable, watched
from ._tensors import Tensors, nearest_name

_BUFFER = 1 << 20
_FIRST_PIECE = 1 << 20
_MOST_PARTS = 100_000

PathLike = Union[str, "os.PathLike[str]"]


class FileInfo(NamedTuple):
    """A file or directory: its path, its exact size in bytes, and when its sources changed (seconds since 1970)."""
    path: str
    size: int
    mtime: float
    is_directory: bool


def _info(path: str, entry: Entry) -> FileInfo:
    return FileInfo(path, entry.size, entry.mtime + entry.mtime_nanoseconds / 1e9, stat_module.S_ISDIR(entry.mode))


class _OpenFile:
    """A file that the library has open, as an argument of its functions. It closes when no call uses it any more, and at
    the program's end before its model."""

    def __init__(self, handle: Handle, path: PathLike) -> None:
        self._as_parameter_ = handle.call(lib.wfs_file_open, handle.pointer, encode_path(path), path=path)
        weakref.finalize(self, _close_file, self._as_parameter_, handle)


def _close_file(pointer: int, handle: Handle) -> None:
    """Closes a file; `handle` lives until then."""
    lib.wfs_file_close(pointer)


def _file_again(handle: Handle, path: PathLike, position: int) -> "RawFile":
    file = RawFile(handle, path)
    file.seek(position)
    return file


class RawFile(io.RawIOBase):
    """A virtual file, without a buffer. Threads may share it through pread(). Another process, or a copy, opens it again."""

    def __init__(self, handle: Handle, path: PathLike) -> None:
        super().__init__()
        self._file: Optional[_OpenFile] = None
        self._handle = handle
        self._file = _OpenFile(handle, path)
        self.name = os.fspath(path)
        self.size: int = lib.wfs_file_size(self._file)
        self._position = 0

    def __reduce__(self) -> Any:
        return _file_again, (self._handle, self.name, self.tell())

    def _open_file(self) -> _OpenFile:
        if self._file is None:
            raise ValueError("I/O operation on closed file")
        return self._file

    def close(self) -> None:
        self._file = None
        super().close()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._open_file()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._open_file()
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise ValueError(f"invalid whence ({whence})")
        position = offset + (0 if whence == os.SEEK_SET else self._position if whence == os.SEEK_CUR else self.size)
        if position < 0:
            raise ValueError(f"negative seek position {position}")
        self._position = position
        return position

    def readinto(self, buffer: Any) -> int:
        self._open_file()
        view = memoryview(buffer).cast("B")
        n_read = self._fill(view, self._position)
        self._position += n_read
        return n_read

    def _fill(self, view: memoryview, offset: int) -> int:
        """Reads bytes from `offset` on into writable memory; returns their number, fewer only at the end."""
        end = min(offset + len(view), self.size)
        if offset >= end:
            return 0
        address = ctypes.addressof((ctypes.c_char * len(view)).from_buffer(view)) - offset
        for begin, stop in pieces(offset, end, _FIRST_PIECE):
            self._handle.call(lib.wfs_file_read, self._open_file(), begin, address + begin, stop - begin, path=self.name)
        return end - offset

    def pread(self, length: int, offset: int) -> bytes:
        """Up to `length` bytes from `offset` on, fewer only at the end; the position stays."""
        if offset < 0 or length < 0:
            raise ValueError("a negative offset or length")
        out = bytearray(min(length, max(self.size - offset, 0)))
        self._open_file()
        self._fill(memoryview(out), offset)
        return bytes(out)

    def pread_into(self, buffer: Any, offset: int) -> int:
        """Fills a writable buffer with the bytes from `offset` on; returns their number, fewer only at the end. The
        position stays."""
        self._open_file()
        if offset < 0:
            raise ValueError("a negative offset")
        return self._fill(memoryview(buffer).cast("B"), offset)

    def parts(self, n: int) -> list[tuple[int, int]]:
        """Divides the file into parts that take about equal time: see ``Model.parts()``."""
        if n < 1 or n > _MOST_PARTS:
            raise ValueError(f"{n} is not a number of parts from 1 to {_MOST_PARTS}")
        ends = (ctypes.c_uint64 * n)()
        call(lib.wfs_file_parts, self._open_file(), n, ends)
        return [(begin, end - begin) for begin, end in zip([0, *ends], ends)]

    def write_to(self, descriptor: int, offset: int = 0, length: Optional[int] = None,
                 progress: Optional[Progress] = None) -> None:
        """Writes the file, or `length` bytes of it from `offset` on, to a descriptor, with all threads: the fastest way
        to copy it. `progress` takes the bytes that are written, and their number in all."""
        if offset < 0 or (length is not None and length < 0):
            raise ValueError("a negative offset or length")
        self._open_file()
        end = self.size if length is None else min(offset + length, self.size)
        for begin, stop in pieces(offset, end, _BUFFER):
            self._handle.call(lib.wfs_file_write_range, self._open_file(), begin, stop - begin, descriptor, path=self.name)
            if progress is not None:
                progress(stop - offset, end - offset)

    def copy_to(self, destination: PathLike, progress: Optional[Progress] = None) -> None:
        """Copies the whole file as ``wfs cp`` does: see ``Model.copy()``."""
        self._open_file()
        handle, path, to = self._handle, self.name, os.fsdecode(destination)
        if os.path.isdir(to):
            to = os.path.join(to, os.path.basename(path.rstrip("/")))
        to_bytes = encode_path(to)

        def work(watch: Any) -> None:
            with RawFile(handle, path) as own:
                call(lib.wfs_file_copy_watched, own._open_file(), to_bytes, watch, None, path=to)

        watched(work, self.size, progress)


class Files(Mapping[str, FileInfo]):
    """The files of a model by their paths. Iteration leaves out tensors/, whose files are found by name."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def list(self, path: PathLike = "") -> list[FileInfo]:
        """The entries of a directory."""
        pointer, encoded = self._handle.pointer, encode_path(path)
        entries = stoppable(lambda: call(lib.wfs_list_open, pointer, encoded, False, path=path))
        try:
            inner = os.fspath(path).strip("/")
            infos = []
            for i in range(lib.wfs_list_count(entries)):
                entry = lib.wfs_list_entry(entries, i).contents
                name = os.fsdecode(entry.name)
                infos.append(_info(f"{inner}/{name}" if inner else name, entry))
            return infos
        finally:
            lib.wfs_list_close(entries)

    def stat(self, path: PathLike) -> FileInfo:
        entry = Entry()
        self._handle.call(lib.wfs_stat, self._handle.pointer, encode_path(path), byref(entry), path=path)
        return _info(os.fspath(path).strip("/"), entry)

    def __getitem__(self, path: str) -> FileInfo:
        try:
            info = self.stat(path)
        except FileNotFoundError as error:
            raise KeyError(nearest_name(path, list(self))) from error
        if info.is_directory:
            raise KeyError(path)
        return info

    def _below(self, path: str) -> Iterator[FileInfo]:
        for info in self.list(path):
            if not info.is_directory:
                yield info
            elif info.path != "tensors" and not info.path.endswith("/tensors"):
                yield from self._below(info.path)

    def __iter__(self) -> Iterator[str]:
        return (info.path for info in self._below(""))

    def __len__(self) -> int:
        return sum(1 for _ in self._below(""))

    def _rows(self) -> _tables.Table:
        infos = list(self._below(""))
        return ["file", "bytes"], [(info.path, f"{info.size:,}") for info in infos[:_tables.MOST_ROWS]], len(infos)

    def __repr__(self) -> str:
        return _tables.text("wfs.Files", *self._rows())

    def _repr_html_(self) -> str:
        return _tables.html(*self._rows())


def _words(options: Mapping[str, Any]) -> list[str]:
    """Options as words: True is a flag, a list repeats the option, False and None leave it out."""
    words = []
    for name, value in options.items():
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is None or one is False:
                continue
            words.append(name if one is True else f"{name}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return words


def _context(threads: int, log: Optional[Callable[[str], None]]) -> Context:
    return shared_context() if threads == 0 and log is None else Context(threads, log)


def architectures() -> dict[str, Any]:
    """Lists the architectures of models that GGUF files are made of, as ``wfs info --architectures --json`` does."""
    result: dict[str, Any] = json.loads(call_for_text(lib.wfs_architectures_json, shared_context().pointer))
    return result


def compare(file: PathLike, source: PathLike, *, threads: int = 0, log: Optional[Callable[[str], None]] = None,
            **options: Any) -> dict[str, Any]:
    """Compares a GGUF with what wfs makes of a source, as ``wfs verify`` does: `answer`, `builds`, `tensors` that differ ...
    The other arguments are those of ``open()``, for the source."""
    context = _context(threads, log)
    text = stoppable(lambda: call_for_text(lib.wfs_compare, context.pointer, encode_path(file), encode_path(source),
                                            encode_words(_words(options)), path=(file, source)))
    result: dict[str, Any] = json.loads(text)
    return result


def compare_attestation(statement: PathLike, source: PathLike, *, threads: int = 0,
                        log: Optional[Callable[[str], None]] = None, **options: Any) -> dict[str, Any]:
    """Makes the statement of ``Model.attest()`` in a file again, as ``wfs verify --attestation`` does: `identical`,
    `differences` ... The options count before those of the statement; files that it names must be given again."""
    context = _context(threads, log)
    text = stoppable(lambda: call_for_text(lib.wfs_compare_attestation, context.pointer, encode_path(statement),
                                            encode_path(source), encode_words(_words(options)), path=(statement, source)))
    result: dict[str, Any] = json.loads(text)
    return result


def diff(a: PathLike, b: PathLike, *, threads: int = 0, log: Optional[Callable[[str], None]] = None,
         **options: Any) -> dict[str, Any]:
    """Compares the tensors and metadata of two sources of any format, as ``wfs diff`` does: `counts`, `tensors` and `keys`
    that differ. The options are those for opening a source, and hold for both."""
    context = _context(threads, log)
    text = stoppable(lambda: call_for_text(lib.wfs_diff, context.pointer, encode_path(a), encode_path(b),
                                            encode_words(_words(options)), path=(a, b)))
    result: dict[str, Any] = json.loads(text)
    return result


class Model:
    """An open model. It closes with close(), at the end of a `with`, or when nothing uses it. Pickled, or copied, it is
    opened again from its source."""

    def __init__(self, source: PathLike, threads: int = 0, log: Optional[Callable[[str], None]] = None,
                 **options: Any) -> None:
        self._handle: Optional[Handle] = None
        self._handle = Handle(source, _words(options), _context(threads, log))
        self.source = os.fspath(source)

    def _open_handle(self) -> Handle:
        if self._handle is None:
            raise ValueError("the model is closed")
        return self._handle

    def close(self) -> None:
        """Lets go of the model. Files, tensors and arrays that are still used keep its sources open."""
        self._handle = None

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<wfs.Model {self.source!r}>"

    def _repr_html_(self) -> str:
        return self.tensors._repr_html_() if self._handle is not None else _tables.escaped(repr(self))

    @property
    def tensors(self) -> Tensors:
        """The tensors by their names."""
        return Tensors(self._open_handle())

    @property
    def files(self) -> Files:
        """The files by their paths."""
        return Files(self._open_handle())

    @property
    def notes(self) -> list[str]:
        """Assumptions and omissions so far; opening files may add some."""
        pointer = self._open_handle().pointer
        return [lib.wfs_note(pointer, i).decode(errors="replace") for i in range(lib.wfs_note_count(pointer))]

    @property
    def metadata(self) -> dict[str, Any]:
        """What metadata.json says: the format, the source's own metadata, the tensors and the files."""
        text: dict[str, Any] = json.loads(self.read("metadata.json"))
        return text

    def info(self) -> dict[str, Any]:
        """What ``wfs info --json`` prints: `architecture`, `family`, `tokenizer`, `parameters`, `files`, `notes` ... Plans
        all files and opens all components;"""
        handle = self._open_handle()
        text = stoppable(lambda: call_for_text(lib.wfs_info_json, handle.pointer, path=self.source))
        result: dict[str, Any] = json.loads(text)
        return result

    def quantizations(self, *, all: bool = False) -> list[dict[str, Any]]:
        """What ``wfs info --quantization --json`` prints: `type`, `bytes`, `relative_error`, `recommended` ... of each quantized
        GGUF, measured in a sample of the weights or in `all`."""
        handle = self._open_handle()
        text = stoppable(lambda: call_for_text(lib.wfs_quantizations_json, handle.pointer, all, path=self.source))
        result: list[dict[str, Any]] = json.loads(text)
        return result

    def raw(self, path: PathLike) -> RawFile:
        """Opens a file without a buffer."""
        return RawFile(self._open_handle(), path)

    def open(self, path: PathLike) -> io.BufferedReader:
        """Opens a file for reading bytes; it can seek."""
        return io.BufferedReader(self.raw(path), _BUFFER)

    def read(self, path: PathLike, offset: int = 0, length: Optional[int] = None) -> bytes:
        """Reads bytes of a file: `length` of them from `offset` on, or all that follow."""
        with self.raw(path) as file:
            return file.pread(file.size if length is None else length, offset)

    def read_into(self, path: PathLike, offset: int, buffer: Any) -> int:
        """Fills a writable buffer with the bytes of a file from `offset` on; returns their number, fewer only at the
        end. Workers that read many ranges keep ``raw(path)`` open, and use its ``pread_into()``."""
        with self.raw(path) as file:
            return file.pread_into(buffer, offset)

    def parts(self, path: PathLike, n: int) -> list[tuple[int, int]]:
        """Divides a file into `n` parts that take about equal time to compute, for as many workers: the offset and
        length of each. Offsets are multiples of 64 KiB, the same on every machine; parts of a short file may be empty."""
        with self.raw(path) as file:
            return file.parts(n)

    def copy(self, path: PathLike, destination: PathLike, progress: Optional[Progress] = None) -> None:
        """Copies a file as ``wfs cp`` does. A regular file at `destination` is replaced when the copy is complete, and a
        link's target is written. A device or a FIFO is written in place, a directory gets the file. `progress` takes the
        bytes that are written, and the file's size; Ctrl-C, or an exception of `progress`, stops the copy and leaves nothing."""
        with self.raw(path) as file:
            file.copy_to(destination, progress)

    def attest(self, *paths: PathLike) -> str:
        """The in-toto statement of ``wfs attest`` for files, and all files of directories: their SHA-256, and that of each
        file they are made from. Reads them all;"""
        handle = self._open_handle()
        text: bytes = stoppable(lambda: call_for_text(lib.wfs_attest, handle.pointer, encode_words(paths), len(paths),
                                                       path=(self.source, *paths)))
        return text.decode()

    def why(self, path: PathLike) -> Optional[str]:
        """Why wfs does not make a file; None: the file is there."""
        try:
            self.files.stat(path)
        except WfsError as error:
            return error.strerror
        return None
