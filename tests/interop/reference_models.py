"""Small checkpoints that rules of one build of llama.cpp's converter decide, for test_references.py: each a folder."""
import json
import pathlib
import shutil

import tokenizers
import torch
from safetensors.torch import save_file

TINY = pathlib.Path(__file__).resolve().parents[1] / "data/gguf/models/llama-tiny"
HIDDEN, VOCABULARY = 64, 320


def write(folder, config, tensors, **documents):
    """A checkpoint with the tokenizer of llama-tiny; its tensors are named without the end .weight."""
    folder.mkdir(parents=True)
    shutil.copy(TINY / "tokenizer.model", folder)
    for name, document in {"config": config, **documents}.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    save_file({name if "." in name and name.rsplit(".", 1)[1] in KINDS else f"{name}.weight": tensor.contiguous() for name, tensor in tensors.items()},
              folder / "model.safetensors", {"format": "pt"})  # fmt: skip
    return folder


def write_bytes_tokenizer(folder):
    """A tokenizer of bytes, in place of llama-tiny's; its check hash is unknown."""
    (folder / "tokenizer.model").unlink()
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({text: i for i, text in enumerate(sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))}, []))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')


KINDS = {"weight", "bias", "weight_scale", "weight_scale_inv", "weight_scale_2", "weight_packed", "weight_global_scale", "input_global_scale", "input_scale",
         "attention_sink_bias", "e_score_correction_bias"}  # fmt: skip


def numbers(*shape):
    return (torch.rand(shape) - 0.5).to(torch.bfloat16)


def codes(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8)


def fp8(*shape, kind=torch.float8_e4m3fn):
    return torch.randn(shape).clamp(-400, 400).to(kind)


def llama(**more):
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": 128,
              "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "tie_word_embeddings": False, **more}  # fmt: skip
    layer = "model.layers.0."
    tensors = {"model.embed_tokens": numbers(VOCABULARY, HIDDEN), "model.norm": numbers(HIDDEN), "lm_head": numbers(VOCABULARY, HIDDEN),
               layer + "input_layernorm": numbers(HIDDEN), layer + "post_attention_layernorm": numbers(HIDDEN)}  # fmt: skip
    matrices = {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (32, HIDDEN), "self_attn.v_proj": (32, HIDDEN), "self_attn.o_proj": (HIDDEN, HIDDEN),
                "mlp.gate_proj": (128, HIDDEN), "mlp.up_proj": (128, HIDDEN), "mlp.down_proj": (HIDDEN, 128)}  # fmt: skip
    return config, tensors, {layer + name: shape for name, shape in matrices.items()}


def make_changed(folder):
    """Files that several rules read."""
    shutil.copytree(TINY, folder)
    (folder / "tokenizer.json").write_text('{"added_tokens": [], "post_processor": {"type": "ByteLevel"}, "model": {}}')
    (folder / "tokenizer_config.json").write_text('{"add_bos_token": true}')
    (folder / "generation_config.json").write_text('{"repetition_penalty": 1.25}')
    return folder


def make_router(folder):
    """Experts whose gating function has a key that only later builds read."""
    config, tensors, matrices = llama(architectures=["MixtralForCausalLM"], model_type="mixtral", num_local_experts=2, num_experts_per_tok=1, head_dim=16,
                                      router_score_func="sigmoid")  # fmt: skip
    experts = "model.layers.0.block_sparse_moe."
    tensors |= {name: numbers(*shape) for name, shape in matrices.items() if "self_attn" in name} | {experts + "gate": numbers(2, HIDDEN)}
    for i in range(2):
        tensors |= {experts + f"experts.{i}.{name}": numbers(*shape) for name, shape in (("w1", (32, HIDDEN)), ("w2", (HIDDEN, 32)), ("w3", (32, HIDDEN)))}
    return write(folder, config, tensors)


def add_nvfp4(tensors, name, shape):
    tensors |= {f"{name}.weight_packed": codes(shape[0], shape[1] // 2), f"{name}.weight_scale": torch.rand(shape[0], shape[1] // 16).to(torch.float8_e4m3fn),
                f"{name}.weight_global_scale": torch.tensor([3.0]), f"{name}.input_global_scale": torch.tensor([2.0])}  # fmt: skip


def make_mixed(folder):
    """compressed-tensors: attention in FP8, the rest in NVFP4."""
    groups = {"a": {"format": "float-quantized", "targets": ["re:.*self_attn.*"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"}},
              "b": {"format": "nvfp4-pack-quantized", "targets": ["re:.*mlp.*"],
                    "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}}}  # fmt: skip
    config, tensors, matrices = llama(quantization_config={"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": groups})
    for name, shape in matrices.items():
        if "mlp" in name:
            add_nvfp4(tensors, name, shape)
        else:
            tensors |= {name: fp8(*shape), f"{name}.weight_scale": numbers(shape[0], 1)}
    return write(folder, config, tensors)


def make_modelopt(folder):
    """ModelOpt: NVFP4, and FP8 whose scales are a matrix of one column."""
    config, tensors, matrices = llama(quantization_config={"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {
        "model.layers.0.mlp.up_proj": {"quant_algo": "NVFP4"}, "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"}}})  # fmt: skip
    for name, shape in matrices.items():
        if "mlp" in name:
            tensors |= {name: codes(shape[0], shape[1] // 2), f"{name}.weight_scale": torch.rand(shape[0], shape[1] // 16).to(torch.float8_e4m3fn),
                        f"{name}.weight_scale_2": torch.tensor(0.5), f"{name}.input_scale": torch.tensor(0.25)}  # fmt: skip
        else:
            tensors |= {name: fp8(*shape), f"{name}.weight_scale": torch.rand(shape[0], 1)}
    return write(folder, config, tensors)


def make_mimo(folder, experts_in_mxfp4=True):
    """MiMo V2: experts in MXFP4, and FP8 in ranks, also of the layers that predict."""
    config, tensors, _ = llama(architectures=["MiMoV2ForCausalLM"], model_type="mimo_v2", num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=4,
        swa_num_key_value_heads=8, swa_num_attention_heads=8, head_dim=32, v_head_dim=16, swa_head_dim=32, swa_v_head_dim=16, sliding_window=8,
        hybrid_layer_pattern=[0, 1], moe_layer_freq=[0, int(experts_in_mxfp4)], n_routed_experts=2, num_experts_per_tok=1, moe_intermediate_size=64, layernorm_epsilon=1e-5,
        partial_rotary_factor=0.5, swa_rope_theta=1000, scoring_func="sigmoid", topk_method="noaux_tc", n_group=1, topk_group=1, norm_topk_prob=True,
        quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3",
                             **({"store_dtype": "mxfp4", "mxfp4_block_size": 32} if experts_in_mxfp4 else {})})  # fmt: skip
    for layer, kv_heads in (("model.layers.0.", 4), ("model.layers.1.", 8), *((f"model.mtp.layers.{i}.", 8) for i in range(3))):
        rows = 8 * 32 + kv_heads * 32 + kv_heads * 16
        tensors |= {layer + "self_attn.qkv_proj": fp8(rows, HIDDEN), layer + "self_attn.qkv_proj.weight_scale_inv": torch.rand(4 * -(-rows // 4 // 128), 1),
                    layer + "self_attn.o_proj": numbers(HIDDEN, 8 * 16), layer + "input_layernorm": numbers(HIDDEN)}  # fmt: skip
        tensors[layer + ("pre_mlp_layernorm" if "mtp" in layer else "post_attention_layernorm")] = numbers(HIDDEN)
        if kv_heads == 8:
            tensors[layer + "self_attn.attention_sink_bias"] = numbers(8)
        if "mtp" in layer:
            tensors |= {layer + name: numbers(HIDDEN) for name in ("enorm", "hnorm", "final_layernorm")} | {layer + "eh_proj": numbers(HIDDEN, 2 * HIDDEN)}
        if "layers.1." in layer and "mtp" not in layer and experts_in_mxfp4:
            tensors |= {layer + "mlp.gate": numbers(2, HIDDEN), layer + "mlp.gate.e_score_correction_bias": torch.rand(2)}
            for name, shape in (("gate", (64, HIDDEN)), ("up", (64, HIDDEN)), ("down", (HIDDEN, 64))):
                for i in range(2):
                    expert = f"{layer}mlp.experts.{i}.{name}_proj"
                    tensors |= {expert: codes(shape[0], shape[1] // 2), f"{expert}.weight_scale": codes(shape[0], shape[1] // 32).clamp(100, 140)}
        else:
            tensors |= {layer + f"mlp.{name}_proj": numbers(128, HIDDEN) for name in ("gate", "up")} | {layer + "mlp.down_proj": numbers(HIDDEN, 128)}
    write_bytes_tokenizer(write(folder, config, tensors))
    return folder


def make_mimo_fp8(folder):
    """MiMo V2 without experts: all builds convert it, the older ones with wrong scales of the layers that predict."""
    return make_mimo(folder, experts_in_mxfp4=False)


# What makes a model, and the oldest build that converts it.
MAKERS = {make_changed: 0, make_router: 0, make_mixed: 11549, make_modelopt: 11549, make_mimo: 11104, make_mimo_fp8: 0}
