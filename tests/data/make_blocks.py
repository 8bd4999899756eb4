#!/usr/bin/env python3
"""Makes tests/data/quant: values, what ggml makes of them in every block format, and what gguf-py decodes.

    python3 tests/data/make_blocks.py LIBGGML_BASE.so

LIBGGML_BASE.so is ggml's, as llama-cpp-python from PyPI brings it (llama_cpp/lib/libggml-base.so, made with 0.3.36). Needs
numpy and gguf (0.19).
"""
import ctypes
import pathlib
import sys

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

TYPES = {  # ggml's type number, elements and bytes of a block
    "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q8_1": (9, 32, 36),
    "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210),
    "Q8_K": (15, 256, 292), "IQ2_XXS": (16, 256, 66), "IQ2_XS": (17, 256, 74), "IQ3_XXS": (18, 256, 98), "IQ1_S": (19, 256, 50),
    "IQ4_NL": (20, 32, 18), "IQ3_S": (21, 256, 110), "IQ2_S": (22, 256, 82), "IQ4_XS": (23, 256, 136), "IQ1_M": (29, 256, 56),
    "TQ1_0": (34, 256, 54), "TQ2_0": (35, 256, 66), "MXFP4": (39, 32, 17), "NVFP4": (40, 64, 36), "Q1_0": (41, 128, 18),
    "Q2_0": (42, 64, 18),
}
ONLY_WEIGHTED = ("IQ1_S", "IQ2_XXS", "IQ2_XS")  # the library refuses to encode them without an importance of columns
FOLDER = pathlib.Path(__file__).parent / "quant"
DECODED = 512  # values kept in decoded form
COLUMNS = 1280  # of a row, for what looks at whole rows


def values():
    """Ten times 256 values: ordinary weights, and what makes a search take its odd paths."""
    random = np.random.default_rng(7)
    blocks = [
        random.normal(0, 0.02, 256),
        random.standard_t(2, 256) * 0.02,
        np.abs(random.normal(0, 1, 256)),
        -np.abs(random.normal(0, 1, 256)),
        np.zeros(256),
        np.full(256, 0.75),
        np.repeat(random.normal(0, 1, 16), 16),
        np.arange(256) * 0.01 - 1,
        np.where(np.arange(256) == 100, 50.0, random.normal(0, 0.01, 256)),
        random.normal(0, 1, 256) * 10.0 ** random.integers(-44, 2, 256),
    ]
    return np.concatenate(blocks).astype("<f4")


def absmax7(source):
    """Q4_0 by the other rule: d = amax / 7, round half away from zero, clamp to -8 .. 7."""
    rows = source.reshape(-1, 32)
    d = (np.abs(rows).max(1, keepdims=True) / np.float32(7)).astype("<f4")
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(d != 0, rows / d, np.float32(0)).astype("f4")
    levels = np.clip(np.trunc(x + np.copysign(np.float32(0.5), x)), -8, 7).astype("i1") + 8
    packed = (levels[:, :16] | levels[:, 16:] << 4).astype("u1")
    return np.concatenate([d.astype("<f2").view("u1").reshape(-1, 2), packed], axis=1)


def importance():
    """Of every column: of all magnitudes, some of none."""
    random = np.random.default_rng(8)
    return np.where(random.random(COLUMNS) < 0.02, 0, random.exponential(1, COLUMNS) ** 2).astype("<f4")


def encode(ggml, name, source, weights):
    number, block_elements, block_bytes = TYPES[name]
    blocks = np.zeros(len(source) // block_elements * block_bytes, "u1")
    if name.startswith("Q8_") and name != "Q8_0":
        function = getattr(ggml, f"quantize_row_{name[:2].lower()}{name[2:]}_ref")
        function(*map(ctypes.c_void_p, (source.ctypes.data, blocks.ctypes.data)), ctypes.c_int64(len(source)))
    else:
        pointer = weights.ctypes.data if weights is not None else None
        ggml.ggml_quantize_chunk(number, source.ctypes.data, blocks.ctypes.data, 0, len(source) // COLUMNS, COLUMNS, pointer)
    return blocks


def decode_q8(name, blocks):
    """ggml has no decoder of Q8_1."""
    rows = blocks.reshape(-1, TYPES[name][2])
    if name == "Q8_1":
        return rows[:, 4:].view("i1").astype("<f4") * rows[:, :2].copy().view("<f2").astype("<f4")
    return rows[:, :4].copy().view("<f4") * rows[:, 4:260].view("i1").astype("<f4")


def decode(ggml, name, blocks):
    if name in ("Q8_1", "Q8_K"):
        return decode_q8(name, blocks).astype("<f4")
    if name in ("Q1_0", "Q2_0", "NVFP4"):  # newer than gguf-py
        values = np.zeros(DECODED, "<f4")
        function = getattr(ggml, "dequantize_row_" + name.lower())
        function(*map(ctypes.c_void_p, (blocks.ctypes.data, values.ctypes.data)), ctypes.c_int64(DECODED))
        return values
    return dequantize(blocks.reshape(2, -1), GGMLQuantizationType[name]).astype("<f4")


def main():
    ggml = ctypes.CDLL(sys.argv[1])
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    source, weights = values(), importance()
    source.tofile(FOLDER / "values.f32")
    weights.tofile(FOLDER / "importance.f32")
    absmax7(source).tofile(FOLDER / "q4_0_absmax7.blocks")
    for name, (_, block_elements, block_bytes) in TYPES.items():
        plain = encode(ggml, name, source, None) if name not in ONLY_WEIGHTED else None
        weighted = encode(ggml, name, source, weights)
        if plain is not None:
            plain.tofile(FOLDER / f"{name.lower()}.blocks")
        if name != "IQ1_M" and (plain is None or weighted.tobytes() != plain.tobytes()):
            weighted.tofile(FOLDER / f"{name.lower()}.weighted.blocks")
        kept = (weighted if plain is None else plain)[: DECODED // block_elements * block_bytes]
        decode(ggml, name, kept).tofile(FOLDER / f"{name.lower()}.f32")


main()
