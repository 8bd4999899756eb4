#!/usr/bin/env python3
"""Makes tests/data/tokenizers: small tokenizers with one pre-tokenizer each, and the ids that they give the check text.

    python3 tests/data/make_tokenizers.py CHECK_TEXT

CHECK_TEXT is a file with the text of models/tokenizers/pre_hashes.c. The ids are those of huggingface/tokenizers (PyPI, 0.22).
"""
import json
import pathlib
import sys

from tokenizers import Tokenizer

FOLDER = pathlib.Path(__file__).parent / "tokenizers"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def byte_level(use_regex, prefix=False):
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": use_regex}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return {"type": "Split", "pattern": {kind: pattern}, "behavior": behavior, "invert": invert}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def special(identity, content, normalized=False, **flags):
    return {"id": identity, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": normalized, "special": not normalized, **flags}


def bytes_bpe(pre_tokenizer, normalizer=None, post_processor=None, added=(), ignore_merges=False):
    printable = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255]
    others = [b for b in range(256) if b not in printable]
    alphabet = [chr(b) for b in printable] + [chr(256 + i) for i in range(len(others))]
    merges = [("\u0120", "t"), ("h", "e"), ("3", "3"), ("\u0120", "\u0120"), ("\u0120t", "he"), ("l", "l"), ("33", "3"), ("=", "="),
              ("==", "=="), ("\u010a", "\u010a"), ("o", "u"), ("y", "ou"), ("\u0120", "you"), ("e", "r"), ("-", "-"), ("u", "r"),
              ("\u0120", "c"), ("o", "n"), (".", "."), ("..", "."), ("'", "t")]
    vocab = {token: i for i, token in enumerate(alphabet + [a + b for a, b in merges])}
    start = len(vocab)
    return {"version": "1.0", "truncation": None, "padding": None, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer,
            "added_tokens": [special(start + i, *token) if isinstance(token, tuple) else special(start + i, token)
                             for i, token in enumerate(added)],
            "post_processor": post_processor, "decoder": byte_level(True),
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": ignore_merges,
                      "vocab": vocab, "merges": [list(pair) for pair in merges]}}


def word_piece():
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] + sorted(set("abcdefghijklmnopqrstuvwxyz0123456789.,!?=-'`\"()~")) + \
            ["##" + c for c in "abcdefghijklmnopqrstuvwxyz0123456789"] + ["the", "you", "##er", "normal", "##ll", "3", "##33"]
    vocab = {word: i for i, word in enumerate(dict.fromkeys(words))}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [special(i, words[i]) for i in range(4)],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                           "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                               {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
                               "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                               "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                                                  "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": vocab}}


TOKENIZERS = {
    "gpt2": bytes_bpe(byte_level(True)),
    "digits": bytes_bpe(sequence({"type": "Digits", "individual_digits": True}, byte_level(True))),
    "llama3": bytes_bpe(sequence(split(LLAMA3), byte_level(False)), ignore_merges=True,
                        post_processor={"type": "RobertaProcessing", "sep": ["</s>", 278], "cls": ["<s>", 277], "trim_offsets": True,
                                        "add_prefix_space": False}, added=["<s>", "</s>"]),
    "falcon": bytes_bpe(sequence({"type": "Punctuation", "behavior": "Contiguous"}, byte_level(True),
                                 {"type": "Digits", "individual_digits": False}, split("[0-9][0-9][0-9]"))),
    "merged": bytes_bpe(sequence(split(" ", "MergedWithNext", kind="String"), split(r"\p{P}", "MergedWithPrevious"),
                                 split(r"[^\n]+", "Removed", invert=True), byte_level(False))),
    "added": bytes_bpe(byte_level(True), normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]},
                       added=["   ", "\t\t", ("i've", True), "<|x|>"]),
    "wordpiece": word_piece(),
}


def main():
    text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    for name, settings in TOKENIZERS.items():
        path = FOLDER / f"{name}.json"
        path.write_text(json.dumps(settings, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
        ids = Tokenizer.from_file(str(path)).encode(text).ids
        (FOLDER / f"{name}.ids").write_text(" ".join(map(str, ids)) + "\n")


main()
