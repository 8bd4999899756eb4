"""Adapters that mlx-lm trained (adapters.safetensors), LoRA and DoRA: weights merged with -o lora= are those of fuse().

Of whole models, in each way that a class keeps its experts: merged into the checkpoint that mlx-lm wrote, wfs shows what it shows of the fused checkpoint."""
import importlib
import json
import pathlib
import tempfile

from interop import check, done, skip, wfs

try:
    import mlx.core
    import numpy
    from mlx import nn
    from mlx_lm.tuner.dora import DoRAEmbedding, DoRALinear
    from mlx.utils import tree_flatten, tree_unflatten
    from mlx_lm.tuner.lora import LoRAEmbedding, LoRALinear
    from mlx_lm.tuner.utils import linear_to_lora_layers
    from safetensors.numpy import load, save_file
except ImportError as error:
    skip(str(error))

SHAPES = {"model.embed_tokens": (96, 64), "model.layers.0.self_attn.q_proj": (64, 64), "model.layers.0.mlp.up_proj": (160, 64), "lm_head": (96, 64)}
ADAPTED = ("model.embed_tokens", "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.up_proj")
SCALE = 2.5


EXPERTS = 3
SMALL = dict(hidden_size=64, num_hidden_layers=2, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5, vocab_size=48, head_dim=16,
             max_position_embeddings=64, rope_theta=10000.0, attention_bias=False, mlp_bias=False, tie_word_embeddings=False)  # fmt: skip
MOE = dict(SMALL, num_experts=EXPERTS, num_local_experts=EXPERTS, num_experts_per_tok=2, moe_intermediate_size=32)
GRANITE = dict(MOE, logits_scaling=1.0, attention_multiplier=1.0, embedding_multiplier=1.0, residual_multiplier=1.0)
MODELS = [
    ("qwen3_moe", dict(MOE, decoder_sparse_step=1, mlp_only_layers=[0], norm_topk_prob=True)),
    ("mixtral", MOE),
    ("olmoe", MOE),
    ("granitemoe", GRANITE),
    ("granitemoehybrid", dict(GRANITE, layer_types=["attention", "attention"], num_local_experts=0, shared_intermediate_size=96, position_embedding_type="rope")),
    ("llama4", dict(text_config=dict(SMALL, model_type="llama4_text", attention_chunk_size=64, interleave_moe_layer_step=1, intermediate_size_mlp=96,
                                     num_experts_per_tok=1, num_local_experts=EXPERTS, rope_scaling=None, use_qk_norm=True))),
    ("lfm2_moe", dict(MOE, use_expert_bias=True, num_dense_layers=1, norm_eps=1e-5, conv_bias=True, conv_L_cache=3, norm_topk_prob=True,
                      layer_types=["full_attention", "full_attention"])),
    ("gpt2", dict(n_ctx=64, n_embd=64, n_head=4, n_layer=2, n_positions=64, layer_norm_epsilon=1e-5, vocab_size=48)),
    ("gpt_neox", dict(max_position_embeddings=64, hidden_size=64, num_attention_heads=4, num_hidden_layers=2, layer_norm_eps=1e-5, vocab_size=48, rotary_emb_base=10000,
                      rotary_pct=0.5, intermediate_size=256)),
]
EMBEDDINGS = {"gpt2": "transformer.wte.weight", "gpt_neox": "gpt_neox.embed_in.weight"}  # as transformers names them
# of which adapter.gguf is written, and their classes
CLASSES = {"qwen3_moe": "Qwen3MoeForCausalLM", "mixtral": "MixtralForCausalLM", "olmoe": "OlmoeForCausalLM", "lfm2_moe": "Lfm2MoeForCausalLM",
           "gpt2": "GPT2LMHeadModel", "gpt_neox": "GPTNeoXForCausalLM"}  # fmt: skip
KINDS = {"lora": (LoRAEmbedding, LoRALinear), "dora": (DoRAEmbedding, DoRALinear)}


def adapted(kind, name, weight, random):
    """The layer with an adapter of random numbers."""
    of_embedding, of_linear = KINDS[kind]
    if "embed" in name:
        layer = nn.Embedding(*weight.shape)
    else:
        layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    layer.weight = mlx.core.array(weight)
    adapter = (of_embedding if "embed" in name else of_linear).from_base(layer, r=4, scale=SCALE)
    for part in parts(kind):
        setattr(adapter, part, mlx.core.array(random.standard_normal(getattr(adapter, part).shape, dtype="f4")))
    return adapter


def parts(kind):
    return ("lora_a", "lora_b", "m") if kind == "dora" else ("lora_a", "lora_b")


def compare(folder, kind):
    random = numpy.random.default_rng(5)
    (folder / "base").mkdir()
    (folder / "adapter").mkdir()
    base = {f"{name}.weight": random.standard_normal(shape, dtype="f4") for name, shape in SHAPES.items()}
    save_file(base, folder / "base" / "model.safetensors")
    (folder / "base" / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))
    layers = {name: adapted(kind, name, base[f"{name}.weight"], random) for name in ADAPTED}
    tensors = {f"{name}.{part}": numpy.array(getattr(layer, part)) for name, layer in layers.items() for part in parts(kind)}
    save_file(tensors, folder / "adapter" / "adapters.safetensors")
    settings = {"fine_tune_type": kind, "num_layers": 1, "lora_parameters": {"rank": 4, "dropout": 0.0, "scale": SCALE}}
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(settings))
    made = wfs("cat", "-o", f"lora={folder / 'adapter'}", folder / "base", "model.safetensors")
    if not check(made.returncode == 0, f"{kind}: {made.stderr.decode().strip()}"):
        return
    ours = load(made.stdout)
    for name, weight in base.items():
        layer = layers.get(name.removesuffix(".weight"))
        expected = numpy.array(layer.fuse().weight) if layer else weight
        check(numpy.allclose(ours[name], expected, rtol=1e-5, atol=1e-5), f"{kind}: {name} is not mlx-lm's")
        check(layer is None or not numpy.allclose(weight, expected), f"{kind}: {name} is not changed")


def save(folder, kind, config, model):
    """A checkpoint as mlx-lm saves it."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(dict(config, model_type=kind, architectures=[CLASSES.get(kind, "Nobody")])))
    mlx.core.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(model.parameters())), metadata={"format": "mlx"})


def compare_model(folder, kind, config):
    module = importlib.import_module(f"mlx_lm.models.{kind}")
    model = module.Model(module.ModelArgs.from_dict(json.loads(json.dumps(dict(config, model_type=kind)))))
    random = numpy.random.default_rng(6)
    randomly = {name: mlx.core.array(random.standard_normal(value.shape, dtype="f4")) for name, value in tree_flatten(model.parameters()) if value.ndim}
    model.update(tree_unflatten(list(randomly.items())))
    save(folder / "base", kind, config, model)
    model.freeze()
    linear_to_lora_layers(model, 2, {"rank": 4, "scale": SCALE, "dropout": 0.0})
    halves = {name: mlx.core.array(random.standard_normal(value.shape, dtype="f4")) for name, value in tree_flatten(model.trainable_parameters())}
    model.update(tree_unflatten(list(halves.items())))
    (folder / "adapter").mkdir()
    mlx.core.save_safetensors(str(folder / "adapter" / "adapters.safetensors"), halves)
    settings = {"fine_tune_type": "lora", "num_layers": 2, "lora_parameters": {"rank": 4, "dropout": 0.0, "scale": SCALE}}
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(settings))
    model.update_modules(tree_unflatten([(name, layer.fuse()) for name, layer in model.named_modules() if hasattr(layer, "fuse")]))
    save(folder / "fused", kind, config, model)
    made, fused = wfs("cat", "-o", f"lora={folder / 'adapter'}", folder / "base", "model.safetensors"), wfs("cat", folder / "fused", "model.safetensors")
    if check(made.returncode == 0, f"{kind}: {made.stderr.decode().strip()}"):
        ours, theirs = load(made.stdout), load(fused.stdout)
        check(ours.keys() == theirs.keys() and EMBEDDINGS.get(kind, next(iter(ours))) in ours, f"{kind}: {[*ours]}")
        wrong = [name for name in ours if not numpy.allclose(ours[name], theirs[name], rtol=1e-4, atol=1e-4)]
        check(not wrong, f"{kind}: not mlx-lm's: {wrong[:4]}")
    compare_gguf(folder, kind, halves)


def as_peft(kind, halves):
    """The same adapter as peft saves it: a pair for each expert, and the matrices transposed."""
    numbered, made = kind in ("mixtral", "lfm2_moe"), {}
    for name, values in halves.items():
        module, half = name.removesuffix(".lora_a").removesuffix(".lora_b"), "A" if name.endswith("a") else "B"
        module = module.replace("model.h.", {"gpt2": "transformer.h.", "gpt_neox": "gpt_neox.layers."}.get(kind, ""))
        if numbered and ("switch_mlp" in module or "feed_forward" in module):
            for old, new in (("gate_proj", "w1"), ("down_proj", "w2"), ("up_proj", "w3")):
                module = module.replace(old, new)
        if values.ndim == 2:
            made[f"base_model.model.{module}.lora_{half}.weight"] = numpy.ascontiguousarray(numpy.array(values).T)
            continue
        for expert, matrix in enumerate(numpy.array(values)):
            made[f"base_model.model.{module.replace('switch_mlp', f'experts.{expert}')}.lora_{half}.weight"] = matrix
    return made


def compare_gguf(folder, kind, halves):
    """adapter.gguf has the tensors and keys of that of the same adapter from peft."""
    (folder / "peft").mkdir()
    save_file(as_peft(kind, halves), folder / "peft" / "adapter_model.safetensors")
    (folder / "peft" / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 4 * SCALE, "fan_in_fan_out": kind == "gpt2"}))
    for adapter in "adapter", "peft":
        made = wfs("cp", "-o", f"base={folder / 'base'},name=x", folder / adapter, "adapter.gguf", folder / f"{adapter}.gguf")
        if not check((made.returncode == 0) == (kind in CLASSES), f"{kind}: adapter.gguf: {made.stderr.decode().strip()}") or kind not in CLASSES:
            return
    (ours, our_keys), (theirs, their_keys) = (mlx.core.load(str(folder / f"{adapter}.gguf"), return_metadata=True) for adapter in ("adapter", "peft"))
    check(our_keys == their_keys and ours.keys() == theirs.keys(), f"{kind}: adapter.gguf: {our_keys} {ours.keys() ^ theirs.keys()}")
    wrong = [name for name in ours.keys() & theirs.keys() if not numpy.array_equal(numpy.array(ours[name]), numpy.array(theirs[name]))]
    check(not wrong, f"{kind}: adapter.gguf: {wrong[:4]}")


for kind in KINDS:
    with tempfile.TemporaryDirectory() as directory:
        compare(pathlib.Path(directory), kind)
for kind, config in MODELS:
    with tempfile.TemporaryDirectory() as directory:
        compare_model(pathlib.Path(directory), kind, config)
done()
