"""A model of safetensors that is made without other packages, and what it holds."""
import importlib
import json
import os
import struct

import pytest

TENSORS = {
    "matrix": ("F32", [6, 64], struct.pack("<384f", *[(i % 97 - 40) / 8 for i in range(384)])),
    "half": ("F16", [4], struct.pack("<4e", 1, -2, 0.5, 65504)),
    "cube": ("BF16", [2, 3, 4], struct.pack("<24H", *range(0x3f80, 0x3f80 + 24))),
    "long": ("I64", [], struct.pack("<q", -7)),
    "empty": ("F32", [0, 3], b""),
    "a/b é": ("U8", [3], b"\1\2\3"),
}


def write_safetensors(path, tensors, metadata=None):
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "model.safetensors"
    write_safetensors(path, TENSORS, {"format": "pt"})
    return path


@pytest.fixture
def need():
    """Imports a package that a test needs; without it the test is skipped, or fails if WFS_TEST_STRICT is set."""
    def import_or_skip(name):
        if os.environ.get("WFS_TEST_STRICT"):
            return importlib.import_module(name)
        return pytest.importorskip(name)
    return import_or_skip
