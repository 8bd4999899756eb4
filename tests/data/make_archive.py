#!/usr/bin/env python3
"""Writes a small archive with every coding, which all later versions of wfs must read: make_archive.py WFS ENCODE DIR

WFS is the program, ENCODE build/tests/interop/encode, DIR new: DIR/archive.wfs, and DIR/SHA256SUMS of the originals as
sha256sum writes it. Needs numpy. A release adds tests/data/archives/VERSION/; what is there never changes."""
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "interop"))
import codings  # noqa: E402

ROWS, COLUMNS = 32, 256
GGML = {"F32": (0, 1, 4), "F16": (1, 1, 2), "BF16": (30, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34),
        "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210), "IQ4_NL": (20, 32, 18), "IQ4_XS": (23, 256, 136)}
ENGINES = {"mlx-4-64-BF16-codes": "U32", "mlx-4-64-BF16-scale": "BF16", "mlx-4-64-BF16-bias": "BF16", "mlx-3-32-BF16-codes": "U32", "int-4-128-BF16-codes": "I32", "int-4-128-BF16-scale": "BF16",
           "nf4-4-64-F32-codes": "U8", "nf4-4-64-F32-scale": "F32", "fp4-4-64-F32-codes": "U8",
           "e4m3-8-128-BF16-codes": "F8_E4M3", "i8-8-128-BF16-codes": "I8", "e2m1-4-32-BF16-codes": "U8", "e2m1-4-16-F32-codes": "U8"}
random = np.random.default_rng(5)


def safetensors(path, tensors):
    head, at = {"__metadata__": {"filler": "x" * 70000}}, 0
    for name, (dtype, array) in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for _, array in tensors.values()))


def gguf(path, tensors):
    """tensors: name to type, rows, bytes."""
    text = lambda value: struct.pack("<Q", len(value)) + value.encode()
    filler = text("filler") + struct.pack("<I", 8) + text("y" * 70000)
    out, at, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1) + filler, 0, b""
    for name, (kind, rows, blob) in tensors.items():
        out += text(name) + struct.pack("<IQQIQ", 2, COLUMNS, rows, GGML[kind][0], len(data))
        data += blob + bytes(-len(blob) % 32)
    path.write_bytes(out + bytes(-len(out) % 32) + data)


def bf16(values):
    return (values.view(np.uint32) + 0x7FFF + (values.view(np.uint32) >> 16 & 1) >> 16).astype("<u2")


def pairs(values):
    """The rows of two heads with their halves as pairs, as in a GGUF."""
    return values.reshape(2, 2, ROWS // 4, COLUMNS).swapaxes(1, 2).reshape(ROWS, COLUMNS)


def make_sources(encode, top):
    quantize = lambda kind, values: subprocess.run([encode, kind], input=values.astype("<f4").tobytes(), capture_output=True, check=True).stdout
    weights = {name: (random.standard_normal((ROWS, COLUMNS)) * 0.02).astype("<f4") for name in "abd"}
    numbers = random.integers(-300, 300, 1500)
    (top / "one").mkdir()
    safetensors(top / "one/base.safetensors", {"a": ("F32", weights["a"]), "b": ("BF16", bf16(weights["b"])), "c": ("F64", random.standard_normal((2, COLUMNS))), "d": ("F16", weights["d"].astype("<f2")),
                                               "i": ("I16", numbers.astype("<i2")), "j": ("I32", numbers.astype("<i4")), "k": ("I64", numbers.astype("<i8")), "l": ("U8", (numbers % 7).astype("u1"))})
    (top / "one/text").write_bytes(b"".join(b"line %d\n" % i for i in range(300)))
    (top / "one/noise").write_bytes(random.bytes(500))
    (top / "one/zeros").write_bytes(bytes(5000))
    (top / "one/link").symlink_to("text")
    os.link(top / "one/text", top / "one/hard")
    (top / "two").mkdir()
    safetensors(top / "two/tuned.safetensors", {"a": ("F32", weights["a"] * np.float32(1.00001)), "b": ("BF16", (bf16(weights["b"]) + random.integers(0, 3, (ROWS, COLUMNS))).astype("<u2"))})
    follows = {f"a.{kind}": (kind, ROWS, quantize(kind, weights["a"])) for kind in GGML if GGML[kind][1] > 1}
    follows |= {"q": ("Q4_K", ROWS, quantize("Q4_K", pairs(weights["a"]))), "r": ("F16", ROWS, pairs(weights["a"]).astype("<f2").tobytes()),
                "s": ("BF16", ROWS, bf16(weights["a"]).tobytes()), "t": ("F32", ROWS, (bf16(weights["b"]).astype(np.uint32) << 16).tobytes())}
    gguf(top / "two/ladder.gguf", follows)
    large = bf16((random.standard_normal((ROWS, 2048)) * 0.02).astype("<f4"))
    safetensors(top / "one/large.safetensors", {"large": ("BF16", large)})
    values = (large.astype("<u4") << 16).view("<f4")
    safetensors(top / "two/engines.safetensors", {coding: (dtype, np.frombuffer(codings.compute(coding, values), "u1" if dtype[-1] == "8" or dtype[:2] == "F8" else "<u4" if dtype[1:] == "32" else "<u2")) for coding, dtype in ENGINES.items()})
    other = (random.standard_normal((8, COLUMNS)) * (random.random((8, COLUMNS)) < 0.3)).astype("<f4")
    gguf(top / "two/alone.gguf", {f"x.{kind}": (kind, 8, quantize(kind, other)) for kind in GGML if GGML[kind][1] > 1})


def main():
    wfs, encode, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        top = pathlib.Path(name)
        make_sources(encode, top)
        for source in "one", "two":
            subprocess.run([wfs, "pack", "-q", out / "archive.wfs", top / source], check=True)
        files = sorted(path for path in top.rglob("*") if path.is_file() and not path.is_symlink())
        (out / "SHA256SUMS").write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(top)}\n" for path in files))


if __name__ == "__main__":
    main()
