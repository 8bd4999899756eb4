"""Models of the newest families as transformers 5 saves them, with names and words of its own: model.gguf is that of the same model as it was published.
For the golden checkpoints that WFS_GOLDEN names."""
import json
import pathlib
import shutil
import sys
import tempfile

import interop

try:
    from safetensors.torch import load_file, save_file
except ImportError as error:
    interop.skip(str(error))


def hunyuan_name(name):
    """What the renamings of transformers 5.24 for hy_v4 give, read backwards."""
    for part in ("hc_attn_layer", "hc_mlp_layer"):
        name = name.replace(f".{part}.hc_pre.", f".hc_pre.{part}.")
    name = name.replace("model.hc_head.", "model.hc_pre.hc_head.")
    return name if ".experts." in name else name.replace(".mlp.gate_proj.", ".mlp.linear_gate.").replace(
        ".shared_experts.gate_proj.", ".shared_experts.linear_gate.")  # fmt: skip


def indexed(config):
    return dict(config, layer_types=["indexed_attention" if kind == "full_attention" else kind for kind in config["layer_types"]])


def indexed_by_types(config):
    """As checkpoints without indexer_types are, whose layer types transformers 5 renames."""
    types = ["indexed_attention" if kind == "full" else "full_attention" for kind in config["indexer_types"]]
    return {key: value for key, value in dict(config, layer_types=types).items() if key != "indexer_types"}


def per_layer(config):
    """As Dots3NoteTextConfig makes it: what of the sliding layers differs from the others is in per_layer_config."""
    config, kept = dict(config), ("swa_rope_theta", "swa_attention_gate_type")
    types = ["indexed_attention" if kind == "full_attention" else kind for kind in config["layer_types"]]
    sliding = {key[4:]: config.pop(key) for key in list(config) if key.startswith("swa_") and key not in kept}
    differing = {key: value for key, value in sliding.items() if config[key] != value}
    n_dense, n_layers = config.pop("first_k_dense_replace"), config["num_hidden_layers"]
    rope = {"indexed_attention": config.pop("rope_theta"), "sliding_attention": config.pop("swa_rope_theta")}
    for key in ("use_dsa", "scoring_func", "apply_mla_qkv_lora_rescale"):
        config.pop(key)
    return dict(config, layer_types=types, mlp_layer_types=["dense"] * n_dense + ["sparse"] * (n_layers - n_dense),
                sliding_window=config.pop("sliding_window_size"), rope_parameters={key: {"rope_theta": theta} for key, theta in rope.items()},
                per_layer_config={str(i): differing for i, kind in enumerate(types) if kind == "sliding_attention"})  # fmt: skip


CASES = [("dots3.note-text", str, per_layer), ("Hy4-preview", hunyuan_name, dict), ("Hy4-preview", str, indexed_by_types), ("Qwen3.8-Flash-Next", str, indexed)]


def check(name, folder, rename, change):
    with tempfile.TemporaryDirectory() as directory:
        saved = pathlib.Path(directory) / name
        shutil.copytree(folder, saved, ignore=shutil.ignore_patterns("*.safetensors*"))
        tensors = {}
        for path in folder.glob("*.safetensors"):
            tensors.update(load_file(path))
        renamed = {rename(key): tensor for key, tensor in tensors.items()}
        config = json.loads((folder / "config.json").read_text())
        interop.check(renamed.keys() != tensors.keys() or change(config) != config, f"{name}: nothing is renamed")
        save_file(renamed, saved / "model.safetensors")
        (saved / "config.json").write_text(json.dumps(change(config)))
        tables = []
        for model in (folder, saved):
            made = interop.wfs("cp", model, "gguf/model-F32.gguf", f"{directory}/model.gguf")
            if not interop.check(made.returncode == 0, f"{name}: {made.stderr.decode()}"):
                return
            shown = json.loads(interop.cat(f"{directory}/model.gguf", "metadata.json"))
            values = {row["name"]: interop.cat(f"{directory}/model.gguf", f"tensors/{row['name']}/raw") for row in shown["tensors"]}
            tables.append((shown["metadata"], values))
        interop.check(tables[0] == tables[1], f"{name}: other keys or tensors than before")


checkpoints, _ = interop.golden_checkpoints("families3")
if not checkpoints:
    print("no golden checkpoints: WFS_GOLDEN is not set")
    sys.exit(0)
for case in CASES:
    check(case[0], checkpoints[case[0]], *case[1:])
interop.done()
