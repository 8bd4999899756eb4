"""The file system `wfs` of fsspec: fsspec.open("wfs://SOURCE!/gguf/model-Q4_K_M.gguf").

A URL is wfs://SOURCE!/PATH: SOURCE is what wfs.open() takes, PATH is a file of the model. Storage options are those of
wfs.open(). Without SOURCE! the storage option `source` names it.

fsspec's caches (simplecache, filecache, blockcache) keep files by their paths alone. They get paths that begin with the
source and a digest of the options, so that one cache directory serves many models.
"""
from __future__ import annotations

import hashlib
import json
import sys
from types import FrameType
from typing import Any, Optional

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from ._model import FileInfo, Model, RawFile

_PREFIX, _SEPARATOR = "wfs://", "!/"
_CACHES = "fsspec.implementations.cached"


def _identity(source: str, options: dict[str, Any]) -> str:
    """The text that tells this model from others, in paths for caches."""
    text = json.dumps(options, sort_keys=True, default=str)
    return f"{source}?{hashlib.sha256(text.encode()).hexdigest()[:16]}" if options else source


def _is_of_caches(frame: FrameType) -> bool:
    """Reports whether a function of a cache called, or one that a cache inherits."""
    return _CACHES in (frame.f_globals.get("__name__"), type(frame.f_locals.get("self")).__module__)


class WfsFile(AbstractBufferedFile):  # type: ignore[misc]
    """A file that fsspec buffers, by blocks of `blocksize` bytes. A pickled one opens its model again."""

    def __init__(self, system: "WfsFileSystem", path: str, raw: RawFile, *arguments: Any, **options: Any) -> None:
        self._raw = raw
        super().__init__(system, path, *arguments, **{**options, "size": raw.size})

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._raw.pread(max(end - start, 0), start)

    def close(self) -> None:
        super().close()
        self._raw.close()


class WfsFileSystem(AbstractFileSystem):  # type: ignore[misc]
    protocol = "wfs"
    root_marker = ""

    def __init__(self, source: Any = None, **options: Any) -> None:
        if source is None:
            raise ValueError("no model is named: write wfs://SOURCE!/PATH, or pass source=")
        ours = {name: value for name, value in options.items() if name not in _FSSPEC_OPTIONS}
        super().__init__(**{name: value for name, value in options.items() if name in _FSSPEC_OPTIONS})
        self.model = Model(source, **ours)
        self._source = str(source)
        self._identity = _identity(self._source, ours)
        self._strip_protocol = self._strip_for_caller  # of this instance: caches call it, and fsspec's own functions

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        text = str(path)
        if text.startswith(_PREFIX):
            text = text[len(_PREFIX):]
        if _SEPARATOR in text:
            text = text.split(_SEPARATOR, 1)[1]
        return text.strip("/")

    def _for_caches(self, path: Any) -> Any:
        if isinstance(path, list):
            return [self._for_caches(one) for one in path]
        return self._identity + _SEPARATOR + path

    def _strip_for_caller(self, path: Any) -> Any:
        stripped = type(self)._strip_protocol(path)
        return self._for_caches(stripped) if _is_of_caches(sys._getframe(1)) else stripped

    def expand_path(self, path: Any, *arguments: Any, **options: Any) -> Any:
        paths = super().expand_path(path, *arguments, **options)
        return self._for_caches(paths) if _is_of_caches(sys._getframe(1)) else paths

    def unstrip_protocol(self, name: str) -> str:
        return f"{_PREFIX}{self._source}{_SEPARATOR}{type(self)._strip_protocol(name)}"

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        text = path[len(_PREFIX):] if path.startswith(_PREFIX) else path
        source, separator, _ = text.partition(_SEPARATOR)
        return {"source": source} if separator else {}

    @staticmethod
    def _describe(info: FileInfo) -> dict[str, Any]:
        kind = "directory" if info.is_directory else "file"
        return {"name": info.path, "size": info.size, "type": kind, "mtime": info.mtime}

    def ls(self, path: str, detail: bool = True, **unused: Any) -> list[Any]:
        path = self._strip_protocol(path)
        info = self.model.files.stat(path)
        infos = self.model.files.list(path) if info.is_directory else [info]
        return [self._describe(one) if detail else one.path for one in infos]

    def info(self, path: str, **unused: Any) -> dict[str, Any]:
        return self._describe(self.model.files.stat(self._strip_protocol(path)))

    def modified(self, path: str) -> Any:
        import datetime
        return datetime.datetime.fromtimestamp(self.info(path)["mtime"], datetime.timezone.utc)

    def _open(self, path: str, mode: str = "rb", block_size: Optional[int] = None, autocommit: bool = True,
              cache_options: Any = None, **options: Any) -> WfsFile:
        if mode != "rb":
            raise OSError(f"{path}: the files of wfs can only be read, not opened with mode {mode!r}")
        raw = self.model.raw(self._strip_protocol(path))
        return WfsFile(self, path, raw, mode, block_size or "default", autocommit, cache_options=cache_options, **options)

    def cat_file(self, path: str, start: Optional[int] = None, end: Optional[int] = None, **unused: Any) -> bytes:
        with self.model.raw(self._strip_protocol(path)) as file:
            first, last, _ = slice(start, end).indices(file.size)
            return file.pread(max(last - first, 0), first)


_FSSPEC_OPTIONS = {"use_listings_cache", "listings_expiry_time", "max_paths", "skip_instance_cache", "asynchronous",
                   "loop"}
