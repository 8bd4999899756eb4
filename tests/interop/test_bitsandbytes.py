"""bitsandbytes/TYPE/ is, byte for byte, what transformers saves after it has loaded a model with bitsandbytes on a CPU; and it loads as that model."""
import dataclasses
import gc
import json
import math
import os
import pathlib
import struct
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""

from interop import check, done, mounted, skip, wfs  # noqa: E402

try:
    import bitsandbytes  # noqa: F401
    import huggingface_hub
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
SHARDED = {"GPT2LMHeadModel", "LlamaForCausalLM", "PhiForCausalLM", "Qwen2MoeForCausalLM"}
WHOLE_BLOCKS = dict(intermediate_size=128)  # bitsandbytes' products need rows of whole blocks
SHARD_SIZES = ("100KB", "20KB")  # the second is less than some tensors
SIZES = {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size", "n_embd", "n_layer", "n_head"}


def shorten_config(folder):
    """Leaves out of config.json what the class would fill in, and calls dtype by its older name, as most published files do."""
    config = json.loads((folder / "config.json").read_text())
    usual = json.loads(transformers.AutoConfig.for_model(config["model_type"]).to_json_string(use_diff=False))
    kept = {key: value for key, value in config.items() if key in SIZES | {"model_type"} or usual.get(key, "") != value}
    kept.pop("layer_types", None)
    kept["torch_dtype"] = kept.pop("dtype")
    (folder / "config.json").write_text(json.dumps(kept))


def load(folder, **options):
    return AutoModelForCausalLM.from_pretrained(folder, device_map="cpu", dtype="auto", **options)


def logits(model):
    with torch.no_grad():
        return model(torch.arange(2, 12)[None]).logits


def compare_files(model, saved, kind, names, *options):
    for name in names:
        made = wfs("cat", *options, model, f"bitsandbytes/{kind}/{name}")
        check(made.stdout == (saved / name).read_bytes(), f"{model.name} {kind} {name} {options}: {made.stderr.decode() or 'other bytes'}")


def compare(model, saved, kind):
    loaded = load(model, quantization_config=BitsAndBytesConfig(**TYPES[kind]))
    loaded.save_pretrained(saved)
    compare_files(model, saved, kind, ("model.safetensors", "config.json", "generation_config.json"))
    return loaded


def compare_loaded(model):
    """What transformers opens in a mount gives the logits of the model that it quantizes itself."""
    with mounted(model) as point:
        for kind, options in TYPES.items():
            found = logits(load(point / "bitsandbytes" / kind))
            wanted = logits(load(model, quantization_config=BitsAndBytesConfig(**options)))
            check(torch.equal(found, wanted), f"{model.name} {kind}: other logits")
        gc.collect()  # a model maps its files, which keeps the mount busy


def compare_shards(model, saved, loaded, kind):
    for size in SHARD_SIZES:
        folder = saved / size
        loaded.save_pretrained(folder, max_shard_size=size)
        option = ("-o", f"shard-size={size}")
        wanted = sorted(path.name for path in folder.glob("model*"))
        found = [name for name in wfs("ls", *option, model, f"bitsandbytes/{kind}").stdout.decode().split() if name.startswith("model")]
        check(sorted(found) == wanted, f"{model.name} {kind} {size}: {found}, not {wanted}")
        compare_files(model, folder, kind, wanted, *option)


def sparse_model(folder):
    """A Llama of 13 billion parameters, all of them zero and none of them stored; returns its shapes, in the order of state_dict()."""
    config = transformers.LlamaConfig(hidden_size=5120, intermediate_size=13824, num_hidden_layers=40, num_attention_heads=40, num_key_value_heads=40,
                                      vocab_size=32000, tie_word_embeddings=False, attention_bias=True, dtype="bfloat16")  # fmt: skip
    config.architectures = ["LlamaForCausalLM"]
    with torch.device("meta"):
        shapes = {name: list(tensor.shape) for name, tensor in transformers.LlamaForCausalLM(config).state_dict().items()}
    folder.mkdir()
    config.save_pretrained(folder)
    header, end = {}, 0
    for name, shape in sorted(shapes.items()):
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return shapes


def quantized_shapes(shapes):
    """The tensors of nf4, without memory, in the order of state_dict(): what decodes a weight follows the bias of its module."""
    made = {}
    for name, shape in shapes.items():
        module, part = name.rsplit(".", 1)
        is_linear = len(shape) == 2 and module not in ("lm_head", "model.embed_tokens")
        if part == "weight" and is_linear:
            made[name] = torch.empty(math.prod(shape) // 2, 1, dtype=torch.uint8, device="meta")
            if f"{module}.bias" in shapes:
                made[f"{module}.bias"] = torch.empty(shapes[f"{module}.bias"], dtype=torch.bfloat16, device="meta")
            state = json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": shape})
            made[f"{name}.absmax"] = torch.empty(math.prod(shape) // 64, device="meta")
            made[f"{name}.quant_map"] = torch.empty(16, device="meta")
            made[f"{name}.quant_state.bitsandbytes__nf4"] = torch.empty(len(state), dtype=torch.uint8, device="meta")
        elif name not in made:
            made[name] = torch.empty(shape, dtype=torch.bfloat16, device="meta")
    return made


def header_of(path):
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
    header.pop("__metadata__")
    return {name: (entry["dtype"], entry["shape"]) for name, entry in header.items()}, 8 + length + max(entry["data_offsets"][1] for entry in header.values())


def compare_large(scratch):
    """Shards of 5 GB: which tensors are in each, their types, and the index, are exact before a weight is read."""
    names = {torch.uint8: "U8", torch.float32: "F32", torch.bfloat16: "BF16"}
    model = scratch / "large"
    tensors = quantized_shapes(sparse_model(model))
    split = huggingface_hub.split_torch_state_dict_into_shards(tensors, filename_pattern="model{suffix}.safetensors")
    with mounted(model) as point:
        folder = point / "bitsandbytes" / "nf4"
        check(sorted(path.name for path in folder.glob("model*.safetensors")) == sorted(split.filename_to_tensors), "large: other files")
        check(len(split.filename_to_tensors) > 1, "large: one file")
        for file, parts in split.filename_to_tensors.items():
            found, size = header_of(folder / file)
            check(found == {name: (names[tensors[name].dtype], list(tensors[name].shape)) for name in parts}, f"large: {file}: other tensors")
            check((folder / file).stat().st_size == size, f"large: {file}: another size")
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        check(index["weight_map"] == split.tensor_to_filename and index["metadata"]["total_size"] == split.metadata["total_size"], "large: another index")


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
                saved = pathlib.Path(scratch) / kind
                loaded = compare(model, saved, kind)
                if name in SHARDED:
                    compare_shards(model, saved, loaded, kind)
    with tempfile.TemporaryDirectory() as scratch:
        model = pathlib.Path(scratch) / "llama"
        case = cases["LlamaForCausalLM"]
        tiny_models.make(dataclasses.replace(case, settings=case.settings | WHOLE_BLOCKS), model, files)
        compare_loaded(model)
    with tempfile.TemporaryDirectory() as scratch:
        compare_large(pathlib.Path(scratch))
    done()


main()
