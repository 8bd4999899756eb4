"""Hugging Face to GGUF and back, computed: transformers' logits of hf/ of the F32 GGUF of a tiny random checkpoint are those of the
checkpoint, for every family that transformers has a class of, and no weight of hf/ is missing, left over or of another shape."""
import json
import pathlib
import re
import sys
import tempfile

import interop

try:
    import tiny_models
    import torch
    import transformers
except ImportError as error:
    interop.skip(str(error))

LIMIT = 2e-5  # of the largest logit: what -exp(x), its logarithm and the 1 that Gemma's norms have cost in F32

# Families with a class in transformers that cannot be compared, by general.architecture and their first class.
REASONS = {
    ("chameleon", "ChameleonForConditionalGeneration"): "its image tokenizer and the map of its tokens are in no GGUF",
    ("deepseek2-ocr", "DeepseekOCRForCausalLM"): "a class of its own, under the name DeepseekV2ForCausalLM too",
    ("eagle3", "LlamaForCausalLMEagle3"): "a draft model, under the name of the class of its target",
    ("jina-bert-v3", "XLMRobertaModel"): "a class of its own, under another name",
    ("lfm2", "Lfm2Model"): "hf/ has no config.json: the dense layer after the model is no part of the class",
    ("llama", "MistralModel"): "Mistral's own format, which transformers does not read",
    ("mistral3", "MistralModel"): "Mistral's own format, which transformers does not read",
    ("mistral4", "Mistral3ForConditionalGeneration"): "its text half has no class",
}

# Classes with a pooler, which no GGUF has, above what is compared.
POOLED = ("BertModel", "RobertaModel", "XLMRobertaModel")

# Cases whose GGUF lacks weights that what is compared depends on: what transformers must miss, and a note must name.
LOST = {"bert BertForSequenceClassification": "pooler.dense"}

# Names that published config.json files have, which are not transformers' own.
CLASSES = {"MPTForCausalLM": "MptForCausalLM", "PhiMoEForCausalLM": "PhimoeForCausalLM"}


def families():
    """general.architecture and the classes of each family."""
    lines = interop.wfs("info", "--architectures").stdout.decode().splitlines()
    rows = [re.split(r"\s{2,}", line[2:].strip()) for line in lines if re.match(r"[* ] [a-z]", line)]
    return [(row[0], row[-1].split()) for row in rows if row[0] != "clip"]


def check_all_have_cases():
    cases = {(case.gguf, case.name) for case in tiny_models.CASES}
    found = families()
    interop.check(len(found) > 100, f"the program lists {len(found)} families")
    for gguf, names in found:
        runnable = [name for name in names if hasattr(transformers, name)]
        covered = any((gguf, name) in cases for name in names)
        reason = REASONS.get((gguf, names[0]))
        both = "a case and a reason" if reason else "no case"
        interop.check(not runnable or covered != bool(reason), f"{gguf} {' '.join(names)}: {both}")


def open_again(folder):
    """The model of a folder, and the names of weights that transformers complains about."""
    architecture = json.loads((folder / "config.json").read_text())["architectures"][0]
    more = {"add_pooling_layer": False} if architecture in POOLED else {}
    kind = getattr(transformers, CLASSES.get(architecture, architecture))
    model, info = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True, **more)
    return model.eval(), {key: sorted(map(str, names)) for key, names in info.items() if names}


def run(case, files):
    with tempfile.TemporaryDirectory() as directory:
        folder, gguf, hf = (pathlib.Path(directory) / name for name in ("checkpoint", "model.gguf", "hf"))
        wanted = tiny_models.make(case, folder, files)
        for arguments in ((folder, "gguf/model-F32.gguf", gguf), ("-r", gguf, "hf", hf)):
            made = interop.wfs("cp", *arguments)
            if made.returncode != 0 or not (hf / "config.json").exists() and arguments[0] == "-r":
                return f"wfs cp: {made.stderr.decode()}"
        written = interop.cat(gguf, "metadata.json")
        if json.loads(written)["metadata"]["general.architecture"] != case.gguf:
            return "another architecture"
        model, complaints = open_again(hf)
        lost = LOST.get(case.title)
        if lost:
            told = lost in interop.wfs("info", gguf).stdout.decode() and list(complaints) == ["missing_keys"]
            return None if told and all(lost in name for name in complaints["missing_keys"]) else f"{complaints}, which no note tells"
        if complaints:
            return f"{type(model).__name__}: {complaints}"
        found = tiny_models.compute(model)
        off = ((found - wanted).abs().max() / wanted.abs().max()).item()
        return None if off <= LIMIT else f"off by {off:.2g}"


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    chosen = [case for case in tiny_models.CASES if len(sys.argv) < 2 or any(name in case.title for name in sys.argv[1:])]
    files = tiny_models.tokenizer_files()
    if len(sys.argv) < 2:
        check_all_have_cases()
    same = 0
    for case in chosen:
        try:
            wrong = run(case, files)
        except Exception as error:  # of transformers: of any kind
            wrong = f"{type(error).__name__}: {error}"
        same += interop.check(wrong is None, f"{case.title}: {wrong}")
    print(f"{same} of {len(chosen)} checkpoints are the same after the way back")
    interop.done()


if __name__ == "__main__":
    main()
