#!/usr/bin/env python3
"""Writes tests/data/safetensors: files as the safetensors library writes them (the files here: 0.8.0).

    make_safetensors.py DIR     as in: make_safetensors.py tests/data/safetensors
"""

import pathlib
import sys

import numpy
import safetensors

BITS = {"BOOL": 8, "F4": 4, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
        "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64}  # fmt: skip
SPELLED = {
    "BOOL": "bool", "F4": "float4_e2m1fn_x2", "F8_E5M2": "float8_e5m2", "F8_E4M3": "float8_e4m3fn", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz", "BF16": "bfloat16", "C64": "complex64",
}  # fmt: skip

KEPT = []  # the library is given addresses only


def spelled(dtype):
    """As the library wants to be told."""
    kind = {"F": "float", "I": "int", "U": "uint"}
    return SPELLED.get(dtype) or kind[dtype[0]] + dtype[1:]


def tensor(dtype, shape):
    n_elements = 1
    for dimension in shape:
        n_elements *= dimension
    n_bytes = n_elements * BITS[dtype] // 8
    if dtype == "F4":  # two in a byte, which the library counts as one
        shape = [*shape[:-1], shape[-1] // 2]
    values = numpy.arange(n_bytes, dtype=numpy.uint8) % 2
    KEPT.append(values)
    return safetensors.TensorSpec(dtype=spelled(dtype), shape=shape, data_ptr=values.ctypes.data, data_len=n_bytes)


FILES = {
    "dtypes": ({f"{'zyx'[i % 3]}.{dtype}": tensor(dtype, [2, 4]) for i, dtype in enumerate(BITS)}, {"format": "pt"}),
    "names": (
        {
            name: tensor("F32", [1])
            for name in ("a", "Z", "a.10", "a.2", "é", "b", "", "a\"b\\c", "\n\r\t\b\f\x01\x1f\x7f", "a/b", "\u2028", "😀", "a\0b", "￾", "a ")
        },
        {"format": "pt"},
    ),
    "shapes": (
        {"scalar": tensor("I64", []), "none": tensor("I64", [0, 3]), "one": tensor("I64", [1, 1, 1]), "bytes": tensor("U8", [3])},
        None,
    ),
    "nothing": ({}, None),
    "metadata": ({"a": tensor("F32", [2])}, {"a\tb\"é": "\\\x7f"}),
    "no-metadata": ({"abc": tensor("F32", [2])}, {}),
}  # fmt: skip

directory = pathlib.Path(sys.argv[1])
directory.mkdir(exist_ok=True)
for name, (tensors, metadata) in FILES.items():
    (directory / f"{name}.safetensors").write_bytes(safetensors.serialize(tensors, metadata=metadata))
