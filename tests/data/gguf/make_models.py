#!/usr/bin/env python3
"""Makes tests/data/gguf/models: tiny checkpoints, and prints what the reference converter makes of them.

    make_models.py CONVERTER    path of convert_hf_to_gguf.py (llama.cpp)

The rows printed belong into tests/unit/models/convert/model.c. Needs torch, transformers 4.57, sentencepiece, safetensors.
"""
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import sentencepiece
from safetensors.numpy import save_file

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "models")
E, F, V, HEADS, KV_HEADS, LAYERS, EXPERTS = 32, 48, 60, 4, 2, 2, 3
random = np.random.default_rng(1)


def matrix(*shape):
    return (random.standard_normal(shape) * 0.1).astype(np.float16)


def decoder(mlp, head=E // HEADS):
    """The tensors of a Llama-like model."""
    tensors = {"model.embed_tokens.weight": matrix(V, E), "model.norm.weight": matrix(E)}
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        tensors[layer + "input_layernorm.weight"] = matrix(E)
        tensors[layer + "post_attention_layernorm.weight"] = matrix(E)
        tensors[layer + "self_attn.q_proj.weight"] = matrix(HEADS * head, E)
        tensors[layer + "self_attn.k_proj.weight"] = matrix(KV_HEADS * head, E)
        tensors[layer + "self_attn.v_proj.weight"] = matrix(KV_HEADS * head, E)
        tensors[layer + "self_attn.o_proj.weight"] = matrix(E, HEADS * head)
        for name, shape in mlp.items():
            tensors[layer + name + ".weight"] = matrix(*shape)
    return tensors


def dense(prefix="mlp."):
    return {prefix + "gate_proj": (F, E), prefix + "up_proj": (F, E), prefix + "down_proj": (E, F)}


def experts():
    rows = {"block_sparse_moe.gate": (EXPERTS, E)}
    for x in range(EXPERTS):
        expert = f"block_sparse_moe.experts.{x}."
        rows.update({expert + "w1": (F, E), expert + "w2": (E, F), expert + "w3": (F, E)})
    return rows


COMMON = dict(hidden_size=E, intermediate_size=F, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
              num_key_value_heads=KV_HEADS, vocab_size=V, max_position_embeddings=64, rms_norm_eps=1e-5)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
MODELS = {
    "llama-tiny": (dict(COMMON, model_type="llama", architectures=["LlamaForCausalLM"], rope_scaling=LLAMA3), decoder(dense())),
    "mixtral-tiny": (dict(COMMON, model_type="mixtral", architectures=["MixtralForCausalLM"], num_local_experts=EXPERTS),
                     decoder(experts())),
    "gemma-tiny": (dict(COMMON, model_type="gemma", architectures=["GemmaForCausalLM"], head_dim=12), decoder(dense(), 12)),
}


def tokenizer():
    text = "the quick brown fox jumps over the lazy dog and packs my box with five dozen liquor jugs".split()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(" ".join(text[i:] + text[:i]) for i in range(len(text))),
                                             model_writer=model, vocab_size=V, hard_vocab_limit=False,
                                             normalization_rule_name="identity", minloglevel=2)
    return model.getvalue()


def main():
    bytes_of_tokenizer = tokenizer()
    for name, (config, tensors) in MODELS.items():
        folder = os.path.join(HERE, name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f, indent=1)
        with open(os.path.join(folder, "tokenizer.model"), "wb") as f:
            f.write(bytes_of_tokenizer)
        save_file(tensors, os.path.join(folder, "model.safetensors"))
        for outtype in "auto", "f32", "q8_0":
            with tempfile.NamedTemporaryFile(suffix=".gguf") as out:
                subprocess.run([sys.executable, sys.argv[1], folder, "--outtype", outtype, "--outfile", out.name],
                               check=True, capture_output=True)
                data = open(out.name, "rb").read()
            print(f'    {{"{name}", "{outtype}", {len(data)}, "{hashlib.sha256(data).hexdigest()}"}},')


main()
