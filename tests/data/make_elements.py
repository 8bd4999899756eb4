#!/usr/bin/env python3
"""Makes tests/data/quant/elements: elements of every type that has a number, and these numbers in F32; values, and their F16
and BF16.

    python3 tests/data/make_elements.py

Needs numpy (made with 2.4), ml_dtypes (0.6) and, for BF16 as the converter makes it, gguf (0.19).
"""
import pathlib

import ml_dtypes
import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import quantize

FOLDER = pathlib.Path(__file__).parent / "quant" / "elements"
BYTES = np.arange(256, dtype="u1")
ML_DTYPES = {
    "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E8M0": ml_dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "BF16": ml_dtypes.bfloat16,
}
NUMPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "U64": "<u8", "I32": "<i4", "U32": "<u4", "I16": "<i2",
         "U16": "<u2", "I8": "i1", "U8": "u1"}


def write(name, elements, values):
    elements.tofile(FOLDER / f"{name}.elements")
    values.astype("<f4").tofile(FOLDER / f"{name}.f32")


def integers(dtype, random):
    """The ends, small numbers, and around what F32 can still tell apart or has to round."""
    limits = np.iinfo(dtype)
    bits = np.array([1 << i for i in range(limits.bits - (limits.min < 0))], dtype=object)
    odd = np.concatenate([bits, bits - 1, bits + 1, 3 * bits // 2 + 1, -bits, (1 << 24) * np.arange(1, 6) + 1, random.integers(0, 1 << 40, 64)])
    return np.array([value for value in odd if limits.min <= value <= limits.max] + [limits.min, limits.max], dtype=dtype)


def floats(random):
    """F32 bits: ordinary values, ties of F16 and BF16 and their neighbours, ends of ranges, subnormals, infinities, NaN."""
    halves = random.integers(0, 0x7C00, 200, dtype="u2").view("f2").astype("f4").view("u4")
    brains = random.integers(0, 0x7F80, 200, dtype="u4") << 16
    ends = np.array([65504, 65519.99, 65520, 65536, 2**-14, 2**-24, 2**-25, 2**-26, 3.4e38, 0], "f4").view("u4")
    special = np.array([0x7F800000, 0x7FC00000, 0x7F800001, 0x7FA00000, 0x7F812345, 0x7FFFFFFF, 0x7F7FFFFF, 0x00000001, 0x007FFFFF], "u4")
    bits = np.concatenate([halves, halves + 0x1000, halves + 0xFFF, halves + 0x1001, brains + 0x7FFF, brains + 0x8000, brains + 0x8001, ends, ends + 1, special])
    return np.concatenate([bits, bits | 0x80000000]).astype("<u4").view("<f4")


def main():
    random = np.random.default_rng(3)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with np.errstate(all="ignore"):
        for name, dtype in ML_DTYPES.items():
            elements = random.integers(0, 1 << 16, 1024, dtype="<u2") if name == "BF16" else BYTES
            write(name, elements, elements.view(dtype).astype("f4"))
        for name, dtype in NUMPY.items():
            if dtype[-2] == "f":
                elements = random.integers(0, 256, 1024 * int(dtype[-1]), dtype="u1").view(dtype)
                if name == "F64":
                    elements = np.concatenate([elements, random.normal(0, 1, 256), [1e-46, 1e-40, 3.5e38, 1 + 2**-24, 1 + 3 * 2**-24]])
            else:
                elements = integers(dtype, random)
            write(name, elements, elements.astype("f4"))
        write("BOOL", BYTES, (BYTES != 0).astype("f4"))
        pairs = np.stack([BYTES & 15, BYTES >> 4], axis=1)
        write("F4", BYTES, pairs.view(ml_dtypes.float4_e2m1fn).astype("f4"))
        quarters = np.stack([BYTES >> shift & 3 for shift in (0, 2, 4, 6)], axis=1)
        for name, elements in {"I4": pairs, "U4": pairs, "I2": quarters, "U2": quarters}.items():
            write(name, BYTES, elements.astype("i1").astype(getattr(ml_dtypes, name.replace("I", "int").replace("U", "uint"))).astype("f4"))
        values = floats(random)
        values.tofile(FOLDER / "values.f32")
        values.astype("<f2").tofile(FOLDER / "values.F16")
        quantize(values, GGMLQuantizationType.BF16).tofile(FOLDER / "values.BF16")


main()
