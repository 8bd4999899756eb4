"""A tiny checkpoint of random numbers for each family whose class transformers has: what test_way_back_forward.py runs there and back.

A case is told by general.architecture and the class that config.json names. Its configuration is small, and away from the defaults of the
class wherever the converter takes another value.
"""
import dataclasses
import importlib.util
import io
import json
import pathlib

import safetensors.torch
import sentencepiece
import tokenizers
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2]
VOCABULARY, HIDDEN, INNER, LAYERS, HEADS, KV_HEADS, POSITIONS = 320, 64, 96, 4, 4, 2, 128
BOS, EOS = 318, 319

IDS = dict(vocab_size=VOCABULARY, bos_token_id=BOS, eos_token_id=EOS, pad_token_id=0)
BASE = dict(IDS, hidden_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS, max_position_embeddings=POSITIONS)
SMALL = dict(BASE, intermediate_size=INNER, num_key_value_heads=KV_HEADS, tie_word_embeddings=False, rms_norm_eps=1e-5)
WINDOWED = dict(sliding_window=8, use_sliding_window=True)
VISION = dict(hidden_size=32, intermediate_size=32, num_attention_heads=2, num_heads=2, num_hidden_layers=1, depth=1, patch_size=14, image_size=28,
              out_hidden_size=HIDDEN, deepstack_visual_indexes=[0], fullatt_block_indexes=[0], num_position_embeddings=16)  # fmt: skip

LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=32)
MROPE = dict(rope_type="default", type="default", mrope_section=[2, 3, 3])
BERT = dict(BASE, intermediate_size=INNER, type_vocab_size=2)


@dataclasses.dataclass(frozen=True)
class Case:
    gguf: str
    name: str  # of the class that config.json names
    settings: dict
    tokenizer: str = "bpe"
    variant: str = ""  # of several of one family
    kind: str = ""  # the class in transformers, where its name is another
    as_saved: dict = dataclasses.field(default_factory=dict)  # what published files have and save_pretrained() does not write
    ternary: bool = False  # matrices are of one number and its negative

    @property
    def title(self):
        return f"{self.gguf} {self.name}{' ' if self.variant else ''}{self.variant}"


def moe(**more):
    return dict(SMALL, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, decoder_sparse_step=1, mlp_only_layers=[], **more)


MLA = dict(SMALL, num_key_value_heads=HEADS, q_lora_rank=24, kv_lora_rank=16, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16, head_dim=8,
           n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=32, first_k_dense_replace=1, routed_scaling_factor=1.5,
           n_group=2, topk_group=1)  # fmt: skip
GLM_MOE = dict(SMALL, head_dim=16, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=32, first_k_dense_replace=1,
               n_group=1, topk_group=1, routed_scaling_factor=1.5, use_qk_norm=True, partial_rotary_factor=0.5, attention_bias=True)  # fmt: skip
GRANITE = dict(SMALL, attention_multiplier=0.2, embedding_multiplier=3.0, residual_multiplier=0.5, logits_scaling=4.0)
MAMBA2 = dict(mamba_n_heads=8, mamba_d_head=16, mamba_d_state=16, mamba_d_conv=4, mamba_n_groups=2, mamba_expand=2, mamba_chunk_size=8)
GRANITE4 = dict(GRANITE, **MAMBA2, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=48, position_embedding_type="nope",
                layer_types=["mamba", "attention", "mamba", "mamba"])  # fmt: skip
DENSE4 = dict(num_local_experts=0, num_experts_per_tok=0)
FALCON = dict(BASE, num_kv_heads=HEADS, new_decoder_architecture=False, multi_query=True, parallel_attn=True, bias=False, alibi=False)
FALCON_H1 = dict(SMALL, head_dim=16, mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2, mamba_d_state=16, mamba_d_conv=4, mamba_chunk_size=8,
                 mamba_norm_before_gate=False, attention_in_multiplier=0.5, attention_out_multiplier=1.5, embedding_multiplier=3.0, key_multiplier=0.5,
                 lm_head_multiplier=0.25, mlp_multipliers=[0.5, 1.5], ssm_in_multiplier=1.25, ssm_multipliers=[0.5, 1.5, 0.75, 1.25, 0.5],
                 ssm_out_multiplier=0.75)  # fmt: skip
LLAMA4 = dict(SMALL, head_dim=16, intermediate_size=32, intermediate_size_mlp=INNER, num_local_experts=4, num_experts_per_tok=1, attention_chunk_size=8192)
NEOX = dict(BASE, intermediate_size=INNER, rotary_pct=0.5, tie_word_embeddings=False)
T5 = dict(vocab_size=VOCABULARY, d_model=HIDDEN, d_kv=16, d_ff=INNER, num_layers=3, num_decoder_layers=2, num_heads=HEADS, relative_attention_num_buckets=8,
          relative_attention_max_distance=128, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0)  # fmt: skip
GEMMA3 = dict(SMALL, head_dim=16, sliding_window=8, rope_local_base_freq=1000.0, rope_theta=50000.0, query_pre_attn_scalar=16, num_hidden_layers=7,
              tie_word_embeddings=True)  # fmt: skip
QWEN_VL = dict(vision_config=VISION, image_token_id=1, video_token_id=2, vision_start_token_id=3, vision_end_token_id=4, tie_word_embeddings=False)

CASES = [
    Case("apertus", "ApertusForCausalLM", dict(SMALL, rope_scaling=LLAMA3, hidden_act="xielu")),
    Case("apertus", "ApertusForCausalLM", dict(SMALL, rope_scaling=None, hidden_act="xielu"), variant="without scaling"),
    Case("arcee", "ArceeForCausalLM", SMALL),
    Case("bert", "BertModel", BERT, "wordpiece"),
    Case("bert", "BertForSequenceClassification", dict(BERT, num_labels=3), "wordpiece"),
    Case("bert", "DistilBertModel", dict(IDS, dim=HIDDEN, hidden_dim=INNER, n_layers=3, n_heads=HEADS, max_position_embeddings=POSITIONS), "wordpiece"),
    Case("bert", "DistilBertForSequenceClassification",
         dict(IDS, dim=HIDDEN, hidden_dim=INNER, n_layers=3, n_heads=HEADS, max_position_embeddings=POSITIONS, num_labels=3), "wordpiece"),
    Case("bert", "RobertaForSequenceClassification", dict(BERT, type_vocab_size=1, pad_token_id=1, num_labels=3)),
    Case("bert", "RobertaModel", dict(BERT, type_vocab_size=1, pad_token_id=1)),
    Case("bert", "XLMRobertaModel", dict(BERT, type_vocab_size=1, pad_token_id=1), "xlmr"),
    Case("bitnet", "BitNetForCausalLM", dict(SMALL, tie_word_embeddings=True, hidden_act="silu"), "spm", ternary=True),
    Case("bloom", "BloomForCausalLM", dict(IDS, hidden_size=HIDDEN, n_layer=LAYERS, n_head=HEADS)),
    Case("chatglm", "GlmForCausalLM", dict(SMALL, head_dim=16, partial_rotary_factor=0.5, attention_bias=True), "glm"),
    Case("chatglm", "GlmForCausalLM", dict(SMALL, head_dim=16, partial_rotary_factor=0.5, attention_bias=False), "glm",
         variant="without biases"),
    Case("cohere2", "Cohere2ForCausalLM", dict(SMALL, head_dim=16, sliding_window=8, tie_word_embeddings=True, logit_scale=0.25), as_saved=dict(rotary_pct=1.0)),
    Case("command-r", "CohereForCausalLM", dict(SMALL, tie_word_embeddings=True, logit_scale=0.25, use_qk_norm=True)),
    Case("dbrx", "DbrxForCausalLM", dict(IDS, d_model=HIDDEN, n_heads=HEADS, n_layers=LAYERS, max_seq_len=POSITIONS,
         attn_config=dict(clip_qkv=0.5, kv_n_heads=KV_HEADS, rope_theta=50000.0),
         ffn_config=dict(ffn_hidden_size=32, moe_num_experts=4, moe_top_k=2))),
    Case("deepseek2", "DeepseekV2ForCausalLM", dict(MLA, topk_method="group_limited_greedy")),
    Case("deepseek2", "DeepseekV3ForCausalLM", MLA),
    Case("dots1", "Dots1ForCausalLM", dict(SMALL, head_dim=16, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=32,
         first_k_dense_replace=1, routed_scaling_factor=1.5, norm_topk_prob=True, layer_types=["full_attention"] * LAYERS)),
    Case("ernie4_5", "Ernie4_5ForCausalLM", dict(SMALL, head_dim=16, use_bias=False), "spm"),
    Case("ernie4_5-moe", "Ernie4_5_MoeForCausalLM", dict(SMALL, moe_num_experts=4, moe_k=2, moe_intermediate_size=32, moe_num_shared_experts=1,
         moe_layer_start_index=1, moe_layer_interval=1), "spm"),
    Case("exaone4", "Exaone4ForCausalLM", dict(SMALL, sliding_window=8, sliding_window_pattern=4, rope_scaling=LLAMA3)),
    Case("falcon", "FalconForCausalLM", FALCON, variant="7B"),
    Case("falcon", "FalconForCausalLM", dict(FALCON, num_kv_heads=KV_HEADS, new_decoder_architecture=True, num_ln_in_parallel_attn=2), variant="40B"),
    Case("falcon-h1", "FalconH1ForCausalLM", dict(FALCON_H1, mamba_rms_norm=False)),
    Case("falcon-h1", "FalconH1ForCausalLM", dict(FALCON_H1, mamba_rms_norm=True), variant="with a norm of what Mamba makes"),
    Case("gemma", "GemmaForCausalLM", dict(SMALL, head_dim=16, hidden_activation="gelu_pytorch_tanh", tie_word_embeddings=True), "spm"),
    Case("gemma2", "Gemma2ForCausalLM", dict(SMALL, head_dim=256, query_pre_attn_scalar=256, sliding_window=8, tie_word_embeddings=True), "spm"),
    Case("gemma3", "Gemma3ForCausalLM", GEMMA3, "spm"),
    Case("gemma-embedding", "Gemma3TextModel", dict(GEMMA3, use_bidirectional_attention=True), "spm"),
    Case("gemma3n", "Gemma3nForCausalLM", dict(SMALL, head_dim=16, intermediate_size=INNER, num_hidden_layers=10, sliding_window=8, num_kv_shared_layers=5,
         vocab_size_per_layer_input=VOCABULARY, hidden_size_per_layer_input=16, laurel_rank=8, tie_word_embeddings=True,
         activation_sparsity_pattern=[0.95] * 3 + [0.0] * 7), "spm"),
    Case("glm4", "Glm4ForCausalLM", dict(SMALL, head_dim=16, partial_rotary_factor=0.5, attention_bias=True), "glm"),
    Case("glm4moe", "Glm4MoeForCausalLM", GLM_MOE, "glm"),
    Case("gpt2", "GPT2LMHeadModel", dict(IDS, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_positions=POSITIONS), as_saved=dict(n_ctx=POSITIONS)),
    Case("gpt-oss", "GptOssForCausalLM", dict(SMALL, head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=8, rope_scaling=dict(YARN, beta_fast=32.0,
         beta_slow=1.0, truncate=False))),
    Case("gptneox", "GPTNeoXForCausalLM", NEOX),
    Case("granite", "GraniteForCausalLM", GRANITE),
    Case("granite", "GraniteMoeHybridForCausalLM", dict(GRANITE4, **DENSE4, layer_types=["attention"] * LAYERS, position_embedding_type="rope")),
    Case("granitemoe", "GraniteMoeHybridForCausalLM", dict(GRANITE4, layer_types=["attention"] * LAYERS, position_embedding_type="rope")),
    Case("granitemoe", "GraniteMoeForCausalLM", dict(GRANITE, num_local_experts=4, num_experts_per_tok=2)),
    Case("granitemoe", "GraniteMoeSharedForCausalLM", dict(GRANITE, num_local_experts=4, num_experts_per_tok=2, shared_intermediate_size=48)),
    Case("granitehybrid", "GraniteMoeHybridForCausalLM", GRANITE4),
    Case("granitehybrid", "GraniteMoeHybridForCausalLM", dict(GRANITE4, **DENSE4), variant="dense"),
    Case("granitehybrid", "BambaForCausalLM", dict(SMALL, **MAMBA2, attn_layer_indices=[1, 3], attn_rotary_emb=8)),
    Case("hunyuan-dense", "HunYuanDenseV1ForCausalLM", dict(SMALL, head_dim=16)),
    Case("hunyuan-moe", "HunYuanMoEV1ForCausalLM", dict(SMALL, head_dim=16, num_experts=4, moe_topk=2, moe_intermediate_size=INNER, num_shared_expert=1)),
    Case("jamba", "JambaForCausalLM", dict(SMALL, num_experts=4, num_experts_per_tok=2, attn_layer_period=2, attn_layer_offset=1, expert_layer_period=2,
         expert_layer_offset=1, mamba_d_state=8, mamba_dt_rank=8, use_mamba_kernels=False), "spm"),
    Case("lfm2", "Lfm2ForCausalLM", dict(SMALL, layer_types=["conv", "full_attention", "conv", "conv"], block_auto_adjust_ff_dim=False, tie_word_embeddings=True)),
    Case("llama", "LlamaForCausalLM", dict(SMALL, rope_scaling=LLAMA3, head_dim=32)),
    Case("llama", "LlamaForCausalLM", dict(SMALL, attention_bias=True, mlp_bias=True), variant="with biases"),
    Case("llama", "MistralForCausalLM", dict(SMALL, sliding_window=None)),
    Case("llama", "MixtralForCausalLM", dict(SMALL, num_local_experts=4, num_experts_per_tok=2)),
    Case("llama4", "Llama4ForCausalLM", dict(LLAMA4, interleave_moe_layer_step=2, rope_scaling=LLAMA3)),
    Case("llama4", "Llama4ForCausalLM", dict(LLAMA4, interleave_moe_layer_step=1, no_rope_layers=[1] * LAYERS, attn_temperature_tuning=False,
         layer_types=["full_attention"] * LAYERS), variant="that turns everywhere"),
    Case("mamba", "MambaForCausalLM", dict(IDS, hidden_size=HIDDEN, num_hidden_layers=2, state_size=8)),
    Case("mamba", "FalconMambaForCausalLM", dict(IDS, hidden_size=HIDDEN, num_hidden_layers=2, state_size=8)),
    Case("mamba2", "Mamba2ForCausalLM", dict(IDS, hidden_size=HIDDEN, num_hidden_layers=2, state_size=16, num_heads=8, head_dim=16, n_groups=2, chunk_size=8,
         tie_word_embeddings=False)),
    Case("llama4", "Llama4ForCausalLM", dict(LLAMA4, interleave_moe_layer_step=2, rope_scaling=dict(LLAMA3, factor=16.0, high_freq_factor=1.0,
         original_max_position_embeddings=8192)), variant="with a step in its rope"),
    Case("mistral3", "Mistral3ForConditionalGeneration", dict(text_config=dict(SMALL, model_type="mistral", head_dim=32, sliding_window=None),
         vision_config=dict(VISION, model_type="pixtral", head_dim=16), image_token_index=1, tie_word_embeddings=False)),
    Case("modern-bert", "ModernBertModel", dict(BASE, intermediate_size=INNER, local_attention=8, cls_token_id=BOS, sep_token_id=EOS), as_saved=dict(layer_norm_eps=1e-5)),
    Case("modern-bert", "ModernBertForSequenceClassification", dict(BASE, intermediate_size=INNER, local_attention=8, cls_token_id=BOS, sep_token_id=EOS,
         num_labels=3), as_saved=dict(layer_norm_eps=1e-5)),
    Case("mpt", "MPTForCausalLM", dict(IDS, d_model=HIDDEN, n_heads=HEADS, n_layers=LAYERS, max_seq_len=POSITIONS, expansion_ratio=2), kind="MptForCausalLM"),
    Case("nemotron", "NemotronForCausalLM", dict(SMALL, head_dim=16, partial_rotary_factor=0.5, norm_eps=1e-5), "spm"),
    Case("olmo", "OlmoForCausalLM", dict(SMALL, clip_qkv=0.5)),
    Case("olmo2", "Olmo2ForCausalLM", SMALL),
    Case("olmo2", "Olmo3ForCausalLM", dict(SMALL, sliding_window=8)),
    Case("olmoe", "OlmoeForCausalLM", dict(SMALL, num_experts=4, num_experts_per_tok=2, norm_topk_prob=False)),
    Case("phi2", "PhiForCausalLM", dict(BASE, intermediate_size=INNER, partial_rotary_factor=0.5, tie_word_embeddings=False)),
    Case("phi3", "Phi3ForCausalLM", dict(SMALL, sliding_window=None, original_max_position_embeddings=POSITIONS)),
    Case("phi3", "Phi3ForCausalLM", dict(SMALL, sliding_window=None, original_max_position_embeddings=16, rope_scaling=dict(type="longrope",
         short_factor=[1.0 + i / 8 for i in range(8)], long_factor=[2.0 + i / 4 for i in range(8)])), variant="long"),
    Case("phimoe", "PhiMoEForCausalLM", dict(SMALL, num_local_experts=4, num_experts_per_tok=2, sliding_window=None, attention_bias=True, lm_head_bias=True,
         original_max_position_embeddings=16, rope_scaling=dict(type="longrope", short_mscale=1.243163121016122, long_mscale=1.243163121016122, original_max_position_embeddings=16,
         short_factor=[1.0 + i / 8 for i in range(8)], long_factor=[2.0 + i / 4 for i in range(8)])), kind="PhimoeForCausalLM"),
    Case("qwen2", "Qwen2ForCausalLM", SMALL),
    Case("qwen2moe", "Qwen2MoeForCausalLM", moe(shared_expert_intermediate_size=48)),
    Case("qwen2vl", "Qwen2VLForConditionalGeneration", dict(QWEN_VL, text_config=dict(SMALL, rope_scaling=MROPE))),
    Case("qwen2vl", "Qwen2_5_VLForConditionalGeneration", dict(QWEN_VL, text_config=dict(SMALL, rope_scaling=MROPE))),
    Case("qwen3", "Qwen3ForCausalLM", dict(SMALL, head_dim=32)),
    Case("qwen3moe", "Qwen3MoeForCausalLM", moe(head_dim=16, norm_topk_prob=True)),
    Case("qwen3next", "Qwen3NextForCausalLM", moe(head_dim=16, shared_expert_intermediate_size=48, linear_num_key_heads=2, linear_num_value_heads=4,
         linear_key_head_dim=16, linear_value_head_dim=16, norm_topk_prob=True)),
    Case("qwen3vl", "Qwen3VLForConditionalGeneration", dict(QWEN_VL, text_config=dict(SMALL, head_dim=16, rope_scaling=MROPE))),
    Case("qwen3vlmoe", "Qwen3VLMoeForConditionalGeneration", dict(QWEN_VL, text_config=moe(head_dim=16, rope_scaling=MROPE))),
    Case("seed_oss", "SeedOssForCausalLM", dict(SMALL, head_dim=32, attention_bias=True, attention_out_bias=False)),
    Case("smollm3", "SmolLM3ForCausalLM", SMALL),
    Case("stablelm", "StableLmForCausalLM", dict(SMALL, layer_norm_eps=1e-5, partial_rotary_factor=0.5, use_qkv_bias=True)),
    Case("starcoder", "GPTBigCodeForCausalLM", dict(IDS, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_positions=POSITIONS)),
    Case("starcoder2", "Starcoder2ForCausalLM", dict(SMALL, norm_epsilon=1e-5)),
    Case("t5", "T5ForConditionalGeneration", T5, "t5"),
    Case("t5", "T5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False), "t5", variant="gated"),
    Case("t5", "UMT5ForConditionalGeneration", dict(T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False), "t5"),
    Case("t5encoder", "T5EncoderModel", T5, "t5"),
]  # fmt: skip

GLM_TOKENS = ["<|endoftext|>", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"]


def text():
    return "".join((ROOT / name).read_text() for name in ("CONTRIBUTING.md", "docs/sources.md", "docs/tree.md", "docs/semantics.md"))


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sentencepieces(**options):
    out = io.BytesIO()
    options = dict(dict(vocab_size=VOCABULARY, hard_vocab_limit=True, minloglevel=2, character_coverage=0.98), **options)
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(text().splitlines()), model_writer=out, **options)
    return out.getvalue()


def wordpieces():
    tokenizer = tokenizers.BertWordPieceTokenizer()
    tokenizer.train_from_iterator(text().splitlines(), vocab_size=VOCABULARY, show_progress=False)
    return tokenizer.to_str(pretty=True)


def tokenizer_files():
    """The files of each kind of tokenizer, of VOCABULARY tokens."""
    special = dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    make = module_of(ROOT / "tests/data/make.py")
    bpe = json.dumps(make.sample_tokenizer(VOCABULARY), ensure_ascii=False)
    glm = make.sample_tokenizer(VOCABULARY - len(GLM_TOKENS))
    glm["added_tokens"] += [dict(glm["added_tokens"][0], id=VOCABULARY - len(GLM_TOKENS) + i, content=text) for i, text in enumerate(GLM_TOKENS)]
    bpe_config = dict(bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>", tokenizer_class="PreTrainedTokenizerFast")
    return {
        "bpe": {"tokenizer.json": bpe, "tokenizer_config.json": bpe_config},
        "glm": {"tokenizer.json": json.dumps(glm, ensure_ascii=False), "tokenizer_config.json": bpe_config},
        "spm": {"tokenizer.model": sentencepieces(model_type="bpe", vocab_size=VOCABULARY + 200, byte_fallback=True),
                "tokenizer_config.json": dict(special, tokenizer_class="LlamaTokenizer")},
        "t5": {"spiece.model": sentencepieces(pad_id=0, eos_id=1, unk_id=2, bos_id=-1),
               "tokenizer_config.json": dict(eos_token="</s>", unk_token="<unk>", pad_token="<pad>", tokenizer_class="T5Tokenizer")},
        "xlmr": {"sentencepiece.bpe.model": sentencepieces(vocab_size=VOCABULARY - 2, unk_id=0, bos_id=1, eos_id=2),
                 "tokenizer_config.json": dict(special, pad_token="<pad>", tokenizer_class="XLMRobertaTokenizer")},
        "wordpiece": {"tokenizer.json": wordpieces(), "tokenizer_config.json": dict(tokenizer_class="BertTokenizer")},
    }  # fmt: skip


def randomize(model, ternary):
    """Numbers that tell one weight from another: norms near 1, matrices that keep the size of what goes through."""
    torch.manual_seed(5)
    tied = set()
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point() or tensor.data_ptr() in tied:
            continue
        tied.add(tensor.data_ptr())
        noise = torch.randn_like(tensor)
        if name.endswith(("act_fn.beta", "act_fn.eps")):
            continue  # constants
        if ternary and "_proj" in name:
            tensor.copy_(noise.sign() * 0.15)
        elif tensor.ndim < 2 or "A_log" in name:
            tensor.copy_(tensor + 0.2 * noise)
        else:
            tensor.copy_(noise * 1.2 / tensor.shape[-1] ** 0.5)
    return model


def save(model, folder):
    """As save_pretrained() does, but for the names: it misspells some of those that it maps to older ones."""
    own = model.state_dict()
    mapped = any("per_layer" in name for name in own)
    model.save_pretrained(folder)
    if mapped:
        safetensors.torch.save_file({name: own[name].clone() for name in own if name != "lm_head.weight"}, folder / "model.safetensors")


def make(case, folder, files):
    """Saves the checkpoint of a case; returns what it computes once it is opened again."""
    kind = getattr(transformers, case.kind or case.name)
    model = kind(kind.config_class(**case.settings)).float().eval()
    with torch.no_grad():
        randomize(model, case.ternary)
    save(model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(dict(config, architectures=[case.name], **case.as_saved), indent=2))
    for name, content in files[case.tokenizer].items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return compute(kind.from_pretrained(folder, dtype=torch.float32).eval())


def compute(model):
    """The logits, or the hidden states, of a text."""
    ids = torch.arange(48).reshape(2, 24) * 13 % (VOCABULARY - 30) + 7
    more = dict(decoder_input_ids=ids[:, :9]) if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        return model(input_ids=ids, **more)[0].clone()
