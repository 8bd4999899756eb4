"""numpy reads every view of every dtype of a mounted file: fromfile, load with mmap, and by mmap of the module."""
import json
import struct
import tempfile

import ml_dtypes
import numpy as np

from interop import check, done, mounted

FLOATS = {"F16": np.float16, "BF16": ml_dtypes.bfloat16, "F32": np.float32, "F64": np.float64,
          "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E8M0": ml_dtypes.float8_e8m0fnu}
INTEGERS = {"I8": np.int8, "U8": np.uint8, "I16": np.int16, "U16": np.uint16, "I32": np.int32, "U32": np.uint32,
            "I64": np.int64, "U64": np.uint64, "BOOL": np.bool_}
NO_NUMPY = {"BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0"}


def make_arrays():
    random = np.random.default_rng(3)
    arrays = {}
    for name, dtype in FLOATS.items():
        values = np.abs(random.normal(0, 2, (3, 5, 64))) if name == "F8_E8M0" else random.normal(0, 2, (3, 5, 64))
        arrays[f"floats.{name}"] = (name, values.astype(dtype))
    for name, dtype in INTEGERS.items():
        whole = random.integers(0, 2**63, (7, 32), dtype=np.uint64)
        arrays[f"integers.{name}"] = (name, (whole % 2).astype(bool) if name == "BOOL" else whole.astype(dtype))
    arrays["complex"] = ("C64", (random.normal(size=9) + 1j * random.normal(size=9)).astype(np.complex64))
    arrays["scalar"] = ("F32", np.float32(1.5).reshape(()))
    arrays["empty"] = ("F16", np.zeros((0, 4), np.float16))
    return arrays


def write(path, arrays):
    header, data = {"__metadata__": {"made by": "test_numpy.py"}}, b""
    for name, (dtype, array) in arrays.items():
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def same(a, b):
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def check_tensor(folder, name, dtype, array):
    check((folder / "raw").read_bytes() == array.tobytes(), f"{name}: raw")
    check(same(np.fromfile(folder / "raw", array.dtype).reshape(array.shape), array), f"{name}: fromfile")
    check((folder / "raw.npy").exists() == (dtype not in NO_NUMPY), f"{name}: raw.npy")
    if (folder / "raw.npy").exists():
        check(same(np.load(folder / "raw.npy"), array), f"{name}: raw.npy loads")
    if dtype == "C64":
        check(not (folder / "f32").exists(), "complex numbers have no f32")
        return
    exact = array.astype(np.float32)
    check(same(np.load(folder / "f32.npy"), exact), f"{name}: f32.npy")
    if exact.size:
        check(same(np.load(folder / "f32.npy", mmap_mode="r"), exact), f"{name}: f32.npy by mmap")
    with np.errstate(over="ignore"):
        check(same(np.load(folder / "f16.npy"), exact.astype(np.float16)), f"{name}: f16.npy")
        check(same(np.fromfile(folder / "bf16", ml_dtypes.bfloat16).reshape(exact.shape), exact.astype(ml_dtypes.bfloat16)),
              f"{name}: bf16")


def main():
    arrays = make_arrays()
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/all.safetensors"
        write(path, arrays)
        with mounted(path) as mountpoint:
            described = {t["name"]: t for t in json.loads((mountpoint / "metadata.json").read_text())["tensors"]}
            check(set(described) == set(arrays), "metadata.json lists every tensor")
            for name, (dtype, array) in arrays.items():
                check_tensor(mountpoint / "tensors" / name, name, dtype, array)
                check(described[name]["dtype"] == dtype and described[name]["shape"] == list(array.shape), f"{name}: described")
                for view in described[name]["views"]:
                    check((mountpoint / view["path"]).stat().st_size == view["size"], f"{view['path']}: size")
    done()


if __name__ == "__main__":
    main()
