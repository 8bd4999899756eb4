"""Checkpoints that have tokenizer.json alone, as transformers 5 saves them: model.gguf has the pieces and scores of the
tokenizer.model that they were trained as, and llama.cpp splits texts as transformers does. With WFS_GOLDEN, also the recorded
tokenizers of published models."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import interop

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
try:
    import gguf
    import llama_cpp
    import numpy
    import sentencepiece
    import tokenizers
    import torch
    import transformers
    from sentencepiece import sentencepiece_model_pb2
except ImportError as error:
    interop.skip(str(error))

WORDS = ["Hello", "world", "the", "quick", "12345", "don't", "naïve", "Straße", "日本語", "テスト", "한국어", "Привет", "🚀🚀", "x = [1, 2]",
         "a\nb", "\n\n\n", "    return", "the theory there", "trailing ", "“quoted”", "\t\ttabs", "<unused1>"]  # fmt: skip
TEXTS = [text for i, word in enumerate(WORDS) for other in [WORDS[(i * 7 + 3) % len(WORDS)]]
         for text in (word, f"{word} {other}", f"{word}{other}", f"{word}\n{other}", f"{word}  {other}  {word}")]  # fmt: skip


def train(prefix, **options):
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXTS * 3), model_prefix=str(prefix), minloglevel=2, **options)
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(pathlib.Path(f"{prefix}.model").read_bytes())
    return model.pieces


def save(folder, fast, config, **more):
    """The files as transformers 5 writes them: a class of its own, and a list of tokens."""
    folder.mkdir()
    fast.backend_tokenizer.save(str(folder / "tokenizer.json"))
    fields = {"tokenizer_class": "TokenizersBackend", "backend": "tokenizers", "extra_special_tokens": [], **more}
    (folder / "tokenizer_config.json").write_text(json.dumps(fields))
    (transformers.T5ForConditionalGeneration if config.model_type == "t5" else transformers.MistralForCausalLM)(config).to(
        torch.bfloat16).save_pretrained(folder)  # fmt: skip


def keys_of(path):
    reader = gguf.GGUFReader(path)
    return {name.removeprefix("tokenizer.ggml."): field.contents() for name, field in reader.fields.items() if name.startswith("tokenizer")}


def check_texts(name, path, fast, texts=TEXTS):
    model = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    both = [(text, model.tokenize(text.encode(), add_bos=False, special=True), fast.encode(text, add_special_tokens=False)) for text in texts]
    differing = [each for each in both if each[1] != each[2]]
    interop.check(not differing, f"{name}: llama.cpp splits {len(differing)} of {len(texts)} texts otherwise: {differing[:3]}")


def check_pieces(name, keys, pieces):
    normal = [i for i, piece in enumerate(pieces) if piece.type == piece.NORMAL]
    interop.check(keys["tokens"][: len(pieces)] == [piece.piece for piece in pieces], f"{name}: other tokens")
    given, wanted = (numpy.array([scores(i) for i in normal], numpy.float32) for scores in (lambda i: keys["scores"][i], lambda i: pieces[i].score))
    differing = numpy.flatnonzero(given.view(numpy.uint32) != wanted.view(numpy.uint32))
    interop.check(len(differing) == 0, f"{name}: {len(differing)} of {len(normal)} scores differ, as {[(given[i], wanted[i]) for i in differing[:3]]}")


def bpe(directory):
    pieces = train(directory / "bpe", model_type="bpe", vocab_size=500, byte_fallback=True, normalization_rule_name="identity",
                   remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True)  # fmt: skip
    merges, ids = [], {piece.piece: i for i, piece in enumerate(pieces)}
    for piece in sorted((piece for piece in pieces if piece.type == piece.NORMAL), key=lambda piece: -piece.score):
        halves = [(piece.piece[:i], piece.piece[i:]) for i in range(1, len(piece.piece))]  # all ways, as transformers lists them
        merges += sorted((pair for pair in halves if set(pair) <= set(ids)), key=lambda pair: [ids[half] for half in pair])
    special = [piece.piece for piece in pieces if piece.type in (piece.CONTROL, piece.UNKNOWN)]
    back = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={piece.piece: i for i, piece in enumerate(pieces)}, merges=merges,
                                                      unk_token="<unk>", fuse_unk=True, byte_fallback=True))  # fmt: skip
    back.normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.Prepend("▁"), tokenizers.normalizers.Replace(" ", "▁")])
    back.decoder = tokenizers.decoders.Sequence([tokenizers.decoders.Replace("▁", " "), tokenizers.decoders.ByteFallback(),
                                                 tokenizers.decoders.Fuse(), tokenizers.decoders.Strip(" ", 1, 0)])  # fmt: skip
    back.add_special_tokens([tokenizers.AddedToken(token, normalized=False) for token in special])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=back, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
    config = transformers.MistralConfig(vocab_size=512, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
                                        intermediate_size=32, tie_word_embeddings=False)  # fmt: skip
    save(directory / "mistral", fast, config, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    path = directory / "mistral.gguf"
    path.write_bytes(interop.cat(directory / "mistral", "model.gguf"))
    keys = keys_of(path)
    check_pieces("BPE", keys, pieces)
    interop.check(keys["model"] == "llama" and keys["tokens"][500] == "[PAD500]", f"BPE: {keys['model']}, {keys['tokens'][500]}")
    interop.check(keys["add_bos_token"] is False, "BPE: no post-processor adds BOS, and add_bos_token is not false")
    check_texts("BPE", path, fast)


def bpe_for_the_converter(directory):
    """The same with a class that the converter loads: its one score for all, and a note, unless the user asks for better."""
    folder = directory / "mistral"
    fields = json.loads((folder / "tokenizer_config.json").read_text())
    fields = {**fields, "tokenizer_class": "LlamaTokenizerFast"}
    del fields["extra_special_tokens"]
    (folder / "tokenizer_config.json").write_text(json.dumps(fields))
    path = directory / "converter.gguf"
    path.write_bytes(interop.cat(folder, "model.gguf"))
    interop.check(set(keys_of(path)["scores"]) == {-1000.0}, "BPE for the converter: other scores than -1000")
    notes = interop.cat(folder, "metadata.json").decode()
    interop.check("-o tokenizer=exact" in notes, "BPE for the converter: metadata.json has no note")
    exact = directory / "exact.gguf"
    exact.write_bytes(interop.wfs("cat", "-o", "tokenizer=exact", folder, "model.gguf").stdout)
    ours, saved = keys_of(exact), keys_of(directory / "mistral.gguf")
    interop.check(ours["scores"] != [-1000.0] * len(ours["scores"]) and ours["tokens"] == saved["tokens"], "-o tokenizer=exact: other keys")


def unigram(directory):
    pieces = train(directory / "unigram", model_type="unigram", vocab_size=90, normalization_rule_name="nmt_nfkc", pad_id=0, eos_id=1, unk_id=2,
                   bos_id=-1)  # fmt: skip
    slow = directory / "spiece.model"
    slow.write_bytes((directory / "unigram.model").read_bytes())
    fast = transformers.T5TokenizerFast(str(slow), extra_ids=4)
    steps = [tokenizers.pre_tokenizers.WhitespaceSplit(), tokenizers.pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    fast.backend_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(steps)  # as transformers 5 does
    config = transformers.T5Config(vocab_size=100, d_model=32, d_kv=16, d_ff=32, num_layers=1, num_heads=2, decoder_start_token_id=0)
    save(directory / "t5", fast, config, tokenizer_class="T5Tokenizer", eos_token="</s>", unk_token="<unk>", pad_token="<pad>")
    path = directory / "t5.gguf"
    path.write_bytes(interop.cat(directory / "t5", "model.gguf"))
    keys = keys_of(path)
    check_pieces("Unigram", keys, pieces)
    interop.check(keys["model"] == "t5" and keys["unknown_token_id"] == 2, f"Unigram: {keys['model']}, {keys.get('unknown_token_id')}")
    check_texts("Unigram", path, fast, [text for text in TEXTS if text.strip() == text])


def names_of_classes(directory):
    """transformers' own spellings: the same file as under the name that the converter knows, or with the key that it wants."""
    sizes = {"vocab_size": 512, "num_hidden_layers": 2}
    longrope = {"rope_type": "longrope", "long_factor": [1.0] * 8, "short_factor": [1.0] * 8, "original_max_position_embeddings": 64,
                "short_mscale": 1.2, "long_mscale": 1.2}  # fmt: skip
    phimoe = transformers.PhimoeConfig(hidden_size=64, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2, num_local_experts=4,
                                       max_position_embeddings=128, rope_scaling=longrope, **sizes)  # fmt: skip
    mpt = transformers.MptConfig(d_model=64, n_heads=4, n_layers=2, vocab_size=512, max_seq_len=64)
    gpt2 = transformers.GPT2Config(vocab_size=512, n_embd=64, n_layer=2, n_head=4, n_positions=64)
    for class_, config, fields in ((transformers.PhimoeForCausalLM, phimoe, {"architectures": ["PhiMoEForCausalLM"]}),
                                   (transformers.MptForCausalLM, mpt, {"architectures": ["MPTForCausalLM"]}),
                                   (transformers.GPT2LMHeadModel, gpt2, {"n_ctx": 64})):  # fmt: skip
        folder = directory / class_.__name__
        class_(config).to(torch.bfloat16).save_pretrained(folder)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (folder / name).write_bytes((directory / "mistral" / name).read_bytes())
        saved = interop.cat(folder, "model.gguf")
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, **fields}))
        interop.check(saved == interop.cat(folder, "model.gguf"), f"{class_.__name__}: another file than with {fields}")


def recorded(golden):
    """One line for each tokenizer; the script's own judge is left out where its package is not installed."""
    lines = subprocess.run([sys.executable, golden / "check-tokenizers5", interop.WFS], capture_output=True, text=True).stdout.splitlines()
    interop.check(len(lines) > 2, "the script of the golden tokenizers printed nothing")
    for line in lines:
        wrong = ": refused: " in line or re.search(r"model, scores|differ: (tokens|token_type)\b", line)
        interop.check(not wrong or line.startswith(("small-t5", "small-xlmr")), line)


def main():
    with tempfile.TemporaryDirectory() as directory:
        bpe(pathlib.Path(directory))
        names_of_classes(pathlib.Path(directory))
        bpe_for_the_converter(pathlib.Path(directory))
        unigram(pathlib.Path(directory))
    if "WFS_GOLDEN" in os.environ:
        recorded(pathlib.Path(os.environ["WFS_GOLDEN"]))
    interop.done()


main()
