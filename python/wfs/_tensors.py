"""Tensors: lazy, sliced without reading, converted when they are read."""
from __future__ import annotations

import ctypes
import difflib
import operator
from collections.abc import Collection, Iterator, Mapping
from ctypes import byref, c_size_t, c_uint64
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Sequence, Union

from . import _dtypes, _tables
from ._handle import Handle
from ._library import Slice, Tensor as _Tensor, call, lib, mapped_view
from ._long import pieces

if TYPE_CHECKING:
    import numpy
    import torch

_LEAST_MAPPED = 64 << 10  # bytes; fewer are read, which takes less time than a mapping
_MOST_COMPARED = 10_000  # names; to compare a typed name with more takes too long
_FIRST_PIECE = 1 << 20  # elements

Index = Union[int, slice, "ellipsis", tuple[Union[int, slice, "ellipsis"], ...]]  # noqa: F821


class _Axis(NamedTuple):
    """The indices of an axis of the whole tensor: start, start + step, ..."""
    start: int
    length: int
    step: int  # negative: backwards, of at least two
    shown: bool  # an axis that an integer has taken away is not

    def ascending(self) -> "_Axis":
        """The same indices in the order in which they are read."""
        return self if self.step > 0 else _Axis(self.start + (self.length - 1) * self.step, self.length, -self.step, self.shown)


def _cut(axis: _Axis, index: Any) -> _Axis:
    if isinstance(index, slice):
        start, stop, step = index.indices(axis.length)
        count = len(range(start, stop, step))
        return _Axis(axis.start + start * axis.step if count else axis.start, count, axis.step * step if count > 1 else 1, True)
    try:
        number = operator.index(index) if not isinstance(index, bool) else None  # which numpy takes for a mask
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"a tensor is sliced by integers, slices and ..., not by {type(index).__name__}; its numpy() takes any index")
    if not -axis.length <= number < axis.length:
        raise IndexError(f"index {number} is out of range for an axis of {axis.length}")
    return _Axis(axis.start + number % axis.length * axis.step, 1, 1, False)


class Tensor:
    """A tensor, or a slice of one. Nothing is read before numpy(), torch() or tobytes()."""

    def __init__(self, handle: Handle, index: int, name: str, dtype: str, axes: Sequence[_Axis], whole: bool,
                 refusal: Optional[str]) -> None:
        self._handle = handle
        self._index = index
        self._axes = tuple(axes)
        self._whole = whole
        self._refusal = refusal
        #: Its name, as in the source.
        self.name = name
        #: The type of its values as the source stores them: "BF16", "Q4_K".
        self.dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.length for axis in self._axes if axis.shown)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of its elements, as numpy counts them."""
        return _product(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements as the source stores them."""
        return self._size("raw", self._slices())

    @property
    def refusal(self) -> Optional[str]:
        """Why its values cannot be read; None: they can."""
        return self._refusal

    def __reduce__(self) -> Any:
        return _tensor_again, (self._handle, self.name, self.dtype, self._axes, self._whole)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a scalar")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """Its rows, each a tensor that is read when it is needed; of a single axis the values, as numpy's."""
        return iter(self.__array__()) if self.ndim == 1 else (self[i] for i in range(len(self)))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> "numpy.ndarray[Any, Any]":
        """numpy.asarray(tensor), and numpy's functions of it: as numpy(), which gives BF16, F8 and blocks as F32. With
        copy=False it fails unless the array shows the file."""
        array = self._array(None, copy)
        if dtype is None or array.dtype == dtype:
            return array
        if copy is False:
            raise ValueError(f"{self.name}: values of type {array.dtype} cannot be shown as {dtype} without a copy")
        return array.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        """torch.from_dlpack(tensor), jax.numpy.from_dlpack(tensor): as numpy()."""
        import numpy
        array = self.numpy()
        return (numpy.ascontiguousarray(array) if self._backwards() else array).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # the processor's memory

    __hash__ = object.__hash__  # though == compares values, as of torch's tensors

    def __bool__(self) -> bool:
        return bool(self.__array__())

    def __float__(self) -> float:
        return float(self.__array__())

    def __int__(self) -> int:
        return int(self.__array__())

    def __contains__(self, value: Any) -> bool:
        return value in self.__array__()

    def __repr__(self) -> str:
        return f"<wfs.Tensor {self.name!r} {self.dtype} {list(self.shape)}>"

    def __getitem__(self, index: Index) -> "Tensor":
        """A slice: t[3], t[10:20, ::2], t[..., 0]. Reading it reads only the stored bytes it is computed from."""
        indices = list(index) if isinstance(index, tuple) else [index]
        shown = [i for i, axis in enumerate(self._axes) if axis.shown]
        n_ellipses = sum(1 for one in indices if one is Ellipsis)
        if n_ellipses > 1:
            raise IndexError("a slice can have only one ...")
        if n_ellipses == 0:
            indices.append(Ellipsis)
        at = next(i for i, one in enumerate(indices) if one is Ellipsis)
        n_rest = len(shown) - (len(indices) - 1)
        if n_rest < 0:
            raise IndexError(f"{len(indices) - 1} indices for a tensor of {len(shown)} axes")
        indices[at:at + 1] = [slice(None)] * n_rest
        axes = list(self._axes)
        for i, one in zip(shown, indices):
            axes[i] = _cut(axes[i], one)
        return Tensor(self._handle, self._index, self.name, self.dtype, axes, self._whole and axes == list(self._axes),
                      self._refusal)

    def _backwards(self) -> list[int]:
        """The shown axes that go backwards: they are read forwards, and then turned round."""
        shown = [axis for axis in self._axes if axis.shown]
        return [i for i, axis in enumerate(shown) if axis.step < 0] if self.size else []

    def _check_backwards(self, size: int) -> None:
        """Fails where a value of `size` bytes would have to be turned round inside blocks."""
        if self.ndim - 1 in self._backwards() and size % self.size != 0:
            raise ValueError(f"{self.name}: a slice of blocks cannot go backwards in the last axis; one of its values can: numpy(\"f32\")")

    def _slices(self) -> Any:
        return None if self._whole else _slices_of(self._axes)

    def _size(self, dtype: str, slices: Any) -> int:
        size = c_uint64()
        call(lib.wfs_tensor_size, self._handle.pointer, self._index, dtype.encode(), slices, byref(size))
        return size.value

    def _read(self, dtype: str, slices: Any, address: int, size: int) -> None:
        """Reads the values, a long tensor by rows, so that Ctrl-C is noticed."""
        rows = self._axes[0].ascending() if self._axes else _Axis(0, 1, 1, False)
        n_elements = _product([axis.length for axis in self._axes])
        if rows.length <= 1 or size % rows.length != 0 or n_elements <= _FIRST_PIECE:
            return self._read_slice(dtype, slices, address, size)
        row_size = size // rows.length
        for begin, end in pieces(0, rows.length, _FIRST_PIECE * rows.length // n_elements):
            axes = [_Axis(rows.start + begin * rows.step, end - begin, rows.step, True), *self._axes[1:]]
            self._read_slice(dtype, _slices_of(axes), address + begin * row_size, (end - begin) * row_size)

    def _read_slice(self, dtype: str, slices: Any, address: int, size: int) -> None:
        self._handle.call(lib.wfs_tensor_read, self._handle.pointer, self._index, dtype.encode(), slices, address, size)

    def _map(self, dtype: str, slices: Any, alignment: int) -> Optional[memoryview]:
        """Its bytes in a mapping of their own; None: they must be read."""
        size = c_uint64()
        if self._size(dtype, slices) < _LEAST_MAPPED:
            return None
        address = lib.wfs_tensor_map(self._handle.pointer, self._index, dtype.encode(), slices, byref(size))
        view = mapped_view(address, size.value) if address is not None else None
        return view if view is not None and address % alignment == 0 else None

    def tobytes(self, dtype: Any = "raw") -> bytes:
        """Its bytes in a type: those of the file tensors/NAME/DTYPE; "raw" is the stored one."""
        dtype, slices = _dtypes.own_name(dtype), self._slices()
        size = self._size(dtype, slices)
        out = bytearray(size)
        self._check_backwards(size)
        self._read(dtype, slices, ctypes.addressof((ctypes.c_char * size).from_buffer(out)) if size else 0, size)
        for axis in self._backwards():
            _turn_round(out, self.shape[axis], size // _product(self.shape[:axis + 1]))
        return bytes(out)

    def _array(self, dtype: Any, copy: Optional[bool]) -> "numpy.ndarray[Any, Any]":
        """The array of numpy(). `copy` is that of numpy.array(): False never copies, and None only if it must."""
        import numpy
        own = self.dtype.lower()
        name = _dtypes.own_name(dtype) if dtype is not None else own if _dtypes.numpy_has(own) else "f32"
        is_raw = name == "raw"
        kind = None if is_raw and not _dtypes.numpy_has(own) else _dtypes.numpy_dtype(own if is_raw else name)
        if kind is not None and _dtypes.is_cast(name, own):
            if copy is False:
                raise ValueError(f"{self.name}: values of type {own} cannot be shown as {kind} without a copy")
            return self._array(None, None).astype(kind)
        slices = self._slices()
        mapped = self._map(name, slices, kind.alignment if kind is not None else 1) if not copy else None
        if mapped is not None:
            array = numpy.frombuffer(mapped, numpy.uint8)
        elif copy is False:
            raise ValueError(f"{self.name}: its values are read or computed, which is a copy")
        else:
            array = numpy.empty(self._size(name, slices), numpy.uint8)
            self._read(name, slices, array.ctypes.data, array.nbytes)
        rows, backwards = self.shape[:-1], self._backwards()
        if kind is not None and array.nbytes == kind.itemsize * _product(self.shape):
            array = array.view(kind).reshape(self.shape)
        elif _product(rows):
            self._check_backwards(array.nbytes)
            array = array.reshape(*rows, array.nbytes // _product(rows))
        return numpy.flip(array, tuple(backwards)) if backwards else array

    def numpy(self, dtype: Any = None, copy: bool = False) -> "numpy.ndarray[Any, Any]":
        """Its values as an array.

        dtype   "f32", "f16", "i8" ..., numpy's and torch's types and their names; None: the stored type if numpy has it, else "f32" (of BF16, F8 and blocks).
                "bf16" and "f8_..." need ml_dtypes. A type of blocks, such as "q4_k", gives their bytes.
        copy    False: where a file stores the values, the array shows the file until it is written to
        """
        return self._array(dtype, copy or None)

    def torch(self, dtype: Any = None, device: Any = "cpu", copy: bool = False) -> "torch.Tensor":
        """Its values as a tensor of torch. dtype and copy as in numpy(); None: the stored type, "f32" for types of blocks.
        """
        import torch
        own = self.dtype.lower()
        name = _dtypes.own_name(dtype) if dtype is not None else own if _dtypes.torch_has(own) else "f32"
        kind = _dtypes.torch_dtype(name)
        if kind is None:
            raise TypeError(f"torch has no {name}")
        if _dtypes.is_cast(name, own):
            return self.torch().to(device, kind)
        slices = self._slices()
        mapped = self._map(name, slices, kind.itemsize) if not copy else None
        if mapped is not None:
            tensor = torch.frombuffer(mapped, dtype=kind).reshape(self.shape)
        else:
            tensor = torch.empty(self.shape, dtype=kind)
            self._read(name, slices, tensor.data_ptr(), tensor.numel() * tensor.element_size())
        tensor = tensor.flip(self._backwards()) if self._backwards() else tensor
        return tensor if str(device) == "cpu" else tensor.to(device)


def _by_numpy(function: Callable[..., Any], swapped: bool = False) -> Callable[..., Any]:
    """Makes an operator of a tensor that of numpy(), which gives an array."""
    def method(self: Tensor, *other: Any) -> Any:
        return function(*other, self.__array__()) if swapped else function(self.__array__(), *other)
    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and_", "or_", "xor"):
    _function = getattr(operator, _name)
    setattr(Tensor, f"__{_name.rstrip('_')}__", _by_numpy(_function))
    setattr(Tensor, f"__r{_name.rstrip('_')}__", _by_numpy(_function, swapped=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"):
    setattr(Tensor, f"__{_name}__", _by_numpy(getattr(operator, _name)))


def _slices_of(axes: Sequence[_Axis]) -> Any:
    return (Slice * max(len(axes), 1))(*[Slice(*axis.ascending()[:3]) for axis in axes])


def _turn_round(data: bytearray, length: int, size: int) -> None:
    """Reverses each run of `length` items of `size` bytes."""
    n_bytes = length * size
    for at in range(0, len(data), n_bytes):
        run = data[at:at + n_bytes]
        if size <= 16:
            for i in range(size):
                data[at + i:at + n_bytes:size] = run[i::size][::-1]
        else:
            for i in range(length):
                data[at + i * size:at + (i + 1) * size] = run[n_bytes - (i + 1) * size:n_bytes - i * size]


def _tensor_again(handle: Handle, name: str, dtype: str, axes: Sequence[_Axis], whole: bool) -> Tensor:
    """The tensor of another process, or a copy. Fails if the source has another one of that name now."""
    tensor = Tensors(handle)[name]
    if tensor.dtype != dtype or len(tensor._axes) != len(axes) or (whole and tensor._axes != tuple(axes)):
        raise ValueError(f"tensor {name!r} has another type or shape than when it was pickled")
    return Tensor(handle, tensor._index, name, dtype, axes, whole, tensor.refusal)


def nearest_name(name: str, names: Collection[str]) -> str:
    """What an error says of a name that is not among those."""
    nearest = difflib.get_close_matches(name, names, 1) if len(names) < _MOST_COMPARED else []
    return f"{name!r}; did you mean {nearest[0]!r}?" if nearest else name


def _product(numbers: Sequence[int]) -> int:
    product = 1
    for number in numbers:
        product *= number
    return product


class Tensors(Mapping[str, Tensor]):
    """The tensors of a model by their names, in the order of the source."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __len__(self) -> int:
        count: int = lib.wfs_tensor_count(self._handle.pointer)
        return count

    def _at(self, index: int) -> Tensor:
        told = _Tensor()
        call(lib.wfs_tensor_at, self._handle.pointer, index, byref(told))
        name = ctypes.string_at(told.name, told.name_length).decode(errors="surrogateescape")
        axes = [_Axis(0, told.shape[i], 1, True) for i in range(told.rank)]
        refusal = told.refusal.decode(errors="replace") if told.refusal is not None else None
        return Tensor(self._handle, index, name, told.dtype.decode(), axes, True, refusal)

    def _find(self, name: object) -> Optional[int]:
        if not isinstance(name, str):
            return None
        raw, index = name.encode(errors="surrogateescape"), c_size_t()
        found = lib.wfs_tensor_find(self._handle.pointer, raw, len(raw), byref(index), None)
        return index.value if found else None

    def __getitem__(self, name: str) -> Tensor:
        index = self._find(name)
        if index is None:
            raise KeyError(nearest_name(str(name), self))
        return self._at(index)

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (self._at(i).name for i in range(len(self)))

    def _rows(self) -> _tables.Table:
        first = [self._at(i) for i in range(min(len(self), _tables.MOST_ROWS))]
        return ["tensor", "type", "shape"], [(one.name, one.dtype, str(list(one.shape))) for one in first], len(self)

    def __repr__(self) -> str:
        return _tables.text("wfs.Tensors", *self._rows())

    def _repr_html_(self) -> str:
        return _tables.html(*self._rows())
