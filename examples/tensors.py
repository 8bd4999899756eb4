#!/usr/bin/env python3
"""tensors.py MOUNTPOINT [PATTERN]: mean, standard deviation and extremes of the tensors whose names match.

f32.npy is there for every tensor of numbers, be it stored in BF16, FP8 or 4 bits. It is mapped: what is not read is not computed.
"""
import fnmatch
import json
import pathlib
import sys

import numpy

mountpoint = pathlib.Path(sys.argv[1])
pattern = sys.argv[2] if len(sys.argv) > 2 else "*"
model = json.loads((mountpoint / "metadata.json").read_text())
print(f"{'mean':>12} {'deviation':>12} {'least':>12} {'greatest':>12}  tensor")
for tensor in model["tensors"]:
    path = mountpoint / "tensors" / tensor["directory"] / "f32.npy"
    if fnmatch.fnmatch(tensor["name"], pattern) and tensor["elements"] > 0 and path.exists():
        values = numpy.load(path, mmap_mode="r")
        figures = values.mean(dtype="f8"), values.std(dtype="f8"), values.min(), values.max()
        print(*(f"{figure:12.5f}" for figure in figures), "", tensor["name"])
