"""A model made by transformers, as an F32 GGUF, and back: AutoConfig and AutoModel open hf/ of the GGUF, all parameters are there, and the
outputs are those of the model. One for each class that the way back writes and that is not among the golden checkpoints. Of a model that sees,
hf/ is the text half, as a class of its own."""
import json
import pathlib
import re
import shutil
import sys
import tempfile

import interop

try:
    import safetensors.torch
    import sentencepiece
    import torch
    import transformers
except ImportError as error:
    interop.skip(str(error))

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
         "head_dim": 16, "max_position_embeddings": 64, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4,
         "num_experts_per_tok": 2, "moe_intermediate_size": 32, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}  # fmt: skip
T5 = {"d_model": 32, "d_ff": 48, "d_kv": 8, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0, "pad_token_id": 0,
      "eos_token_id": 1}  # fmt: skip
LABELS = {"id2label": {0: "bad", 1: "so so", 2: "good"}, "label2id": {"bad": 0, "so so": 1, "good": 2}}

DELTA = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 8,
         "shared_expert_intermediate_size": 40}  # fmt: skip
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 16}
GRANITE = {"shared_intermediate_size": 40, "position_embedding_type": "nope", "attention_multiplier": 0.3, "embedding_multiplier": 3.0,
           "residual_multiplier": 0.5, "logits_scaling": 2.0}  # fmt: skip

LATENT = {"q_lora_rank": 24, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16, "num_key_value_heads": 4,
          "n_group": 1, "topk_group": 1}  # fmt: skip
INDEXER = {"index_n_heads": 4, "index_head_dim": 16, "index_topk": 64, "num_hidden_layers": 4, "first_k_dense_replace": 3}
ROPE = {"rope_type": "default", "rope_theta": 1e6}
YARN = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 32.0, "beta_slow": 1.0,
        "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}  # fmt: skip
MIMO_ROPE = {"full_attention": {**ROPE, "partial_rotary_factor": 0.5},
             "sliding_attention": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}  # fmt: skip
COMPRESSED = ["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention", "compressed_sparse_attention"]
NEMOTRON = {"num_hidden_layers": 4, "mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2, "ssm_state_size": 16,
            "moe_shared_expert_intermediate_size": 24, "rope_theta": 10000.0, "partial_rotary_factor": 1.0}  # fmt: skip
GEMMA4 = {"global_head_dim": 32, "sliding_window": 8, "vocab_size_per_layer_input": 713, "hidden_size_per_layer_input": 8}
LONG_ROPE = {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [1.0 + i / 4 for i in range(8)], "short_mscale": 1.243163121016122,
             "long_mscale": 1.243163121016122, "original_max_position_embeddings": 32}  # fmt: skip

# How the classes are spelled in config.json, and what else the released ones say in another way.
SPELLED = {"MptForCausalLM": "MPTForCausalLM", "PhimoeForCausalLM": "PhiMoEForCausalLM"}
RELEASED = {
    "NemotronHForCausalLM": {"num_hidden_layers": 4, "hybrid_override_pattern": "ME*E"},
    "KimiLinearForCausalLM": {
        "num_experts": 4, "num_experts_per_token": 2, "num_shared_experts": 1, "first_k_dense_replace": 1, "model_max_length": 64,
        "moe_router_activation_func": "sigmoid",
        "linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3], "head_dim": 16, "num_heads": 2, "short_conv_kernel_size": 4}},
    "MiMoV2FlashForCausalLM": {
        "hybrid_layer_pattern": [0, 1, 1, 0], "swa_num_attention_heads": 4, "swa_num_key_value_heads": 4, "swa_head_dim": 16, "swa_v_head_dim": 8,
        "sliding_window": 8, "sliding_window_size": 8, "layernorm_epsilon": 1e-5, "topk_method": "noaux_tc", "rope_parameters": None,
        "rope_theta": 1e6, "swa_rope_theta": 1e4, "partial_rotary_factor": 0.5},
    "MiniMaxM3VLForCausalLM": {
        "n_shared_experts": 1, "moe_layer_freq": [0, 1, 1], "scoring_func": "sigmoid",
        "sparse_attention_config": {"sparse_num_index_heads": 2, "sparse_index_dim": 16, "sparse_topk_blocks": 2, "sparse_block_size": 4,
                                    "sparse_local_block": 1}},
    "DeepseekV4ForCausalLM": {"compress_ratios": [0, 4, 128, 4], "num_hash_layers": 1, "qk_rope_head_dim": 8},
}  # fmt: skip

# How far outputs may be off: -exp(x) in F32 and its logarithm, and experts that are added up in another order.
LIMITS = {"Mamba2ForCausalLM": 1e-4, "JambaForCausalLM": 1e-5, "BambaForCausalLM": 1e-5, "GraniteMoeHybridForCausalLM": 1e-5,
          "Qwen3NextForCausalLM": 1e-5, "FalconH1ForCausalLM": 1e-5, "Qwen3VLMoeForConditionalGeneration": 1e-6}  # fmt: skip

# Of models that see, the class of the text half, which is all that a GGUF has of them; and what makes the other half small.
HALVES = {"Qwen2_5_VLForConditionalGeneration": "Qwen2ForCausalLM", "Qwen3VLForConditionalGeneration": "Qwen3ForCausalLM",
          "Qwen3VLMoeForConditionalGeneration": "Qwen3MoeForCausalLM"}  # fmt: skip
VISION = {"depth": 1, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "out_hidden_size": 64, "deepstack_visual_indexes": [0],
          "fullatt_block_indexes": [0]}  # fmt: skip

# What kinds of tokenizer are told by, beside those of GPT-2.
SPECIAL_TOKENS = {"glm": ["<|user|>", "<|observation|>", "[gMASK]", "<sop>"], "solar": ["<|startoftext|>", "<unk>"]}

# Class, its tokenizer, hyperparameters, parameters that GGUF does not hold.
MODELS = [
    ("RobertaModel", "bpe", {"max_position_embeddings": 66, "type_vocab_size": 1}, ["pooler"]),
    ("XLMRobertaModel", "unigram", {"max_position_embeddings": 66, "type_vocab_size": 1}, ["pooler"]),
    ("RobertaForSequenceClassification", "bpe", {"max_position_embeddings": 66, "type_vocab_size": 1, **LABELS}, []),
    ("XLMRobertaForSequenceClassification", "unigram", {"max_position_embeddings": 66, "type_vocab_size": 1, **LABELS}, []),
    ("BertForSequenceClassification", "wordpiece", LABELS, ["pooler"]),
    ("BertForSequenceClassification", "wordpiece", {}, ["pooler"]),
    ("MptForCausalLM", "bpe", {"d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}, []),
    ("DbrxForCausalLM", "bpe", {"d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 64,
                                "attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 1e4},
                                "ffn_config": {"ffn_hidden_size": 48, "moe_num_experts": 4, "moe_top_k": 2}}, []),
    ("T5ForConditionalGeneration", "unigram", {**T5, "feed_forward_proj": "relu"}, []),
    ("T5ForConditionalGeneration", "unigram", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}, []),
    ("UMT5ForConditionalGeneration", "unigram", {**T5, "tie_word_embeddings": False}, []),
    ("T5EncoderModel", "unigram", T5, []),
    ("SeedOssForCausalLM", "bpe", {}, []),
    ("Ernie4_5ForCausalLM", "spm", {}, []),
    ("Glm4ForCausalLM", "glm", {}, []),
    ("Glm4MoeForCausalLM", "glm", {"n_group": 1, "topk_group": 1, "n_shared_experts": 1, "use_qk_norm": True}, []),
    ("NemotronForCausalLM", "spm", {}, []),
    ("Dots1ForCausalLM", "bpe", {"n_group": 1, "topk_group": 1, "n_shared_experts": 1, "first_k_dense_replace": 1}, []),
    ("Cohere2ForCausalLM", "bpe", {"rotary_pct": 1.0}, []),
    ("Mamba2ForCausalLM", "bpe", {"hidden_size": 64, "num_heads": 8, "head_dim": 16, "n_groups": 2, "state_size": 16}, []),
    ("Phi3ForCausalLM", "spm", {"sliding_window": None}, []),
    ("Qwen3NextForCausalLM", "bpe", {**DELTA, "num_hidden_layers": 4}, []),
    ("Lfm2ForCausalLM", "bpe", {"num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"], "block_auto_adjust_ff_dim": False}, []),
    ("GraniteMoeHybridForCausalLM", "bpe", {**MAMBA, **GRANITE, "num_hidden_layers": 3, "layer_types": ["mamba", "attention", "mamba"]}, []),
    ("GraniteMoeHybridForCausalLM", "bpe", {**MAMBA, **GRANITE, "layer_types": ["mamba", "attention"], "num_local_experts": 0,
                                            "num_experts_per_tok": 0}, []),
    ("BambaForCausalLM", "bpe", {**MAMBA, "num_hidden_layers": 3, "attn_layer_indices": [1], "attn_rotary_emb": 8, "partial_rotary_factor": 0.5}, []),
    ("Exaone4ForCausalLM", "bpe", {"num_hidden_layers": 4, "sliding_window": 8}, []),
    ("Exaone4ForCausalLM", "bpe", {"sliding_window": None, "layer_types": ["full_attention"] * 2}, []),
    ("ApertusForCausalLM", "bpe", {}, []),
    ("FalconH1ForCausalLM", "bpe", {"mamba_d_ssm": 128, "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 16,
                                    "head_dim": 16, "key_multiplier": 0.5, "mlp_multipliers": [0.5, 2.0], "embedding_multiplier": 4.0}, []),
    ("JambaForCausalLM", "spm", {"num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2,
                                   "expert_layer_offset": 0, "mamba_dt_rank": 4, "mamba_d_state": 8, "use_mamba_kernels": False}, []),
    ("ModernBertModel", "bpe", {"num_hidden_layers": 3, "local_attention": 8}, []),
    ("ModernBertForSequenceClassification", "bpe", {"local_attention": 8, **LABELS}, []),
    ("Ernie4_5_MoeForCausalLM", "spm", {"num_hidden_layers": 3, "moe_num_experts": 4, "moe_k": 2}, []),
    ("HunYuanDenseV1ForCausalLM", "bpe", {"rope_scaling": None}, []),
    ("HunYuanMoEV1ForCausalLM", "bpe", {"moe_topk": 2, "moe_intermediate_size": 96, "num_shared_expert": 1}, []),
    ("GlmForCausalLM", "glm", {"rms_norm_eps": 1e-5}, []),
    ("Gemma3TextModel", "spm", {"sliding_window": 8, "num_hidden_layers": 7, "use_bidirectional_attention": True, "query_pre_attn_scalar": 16}, []),
    ("Gemma3nForCausalLM", "spm", {"num_hidden_layers": 12, "num_kv_shared_layers": 4, "sliding_window": 8, "laurel_rank": 4,
                                   "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 96}, []),
    ("Llama4ForCausalLM", "bpe", {"num_hidden_layers": 4, "intermediate_size_mlp": 80, "interleave_moe_layer_step": 2}, []),
    ("PhimoeForCausalLM", "spm", {"rope_scaling": LONG_ROPE, "original_max_position_embeddings": 32}, []),
    # of transformers 5
    ("Qwen3_5ForCausalLM", "bpe", {**DELTA, "num_hidden_layers": 4}, []),
    ("Qwen3_5MoeForCausalLM", "bpe", {**DELTA, "num_hidden_layers": 4}, []),
    ("Lfm2MoeForCausalLM", "bpe", {"num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"], "num_dense_layers": 1}, []),
    ("MiniMaxM2ForCausalLM", "bpe", {"rotary_dim": 8}, []),
    ("Ministral3ForCausalLM", "spm", {"rope_parameters": YARN}, []),
    ("NemotronHForCausalLM", "bpe", {**NEMOTRON, "layers_block_type": ["mamba", "moe", "attention", "moe"]}, []),
    ("Gemma4ForCausalLM", "gemma4", {**GEMMA4, "use_double_wide_mlp": True, "num_kv_shared_layers": 2, "num_hidden_layers": 6,
                                  "layer_types": ["sliding_attention", "full_attention"] * 3}, []),
    ("Gemma4ForCausalLM", "gemma4", {**GEMMA4, "attention_k_eq_v": True, "num_global_key_value_heads": 1, "enable_moe_block": True,
                                  "hidden_size_per_layer_input": 0, "top_k_experts": 2,
                                  "layer_types": ["sliding_attention", "full_attention"]}, []),
    ("GlmMoeDsaForCausalLM", "glm", {**LATENT, **INDEXER}, []),
    ("DeepseekV32ForCausalLM", "bpe", {**LATENT, **INDEXER}, []),
    ("Glm4MoeLiteForCausalLM", "glm", {**LATENT, "num_hidden_layers": 3, "num_nextn_predict_layers": 1}, []),
    ("SolarOpenForCausalLM", "solar", {"n_shared_experts": 1, "rope_parameters": {**ROPE, "partial_rotary_factor": 1.0}}, []),
    ("AfmoeForCausalLM", "bpe", {"num_hidden_layers": 4, "num_dense_layers": 1, "sliding_window": 8, "mup_enabled": True, "route_scale": 1.5}, []),
    ("ExaoneMoeForCausalLM", "bpe", {"num_hidden_layers": 4, "sliding_window": 8}, []),
    ("HYV3ForCausalLM", "bpe", {"num_hidden_layers": 3, "num_shared_experts": 2}, []),
    ("EuroBertModel", "bpe", {"mask_token_id": 3}, []),
    ("Cohere2MoeForCausalLM", "bpe", {"num_hidden_layers": 4, "sliding_window": 8, "num_shared_experts": 2, "expert_selection_fn": "sigmoid",
                                      "first_k_dense_replace": 1, "prefix_dense_intermediate_size": 80}, []),
    ("MiniCPM3ForCausalLM", "spm", LATENT, []),
    ("KimiLinearForCausalLM", "bpe", {**LATENT, "q_lora_rank": None, "num_hidden_layers": 4, "linear_head_dim": 16, "linear_num_heads": 2,
                                      "layer_types": ["linear_attention"] * 3 + ["full_attention"], "num_experts_per_tok": 2,
                                      "num_local_experts": 4, "routed_scaling_factor": 1.5}, []),
    ("MiMoV2FlashForCausalLM", "bpe", {"num_hidden_layers": 4, "sliding_window": 9, "v_head_dim": 8, "rope_parameters": MIMO_ROPE,
                                       "layer_types": ["full_attention"] + ["sliding_attention"] * 2 + ["full_attention"]}, []),
    ("DeepseekV4ForCausalLM", "bpe", {"num_hidden_layers": 4, "q_lora_rank": 24, "o_groups": 2, "o_lora_rank": 8, "hc_mult": 2,
                                      "index_n_heads": 4, "index_head_dim": 16, "index_topk": 8, "sliding_window": 8,
                                      "layer_types": COMPRESSED,
                                      "mlp_layer_types": ["hash_moe", "moe", "moe", "moe"], "partial_rotary_factor": 0.5}, []),
    ("Mistral4ForCausalLM", "bpe", {**LATENT, "head_dim": 24, "routed_scaling_factor": 1.5,
                                    "rope_parameters": {**YARN, "partial_rotary_factor": 1 / 3}}, []),
    ("MiniMaxM3VLForCausalLM", "bpe", {"num_hidden_layers": 3, "intermediate_size": 32, "dense_intermediate_size": 96, "rotary_dim": 8,
                                       "shared_intermediate_size": 32, "index_n_heads": 2, "index_head_dim": 16, "index_block_size": 4,
                                       "index_topk_blocks": 2, "layer_types": ["full_attention"] + ["minimax_m3_sparse"] * 2,
                                       "mlp_layer_types": ["dense", "sparse", "sparse"]}, []),
    ("JinaEmbeddingsV3Model", "unigram", {"max_position_embeddings": 66, "rope_parameters": ROPE}, ["pooler"]),
    ("Qwen2_5_VLForConditionalGeneration", "bpe", {"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}}, []),
    ("Qwen3VLForConditionalGeneration", "bpe", {"rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2]}}, []),
    ("Qwen3VLMoeForConditionalGeneration", "bpe", {"rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2]}}, []),
]  # fmt: skip


def make_config(model_class, name, values):
    """A small one, of a whole model or with its text half below text_config."""
    kind = model_class.config_class
    text_kind = kind.sub_configs["text_config"] if name in HALVES else kind
    known = vars(text_kind())
    values = {**{key: value for key, value in SIZES.items() if key in known}, **values}
    return kind(**({"text_config": values, "vision_config": VISION} if name in HALVES else values), architectures=[SPELLED.get(name, name)])


def write_tokenizer(kind, folder):
    """The files of a tokenizer, and how many tokens it has."""
    if kind == "unigram":
        pieces = [f"{a}{b}{c}" for a in "aeiou" for b in "bcdfg" for c in "xyz"]
        trained = folder / "text"
        trained.write_text("\n".join(" ".join(pieces[i:] + pieces[:i]) for i in range(len(pieces))))
        sentencepiece.SentencePieceTrainer.train(input=str(trained), model_prefix=str(folder / "m"), vocab_size=90, model_type="unigram",
                                                 pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2)  # fmt: skip
        trained.unlink()
        (folder / "m.vocab").unlink()
        (folder / "m.model").rename(folder / "spiece.model")
        shutil.copy(folder / "spiece.model", folder / "sentencepiece.bpe.model")
        return 96
    if kind == "spm":
        write_tokenizer("unigram", folder)
        (folder / "sentencepiece.bpe.model").unlink()
        (folder / "spiece.model").rename(folder / "tokenizer.model")
        return 96
    models, _ = interop.golden_checkpoints(*(["families2"] if kind == "gemma4" else []))
    source = models[{"wordpiece": "bge-small-en-v1.5", "gemma4": "gemma-4-E2B-it"}.get(kind, "gpt2")]
    for path in source.iterdir():
        if path.name.startswith(("tokenizer", "vocab", "merges", "special_tokens")):
            shutil.copy(path, folder)
    if kind in SPECIAL_TOKENS:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        tokenizer.add_special_tokens({"additional_special_tokens": SPECIAL_TOKENS[kind]})
        tokenizer.save_pretrained(folder)
        return 50272
    return {"bpe": 50257, "wordpiece": 30522, "gemma4": 713}[kind]


def outputs(model, n_tokens):
    tokens = torch.arange(3, 23).reshape(2, -1) % n_tokens
    more = {"decoder_input_ids": tokens} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        found = model.eval()(input_ids=tokens, **more)
    return found.logits if "logits" in found else found.last_hidden_state


def released_name(name, key):
    """What released checkpoints call a tensor that a release of transformers saves by a name which it does not load."""
    if name == "DeepseekV4ForCausalLM":
        key = key.removeprefix("model.").replace("embed_tokens.", "embed.")
        key = key.replace("hc_head.hc_", "hc_head_").replace(".attn.norm.", ".attn.kv_norm.")
    if name == "KimiLinearForCausalLM" and "experts" not in key:
        key = re.sub(r"block_sparse_moe\.(\w+_proj)", r"mlp.\1", key)
    return key.replace("per_layer_model.language_model_projection", "per_layer_model_projection")


def save(name, model, folder):
    model.save_pretrained(folder)
    for path in folder.glob("*.safetensors"):
        tensors = safetensors.torch.load_file(path)
        named = {released_name(name, key): tensor for key, tensor in tensors.items()}
        if named.keys() != tensors.keys():
            safetensors.torch.save_file(named, path, metadata={"format": "pt"})


def there_and_back(name, kind, values, lost, folder):
    model_class, source = getattr(transformers, name), folder / "source"
    source.mkdir()
    n_tokens = write_tokenizer(kind, source)
    config = make_config(model_class, name, {**values, "vocab_size": n_tokens})
    torch.manual_seed(0)
    model = model_class(config).float()
    head = model.get_output_embeddings()
    if not values.get("tie_word_embeddings", True) and head.weight is model.get_input_embeddings().weight:
        head.weight = torch.nn.Parameter(torch.randn_like(head.weight) / 10)  # as in what is released, whatever the class makes of it
    save(name, model, source)
    saved = json.loads((source / "config.json").read_text())
    saved.update({"architectures": [SPELLED.get(name, name)], **RELEASED.get(name, {})})
    saved.update({key: value for key, value in values.items() if key == "tie_word_embeddings"})
    (source / "config.json").write_text(json.dumps(saved))
    made = interop.wfs("cp", source, "gguf/model-F32.gguf", folder / "f32.gguf")
    if not interop.check(made.returncode == 0, f"{name}: {made.stderr.decode()}"):
        return
    made = interop.wfs("cp", "-r", folder / "f32.gguf", "hf", folder / "hf")
    if not interop.check(made.returncode == 0 and (folder / "hf" / "config.json").exists(), f"{name}: no hf/: {made.stderr.decode()}"):
        print(interop.wfs("info", folder / "f32.gguf").stdout.decode()[-600:])
        return
    text_class = getattr(transformers, HALVES.get(name, name))
    again, loaded = text_class.from_pretrained(folder / "hf", output_loading_info=True)
    missing = [key for key in loaded["missing_keys"] if not any(part in key for part in lost)]
    interop.check(not missing and not loaded["unexpected_keys"], f"{name}: missing {missing}, not known {loaded['unexpected_keys']}")
    interop.check(transformers.AutoConfig.from_pretrained(folder / "hf").architectures == [SPELLED.get(text_class.__name__, text_class.__name__)],
                  f"{name}: AutoConfig")  # fmt: skip
    if name not in RELEASED and "tie_word_embeddings" not in values:
        model = model_class.from_pretrained(source)  # Gemma 3's class changes its window, and Apertus' some weights, in saving
    for key, tensor in model.state_dict().items():
        if any(part in key for part in lost):
            again.get_parameter(key).data.copy_(tensor)
    wanted, found = outputs(model, n_tokens), outputs(again, n_tokens)
    interop.check((wanted - found).abs().max() <= LIMITS.get(name, 0), f"{name}, {values}: outputs are off by {(wanted - found).abs().max()}")


def main():
    only = sys.argv[1:]
    models, _ = interop.golden_checkpoints()
    for name, kind, values, lost in MODELS:
        if only and name not in only:
            continue
        if not hasattr(transformers, name):
            print(f"{name}: transformers {transformers.__version__} does not know it")
            continue
        if not models and kind not in ("unigram", "spm"):
            print(f"{name}: no golden checkpoints for its tokenizer: WFS_GOLDEN is not set")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            try:
                there_and_back(name, kind, values, lost, pathlib.Path(scratch))
            except Exception as error:
                interop.check(False, f"{name}: {error!r}")
    interop.done()


if __name__ == "__main__":
    main()
