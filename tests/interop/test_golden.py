"""Every GGUF that wfs synthesizes of the golden checkpoints is, byte for byte, what the reference tools wrote."""
import json
import os
import pathlib
import subprocess
import sys

from interop import WFS, check, done, golden_checkpoints

CONVERTER = {
    "auto": "model.gguf",
    "f32": "gguf/model-F32.gguf",
    "f16": "gguf/model-F16.gguf",
    "bf16": "gguf/model-BF16.gguf",
    "q8_0": "gguf/converter/model-q8_0.gguf",
    "tq1_0": "gguf/converter/model-tq1_0.gguf",
    "tq2_0": "gguf/converter/model-tq2_0.gguf",
}
# Formats that need codebooks, which wfs does not have yet; and llama-quantize's F16 and BF16, whose names in gguf/ are the converter's.
NOT_OFFERED = {"IQ3_S", "IQ3_M", "F16", "BF16"}


def virtual_file(variant):
    """The path of a variant and the mount options it takes: 'Q4_K_M,pure' is gguf/model-Q4_K_M.gguf with -o pure."""
    name, *options = variant.split(",")
    return CONVERTER.get(name, f"gguf/model-{name}.gguf"), [word for option in options for word in ("-o", option)]


def main():
    checkpoints, compare = golden_checkpoints()
    if not checkpoints:
        print("no golden checkpoints: WFS_GOLDEN is not set")
        sys.exit(0)
    scratch = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"wfs-golden-{os.getpid()}.gguf"
    for name, folder in checkpoints.items():
        expected = json.loads((pathlib.Path(compare).parent / "expected" / f"{name}.json").read_text())
        for variant in expected:
            if variant in NOT_OFFERED:
                continue
            path, options = virtual_file(variant)
            with open(scratch, "wb") as out:
                made = subprocess.run([WFS, "cat", *options, folder, path], stdout=out, stderr=subprocess.PIPE)
            if not check(made.returncode == 0, f"{name} {variant}: {made.stderr.decode().strip()}"):
                continue
            compared = subprocess.run([sys.executable, compare, name, variant, scratch], capture_output=True, text=True)
            check(compared.returncode == 0, f"{name} {variant}:\n{compared.stdout}")
    scratch.unlink(missing_ok=True)
    done()


main()
