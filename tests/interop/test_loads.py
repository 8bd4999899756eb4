"""llama.cpp loads the F32 GGUF of a tiny random checkpoint of each family that transformers has a class of; of a file that it refuses, a note of
wfs says so. Architectures that the wheel's llama.cpp does not know are listed."""
import dataclasses
import pathlib
import re
import subprocess
import sys
import tempfile

import interop

try:
    import llama_cpp
    import safetensors.torch
    import tiny_models
    import torch
except ImportError as error:
    interop.skip(str(error))

assert llama_cpp and torch

# In a process of its own: some files make llama.cpp abort.
LOAD = """
import sys
import llama_cpp
llama_cpp.llama_backend_init()
parameters = llama_cpp.llama_model_default_params()
model = llama_cpp.llama_model_load_from_file(sys.argv[1].encode(), parameters)
sys.exit(0 if model else 3)
"""
UNKNOWN = "unknown model architecture"
NOTE = "llama.cpp refuses"


def load(path):
    """Whether llama.cpp loads a file, and what it says."""
    run = subprocess.run([sys.executable, "-c", LOAD, path], capture_output=True, timeout=300)
    said = (run.stdout + run.stderr).decode(errors="replace")
    reasons = re.findall(r".*(?:error|failed|unknown model architecture|GGML_ASSERT|missing|cannot).*", said)
    return run.returncode == 0, said, " | ".join(reasons[:2])[:300]


def without_shared(folder):
    """Takes the keys and values of the layers that use those of others, as transformers 5 saves Gemma 3n."""
    path = folder / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    shared = re.compile(r"layers\.9\.self_attn\.[kv]_")
    kept = {name: weight for name, weight in weights.items() if not shared.search(name)}
    interop.check(len(kept) < len(weights), "layer 9 has keys and values")
    safetensors.torch.save_file(kept, path)


def check(case, files, change=None):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / "model"
        folder.mkdir()
        tiny_models.make(case, folder, files)
        if change:
            change(folder)
        path = pathlib.Path(scratch) / "model.gguf"
        made = interop.wfs("cp", folder, "gguf/model-F32.gguf", path)
        if not interop.check(made.returncode == 0, f"{case.title}: {made.stderr.decode().strip()}"):
            return "not made"
        loads, said, reason = load(path)
        if UNKNOWN in said:
            return "unknown"
        noted = NOTE in interop.wfs("info", "--all", folder).stdout.decode()
        interop.check(loads or noted, f"{case.title}: llama.cpp does not load the file, and no note says so: {reason}")
        interop.check(not (loads and noted), f"{case.title}: llama.cpp loads the file, but a note says that it refuses it")
        return "loads" if loads else "noted"


def main():
    files, results = tiny_models.tokenizer_files(), {}
    for case in tiny_models.CASES:
        if len(sys.argv) > 1 and not any(word in case.title for word in sys.argv[1:]):
            continue
        results.setdefault(check(case, files), []).append(case.title)
    gemma = next(case for case in tiny_models.CASES if case.gguf == "gemma3n")
    gemma = dataclasses.replace(gemma, settings=dict(gemma.settings, hidden_size_per_layer_input=256, laurel_rank=64))
    interop.check(check(gemma, files) == "loads", "Gemma 3n as wide as published loads")
    interop.check(check(gemma, files, without_shared) == "noted", "Gemma 3n without the keys and values that are not used is noted")
    for result, titles in sorted(results.items()):
        print(f"{len(titles)} {result}{'' if result == 'loads' else ': ' + ', '.join(titles)}")
    interop.check(len(sys.argv) > 1 or len(results.get("loads", [])) > 50, "most families load")


main()
interop.done()
