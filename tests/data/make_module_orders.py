#!/usr/bin/env python3
"""Makes tests/data/module_orders.txt: of models of a few layers, the type and the names in state_dict(), in its order.

    python3 tests/data/make_module_orders.py > tests/data/module_orders.txt

Needs transformers and torch. The first line names the version.
"""
import torch
import transformers
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

SMALL = dict(num_hidden_layers=2, hidden_size=8, intermediate_size=16, num_attention_heads=2, num_key_value_heads=2, vocab_size=16,
             head_dim=4, pad_token_id=0)
BLOOM = dict(n_layer=2, n_embd=8, hidden_size=8, n_head=2, vocab_size=16)
MLA = dict(SMALL, kv_lora_rank=4, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=4)
EXPERTS = dict(n_routed_experts=2, n_shared_experts=1, moe_intermediate_size=4, first_k_dense_replace=1, n_group=1, topk_group=1,
               num_experts_per_tok=1)
QWEN_MOE = dict(SMALL, num_experts=2, moe_intermediate_size=4, shared_expert_intermediate_size=4)
MAMBA = dict(num_hidden_layers=2, hidden_size=8, state_size=4, vocab_size=16)
HYBRID = dict(SMALL, mamba_n_heads=4, mamba_d_head=4, mamba_d_ssm=16, mamba_n_groups=1, mamba_d_state=4, mamba_rms_norm=True)
T5 = dict(num_layers=2, d_model=8, d_kv=4, d_ff=8, num_heads=2, vocab_size=16)

MODELS = {
    "llama": SMALL, "gpt2": BLOOM, "bloom": BLOOM, "gpt_neox": SMALL, "qwen2_moe": QWEN_MOE, "mixtral": dict(SMALL, num_local_experts=2),
    "gemma2": SMALL, "phi": SMALL, "phi3": SMALL, "stablelm": SMALL, "olmo2": SMALL, "starcoder2": SMALL, "glm4": SMALL,
    "falcon": dict(num_hidden_layers=2, hidden_size=8, num_attention_heads=2, vocab_size=16),
    "mpt": dict(n_layers=2, d_model=8, n_heads=2, vocab_size=16), "mamba": dict(MAMBA, time_step_rank=2),
    "mamba2": dict(MAMBA, num_heads=4, head_dim=4, n_groups=1),
    "deepseek_v2": dict(MLA, **EXPERTS, q_lora_rank=None), "deepseek_v3": dict(MLA, **EXPERTS, q_lora_rank=4),
    "glm4_moe": dict(SMALL, **EXPERTS, attention_bias=True, use_qk_norm=True), "dots1": dict(SMALL, **EXPERTS),
    "gpt_oss": dict(SMALL, num_local_experts=2), "llama4_text": dict(SMALL, num_local_experts=2, moe_layers=[1]),
    "granitemoeshared": dict(SMALL, num_local_experts=2, shared_intermediate_size=4),
    "granitemoehybrid": dict(HYBRID, num_local_experts=2, shared_intermediate_size=4, layer_types=["mamba", "attention"]),
    "bamba": dict(HYBRID, attn_layer_indices=[1]), "falcon_h1": HYBRID,
    "jamba": dict(SMALL, num_experts=2, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1,
                  mamba_dt_rank=2, use_mamba_kernels=False),
    "qwen3_next": dict(QWEN_MOE, layer_types=["linear_attention", "full_attention"]),
    "lfm2": dict(SMALL, layer_types=["conv", "full_attention"]), "hunyuan_v1_moe": dict(SMALL, num_experts=2, moe_topk=1),
    "ernie4_5_moe": dict(SMALL, moe_num_experts=2, moe_intermediate_size=4, moe_layer_start_index=1, moe_num_shared_experts=1),
    "gemma3n_text": dict(SMALL, layer_types=["sliding_attention", "full_attention"], num_kv_shared_layers=0, laurel_rank=2,
                         hidden_size_per_layer_input=4, vocab_size_per_layer_input=16),
    "dbrx": dict(n_layers=2, d_model=8, n_heads=2, vocab_size=16, ffn_config=dict(ffn_hidden_size=8, moe_num_experts=2, moe_top_k=1),
                 attn_config=dict(kv_n_heads=1)),
    "t5": T5, "bert": SMALL, "roberta": SMALL,
}
WITHOUT_HEAD = {"t5", "bert", "roberta"}

print(f"# transformers {transformers.__version__}")
for model_type, sizes in MODELS.items():
    with torch.device("meta"):
        model = (AutoModel if model_type in WITHOUT_HEAD else AutoModelForCausalLM).from_config(AutoConfig.for_model(model_type, **sizes))
    print(model_type, *model.state_dict())
