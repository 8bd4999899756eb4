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
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

TYPES = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4".split()
FOLDER = pathlib.Path(__file__).parent / "quant"
DECODED = 512  # values kept in decoded form


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


def main():
    ggml = ctypes.CDLL(sys.argv[1])
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    source = values()
    source.tofile(FOLDER / "values.f32")
    absmax7(source).tofile(FOLDER / "q4_0_absmax7.blocks")
    for name in TYPES:
        number = GGMLQuantizationType[name]
        block_elements, block_bytes = GGML_QUANT_SIZES[number]
        blocks = np.zeros(len(source) // block_elements * block_bytes, "u1")
        ggml.ggml_quantize_chunk(int(number), source.ctypes.data, blocks.ctypes.data, 0, 1, len(source), None)
        blocks.tofile(FOLDER / f"{name.lower()}.blocks")
        kept = blocks[: DECODED // block_elements * block_bytes].reshape(2, -1)
        dequantize(kept, number).astype("<f4").tofile(FOLDER / f"{name.lower()}.f32")


main()
