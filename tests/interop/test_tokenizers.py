"""Tokenizers of which a GGUF keeps less than their files have: those that hf/ of the GGUF has give the ids of the original ones. XLM-RoBERTa's
from its SentencePiece model and from tokenizer.json, with the names of its tokens and without; Gemma 4's, whose added tokens lie
among the others."""
import os
import pathlib
import shutil
import tempfile

import interop

os.environ["TRANSFORMERS_VERBOSITY"] = "error"
try:
    import gguf
    import numpy
    import sentencepiece
    import tokenizers
    import transformers
except ImportError as error:
    interop.skip(str(error))

WORDS = ["Hello", "world", "the", "quick", "12345", "don't", "naïve", "Straße", "日本語", "テスト", "한국어", "Привет", "👩‍👩‍👧‍👦", "🚀🚀", "é́",
         "x = [1, 2]", "a\r\nb", "\n\n\n", "   ", " leading", "trailing ", "“quoted”", "ﬁ ligature", "ＦＵＬＬ", "\u200b", "\u3000wide",
         "<s>", "</s>", "<pad>", "<unk>", "a<mask>b", "a <mask> b", "<unused1>", "<table>", "<turn|>", "▁already"]  # fmt: skip
TEXTS = [text for i, word in enumerate(WORDS) for other in [WORDS[(i * 7 + 3) % len(WORDS)]]
         for text in (word, f" {word}", f"{word} {other}", f"{word}{other}", f"{word}\n{other}", f"  {other}  {word}  ")]
FILES = ["tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "sentencepiece.bpe.model"]


def compare(name, before, after, texts=TEXTS):
    differing = [text for text in texts if before(text)["input_ids"] != after(text)["input_ids"]]
    interop.check(not differing, f"{name}: {len(differing)} of {len(texts)} texts have other ids: {differing[:3]}")


def shown(path, folder):
    """The tokenizer's files in hf/ of a GGUF, in a folder."""
    folder.mkdir()
    for file in FILES:
        try:
            (folder / file).write_bytes(interop.cat(path, f"hf/{file}"))
        except OSError:
            pass
    return folder


def xlm_roberta(directory):
    whole = directory / "whole"
    whole.mkdir()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXTS), model_prefix=str(whole / "sentencepiece.bpe"), minloglevel=2,
                                             vocab_size=100, normalization_rule_name="nmt_nfkc", character_coverage=0.98)
    slow = transformers.XLMRobertaTokenizer(str(whole / "sentencepiece.bpe.model"))
    slow.save_pretrained(whole)
    fast = transformers.XLMRobertaTokenizerFast.from_pretrained(whole)
    fast.save_pretrained(whole)
    config = transformers.XLMRobertaConfig(vocab_size=len(fast), hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                                           intermediate_size=48, max_position_embeddings=66, type_vocab_size=1)
    transformers.XLMRobertaModel(config).save_pretrained(whole)
    names = ["tokenizer_config.json", "special_tokens_map.json"]
    for name, without in {"all": [], "model": ["tokenizer.json"], "json": ["sentencepiece.bpe.model"], "bare": ["tokenizer.json", *names],
                          "bare-json": ["sentencepiece.bpe.model", *names]}.items():
        source, path = directory / name, directory / f"{name}.gguf"
        shutil.copytree(whole, source, ignore=shutil.ignore_patterns(*without, "sentencepiece.bpe.vocab"))
        path.write_bytes(interop.cat(source, "model.gguf"))
        folder = shown(path, directory / f"{name}.hf")
        after = transformers.AutoTokenizer.from_pretrained(folder)
        compare(f"XLM-R, {name}", fast, after)
        interop.check(after.special_tokens_map == fast.special_tokens_map, f"XLM-R, {name}: {after.special_tokens_map}")
        if "json" not in name:
            compare(f"XLM-R, {name}, its model", slow, transformers.XLMRobertaTokenizer(str(folder / "sentencepiece.bpe.model")))
        if name in ("all", "json"):  # of the others hf/ has tokenizer.json besides, from which more keys come
            interop.wfs("cp", "-r", path, "hf", directory / f"{name}.whole")
            again = interop.cat(directory / f"{name}.whole", "model.gguf")
            interop.check(again == path.read_bytes(), f"XLM-R, {name}: the GGUF of its hf/ is another one")


def gemma4(directory):
    """Pairs of the characters, of which some make longer tokens; and tokens that no pair makes."""
    named = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>"]
    added = ["<unused0>", "<unused1>", "<turn|>", "<table>", "\n\n", "\n\n\n"]
    tokens = named + added + [f"<0x{byte:02X}>" for byte in range(256)] + [chr(c) for c in range(0x21, 0x7F)] + ["▁", "\n", "é", "語"]
    pairs = [("l", "l"), ("▁", "t"), ("h", "e"), ("▁t", "he"), ("e", "ll"), ("▁", "▁"), ("▁▁", "▁"), ("q", "u"), ("o", "r"), ("or", "l")]
    types = [3] * 5 + [1] * len(added) + [6] * 256 + [1] * (len(tokens) - 267)
    tokens += [left + right for left, right in pairs]
    types += [1] * len(pairs)
    model = tokenizers.models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=pairs, unk_token="<unk>", fuse_unk=True,
                                  byte_fallback=True)
    before = tokenizers.Tokenizer(model)
    before.normalizer = tokenizers.normalizers.Replace(" ", "▁")
    before.pre_tokenizer = tokenizers.pre_tokenizers.Split(" ", "merged_with_previous")
    before.post_processor = tokenizers.processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 2)])
    before.add_special_tokens([tokenizers.AddedToken(token, normalized=False) for token in named])
    before.add_tokens([tokenizers.AddedToken(token, normalized=False) for token in added])
    path = directory / "gemma4.gguf"
    writer = gguf.GGUFWriter(path, "gemma4")
    writer.add_tokenizer_model("gemma4")
    writer.add_token_list(tokens)
    writer.add_token_scores([-1000.0] * len(tokens))
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(pair) for pair in pairs])
    writer.add_bos_token_id(2)
    writer.add_mask_token_id(4)
    writer.add_add_space_prefix(False)
    writer.add_add_bos_token(True)
    writer.add_tensor("token_embd.weight", numpy.zeros((len(tokens), 32), numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    after = transformers.AutoTokenizer.from_pretrained(shown(path, directory / "gemma4.hf"))
    compare("Gemma 4", transformers.PreTrainedTokenizerFast(tokenizer_object=before), after)


def main():
    with tempfile.TemporaryDirectory() as directory:
        xlm_roberta(pathlib.Path(directory))
        gemma4(pathlib.Path(directory))
    interop.done()


main()
