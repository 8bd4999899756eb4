"""Hugging Face to GGUF and back: hf/ of the F32 GGUF of a checkpoint has its tensors, bit for bit, its tokenizer and its logits; and the
model.gguf of the mounted hf/ of a mounted GGUF is the same file. For the golden checkpoints that WFS_GOLDEN names."""
import json
import os
import pathlib
import shutil
import sys
import tempfile

import interop

try:
    import sentencepiece
    import torch
    import transformers
    from safetensors.torch import load_file
except ImportError as error:
    interop.skip(str(error))

# Of Gemma's norms, which GGUF has with 1 added: as close as F32 gives it back, and F16's 10 bits where the checkpoint is F16.
NORM_LIMIT = {torch.float16: 4.9e-4, torch.bfloat16: 6e-8, torch.float32: 6e-8}

WORDS = ["Hello", "world", "the", "quick", "brown", "fox", "12345", "3.14159", "don't", "I'll", "we've", "naïve", "Straße", "日本語",
         "テスト", "한국어", "Привет", "мир", "العربية", "हिन्दी", "ไทย", "👩‍👩‍👧‍👦", "🚀🚀", "é́", "#include <stdio.h>", "def f(x):",
         "x = [1, 2, 3]", "https://example.com/a?b=c&d=e", "user@example.com", "C:\\dir\\file.txt", "\t\tif", "a\r\nb", "\n\n\n", "   ",
         " leading", "trailing ", "...!!!", "(((", "“quoted”", "—", "½ ¾", "ﬁ ligature", "ＦＵＬＬ", "e = mc²", "\u200b", "ℝ ∑ ∫",
         "SHOUTING", "camelCaseWord", "snake_case_word", "kebab-case", "0x1F", "1,000,000", "$9.99", "50%", "@home", "~/.bashrc"]  # fmt: skip


def texts():
    """At least 400, each of the words in several settings."""
    for i, word in enumerate(WORDS):
        other, third = WORDS[(i * 7 + 3) % len(WORDS)], WORDS[(i * 11 + 5) % len(WORDS)]
        yield from (word, f" {word}", f"{word} {other}", f"{word}{other}", f"{word}\n{other} {third}", f"{word * 3}",
                    f"  {other}  {word}  ", f"{third}, {word}. {other}!")  # fmt: skip


TEXTS = list(texts())
assert len(TEXTS) >= 400


def stored(folder):
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(path))
    return tensors


def same_tensors(name, folder, shown):
    original, back = stored(folder), stored(shown)
    for key, tensor in back.items():
        wanted = original.get(key)
        if wanted is None:  # with and without the prefix of the class
            wanted = original.get(key.split(".", 1)[1]) if "." in key else None
        if not interop.check(wanted is not None and wanted.shape == tensor.shape, f"{name}: {key} of {list(tensor.shape)}"):
            continue
        limit = NORM_LIMIT[wanted.dtype] if "gemma" in name and "norm" in key else 0
        off = (wanted.float() - tensor.float()).abs().max().item()
        interop.check(off <= limit if limit else torch.equal(wanted.float(), tensor.float()), f"{name}: {key} is off by {off}")


def same_tokens(name, folder, hf):
    """tokenizer.json has the ids of the checkpoint's own, or of what transformers makes of its tokenizer.model; and tokenizer.model
    those of that. Gemma's class never puts a space before the text, whatever the model says."""
    after = transformers.AutoTokenizer.from_pretrained(hf)
    with tempfile.TemporaryDirectory() as directory:
        own = pathlib.Path(directory) / "own"
        is_model = (folder / "tokenizer.model").exists()
        shutil.copytree(folder, own, ignore=shutil.ignore_patterns("*.safetensors", "tokenizer.json" if is_model else "-"))
        config = json.loads((own / "tokenizer_config.json").read_text())
        config.pop("legacy", None)  # which no GGUF keeps
        (own / "tokenizer_config.json").write_text(json.dumps(config))
        before = transformers.AutoTokenizer.from_pretrained(own)
    ids = [(text, before(text)["input_ids"], after(text)["input_ids"]) for text in TEXTS]
    differing = [row for row in ids if row[1] != row[2]]
    if not interop.check(not differing, f"{name}: {len(differing)} of {len(TEXTS)} texts have other ids"):
        for text, wanted, found in differing[:5]:
            print(f"#   {text!r}: {wanted[:12]} {found[:12]}")
    if is_model:
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
        again = sentencepiece.SentencePieceProcessor(model_file=str(hf / "tokenizer.model"))
        encode = model.encode
        if "gemma" in name:
            encode = lambda text: model.encode("\x01" + text)[len(model.encode("\x01")) :]
        differing = [text for text in TEXTS if encode(text) != again.encode(text)]
        interop.check(not differing, f"{name}: tokenizer.model: {len(differing)} of {len(TEXTS)} texts: {differing[:5]}")


def same_logits(name, folder, hf):
    kind = transformers.AutoModel if "bge" in name else transformers.AutoModelForCausalLM
    more = {"add_pooling_layer": False} if "bge" in name else {}
    ids = torch.tensor([[i * 37 % 1000 + 5 for i in range(40)]])
    results = []
    for directory in (folder, hf):
        model = kind.from_pretrained(directory, dtype=torch.float32, **more).eval()
        with torch.no_grad():
            output = model(ids)
        results.append(output[0].clone())
        del model, output
    off = (results[0] - results[1]).abs().max().item()
    interop.check(torch.equal(*results), f"{name}: logits are off by {off}")


def round_trip(name, gguf):
    with interop.mounted(gguf) as outer, interop.mounted(outer / "hf") as inner:
        with open(outer / "model.gguf", "rb") as a, open(inner / "model.gguf", "rb") as b:
            while True:
                left, right = a.read(1 << 24), b.read(1 << 24)
                if left != right:
                    at = next((i for i, (x, y) in enumerate(zip(left, right)) if x != y), min(len(left), len(right)))
                    interop.check(False, f"{name}: model.gguf again differs near {a.tell() - len(left) + at}")
                    return
                if not left:
                    break
    interop.check(True, name)


# Of the further set: what is not of the text half, how its names are there, and parts that are off by no more than F32's -exp(x) and its
# logarithm.
OTHER_HALF = ("visual.", "vision_tower.", "vision_model.", "multi_modal_projector.", "audio_tower.", "embed_vision.", "embed_audio.",
              "linear_proj.", "vision_adapter.", "vision_projection.", "mtp_layers.")  # the converter leaves Hy4's mtp_layers out
INEXACT = {"A_log": 1e-6, "norm": 6e-8}


# Families of the newest builds that have no way back, by checkpoint: a note names what is lost.
NO_WAY_BACK = {"Qwen3-TTS-12Hz-0.6B-Base": "a GGUF of the architecture qwen3tts does not have the text embedding",
               "DeepSeek-V4-Flash-DSpark": "a GGUF of the architecture dflash does not have the number of layers of the model"}
# Tensors that a draft's GGUF has in another order, by checkpoint: halves of heads instead of pairs.
OTHERWISE = {"Ling-3.0-DSpark": ("q_proj", "k_proj", "q_norm", "k_norm")}


def of_text(name):
    name = name.replace("model.language_model.", "model.").replace("language_model.", "").removeprefix("lfm2.")
    return name if name.startswith(("model.", "lm_head.", "mtp.", "backbone.")) else f"model.{name}"


def comparable(tensors):
    """The tensors of the text half: experts one by one, and the shards of a table joined."""
    result, shards = {}, {}
    for name, tensor in tensors.items():
        name = of_text(name)
        tensor = tensor.flatten() if name.endswith("A_log") else tensor  # whose axes of one differ among makers
        stem, _, last = name.rpartition(".")
        if any(part in name for part in OTHER_HALF) or name == "model.t2d":
            continue
        if ".ngram_embedding.shard_" in name:
            shards[int(stem.rpartition("_")[2])] = tensor
        elif last in ("gate_up_proj", "down_proj") and tensor.ndim == 3:
            for i, expert in enumerate(tensor):
                halves = expert.chunk(2) if last == "gate_up_proj" else [expert]
                names = ("gate_proj", "up_proj") if last == "gate_up_proj" else ("down_proj",)
                result.update({f"{stem}.{i}.{part}.weight": half for part, half in zip(names, halves)})
        else:
            result[name] = tensor
    if shards:
        result["ngram_embedding"] = torch.cat([shards[i] for i in sorted(shards)])
    return result


def same_text_half(name, folder, shown):
    """Every tensor of the text half comes back, layers that predict ahead too, and nothing else."""
    original, back = comparable(stored(folder)), comparable(stored(shown))
    if "Puzzle" in name:  # the converter leaves out the layers that predict
        original = {key: tensor for key, tensor in original.items() if not key.startswith("mtp.")}
    if original.keys() != back.keys():
        differing = sorted(original.keys() ^ back.keys())
        interop.check(False, f"{name}: {len(differing)} of {len(original)} tensors: {differing[:6]}")
    for key in original.keys() & back.keys():
        if any(part in key for part in OTHERWISE.get(name, ())):
            continue
        before, after = original[key].float(), back[key].float()
        if "embed_tokens" in key:  # as many rows as there are tokens: without those that nothing uses, or with zeros
            rows = min(len(before), len(after))
            interop.check("gemma" not in name or not after[rows:].any(), f"{name}: {key} has more than zeros after row {rows}")
            before, after = (before[:rows], after[:rows]) if "gemma" in name else (before, after)
        limit = max([INEXACT[part] for part in INEXACT if part in key], default=0)
        same = before.shape == after.shape and (before - after).abs().max().item() <= limit * max(1, before.abs().max().item())
        interop.check(same, f"{name}: {key} of {list(before.shape)} and {list(after.shape)}")


def targets(kind):
    """The model that each draft of a set drafts for."""
    if kind != "families3" or "WFS_GOLDEN" not in os.environ:
        return {}
    sys.path.insert(0, os.environ["WFS_GOLDEN"])
    sys.dont_write_bytecode = True
    from families3 import MODELS

    return {name: model["target"] for name, model in MODELS.items() if "target" in model}


def further_set(kind):
    """Families that transformers may be too old for: their tensors."""
    checkpoints, _ = interop.golden_checkpoints(kind)
    beside = targets(kind)
    for name, folder in checkpoints.items():
        config = folder / "config.json"
        if len(sys.argv) > 1 and name not in sys.argv[1:] or not config.exists() or "quantization_config" in config.read_text():
            continue
        if "lora" in name:
            continue
        options = ["-o", f"base={folder.parent / beside[name]}"] if name in beside else []
        with tempfile.TemporaryDirectory() as directory:
            gguf, hf = pathlib.Path(directory) / "f32.gguf", pathlib.Path(directory) / "hf"
            made = interop.wfs("cp", *options, folder, "gguf/model-F32.gguf", gguf)
            if interop.check(made.returncode == 0, f"{name}: {made.stderr.decode()}"):
                made = interop.wfs("cp", "-r", gguf, "hf", hf)
                if name in NO_WAY_BACK:
                    notes = json.loads(interop.wfs("info", "--json", gguf).stdout)["notes"]
                    told = any(NO_WAY_BACK[name] in note for note in notes)
                    interop.check(told and not (hf / "config.json").exists(), f"{name}: notes {notes}")
                elif interop.check((hf / "config.json").exists(), f"{name}: no config.json: {made.stderr.decode()}"):
                    same_text_half(name, folder, hf)


def main():
    transformers.utils.logging.disable_progress_bar()
    checkpoints, _ = interop.golden_checkpoints()
    if not checkpoints:
        print("no golden checkpoints: WFS_GOLDEN is not set")
        sys.exit(0)
    transformers.logging.set_verbosity_error()
    for name, folder in checkpoints.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as directory:
            gguf = pathlib.Path(directory) / f"{name}.gguf"
            for path, checks in (("gguf/model-F32.gguf", True), ("model.gguf", False)):
                result = interop.wfs("cp", folder, path, gguf)
                interop.check(result.returncode == 0, f"{name}: {result.stderr.decode()}")
                hf = pathlib.Path(directory) / "hf"
                if checks:
                    result = interop.wfs("cp", "-r", gguf, "hf", hf)
                    interop.check(result.returncode == 0, f"{name}: {result.stderr.decode()}")
                    same_tensors(name, folder, hf)
                    same_tokens(name, folder, hf)
                    same_logits(name, folder, hf)
                    shutil.rmtree(hf)
                else:
                    round_trip(name, gguf)
                gguf.unlink()
    for kind in ("families2", "families3"):
        further_set(kind)
    interop.done()


if __name__ == "__main__":
    main()
