"""llama.cpp loads a mounted model.gguf by mmap and says the same as with a copy of it, quantized files included."""
import ctypes
import pathlib
import shutil
import subprocess
import sys
import tempfile

from interop import ROOT, WFS, check, done, mounted

import gguf
import llama_cpp
import numpy
from llama_cpp import Llama
from safetensors.numpy import save_file


def sample(folder):
    """The checkpoint of the demonstration."""
    model = pathlib.Path(folder) / "tiny-llama"
    subprocess.run([sys.executable, ROOT / "tests" / "data" / "make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
    return model


def generate(path):
    """Tokens of a prompt, and 12 tokens that follow it, always the likeliest."""
    llama = Llama(model_path=str(path), n_ctx=128, n_threads=2, verbose=False, use_mmap=True, seed=1)
    prompt = llama.tokenize(b"the files of a model")
    made = []
    for token in llama.generate(prompt, temp=0.0):
        made.append(token)
        if len(made) == 12:
            break
    return prompt, made


def opens(path):
    """Whether gguf_init_from_file() takes the file, without tensors in memory."""
    class Parameters(ctypes.Structure):
        _fields_ = [("no_alloc", ctypes.c_bool), ("ctx", ctypes.c_void_p)]

    folder = pathlib.Path(llama_cpp.__file__).parent / "lib"
    ggml = next(lib for lib in map(ctypes.CDLL, sorted(map(str, folder.glob("libggml-base*")))))
    ggml.gguf_init_from_file.restype = ctypes.c_void_p
    ggml.gguf_init_from_file.argtypes = [ctypes.c_char_p, Parameters]
    return ggml.gguf_init_from_file(str(path).encode(), Parameters(True, None)) is not None


def check_plain(scratch):
    """A plain container of tensors that ggml would refuse: it takes what is left."""
    source, out = pathlib.Path(scratch) / "odd.safetensors", pathlib.Path(scratch) / "odd.gguf"
    one = numpy.ones((1, 2), dtype="f4")
    shapes = {"": one, "a" * 63: one, "b" * 64: one, "c" * 200: one, "nul\0byte": one, "scalar": numpy.ones((), dtype="f4"),
              "empty": numpy.ones((0, 3), dtype="f4"), "4": one.reshape(1, 1, 1, 2), "5": one.reshape(1, 1, 1, 1, 2),
              "complex": one.astype("c8").reshape(1, 1, 1, 2), "flags": one.astype("?"), "wide": one.astype("u8")}
    save_file(shapes, source)
    subprocess.run([WFS, "cp", source, "model.gguf", out], check=True)
    check(opens(out), "ggml takes the plain container of odd tensors")
    names = {tensor.name for tensor in gguf.GGUFReader(out).tensors}
    check(names == {"", "a" * 63, "scalar", "empty", "4", "flags", "wide"}, f"what ggml takes is there: {names}")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        check_plain(scratch)
        model = sample(scratch)
        with mounted(model) as mountpoint:
            for name in ("model.gguf", "gguf/model-F32.gguf", "gguf/model-Q8_0.gguf", "gguf/model-Q4_K_M.gguf"):
                copy = pathlib.Path(scratch) / "copy.gguf"
                shutil.copyfile(mountpoint / name, copy)
                prompt, from_mount = generate(mountpoint / name)
                check(len(prompt) > 2, f"{name}: the prompt has tokens: {prompt}")
                check((prompt, from_mount) == generate(copy), f"{name}: the same tokens as from a copy")
        ran = subprocess.run([WFS, "exec", model, "--", sys.executable, "-c",
                              "import sys, llama_cpp; llama_cpp.Llama(model_path=sys.argv[1], verbose=False)", "{}/model.gguf"])
        check(ran.returncode == 0, "wfs exec gives the path to a command")
    done()


if __name__ == "__main__":
    main()
