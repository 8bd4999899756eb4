#!/usr/bin/env python3
"""metadata.py MOUNTPOINT: what metadata.json tells of a model. Its keys are described in docs/metadata.md."""
import collections
import json
import pathlib
import sys

with open(pathlib.Path(sys.argv[1]) / "metadata.json") as file:
    model = json.load(file)
if model["schema"] != 1:
    sys.exit(f"metadata.json is of schema {model['schema']}, which this program does not know")

print(f"{model['name']}: {model['parameters']} parameters in {len(model['tensors'])} tensors of {model['format']}")

by_dtype = collections.Counter()
for tensor in model["tensors"]:
    by_dtype[tensor["dtype"]] += tensor["bytes"]
for dtype, size in by_dtype.most_common():
    print(f"{size:>16} bytes of {dtype}")

print("the largest tensors:")
for tensor in sorted(model["tensors"], key=lambda tensor: -tensor["elements"])[:3]:
    print(f"{tensor['elements']:>16} {tensor['name']} {tensor['shape']}")

for note in model["notes"]:
    print("note:", note)
