"""mlx/VARIANT/ is, file by file, what mlx_lm.convert writes of a tiny checkpoint of each class. The classes of golden checkpoints are in
test_targets.py. And of what mlx_lm.convert wrote, wfs shows the tensors of the checkpoint before, or says why not."""
import contextlib
import importlib
import io
import json
import pathlib
import re
import struct
import sys
import tempfile

from interop import check, done, skip, wfs

try:
    import mlx.core as mx
    import mlx_lm.convert
    import mlx_lm.utils
    import numpy
    from mlx.utils import tree_flatten
except ImportError as error:
    skip(str(error))

EXPERTS = 3
SMALL = dict(hidden_size=128, num_hidden_layers=2, intermediate_size=192, num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5, vocab_size=64,
             head_dim=32, max_position_embeddings=128, rope_theta=10000.0, attention_bias=False, mlp_bias=False, tie_word_embeddings=False,
             torch_dtype="bfloat16")  # fmt: skip
MOE = dict(SMALL, num_experts=EXPERTS, num_experts_per_tok=2, moe_intermediate_size=64)
ROUTED = dict(SMALL, n_routed_experts=EXPERTS, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=64, routed_scaling_factor=1.0, n_group=1,
              topk_group=1, norm_topk_prob=True, scoring_func="sigmoid", topk_method="noaux_tc", first_k_dense_replace=1, moe_layer_freq=1)  # fmt: skip
LATENT = dict(ROUTED, kv_lora_rank=64, q_lora_rank=64, qk_rope_head_dim=32, v_head_dim=64, qk_nope_head_dim=64)
YARN = dict(type="yarn", factor=2.0, mscale_all_dim=1.0, mscale=1.0, original_max_position_embeddings=64, beta_fast=32, beta_slow=1)
ROPE4 = dict(rope_theta=10000.0, rope_type="default", original_max_position_embeddings=128, llama_4_scaling_beta=0.1)
GRANITE = dict(SMALL, logits_scaling=1.0, attention_multiplier=1.0, embedding_multiplier=1.0, residual_multiplier=1.0)
MAMBA = dict(SMALL, state_size=16, conv_kernel=4, use_bias=False, use_conv_bias=True, time_step_rank=64)
NEMOTRON = dict(ROUTED, hybrid_override_pattern="M-*E", mamba_num_heads=4, mamba_head_dim=32, mamba_proj_bias=False, ssm_state_size=16, conv_kernel=4,
                n_groups=1, layer_norm_epsilon=1e-5, use_bias=False, use_conv_bias=True, moe_shared_expert_intermediate_size=64,
                num_hidden_layers=4)  # fmt: skip
STABLELM = dict(SMALL, partial_rotary_factor=0.5, layer_norm_eps=1e-5)
BIGCODE = dict(SMALL, n_embd=128, n_layer=2, n_inner=192, n_head=4, n_positions=64, layer_norm_epsilon=1e-5)
BAILING = dict(MOE, num_shared_experts=1, norm_topk_prob=True, first_k_dense_replace=1, layer_group_size=2, group_norm_size=2, use_qk_norm=True, n_group=1,
               topk_group=1, num_hidden_layers=3, routed_scaling_factor=1.0, moe_router_enable_expert_bias=True, score_function="sigmoid")  # fmt: skip
LAYERS = {"layer_types": ["sliding_attention", "full_attention"],
          "rope_parameters": {kind: dict(rope_theta=1e4, rope_type="default") for kind in ("full_attention", "sliding_attention")}}  # fmt: skip
TIED = dict(tie_word_embeddings=True)

CASES = [
    ("afmoe", dict(MOE, layer_types=["sliding_attention", "full_attention"], num_dense_layers=1, num_shared_experts=1)),
    ("apertus", dict(SMALL, post_norm=False, qk_norm=True)),
    ("bailing_hybrid", dict(BAILING, kv_lora_rank=64, q_lora_rank=64, qk_rope_head_dim=32, qk_nope_head_dim=64, v_head_dim=64)),
    ("bailing_hybrid", dict(BAILING, kv_lora_rank=64, q_lora_rank=None, qk_rope_head_dim=32, qk_nope_head_dim=64, v_head_dim=64)),
    ("bailing_moe_linear", BAILING),
    ("cohere", dict(SMALL, use_qk_norm=True)),
    ("cohere", dict(SMALL, attention_bias=True, layer_norm_bias=True)),
    ("cohere2", dict(SMALL, attention_bias=True)),
    ("dbrx", dict(vocab_size=64, d_model=128, n_layers=2, n_heads=4, ffn_config=dict(ffn_hidden_size=192, moe_num_experts=EXPERTS, moe_top_k=2),
                  attn_config=dict(kv_n_heads=2, clip_qkv=8.0, rope_theta=10000.0), torch_dtype="bfloat16")),
    ("deepseek_v2", dict(LATENT, rope_scaling=YARN)),
    ("deepseek_v2", dict(LATENT, q_lora_rank=None, topk_method="greedy", rope_scaling=YARN)),
    ("exaone4", dict(SMALL, rope_scaling=None, sliding_window=64, sliding_window_pattern="LG")),
    ("exaone4", {**SMALL, **TIED, "rope_scaling": None, "sliding_window": None, "sliding_window_pattern": None}),
    ("glm_moe_dsa", dict(LATENT, index_head_dim=32, index_n_heads=2, index_topk=8, rope_parameters=dict(rope_theta=10000.0, rope_type="default"))),
    ("Klear", dict(MOE, n_shared_experts=1, mlp_only_layers=[0], decoder_sparse_step=1, norm_topk_prob=True)),
    ("gear", dict(SMALL, layer_types=["conv_mixer", "sliding_attention", "full_attention"], num_hidden_layers=3, conv_L_cache=3, sliding_window=64)),
    ("gear", {**SMALL, **TIED, "layer_types": ["conv_mixer", "full_attention"], "attention_bias": True}),
    ("gpt_bigcode", BIGCODE),
    ("gpt_bigcode", {**BIGCODE, **TIED}),
    ("gptj", dict(n_embd=128, n_layer=2, n_head=4, n_positions=64, rotary_dim=16, layer_norm_epsilon=1e-5, vocab_size=64, torch_dtype="bfloat16")),
    ("granite", GRANITE),
    ("granite", {**GRANITE, **TIED}),
    ("granitemoe", dict(GRANITE, num_local_experts=EXPERTS, num_experts_per_tok=2)),
    ("helium", SMALL),
    ("hunyuan", dict(MOE, moe_topk=2, num_shared_expert=1, use_mixed_mlp_moe=True, use_qk_norm=True, use_cla=True, cla_share_factor=2,
                     rope_scaling=dict(alpha=1000.0, factor=1.0, type="dynamic"))),
    ("hunyuan", dict(MOE, moe_topk=1, num_experts=1, num_shared_expert=1, use_mixed_mlp_moe=False, use_qk_norm=False, use_cla=False, cla_share_factor=2,
                     rope_scaling=dict(alpha=1000.0, factor=1.0, type="dynamic"))),
    ("iquestloopcoder", dict(SMALL, loop_num=2, loop_window_size=64, rope_scaling=None)),
    ("kimi_k25", dict(torch_dtype="bfloat16", text_config=dict(LATENT, model_type="deepseek_v3", rope_scaling=None))),
    ("laguna", dict(MOE, shared_expert_intermediate_size=64, **LAYERS)),
    ("lfm2_moe", dict(MOE, use_expert_bias=True, num_dense_layers=1, norm_eps=1e-5, conv_bias=True, conv_L_cache=3, norm_topk_prob=True, num_hidden_layers=3,
                      layer_types=["conv", "full_attention", "conv"])),
    ("lille-130m", dict(n_embd=128, n_head=4, n_kv_heads=2, n_layer=2, vocab_size=64, layer_norm_eps=1e-5, rope_theta=1e4, block_size=64,
                        torch_dtype="bfloat16")),
    ("llama4", dict(torch_dtype="bfloat16", text_config=dict(SMALL, model_type="llama4_text", attention_chunk_size=64, interleave_moe_layer_step=2,
                    intermediate_size_mlp=256, num_experts_per_tok=1, num_local_experts=EXPERTS, rope_scaling=None, use_qk_norm=True))),
    ("llama4_text", dict(SMALL, intermediate_size_mlp=256, no_rope_layers=[1, 0], use_qk_norm=True)),
    ("longcat_flash", dict(LATENT, ffn_hidden_size=192, num_layers=2, expert_ffn_hidden_size=64, moe_topk=2, zero_expert_num=1, zero_expert_type="identity",
                           mla_scale_q_lora=True, mla_scale_kv_lora=True, attention_method="MLA", num_hidden_layers=None)),
    ("longcat_flash_ngram", dict(LATENT, ffn_hidden_size=192, num_layers=2, expert_ffn_hidden_size=64, moe_topk=2, zero_expert_num=1, mla_scale_q_lora=True,
                                 mla_scale_kv_lora=True, ngram_vocab_size_ratio=2, emb_neighbor_num=3, emb_split_num=1, num_hidden_layers=None)),
    ("mamba", MAMBA),
    ("mamba", {**MAMBA, **TIED, "use_bias": True}),
    ("mamba2", dict(MAMBA, num_heads=8, n_groups=1, time_step_limit=[0.0, 8.0], layer_norm_epsilon=1e-5)),
    ("mellum", dict(MOE, norm_topk_prob=True, sliding_window=32, **LAYERS)),
    ("mimo", dict(SMALL, num_nextn_predict_layers=1)),
    ("mimo_v2_flash", {**ROUTED, "moe_layer_freq": [0, 1], "hybrid_layer_pattern": [0, 1], "add_swa_attention_sink_bias": True,
                       "add_full_attention_sink_bias": False, "sliding_window_size": 16, "layernorm_epsilon": 1e-5, "swa_rope_theta": 1e4,
                       "swa_num_attention_heads": 4, "swa_num_key_value_heads": 2, "v_head_dim": 32, "swa_head_dim": 32, "swa_v_head_dim": 32,
                       "partial_rotary_factor": 0.5}),
    ("minimax_m3_vl", dict(torch_dtype="bfloat16", text_config=dict(
        SMALL, dense_intermediate_size=192, shared_intermediate_size=64, intermediate_size=64, num_local_experts=EXPERTS, num_experts_per_tok=2,
        mlp_layer_types=["dense", "sparse"], sparse_attention_config=dict(sparse_num_index_heads=2, sparse_index_dim=32, sparse_block_size=16,
                                                                          sparse_topk_blocks=2, sparse_attention_freq=[0, 1])))),
    ("ministral3", dict(SMALL, rope_parameters=ROPE4)),
    ("mistral4", dict(LATENT, rope_parameters=ROPE4)),
    ("nanbeige", SMALL),
    ("nanbeige", {**SMALL, **TIED}),
    ("nanochat", SMALL),
    ("nemotron-nas", dict(SMALL, hidden_act="silu", block_configs=[dict(attention=dict(n_heads_in_group=2), ffn=dict(ffn_mult=1.0)),
                          dict(attention=dict(no_op=True), ffn=dict(replace_with_linear=True, ffn_mult=1.0)),
                          dict(attention=dict(replace_with_linear=True), ffn=dict(no_op=True))], num_hidden_layers=3)),
    ("nemotron_h", NEMOTRON),
    ("nemotron_h", dict(NEMOTRON, moe_latent_size=64)),
    ("olmo2", SMALL),
    ("olmo3", dict(SMALL, sliding_window=64, layer_types=["sliding_attention", "full_attention"])),
    ("olmo_hybrid", dict(SMALL, linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=32, linear_value_head_dim=64, linear_conv_kernel_dim=4,
                         linear_allow_neg_eigval=True, layer_types=["linear_attention", "full_attention"])),
    ("olmoe", MOE),
    ("openelm", dict(SMALL, num_transformer_layers=2, model_dim=128, ffn_dim_divisor=64, num_query_heads=[4, 4], num_kv_heads=[2, 2],
                     ffn_multipliers=[1.0, 2.0])),
    ("phi", dict(SMALL, partial_rotary_factor=0.5)),
    ("phi3small", dict(SMALL, dense_attention_every_n_layers=2, ff_intermediate_size=192, gegelu_limit=20.0, layer_norm_epsilon=1e-5)),
    ("phixtral", dict(num_local_experts=EXPERTS, num_experts_per_tok=2, rotary_dim=16, num_vocab=64, model_dim=128, num_heads=4, num_layers=2,
                      torch_dtype="bfloat16")),
    ("pixtral", dict(torch_dtype="bfloat16", text_config=dict(SMALL, model_type="mistral"))),
    ("plamo", dict(SMALL, n_shared_head=2)),
    ("plamo2", dict(SMALL, hidden_size_per_head=32, mamba_d_state=16, mamba_num_heads=4, mamba_step=2)),
    ("plamo3", dict(SMALL, sliding_window=32, sliding_window_pattern=2)),
    ("qwen", dict(SMALL, kv_channels=32, no_bias=True, intermediate_size=256)),
    ("qwen2_moe", dict(MOE, shared_expert_intermediate_size=64)),
    ("recurrent_gemma", dict(SMALL, conv1d_width=4, logits_soft_cap=30.0, attention_window_size=16, block_types=["recurrent", "attention"])),
    ("rwkv7", dict(SMALL, norm_eps=1e-5, a_low_rank_dim=64, v_low_rank_dim=32, gate_low_rank_dim=128, decay_low_rank_dim=64)),
    ("seed_oss", dict(SMALL, attention_bias=True, attention_out_bias=False)),
    ("smollm3", {**SMALL, **TIED}),
    ("spark2_5", dict(SMALL, sliding_window=16, **LAYERS)),
    ("spark2_5", {**SMALL, **LAYERS, **TIED, "sliding_window": 16}),
    ("stablelm", dict(STABLELM, use_qkv_bias=True)),
    ("stablelm", dict(STABLELM, use_qkv_bias=False, qk_layernorm=True, use_parallel_residual=True)),
    ("talkie", SMALL),
    ("telechat3", SMALL),
]
IN_F32 = ("A_log", "e_score_correction_bias", "expert_bias", "dt_bias")


class Tokenizer:
    def save_pretrained(self, path):
        pass


def load(path, **_):
    model, config = mlx_lm.utils.load_model(pathlib.Path(path), lazy=True)
    return model, Tokenizer(), config


def unstack(weights, pattern, to):
    """Experts as checkpoints have them: a matrix each."""
    made = {}
    for name, values in weights.items():
        match = re.fullmatch(pattern, name)
        made.update({to.format(*match.groups(), e=e): part for e, part in enumerate(values)} if match else {name: values})
    return made


def joined(weights, end, part, to):
    """Two stacks in one tensor."""
    for name in [name for name in weights if name.endswith(end.format("gate_proj"))]:
        pair = [weights.pop(name), weights.pop(name.replace("gate_proj", "up_proj"))]
        weights[name.replace(end.format("gate_proj"), to)] = numpy.concatenate(pair, 1)
    for name in [name for name in weights if name.endswith(end.format("down_proj"))]:
        weights[name.replace(end.format("down_proj"), part)] = weights.pop(name)
    return weights


def as_stored(kind, weights):
    """The tensors of a checkpoint, from those of the class: its sanitize() the other way."""
    matrices = r"\.(gate_proj|up_proj|down_proj)\.weight"
    weights = {name: values.transpose(0, 2, 1) if name.endswith(("conv1d.weight", "conv_1d.weight", "conv.conv.weight", "key_conv.weight", "value_conv.weight")) else values for name, values in weights.items()}
    if kind in ("bailing_hybrid", "bailing_moe_linear", "deepseek_v2", "glm_moe_dsa", "hunyuan", "kimi_k25", "laguna", "longcat_flash", "longcat_flash_ngram", "mellum", "mistral4",
                "mimo_v2_flash", "olmoe", "qwen2_moe"):
        weights = unstack(weights, r"(.*\.mlp)\.switch_mlp" + matrices, "{0}.experts.{e}.{1}.weight")
    if kind in ("Klear", "afmoe"):
        weights = unstack(weights, r"(.*\.mlp)\.experts" + matrices, "{0}.experts.{e}.{1}.weight")
    if kind == "nemotron_h":
        weights = unstack(weights, r"(.*mixer)\.switch_mlp\.fc1\.weight", "{0}.experts.{e}.up_proj.weight")
        weights = unstack(weights, r"(.*mixer)\.switch_mlp\.fc2\.weight", "{0}.experts.{e}.down_proj.weight")
    if kind == "apertus":
        weights = {name: values.reshape(1) if "alpha" in name else values for name, values in weights.items()}
    if kind == "dbrx":
        for name in [name for name in weights if ".experts.0." in name]:
            parts = [weights.pop(name.replace(".experts.0.", f".experts.{e}.")) for e in range(EXPERTS)]
            parts = [part.T for part in parts] if ".w2." in name else parts
            weights[name.replace(".experts.0.", ".experts.mlp.").removesuffix(".weight")] = numpy.concatenate(parts)
    if kind == "gptj":
        weights = {re.sub("^model[.]", "transformer.", name): values for name, values in weights.items()}
    if kind.startswith("bailing"):
        weights = {name.replace("gate.gate_proj", "gate"): values for name, values in weights.items()}
    if kind == "rwkv7":
        weights = {name: values.reshape(-1) if re.search("[.](k_k|k_a|g_norm)", name) else values for name, values in weights.items()}
    if kind == "longcat_flash_ngram":
        weights = {name.replace("ngram_embeddings.word_embeddings", "embed_tokens"): values for name, values in weights.items()}
    if kind == "laguna":
        weights = {name.replace("gate.proj", "gate").replace("gate.e_score", "experts.e_score"): values for name, values in weights.items()}
    if kind in ("bailing_hybrid", "glm_moe_dsa", "kimi_k25", "longcat_flash", "longcat_flash_ngram", "mistral4"):
        for name in [name for name in weights if name.endswith("embed_q.weight")]:
            pair = [weights.pop(name).transpose(0, 2, 1), weights.pop(name.replace("embed_q", "unembed_out"))]
            both = numpy.concatenate(pair, 1)
            weights[name.replace("embed_q", "kv_b_proj")] = both.reshape(-1, both.shape[-1])
    if kind == "granitemoe":
        joined(weights, "switch_mlp.{}.weight", "output_linear.weight", "input_linear.weight")
    if kind == "llama4":
        joined(weights, "experts.{}.weight", "experts.down_proj", "experts.gate_up_proj")
        weights = {name: values.transpose(0, 2, 1) if values.ndim == 3 else values for name, values in weights.items()}
    if kind == "phixtral":
        weights = unstack(weights, r"(.*moe)\.switch_mlp\.(fc\d)\.(weight|bias)", "{0}.mlp.{e}.{1}.{2}")
    if kind == "minimax_m3_vl":
        for old, new in (("gate_proj", "w1"), ("down_proj", "w2"), ("up_proj", "w3")):
            weights = {name.replace("switch_mlp." + old, "switch_mlp." + new): values for name, values in weights.items()}
        weights = unstack(weights, r"(.*block_sparse_moe)\.switch_mlp\.(w\d)\.weight", "{0}.experts.{e}.{1}.weight")
    if kind == "lfm2_moe":
        for old, new in (("gate_proj", "w1"), ("down_proj", "w2"), ("up_proj", "w3")):
            weights = {name.replace(old, new): values for name, values in weights.items()}
        weights = unstack(weights, r"(.*feed_forward)\.switch_mlp\.(w\d)\.weight", "{0}.experts.{e}.{1}.weight")
    return weights


def write(path, weights):
    header, data = {}, b""
    for name in sorted(weights):
        values = numpy.ascontiguousarray(weights[name], "<f4")
        is_f32 = any(part in name for part in IN_F32)
        raw = values.tobytes() if is_f32 else (values.view("<u4") >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "F32" if is_f32 else "BF16", "shape": list(weights[name].shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def make(kind, config, folder):
    module = importlib.import_module(f"mlx_lm.models.{kind}")
    config = dict(config, model_type=kind)
    random = numpy.random.default_rng(len(kind))
    model = module.Model(module.ModelArgs.from_dict(json.loads(json.dumps(config))))
    weights = {name: random.standard_normal(value.shape, dtype="f4") if value.ndim else numpy.float32(1.5)
               for name, value in tree_flatten(model.parameters())}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    write(folder / "model.safetensors", as_stored(kind, weights))


def tensors(data):
    """The tensors of a safetensors file: type, shape and bytes by name."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: (entry["dtype"], entry["shape"], data[8 + size:][slice(*entry["data_offsets"])]) for name, entry in header.items() if name != "__metadata__"}


def check_back(case, kind, source, made):
    back, before = wfs("cat", made, "model.safetensors"), tensors((source / "model.safetensors").read_bytes())
    if not check(back.returncode == 0, f"{case} back: {back.stderr.decode().strip()}"):
        return
    after = tensors(back.stdout)
    lost = {name for name in before.keys() - after.keys() if "lm_head" not in name and "mtp" not in name}
    check(not lost and not after.keys() - before.keys(), f"{case} back: {sorted(lost)[:3]} {sorted(after.keys() - before.keys())[:3]}")
    cast = {name for name in before if before[name][0] == "F32"}  # mlx-lm casts some of them
    wrong = [name for name in before.keys() & after.keys() if before[name][1 if name in cast else 0:2] != after[name][1 if name in cast else 0:2]
             or name not in cast and before[name][2] != after[name][2]]
    check(not wrong, f"{case} back: other values or shapes: {wrong[:3]}")


def dequantized(made):
    """What MLX makes of a quantized directory, in F32: each scale and bias is one of the file's."""
    stored = {name: values.astype(mx.float32) if mx.issubdtype(values.dtype, mx.floating) else values
              for name, values in mx.load(str(made / "model.safetensors")).items()}
    config = json.loads((made / "config.json").read_text())["quantization"]
    values = {}
    for name, value in stored.items():
        module = name.removesuffix(".weight")
        if module + ".scales" in stored and name.endswith(".weight"):
            own = {**config, **config.get(module, {})}
            value = mx.dequantize(value, stored[module + ".scales"], stored[module + ".biases"], group_size=own["group_size"], bits=own["bits"])
        if not name.endswith((".scales", ".biases")):
            values[name] = numpy.array(value)
    return values


def rounded(values):
    """As BF16, to nearest even."""
    bits = numpy.ascontiguousarray(values, "<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()


def check_back_quantized(case, kind, made):
    """A quantized directory has transformers' names, too, and the values that MLX dequantizes; also where a class split a matrix before."""
    back, expected = wfs("cat", made, "model.safetensors"), as_stored(kind, dequantized(made))
    if not check(back.returncode == 0, f"{case} back: {back.stderr.decode().strip()}"):
        return
    after = tensors(back.stdout)
    check(after.keys() == expected.keys(), f"{case} back: {sorted(expected.keys() - after.keys())[:3]} {sorted(after.keys() - expected.keys())[:3]}")
    wrong = [name for name in after.keys() & expected.keys() if after[name][1] != list(expected[name].shape) or
             after[name][2] != (numpy.ascontiguousarray(expected[name], "<f4").tobytes() if after[name][0] == "F32" else rounded(expected[name]))]
    check(not wrong, f"{case} back: other values or shapes: {wrong[:3]}")
    again = wfs("cat", made, "mlx/plain/model.safetensors")
    check(again.returncode == 0, f"{case} back: mlx/plain: {again.stderr.decode().strip()}")
    copied = made.parent / f"repacked-{made.name}"
    wfs("cp", "-r", made, "mlx/repacked", copied)
    first, second = dequantized(made), dequantized(copied)
    differ = [name for name in first.keys() | second.keys() if not numpy.array_equal(first.get(name), second.get(name))]
    check(not differ, f"{case}: mlx/repacked of its own quantized directory has other values: {differ[:3]}")


sys.modules["mlx_lm.convert"].load = load
for number, (kind, config) in enumerate(CASES):
    if sys.argv[1:] and kind not in sys.argv[1:]:
        continue
    with tempfile.TemporaryDirectory() as directory:
        source = pathlib.Path(directory) / "model"
        make(kind, config, source)
        for variant in ("plain", "4bit", *(("mixed_3_6",) if kind in ("olmoe", "nemotron_h") and "moe_latent_size" not in config else ())):
            made = pathlib.Path(directory) / variant
            with contextlib.redirect_stdout(io.StringIO()):
                sys.modules["mlx_lm.convert"].convert(str(source), str(made), quantize=variant != "plain",
                                                             quant_predicate=variant if variant.startswith("mixed") else None)
            for file in sorted(made.iterdir()):
                found = wfs("cat", source, f"mlx/{variant}/{file.name}")
                check(found.stdout == file.read_bytes(), f"{number} {kind} {variant}/{file.name}: {found.stderr.decode().strip() or 'other bytes'}")
            if variant == "plain":
                check_back(f"{number} {kind}", kind, source, made)
            else:
                check_back_quantized(f"{number} {kind} {variant}", kind, made)
done()
