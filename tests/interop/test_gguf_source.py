"""GGUF files, whole and broken at random, opened by wfs and by ggml: the same are taken, with the exceptions that wfs names, and the
same tensors found. Then what llama.cpp's quantizer makes of a GGUF, whole or in parts, beside what wfs shows of it."""
import ctypes
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

import llama_cpp
from interop import ROOT, WFS, check, done

OPEN = pathlib.Path(WFS).parent / "tests" / "interop" / "open"
N_MUTATED = 6000
SEEDS = ROOT / "tests" / "fuzz" / "corpus" / "gguf"

# What wfs refuses, and ggml does not: the number of elements wraps to 0, a key holds a NUL, data is missing. And a part of a split
# file, which is more than one file.
STRICTER = re.compile(r"size of more than 64 bits|NUL byte|tensor bytes are missing|data begins at|its file name says otherwise")


class Parameters(ctypes.Structure):
    _fields_ = [("no_alloc", ctypes.c_bool), ("ctx", ctypes.c_void_p)]


def load_ggml():
    folder = pathlib.Path(llama_cpp.__file__).parent / "lib"
    ggml = next(lib for lib in map(ctypes.CDLL, sorted(map(str, folder.glob("libggml-base*")))))
    ggml.gguf_init_from_file.restype = ctypes.c_void_p
    ggml.gguf_init_from_file.argtypes = [ctypes.c_char_p, Parameters]
    for name, result in {"gguf_get_n_tensors": ctypes.c_int64, "gguf_get_data_offset": ctypes.c_size_t, "gguf_free": None}.items():
        getattr(ggml, name).restype = result
        getattr(ggml, name).argtypes = [ctypes.c_void_p]
    for name, result in {"gguf_get_tensor_name": ctypes.c_char_p, "gguf_get_tensor_offset": ctypes.c_size_t,
                         "gguf_get_tensor_size": ctypes.c_size_t}.items():
        getattr(ggml, name).restype = result
        getattr(ggml, name).argtypes = [ctypes.c_void_p, ctypes.c_int64]
    return ggml


def by_ggml(ggml, path):
    """Of each tensor its name, offset and length; None where the file is refused."""
    context = ggml.gguf_init_from_file(str(path).encode(), Parameters(True, None))
    if context is None:
        return None
    data = ggml.gguf_get_data_offset(context)
    tensors = [(ggml.gguf_get_tensor_name(context, i), data + ggml.gguf_get_tensor_offset(context, i), ggml.gguf_get_tensor_size(context, i))
               for i in range(ggml.gguf_get_n_tensors(context))]
    ggml.gguf_free(context)
    return tensors


LARGE = "a name above 63 bytes, or five dimensions"


def by_wfs(paths):
    output = subprocess.run([OPEN, "gguf", *paths], check=True, capture_output=True).stdout
    for line in output.splitlines():
        kind, *fields = line.split(b"\t")
        if kind == b"refused":
            yield None, fields[0].decode()
            continue
        parts = [field.decode().split(" ") for field in fields]
        is_large = any(len(name) > 2 * 63 or shape.count(",") == 4 for name, _, shape, _, _ in parts)
        yield [(bytes.fromhex(name), int(offset), int(length)) for name, _, _, offset, length in parts], LARGE if is_large else ""


def mutated(seeds, number):
    choose = random.Random(number)
    content = bytearray(choose.choice(seeds))
    for _ in range(choose.choice([1, 1, 2, 4])):
        at = choose.randrange(len(content))
        kind = choose.randrange(5)
        if kind == 0:
            content[at] = choose.randrange(256)
        elif kind == 1:
            content[at : at + 8] = struct.pack("<Q", choose.choice([0, 1, 2, 31, 32, 64, 255, 1 << 20, 1 << 31, 1 << 32, 1 << 63, (1 << 64) - 1]))
        elif kind == 2:
            content[at : at + 4] = struct.pack("<I", choose.randrange(64))
        elif kind == 3:
            del content[at : at + choose.choice([1, 4, 8])]
        else:
            content[at:at] = content[at : at + choose.choice([1, 4, 8, 24])]
        if not content:
            content = bytearray(b"G")
    return bytes(content)


def is_exception(content, found, expected, reason):
    """Whether wfs may differ here: it reads version 1, the other byte order, arrays of arrays and what LARGE is, and is stricter in three ways."""
    if found is None:
        return STRICTER.search(reason) is not None
    version = content[4:8]
    return expected is None and (reason == LARGE or version[:2] == b"\0\0" or version == b"\1\0\0\0" or b"\x09\0\0\0\x09\0\0\0" in content)


def compare_readers(ggml, scratch):
    seeds = [path.read_bytes() for path in sorted(SEEDS.iterdir())]
    contents = seeds + [mutated(seeds, number) for number in range(N_MUTATED)]
    paths = []
    for i, content in enumerate(contents):
        folder = scratch / str(i // 100)
        folder.mkdir(exist_ok=True)
        paths.append(folder / f"{i}.gguf")
        paths[-1].write_bytes(content)
    n_accepted, different = 0, []
    for path, content, (found, reason) in zip(paths, contents, by_wfs(paths), strict=True):
        expected = by_ggml(ggml, path)
        n_accepted += found is not None and expected is not None
        if found != expected and not is_exception(content, found, expected, reason):
            different.append(f"{path.name}: wfs {found or reason}, ggml {expected}")
    check(not different, f"wfs and ggml read the same of {len(contents)} files: {different[:3]}")
    check(n_accepted > len(contents) // 20, f"{n_accepted} of them are taken by both")


# general.file_type of what is compared.
FILE_TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 7, "Q2_K": 10, "Q4_K_M": 15, "Q6_K": 18, "IQ4_XS": 30, "BF16": 32}
INT, FLOAT, BOOL, STR = range(4)
OVERRIDES = [("llama.context_length", INT, -512), ("new.float", FLOAT, 0.1), ("new.bool", BOOL, True), ("general.name", STR, "x=y")]
OPTIONS = ["llama.context_length=int:-512", "new.float=float:0.1", "new.bool=bool:true", "general.name=str:x=y"]


def override_array(overrides):
    array = (llama_cpp.llama_model_kv_override * (len(overrides) + 1))()
    for place, (key, tag, value) in zip(array, overrides):
        place.key, place.tag = key.encode(), tag
        if tag == STR:
            place.value.val_str = value.encode()
        else:
            setattr(place.value, {INT: "val_i64", FLOAT: "val_f64", BOOL: "val_bool"}[tag], value)
    return array


def quantize(source, out, name, requantize=False, overrides=()):
    """Whether llama-quantize's own function writes the file."""
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.nthread, parameters.ftype, parameters.allow_requantize = 1, FILE_TYPES[name], requantize
    if overrides:
        parameters.kv_overrides = override_array(overrides)
    return llama_cpp.llama_model_quantize(str(source).encode(), str(out).encode(), ctypes.byref(parameters)) == 0


def compare(scratch, source, name, *, shown=None, options=(), **quantizer):
    out = scratch / "out.gguf"
    written = quantize(source, out, name, **quantizer)
    words = [word for option in options for word in ("-o", option)]
    run = subprocess.run([WFS, "cat", *words, shown or source, f"gguf/model-{name}.gguf"], capture_output=True)
    same = run.stdout == out.read_bytes() if written else run.returncode == 1
    check(same, f"{name} of {source.name} {' '.join(options)} is what llama.cpp writes{'' if written else ', nothing'}")


def compare_quantizers(scratch):
    model, parts = scratch / "tiny-llama", scratch / "parts"
    subprocess.run([sys.executable, ROOT / "tests" / "data" / "make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
    sources = {}
    for name in ("gguf/model-F32.gguf", "model.gguf", "gguf/model-Q8_0.gguf", "gguf/model-Q4_K_M.gguf"):
        folder = scratch / f"source {len(sources)}"
        folder.mkdir()
        sources[name] = folder / pathlib.Path(name).name
        subprocess.run([WFS, "cp", model, name, sources[name]], check=True)
    for name in FILE_TYPES:
        compare(scratch, sources["gguf/model-F32.gguf"], name)
        compare(scratch, sources["model.gguf"], name)
        compare(scratch, sources["gguf/model-Q8_0.gguf"], name)
        compare(scratch, sources["gguf/model-Q4_K_M.gguf"], name, options=["requantize"], requantize=True)
    options = [f"override-kv={option}" for option in OPTIONS]
    compare(scratch, sources["gguf/model-F32.gguf"], "Q4_K_M", options=options, overrides=OVERRIDES)

    subprocess.run([WFS, "cp", "-r", "-o", "split=5", sources["model.gguf"], "gguf/split", parts], check=True)
    first = sorted(path for path in parts.iterdir() if path.name.startswith("model-0"))[0]
    compare(scratch, first, "Q4_K_M")
    check(llama_cpp.Llama(model_path=str(first), verbose=False).tokenize(b"the") != [], "llama.cpp opens the parts")
    merged = scratch / "merged.gguf"
    subprocess.run([WFS, "cp", first, "model.gguf", merged], check=True)
    compare(scratch, merged, "Q4_K_M")


def main():
    llama_cpp.llama_log_set(QUIET, ctypes.c_void_p())
    with tempfile.TemporaryDirectory() as scratch:
        compare_quantizers(pathlib.Path(scratch))
        ggml = load_ggml()
        ggml.ggml_log_set(ctypes.cast(QUIET, ctypes.c_void_p), None)
        compare_readers(ggml, pathlib.Path(scratch))
    done()


QUIET = llama_cpp.llama_log_callback(lambda level, text, data: None)
if __name__ == "__main__":
    main()
