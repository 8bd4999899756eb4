"""model.safetensors and hf/ against the libraries: the bytes of safetensors.torch.save_file() and of save_pretrained(), shards and index
included, from checkpoints of safetensors and of torch; and transformers opens hf/ of a torch checkpoint without torch.load."""
import pathlib
import tempfile

import interop

try:
    import torch
    import transformers
    from safetensors.torch import save_file
except ImportError as error:
    interop.skip(str(error))

SMALL = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, vocab_size=96,
             max_position_embeddings=64)  # fmt: skip
EXPERTS = dict(SMALL, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, num_local_experts=4)
MODELS = {
    "llama": ("LlamaForCausalLM", dict(SMALL, attention_bias=True)),
    "llama, tied": ("LlamaForCausalLM", dict(SMALL, tie_word_embeddings=True)),
    "mixtral": ("MixtralForCausalLM", EXPERTS),
    "qwen2": ("Qwen2ForCausalLM", dict(SMALL, tie_word_embeddings=True)),
    "qwen2_moe": ("Qwen2MoeForCausalLM", dict(EXPERTS, shared_expert_intermediate_size=24)),
    "qwen3": ("Qwen3ForCausalLM", dict(SMALL, head_dim=8)),
    "qwen3_moe": ("Qwen3MoeForCausalLM", dict(EXPERTS, head_dim=8)),
    "gemma2": ("Gemma2ForCausalLM", dict(SMALL, head_dim=8)),
    "gemma3": ("Gemma3ForCausalLM", dict(SMALL, head_dim=8)),
    "phi3": ("Phi3ForCausalLM", dict(SMALL, pad_token_id=0)),
    "phi": ("PhiForCausalLM", SMALL),
    "gpt2": ("GPT2LMHeadModel", dict(n_embd=32, n_layer=3, n_head=4, vocab_size=96, n_positions=64)),
    "gpt_neox": ("GPTNeoXForCausalLM", SMALL),
    "falcon": ("FalconForCausalLM", dict(SMALL, new_decoder_architecture=True, num_kv_heads=2)),
    "bloom": ("BloomForCausalLM", dict(hidden_size=32, n_layer=3, n_head=4, vocab_size=96)),
    "mpt": ("MptForCausalLM", dict(d_model=32, n_layers=3, n_heads=4, vocab_size=96, max_seq_len=64)),
    "stablelm": ("StableLmForCausalLM", SMALL),
    "starcoder2": ("Starcoder2ForCausalLM", SMALL),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", dict(n_embd=32, n_layer=3, n_head=4, vocab_size=96, n_positions=64)),
    "olmo": ("OlmoForCausalLM", SMALL),
    "olmo2": ("Olmo2ForCausalLM", SMALL),
    "olmoe": ("OlmoeForCausalLM", EXPERTS),
    "granite": ("GraniteForCausalLM", SMALL),
    "granitemoe": ("GraniteMoeForCausalLM", EXPERTS),
    "deepseek_v3": ("DeepseekV3ForCausalLM", dict(SMALL, num_key_value_heads=4, n_routed_experts=4, num_experts_per_tok=2, n_group=1,
                    topk_group=1, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
                    moe_intermediate_size=16, first_k_dense_replace=1)),
    "cohere": ("CohereForCausalLM", SMALL),
    "mamba": ("MambaForCausalLM", dict(hidden_size=32, num_hidden_layers=3, vocab_size=96, state_size=4)),
    "bert": ("BertModel", dict(SMALL)),
    "roberta": ("RobertaForMaskedLM", dict(SMALL)),
    "t5": ("T5ForConditionalGeneration", dict(d_model=32, d_ff=48, d_kv=8, num_layers=2, num_heads=4, vocab_size=96)),
    "gpt_oss": ("GptOssForCausalLM", dict(EXPERTS, head_dim=8)),
}  # fmt: skip


TOKENS = torch.arange(20).reshape(1, -1)


def make(row, dtype=torch.float32):
    name, values = row
    model_class = getattr(transformers, name)
    torch.manual_seed(0)
    return model_class(model_class.config_class(**values)).to(dtype)


def same_files(wanted, source, what, *options):
    """Whether hf/ of the source has the weights of the folder `wanted`, to the byte."""
    listed = interop.wfs("ls", *options, source, "hf").stdout.decode().split()
    weights = sorted(path.name for path in wanted.iterdir() if path.name.startswith("model"))
    if not interop.check(sorted(name for name in listed if name.startswith("model")) == weights, f"{what}: {listed} {weights}"):
        return
    for name in weights:
        shown = interop.wfs("cat", *options, source, f"hf/{name}").stdout
        interop.check(shown == (wanted / name).read_bytes(), f"{what}: {name}")


def from_safetensors(name, row, directory):
    model = make(row, torch.bfloat16 if "a" in name else torch.float32)
    whole, shards = directory / "whole", directory / "shards"
    model.save_pretrained(whole)
    total = (whole / "model.safetensors").stat().st_size
    for size in (total // 4, total // 40):
        model.save_pretrained(shards, max_shard_size=size)
        same_files(shards, whole, f"{name} in shards of {size}", "-o", f"shard-size={size}")
        same_files(whole, shards, f"{name} from shards of {size}")
        shown = interop.cat(shards, "model.safetensors")
        interop.check(shown == (whole / "model.safetensors").read_bytes(), f"{name}: one file from shards of {size}")
        for path in shards.iterdir():
            path.unlink()


def from_torch(name, row, directory):
    model = make(row)
    wanted, source = directory / "wanted", directory / "torch"
    model.save_pretrained(wanted)
    source.mkdir()
    (source / "config.json").write_bytes((wanted / "config.json").read_bytes())
    torch.save(model.state_dict(), source / "pytorch_model.bin")
    same_files(wanted, source, f"{name} from torch")


def opens(directory):
    """transformers opens hf/ of a torch checkpoint; torch.load would fail."""
    model = make(MODELS["llama, tied"])
    source = directory / "opened"
    model.save_pretrained(source, safe_serialization=False)
    load = torch.load
    torch.load = None
    try:
        with interop.mounted(source) as mountpoint:
            again = transformers.AutoModelForCausalLM.from_pretrained(mountpoint / "hf")
            interop.check(torch.equal(model(TOKENS).logits, again(TOKENS).logits), "the logits of hf/ of a torch checkpoint")
            del again  # its weights are mapped
    finally:
        torch.load = load


def other_dtypes(directory):
    """-o dtype=, and dtypes that a checkpoint has besides."""
    tensors = {"z": torch.randn(4, 6), "a": torch.randn(3).bfloat16(), "é": torch.arange(5), "b": torch.randn(2, 2).half()}
    source = directory / "source.pth"
    torch.save(tensors, source)
    for option, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16), ("f16", torch.float16), (None, None)):
        wanted = {name: t.to(dtype) if dtype is not None and t.is_floating_point() else t for name, t in tensors.items()}
        save_file(wanted, directory / "wanted.safetensors", metadata={"format": "pt"})
        options = ["-o", f"dtype={option}"] if option else []
        shown = interop.wfs("cat", *options, source, "model.safetensors").stdout
        interop.check(shown == (directory / "wanted.safetensors").read_bytes(), f"dtype={option}")


def main():
    transformers.logging.set_verbosity_error()
    for name, row in MODELS.items():
        with tempfile.TemporaryDirectory() as directory:
            from_safetensors(name, row, pathlib.Path(directory))
            from_torch(name, row, pathlib.Path(directory))
    with tempfile.TemporaryDirectory() as directory:
        opens(pathlib.Path(directory))
        other_dtypes(pathlib.Path(directory))
    interop.done()


if __name__ == "__main__":
    main()
