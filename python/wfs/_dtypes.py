"""Types of tensors, and what numpy and torch call them. Neither is imported before it is needed."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    import numpy
    import torch

_NUMPY = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "i64": "<i8", "i32": "<i4", "i16": "<i2", "i8": "i1", "u64": "<u8",
          "u32": "<u4", "u16": "<u2", "u8": "u1", "bool": "?", "c64": "<c8", "c128": "<c16"}
_ML_DTYPES = {"bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2", "f8_e8m0": "float8_e8m0fnu",
              "f8_e4m3fnuz": "float8_e4m3fnuz", "f8_e5m2fnuz": "float8_e5m2fnuz"}
_TORCH = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
          "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
          "bool": "bool", "c64": "complex64", "c128": "complex128", "f8_e4m3": "float8_e4m3fn",
          "f8_e5m2": "float8_e5m2", "f8_e8m0": "float8_e8m0fnu", "f8_e4m3fnuz": "float8_e4m3fnuz",
          "f8_e5m2fnuz": "float8_e5m2fnuz"}

_MADE_BY_WFS = {"f32", "f16", "bf16"}  # of each tensor, besides types of blocks
_FRAMEWORK_NAMES = {theirs: ours for ours, theirs in _TORCH.items()}


def own_name(dtype: Any) -> str:
    """The name that wfs gives to a type, which may be numpy's, torch's or a name of theirs: "f32", "float32",
    numpy.float32, torch.float32."""
    name = str(dtype).removeprefix("torch.")
    if not isinstance(dtype, str) and name == str(dtype):
        import numpy
        name = str(numpy.dtype(dtype).name)
    name = name.lower()
    return _FRAMEWORK_NAMES.get(name, name)


def is_cast(name: str, own: str) -> bool:
    """Reports whether numpy or torch turn a tensor of type `own` into one of this type, because wfs does not."""
    return name in _TORCH and name not in _MADE_BY_WFS and name != own


def numpy_has(name: str) -> bool:
    return name in _NUMPY


def torch_has(name: str) -> bool:
    return name in _TORCH


def numpy_dtype(name: str) -> Optional["numpy.dtype[Any]"]:
    """The numpy type of a name, with the help of ml_dtypes for types that numpy lacks; None: it is a type of blocks."""
    import numpy
    if name in _NUMPY:
        return numpy.dtype(_NUMPY[name])
    if name not in _ML_DTYPES:
        return None
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(f"numpy has no {name}: ask for 'f32', or install ml_dtypes") from None
    kind: numpy.dtype[Any] = numpy.dtype(getattr(ml_dtypes, _ML_DTYPES[name]))
    return kind


def torch_dtype(name: str) -> Optional["torch.dtype"]:
    """The torch type of a name; None: it is a type of blocks, or this torch lacks it."""
    import torch
    kind: Optional[torch.dtype] = getattr(torch, _TORCH[name], None) if name in _TORCH else None
    return kind
