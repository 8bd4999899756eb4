#!/usr/bin/env python3
"""Makes inputs for tests and the demo; needs numpy only. Nothing here is shared with wfs itself: files are written from the
descriptions of their formats.

    make.py sample DIR              a small Llama as a Hugging Face directory, with BF16 weights
    make.py demo DIR                the same with a tokenizer of SentencePiece, as Llama 2 has, which needs no guess
    make.py vision DIR              the same Llama with a vision encoder: a small SmolVLM
    make.py safetensors-corpus DIR  beginnings for fuzzing the header of safetensors files
"""

import collections
import json
import pathlib
import re
import struct
import sys

import numpy


def bf16(values):
    """The bytes of F32 values in BF16, rounded to the nearest, ties to even; none of them may be NaN."""
    bits = numpy.ascontiguousarray(values, "<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()


def safetensors_file(header, data=b""):
    """A file of that header, which is JSON text or what json.dumps takes."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def safetensors(tensors, metadata=None):
    """A file of tensors, {name: (dtype, shape, bytes)}: aligned to 8 bytes, largest elements first, as the library writes it."""
    header, data = {}, []
    if metadata is not None:
        header["__metadata__"] = metadata
    offset = 0
    element_bytes = lambda name: len(tensors[name][2]) / max(1, numpy.prod(tensors[name][1], dtype=float))
    for name in sorted(tensors, key=lambda name: (-element_bytes(name), name)):
        dtype, shape, content = tensors[name]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + len(content)]}
        offset += len(content)
        data.append(content)
    text = json.dumps(header, separators=(",", ":")).encode()
    return safetensors_file(text + b" " * (-len(text) % 8), b"".join(data))


# The sample: a Llama of two layers that has learnt nothing.

SAMPLE = dict(vocab=576, hidden=256, intermediate=768, layers=2, heads=4, kv_heads=2)

SAMPLE_TEXT = """A file system shows what is stored as files; this one shows what could be computed. The weights of a model are tensors, and
every tensor is a file that can be read, copied, mapped and compared. Nothing is converted before somebody reads, and what nobody reads
costs nothing. The first byte is there at once, the last byte when it is asked for, and both are the same bytes every time. A reader that
starts in the middle gets the middle. A reader that goes backwards gets the same file backwards. In 2 layers and 4 heads there is little
to learn, and this model has learnt nothing at all: its weights are random numbers, its tokens are pieces of this very text. Blocks of
thirty-two values share a scale; rows are whole blocks, or the view is absent. Names become paths, shapes become sizes, and a checkpoint of
a hundred thousand names is listed without delay. What cannot be offered is left out, with the reason beside it. Truncated sources, broken
headers and hostile indices each get one line that says where and why; the rest keeps working. Quantized weights arrive as though they had
been written yesterday, although nobody ever wrote them."""

# How Llama 3 cuts text into words.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def byte_letters():
    """The letter that stands for each byte in a byte-level vocabulary: itself where it is printable, else the next free one."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def learn_merges(text, n_merges):
    """Byte pair encoding: the most frequent neighbours are joined, again and again; ties go to the first in the alphabet, and no
    token is made twice."""
    letters = byte_letters()
    words = collections.Counter(re.findall(r" ?[A-Za-z]+|[0-9]{1,3}| ?[^\sA-Za-z0-9]+|\s+", text))
    pieces = {word: [letters[byte] for byte in word.encode()] for word in words}
    merges, known = [], set()
    while len(merges) < n_merges:
        pairs = collections.Counter()
        for word, parts in pieces.items():
            for pair in zip(parts, parts[1:]):
                pairs[pair] += words[word]
        best = min((pair for pair in pairs if "".join(pair) not in known), key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        known.add("".join(best))
        for parts in pieces.values():
            for i in reversed(range(len(parts) - 1)):
                if tuple(parts[i : i + 2]) == best:
                    parts[i : i + 2] = ["".join(best)]
    return merges


def sample_tokenizer(n_tokens):
    specials = ["<|begin_of_text|>", "<|end_of_text|>"]
    letters = sorted(byte_letters().values())
    merges = learn_merges(SAMPLE_TEXT, n_tokens - len(letters) - len(specials))
    tokens = letters + ["".join(pair) for pair in merges]
    added = [
        {"id": len(tokens) + i, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": True}
        for i, content in enumerate(specials)
    ]  # fmt: skip
    bos = {"id": specials[0], "ids": [len(tokens)], "tokens": [specials[0]]}
    start = {"SpecialToken": {"id": specials[0], "type_id": 0}}
    sequence = lambda name, type_id: {"Sequence": {"id": name, "type_id": type_id}}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    assert len(tokens) + len(added) == n_tokens and len(set(tokens)) == len(tokens)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": WORDS}, "behavior": "Isolated", "invert": False},
                byte_level,
            ],
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, sequence("A", 0)],
            "pair": [start, sequence("A", 0), start, sequence("B", 1)],
            "special_tokens": {specials[0]: bos},
        },
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": True,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [" ".join(pair) for pair in merges],
        },
    }


def sample_shapes():
    hidden, intermediate = SAMPLE["hidden"], SAMPLE["intermediate"]
    kv = hidden // SAMPLE["heads"] * SAMPLE["kv_heads"]
    shapes = {"model.embed_tokens.weight": (SAMPLE["vocab"], hidden)}
    for i in range(SAMPLE["layers"]):
        layer = f"model.layers.{i}."
        shapes[layer + "input_layernorm.weight"] = (hidden,)
        shapes[layer + "self_attn.q_proj.weight"] = (hidden, hidden)
        shapes[layer + "self_attn.k_proj.weight"] = (kv, hidden)
        shapes[layer + "self_attn.v_proj.weight"] = (kv, hidden)
        shapes[layer + "self_attn.o_proj.weight"] = (hidden, hidden)
        shapes[layer + "post_attention_layernorm.weight"] = (hidden,)
        shapes[layer + "mlp.gate_proj.weight"] = (intermediate, hidden)
        shapes[layer + "mlp.up_proj.weight"] = (intermediate, hidden)
        shapes[layer + "mlp.down_proj.weight"] = (hidden, intermediate)
    return shapes | {"model.norm.weight": (hidden,), "lm_head.weight": (SAMPLE["vocab"], hidden)}


def sample_weights(seed=1):
    random = numpy.random.default_rng(seed)
    weights = {}
    for name, shape in sample_shapes().items():
        values = random.standard_normal(shape, "f4") * numpy.float32(0.02)
        weights[name] = ("BF16", shape, bf16(values + 1 if len(shape) == 1 else values))
    return weights


def sample_configs():
    bos, eos = SAMPLE["vocab"] - 2, SAMPLE["vocab"] - 1
    config = {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "bos_token_id": bos,
        "eos_token_id": eos,
        "head_dim": SAMPLE["hidden"] // SAMPLE["heads"],
        "hidden_act": "silu",
        "hidden_size": SAMPLE["hidden"],
        "initializer_range": 0.02,
        "intermediate_size": SAMPLE["intermediate"],
        "max_position_embeddings": 2048,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": SAMPLE["heads"],
        "num_hidden_layers": SAMPLE["layers"],
        "num_key_value_heads": SAMPLE["kv_heads"],
        "rms_norm_eps": 1e-05,
        "rope_scaling": None,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": SAMPLE["vocab"],
    }
    generation = {"bos_token_id": bos, "eos_token_id": eos, "do_sample": True, "temperature": 0.6, "top_p": 0.9}
    tokenizer = {
        "bos_token": "<|begin_of_text|>",
        "eos_token": "<|end_of_text|>",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 2048,
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    return {"config.json": config, "generation_config.json": generation, "tokenizer_config.json": tokenizer}


SAMPLE_README = """---
license: mit
language:
- en
pipeline_tag: text-generation
tags:
- sample
---
# Tiny Llama, a sample

Two layers of random numbers in the shape of a Llama, made by `tests/data/make.py`. It speaks no sense, and fast.
"""


def make_sample(directory):
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in sample_configs().items():
        (directory / name).write_text(json.dumps(content, indent=2) + "\n")
    tokenizer = sample_tokenizer(SAMPLE["vocab"])
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (directory / "README.md").write_text(SAMPLE_README)
    (directory / "model.safetensors").write_bytes(safetensors(sample_weights(), {"format": "pt"}))


# The sample with a tokenizer of SentencePiece.


def protobuf_field(number, value):
    """A number, a float, or bytes."""
    varint = lambda n: b"" if n == 0 else bytes([n & 127 | (128 if n > 127 else 0)]) + varint(n >> 7)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + (varint(value) or b"\0")
    return varint(number << 3 | 2) + (varint(len(value)) or b"\0") + value


def sentencepiece_model(n_tokens):
    """tokenizer.model: <unk>, <s>, </s>, a piece for each byte, then letters and merges, the best first."""
    plain, unknown, control, byte = 1, 2, 3, 6
    letters = {letter: number for number, letter in byte_letters().items()}
    merges = ["".join(pair) for pair in learn_merges(SAMPLE_TEXT, n_tokens - 258)]
    learnt = [bytes(letters[letter] for letter in merge).decode() for merge in merges if all(letters[letter] < 128 for letter in merge)]
    singles = sorted({character for text in learnt for character in text})
    pieces = [("<unk>", unknown), ("<s>", control), ("</s>", control)] + [(f"<0x{number:02X}>", byte) for number in range(256)]
    learnt = learnt[: n_tokens - len(pieces) - len(singles)]
    pieces += [(text.replace(" ", "\u2581"), plain) for text in learnt + singles]
    assert len(pieces) == n_tokens
    out = b""
    for number, (text, kind) in enumerate(pieces):
        score = float(-max(number - 259, 0)) if kind == plain else 0.0
        out += protobuf_field(1, protobuf_field(1, text.encode()) + protobuf_field(2, score) + protobuf_field(3, kind))
    trainer = protobuf_field(3, 2) + protobuf_field(35, 1) + b"".join(protobuf_field(40 + i, i) for i in range(3))
    return out + protobuf_field(2, trainer) + protobuf_field(3, protobuf_field(1, b"identity") + protobuf_field(3, 1) + protobuf_field(4, 0))


def make_demo(directory):
    make_sample(directory)
    (directory / "tokenizer.json").unlink()
    (directory / "tokenizer.model").write_bytes(sentencepiece_model(SAMPLE["vocab"]))
    for name, content in sample_configs().items():
        content |= {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "tokenizer_class": "LlamaTokenizer"} \
            if name == "tokenizer_config.json" else {"bos_token_id": 1, "eos_token_id": 2}
        (directory / name).write_text(json.dumps(content, indent=2) + "\n")


# The sample with a vision encoder: its images have 64x64 pixels in patches of 16x16.

VISION = dict(hidden=32, intermediate=64, layers=2, heads=4, image=64, patch=16, scale=4)


def vision_shapes():
    hidden, intermediate, patch = VISION["hidden"], VISION["intermediate"], VISION["patch"]
    encoder = "model.vision_model."
    shapes = {encoder + "embeddings.position_embedding.weight": ((VISION["image"] // patch) ** 2, hidden),
              "model.connector.modality_projection.proj.weight": (SAMPLE["hidden"], hidden * VISION["scale"] ** 2)}  # fmt: skip
    with_bias = {"embeddings.patch_embedding": (hidden, 3, patch, patch), "post_layernorm": (hidden,)}
    for i in range(VISION["layers"]):
        layer = f"encoder.layers.{i}."
        with_bias |= {layer + name: (hidden,) for name in ("layer_norm1", "layer_norm2")}
        with_bias |= {layer + f"self_attn.{name}_proj": (hidden, hidden) for name in ("q", "k", "v", "out")}
        with_bias |= {layer + "mlp.fc1": (intermediate, hidden), layer + "mlp.fc2": (hidden, intermediate)}
    for name, shape in with_bias.items():
        shapes |= {f"{encoder}{name}.weight": shape, f"{encoder}{name}.bias": shape[:1]}
    return shapes


def make_vision(directory):
    make_sample(directory)
    text = sample_configs()["config.json"]
    vision = {"model_type": "smolvlm_vision", "hidden_size": VISION["hidden"], "intermediate_size": VISION["intermediate"],
              "num_attention_heads": VISION["heads"], "num_hidden_layers": VISION["layers"], "image_size": VISION["image"],
              "patch_size": VISION["patch"]}  # fmt: skip
    config = {"architectures": ["SmolVLMForConditionalGeneration"], "model_type": "smolvlm", "scale_factor": VISION["scale"],
              "torch_dtype": "bfloat16", "text_config": text, "vision_config": vision}  # fmt: skip
    preprocessor = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "size": {"longest_edge": VISION["image"]}}
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (directory / "preprocessor_config.json").write_text(json.dumps(preprocessor, indent=2) + "\n")
    renamed = {re.sub("^model\\.", "model.text_model.", name): tensor for name, tensor in sample_weights().items()}
    random = numpy.random.default_rng(2)
    seen = {name: ("BF16", shape, bf16(random.standard_normal(shape, "f4"))) for name, shape in vision_shapes().items()}
    (directory / "model.safetensors").write_bytes(safetensors(renamed | seen, {"format": "pt"}))


def make_safetensors_corpus(directory):
    """One file per feature of the format, as small as can be: a fuzzer finds the combinations."""
    one = {"dtype": "I32", "shape": [1], "data_offsets": [0, 4]}
    tensor = lambda dtype, shape, n_bytes: {"dtype": dtype, "shape": shape, "data_offsets": [0, n_bytes]}
    empty = {"dtype": "F32", "shape": [0, 3], "data_offsets": [4, 4]}
    files = {
        "one": safetensors_file({"a": one}, b"abcd"),
        "none": safetensors_file({}),
        "metadata": safetensors_file({"__metadata__": {"format": "pt"}, "a": one}, b"abcd"),
        "metadata-null": safetensors_file({"__metadata__": None, "a": one}, b"abcd"),
        "two": safetensors_file({"b": one, "a": {"dtype": "BF16", "shape": [1, 2], "data_offsets": [4, 8]}}, b"abcdefgh"),
        "empty-tensor": safetensors_file({"a": one, "z": empty}, b"abcd"),
        "scalar": safetensors_file({"a": tensor("F64", [], 8)}, b"abcdefgh"),
        "f4": safetensors_file({"a": tensor("F4", [2, 2], 2)}, b"ab"),
        "f6": safetensors_file({"a": tensor("F6_E2M3", [4], 3)}, b"abc"),
        "names": safetensors_file(b'{"":%b}' % json.dumps(one).encode(), b"abcd"),
        "escapes": safetensors_file(b'{"\\u0000/\\ud83d\\ude00..":%b}' % json.dumps(one).encode(), b"abcd"),
        "extra-field": safetensors_file({"a": one | {"more": [{"x": [1.5e3, None, True]}]}}, b"abcd"),
        "overflow": safetensors_file({"a": tensor("F32", [0, 1 << 63, 4], 0)}),
        "wraps": safetensors_file({"a": tensor("U8", [4194305, 4194305, 211106198978564], 4)}, b"abcd"),
        "overlap": safetensors_file({"a": one, "b": one}, b"abcd"),
        "hole": safetensors_file({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}, b"ab"),
        "trailing": safetensors_file({"a": one}, b"abcdefgh"),
        "cut": safetensors_file({"a": one}, b"ab"),
        "padded": safetensors_file(b' {"a":%b}  \n' % json.dumps(one).encode(), b"abcd"),
        "duplicate": safetensors_file(b'{"a":1,"\\u0061":%b}' % json.dumps(one).encode(), b"abcd"),
        "open-string": safetensors_file(b'{}"'),
        "long-header": struct.pack("<Q", 1 << 40) + b"{}",
        "deep": safetensors_file(b'{"a":' + b"[" * 200 + b"]" * 200 + b"}"),
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)


MAKERS = {"sample": make_sample, "demo": make_demo, "vision": make_vision, "safetensors-corpus": make_safetensors_corpus}

if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in MAKERS:
        sys.exit(__doc__)
    MAKERS[sys.argv[1]](pathlib.Path(sys.argv[2]))
