#!/usr/bin/env python3
"""Makes tests/data/quant/k_*: values, and what ggml makes of them.

    python3 tests/data/make_k_quants.py LIBGGML_BASE.so

LIBGGML_BASE.so is ggml's, as llama-cpp-python from PyPI brings it (llama_cpp/lib/libggml-base.so, made with 0.3.36). Needs numpy.
"""
import ctypes
import pathlib
import sys

import numpy as np

TYPES = {"q2_k": (10, 84), "q3_k": (11, 110), "q4_k": (12, 144), "q5_k": (13, 176), "q6_k": (14, 210)}
FOLDER = pathlib.Path(__file__).parent / "quant"


def values():
    """Ten blocks: ordinary weights, and what makes a search take its odd paths."""
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


def main():
    ggml = ctypes.CDLL(sys.argv[1])
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    ggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    source = values()
    source.tofile(FOLDER / "k_values.f32")
    for name, (number, block_bytes) in TYPES.items():
        blocks = np.zeros(len(source) // 256 * block_bytes, "u1")
        ggml.ggml_quantize_chunk(number, source.ctypes.data, blocks.ctypes.data, 0, 1, len(source), None)
        blocks.tofile(FOLDER / f"k_{name}.bin")


main()
