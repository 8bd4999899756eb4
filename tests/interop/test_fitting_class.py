"""A checkpoint of an unknown class whose tensors and keys are those of a known class is told which one, and no other checkpoint is."""
import json
import pathlib
import shutil
import tempfile

import interop

try:
    import safetensors.torch
    import tiny_models
except ImportError as error:
    interop.skip(str(error))

# The classes of models/convert/known_classes.c; those with the same tensors and keys as another one are told with it.
FIRST = {"MistralForCausalLM": "LlamaForCausalLM", "Ernie4_5ForCausalLM": "LlamaForCausalLM"}
KNOWN = """LlamaForCausalLM MistralForCausalLM Ernie4_5ForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM Qwen3MoeForCausalLM MixtralForCausalLM
GemmaForCausalLM Gemma2ForCausalLM Gemma3ForCausalLM Phi3ForCausalLM DeepseekV2ForCausalLM DeepseekV3ForCausalLM Qwen2MoeForCausalLM
GraniteForCausalLM GraniteMoeForCausalLM SmolLM3ForCausalLM Olmo2ForCausalLM Olmo3ForCausalLM OlmoeForCausalLM Exaone4ForCausalLM
HunYuanDenseV1ForCausalLM SeedOssForCausalLM Glm4ForCausalLM NemotronForCausalLM Cohere2ForCausalLM StableLmForCausalLM ArceeForCausalLM
Starcoder2ForCausalLM""".split()


def hint(folder):
    """The classes that a note names, and the class that it tells the user to type."""
    notes = json.loads(interop.wfs("info", "--json", folder).stdout)["notes"]
    texts = [note.split("its tensors and keys are those of ")[1] for note in notes if "its tensors and keys are those of " in note]
    if not texts:
        return [], None
    names, typed = texts[0].split(": -o architecture=")
    return names.replace(" or ", ", ").split(", "), typed


def save(folder, config, tensors):
    (folder / "config.json").write_text(json.dumps(config))
    safetensors.torch.save_file(tensors, folder / "model.safetensors")


def changes(config, tensors):
    """What makes a checkpoint fit no class: (what, config, tensors)."""
    layers = sorted(name for name in tensors if ".layers." in name)
    one, last = layers[0], layers[-1]
    cut = {name: tensor[:-1] if name == one else tensor for name, tensor in tensors.items()}
    yield "without a tensor", config, {name: tensor for name, tensor in tensors.items() if name != last}
    yield "with another tensor", config, {**tensors, last.replace(".weight", "_again.weight"): tensors[last].clone()}
    yield "with a tensor of another shape", config, {name: tensor.clone() for name, tensor in cut.items()}
    yield "with a layer too many", dict(config, num_hidden_layers=config["num_hidden_layers"] + 1), tensors
    yield "with a key that is unknown", dict(config, logit_cap=30.0), tensors
    yield "with another activation", dict(config, hidden_act="gelu_fast", hidden_activation="gelu_fast"), tensors
    yield "without the number of heads", {key: value for key, value in config.items() if key not in ("num_attention_heads", "head_dim")}, tensors


def check_known(case, folder, clone, config, tensors):
    names, typed = hint(clone)
    interop.check(case.name in names, f"{case.title}: told as {names}")
    interop.check(typed == FIRST.get(case.name, case.name), f"{case.title}: to type {typed}")
    made = interop.wfs("cat", "-o", f"architecture={case.name}", clone, "model.gguf")
    interop.check(made.returncode == 0 and made.stdout == interop.cat(folder, "model.gguf"), f"{case.title}: model.gguf of the clone")
    # A clone has a model type of its own, which no defaults belong to.
    save(clone, dict(config, model_type="nobody"), tensors)
    interop.check(case.name in hint(clone)[0], f"{case.title} with a new model type: told as {hint(clone)}")
    for what, changed_config, changed_tensors in changes(config, tensors):
        save(clone, dict(changed_config, model_type="nobody"), changed_tensors)
        interop.check(hint(clone) == ([], None), f"{case.title} {what}: told as {hint(clone)}")


def run(case, files, directory):
    folder, clone = directory / "model", directory / "clone" / "model"
    tiny_models.make(case, folder, files)
    shutil.copytree(folder, clone)
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["NobodyForCausalLM"]
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    save(clone, config, tensors)
    interop.check(hint(folder) == ([], None), f"{case.title}: a known class is told nothing")
    if case.name in KNOWN:
        check_known(case, folder, clone, config, tensors)
    else:
        interop.check(hint(clone) == ([], None), f"{case.title}: told as {hint(clone)}")


files = tiny_models.tokenizer_files()
interop.check(set(KNOWN) <= {case.name for case in tiny_models.CASES}, "each class has a case")
for tiny in tiny_models.CASES:
    with tempfile.TemporaryDirectory() as name:
        run(tiny, files, pathlib.Path(name))
interop.done()
