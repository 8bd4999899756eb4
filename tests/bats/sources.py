"""Small checkpoints in the formats of other frameworks, each with its tensors, or with the reason why it is refused.

    sources.py make FOLDER
    sources.py check WFS FOLDER FORMAT
    sources.py large-pickle FILE    6 GB of zeros before a small array, which take no room on the disk
    sources.py shards FOLDER        a sharded checkpoint of safetensors, with its index
    sources.py part FILE            what one process of torch.distributed.checkpoint's HuggingFaceStorageWriter saves
    sources.py parts FOLDER         what three of its processes save, whole and with faults
    sources.py arrays FILE          arrays one after another, as numpy.save() appends them
    sources.py others FOLDER        files that wfs does not read
    sources.py no-tensors FILE      a torch archive of options
    sources.py unreadable FOLDER    arrays of numpy, each beside one that cannot be shown
    sources.py odd FILE [KEY]            a pickle with tensors that cannot be shown beside one that can

FOLDER/FORMAT has the files of a format, which this script writes byte for byte as the format's own library does.
"""
import collections
import io
import json
import os
import pickle
import struct
import subprocess
import sys
import types
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


# Paddle


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def parameter(number, array, dims=None):
    description = field(1, number) + b"".join(field(2, size % 2**64) for size in (dims or array.shape))
    return bytes(16) + struct.pack("<i", len(description)) + description + array.tobytes()


def pir(names):
    operations = [{"#": "1.data", "A": []}] + [{"#": "p", "A": [0, 1, 1, name]} for name in names]
    return json.dumps({"program": {"regions": [{"blocks": [{"ops": operations}]}]}}).encode()


def program_desc(names):
    kinds = [("feed", 9, 1), ("x", 7, 0)] + [(name, 7, 1) for name in names]
    variables = b"".join(field(3, field(1, name.encode()) + field(2, field(1, kind)) + field(3, persistable))
                         for name, kind, persistable in kinds)
    return field(1, field(1, 0) + variables) + field(4, field(1, 0))


def static(folder, name, program, tensors, ending=".json", data=".pdiparams"):
    os.mkdir(f"{folder}/{name}")
    for file, content in (("inference" + data, tensors), ("inference" + ending, program)):
        with open(f"{folder}/{name}/{file}", "wb") as out:
            out.write(content)


class Variable:
    """What paddle.save() pickles for a tensor in a nested dictionary."""

    def __init__(self, array):
        self.array = array

    def __reduce__(self):
        return tuple, (("linear_0.w_0", self.array),)


def make_paddle(folder):
    matrix, vector = numpy.arange(6, dtype="f4").reshape(2, 3), numpy.arange(3, dtype="i8")
    both = parameter(5, matrix) + parameter(3, vector)
    static(folder, "pir", pir("ba"), both)
    static(folder, "desc", program_desc("ba"), both, ".pdmodel")
    for name in ("pir", "desc"):
        good(name, a=matrix, b=vector)
    static(folder, "nameless", b"", both, ".txt")
    bad("nameless", "the program that has its tensors' names, .json or .pdmodel, is not beside it")
    wrong = {
        "fewer": (pir("a"), both, "offset 50: more bytes than the program's parameters take"),
        "more": (pir("abc"), both, "c: inference.pdiparams: offset 98: truncated"),
        "twice": (pir("aa"), both, "two parameters named a"),
        "unnamed": (pir([None]), both, "parameter 0 has no name"),
        "none": (pir(""), both, "a program without parameters"),
        "broken": (b"{", both, "inference.json: "),
        "short": (pir("ab"), both[:-1], "truncated: a tensor has more bytes than are left"),
        "version": (pir("ab"), b"\1" + both[1:], "offset 0: not the beginning of a tensor"),
        "type": (pir("a"), parameter(99, matrix), "a tensor of an unknown dtype"),
        "negative": (pir("a"), parameter(5, matrix, (-1, 3)), "too many or negative dimensions"),
        "huge": (pir("a"), parameter(5, matrix, (2**62, 3)), "whose size in bytes overflows"),
    }
    for name, (program, tensors, reason) in wrong.items():
        static(folder, name, program, tensors)
        bad(name, reason)
    slices = {"big@@.0": matrix.ravel()[:2], "big@@.1": matrix.ravel()[2:], "small": vector}
    key = "UnpackBigParamInfor@@"

    def sliced(name, info, **more):
        with open(f"{folder}/{name}.pdparams", "wb") as out:
            pickle.dump({**slices, **more, key: info}, out, protocol=2)

    names = ["big@@.0", "big@@.1"]
    sliced("sliced", {"big": {"OriginShape": (2, 3), "slices": names}})
    good("sliced.pdparams", big=matrix, small=vector)
    for name, info, reason in (
        ("missing", {"big": {"OriginShape": (2, 3), "slices": [*names, "big@@.2"]}}, "slice 2 of an array is missing"),
        ("repeated", {"big": {"OriginShape": (2, 2), "slices": names[:1] * 2}}, "slice 1 of an array is missing"),
        ("unfilled", {"big": {"OriginShape": (2, 4), "slices": names}}, "do not fill its OriginShape"),
        ("mixed", {"big": {"OriginShape": (5,), "slices": ["big@@.0", "small"]}}, "slice 1 of an array is not a vector of its dtype"),
        ("shapeless", {"big": {"slices": names}}, "without a name, slices or OriginShape"),
    ):
        sliced(name, info)
        bad(name + ".pdparams", reason)
    with open(f"{folder}/nested.pdparams", "wb") as out:
        pickle.dump({"model": {"0.weight": Variable(matrix)}, "opt": {"m": Variable(vector), "step": 1}}, out, protocol=4)
    good("nested.pdparams", **{"model.0.weight": matrix, "opt.m": vector})


# ggml before GGUF


def ggml_tensor(name, array, kind, at=None, dims=None):
    dims = dims or array.shape[::-1]
    out = struct.pack(f"<{3 + len(dims)}I", len(dims), len(name), kind, *dims) + name.encode()
    padding = -(at + len(out)) % 32 if at is not None else 0
    return out + bytes(padding) + array.tobytes()


def tokens(*texts, score=b""):
    return b"".join(struct.pack("<I", len(text)) + text + score for text in texts)


def whisper(tensors, ftype=1, vocabulary=tokens(b"a", b"", b"cd")):
    numbers = struct.pack("<11I", 3, 1500, 4, 2, 1, 448, 4, 2, 1, 80, ftype)
    return b"lmgg" + numbers + struct.pack("<2I", 2, 3) + bytes(24) + struct.pack("<I", 3) + vocabulary + tensors


def llama(magic, version, *tensors):
    score = b"" if magic == b"lmgg" else struct.pack("<f", -1)
    out = magic + (b"" if version is None else struct.pack("<I", version)) + struct.pack("<7I", 2, 32, 256, 4, 1, 8, 2)
    out += tokens(b"<s>", b"x", score=score)
    for name, array, kind in tensors:
        out += ggml_tensor(name, array, kind, len(out) if magic == b"tjgg" else None)
    return out


def make_ggml(folder):
    random = numpy.random.default_rng(2)
    matrix, vector = random.standard_normal((3, 32)).astype("f2"), random.standard_normal(5).astype("f4")
    blocks = random.integers(0, 256, (3, 18), dtype="u1")
    both = ggml_tensor("m.weight", matrix, 1) + ggml_tensor("v", vector, 0)
    right = {"whisper": whisper(both)}
    for name, magic, version in (("ggml", b"lmgg", None), ("ggmf", b"fmgg", 1), ("ggjt", b"tjgg", 1)):
        right[name] = llama(magic, version, ("m.weight", matrix, 1), ("v", vector, 0))
    for name in right:
        good(name + ".bin", **{"m.weight": matrix, "v": vector})
    quantized = ggml_tensor("q", blocks, 2, dims=(32, 3))
    right["quantized"], right["older"] = whisper(quantized, 2002), whisper(quantized, 1002)
    good("quantized.bin", q=("Q4_0", blocks))
    first = ggml_tensor("u", vector, 0)
    wrong = {
        "short": (whisper(both)[:-1], "truncated"),
        "dims": (whisper(first + ggml_tensor("v", vector, 0, dims=(1, 1, 1, 1, 5))), "does not have 1 to 4 dimensions"),
        "zero": (whisper(first + ggml_tensor("v", vector, 0, dims=(5, 0))), "dimensions are zero or overflow"),
        "huge": (whisper(first + ggml_tensor("v", vector, 0, dims=(2**32 - 1,) * 4)), "dimensions are zero or overflow"),
        "rows": (whisper(first + ggml_tensor("q", blocks, 2, dims=(16, 2))), "rows are not whole blocks of its type"),
        "type": (whisper(first + ggml_tensor("v", vector, 99)), "a tensor of an unknown type"),
        "name": (whisper(first + ggml_tensor("", vector, 0)), "name is empty or too long"),
        "control": (whisper(first + ggml_tensor("a\nb", vector, 0)), "name has control characters"),
        "none": (whisper(b""), "laid out neither like whisper.cpp's models nor like LLaMA's"),
        "twice": (whisper(both + both), "m.weight"),
        "vocabulary": (whisper(both, vocabulary=b"\xff" * 12), "laid out neither like whisper.cpp's models nor like LLaMA's"),
        "vad": (b"lmgg" + struct.pack("<I", 10) + b"silero-16k" + bytes(200), "whisper.cpp's model of voice activity detection"),
        "rwkv": (b"fmgg" + struct.pack("<5I", 101, 50277, 64, 2, 0) + bytes(200), "rwkv.cpp's format, which wfs does not read"),
    }
    for name, (data, reason) in wrong.items():
        right[name] = data
        bad(name + ".bin", reason)
    for name, data in right.items():
        with open(f"{folder}/{name}.bin", "wb") as out:
            out.write(data)


# tensorizer


def tensorizer_entry(name, array, at=0, dtype=None, version=None, length=None):
    dtype, wide = dtype or array.dtype.str.encode(), version == 5
    out = b"" if version is None else struct.pack("<I", version)
    out += struct.pack("<H", len(name)) + name + b"\2" + bytes([len(dtype)]) + dtype
    out += struct.pack(f"<B{array.ndim}{'Q' if wide else 'I'}", array.ndim, *array.shape)
    return out + struct.pack("<3Q", 0, at, array.nbytes if length is None else length)


def tensorizer(entries, data, version=1, flags=0, count=None, padding=64):
    table = b"".join(entries)
    head = b"|TZR|" + struct.pack("<I", version) + bytes([flags]) + bytes(31)
    head += struct.pack("<3Q", len(data), 0, len(entries) if count is None else count)
    return head + struct.pack("<Q", len(table) + padding) + table + bytes(padding) + data


def make_tensorizer(folder):
    matrix, bits = numpy.arange(6, dtype="f4").reshape(2, 3), numpy.array([0x3F80, 0xC000], "u2")
    data = matrix.tobytes() + bits.tobytes()

    def entries(at, version=None):
        return [tensorizer_entry(b"a.weight", matrix, at, version=version),
                tensorizer_entry(b'\x1e["m","l",0]', bits, at + 24, b"<V2\0torch.bfloat16", version)]

    def whole(**options):  # offsets count from the start of the file, so that its head must be known before
        version = 5 if options.get("flags") == 2 else None
        at = len(tensorizer(entries(0, version), b"", **options))
        return tensorizer(entries(at, version), data, **options)

    def one(**changed):
        return tensorizer([tensorizer_entry(b"w", matrix, **changed)], data)

    right = {"plain": whole(version=2), "versioned": whole(version=5, flags=2)}
    for name in right:
        good(name + ".tensors", **{"a.weight": matrix, "m.l.0": ("BF16", bits)})
    wrong = {
        "version": (whole(version=9), "an unknown version"),
        "encrypted": (whole(flags=1), "the file is encrypted"),
        "flags": (whole(flags=4), "unknown flags"),
        "count": (whole(count=2**40), "a tensor without a name"),
        "more": (whole(count=3, padding=0), "truncated"),
        "none": (whole(count=0), "it holds no tensors"),
        "short": (whole()[:-1], "a tensor's data are past the end of the file"),
        "head": (whole()[:60], "truncated"),
        "length": (one(length=23), "do not have the bytes of its shape"),
        "offset": (one(at=2**64 - 8), "a tensor's data are past the end of the file"),
        "dtype": (one(dtype=b"<f3"), "an unknown dtype"),
        "path": (tensorizer([tensorizer_entry(b'\x1e{"a":1}', matrix, 0)], data), "not a list of keys"),
    }
    for name, (content, reason) in wrong.items():
        right[name] = content
        bad(name + ".tensors", reason)
    for name, content in right.items():
        with open(f"{folder}/{name}.tensors", "wb") as out:
            out.write(content)


# CTranslate2


def ct2_name(name):
    return struct.pack("<H", len(name) + 1) + name + b"\0"


def ct2_variable(name, array, kind=0, version=6, n_bytes=None):
    size = array.nbytes if n_bytes is None else n_bytes
    data = struct.pack("<BI", kind, size) if version >= 4 else struct.pack("<BI", array.itemsize, size // array.itemsize)
    return ct2_name(name) + struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape) + data + array.tobytes()


def ct2(variables, aliases=(), version=6, count=None, n_aliases=None):
    out = struct.pack("<I", version) + ct2_name(b"WhisperSpec") + struct.pack("<2I", 3, len(variables) if count is None else count)
    out += b"".join(variables)
    if version >= 3:
        out += struct.pack("<I", len(aliases) if n_aliases is None else n_aliases)
        out += b"".join(ct2_name(name) for alias in aliases for name in alias)
    return out


def make_ctranslate2(folder):
    matrix, bits = numpy.arange(6, dtype="f4").reshape(2, 3), numpy.array([0x3F80, 0xC000], "u2")
    heads, ids = numpy.array(4, "i2"), numpy.array([-7, 9], "i4")
    half, codes, scales = numpy.array([0.5, -2], "f2"), numpy.array([[1, -2], [127, -127]], "i1"), numpy.array([2, 3], "f4")
    variables = [ct2_variable(b"a/bias", matrix), ct2_variable(b"b/gamma", bits, 5), ct2_variable(b"c/num_heads", heads, 2),
                 ct2_variable(b"d/ids", ids, 3), ct2_variable(b"e/beta", half, 4), ct2_variable(b"f/weight", codes, 1), ct2_variable(b"f/weight_scale", scales)]
    tensors = {"a/bias": matrix, "b/gamma": ("BF16", bits), "c/num_heads": ("I16", heads), "d/ids": ids, "e/beta": half, "f/weight": ("I8", codes), "f/weight_scale": scales}
    old = [ct2_variable(b"a/bias", matrix, version=3), ct2_variable(b"c/num_heads", heads, version=3), ct2_variable(b"f/x", codes, version=3)]
    right = {"plain": ct2(variables), "aliases": ct2(variables, [(b"p/weight", b"f/weight"), (b"q", b"a/bias")]),
             "version3": ct2(old, [(b"q", b"a/bias")], 3), "version2": ct2(old, version=2)}
    good("plain.bin", **tensors)
    good("aliases.bin", **tensors, **{"p/weight": ("I8", codes), "p/weight_scale": scales, "q": matrix})
    good("version3.bin", **{"a/bias": matrix, "c/num_heads": ("I16", heads), "f/x": ("I8", codes), "q": matrix})
    good("version2.bin", **{"a/bias": matrix, "c/num_heads": ("I16", heads), "f/x": ("I8", codes)})
    deep, long = ct2_name(b"w") + b"\x41" + bytes(400), ct2_name(b"w") + struct.pack("<B3I", 3, *[2**32 - 1] * 3) + struct.pack("<BI", 0, 0)
    wrong = {
        "version": (ct2(variables, version=7), "an unknown version"),
        "count": (ct2(variables, count=2**32 - 1), "offset"),
        "none": (ct2([]), "it holds no variables"),
        "short": (ct2([ct2_variable(b"w", matrix, version=2)], version=2)[:-1], "a variable's data are past the end of the file"),
        "head": (ct2(variables)[:21], "truncated"),
        "cut": (ct2(variables)[:-2], "truncated"),
        "bytes": (ct2([ct2_variable(b"w", matrix, n_bytes=20)]), "do not have the bytes of its shape"),
        "type": (ct2([ct2_variable(b"w", matrix, 6)]), "an unknown type"),
        "rank": (ct2([deep]), "more than 64 dimensions"),
        "huge": (ct2([long]), "size in bytes overflows"),
        "name": (ct2([ct2_variable(b"w", matrix).replace(b"w\0", b"ww", 1)]), "does not end with a NUL"),
        "empty": (ct2([struct.pack("<H", 0) + ct2_variable(b"w", matrix)[4:]]), "a name that is empty"),
        "twice": (ct2([ct2_variable(b"w", matrix)] * 2), "'w'"),
        "alias": (ct2(variables, [(b"q", b"nothing")]), "an alias of a variable that the file does not have"),
        "more": (ct2(variables, n_aliases=2**32 - 1), "truncated"),
    }
    for name, (content, reason) in wrong.items():
        right[name] = content
        bad(name + ".bin", reason)
    for name, content in right.items():
        with open(f"{folder}/{name}.bin", "wb") as out:
            out.write(content)


# TensorFlow


def crc32c(data):
    """The checksum as TensorFlow stores it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def bundle_entry(dtype, array, shard=0, at=0):
    shape = b"".join(field(2, field(1, size)) for size in array.shape)
    return field(1, dtype) + field(2, shape) + field(3, shard) + field(4, at) + field(5, array.nbytes)


def table(entries):
    """A table of LevelDB with one block of entries."""
    out = b""

    def block(pairs):
        nonlocal out
        body = b"".join(varint(0) + varint(len(key)) + varint(len(value)) + key + value for key, value in pairs)
        body += struct.pack("<2I", 0, 1)
        handle = varint(len(out)) + varint(len(body))
        out += body + b"\0" + struct.pack("<I", crc32c(body + b"\0"))
        return handle

    data, meta = block(sorted(entries.items())), block([])
    footer = meta + block([(b"z", data)])
    return out + footer + bytes(40 - len(footer)) + struct.pack("<Q", 0xDB4775248B80FB57)


def bundle(folder, name, entries, *shards, stem="model.ckpt"):
    os.mkdir(f"{folder}/{name}")
    with open(f"{folder}/{name}/{stem}.index", "wb") as out:
        out.write(table({b"": field(1, len(shards)) + field(3, field(1, 1)), **entries}))
    for number, shard in enumerate(shards):
        with open(f"{folder}/{name}/{stem}.data-{number:05d}-of-{len(shards):05d}", "wb") as out:
            out.write(shard)


def make_tensorflow(folder):
    matrix, step = numpy.arange(6, dtype="f4").reshape(2, 3), numpy.array(7)
    wanted = {"bert/w": matrix, "step": step}
    bundle(folder, "one", {b"bert/w": bundle_entry(1, matrix), b"step": bundle_entry(9, step, 0, 24)}, matrix.tobytes() + step.tobytes())
    bundle(folder, "two", {b"bert/w": bundle_entry(1, matrix), b"step": bundle_entry(9, step, 1)}, matrix.tobytes(), step.tobytes())
    for name in ("one", "two"):
        good(name, **wanted)
    header = json.dumps({"x": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}}).encode()
    lookalike = numpy.frombuffer(struct.pack("<Q", len(header)) + header + bytes(8), "u1")
    bundle(folder, "lookalike", {b"w": bundle_entry(4, lookalike)}, lookalike.tobytes())
    good("lookalike", w=lookalike)
    # A frozen graph, with a constant of its own and one of the same name in a function.
    def constant(name, array):
        tensor = field(1, 1) + field(2, b"".join(field(2, field(1, size)) for size in array.shape)) + field(4, array.tobytes())
        return field(1, name) + field(2, b"Const") + field(5, field(1, b"value") + field(2, field(8, tensor)))

    functions = b"".join(field(1, field(1, field(1, name)) + field(3, constant(b"w", array)))
                         for name, array in ((b"__inference_f_7", matrix.T.copy()), (b"g", matrix + 1)))
    with open(f"{folder}/frozen.pb", "wb") as out:
        out.write(field(1, constant(b"w", matrix)) + field(1, field(1, b"x") + field(2, b"Placeholder")) + field(2, functions))
    good("frozen.pb", **{"w": matrix, "__inference_f_7/w": matrix.T, "g/w": matrix + 1})
    # SavedModels: with and without variables, whose graph has a constant of a variable's name, and one whose graph is damaged.
    graph = field(1, constant(b"w", matrix + 2)) + field(1, constant(b"c", matrix)) + field(2, functions)
    saved = field(1, 1) + field(2, field(1, field(4, b"serve")) + field(2, graph)) + field(2, field(2, field(1, constant(b"other", matrix))))
    constants = {"c": matrix, "__inference_f_7/w": matrix.T, "g/w": matrix + 1}
    for name, content in (("saved", saved), ("frozen", saved), ("unread", saved[:60])):
        put(f"{folder}/{name}/saved_model.pb", content)
        if name != "frozen":
            bundle(folder, f"{name}/variables", {b"w": bundle_entry(1, matrix)}, matrix.tobytes(), stem="variables")
    good("saved", **constants, **{"w": matrix, "w~2": matrix + 2})
    good("frozen", **constants, w=matrix + 2)
    bundle(folder, "short", {b"w": bundle_entry(1, matrix)}, matrix.tobytes()[:-1])
    bad("short", "truncated: a tensor of 24 bytes at offset 0, but the file has 23")


# Plain pickles of torch and JAX, made without either: functions of their names, which pickle does not call.


def function(module, name):
    """A function that pickle finds by name in a module."""
    def made(*_arguments):
        return None
    made.__module__, made.__qualname__, made.__name__ = module, name, name
    for i in range(module.count(".") + 1):
        parent = ".".join(module.split(".")[:i + 1])
        sys.modules.setdefault(parent, types.ModuleType(parent))
    return vars(sys.modules[module]).setdefault(name, made)


class Call:
    """Pickled as the call of a function."""

    def __init__(self, called, *arguments):
        self.called, self.arguments = called, arguments

    def __reduce__(self):
        return self.called, self.arguments


REBUILD, FROM_BYTES = function("torch._utils", "_rebuild_tensor_v2"), function("torch.storage", "_load_from_bytes")
STORAGES = {name: function("torch", name) for name in ("FloatStorage", "HalfStorage", "QUInt4x2Storage")}
FLOAT = "FloatStorage"


def legacy_storage(kind, array, count=None):
    """The bytes of torch.save(storage, _use_new_zipfile_serialization=False)."""
    out = io.BytesIO()
    for part in (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True}):
        pickle.dump(part, out, protocol=2)
    pickler = pickle.Pickler(out, protocol=2)
    pickler.persistent_id = lambda value: ("storage", STORAGES[kind], "94", "cpu", array.size, None) if value is array else None
    pickler.dump(array)
    pickle.dump(["94"], out, protocol=2)
    return out.getvalue() + struct.pack("<q", array.size if count is None else count) + array.tobytes()


def torch_tensor(array, kind=FLOAT, first=0, shape=None, strides=None, data=None):
    strides = strides or [stride // array.itemsize for stride in array.strides]
    storage = Call(FROM_BYTES, legacy_storage(kind, array) if data is None else data)
    return Call(REBUILD, storage, first, tuple(shape or array.shape), tuple(strides), False, collections.OrderedDict())


class Bfloat16:
    """Pickled as the dtype that ml_dtypes adds to numpy."""

    def __reduce__(self):
        return numpy.dtype, (function("ml_dtypes", "bfloat16"), False, True), (3, "<", None, None, None, -1, -1, 0)


def jax_array(array, module="jax._src.array", name="_reconstruct_array", dtype=None):
    called, arguments, (version, shape, own_dtype, column_major, data) = array.__reduce__()
    state = (version, shape, dtype or own_dtype, column_major, data)
    return Call(function(module, name), called, arguments, state, {"weak_type": False, "named_shape": {}})


def save_objects(folder, protocol, tensors):
    """Arrays of objects, as numpy saves them."""
    matrix, several = numpy.arange(6, dtype="f4").reshape(2, 3), numpy.empty((1, 3), object)
    for i, one in enumerate((matrix, {"t": (matrix.T, "text")}, [numpy.float32([7])])):
        several[0, i] = one
    arrays = {"several": several, "one": numpy.array({"w": matrix, **tensors}, object), "plain": matrix}
    with zipfile.ZipFile(f"{folder}/objects{protocol}.npz", "w", zipfile.ZIP_DEFLATED if protocol == 4 else zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            data = io.BytesIO()
            numpy.lib.format.write_array_header_1_0(data, numpy.lib.format.header_data_from_array_1_0(array))
            data.write(pickle.dumps(array, protocol) if array.dtype == object else array.tobytes())
            archive.writestr(f"{name}.npy", data.getvalue())
            with open(f"{folder}/{name}{protocol}.npy", "wb") as out:
                out.write(data.getvalue())
    inner = {"0": matrix, "1.t.0": matrix.T, "2.0": numpy.float32([7])}
    good(f"several{protocol}.npy", **inner)
    torch = {"w": matrix, "row": matrix[1], "h": numpy.arange(4, dtype="f2"), "t": matrix.T, "large": numpy.arange(40000, dtype="f4")}
    good(f"one{protocol}.npy", **torch)
    good(f"objects{protocol}.npz", plain=matrix, **{f"several.{name}": array for name, array in inner.items()},
         **{f"one.{name}": array for name, array in torch.items()})


def make_pickles(folder):
    matrix, half = numpy.arange(6, dtype="f4").reshape(2, 3), numpy.arange(4, dtype="f2")
    large = numpy.arange(40000, dtype="f4")
    shared = Call(FROM_BYTES, legacy_storage(FLOAT, matrix))
    row = Call(REBUILD, shared, 3, (3,), (1,), False, collections.OrderedDict())
    whole = Call(REBUILD, shared, 0, (2, 3), (3, 1), False, collections.OrderedDict())
    for protocol in (2, 4):
        with open(f"{folder}/torch{protocol}.pkl", "wb") as out:
            tensors = {"w": whole, "row": row, "h": torch_tensor(half, "HalfStorage"), "t": torch_tensor(matrix, shape=(3, 2), strides=(1, 3)),
                       "large": torch_tensor(large)}
            pickle.dump(tensors, out, protocol=protocol)
        save_objects(folder, protocol, tensors)
        good(f"torch{protocol}.pkl", w=matrix, row=matrix[1], h=half, t=matrix.T, large=large)
        with open(f"{folder}/jax{protocol}.pkl", "wb") as out:
            older = jax_array(half, "jax._src.device_array", "reconstruct_device_array")
            pickle.dump({"params": {"w": jax_array(matrix), "f": jax_array(numpy.asfortranarray(matrix)), "h": older,
                                    "b": jax_array(half.view("u2"), dtype=Bfloat16())}}, out, protocol=protocol)
        good(f"jax{protocol}.pkl", **{"params.w": matrix, "params.f": matrix, "params.h": half, "params.b": ("BF16", half.view("u2"))})
    for name, tensor, reason in (
        ("past", torch_tensor(matrix, first=1), "a tensor of elements [1, +6) in a storage of 6 elements"),
        ("none", "text", "the pickle contains no tensors"),
    ):
        with open(f"{folder}/{name}.pkl", "wb") as out:
            pickle.dump({"w": tensor}, out)
        bad(name + ".pkl", reason)


def make_odd(path, key=None):
    """Tensors that cannot be shown, below that key, beside one that can."""
    matrix, codes = numpy.arange(6, dtype="f4").reshape(2, 3), numpy.zeros(32, "u1")
    from_type = function("torch._tensor", "_rebuild_from_type_v2")
    jagged = function("torch.nested._internal.nested_tensor", "_rebuild_njt")
    quantized = Call(function("torch._utils", "_rebuild_qtensor"), Call(FROM_BYTES, legacy_storage("QUInt4x2Storage", codes)), 0, (8, 8), (8, 1),
                     ("per_channel_affine", 1, 0), False, collections.OrderedDict())
    torch_storage = legacy_storage(FLOAT, matrix)
    damaged = {"short": torch_storage[:-1], "count": legacy_storage(FLOAT, matrix, 7), "text": b"x", "empty": b""}
    tensors = {name: torch_tensor(matrix, data=data) for name, data in damaged.items()}
    tensors |= {"jagged": Call(from_type, jagged, STORAGES[FLOAT], (torch_tensor(matrix),), {}), "q": quantized}
    with open(path, "wb") as out:
        pickle.dump({**({key: tensors} if key else tensors), "x": torch_tensor(matrix)}, out)


def put(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(content)


def make_others(folder):
    """Files of other programs, and an ONNX model that is told from them by its content alone."""
    coreml = field(1, 4) + field(2, field(1, b"\n\1x")) + field(500, field(1, b""))
    saved_model = field(1, 1) + field(2, field(1, field(4, b"serve")) + field(2, field(1, field(1, b"x"))))
    weight = field(1, 3) + field(2, 1) + field(8, b"w") + field(9, numpy.arange(3, dtype="f4").tobytes())
    onnx = field(1, 8) + field(2, b"test") + field(7, field(2, b"graph") + field(5, weight)) + field(8, field(2, 17))
    for name, content in {"blla.mlmodel": coreml, "blla.bin": coreml, "saved_model.pb": saved_model, "graph": saved_model, "model": onnx,
                          "cut": onnx[:-20], "parts/m.gguf.part1of2": b"GGUF", "parts/m.gguf.part2of2": b"x",
                          "darknet/yolo.weights": struct.pack("<3IQ", 0, 2, 5, 0) + bytes(99), "darknet/yolo.cfg": b"[net]\nbatch=1\n",
                          "bark.bin": b"lmgg" + struct.pack("<10I", 1, 1, 2, 3, 4, 5, 6, 7, 8, 1) + bytes(900),
                          }.items():
        put(f"{folder}/{name}", content)
    with zipfile.ZipFile(f"{folder}/package.pt", "w") as archive:
        for name, content in (("version", b"6\n"), ("extern_modules", b"torch\n"), ("0.storage", bytes(16))):
            archive.writestr("package/.data/" + name, content)


def make_no_tensors(path):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (("data.pkl", pickle.dumps({"lr": 1}, 2)), ("version", b"3\n")):
            archive.writestr("none/" + name, content)


MAKERS = {"ctranslate2": make_ctranslate2, "ggml": make_ggml, "pickles": make_pickles, "paddle": make_paddle, "pt2": make_pt2, "tensorflow": make_tensorflow, "tensorizer": make_tensorizer}


def make(folder):
    for name, maker in MAKERS.items():
        os.mkdir(f"{folder}/{name}")
        GOOD.clear()
        BAD.clear()
        maker(f"{folder}/{name}")
        good_texts = {file: {tensor: [str(dtype), [3, 32] if dtype == "Q4_0" else list(value.shape), value.tobytes().hex()]
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


def check_saved(wfs, path, wanted):
    """model.safetensors has the same tensors, if safetensors has dtypes for them."""
    if any(dtype in ("Q4_0", "complex128", "I8") for dtype, _, _ in wanted.values()):  # I8 has scales
        return
    for name in ("model.safetensors", "hf/model.safetensors"):
        result = run(wfs, "cat", path, name)
        assert result.returncode == 0, (path, name, result.stderr)
        start = 8 + int.from_bytes(result.stdout[:8], "little")
        header = json.loads(result.stdout[8:start])
        header.pop("__metadata__", None)
        saved = {key: [one["dtype"], one["shape"], result.stdout[start:][slice(*one["data_offsets"])].hex()] for key, one in header.items()}
        right = {key: [NAMES.get(dtype, dtype), shape, values] for key, (dtype, shape, values) in wanted.items()}
        assert saved == right, (path, name, saved, right)


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
        check_saved(wfs, f"{folder}/{name}/{file}", wanted)
    for file, reason in expected["bad"].items():
        check_bad(wfs, f"{folder}/{name}/{file}", reason)


def make_large_pickle(path):
    """Writes a pickle of an array, then lets its shape and its bytes be larger than they were."""
    n_written, n_wanted = 200000, 1500000000
    pickled = pickle.dumps({"large": numpy.zeros(n_written, "f4"), "raw": bytes(70000), "small": numpy.float32([1, 2, 3])}, 4)
    shape, contents = (b"J" + struct.pack("<I", n) for n in (n_written, n_wanted)), b"B" + struct.pack("<I", 4 * n_written)
    pickled = pickled.replace(*shape)
    head, rest = pickled.split(contents)
    with open(path, "wb") as out:
        out.write(head + b"\x8e" + struct.pack("<Q", 4 * n_wanted))
        out.seek(4 * n_wanted, os.SEEK_CUR)
        out.write(rest[4 * n_written:])


def safetensors(path, metadata=None, **arrays):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def make_shards(folder):
    names = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    for name, file in names.items():
        safetensors(f"{folder}/{file}", **{name: numpy.arange(3, dtype="f4")})
    with open(f"{folder}/model.safetensors.index.json", "w", encoding="ascii") as out:
        json.dump({"weight_map": names}, out)


def make_part(path):
    info = {"w": {"saved_offsets": [0, 0]}}
    safetensors(path, {"format": "pt", "DCP_VERSION": "1.0", "DCP_SHARDING_INFO": json.dumps(info)}, w=numpy.zeros((2, 3), "f4"))


def make_parts(folder):
    """The parts that three processes saved; without those of the second; and moved by a row."""
    a, b, c = numpy.arange(48, dtype="f4").reshape(8, 6), numpy.arange(35, dtype="f4").reshape(5, 7), numpy.arange(4, dtype="f4")
    ranks = [{"a": (a[:4, :3], [0, 0]), "b": (b[:2], [0, 0])}, {"a": (a[:4, 3:], [0, 3]), "b": (b[2:4], [2, 0]), "c": (c, [0])},
             {"a": (a[4:], [4, 0]), "b": (b[4:], [4, 0]), "s": (numpy.float32(5), [])}]
    for name, chosen, move in (("whole", (0, 1, 2), 0), ("missing", (0, 2), 0), ("moved", (0, 1, 2), 1)):
        os.makedirs(f"{folder}/{name}")
        for rank in chosen:
            info = {key: {"saved_offsets": [i + move * (rank == 2) for i in at]} for key, (_, at) in ranks[rank].items()}
            metadata = {"format": "pt", "DCP_VERSION": "1.0", "DCP_SHARDING_INFO": json.dumps(info)}
            file = f"{folder}/{name}/shard-{rank + 1:05d}-model-00001-of-00001.safetensors"
            safetensors(file, metadata, **{key: numpy.array(part, order="C") for key, (part, _) in ranks[rank].items()})


def make_arrays(path):
    with open(path, "wb") as out:
        numpy.save(out, numpy.arange(3, dtype="f4"))
        numpy.save(out, numpy.array(True))


def make_unreadable(folder):
    odd = {"records": numpy.zeros(2, [("a", "f4")]), "untyped": numpy.zeros(2, "V1"), "texts": numpy.array(["a", "b"]),
           "objects": numpy.array(["a", None], object), "dates": numpy.array(["2020-01-01"], "M8[D]")}
    for name, array in odd.items():
        numpy.savez(f"{folder}/{name}.npz", w=numpy.arange(3, dtype="f4"), odd=array)


COMMANDS = {"make": make, "check": check, "large-pickle": make_large_pickle, "shards": make_shards, "part": make_part, "parts": make_parts, "arrays": make_arrays, "odd": make_odd, "unreadable": make_unreadable, "others": make_others,
            "no-tensors": make_no_tensors}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
