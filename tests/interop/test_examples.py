"""The programs of examples/ run as their README says, of a small model."""
import pathlib
import re
import subprocess
import sys
import tempfile

from interop import ROOT, check, done, wfs

EXAMPLES = ROOT / "examples"


def run(source, *command):
    """Standard output of an example under `wfs exec`."""
    result = wfs("exec", source, "--", sys.executable, *command, text=True)
    check(result.returncode == 0, f"{command[0].name} ends well: {result.stderr[-500:]}")
    return result.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        model, gguf = pathlib.Path(folder) / "tiny-llama", pathlib.Path(folder) / "tiny-llama.gguf"
        subprocess.run([sys.executable, ROOT / "tests" / "data" / "make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
        check(wfs("cp", model, "model.gguf", gguf).returncode == 0, "the sample as a GGUF")

        told = run(model, EXAMPLES / "metadata.py", "{}")
        check("1869056 parameters in 21 tensors of huggingface" in told and "3738112 bytes of BF16" in told, f"metadata.py: {told}")
        table = run(model, EXAMPLES / "tensors.py", "{}", "*layernorm*").splitlines()
        check(len(table) == 5 and all(re.search(r" (1\.00|0\.99)\d+ ", line) for line in table[1:]), f"tensors.py: {table}")
        prompt = "the files of a model"
        check(run(model, EXAMPLES / "llama.py", "{}/gguf/model-Q4_K_M.gguf", prompt).strip() != "", "llama.py says something")
        said = run(gguf, EXAMPLES / "generate.py", "{}/hf", prompt)
        check(said.startswith(prompt) and len(said) > len(prompt) + 1, f"generate.py goes on from the prompt: {said!r}")
    done()


if __name__ == "__main__":
    main()
