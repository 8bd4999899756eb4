"""Writes a store of Ollama into OUT: tiny (a GGUF with texts), tuned (with companions), packed (a blob for each tensor, and OUT/NAME.f32 with the values
of each), and broken models. GGUF is a file that serves as every GGUF."""
import hashlib
import json
import pathlib
import struct
import sys

import numpy as np

OUT, GGUF = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
RANDOM = np.random.default_rng(5)
TYPE = "application/vnd.ollama.image."


def layer(data, kind, name=None):
    digest = hashlib.sha256(data).hexdigest()
    path = OUT / "models/blobs" / f"sha256-{digest}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return {"mediaType": TYPE + kind, "digest": f"sha256:{digest}", "size": len(data), **({"name": name} if name else {})}


def manifest(path, layers):
    path = OUT / "models/manifests" / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))


def safetensors(tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, array in tensors.items():
        dtype = {"uint32": "U32", "uint8": "U8", "float32": "F32", "float16": "F16"}[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def e2m1(codes):
    return np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], "f4")[codes & 7] * np.where(codes & 8, np.float32(-1), np.float32(1))


def e4m3(codes):
    exponent, fraction = (codes >> 3 & 15).astype(int), (codes & 7).astype("f4")
    size = np.where(exponent == 0, np.ldexp(fraction, -9), np.ldexp(8 + fraction, exponent - 10))
    return (size * np.where(codes & 128, -1, 1)).astype("f4")


def packed(kind, name, group=None):
    """The blob of one weight of 3 x 128, and its values."""
    bits, usual = {"int4": (4, 64), "int8": (8, 64), "mxfp4": (4, 32), "mxfp8": (8, 32), "nvfp4": (4, 16)}[kind]
    group = group or usual
    codes = RANDOM.integers(0, 120 if bits == 8 else 16, (3, 128), dtype="u4")
    words = (codes.reshape(3, -1, 32 // bits) << np.arange(0, 32, bits, dtype="u4")).sum(-1, dtype="u4")
    shape = (3, 128 // group)
    tensors = {name: words}
    if kind.startswith("int"):
        scale, bias = (RANDOM.standard_normal(shape).astype("f2") for _ in range(2))
        tensors |= {f"{name}.scale": scale, f"{name}.bias": bias}
        values = codes.astype("f4") * np.repeat(scale.astype("f4"), group, 1) + np.repeat(bias.astype("f4"), group, 1)
    else:
        scale = RANDOM.integers(100, 126, shape, dtype="u1")
        tensors[f"{name}.scale"] = scale
        factors = e4m3(scale) if kind == "nvfp4" else np.ldexp(np.float32(1), scale.astype(int) - 127)
        values = (e4m3(codes) if kind == "mxfp8" else e2m1(codes)) * np.repeat(factors, group, 1)
    if kind == "nvfp4":
        tensors[f"{name}.global_scale"] = np.array(0.011, "f4")
        values = values * np.float32(0.011)
    return layer(safetensors(tensors, {"quant_type": kind, "group_size": str(group)}), "tensor", name), values


gguf = GGUF.read_bytes()
library = "registry.ollama.ai/library"
texts = [layer(b"{{ .Prompt }}", "template"), layer(b'{"stop":["x"]}', "params"), layer(b"Free.\n", "license"), layer(b"Be terse.", "system")]
manifest(f"{library}/tiny/latest", [layer(gguf, "model"), *texts])
manifest("hf.co/someone/Tiny.GGUF/F16", [layer(gguf, "model")])
manifest(f"{library}/tuned/v2", [layer(gguf, "model"), layer(b"GGUF projector", "projector"), layer(b"GGUF adapter", "adapter"), layer(b"GGUF draft", "draft")])
layers = []
for kind in ("int4", "int8", "mxfp4", "mxfp8", "nvfp4"):
    blob, values = packed(kind, f"model.{kind}.weight")
    layers.append(blob)
    (OUT / f"model.{kind}.weight.f32").write_bytes(values.astype("<f4").tobytes())
stack = RANDOM.standard_normal((2, 3, 4)).astype("f4")
codes, scale = RANDOM.integers(0, 256, (2, 3, 16), dtype="u4").astype("u4"), RANDOM.integers(16, 90, (2, 3, 8), dtype="u1")
experts = {"model.experts.up_proj.weight": stack, "model.experts.down_proj.weight": codes, "model.experts.down_proj.weight.scale": scale,
           "model.experts.down_proj.weight.global_scale": np.array(0.5, "f4")}  # fmt: skip
layers.append(layer(safetensors(experts, {}), "tensor", "model.experts"))
(OUT / "up.f32").write_bytes(stack[1].tobytes())
nibbles = (codes[1][:, :, None] >> np.arange(0, 32, 4, dtype="u4") & 15).reshape(3, 128)
(OUT / "down.f32").write_bytes((e2m1(nibbles) * np.repeat(e4m3(scale[1]), 16, 1) * np.float32(0.5)).astype("<f4").tobytes())
folders = [layer(b'{"word_embedding_dimension": 4}', "json", "1_Pooling/config.json"), layer(b"a", "json", "a/b/c.txt"),
           layer(b"x", "json", "a/../x"), layer(b"y", "json", "/y"), layer(b"z", "json", "a//z")]
manifest(f"{library}/packed/latest", [*layers, layer(b'{"architectures": ["Unknown"]}', "json", "config.json"), *folders])
config = layer(b'{"architectures": ["Unknown"]}', "json", "config.json")
manifest(f"{library}/odd/latest", [packed("int8", "model.odd.weight", 32)[0], config])  # in the shapes of int4
missing = {"mediaType": TYPE + "model", "digest": "sha256:" + "0" * 64, "size": 9}
manifest(f"{library}/unfinished/latest", [missing])
(OUT / "models/blobs" / ("sha256-" + "0" * 64 + "-partial")).write_bytes(b"GGUF")
manifest(f"{library}/gone/latest", [{**missing, "digest": "sha256:" + "1" * 64}])
manifest(f"{library}/escapes/latest", [{**missing, "digest": "sha256:../../../etc/passwd"}])
manifest(f"{library}/longer/latest", [{**layer(gguf, "model"), "size": len(gguf) + 1}])
