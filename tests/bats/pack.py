"""Sources of archives: pack.py models DIR | small DIR | times DIR | tuned DIR | half DIR | large DIR | experts DIR. Values are random, with a fixed seed."""
import json
import os
import struct
import sys

import numpy as np


def save(path, tensors):
    head, at = {}, 0
    for name, (dtype, array) in tensors.items():
        head[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(head).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, array in tensors.values():
            file.write(array.tobytes())


def models(top):
    """The same tensors in two files, and as BF16, in a folder with all kinds of names."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((300, 200), np.float32) * 0.02 for _ in range(2))
    bf16 = (a.view(np.uint32) >> 16).astype(np.uint16)
    os.makedirs(f"{top}/sub/empty")
    os.makedirs(f"{top}/a/b")
    save(f"{top}/f32.safetensors", {"a": ("F32", a), "b": ("F32", b)})
    save(f"{top}/sub/other.safetensors", {"x.b": ("F32", b), "x.a": ("F32", a)})
    save(f"{top}/bf16.safetensors", {"a": ("BF16", bf16)})
    np.save(f"{top}/ints.npy", np.arange(70000, dtype=np.int64))
    for name, text in (("a-b", b"x"), ("a/c", b"y"), ("a/b/deep", b"z"), ("empty", b""), ("new\nline", b"n"), (" -rf ", b"r"),
                       (os.fsdecode(b"\xff\xfe"), b"not UTF-8"), ("zeros", bytes(300000)), ("text", b"words " * 40000)):
        with open(f"{top}/{name}", "wb") as file:
            file.write(text)
    os.link(f"{top}/text", f"{top}/sub/hard")
    os.symlink("../f32.safetensors", f"{top}/sub/link")
    os.symlink("nowhere", f"{top}/dangling")
    os.symlink("loop", f"{top}/loop")
    os.symlink("sub", f"{top}/folder-link")
    os.symlink(b"\xff", f"{top}/odd-link")
    os.chmod(f"{top}/text", 0o600)
    os.chmod(f"{top}/a/c", 0o755)
    os.chmod(f"{top}/sub", 0o750)
    times(top)


def small(top):
    """A few files, for tests that pack them many times."""
    os.makedirs(f"{top}/sub/empty")
    noise = np.random.default_rng(4).bytes(30000)
    for name, text in (("noise", noise), ("sub/half", noise[:15000]), ("sub/text", b"words " * 1000)):
        with open(f"{top}/{name}", "wb") as file:
            file.write(text)
    os.link(f"{top}/sub/half", f"{top}/hard")
    os.symlink("sub/half", f"{top}/link")
    os.chmod(f"{top}/sub", 0o750)
    times(top)


def times(top):
    """Gives everything a time of its own."""
    for i, (at, folders, files) in enumerate(os.walk(top, topdown=False)):
        for j, name in enumerate(sorted(files) + sorted(folders)):
            os.utime(os.path.join(at, name), ns=(0, 10**18 + i * 10**9 + j), follow_symlinks=False)
    os.utime(top, ns=(0, 10**18 + 999))


def tuned(top):
    """A model, and the same after some training, in BF16 and F32."""
    rng = np.random.default_rng(2)
    base = rng.standard_normal((700, 500), np.float32) * 0.02
    os.makedirs(top)
    for name, weights in (("base", base), ("tuned", base + rng.standard_normal(base.shape, np.float32) * 1e-5)):
        bf16 = (weights.view(np.uint32) >> 16).astype(np.uint16)
        save(f"{top}/{name}.safetensors", {"b": ("BF16", bf16), "f": ("F32", weights)})


def half(top):
    """A model of six tensors, and another that has one of them, one that is trained further, and its own."""
    rng = np.random.default_rng(5)
    base = {f"w{i}": rng.standard_normal((200, 100), np.float32) for i in range(6)}
    tuned = base["w1"] + rng.standard_normal((200, 100), np.float32) * 1e-6
    for name, tensors in (("base", base), ("tuned", {"w0": base["w0"], "w1": tuned, "w2": rng.standard_normal((200, 100), np.float32)})):
        os.makedirs(f"{top}/{name}")
        save(f"{top}/{name}/model.safetensors", {key: ("F32", tensor) for key, tensor in tensors.items()})


def large(top):
    """A model of 8 MB, and the same after some training."""
    rng = np.random.default_rng(6)
    base = {f"w{i}": rng.standard_normal((128, 4096), np.float32) for i in range(4)}
    os.makedirs(top)
    for name, step in (("base", 0), ("tuned", 1e-6)):
        tensors = {key: ("F32", tensor + rng.standard_normal(tensor.shape, np.float32) * np.float32(step)) for key, tensor in base.items()}
        save(f"{top}/{name}.safetensors", tensors)


def experts(top):
    """The experts of a layer as tensors of their own, and in one."""
    rng = np.random.default_rng(3)
    weights = rng.standard_normal((8, 64, 128), np.float32)
    os.makedirs(top)
    save(f"{top}/apart.safetensors", {f"experts.{i}.w": ("F32", weights[i]) for i in range(8)})
    save(f"{top}/together.safetensors", {"experts.w": ("F32", weights)})


if __name__ == "__main__":
    {"models": models, "small": small, "times": times, "tuned": tuned, "half": half, "large": large, "experts": experts}[sys.argv[1]](sys.argv[2])
