"""Every pre-tokenizer of llama.cpp that wfs knows: tokenizer.json, made of a GGUF that has its name, loads in tokenizers and splits texts
without losing a byte; of a name that is not known, and of no name, a note says so. vocab.json and merges.txt are those that tokenizers
saves."""
import pathlib
import re
import tempfile

import interop

try:
    import gguf
    import numpy
    import tokenizers
except ImportError as error:
    interop.skip(str(error))

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "models/tokenizers"
TEXTS = ["Hello world, it's 12345 o'clock!  \n\n\tx = 3.14;", "日本語テスト 한국어 ไทย १२३ ㄅㄆ", "naïve Straße ﬁ Ａ", "  \r\n  ", "don'T WE'LL"]


def names():
    """The names that the converter gives, and those of the table."""
    hashes = re.findall(r'", "([^"]+)"', (SOURCE / "pre_hashes.c").read_text())
    rows = (SOURCE / "rebuild_bpe.c").read_text()
    return sorted(set(hashes) | set(re.findall(r'"([a-z][a-z0-9.\-_]+)"', rows[rows.index("rows[] =") : rows.index("pre_row_find")])))


def write(path, pre):
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list([*alphabet, "ab"])
    writer.add_token_types([1] * (len(alphabet) + 1))
    writer.add_token_merges(["a b"])
    writer.add_tensor("x", numpy.zeros((1, 32), numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "model.gguf"
        known = 0
        for name in [*names(), "never-heard-of", None]:
            write(path, name)
            tokenizer = tokenizers.Tokenizer.from_str(interop.cat(path, "hf/tokenizer.json").decode())
            for text in TEXTS:
                pieces = tokenizer.pre_tokenizer.pre_tokenize_str(text)
                interop.check(pieces[0][1][0] == 0 and pieces[-1][1][1] == len(text), f"{name}: {pieces}")
                interop.check(len(tokenizer.encode(text, add_special_tokens=False).ids) == len(
                    (tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text).encode()), f"{name}: {text!r}")
            if name == "gpt-2":
                for saved in tokenizer.model.save(directory):
                    shown = interop.cat(path, f"hf/{pathlib.Path(saved).name}")
                    interop.check(shown == pathlib.Path(saved).read_bytes(), saved)
            noted = b"pre-tokenizer" in interop.wfs("info", path).stdout
            known += not noted
            interop.check(not noted or name not in ("gpt-2", "llama-bpe", "qwen2", "tekken", "kimi-k2", "afmoe", "deepseek-llm"), f"{name}: a note")
            interop.check(noted or name not in ("never-heard-of", None), f"{name}: no note")
        interop.check(known >= 80, f"{known} are known")
    interop.done()


if __name__ == "__main__":
    main()
