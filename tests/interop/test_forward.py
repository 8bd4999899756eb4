"""A forward pass of the ranks that TensorRT-LLM and vLLM would have is the model's: attention and feed-forward of each rank by torch, added
up as all-reduce does. The model is transformers' own Llama, of random numbers in F32."""
import pathlib
import subprocess
import tempfile

from interop import WFS, check, done, skip

try:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
except ImportError as error:
    skip(str(error))

TP, HEADS, KEYS, WIDTH, HIDDEN, INNER, LAYERS, VOCABULARY = 2, 8, 4, 16, 64, 96, 2, 130


def model():
    torch.manual_seed(3)
    config = LlamaConfig(hidden_size=HIDDEN, intermediate_size=INNER, num_attention_heads=HEADS, num_key_value_heads=KEYS, head_dim=WIDTH,
                         num_hidden_layers=LAYERS, vocab_size=VOCABULARY, max_position_embeddings=64, tie_word_embeddings=False,
                         architectures=["LlamaForCausalLM"], torch_dtype="float32")  # fmt: skip
    made = LlamaForCausalLM(config).float().eval()
    for parameter in made.parameters():  # norms are not all ones, and logits not all alike
        parameter.data = torch.randn_like(parameter) * 0.3
    return made


def norm(values, weight, epsilon):
    return values * torch.rsqrt(values.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def attend(values, qkv, dense, cosines, sines):
    heads, keys = HEADS // TP, KEYS // TP
    batch, length, _ = values.shape
    q, k, v = (values @ qkv.T).split([heads * WIDTH, keys * WIDTH, keys * WIDTH], -1)
    q, k, v = (part.view(batch, length, -1, WIDTH).transpose(1, 2) for part in (q, k, v))
    q, k = apply_rotary_pos_emb(q, k, cosines, sines)
    k, v = (part.repeat_interleave(heads // keys, 1) for part in (k, v))
    found = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return found.transpose(1, 2).reshape(batch, length, -1) @ dense.T


def feed(values, gate, up, down):
    return (torch.nn.functional.silu(values @ gate.T) * (values @ up.T)) @ down.T


def trtllm(rank, i):
    own = f"transformer.layers.{i}."
    return {"norms": [rank[own + "input_layernorm.weight"], rank[own + "post_layernorm.weight"]],
            "attention": [rank[own + "attention.qkv.weight"], rank[own + "attention.dense.weight"]],
            "mlp": [rank[own + f"mlp.{name}.weight"] for name in ("fc", "gate", "proj")]}  # fmt: skip


def vllm(rank, i):
    own = f"model.layers.{i}."
    gate, up = rank[own + "mlp.gate_up_proj.weight"].chunk(2)
    return {"norms": [rank[own + "input_layernorm.weight"], rank[own + "post_attention_layernorm.weight"]],
            "attention": [rank[own + "self_attn.qkv_proj.weight"], rank[own + "self_attn.o_proj.weight"]],
            "mlp": [gate, up, rank[own + "mlp.down_proj.weight"]]}  # fmt: skip


def embed(ranks, engine, tokens):
    if engine == "trtllm":  # each rank has it whole
        return ranks[0]["transformer.vocab_embedding.weight"][tokens]
    return torch.cat([rank["model.embed_tokens.weight"] for rank in ranks])[tokens]


def forward(made, ranks, engine, tokens):
    layer_of, last = {"trtllm": (trtllm, "transformer.ln_f.weight"), "vllm": (vllm, "model.norm.weight")}[engine]
    values, epsilon = embed(ranks, engine, tokens), made.config.rms_norm_eps
    cosines, sines = made.model.rotary_emb(values, torch.arange(tokens.shape[1])[None])
    for i in range(LAYERS):
        parts = [layer_of(rank, i) for rank in ranks]
        inner = norm(values, parts[0]["norms"][0], epsilon)
        values = values + sum(attend(inner, *part["attention"], cosines, sines) for part in parts)
        inner = norm(values, parts[0]["norms"][1], epsilon)
        values = values + sum(feed(inner, *part["mlp"]) for part in parts)
    values = norm(values, ranks[0][last], epsilon)
    return torch.cat([values @ rank["lm_head.weight"].T for rank in ranks], -1)[..., :VOCABULARY]


def main():
    made, tokens = model(), torch.arange(24).reshape(2, 12) * 5 % VOCABULARY
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        source, wanted = pathlib.Path(scratch) / "model", made(tokens).logits
        made.config.save_pretrained(source)
        save_file({name: tensor.clone() for name, tensor in made.state_dict().items()}, source / "model.safetensors")
        for engine in ("trtllm", "vllm"):
            out = pathlib.Path(scratch) / engine
            subprocess.run([WFS, "cp", "-r", "-o", f"shards={engine}:tp={TP},dtype=float32", source, f"layouts/{engine}", out], check=True)
            ranks = [load_file(next(out.glob(f"rank{i}.safetensors" if engine == "trtllm" else f"model-rank-{i}-part-0.safetensors")))
                     for i in range(TP)]
            found = forward(made, ranks, engine, tokens)
            off = (found - wanted).abs().max().item()
            check(off < 1e-4 * wanted.abs().max().item(), f"{engine}: the logits of {TP} ranks are off by {off}")
    done()


if __name__ == "__main__":
    main()
