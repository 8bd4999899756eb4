#!/usr/bin/env python3
"""Writes tests/data/torch and the corpora of the harnesses for torch's files; needs torch (the files here: 2.9.1).

    make_torch.py DATA CORPUS       as in: make_torch.py tests/data/torch tests/fuzz/corpus

Next to the files goes expected.txt: a line for each tensor as torch.load() gives it, with tabs between the file, the name, the dtype as
wfs calls it, the shape, and the bytes of all elements in row-major order in hexadecimal; "-" for tensors that wfs lists only.
"""

import argparse
import collections
import datetime
import enum
import functools
import io
import itertools
import logging
import operator
import pathlib
import pickle
import random
import re
import sys
import warnings
import zipfile

import numpy
import torch

warnings.simplefilter("ignore")

DTYPES = {
    "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float64": "F64", "int64": "I64", "int32": "I32", "int16": "I16",
    "int8": "I8", "uint8": "U8", "bool": "BOOL", "complex64": "C64", "complex128": "C128", "complex32": "C32", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0",
}
TYPED = ["float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128"]
UNTYPED = [name for name in DTYPES if name not in TYPED]


def of_dtype(name):
    """Two by three elements of bytes that count up."""
    dtype = getattr(torch, name)
    size = torch.empty(0, dtype=dtype).element_size()
    raw = torch.arange(1, 6 * size + 1, dtype=torch.uint8)
    return (raw % 2 if name == "bool" else raw).view(dtype).reshape(2, 3)


def views():
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    complex_base = torch.complex(torch.arange(6.0), torch.arange(6.0) + 0.5).reshape(2, 3)
    return {
        "plain": base, "transposed": base.t(), "slice": base[1:3, 2:5], "step": base[::2, ::3], "shared": base,
        "expand": torch.arange(3.0).reshape(3, 1).expand(3, 4), "overlap": torch.as_strided(base, (2, 3), (1, 1)),
        "permuted": torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1), "scalar": torch.tensor(3.5), "empty": torch.zeros(0, 3),
        "conj": complex_base.conj(), "neg": complex_base.clone().conj().imag, "parameter": torch.nn.Parameter(torch.arange(3.0)),
        "transposed_conj": complex_base.conj().t(),
    }


def nested():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    return {
        "model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "args": argparse.Namespace(lr=0.1, name="x"),
        "list": [torch.ones(2), {"k": torch.zeros(1)}], "array": numpy.arange(200, dtype="<i2").reshape(10, 20),
        "scalar": numpy.float32(2.5), "dtype": torch.bfloat16, "size": torch.Size([1, 2]),
    }


def special():
    return {
        "quantized": torch.quantize_per_tensor(torch.arange(3.0), 0.1, 2, torch.qint8), "sparse": torch.eye(3).to_sparse(),
        "csr": torch.eye(3).to_sparse_csr(), "meta": torch.empty(3, 4, device="meta"), "plain": torch.ones(3),
    }


class Color(enum.Enum):
    RED = 1


class Level(enum.IntFlag):
    LOW = 1


def odd():
    """Weights, and beside them what is no data: torch.load() makes these by calls that nobody here makes."""
    generator = torch.Generator()
    generator.manual_seed(7)
    return {
        "weight": torch.arange(6.0).reshape(2, 3), "enum": Color.RED, "flag": Level.LOW, "partial": functools.partial(divmod, 7),
        "builtin": len, "function": torch.nn.functional.gelu, "regex": re.compile("a+"), "logger": logging.getLogger("train"),
        "random": random.Random(1), "generator": generator, "getter": operator.attrgetter("x"), "method": "text".upper,
        "count": itertools.count(3), "bytes": b"\0\xff", "big": 2**70, "small": -(2**64), "seed": 2**64 - 1,
        "when": datetime.datetime(2024, 5, 6, 7, 8, 9, 10), "day": datetime.date(2024, 5, 6), "hour": datetime.time(7, 8),
        "zone": datetime.datetime(2024, 5, 6, tzinfo=datetime.timezone.utc), "strings": numpy.array(["a", "bc"]),
        "objects": numpy.array([None, "x"], dtype=object), "storage": torch.arange(3.0).untyped_storage(),
        "bias": torch.ones(2),
    }


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 3)
        self.norm = torch.nn.BatchNorm1d(3)


def zip_members(path):
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def deflate(source, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in zip_members(source):
            archive.writestr(name, content)


def to_big_endian(source, path, widths):
    """The same archive as a big-endian machine writes it; `widths` are the bytes of a number in each storage."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in zip_members(source):
            if name.endswith("/byteorder"):
                content = b"big"
            elif "/data/" in name:
                width = widths[int(name.rsplit("/", 1)[1])]
                content = b"".join(content[i : i + width][::-1] for i in range(0, len(content), width))
            archive.writestr(name, content)


def tensors_of(value, name=""):
    if isinstance(value, (torch.Tensor, numpy.ndarray)):
        if isinstance(value, torch.Tensor) or value.dtype.kind not in "USO":
            yield name, value
    elif isinstance(value, torch.Generator):
        yield f"{name}.2", value.get_state()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensors_of(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, (list, tuple)):
        yield from tensors_of(dict(enumerate(value)), name)


def describe(tensor):
    if isinstance(tensor, numpy.ndarray):
        return "I16", tensor.shape, tensor.tobytes().hex()
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in DTYPES or tensor.layout != torch.strided or tensor.is_meta:
        return {"qint8": "I8"}.get(name, DTYPES.get(name)), tuple(tensor.shape), "-"
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    raw = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return DTYPES[name], tuple(tensor.shape), raw.hex()


def write_files(data):
    torch.manual_seed(1)
    typed = collections.OrderedDict((name, of_dtype(name)) for name in TYPED)
    typed.update({f"{name}_t": typed[name].t() for name in TYPED})
    untyped = {name: of_dtype(name) for name in UNTYPED} | {f"{name}_t": of_dtype(name).t() for name in UNTYPED}
    for protocol in (2, 3, 4, 5):
        torch.save(views(), data / f"views-{protocol}.pt", pickle_protocol=protocol)
        torch.save(views(), data / f"views-legacy-{protocol}.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    for protocol in (2, 5):
        torch.save(nested(), data / f"nested-{protocol}.pt", pickle_protocol=protocol)
    torch.save(typed, data / "typed.pt")
    torch.save(typed, data / "typed-legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(untyped, data / "untyped.pt")
    torch.save(special(), data / "special.pt")
    for protocol in (2, 4):
        torch.save(odd(), data / f"odd-{protocol}.pt", pickle_protocol=protocol)
    torch.save({"state_dict": {f"module.{k}": v for k, v in Module().state_dict().items()}, "epoch": 1}, data / "wrapped.pt")
    torch.save(Module(), data / "module.pt")
    torch.save(torch.arange(5), data / "single.pt")
    deflate(data / "views-2.pt", data / "deflated.pt")
    widths = [typed[name].element_size() // (2 if typed[name].is_complex() else 1) for name in TYPED]
    to_big_endian(data / "typed.pt", data / "big-endian.pt", widths)


def loaded(path):
    value = torch.load(path, weights_only=False)
    if path.name == "wrapped.pt":
        return {name.removeprefix("module."): tensor for name, tensor in value["state_dict"].items()}
    if path.name == "single.pt":
        return {"single": value}
    return value.state_dict() if isinstance(value, Module) else value


def write_expected(data):
    with open(data / "expected.txt", "w") as out:
        for path in sorted(data.glob("*.pt")):
            for name, tensor in tensors_of(loaded(path)):
                dtype, shape, content = describe(tensor)
                print(path.name, name, dtype, str(list(shape)), content, sep="\t", file=out)


ATTACKS = {
    "system": b"cos\nsystem\n(S'id'\ntR.",
    "inst": b"(S'id'\nios\nsystem\n.",
    "obj": b"(cos\nsystem\nS'id'\no.",
    "stack-global": b"\x80\x04\x8c\x02nt\x8c\x06system\x93\x8c\x02id\x85R.",
    "reconstructor": b"ccopyreg\n_reconstructor\n(cos\nsystem\nc__builtin__\nobject\nNtR.",
    "memo": b"Nr\xff\xff\xff\xffp4294967295\nj\xff\xff\xff\xff.",
    "long": b"\x8b\x00\x00\x00\x7f.",
    "frame": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.",
    "doubling": b"N" + b"2\x86" * 40 + b".",
    "cycle": b"(lp0\ng0\na(dp1\nVx\ng1\nsg0\nag1\na.",
    "self-state": b"clib\nA\n)\x81p0\ng0\nb.",
    "every-number": b"(I1\nI01\nJ\1\2\3\4K\1M\1\2L5L\n\x8a\2\1\2\x8b\1\0\0\0\7F1.5\nG\x3f\xf8\0\0\0\0\0\0N\x88\x89t.",
    "every-text": b"(S'a\\n'\nT\1\0\0\0bU\1cVd\\u00e9\nX\1\0\0\0e\x8c\1f\x8d\1\0\0\0\0\0\0\0gB\1\0\0\0hC\1i\x8e\1\0\0\0\0\0\0\0j"
                  b"\x96\1\0\0\0\0\0\0\0kt.",
    "every-container": b"(](NNl]Na](Ne)N\x85NN\x86NNN\x87}(NNd}NNs}(NNu\x8f\x8f(K\1\x90(K\2\x91" b"(10t.",
    "set": b"c__builtin__\nset\n]K\1a\x85R.",
    "namespace": b"cargparse\nNamespace\n)\x81}Vlr\nF0.5\nsb.",
    "opaque": b"(cbuiltins\ngetattr\n(clib\nColor\nVRED\ntRp0\n(I1\ntRcfunctools\npartial\n(cbuiltins\nlen\ntR(g0\nNNNtbg0\n(g0\ntR"
              b"cdatetime\ndate\n(C\4\7\xe8\5\6tRt.",
    "copies": b"(l(d" + b"".join(b"I%d\nNs" % i for i in range(500)) + b"p0\na" + b"ccollections\nOrderedDict\n(g0\ntRa" * 500
              + b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat32\n(t(tI00\ntRa.",
    "new-object-ex": b"cargparse\nNamespace\n)}\x92.",
}


def write_corpora(data, corpus):
    for kind in ("pickle", "zip", "legacy"):
        (corpus / kind).mkdir(parents=True, exist_ok=True)
    for name, content in ATTACKS.items():
        (corpus / "pickle" / name).write_bytes(content)
        (corpus / "legacy" / f"plain-{name}").write_bytes(content if content[0] == 0x80 else b"\x80\x02" + content)
    for name in ("views-2", "views-5", "nested-2", "nested-5", "typed", "untyped", "special", "module", "odd-2", "odd-4"):
        for member, content in zip_members(data / f"{name}.pt"):
            if member.endswith("/data.pkl"):
                (corpus / "pickle" / name).write_bytes(content)
    for name in ("single", "deflated"):
        (corpus / "zip" / name).write_bytes((data / f"{name}.pt").read_bytes())
    for name in ("views-legacy-2", "views-legacy-4", "typed-legacy"):
        (corpus / "legacy" / name).write_bytes((data / f"{name}.pt").read_bytes())
    window = io.BytesIO()
    torch.save(torch.arange(4.0)[1:], window, _use_new_zipfile_serialization=False)
    (corpus / "legacy" / "window").write_bytes(window.getvalue())
    array = pickle.dumps({"a": numpy.arange(6, dtype=">f4").reshape(2, 3), "b": numpy.asfortranarray(numpy.eye(2))}, protocol=5)
    (corpus / "legacy" / "numpy").write_bytes(array)


def main():
    data, corpus = map(pathlib.Path, sys.argv[1:3])
    data.mkdir(parents=True, exist_ok=True)
    write_files(data)
    write_expected(data)
    write_corpora(data, corpus)


main()
