"""Every GGUF that wfs synthesizes of the golden checkpoints is, byte for byte, what the reference tools wrote: all files as the newest build of
llama.cpp that wfs knows writes them, and the converter's own choice as the oldest one did."""
import json
import os
import pathlib
import re
import subprocess
import sys

from interop import WFS, check, done, golden_checkpoints, wfs

CONVERTER = {
    "auto": "model.gguf",
    "f32": "gguf/model-F32.gguf",
    "f16": "gguf/model-F16.gguf",
    "bf16": "gguf/model-BF16.gguf",
    "q8_0": "gguf/converter/model-q8_0.gguf",
    "tq1_0": "gguf/converter/model-tq1_0.gguf",
    "tq2_0": "gguf/converter/model-tq2_0.gguf",
}
# llama-quantize's F16 and BF16, whose names in gguf/ are the converter's.
NOT_OFFERED = {"F16", "BF16"}
# Variants that the converter wrote with an option: wfs's options, and what its file's name begins with.
OPTIONS = {
    "no-mtp-": (["-o", "mtp=no"], ""),
    "mtp-": ([], "mtp-"),
    "fuse-qkv-": (["-o", "fuse=qkv"], ""),
    "fuse-gate-up-exps-": (["-o", "fuse=gate-up-exps"], ""),
    "fp8-as-q8-": (["-o", "fp8-as-q8"], ""),
    "dense-": (["-o", "dense-modules"], ""),
}
OLDEST = "b10470"  # the build of the sets' own files; those of the newest are in expected-b11549
OF_OLDEST = ("auto", "mmproj-f16", "lora-f16")


# What is known to differ, in the words of the comparison: a text of the converter's own.
DIFFERENCES = {
    "DeepSeek-V4-Flash": ("tokenizer.chat_template", "size is "),
    # Products of matrices, whose sums the converter rounds as torch does on its processor.
    "pocket-tts": ("token_embd.weight", "    is ", "    expected "),
    "Qwen3-TTS-12Hz-0.6B-Base": ("token_embd.weight", "    is ", "    expected "),
}
NOT_MARKED = {"DeepSeek-V4-Flash"}
# LoRA adapters, and the checkpoint beside them whose configuration they are made with.
BASES = {"sql-lora": "Llama-3.1-tiny", "qwen3.5-lora": "Qwen3.5-4B"}


def virtual_file(variant, folder):
    """The path of a variant and the mount options it takes: 'Q4_K_M,pure' is gguf/model-Q4_K_M.gguf with -o pure."""
    name, *options = variant.split(",")
    words = [word for option in options for word in ("-o", option)]
    if name.startswith("lora-"):
        base = BASES.get(folder.name)
        return f"gguf/adapter-{name[5:].upper()}.gguf", [*words, *(["-o", f"base={folder.parent / base}"] if base else [])]
    if name.startswith("mmproj-"):
        return f"gguf/mmproj-{name[7:].upper()}.gguf", words
    for prefix, (options, before) in OPTIONS.items():
        if name.startswith(prefix):
            path, _ = virtual_file(name[len(prefix) :], folder)
            return path.replace("model", f"{before}model", 1), [*words, *options]
    return CONVERTER.get(name, f"gguf/model-{name}.gguf"), words


def compare_one(compare, expected_folder, folder, variant, options, scratch):
    """Compares one file with its record."""
    path, words = virtual_file(variant, folder)
    name = folder.name
    with open(scratch, "wb") as out:
        made = subprocess.run([WFS, "cat", *words, *options, folder, path], stdout=out, stderr=subprocess.PIPE)
    if not check(made.returncode == 0, f"{name} {variant}: {made.stderr.decode().strip()}"):
        return
    compared = subprocess.run([sys.executable, compare, name, variant, scratch], capture_output=True, text=True,
                              env={**os.environ, "GOLDEN_EXPECTED": str(expected_folder)})
    unexpected = [line for line in compared.stdout.splitlines()[1:] if line.strip() and not any(text in line for text in DIFFERENCES.get(name, ()))]
    check(compared.returncode == 0 or (name in DIFFERENCES and not unexpected), f"{name} {variant} {' '.join(options)}:\n{compared.stdout}")


def compare_all(kind, scratch):
    """Compares the files of one set; the families and towers that they are of."""
    checkpoints, compare = golden_checkpoints(kind)
    expected_folder = pathlib.Path(compare).parent / (f"expected-{kind}" if kind else "expected") if compare else None
    newest_folder = expected_folder and expected_folder.parent / "expected-b11549"
    families = set()
    for name, folder in checkpoints.items():
        variants = json.loads((expected_folder / f"{name}.json").read_text())
        info = json.loads(wfs("info", "--json", folder).stdout)
        if name not in BASES and name not in NOT_MARKED:
            families.add(info["family"])
        if any(variant.startswith("mmproj-") for variant in variants):
            families.add(info["tower"])
        for variant in variants:
            if variant in NOT_OFFERED:
                continue
            compare_one(compare, newest_folder, folder, variant, [], scratch)
            if variant in OF_OLDEST:
                compare_one(compare, expected_folder, folder, variant, ["-o", f"llama.cpp={OLDEST}"], scratch)
    return families


# The third set is of the newest build only.
# DeepSeek V4's template is the converter's own text.
OWN_TEMPLATE = {"DeepSeek-V4-Flash-Vision-Exp", "DeepSeek-V4-Flash-DSpark", "DeepSeek-V4-Flash-mtp"}


def compare_newest(scratch):
    """Compares the third set, whose descriptions name the model that each draft needs."""
    checkpoints, compare = golden_checkpoints("families3")
    if compare is None:
        return
    sys.path.insert(0, os.environ["WFS_GOLDEN"])
    sys.dont_write_bytecode = True
    from families3 import MODELS

    DIFFERENCES.update(dict.fromkeys(OWN_TEMPLATE, DIFFERENCES["DeepSeek-V4-Flash"]))
    expected_folder = pathlib.Path(compare).parent / "expected-families3"
    for name in sorted(MODELS.keys() & checkpoints.keys()):
        beside = MODELS[name].get("target") or MODELS[name].get("base")
        options = ["-o", f"base={checkpoints[name].parent / beside}"] if beside else []
        for variant in json.loads((expected_folder / f"{name}.json").read_text()):
            compare_one(compare, expected_folder, checkpoints[name], variant, options, scratch)


def compare_options(kind, scratch):
    """Compares the files of the converter's options for the checkpoints of one set."""
    checkpoints, compare = golden_checkpoints(kind)
    if compare is None:
        return
    expected_folder = pathlib.Path(compare).parent / "expected-options"
    for expected in sorted(expected_folder.glob("*.json")):
        for variant in json.loads(expected.read_text()) if expected.stem in checkpoints else ():
            compare_one(compare, expected_folder, checkpoints[expected.stem], variant, [], scratch)


def marked_families():
    """Those that `wfs info --architectures` calls golden-tested."""
    lines = wfs("info", "--architectures").stdout.decode().splitlines()[1:]
    return {re.split("  +", line[2:])[1] for line in lines if line.startswith("* ")}


def main():
    if not os.environ.get("WFS_GOLDEN"):
        print("no golden checkpoints: WFS_GOLDEN is not set")
        sys.exit(0)
    scratch = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"wfs-golden-{os.getpid()}.gguf"
    families = compare_all("", scratch) | compare_all("families2", scratch)
    compare_newest(scratch)
    compare_options("", scratch)
    compare_options("families2", scratch)
    scratch.unlink(missing_ok=True)
    check(families == marked_families(), f"marked, or compared, but not both: {families ^ marked_families()}")
    done()


if __name__ == "__main__":
    main()
