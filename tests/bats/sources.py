"""Small checkpoints in the formats of other frameworks, each with its tensors, or with the reason why it is refused.

    sources.py make FOLDER
    sources.py check WFS FOLDER FORMAT

FOLDER/FORMAT has the files of a format, which this script writes byte for byte as the format's own library does.
"""
import json
import os
import subprocess
import sys
import zipfile

import numpy

GOOD, BAD = {}, {}


def good(name, **tensors):
    """Expects those arrays of a file; a pair is a dtype's name and an array of its bits."""
    GOOD[name] = {tensor: value if isinstance(value, tuple) else (value.dtype, value) for tensor, value in tensors.items()}


def bad(name, reason):
    """Expects that a file is refused with that reason."""
    BAD[name] = reason


# .pt2

SCALAR_TYPES = {"u1": 1, "i4": 4, "i8": 5, "f2": 6, "f4": 7, "f8": 8, "?": 12}


def meta(array, dtype=None, **changed):
    strides = [stride // array.itemsize for stride in array.strides]
    fields = {
        "dtype": dtype or SCALAR_TYPES[array.dtype.str.lstrip("<>|").replace("b1", "?")],
        "sizes": [{"as_int": size} for size in array.shape], "strides": [{"as_int": stride} for stride in strides],
        "storage_offset": {"as_int": 0}, "layout": 7, "device": {"type": "cpu", "index": None}, "requires_grad": False,
    }
    return {**fields, **changed}


def entry(path, tensor_meta, **changed):
    return {"path_name": path, "is_param": True, "use_pickle": False, "tensor_meta": tensor_meta, **changed}


def pt2(path, members, config=None, prefix="model/", method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(prefix + name, data)
        if config is not None:
            archive.writestr(prefix + "data/weights/model_weights_config.json", json.dumps({"config": config}))
        archive.writestr(prefix + "archive_format", "pt2")
        archive.writestr(prefix + "byteorder", "little")


def make_pt2(folder):
    random = numpy.random.default_rng(1)
    matrix = random.standard_normal((3, 4)).astype("f4")
    bits = numpy.array([0x3F80, 0xC000], "u2")
    members = {f"data/weights/weight_{i}": array.tobytes() for i, array in enumerate((matrix, bits, numpy.array(7)))}
    config = {"w": entry("weight_0", meta(matrix)), "tied": entry("weight_0", meta(matrix)),
              "t": entry("weight_0", meta(matrix.T)), "row": entry("weight_0", meta(matrix[1], storage_offset={"as_int": 4})),
              "b": entry("weight_1", meta(bits, 13)), "n": entry("weight_2", meta(numpy.array(7))),
              "none": entry("weight_2", meta(numpy.zeros((0, 3), "f4")))}
    wanted = {"w": matrix, "tied": matrix, "t": matrix.T, "row": matrix[1], "b": ("BF16", bits), "n": numpy.array(7),
              "none": numpy.zeros((0, 3), "f4")}
    for name, options in {"stored": {}, "deflated": {"method": zipfile.ZIP_DEFLATED}, "flat": {"prefix": ""}}.items():
        pt2(f"{folder}/{name}.pt2", members, config, **options)
        good(name + ".pt2", **wanted)
    constants = json.dumps({"config": {"c": entry("tensor_0", meta(matrix)), "object": entry("custom_obj_0", None)}})
    pt2(f"{folder}/constants.pt2", {**members, "data/constants/tensor_0": matrix.tobytes(), "data/constants/custom_obj_0": b"x",
                                    "data/constants/model_constants_config.json": constants}, config)
    good("constants.pt2", c=matrix, **wanted)
    two = {f"data/weights/{name}_weights_config.json": json.dumps({"config": {"w": config["w"]}}) for name in "ab"}
    pt2(f"{folder}/two.pt2", {**members, **two})
    good("two.pt2", **{"a.w": matrix, "b.w": matrix})
    refused = {
        "missing": (entry("weight_9", meta(matrix)), "'w': its member is missing from the archive"),
        "outside": (entry("../../data/weights/weight_0", meta(matrix)), "'w': its member is missing from the archive"),
        "long": (entry("weight_0", meta(numpy.zeros((4, 4), "f4"))), "elements [0, +16) of F32 in a storage of 48 bytes"),
        "offset": (entry("weight_0", meta(matrix, storage_offset={"as_int": 1})), "elements [1, +12) of F32"),
        "far": (entry("weight_0", meta(matrix, storage_offset={"as_int": 2**64 - 1})), "elements [18446744073709551615, +12)"),
        "negative": (entry("weight_0", meta(matrix, sizes=[{"as_int": -3}, {"as_int": 4}])), "sizes are not numbers"),
        "symbol": (entry("weight_0", meta(matrix, sizes=[{"as_expr": "s0"}, {"as_int": 4}])), "sizes are not numbers"),
        "huge": (entry("weight_0", meta(matrix, sizes=[{"as_int": 2**62}, {"as_int": 4}])), "its size in bytes overflows"),
        "strides": (entry("weight_0", meta(matrix, strides=[{"as_int": 4}])), "strides are not as many numbers as sizes"),
        "layout": (entry("weight_0", meta(matrix, layout=1)), "its layout is not strided"),
        "dtype": (entry("weight_0", meta(matrix, 99)), "its dtype is unknown"),
        "pickle": (entry("weight_0", meta(matrix), use_pickle=True), "not a torch checkpoint"),
    }
    for name, (value, reason) in refused.items():
        pt2(f"{folder}/{name}.pt2", members, {"w": value})
        bad(name + ".pt2", reason)
    pt2(f"{folder}/empty.pt2", members, {})
    bad("empty.pt2", "it holds no tensors")
    pt2(f"{folder}/library.pt2", {"data/aotinductor/model/x.so": b"x"})
    bad("library.pt2", "its weights are inside a compiled library")
    with zipfile.ZipFile(f"{folder}/other.pt2", "w") as archive:
        archive.writestr("model/x", b"x")
    bad("other.pt2", "not torch.export's: archive_format is missing")


MAKERS = {"pt2": make_pt2}


def make(folder):
    for name, maker in MAKERS.items():
        os.mkdir(f"{folder}/{name}")
        GOOD.clear()
        BAD.clear()
        maker(f"{folder}/{name}")
        good_texts = {file: {tensor: [str(dtype), list(value.shape), value.tobytes().hex()]
                             for tensor, (dtype, value) in tensors.items()} for file, tensors in GOOD.items()}
        with open(f"{folder}/{name}.json", "w", encoding="ascii") as file:
            json.dump({"good": good_texts, "bad": BAD}, file)


# The answers of wfs.

NAMES = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "int32": "I32", "uint8": "U8", "uint16": "U16", "bool": "BOOL"}


def run(*words):
    return subprocess.run(words, capture_output=True, check=False)


def check_good(wfs, path, wanted):
    result = run(wfs, "cat", path, "metadata.json")
    assert result.returncode == 0, (path, result.stderr)
    tensors = {tensor["name"]: tensor for tensor in json.loads(result.stdout)["tensors"]}
    assert set(tensors) == set(wanted), (path, set(tensors) ^ set(wanted))
    for name, (dtype, shape, values) in wanted.items():
        assert tensors[name]["dtype"] == NAMES.get(dtype, dtype) and tensors[name]["shape"] == shape, (path, tensors[name])
        shown = run(wfs, "cat", path, f"tensors/{tensors[name]['directory']}/raw")
        assert shown.returncode == 0 and shown.stdout.hex() == values, (path, name, shown)


def check_bad(wfs, path, reason):
    result = run(wfs, "cat", path, "metadata.json")
    message = result.stderr.decode()
    assert result.returncode == 1 and reason in message and message.count("\n") == 1, (path, result)


def check(wfs, folder, name):
    with open(f"{folder}/{name}.json", encoding="ascii") as file:
        expected = json.load(file)
    assert expected["good"] and expected["bad"]
    for file, wanted in expected["good"].items():
        check_good(wfs, f"{folder}/{name}/{file}", wanted)
    for file, reason in expected["bad"].items():
        check_bad(wfs, f"{folder}/{name}/{file}", reason)


if __name__ == "__main__":
    {"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])
