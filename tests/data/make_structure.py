#!/usr/bin/env python3
"""Makes tests/data/structure/NAME/: checkpoints with every kind of JSON that models have, for tests/fuzz/fuzz_structure.c to change.

    python3 tests/data/make_structure.py

All weights are zero. Needs nothing but Python.
"""
import json
import math
import pathlib
import shutil
import struct

DATA = pathlib.Path(__file__).parent
E = 32
ROPE = {"full_attention": {"rope_theta": 1000000.0, "partial_rotary_factor": 0.25, "rope_type": "proportional"},
        "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}}


def write_weights(path, tensors):
    header, end = {}, 0
    for name, shape in tensors.items():
        begin, end = end, end + 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))


def body(prefix, more=()):
    tensors = {prefix + "embed_tokens.weight": [8, E], prefix + "norm.weight": [E]}
    for i in range(2):
        layer = f"{prefix}layers.{i}."
        tensors |= {layer + n + "_layernorm.weight": [E] for n in ("input", "post_attention")}
        tensors |= {f"{layer}self_attn.{n}_proj.weight": s for n, s in (("q", [32, E]), ("k", [16, E]), ("v", [16, E]), ("o", [E, 32]))}
        tensors |= {f"{layer}mlp.{n}_proj.weight": s for n, s in (("gate", [32, E]), ("up", [32, E]), ("down", [E, 32]))}
        tensors |= {layer + name: shape for name, shape in more}
    return tensors


def tokenizer(specials, space):
    vocab = {text: i for i, text in enumerate(["a", "b", "ab", space, space + "a", "<0x0A>"])}
    added = [{"id": len(vocab) + i, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
             for i, text in enumerate(specials)]
    first = {"SpecialToken": {"id": specials[0], "type_id": 0}}
    sequences = [{"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB")]
    split = {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Isolated", "invert": False}
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    return {
        "tokenizer.json": {
            "version": "1.0", "added_tokens": added,
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, bytes_]},
            "post_processor": {"type": "TemplateProcessing", "single": [first, sequences[0]], "pair": [first, *sequences],
                               "special_tokens": {specials[0]: {"id": specials[0], "ids": [len(vocab)], "tokens": [specials[0]]}}},
            "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}]},
            "model": {"type": "BPE", "byte_fallback": True, "vocab": vocab, "merges": ["a b", [space, "a"]]}},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": specials[0], "eos_token": {"content": specials[1], "special": True},
            "added_tokens_decoder": {str(a["id"]): {k: v for k, v in a.items() if k != "id"} for a in added},
            "extra_special_tokens": {"image_token": specials[0]}, "additional_special_tokens": [specials[0]],
            "chat_template": [{"name": "default", "template": "{{ a }}"}, {"name": "tool_use", "template": "{{ b }}"}]},
        "special_tokens_map.json": {"bos_token": specials[0], "eos_token": {"content": specials[1]}},
        "added_tokens.json": {text: len(vocab) + i for i, text in enumerate(specials)},
        "generation_config.json": {"bos_token_id": 6, "eos_token_id": [6, 7], "temperature": 0.5, "top_k": 20, "suppress_tokens": [1, 2]},
    }


def text_config(name, **more):
    return {"model_type": name, "hidden_size": E, "num_hidden_layers": 2, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1,
            "head_dim": 16, "vocab_size": 8, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, **more}


def write(name, config, tensors, files):
    directory = DATA / "structure" / name
    directory.mkdir(parents=True, exist_ok=True)
    for file, value in {"config.json": config, **files}.items():
        (directory / file).write_text(json.dumps(value, indent=1) + "\n")
    write_weights(directory / "model.safetensors", tensors)
    return directory


NORMS = [("self_attn.q_norm.weight", [16]), ("self_attn.k_norm.weight", [16])]

write("gemma4", {
    "architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4", "dtype": "bfloat16",
    "text_config": text_config(
        "gemma4_text", vocab_size_per_layer_input=8, hidden_size_per_layer_input=0, num_kv_shared_layers=0, sliding_window=32,
        final_logit_softcapping=30.0, layer_types=["sliding_attention", "full_attention"], rope_parameters=ROPE,
        per_layer_config={"1": {"head_dim": 16, "num_key_value_heads": 1}})},
    body("model.language_model.", [*NORMS, ("pre_feedforward_layernorm.weight", [E]), ("post_feedforward_layernorm.weight", [E]), ("layer_scalar", [1])]),
    tokenizer(["<bos>", "<eos>"], "\u2581"))

write("qwen3-omni", {
    "architectures": ["Qwen3OmniMoeForConditionalGeneration"], "model_type": "qwen3_omni_moe", "tie_word_embeddings": True,
    "thinker_config": {
        "text_config": text_config("qwen3_omni_moe_text", rope_theta=5000000, num_experts=2, num_experts_per_tok=1, moe_intermediate_size=32,
                                   rope_scaling={"mrope_interleaved": True, "mrope_section": [4, 2, 2], "rope_type": "default"}),
        "audio_config": {"d_model": 32, "encoder_layers": 1, "num_mel_bins": 128},
        "vision_config": {"depth": 1, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "patch_size": 16, "spatial_merge_size": 2,
                          "out_hidden_size": 32, "deepstack_visual_indexes": [0]}}},
    body("thinker.model.", NORMS), tokenizer(["<|im_start|>", "<|im_end|>"], "\u0120"))

directory = write("internlm2", {"architectures": ["InternLM2ForCausalLM"], **text_config("internlm2", rope_scaling={"type": "linear", "factor": 2.0})},
                  body("model."), tokenizer(["<s>", "<|im_end|>"], "\u2581"))
shutil.copy(DATA / "gguf" / "models" / "llama-tiny" / "tokenizer.model", directory)
