"""Writes tests/data/ctranslate2: small Whisper models as CTranslate2's converter saves them, and the tensors that transformers has of them.

Needs torch, transformers 4.57.6 and ctranslate2 4.8.5.
"""
import pathlib

import numpy
import safetensors.torch
import torch
from ctranslate2.converters.transformers import WhisperLoader
from transformers import WhisperConfig, WhisperForConditionalGeneration

HERE = pathlib.Path(__file__).resolve().parent / "ctranslate2"
SIZES = dict(vocab_size=20, d_model=8, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=12,
             decoder_ffn_dim=16, max_source_positions=6, max_target_positions=5, num_mel_bins=4, pad_token_id=0, bos_token_id=1, eos_token_id=2,
             decoder_start_token_id=3)  # fmt: skip


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


def main():
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
