"""safe_open() of the package safetensors, for every format that wfs reads."""
from __future__ import annotations

from typing import Any, Optional

from ._library import WfsError
from ._model import Model, PathLike
from ._tensors import Tensor, nearest_name

_FRAMEWORKS = {"np": "numpy", "numpy": "numpy", "pt": "torch", "torch": "torch", "pytorch": "torch"}
_BACKENDS = ("mmap", "pread")


_kinds: dict[Any, Any] = {}


def _kind(base: Any) -> Any:
    """The exception `base` that is also a SafetensorError, if there is a safetensors to take it from."""
    try:
        from safetensors import SafetensorError
    except ImportError:
        return base
    if base not in _kinds:
        text = BaseException.__str__ if base is KeyError else base.__str__
        _kinds[base] = type("SafetensorError", (SafetensorError, base), {"__str__": text})
    return _kinds[base]


class _Slice:
    """What get_slice() returns: the shape and type of a tensor, and its slices as arrays."""

    def __init__(self, opened: "safe_open", tensor: Tensor) -> None:
        self._opened, self._tensor = opened, tensor

    def get_shape(self) -> list[int]:
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        return self._tensor.dtype

    def __getitem__(self, index: Any) -> Any:
        return self._opened._indexed(self._tensor, index)


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _is_slice(index: Any) -> bool:
    """Reports whether an index is one of Tensor; torch takes more."""
    return all(part is Ellipsis or isinstance(part, slice) or type(part) is int for part in _parts(index))


def _check_steps(index: Any) -> None:
    for part in _parts(index):
        if isinstance(part, slice) and part.step is not None and part.step <= 0:
            raise _kind(ValueError)(f"Slice step must be a positive integer, got {part.step}")


class safe_open:
    """Opens a checkpoint in any format as safetensors.safe_open() opens one of safetensors.

    filename    a file, a directory, ORG/NAME or a URL, as for wfs.open()
    framework   "np" or "pt"
    device      for "pt"
    backend     "mmap" shows stored values where they are, "pread" copies them
    dtype       the type of all values: "f32"; None: the stored type, or "f32" where the framework has none
    options     those of wfs.open()

    Its exceptions are those of safetensors where that is installed, and those of wfs.open() and its tensors, too.
    """

    def __init__(self, filename: PathLike, framework: str, device: Any = "cpu", *, backend: str = "mmap",
                 dtype: Optional[str] = None, **options: Any) -> None:
        if framework not in _FRAMEWORKS:
            raise _kind(ValueError)(f"framework {framework} is invalid: wfs.safe_open() has 'np' and 'pt'")
        if backend not in _BACKENDS:
            raise _kind(ValueError)(f'backend "{backend}" is invalid (expected one of: "mmap", "pread")')
        self._framework, self._device, self._dtype = _FRAMEWORKS[framework], device, dtype
        self._copies = backend == "pread"
        try:
            self._model = Model(filename, **options)
        except FileNotFoundError:
            raise
        except WfsError as error:
            raise _kind(type(error))(error.errno, error.strerror, error.filename) from None
        self._tensors = self._model.tensors
        self._is_closed = False

    def __enter__(self) -> "safe_open":
        return self

    def __exit__(self, *unused: object) -> None:
        self._is_closed = True
        self._model.close()

    def _open_tensors(self) -> Any:
        if self._is_closed:
            raise _kind(ValueError)("File is closed")
        return self._tensors

    def _find(self, name: str) -> Tensor:
        tensors = self._open_tensors()
        if not isinstance(name, str):
            raise TypeError(f"argument 'name': {name!r} is not an instance of 'str'")
        if name not in tensors:
            raise _kind(KeyError)(f"File does not contain tensor {nearest_name(name, tensors)}")
        tensor: Tensor = tensors[name]
        return tensor

    def _values(self, tensor: Tensor) -> Any:
        if self._framework == "torch":
            return tensor.torch(self._dtype, self._device, self._copies)
        return tensor.numpy(self._dtype, self._copies)

    def _indexed(self, tensor: Tensor, index: Any) -> Any:
        """A slice in numpy, any index in torch: the rows of a list or mask are read alone, other indices read all."""
        _check_steps(index)
        if self._framework == "numpy":
            try:
                return self._values(tensor[index])
            except (IndexError, TypeError, ValueError) as error:
                raise _kind(type(error))(*error.args) from None
        if _is_slice(index):
            return self._values(tensor[index])
        import torch
        if not isinstance(index, tuple) and index is not None and tensor.ndim:
            rows = torch.as_tensor(index)
            if rows.dtype == torch.bool and rows.shape == tensor.shape[:1]:
                rows = rows.nonzero().flatten()
            if rows.dtype in (torch.int64, torch.int32) and rows.ndim == 1 and len(rows):
                return torch.stack([self._values(tensor[row]) for row in rows.tolist()])
        return self._values(tensor)[index]

    def keys(self) -> list[str]:
        """The names of the tensors, sorted."""
        return sorted(self._open_tensors())

    def offset_keys(self) -> list[str]:
        """The names of the tensors in the order of their bytes, file after file; those without a place of their own last."""
        self._open_tensors()
        metadata = self._model.metadata
        files = {source["name"]: number for number, source in enumerate(metadata["sources"])}

        def place(numbered: tuple[int, dict[str, Any]]) -> tuple[int, int, int, int]:
            number, tensor = numbered
            if tensor["offset"] is None:
                return len(files), 0, 0, number
            return files.get(tensor["source"], len(files)), tensor["offset"], tensor["length"], number

        names = list(self._tensors)
        return [names[number] for number, _ in sorted(enumerate(metadata["tensors"]), key=place)]

    def metadata(self) -> Optional[dict[str, str]]:
        """The source's own metadata, as texts; None: it has none."""
        self._open_tensors()
        found = self._model.metadata["metadata"]
        return {name: value if isinstance(value, str) else str(value) for name, value in found.items()} or None

    def get_tensor(self, name: str) -> Any:
        return self._values(self._find(name))

    def get_tensors(self) -> dict[str, Any]:
        """All tensors by their names, in the order of their bytes."""
        return {name: self.get_tensor(name) for name in self.offset_keys()}

    def get_slice(self, name: str) -> _Slice:
        return _Slice(self, self._find(name))
