"""llama.cpp loads a mounted model.gguf by mmap and says the same as with a copy of it, quantized files included."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

from interop import ROOT, WFS, check, done, mounted

from llama_cpp import Llama


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


def main():
    with tempfile.TemporaryDirectory() as scratch:
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


main()
