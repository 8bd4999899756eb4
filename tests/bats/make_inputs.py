"""Inputs for the tests of this folder: make_inputs.py WHAT PATH.

    dtypes FILE         a safetensors file with a tensor of every kind that views differ in
    infinite FILE       a tensor with an infinite weight in its second half
    many FILE COUNT     a file of that many small tensors
    large FILE          one BF16 tensor of 64 MiB
"""
import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "data"))
import make  # noqa: E402

random = numpy.random.default_rng(7)


def normal(*shape):
    return random.standard_normal(shape, dtype=numpy.float32)


def dtypes(path):
    words = random.integers(0, 1 << 16, (6, 255), dtype=numpy.uint16)
    tensors = {
        "f64": ("F64", [5, 7], normal(5, 7).astype("<f8").tobytes()),
        "f32": ("F32", [64, 512], normal(64, 512).tobytes()),
        "f16": ("F16", [33, 96], normal(33, 96).astype("<f2").tobytes()),
        "bf16": ("BF16", [16, 256], make.bf16(normal(16, 256))),
        "any.bf16": ("BF16", [6, 255], words.tobytes()),
        "any.f8": ("F8_E4M3", [16, 16], bytes(range(256))),
        "i64": ("I64", [9], random.integers(-(1 << 62), 1 << 62, 9).tobytes()),
        "u8": ("U8", [256], bytes(range(256))),
        "i8": ("I8", [32, 8], random.integers(-128, 128, (32, 8), dtype=numpy.int8).tobytes()),
        "bool": ("BOOL", [5], bytes([0, 1, 1, 0, 1])),
        "c64": ("C64", [4], normal(8).tobytes()),
        "scalar": ("F32", [], normal(1).tobytes()),
        "empty": ("F32", [0, 32], b""),
        "a/b: c%": ("F32", [32], normal(32).tobytes()),
        "..": ("F32", [2], normal(2).tobytes()),
        "": ("F32", [2], normal(2).tobytes()),
        "n" * 300: ("F32", [2], normal(2).tobytes()),
    }
    pathlib.Path(path).write_bytes(make.safetensors(tensors, {"format": "pt"}))


def infinite(path):
    values = normal(64, 64)
    values[40, 3] = numpy.inf
    pathlib.Path(path).write_bytes(make.safetensors({"infinite": ("F32", [64, 64], values.tobytes())}))


def many(path, count):
    zeros = bytes(8)
    names = (f"model.layers.{i // 64}.experts.{i % 64}.weight" for i in range(int(count)))
    pathlib.Path(path).write_bytes(make.safetensors({name: ("BF16", [4], zeros) for name in names}))


def large(path):
    values = make.bf16(normal(8192, 128))
    pathlib.Path(path).write_bytes(make.safetensors({"large": ("BF16", [8192, 4096], values * 32)}))


globals()[sys.argv[1]](*sys.argv[2:])
