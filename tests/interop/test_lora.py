"""Weights merged with -o lora= are those of peft's merge_and_unload(), to one unit in the last place.

peft works in the dtypes that it has, wfs in F32 and rounds once. In 16 bits a unit is that of the larger of the merged weight and the
base's. In F32, where the order of a sum shows, peft computes in F64, and a unit is that of the sum of all terms without their signs.
"""
import pathlib
import tempfile

import numpy as np

from interop import check, done, skip, wfs

try:
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from safetensors.torch import load
    from transformers import AutoModel, AutoModelForCausalLM, GPT2Config, LlamaConfig
except ImportError as error:
    skip(f"{error}")

BITS = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}
LLAMA = LlamaConfig(vocab_size=96, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False)
GPT2 = GPT2Config(vocab_size=96, n_embd=48, n_layer=1, n_head=3, n_positions=32, tie_word_embeddings=False)
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

# name: base, dtype, the adapters' configurations, scale
CASES = {
    "bf16": (LLAMA, torch.bfloat16, [dict(r=8, lora_alpha=16, target_modules=LINEAR)], 1),
    "f16, scaled": (LLAMA, torch.float16, [dict(r=4, lora_alpha=3, target_modules=LINEAR)], 0.375),
    "f32": (LLAMA, torch.float32, [dict(r=64, lora_alpha=16, target_modules=LINEAR)], 1),
    "rank-stabilized": (LLAMA, torch.bfloat16, [dict(r=6, lora_alpha=16, use_rslora=True, target_modules=["q_proj", "down_proj"])], 1),
    "patterns": (LLAMA, torch.bfloat16, [dict(r=8, lora_alpha=16, target_modules=LINEAR, rank_pattern={"layers.0.self_attn.q_proj": 3, "v_proj|k_proj": 5, "^model.layers.1.mlp.*": 2},
                                              alpha_pattern={r"layers.\d.mlp.up_proj": 7, "v_proj": 40})], 1),
    "embeddings": (LLAMA, torch.bfloat16, [dict(r=8, lora_alpha=16, target_modules=["embed_tokens", "lm_head", "q_proj"])], 1),
    "modules to save": (LLAMA, torch.bfloat16, [dict(r=8, lora_alpha=16, target_modules=["q_proj"], modules_to_save=["lm_head", "embed_tokens"])], 1),
    "transposed": (GPT2, torch.float32, [dict(r=8, lora_alpha=16, fan_in_fan_out=True, target_modules=["c_attn", "c_proj", "c_fc"])], 1),
    "transposed, bias": (GPT2, torch.bfloat16, [dict(r=8, lora_alpha=16, fan_in_fan_out=True, bias="all", target_modules=["c_attn", "c_fc"])], 1),
    "bias of B": (GPT2, torch.float32, [dict(r=8, lora_alpha=16, fan_in_fan_out=True, lora_bias=True, target_modules=["c_attn", "c_fc"])], 1),
    "two adapters": (LLAMA, torch.float32, [dict(r=8, lora_alpha=16, target_modules=LINEAR), dict(r=4, lora_alpha=4, target_modules=["q_proj", "up_proj"])], 1),
    "without the head": (LLAMA, torch.bfloat16, [dict(r=8, lora_alpha=16, task_type="FEATURE_EXTRACTION", target_modules=["q_proj"])], 1),
}


def unit(values, bits):
    """One unit in the last place of numbers of so many bits."""
    return np.exp2(np.floor(np.log2(np.maximum(np.abs(values), 1e-30))) - (bits - 1))


def make(folder, config, dtype, adapters, bare):
    """The base and the adapters, as they are published."""
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    model.save_pretrained(folder / "base")
    for i, options in enumerate(adapters):
        options = {"task_type": "CAUSAL_LM", **options}
        fresh = (AutoModel if bare else AutoModelForCausalLM).from_pretrained(folder / "base", dtype=dtype)
        adapted = get_peft_model(fresh, LoraConfig(**options))
        for name, weight in adapted.named_parameters():
            if weight.requires_grad:
                torch.nn.init.normal_(weight, std=0.1)
        adapted.save_pretrained(folder / f"adapter{i}")


def merge(folder, dtype, n_adapters, scale, bare, absolute=False):
    """The weights that peft makes; or those of all signs taken away."""
    model = (AutoModel if bare else AutoModelForCausalLM).from_pretrained(folder / "base", dtype=dtype)
    for i in range(n_adapters):
        model = PeftModel.from_pretrained(model, folder / f"adapter{i}")
        if dtype == torch.float32:
            model = model.double()
        for module in model.modules():
            if isinstance(getattr(module, "scaling", None), dict):
                module.scaling = {key: value * scale for key, value in module.scaling.items()}
        for weight in model.parameters() if absolute else ():
            weight.data = weight.data.abs()
        model = model.merge_and_unload()
    return model.state_dict()


def compare(name, config, dtype, adapters, scale):
    bare = adapters[0].get("task_type") == "FEATURE_EXTRACTION"
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        make(folder, config, dtype, adapters, bare)
        before = load((folder / "base" / "model.safetensors").read_bytes())
        theirs = merge(folder, dtype, len(adapters), scale, bare)
        largest = merge(folder, dtype, len(adapters), scale, bare, absolute=dtype == torch.float32)
        options = []
        for i in range(len(adapters)):
            options += ["-o", f"lora={folder}/adapter{i}" + (f":{scale}" if scale != 1 else "")]
        made = wfs("cat", *options, folder / "base", "model.safetensors")
        if not check(made.returncode == 0, f"{name}: {made.stderr.decode().strip()}"):
            return
        ours, worst, n_same, n_all, n_changed = load(made.stdout), 0, 0, 0, 0
        for key, expected in theirs.items():
            stored = "model." + key if bare else key
            mine = ours[stored]
            if not check(mine.dtype == dtype and mine.shape == expected.shape, f"{name}: {key} is {mine.dtype} {tuple(mine.shape)}"):
                continue
            a, b, base = mine.double().numpy(), expected.to(dtype).double().numpy(), before[stored].double().numpy()
            at = unit(np.maximum(np.abs(largest[key].double().numpy()), np.abs(base)), BITS[dtype])
            worst = max(worst, float((np.abs(a - b) / at).max()))
            n_same += np.count_nonzero(a == b)
            n_all += a.size
            n_changed += np.count_nonzero(b != base)
        check(worst <= 1, f"{name}: off by {worst} units in the last place")
        check(n_changed > 0, f"{name}: peft changed nothing")
        print(f"{name}: {n_same} of {n_all} the same, {n_changed} changed, the worst off by {worst:.3g} units")


def refused():
    """What peft does otherwise than by adding a product, by name."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        make(folder, LLAMA, torch.bfloat16, [dict(r=8, lora_alpha=16, use_dora=True, target_modules=["q_proj"])], False)
        made = wfs("cat", "-o", f"lora={folder}/adapter0", folder / "base", "model.safetensors")
        check(made.returncode == 1 and b"DoRA" in made.stderr, f"DoRA: {made.stderr.decode().strip()}")


for case, arguments in CASES.items():
    compare(case, *arguments)
refused()
done()
