"""What a rank of tensor parallelism has of a tensor is what transformers' own plans say (base_model_tp_plan of its configurations)."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from interop import WFS, check, done, skip

try:
    import torch
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING
except ImportError:
    skip("transformers is missing")

TP = 2
SIZES = {"vocab_size": 128, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "head_dim": 16, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4,
         "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "first_k_dense_replace": 1,
         "n_group": 1, "topk_group": 1, "q_lora_rank": 32, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
         "v_head_dim": 16, "n_shared_experts": 1, "pad_token_id": 0, "intermediate_size_mlp": 128, "moe_num_experts": 4,
         "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
         "layer_types": None, "max_position_embeddings": 64, "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 128,
         "num_kv_shared_layers": 0, "laurel_rank": 8, "moe_layer_start_index": 1, "moe_num_shared_experts": 1, "moe_k": 2}
# Engines have these whole: a router, and a latent vector that all heads share.
WHOLE = ("layers.*.block_sparse_moe.gate", "layers.*.self_attn.q_a_proj")
LAYOUT = {"parameters": {"tp": TP}, "axes": {"tp": {"size": "tp", "part": "rank"}},
          "files": {"name": "rank{rank}.safetensors", "for": {"rank": "tp"}}, "tensors": [{"from": "*", "axes": "parallel"}]}


def known_families():
    listed = subprocess.run([WFS, "info", "--architectures"], capture_output=True, text=True, check=True)
    return set(re.findall(r"\w+", listed.stdout))


def shapes(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name: tensor["shape"] for name, tensor in header.items() if name != "__metadata__"}


def planned(plan, name, shape):
    """The shape that a rank has by the plan, None where it does not say."""
    bare = re.sub(r"\.(weight|bias)$", "", name)
    for pattern, how in plan.items():
        if not re.search("(^|\\.)" + re.escape(pattern).replace("\\*", r"\d+") + "$", bare):
            continue
        if len(shape) == 1 and "rowwise" in how and name.endswith(".bias"):
            return shape
        if len(shape) > 1 and "colwise" in how:
            return [*shape[:-2], shape[-2] // TP, shape[-1]]
        if "colwise" in how or "rowwise" in how:
            return [*shape[:-1], shape[-1] // TP]
    return None


def compare(kind, architecture, config, folder):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).to(torch.float32)
    config.save_pretrained(folder / "model")
    save_file({name: tensor.clone() for name, tensor in model.state_dict().items()}, folder / "model" / "model.safetensors")
    made = subprocess.run([WFS, "cp", "-r", "-o", f"layout={folder / 'parallel.json'}", folder / "model", "layouts/parallel",
                           folder / "out"], capture_output=True, text=True)
    if made.returncode != 0:
        return [made.stderr.strip()]
    whole, rank = shapes(folder / "model" / "model.safetensors"), shapes(folder / "out" / "rank1.safetensors")
    plan = {pattern: how for pattern, how in config.base_model_tp_plan.items() if pattern not in WHOLE}
    wanted = {name: planned(plan, name, shape) for name, shape in whole.items()}
    return [f"{name}: {rank.get(name)} instead of {shape}, of {whole[name]}" for name, shape in wanted.items()
            if shape is not None and rank.get(name) != shape]


def main():
    known, only = known_families(), sys.argv[1:]
    for kind in CONFIG_MAPPING:
        plan = getattr(CONFIG_MAPPING[kind], "base_model_tp_plan", None)
        is_model = plan and kind != "llama4" and CONFIG_MAPPING[kind] in MODEL_FOR_CAUSAL_LM_MAPPING
        if not is_model or (only and kind not in only):
            continue
        architecture = MODEL_FOR_CAUSAL_LM_MAPPING[CONFIG_MAPPING[kind]].__name__
        if architecture not in known:
            continue
        config = CONFIG_MAPPING[kind]()
        sizes = {key: value for key, value in SIZES.items() if hasattr(config, key)}
        if "kv_lora_rank" in sizes:
            sizes["num_key_value_heads"] = sizes["num_attention_heads"]
        config = CONFIG_MAPPING[kind](**sizes, architectures=[architecture])
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            (folder / "parallel.json").write_text(json.dumps(LAYOUT))
            wrong = compare(kind, architecture, config, folder)
        check(not wrong, f"{kind}: {architecture}" + "".join("\n    " + line for line in wrong[:12]))
    done()


if __name__ == "__main__":
    main()
