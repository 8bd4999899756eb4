"""Writes tests/data/ctranslate2: small Whisper models as CTranslate2's converter saves them, and the tensors that transformers has of them; and two
directories of transformers with the digests of what the converter makes of each in every type.

Needs torch, transformers 4.57.6 and ctranslate2 4.8.5.
"""
import hashlib
import json
import pathlib
import shutil
import tempfile

import numpy
import safetensors.torch
import torch
from ctranslate2.converters.transformers import TransformersConverter, WhisperLoader
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration, WhisperTokenizerFast

HERE = pathlib.Path(__file__).resolve().parent / "ctranslate2"
SIZES = dict(vocab_size=20, d_model=8, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=12,
             decoder_ffn_dim=16, max_source_positions=6, max_target_positions=5, num_mel_bins=4, pad_token_id=0, bos_token_id=1, eos_token_id=2,
             decoder_start_token_id=3)  # fmt: skip

TYPES = ("float32", "float16", "bfloat16", "int8", "int8_float32", "int8_float16", "int8_bfloat16")
TOKENS = ["a", "b", "c", "\u0120", "ab", "\u00c3", "\u00a9", '"']
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>", "<|startofprev|>", "<|notimestamps|>"]


def make_model():
    torch.manual_seed(3)
    model = WhisperForConditionalGeneration(WhisperConfig(**SIZES))
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.1)
    return model


def convert(name, quantization):
    """Saves the model; returns the converter's variables."""
    spec = WhisperLoader().get_model_spec(make_model())
    spec.config.suppress_ids, spec.config.suppress_ids_begin, spec.config.alignment_heads, spec.config.lang_ids = [4, 7], [9], [[0, 1]], [5]
    spec.register_vocabulary([f"<{i}>" for i in range(SIZES["vocab_size"])])
    spec.validate()
    spec.optimize(quantization=quantization)
    (HERE / name).mkdir(parents=True, exist_ok=True)
    spec.save(str(HERE / name))
    return dict(spec.variables(ordered=True))


def dequantize(variables, name):
    """A code times the rounded reciprocal of its scale, as src/ops/dequantize_cpu.cc has it."""
    array = variables[name].numpy()
    if array.dtype != numpy.int8:
        return array
    scale = numpy.float32(1) / variables[name + "_scale"].numpy()
    return array.astype("f4") * scale.reshape([-1] + [1] * (array.ndim - 1))


def there(name):
    """The variable of a tensor of transformers, and the rows of it: (part, parts)."""
    words = name.removeprefix("model.").split(".")
    side, module, leaf = words[0], ".".join(words[1:-1]), words[-1]
    if words[1] == "layers":
        side, module = f"{side}/layer_{words[2]}", ".".join(words[3:-1])
    norm = {"weight": "gamma", "bias": "beta"}[leaf]
    stacks = {"self_attn.q_proj": (0, 3), "self_attn.k_proj": (1, 3), "self_attn.v_proj": (2, 3)}
    attention = {"encoder_attn.q_proj": ("linear_0", 0, 1), "encoder_attn.k_proj": ("linear_1", 0, 2), "encoder_attn.v_proj": ("linear_1", 1, 2),
                 "encoder_attn.out_proj": ("linear_2", 0, 1)}  # fmt: skip
    norms = {"self_attn_layer_norm": "self_attention/layer_norm", "encoder_attn_layer_norm": "attention/layer_norm", "final_layer_norm": "ffn/layer_norm",
             "layer_norm": "layer_norm"}  # fmt: skip
    others = {"self_attn.out_proj": f"self_attention/linear_1/{leaf}", "fc1": f"ffn/linear_0/{leaf}", "fc2": f"ffn/linear_1/{leaf}",
              "conv1": f"conv1/{leaf}", "conv2": f"conv2/{leaf}", "embed_positions": "position_encodings/encodings", "embed_tokens": "embeddings/weight"}  # fmt: skip
    if module in stacks:
        return f"{side}/self_attention/linear_0/{leaf}", stacks[module]
    if module in attention:
        linear, part, parts = attention[module]
        return f"{side}/attention/{linear}/{leaf}", (part, parts)
    return f"{side}/{norms[module]}/{norm}" if module in norms else f"{side}/{others[module]}", (0, 1)


def save_tokenizer(folder):
    backend = Tokenizer(models.BPE({token: number for number, token in enumerate(TOKENS)}, [("a", "b")]))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    backend.add_special_tokens(SPECIAL)
    end = {f"{name}_token": SPECIAL[0] for name in ("unk", "bos", "eos", "pad")}
    WhisperTokenizerFast(tokenizer_object=backend, **end, additional_special_tokens=SPECIAL[1:]).save_pretrained(folder)
    for name in ("merges.txt", "vocab.json", "added_tokens.json", "special_tokens_map.json"):
        (folder / name).unlink()


def make_source(name, dtype, generation):
    """A model with zeros and ones, as after training starts: tensors of equal values, a row of zeros, and a layer that is another one's copy."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    model = make_model()
    with torch.no_grad():
        model.model.encoder.layers[1].load_state_dict(model.model.encoder.layers[0].state_dict())
        model.model.encoder.layers[1].fc1.weight[3] = 0
        model.model.decoder.layers[0].fc2.bias.zero_()
        model.model.decoder.layers[0].final_layer_norm.weight.fill_(1)
        model.model.decoder.layer_norm.weight.fill_(1)
        model.model.decoder.layers[0].self_attn.v_proj.weight[2] = 1e-41
    for key, value in generation.items():
        setattr(model.generation_config, key, value)
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": dtype}, indent=1))
    save_tokenizer(folder)
    WhisperFeatureExtractor(feature_size=4).save_pretrained(folder)
    extractor = json.loads((folder / "preprocessor_config.json").read_text())
    extractor.pop("mel_filters", None)
    (folder / "preprocessor_config.json").write_text(json.dumps(extractor, indent=1))
    lines = []
    for kind in TYPES:
        with tempfile.TemporaryDirectory() as scratch:
            made = pathlib.Path(TransformersConverter(str(folder), copy_files=["tokenizer.json", "preprocessor_config.json"]).convert(f"{scratch}/made", quantization=kind))
            lines += [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {kind}/{file.name}\n" for file in sorted(made.iterdir())]
    (HERE / f"{name}.sha256").write_text("".join(lines))


def main():
    own = {"alignment_heads": [[0, 1], [0, 3]], "lang_to_id": {"<|en|>": 12, "<|de|>": 9}}
    make_source("source", "float32", {**own, "suppress_tokens": [1, 2], "begin_suppress_tokens": [3], "_from_model_config": False})
    make_source("source-half", "float16", {**own, "suppress_tokens": [], "_from_model_config": True})  # which drops what the class does not know
    model = make_model()
    convert("whisper", None)
    variables = convert("whisper-int8", "int8")
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name != "proj_out.weight"}
    safetensors.torch.save_file(tensors, HERE / "whisper.safetensors", {"format": "pt"})
    for name in tensors:
        variable, (part, parts) = there(name)
        tensors[name] = torch.from_numpy(numpy.split(dequantize(variables, variable), parts)[part].copy())
    safetensors.torch.save_file(tensors, HERE / "whisper-int8.safetensors", {"format": "pt"})


main()
