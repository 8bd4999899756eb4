"""Files that the converters of three builds of llama.cpp write, which PyPI has, are identical to those that wfs makes, and verify names builds
among which is the one that wrote the file. One model has
a post-processor and a repetition_penalty, for which rules changed."""
import importlib.machinery
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import interop
from interop import WFS, check, done

try:
    import torch  # noqa: F401, which the converter needs
    import transformers  # noqa: F401
except ImportError as error:
    interop.skip(str(error))

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILDS = (10472, 10909, 11434)


def load_upstream():
    loader = importlib.machinery.SourceFileLoader("upstream", str(ROOT / "scripts/upstream"))
    upstream = importlib.util.module_from_spec(importlib.util.spec_from_loader("upstream", loader))
    loader.exec_module(upstream)
    return upstream


def make_models(folder):
    """llama-tiny, and the same with files that several rules read."""
    tiny, changed = ROOT / "tests/data/gguf/models/llama-tiny", folder / "changed"
    shutil.copytree(tiny, changed)
    (changed / "tokenizer.json").write_text('{"added_tokens": [], "post_processor": {"type": "ByteLevel"}, "model": {}}')
    (changed / "tokenizer_config.json").write_text('{"add_bos_token": true}')
    (changed / "generation_config.json").write_text('{"repetition_penalty": 1.25}')
    return [tiny, changed]


def main():
    upstream = load_upstream()
    upstream.PYTHON = pathlib.Path(sys.executable)
    with tempfile.TemporaryDirectory() as scratch:
        models, out = make_models(pathlib.Path(scratch)), pathlib.Path(scratch, "model.gguf")
        for build in BUILDS:
            converter = upstream.llama_folder(build)
            for model in models:
                failure = upstream.convert(converter, model, out)
                if not check(failure is None, f"b{build} {model.name}: the converter: {failure}"):
                    continue
                verified = subprocess.run([WFS, "verify", "--json", out, model], capture_output=True, text=True)
                answer = json.loads(verified.stdout or "{}")
                builds = answer.get("builds") or {"first": 0, "last": 0}
                check(answer.get("identical"), f"b{build} {model.name}: {verified.stdout}{verified.stderr}")
                check(builds["first"] <= build <= builds["last"], f"b{build} {model.name}: {builds}")
    done()


if __name__ == "__main__":
    main()
