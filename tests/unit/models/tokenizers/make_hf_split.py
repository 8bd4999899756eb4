#!/usr/bin/env python3
"""Makes hf_split.inc: what huggingface/tokenizers makes of texts with each kind of normalizer and pre-tokenizer.

    python3 tests/unit/models/tokenizers/make_hf_split.py > tests/unit/models/tokenizers/hf_split.inc

Needs tokenizers; the file names its version.
"""
import json

import tokenizers

TEXTS = ["Hello, world! I'm 12345 tokens.  Two  spaces\n\nand\ttabs ", "naïve Straße №5 日本語 テスト ¡hola!", "don't  a_b—c...d 1,000.5 ß É", "", "   ", "🚀🚀 x"]


def byte_level(add_prefix_space=False, use_regex=True):
    return {"type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": True, "use_regex": use_regex}


def split(pattern, behavior, invert=False):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def bert(strip_accents, lowercase):
    return {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": strip_accents, "lowercase": lowercase}


SPACES_OR_VOWELS = {"Regex": r"\s+|[aeiou]"}
PRE_TOKENIZERS = {
    "ByteLevel": byte_level(),
    "ByteLevel, a space before": {"type": "Sequence", "pretokenizers": [byte_level(add_prefix_space=True)]},
    "ByteLevel without its pattern": byte_level(use_regex=False),
    "Digits one by one": {"type": "Digits", "individual_digits": True},
    "Digits": {"type": "Digits", "individual_digits": False},
    "Punctuation": {"type": "Punctuation", "behavior": "Isolated"},
    "Punctuation, contiguous": {"type": "Punctuation", "behavior": "Contiguous"},
    "Punctuation, removed": {"type": "Punctuation", "behavior": "Removed"},
    "Whitespace": {"type": "Whitespace"},
    "WhitespaceSplit": {"type": "WhitespaceSplit"},
    "BertPreTokenizer": {"type": "BertPreTokenizer"},
    "a Sequence": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"},
                                                        {"type": "Digits", "individual_digits": True}]},
    **{f"Split, {behavior}{', inverted' if invert else ''}": split(SPACES_OR_VOWELS, behavior, invert)
       for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous") for invert in (False, True)},
    "Split by a text": split({"String": " "}, "MergedWithNext"),
}  # fmt: skip
NORMALIZERS = {
    "NFC": {"type": "NFC"},
    "NFKC": {"type": "NFKC"},
    "NFD": {"type": "NFD"},
    "Lowercase": {"type": "Lowercase"},
    "Replace": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    "Prepend": {"type": "Prepend", "prepend": "▁"},
    "Strip": {"type": "Strip", "strip_left": True, "strip_right": True},
    "Strip, the left": {"type": "Strip", "strip_left": True, "strip_right": False},
    "BertNormalizer": bert(strip_accents=None, lowercase=True),
    "BertNormalizer, cased": bert(strip_accents=False, lowercase=False),
    "a Sequence": {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "Lowercase"}, {"type": "Prepend", "prepend": "_"}]},
}


def c_text(text):
    return '"' + "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else {34: '\\"', 92: "\\\\"}.get(byte, f"\\{byte:03o}") for byte in text.encode()) + '"'


def row(name, member, description):
    """What a tokenizer of this description does with each text."""
    model = {"type": "BPE", "vocab": {"a": 0}, "merges": []}
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps({"version": "1.0", "model": model, member: description}))
    if member == "normalizer":
        pieces = [tokenizer.normalizer.normalize_str(text) for text in TEXTS]
    else:
        pieces = ["|".join(piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)) for text in TEXTS]
    told = json.dumps({member: description}, separators=(",", ":"), ensure_ascii=False)[1:-1]
    return f"    {{{c_text(name)},\n     {c_text(told)},\n     {{" + ",\n      ".join(map(c_text, pieces)) + "}},"


print(f"""/* Normalizers and pre-tokenizers, and what huggingface/tokenizers {tokenizers.__version__} makes of the texts with them:
 * normalizer.normalize_str() and pre_tokenizer.pre_tokenize_str(), the pieces with a '|' between them. Written by
 * make_hf_split.py. */

static const char *const texts[] = {{
{chr(10).join(f"    {c_text(text)}," for text in TEXTS)}
}};

static const struct {{
    const char *name, *json, *pieces[sizeof texts / sizeof *texts];
}} cases[] = {{""")
for kind, member in ((PRE_TOKENIZERS, "pre_tokenizer"), (NORMALIZERS, "normalizer")):
    for name, description in kind.items():
        print(row(name, member, description))
print("};")
