"""wfs verify recognizes what llama-quantize makes with importance matrices that wfs is not given, and what was changed in it."""
import ctypes
import json
import pathlib
import subprocess
import sys
import tempfile

import llama_cpp
import numpy as np
from gguf import GGUFReader

from interop import ROOT, WFS, check, done

FILE_TYPES = {"Q2_K": 10, "Q3_K_M": 12, "Q4_K_M": 15, "Q5_K_M": 17, "Q6_K": 18, "IQ4_NL": 25, "IQ4_XS": 30, "Q4_0": 2, "Q4_1": 3, "Q5_0": 8,
              "Q5_1": 9}
EXACT = ("Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K", "IQ4_XS")
SCALES = {"Q2_K": 80, "Q3_K": 108, "Q4_K": 0, "Q5_K": 0, "Q6_K": 208, "IQ4_XS": 0, "IQ4_NL": 0}  # of the F16
CODES = {"Q2_K": 20, "Q3_K": 40, "Q4_K": 60, "Q5_K": 60, "Q6_K": 20, "IQ4_XS": 12, "IQ4_NL": 5}


def matrix(source):
    """Importances of all matrices: a column in ten matters a hundred times as much as the others."""
    random = np.random.default_rng(5)
    arrays = []
    for tensor in GGUFReader(source).tensors:
        if len(tensor.shape) == 2:
            values = (random.exponential(1, int(tensor.shape[0])) * np.where(random.random(int(tensor.shape[0])) < 0.1, 100, 1)).astype("<f4")
            arrays.append((tensor.name.encode(), values))
    data = (llama_cpp.llama_model_imatrix_data * (len(arrays) + 1))()
    for i, (name, values) in enumerate(arrays):
        data[i] = llama_cpp.llama_model_imatrix_data(name, values.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), len(values))
    return data, arrays


def quantize(source, out, name, importances):
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.nthread, parameters.ftype, parameters.imatrix = 1, FILE_TYPES[name], importances
    return llama_cpp.llama_model_quantize(str(source).encode(), str(out).encode(), ctypes.byref(parameters)) == 0


def verify(file, model):
    run = subprocess.run([WFS, "verify", "--json", file, model], capture_output=True)
    return run.returncode, json.loads(run.stdout) if run.stdout else {}


def change(path, name):
    """Three copies of the file with one code, or one scale, of a tensor changed: (what, path)."""
    tensor = next(t for t in GGUFReader(path).tensors if t.tensor_type.name in SCALES and t.name.endswith("ffn_up.weight"))
    kind, data = tensor.tensor_type.name, path.read_bytes()
    block = tensor.data_offset + 3 * {"Q2_K": 84, "Q3_K": 110, "Q4_K": 144, "Q5_K": 176, "Q6_K": 210, "IQ4_XS": 136, "IQ4_NL": 18}[kind]
    for what, factor in ("code", None), ("half", 0.5), ("more", 1.7):
        changed = bytearray(data)
        if factor is None:
            changed[block + CODES[kind]] ^= 1
        else:
            scale = np.frombuffer(data, "<f2", 1, block + SCALES[kind]).astype("f4") * factor
            changed[block + SCALES[kind]:block + SCALES[kind] + 2] = scale.astype("<f2").tobytes()
        out = path.with_name(f"{name}-{what}.gguf")
        out.write_bytes(changed)
        yield what, tensor.name, out


def shuffle(path):
    """Other weights of the same distribution: all numbers of two bytes in another order."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    path.write_bytes(data[:start] + np.random.default_rng(9).permutation(np.frombuffer(data, "<u2", offset=start)).tobytes())


def main():
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        model, other, source = scratch / "tiny-llama", scratch / "other", scratch / "source.gguf"
        for folder in model, other:
            subprocess.run([sys.executable, ROOT / "tests" / "data" / "make.py", "sample", folder], check=True, stdout=subprocess.DEVNULL)
        shuffle(next(other.glob("*.safetensors")))
        subprocess.run([WFS, "cp", model, "model.gguf", source], check=True)
        importances, _ = matrix(source)
        for name in FILE_TYPES:
            file = scratch / f"{name}.gguf"
            check(quantize(source, file, name, importances), f"llama.cpp writes {name}")
            status, result = verify(file, model)
            check(status == 4 and result["answer"] == "nearest codes" and result["codes"]["other"] == 0,
                  f"{name} with an unknown matrix: status {status}, {result.get('codes')}, {result.get('scales')}, {result.get('counts')}")
            if name in EXACT:
                check(result["codes"]["second_nearest"] == 0, f"{name}: every code is the nearest")
                for what, tensor, changed in change(file, name):
                    status, result = verify(changed, model)
                    found = [t for t in result.get("tensors", []) if t["name"] == tensor and t["verdict"] != "nearest codes"]
                    check(status == 1 and len(found) == 1 and found[0]["codes"]["first_other"] == 3,
                          f"{name}: a changed {what} is found: status {status}, {found}")
            if name not in ("Q2_K", "Q4_K_M", "Q4_0"):
                continue
            status, result = verify(file, other)
            check(status == 1 and result["counts"]["other weights"] > 0, f"{name} of another model: status {status}, {result.get('counts')}")
    done()


if __name__ == "__main__":
    main()
