"""Directories for engines are, file by file, what the official tools wrote of the golden checkpoints."""
import hashlib
import json
import pathlib

from interop import check, done, golden_checkpoints, wfs

KINDS = {"ctmf": "compressed-tensors", "ct": "compressed-tensors/oneshot", "bnb": "bitsandbytes", "mlx": "mlx"}  # a variant's first word, and the directory
# mlx-lm and transformers write tokenizers anew, where wfs shows the source's own.
REBUILT = ("tokenizer.json", "tokenizer_config.json")
SAVED = ("special_tokens_map.json", *REBUILT)  # with a tokenizer, by transformers


def directory_of(variant):
    """'ctmf-w4a16-asym' is compressed-tensors/W4A16_ASYM, 'mlx' is mlx/plain; None for a target that wfs does not have."""
    kind, _, scheme = variant.partition("-")
    if kind not in KINDS or scheme.endswith("-double"):
        return None
    if kind in ("ctmf", "ct"):
        scheme = scheme.upper().replace("-", "_")
    return f"{KINDS[kind]}/{scheme or 'plain'}"


def is_compared(directory, name):
    return name not in SAVED or "oneshot" not in directory and directory.startswith("compressed-tensors/")


checkpoints, compare = golden_checkpoints()
if not checkpoints:
    print("no golden checkpoints: WFS_GOLDEN is not set")
    check(True, "")
    done()
for expected in sorted(pathlib.Path(compare).parent.glob("expected-targets/*.json")):
    for variant, wanted in json.loads(expected.read_text()).items():
        directory = directory_of(variant)
        if directory is None or "files" not in wanted:
            continue
        for name, file in wanted["files"].items():
            if not is_compared(directory, name):
                continue
            made = wfs("cat", checkpoints[expected.stem], f"{directory}/{name}")
            check(made.returncode == 0, f"{expected.stem} {directory}/{name}: {made.stderr.decode().strip()}")
            check(hashlib.sha256(made.stdout).hexdigest() == file["sha256"], f"{expected.stem} {directory}/{name}: other bytes")
done()
