"""Makers of expected values write what is recorded: in a copy of the tests, those that need nothing but packages of PyPI and a few seconds are run
again; of the checkpoints that make_orders.py and make_mmproj_files.py convert, some. CTranslate2's converter runs where it is installed."""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import interop
from interop import ROOT, check, done

try:
    import gguf  # noqa: F401
    import sentencepiece  # noqa: F401, for the converter
    import tokenizers  # noqa: F401
    import torch  # noqa: F401
except ImportError as error:
    interop.skip(str(error))

PRINTED = {"unit/models/tokenizers/make_hf_split.py": "unit/models/tokenizers/hf_split.inc", "data/gguf/make_rearranged.py": "unit/models/relation/rearranged.inc",
           "data/make_names.py": "data/gguf/names.tsv"}  # fmt: skip
WRITTEN = {"data/make_elements.py": "data/quant/elements", "data/make_imatrix.py": "data/gguf", "data/make_packed.py": "data/packed",
           "data/make_structure.py": "data/structure"}  # fmt: skip
if importlib.util.find_spec("ctranslate2"):
    WRITTEN["data/make_ctranslate2.py"] = "data/ctranslate2"
else:
    print("left out: make_ctranslate2.py: ctranslate2 is not installed")
CONVERTED = {"unit/models/make_orders.py": ["A draft model of Gemma 4"], "unit/products/gguf/make_mmproj_files.py": ["llama4"]}


def run(maker, *words):
    made = subprocess.run([sys.executable, maker, *words], capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    check(made.returncode == 0, f"{maker.name}: {made.stdout[-500:]}{made.stderr[-500:]}")
    return made.stdout


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


for maker, path in PRINTED.items():
    check(run(ROOT / "tests" / maker) == (ROOT / "tests" / path).read_text(), f"{path} is not what {maker} prints")
with tempfile.TemporaryDirectory() as scratch:
    copy = pathlib.Path(scratch, "tests")
    shutil.copytree(ROOT / "tests/data", copy / "data")
    shutil.copytree(ROOT / "tests/fuzz/corpus", copy / "fuzz/corpus")
    for maker, path in WRITTEN.items():
        run(copy / maker)
        changed = files(copy / path).items() ^ files(ROOT / "tests" / path).items()
        check(not changed, f"{maker} does not write what is in {path}: {sorted({str(name) for name, _ in changed})}")
for maker, names in CONVERTED.items():
    check(run(ROOT / "tests" / maker, *names) == "", f"{maker} prints differences")
done()
