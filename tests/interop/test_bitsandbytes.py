"""bitsandbytes/TYPE/ is, byte for byte, what transformers saves after it has loaded a model with bitsandbytes on a CPU."""
import json
import os
import pathlib
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""

from interop import check, done, skip, wfs  # noqa: E402

try:
    import bitsandbytes  # noqa: F401
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    import tiny_models
except ImportError as error:
    skip(str(error))

TYPES = {"nf4": dict(load_in_4bit=True, bnb_4bit_quant_type="nf4"), "fp4": dict(load_in_4bit=True, bnb_4bit_quant_type="fp4"), "int8": dict(load_in_8bit=True)}
CLASSES = ["BloomForCausalLM", "CohereForCausalLM", "Cohere2ForCausalLM", "DeepseekV2ForCausalLM", "GPT2LMHeadModel", "GPTNeoXForCausalLM",
           "Gemma2ForCausalLM", "GemmaForCausalLM", "Glm4ForCausalLM", "GptOssForCausalLM", "GraniteForCausalLM", "LlamaForCausalLM", "MistralForCausalLM",
           "MixtralForCausalLM", "Olmo2ForCausalLM", "OlmoForCausalLM", "Phi3ForCausalLM", "PhiForCausalLM", "Qwen2ForCausalLM", "Qwen2MoeForCausalLM",
           "Qwen3ForCausalLM", "Qwen3MoeForCausalLM", "StableLmForCausalLM", "Starcoder2ForCausalLM"]  # fmt: skip
WHOLE = {"DeepseekV2ForCausalLM", "GptOssForCausalLM"}  # classes whose values wfs does not fill in
SIZES = {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size", "n_embd", "n_layer", "n_head"}


def shorten_config(folder):
    """Leaves out of config.json what the class would fill in, and calls dtype by its older name, as most published files do."""
    config = json.loads((folder / "config.json").read_text())
    usual = json.loads(transformers.AutoConfig.for_model(config["model_type"]).to_json_string(use_diff=False))
    kept = {key: value for key, value in config.items() if key in SIZES | {"model_type"} or usual.get(key, "") != value}
    kept.pop("layer_types", None)
    kept["torch_dtype"] = kept.pop("dtype")
    (folder / "config.json").write_text(json.dumps(kept))


def compare(model, saved, kind):
    loaded = AutoModelForCausalLM.from_pretrained(model, quantization_config=BitsAndBytesConfig(**TYPES[kind]), device_map="cpu", dtype="auto")
    loaded.save_pretrained(saved)
    for name in ("model.safetensors", "config.json", "generation_config.json"):
        made = wfs("cat", model, f"bitsandbytes/{kind}/{name}")
        check(made.stdout == (saved / name).read_bytes(), f"{model.name} {kind} {name}: {made.stderr.decode() or 'other bytes'}")


def main():
    torch.manual_seed(5)
    transformers.logging.set_verbosity_error()
    files = tiny_models.tokenizer_files()
    cases = {case.name: case for case in tiny_models.CASES}
    for name in CLASSES:
        with tempfile.TemporaryDirectory() as scratch:
            model = pathlib.Path(scratch) / name
            tiny_models.make(cases[name], model, files)
            if name not in WHOLE:
                shorten_config(model)
            for kind in TYPES if name in ("GPT2LMHeadModel", "LlamaForCausalLM") else ["nf4"]:
                compare(model, pathlib.Path(scratch) / kind, kind)
    done()


main()
