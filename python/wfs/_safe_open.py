"""safe_open() of the package safetensors, for every format that wfs reads."""
from __future__ import annotations

from typing import Any, Optional

from ._model import Model, PathLike
from ._tensors import Index, Tensor

_FRAMEWORKS = {"np": "numpy", "numpy": "numpy", "pt": "torch", "torch": "torch", "pytorch": "torch"}


class _Slice:
    """What get_slice() returns: the shape and type of a tensor, and its slices as arrays."""

    def __init__(self, opened: "safe_open", tensor: Tensor) -> None:
        self._opened, self._tensor = opened, tensor

    def get_shape(self) -> list[int]:
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        return self._tensor.dtype

    def __getitem__(self, index: Index) -> Any:
        return self._opened._values(self._tensor[index])


class safe_open:
    """Opens a checkpoint in any format as safetensors.safe_open() opens one of safetensors.

    filename    a file, a directory, ORG/NAME or a URL, as for wfs.open()
    framework   "np" or "pt"
    device      for "pt"
    dtype       the type of all values: "f32"; None: the stored type, or "f32" where the framework has none
    options     those of wfs.open()
    """

    def __init__(self, filename: PathLike, framework: str, device: Any = "cpu", *, dtype: Optional[str] = None,
                 **options: Any) -> None:
        if framework not in _FRAMEWORKS:
            raise ValueError(f"framework {framework!r} is neither 'np' nor 'pt'")
        self._framework, self._device, self._dtype = _FRAMEWORKS[framework], device, dtype
        self._model = Model(filename, **options)
        self._tensors = self._model.tensors

    def __enter__(self) -> "safe_open":
        return self

    def __exit__(self, *unused: object) -> None:
        self._model.close()

    def _values(self, tensor: Tensor) -> Any:
        if self._framework == "torch":
            return tensor.torch(self._dtype, self._device)
        return tensor.numpy(self._dtype)

    def keys(self) -> list[str]:
        """The names of the tensors, sorted."""
        return sorted(self._tensors)

    def offset_keys(self) -> list[str]:
        """The names of the tensors in the order of their bytes, file after file; those without a place of their own last."""
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
        found = self._model.metadata["metadata"]
        return {name: value if isinstance(value, str) else str(value) for name, value in found.items()} or None

    def get_tensor(self, name: str) -> Any:
        return self._values(self._tensors[name])

    def get_slice(self, name: str) -> _Slice:
        return _Slice(self, self._tensors[name])
