"""Files that the converters of several builds of llama.cpp write, which PyPI has, are identical to those that wfs makes, and verify names builds
among which is the one that wrote the file. The models are decided by rules that changed (reference_models.py). A golden file of tests/golden is what the converter writes."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import converters
import interop
from interop import WFS, check, done

BUILDS = (10472, 11053, 11549)


def load_upstream():
    loader = importlib.machinery.SourceFileLoader("upstream", str(interop.ROOT / "scripts/upstream"))
    upstream = importlib.util.module_from_spec(importlib.util.spec_from_loader("upstream", loader))
    loader.exec_module(upstream)
    return upstream


def verify(build, model, out):
    verified = subprocess.run([WFS, "verify", "--json", out, model], capture_output=True, text=True)
    answer = json.loads(verified.stdout or "{}")
    builds = answer.get("builds") or {"first": 0, "last": 0}
    check(answer.get("identical"), f"b{build} {model.name}: {verified.stdout}{verified.stderr}")
    check(builds["first"] <= build <= builds["last"], f"b{build} {model.name}: {builds}")
    return builds


def main():
    reason = converters.prepare()
    if reason is not None:
        interop.skip(reason)
    import reference_models  # which needs torch

    os.environ[converters.PRE] = "gpt-2"  # wfs takes it for a tokenizer of bytes without a known hash, too
    upstream = load_upstream()
    folders = {build: upstream.llama_folder(build) for build in BUILDS}
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch, "model.gguf")
        for make, oldest in reference_models.MAKERS.items():
            model = make(pathlib.Path(scratch, make.__name__))
            for build, folder in folders.items():
                failure = converters.convert(folder, model, "--outfile", out)
                if not check((failure is None) == (build >= oldest), f"b{build} {model.name}: the converter: {failure}") or failure is not None:
                    continue
                builds = verify(build, model, out)
                check(builds["first"] >= oldest, f"b{build} {model.name}: {builds}, but older ones fail")
    checked = subprocess.run([sys.executable, interop.ROOT / "scripts/golden", "--check", "qwen3.5"], capture_output=True, text=True,
                             env={**os.environ, "GOLDEN_INSIDE": "1"})
    check(checked.returncode == 0, f"scripts/golden --check: {checked.stdout}{checked.stderr}")
    done()


if __name__ == "__main__":
    main()
