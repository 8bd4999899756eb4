"""Golden files: what llama.cpp's converter makes of small checkpoints, which NAME.json describes and records.

A description has "config" (config.json; null: none), "tensors" ({name: "BF16 320x64"}, with [0-3] for a number in a name), "tokenizer" (llama: that
of llama-tiny; bytes: a tokenizer of bytes without merges; "unigram 19": a SentencePiece model of 19 pieces) and "documents" ({name: other small files}), and may have "variants" of the converter's options (auto if
not), "special" (tokens behind those of bytes), "comes_back" (true: hf/ of the GGUF becomes the same GGUF) and "folders" ({name: {"documents", "tensors"}}). Values of tensors follow from their names.
`scripts/golden NAME` fills in "files": by build and variant the SHA-256 of the file, its keys and tensors. Only Python's own modules are used.
"""
import hashlib
import json
import pathlib
import re
import shutil
import struct

HERE = pathlib.Path(__file__).resolve().parent
TINY = HERE.parent / "data/gguf/models/llama-tiny"
SIZES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8, "U8": 1, "F8_E4M3": 1}
# By variant: the converter's options, the file in wfs's tree, and wfs's options.
VARIANTS = {
    "auto": ([], "model.gguf", []),
    "f32": (["--outtype", "f32"], "gguf/model-F32.gguf", []),
    "mtp": (["--mtp"], "mtp-model.gguf", []),
    "no-mtp": (["--no-mtp"], "model.gguf", ["mtp=no"]),
    "fuse-qkv": (["--fuse-qkv"], "model.gguf", ["fuse=qkv"]),
    "fuse-gate-up-exps": (["--fuse-gate-up-exps"], "model.gguf", ["fuse=gate-up-exps"]),
    "fp8-as-q8": (["--fp8-as-q8"], "model.gguf", ["fp8-as-q8"]),
    "mmproj": (["--mmproj"], "mmproj.gguf", []),
    "mmproj-f16": (["--mmproj", "--outtype", "f16"], "gguf/mmproj-F16.gguf", []),
    "dense": (["--sentence-transformers-dense-modules"], "model.gguf", ["dense-modules"]),
}


def load(name):
    return json.loads((HERE / f"{name}.json").read_text())


def save(name, description):
    text = json.dumps(description, indent=1)
    text = re.sub(r"\[\s[^{}]*?\](?=,?\n +[\"}])", lambda found: re.sub(r"\s+", " ", found[0]).replace("[ ", "[").replace(" ]", "]"), text)
    (HERE / f"{name}.json").write_text(text + "\n")


def names():
    return sorted(path.stem for path in HERE.glob("*.json"))


def expand(name):
    """ "a.[0-1].b" is a.0.b and a.1.b."""
    found = re.search(r"\[(\d+)-(\d+)\]", name)
    if found is None:
        return [name]
    return [other for i in range(int(found[1]), int(found[2]) + 1) for other in expand(name[: found.start()] + str(i) + name[found.end() :])]


def values(name, dtype, count):
    """Bytes that depend on the name only. Floats are between 2^-8 and 1, of either sign."""
    drawn = hashlib.shake_128(name.encode()).digest(count * 4)
    words = struct.unpack(f"<{count}I", drawn)
    if dtype in ("F32", "BF16"):
        floats = [(word & 0x80000000) | (119 + (word >> 24 & 7)) << 23 | (word & 0x7FFFFF) for word in words]
        return struct.pack(f"<{count}I", *floats) if dtype == "F32" else struct.pack(f"<{count}H", *(word >> 16 for word in floats))
    if dtype == "F16":
        return struct.pack(f"<{count}H", *((word >> 16 & 0x8000) | (7 + (word >> 24 & 7)) << 10 | (word & 0x3FF) for word in words))
    if dtype == "F8_E4M3":
        return struct.pack(f"<{count}B", *((word & 0x80) | 0x20 + (word & 0x1F) for word in words))
    return struct.pack(f"<{count}q" if dtype == "I64" else f"<{count}B", *(word & 0xFF for word in words))


def write_tensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, bytearray()
    for pattern, told in tensors.items():
        dtype, shape = told.split()
        shape = [int(size) for size in shape.split("x")]
        count = 1
        for size in shape:
            count *= size
        for name in expand(pattern):
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + count * SIZES[dtype]]}
            data += values(name, dtype, count)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def bytes_tokenizer(special):
    """The alphabet of byte-level tokenizers, as GPT-2 has it, and special tokens."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = sorted(chr(byte) for byte in printable) + [chr(256 + i) for i in range(len(others))]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = [{"id": 256 + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, text in enumerate(special)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": level, "post_processor": None,
            "decoder": level, "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": {letter: i for i, letter in enumerate(letters)}, "merges": []}}  # fmt: skip


def unigram_model(count):
    """A SentencePiece Unigram model, in the encoding of protocol buffers."""
    def number(value):
        return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])

    def field(index, content):
        if isinstance(content, float):
            return bytes([index << 3 | 5]) + struct.pack("<f", content)
        return bytes([index << 3]) + number(content) if isinstance(content, int) else bytes([index << 3 | 2]) + number(len(content)) + content

    pieces = [(b"<unk>", 0.0, 2), (b"<s>", 0.0, 3), (b"</s>", 0.0, 3), *((b"p%d" % i, -1.5 - i / 16, 1) for i in range(3, count))]
    out = b"".join(field(1, field(1, text) + field(2, score) + field(3, kind)) for text, score, kind in pieces)
    return out + field(2, field(3, 1) + field(4, count)) + field(3, field(1, b"identity") + field(3, 0) + field(4, 1))


def make(description, folder):
    """Writes the checkpoint."""
    folder.mkdir(parents=True)
    documents = {**({"config.json": description["config"]} if description["config"] else {}), **description.get("documents", {})}
    if description["tokenizer"] == "llama":
        shutil.copy(TINY / "tokenizer.model", folder)
    elif description["tokenizer"].startswith("unigram "):
        (folder / "tokenizer.model").write_bytes(unigram_model(int(description["tokenizer"].split()[1])))
    else:
        documents = {"tokenizer.json": bytes_tokenizer(description.get("special", [])), "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast"}, **documents}
    for name, document in documents.items():
        (folder / name).write_text(document if isinstance(document, str) else json.dumps(document))
    write_tensors(folder / "model.safetensors", description["tensors"])
    for name, inside in description.get("folders", {}).items():
        (folder / name).mkdir()
        for document, content in inside["documents"].items():
            (folder / name / document).write_text(json.dumps(content))
        write_tensors(folder / name / "model.safetensors", inside["tensors"])
    return folder


# Records of GGUF files.

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, kind):
        value = struct.unpack_from("<" + kind, self.data, self.at)[0]
        self.at += struct.calcsize("<" + kind)
        return value

    def text(self):
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def value(self, kind):
        """Of long arrays, a digest."""
        if kind == STRING:
            return self.text()
        if kind != ARRAY:
            return self.number(NUMBERS[kind])
        start, of, count = self.at, self.number("I"), self.number("Q")
        items = [self.value(of) for _ in range(count)]
        return items if count <= 16 else f"{count} elements, {hashlib.sha256(self.data[start:self.at]).hexdigest()[:16]}"


def record(data):
    """What is kept of a file: {"sha256", "keys": {name: [type, value]}, "tensors": {name: [type, dimensions]}}."""
    reader = Reader(data)
    reader.at = 8
    n_tensors, n_keys = reader.number("Q"), reader.number("Q")
    keys = {}
    for _ in range(n_keys):
        name, kind = reader.text(), reader.number("I")
        keys[name] = [kind, reader.value(kind)]
    tensors = {}
    for _ in range(n_tensors):
        name = reader.text()
        shape = [reader.number("Q") for _ in range(reader.number("I"))]
        tensors[name] = [reader.number("I"), shape]
        reader.number("Q")
    return {"sha256": hashlib.sha256(data).hexdigest(), "keys": keys, "tensors": tensors}


def differences(expected, found):
    """Lines that say how two records differ; none if they are equal."""
    if expected["sha256"] == found["sha256"]:
        return []
    lines = []
    for part in ("keys", "tensors"):
        theirs, ours = expected[part], found[part]
        lines += [f"{part} {name}: {ours.get(name, 'missing')}, expected {theirs.get(name, 'none')}" for name in {**theirs, **ours} if theirs.get(name) != ours.get(name)]
        if list(theirs) != list(ours):
            lines.append(f"the order of {part} differs")
    return lines or ["values of tensors differ"]
