#!/usr/bin/env python3
"""Completes tests/data/merges.txt: tensors merged by mergekit, as hashes of their bytes.

    python3 tests/data/make_merges.py

Each line is a case: a method, a dtype, a shape, parameters, and the beginning of the SHA-256 of the merged tensor, which
is computed again for all lines; NaNs are made one first. Where a method computes sines in F32, cases are such that MKL's are those that are
rounded correctly. Values of the inputs are those of numbers() here and in tests/unit/quant/merge/merge.c. Needs
mergekit (made with 0.1.5) and torch (2.9.1).
"""
import hashlib
import pathlib

import numpy as np
import torch
from mergekit.merge_methods.api import merge_tensors

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
SHARED = {"normalize": bool, "rescale": bool, "lambda": float, "t": float, "eps": float, "select_topk": float, "filter_wise": bool,
          "nuslerp_flatten": bool, "nuslerp_row_wise": bool, "normalize_weights": bool, "max_iter": int, "tol": float}
OWN = ("weight", "scale", "density", "gamma", "epsilon")


def numbers(model, n, odd):
    """Values of a model; 0 is the base. The others are it plus a difference that is 0 in some runs of 64. odd: 1: some
    are infinite, NaN, -0 or huge; 2: all are 0."""
    i = np.arange(n, dtype=np.int64)
    base = (i * 7919 + 104729) % 10007 - 5003
    step = (i * (7907 + 2 * model) + i // 97 + model * 31) % 251 - 125
    step[(i // 64 % 8 == 5) | (model == 0)] = 0
    values = (base / 16384 + step / 2.0 ** (12 + model)).astype("f4")
    if odd == 2:
        values[:] = 0
    elif odd:
        for at, value in enumerate((np.inf, -np.inf, np.nan, -0.0, 1e38, 70000)):
            values[i % 1000 == 17 * at + model] = value
    return values


def merge(line):
    method, dtype, shape, *rest = line.split()
    shape = [int(size) for size in shape.split("x")]
    options = dict(option.split("=") for option in rest)
    n_models, base, odd = (int(options.pop(name, 0)) for name in ("models", "base", "odd"))
    n = int(np.prod(shape))
    inputs = [torch.tensor(numbers(model, n, odd).reshape(shape)) for model in range(1 - base, n_models + 1)]
    if "seed" in options:
        torch.manual_seed(int(options.pop("seed")))
        torch.empty(int(options.pop("skip", 0))).uniform_()
    parameters = {}
    for name, value in options.items():
        if name in OWN:
            values = [float(number) for number in value.split(",")]
            parameters[name] = dict(zip(range(base, base + n_models), values))
        else:
            parameters[name] = SHARED[name](int(value) if SHARED[name] is bool else value)
    out = merge_tensors(inputs, method, parameters=parameters, base_index=0 if base else None, dtype=DTYPES[dtype])
    assert out.dtype == DTYPES[dtype]
    out = out.masked_fill(out.isnan(), float("nan"))
    return hashlib.sha256(out.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()[:16]


def main():
    torch.set_num_threads(1)
    path = pathlib.Path(__file__).parent / "merges.txt"
    cases = [line.split(" sha256=")[0] for line in path.read_text().splitlines()]
    path.write_text("".join(f"{case} sha256={merge(case)}\n" for case in cases))


if __name__ == "__main__":
    main()
