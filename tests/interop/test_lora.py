"""Weights merged with -o lora= are those of peft's merge_and_unload(), to one unit in the last place.

peft works in the dtypes that it has, wfs in F32 and rounds once. In 16 bits a unit is that of the larger of the merged weight and the
base's. In F32, where the order of a sum shows, peft computes in F64, and a unit is that of the sum of all terms without their signs; DoRA, which multiplies the sum, may be off by two.

Of a packed base peft merges the weights that were put together here, in F64. wfs may be off by half a unit of BF16, the dtype of before, and by one in F32, of
the sum of all terms without their signs. The golden checkpoints that WFS_GOLDEN has are merged as GGUF, too.
"""
import json
import pathlib
import re
import tempfile

import numpy as np

from interop import ROOT, check, done, golden_checkpoints, skip, wfs

try:
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from safetensors.torch import load, save_file
    from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification, GPT2Config, GptOssConfig, GraniteMoeConfig, LlamaConfig
except ImportError as error:
    skip(f"{error}")

BITS = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}
LLAMA = LlamaConfig(vocab_size=96, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=False)
TIED = LlamaConfig(vocab_size=96, hidden_size=64, intermediate_size=160, num_hidden_layers=1, num_attention_heads=4, tie_word_embeddings=True)
GPT2 = GPT2Config(vocab_size=96, n_embd=48, n_layer=1, n_head=3, n_positions=32, tie_word_embeddings=False)
EXPERTS = dict(vocab_size=96, hidden_size=64, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
               tie_word_embeddings=False)
GRANITE, OSS = GraniteMoeConfig(intermediate_size=96, **EXPERTS), GptOssConfig(intermediate_size=64, head_dim=16, **EXPERTS)
LAYERS = re.compile(r"\b(layers?|h)\.\d+\..*(proj|dense|c_attn|c_fc|query|key|value|w[123])\.weight$(?<!eh_proj\.weight)")
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
    "output apart": (TIED, torch.bfloat16, [dict(r=8, lora_alpha=16, target_modules=["q_proj"], modules_to_save=["lm_head"])], 1),
    "embedding apart": (TIED, torch.bfloat16, [dict(r=8, lora_alpha=16, target_modules=["q_proj"], modules_to_save=["embed_tokens"])], 1),
    "transposed": (GPT2, torch.float32, [dict(r=8, lora_alpha=16, fan_in_fan_out=True, target_modules=["c_attn", "c_proj", "c_fc"])], 1),
    "transposed, bias": (GPT2, torch.bfloat16, [dict(r=8, lora_alpha=16, fan_in_fan_out=True, bias="all", target_modules=["c_attn", "c_fc"])], 1),
    "bias of B": (GPT2, torch.float32, [dict(r=8, lora_alpha=16, fan_in_fan_out=True, lora_bias=True, target_modules=["c_attn", "c_fc"])], 1),
    "two adapters": (LLAMA, torch.float32, [dict(r=8, lora_alpha=16, target_modules=LINEAR), dict(r=4, lora_alpha=4, target_modules=["q_proj", "up_proj"])], 1),
    "parameters": (GRANITE, torch.bfloat16, [dict(r=4, lora_alpha=16, target_modules=["q_proj"], target_parameters=["input_linear.weight", "moe.output_linear.weight"])], 1),
    "square parameters": (OSS, torch.float32, [dict(r=4, lora_alpha=16, target_modules=["q_proj"], target_parameters=["experts.gate_up_proj", "mlp.experts.down_proj"])], 0.5),
    "rows of tokens": (LLAMA, torch.bfloat16, [dict(r=8, lora_alpha=16, target_modules=["q_proj"], trainable_token_indices=[3, 90, 4])], 1),
    "rows of a tied embedding": (TIED, torch.float32, [dict(r=8, lora_alpha=16, target_modules=["q_proj"], trainable_token_indices={"embed_tokens": [95, 0]})], 1),
    "tied output": (TIED, torch.float32, [dict(r=8, lora_alpha=16, target_modules=["q_proj", "lm_head"])], 1),
    "DoRA": (LLAMA, torch.bfloat16, [dict(r=8, lora_alpha=16, target_modules=LINEAR, use_dora=True)], 1),
    "DoRA, f32": (LLAMA, torch.float32, [dict(r=8, lora_alpha=16, target_modules=["q_proj", "down_proj"], use_dora=True)], 0.5),
    "DoRA of an embedding": (LLAMA, torch.float32, [dict(r=8, lora_alpha=16, target_modules=["embed_tokens", "lm_head", "q_proj"], use_dora=True)], 1),
    "DoRA of an embedding, bf16": (LLAMA, torch.bfloat16, [dict(r=8, lora_alpha=16, target_modules=["embed_tokens"], use_dora=True)], 1),
    "DoRA, transposed": (GPT2, torch.float32, [dict(r=8, lora_alpha=16, fan_in_fan_out=True, target_modules=["c_attn", "c_proj", "c_fc", "wte"], use_dora=True)], 0.5),
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


def compare_resized(name, n_tokens, **saved):
    """An adapter trained after resize_token_embeddings(); its state is also as in memory, with the adapter's name."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        make(folder, LLAMA, torch.float32, [], False)

        def resized():
            model = AutoModelForCausalLM.from_pretrained(folder / "base", dtype=torch.float32)
            model.resize_token_embeddings(n_tokens, mean_resizing=False)
            return model

        adapted = get_peft_model(resized(), LoraConfig(task_type="CAUSAL_LM", r=8, lora_alpha=16, target_modules=["q_proj"], modules_to_save=saved.get("modules_to_save")))
        for weight in adapted.parameters():
            if weight.requires_grad:
                torch.nn.init.normal_(weight, std=0.1)
        adapted.save_pretrained(folder / "adapter", save_embedding_layers=saved.get("save_embedding_layers", "auto"))
        expected = PeftModel.from_pretrained(resized(), folder / "adapter").merge_and_unload().state_dict()
        state = {key: value.contiguous() for key, value in adapted.state_dict().items() if "lora_" in key or "modules_to_save" in key or saved.get("modules_to_save") is None and ("embed_tokens" in key or "lm_head" in key)}
        (folder / "in-memory").mkdir()
        save_file(state, folder / "in-memory" / "adapter_model.safetensors")
        (folder / "in-memory" / "adapter_config.json").write_bytes((folder / "adapter" / "adapter_config.json").read_bytes())
        for adapter in "adapter", "in-memory":
            made = wfs("cat", "-o", f"lora={folder / adapter}", folder / "base", "model.safetensors")
            if not check(made.returncode == 0, f"{name}, {adapter}: {made.stderr.decode().strip()}"):
                continue
            ours = load(made.stdout)
            check(ours.keys() == expected.keys(), f"{name}: {ours.keys() ^ expected.keys()}")
            for key, theirs in expected.items():
                same = ours[key].shape == theirs.shape and torch.allclose(ours[key], theirs, rtol=1e-5, atol=1e-5)
                check(same and (torch.equal(ours[key], theirs) or "q_proj" in key), f"{name}, {adapter}: {key} is not peft's")
            config = json.loads(wfs("cat", "-o", f"lora={folder / adapter}", folder / "base", "config.json").stdout)
            check(config["vocab_size"] == n_tokens, f"{name}: vocab_size is {config['vocab_size']}")


def compare_classifier(config, n_labels):
    """A classifier trained on a language model: merged, it is what transformers opens as the classifier that peft merges."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        make(folder, config, torch.float32, [], False)

        def fresh():
            return AutoModelForSequenceClassification.from_pretrained(folder / "base", num_labels=n_labels, dtype=torch.float32)

        adapted = get_peft_model(fresh(), LoraConfig(task_type="SEQ_CLS", r=8, lora_alpha=16, target_modules=["q_proj"]))
        for weight in adapted.parameters():
            if weight.requires_grad:
                torch.nn.init.normal_(weight, std=0.1)
        adapted.save_pretrained(folder / "adapter")
        expected = PeftModel.from_pretrained(fresh(), folder / "adapter").merge_and_unload()
        made = wfs("cp", "-r", "-o", f"lora={folder / 'adapter'}", folder / "base", "hf", folder / "merged")
        if not check(made.returncode == 0, f"classifier: {made.stderr.decode().strip()}"):
            return
        ours = AutoModelForSequenceClassification.from_pretrained(folder / "merged")
        check(type(ours) is type(expected) and ours.config.architectures == [type(expected).__name__], f"classifier: {ours.config.architectures}")
        check(ours.config.id2label == expected.config.id2label, f"classifier: {ours.config.id2label}")
        stored = load((folder / "merged" / "model.safetensors").read_bytes())
        check(stored.keys() == expected.state_dict().keys(), f"classifier: {stored.keys() ^ expected.state_dict().keys()}")
        for key, theirs in expected.state_dict().items():
            check(torch.allclose(stored[key], theirs, rtol=1e-5, atol=1e-5), f"classifier: {key} is not peft's")


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
            if config.tie_word_embeddings and key == "lm_head.weight" and key not in ours:
                continue  # it is the embedding
            mine = ours[stored]
            if not check(mine.dtype == dtype and mine.shape == expected.shape, f"{name}: {key} is {mine.dtype} {tuple(mine.shape)}"):
                continue
            a, b, base = mine.double().numpy(), expected.to(dtype).double().numpy(), before.get(stored, before.get("model.embed_tokens.weight")).double().numpy()
            at = unit(np.maximum(np.abs(largest[key].double().numpy()), np.abs(base)), BITS[dtype])
            worst = max(worst, float((np.abs(a - b) / at).max()))
            n_same += np.count_nonzero(a == b)
            n_all += a.size
            n_changed += np.count_nonzero(b != base)
        most = 2 if adapters[0].get("use_dora") else 1
        check(worst <= most, f"{name}: off by {worst} units in the last place")
        check(n_changed > 0, f"{name}: peft changed nothing")
        print(f"{name}: {n_same} of {n_all} the same, {n_changed} changed, the worst off by {worst:.3g} units")


def nf4(name, rows, columns):
    """bitsandbytes' of 4 bits, with scales in F32."""
    table = torch.tensor([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
                          0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0])
    codes, absmax = torch.randint(0, 16, (rows * columns,)), torch.rand(rows * columns // 64) + 0.1
    state = json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [rows, columns]}).encode()
    parts = {"": (codes[::2] << 4 | codes[1::2]).to(torch.uint8).reshape(-1, 1), ".absmax": absmax, ".quant_map": table,
             ".quant_state.bitsandbytes__nf4": torch.frombuffer(bytearray(state), dtype=torch.uint8)}
    return {name + end: part for end, part in parts.items()}, (table[codes] * absmax.repeat_interleave(64)).reshape(rows, columns)


def gptq(name, rows, columns):
    """4 bits in groups of 32 columns, which come in any order."""
    codes, zeros, scales = torch.randint(0, 16, (columns, rows)), torch.randint(0, 15, (columns // 32, rows)), torch.rand(columns // 32, rows).half() / 16
    index, shifts = (torch.randperm(columns) // 32).int(), torch.arange(0, 32, 4)
    words = (codes.reshape(-1, 8, rows) << shifts[None, :, None]).sum(1), (zeros.reshape(-1, rows // 8, 8) << shifts).sum(2)
    parts = {"qweight": words[0].to(torch.int32), "qzeros": words[1].to(torch.int32), "scales": scales, "g_idx": index}
    values = scales.float()[index] * (codes - (zeros + 1)[index]).float()
    return {name.removesuffix("weight") + end: part for end, part in parts.items()}, values.T.contiguous()


def fp8(name, rows, columns):
    """Blocks of 32 rows and 32 columns."""
    codes, scales = torch.randn(rows, columns).to(torch.float8_e4m3fn), torch.rand(-(-rows // 32), -(-columns // 32))
    values = codes.float() * scales.repeat_interleave(32, 0).repeat_interleave(32, 1)[:rows, :columns]
    return {name: codes, name + "_scale_inv": scales}, values


PACKINGS = {
    "nf4": (nf4, {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}),
    "gptq": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True}),
    "fp8": (fp8, {"quant_method": "fp8", "weight_block_size": [32, 32]}),
}


def pack(folder, packing, quantization):
    """A packed twin of the base, which itself gets the values that it has, in F32."""
    plain, packed = load((folder / "base" / "model.safetensors").read_bytes()), {}
    for name, weight in list(plain.items()):
        packed[name] = weight
        if "_proj" in name:
            del packed[name]
            parts, plain[name] = packing(name, *weight.shape)
            packed.update(parts)
    (folder / "packed").mkdir()
    save_file(packed, folder / "packed" / "model.safetensors", {"format": "pt"})
    save_file({name: weight.float() for name, weight in plain.items()}, folder / "base" / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "base" / "config.json").read_text())
    (folder / "packed" / "config.json").write_text(json.dumps({**config, "quantization_config": quantization}))


def compare_packed(name, packing, quantization):
    adapters = [dict(r=8, lora_alpha=16, target_modules=LINEAR)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        make(folder, LLAMA, torch.bfloat16, adapters, False)
        pack(folder, packing, quantization)
        made = wfs("cat", "-o", f"lora={folder}/adapter0", folder / "packed", "model.safetensors")
        if not check(made.returncode == 0, f"{name}: {made.stderr.decode().strip()}"):
            return
        ours, theirs, worst = load(made.stdout), merge(folder, torch.float32, 1, 1, False), 0
        largest = merge(folder, torch.float32, 1, 1, False, absolute=True)
        check(ours.keys() == theirs.keys(), f"{name}: {ours.keys() ^ theirs.keys()}")
        for key, expected in theirs.items():
            check(ours[key].dtype == torch.bfloat16, f"{name}: {key} is {ours[key].dtype}")
            a, b = ours[key].double().numpy(), expected.double().numpy()
            at = unit(b, BITS[torch.bfloat16]) / 2 + unit(largest[key].double().numpy(), BITS[torch.float32])
            worst = max(worst, float((np.abs(a - b) / at).max()))
        check(worst <= 1, f"{name}: off by {worst} of what rounding once may be off")
        print(f"{name}: the worst off by {worst:.4f} of what rounding once may be off")


def gguf_adapter(folder, config, dora):
    """An adapter of all matrices of layers that are multiplied with."""
    halves, transposed = {}, config["model_type"] == "gpt2"
    for file in folder.glob("*.safetensors"):
        for name, weight in load(file.read_bytes()).items():
            if weight.dim() != 2 or not name.endswith(".weight") or not LAYERS.search(name):
                continue
            rows, columns = weight.shape[::-1] if transposed else weight.shape
            halves[f"base_model.model.{name.removesuffix('weight')}lora_A.weight"] = torch.randn(4, columns)
            halves[f"base_model.model.{name.removesuffix('weight')}lora_B.weight"] = torch.randn(rows, 4)
            if dora:
                halves[f"base_model.model.{name.removesuffix('weight')}lora_magnitude_vector"] = torch.rand(rows) + 0.5
    (folder / "lora").mkdir()
    save_file(halves, folder / "lora" / "adapter_model.safetensors")
    (folder / "lora" / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 16, "fan_in_fan_out": transposed,
                                                                   "use_dora": dora}))
    return len(halves)


def compare_gguf(name, source, dora=False):
    """Merged into a GGUF of F32, or into what the GGUF was made of: the same, since all steps are exact but the sums."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / name
        wfs("cp", "-r", "-o", "dtype=f32", source, "hf", folder)
        if not check(gguf_adapter(folder, json.loads((folder / "config.json").read_text()), dora) > 0, f"{name}: nothing is adapted"):
            return
        (folder / "base.gguf").write_bytes(wfs("cat", folder, "gguf/model-F32.gguf").stdout)
        first = wfs("cat", "-o", f"lora={folder}/lora", folder, "gguf/model-F32.gguf")
        second = wfs("cat", "-o", f"lora={folder}/lora", folder / "base.gguf", "model.gguf")
        check(second.returncode == 0, f"{name}: {second.stderr.decode().strip()}")
        check(first.stdout == second.stdout, f"{name}: merged into the GGUF is something else than the GGUF of what is merged")


for case, arguments in CASES.items():
    compare(case, *arguments)
compare_resized("more tokens", 101)
compare_resized("fewer tokens, modules to save", 90, modules_to_save=["embed_tokens", "lm_head"])
compare_resized("all copies", 101, modules_to_save=["embed_tokens", "lm_head"], save_embedding_layers=True)
compare_classifier(LLAMA, 3)
compare_classifier(TIED, 2)
for case, arguments in PACKINGS.items():
    compare_packed(case, *arguments)
for tiny in "llama-tiny", "gemma-tiny":
    compare_gguf(tiny, ROOT / "tests/data/gguf/models" / tiny, dora=True)
checkpoints = golden_checkpoints()[0]
if not checkpoints:
    print("no GGUF bases: WFS_GOLDEN is not set")
for case, path in checkpoints.items():
    compare_gguf(case, path)
done()
