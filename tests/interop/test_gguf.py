"""gguf-py reads synthesized files back: keys, tensors, and values equal to the checkpoint's."""
import pathlib
import subprocess
import sys
import tempfile

import gguf
import ml_dtypes  # safetensors wants BF16 to be known to numpy
import numpy as np
from gguf.quants import dequantize
from safetensors.numpy import load_file

from interop import ROOT, WFS, check, done


def read(model, path, scratch):
    out = pathlib.Path(scratch) / pathlib.Path(path).name
    subprocess.run([WFS, "cp", model, path, out], check=True)
    return gguf.GGUFReader(out)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        model = pathlib.Path(scratch) / "tiny-llama"
        subprocess.run([sys.executable, ROOT / "tests" / "data" / "make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
        exact = {t.name: t for t in read(model, "gguf/model-F32.gguf", scratch).tensors}
        check(len(exact) > 10, "there are tensors")
        for path, most in (("model.gguf", 1e-2), ("gguf/model-Q8_0.gguf", 1e-3), ("gguf/model-Q4_K_M.gguf", 2e-2)):
            reader = read(model, path, scratch)
            check(reader.get_field("general.architecture").contents() == "llama", f"{path}: architecture")
            check({t.name for t in reader.tensors} == set(exact), f"{path}: tensors")
            for tensor in reader.tensors:
                wanted = exact[tensor.name].data.astype("f4")
                values = dequantize(tensor.data, tensor.tensor_type).reshape(wanted.shape)
                check(np.abs(values - wanted).max() <= most, f"{path}: {tensor.name}: {np.abs(values - wanted).max()}")
        norm = load_file(model / "model.safetensors")["model.norm.weight"]
        check(np.array_equal(exact["output_norm.weight"].data, norm.astype("f4")), "a norm as safetensors has it")
    done()


if __name__ == "__main__":
    main()
