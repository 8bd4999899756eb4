"""Transformers of Flux and Stable Diffusion 3 under the names that diffusers gives to their tensors, as its scripts convert_flux_to_diffusers.py and
convert_sd3_to_diffusers.py make them of the makers' files. Tensors are {name: (dtype, shape, bytes)}."""
import json
import re
import struct


def read(path):
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    start = 8 + length
    return {name: (t["dtype"], t["shape"], data[start + t["data_offsets"][0]:start + t["data_offsets"][1]]) for name, t in header.items()}


def write(path, tensors):
    header, offset = {}, 0
    for name in sorted(tensors):
        dtype, shape, data = tensors[name]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensors[name][2] for name in sorted(tensors)))


def cut(tensor, *sizes):
    """Parts of a tensor along its first axis."""
    dtype, shape, data = tensor
    row, parts = len(data) // shape[0], []
    for size in sizes:
        at = sum(part[1][0] for part in parts)
        parts.append((dtype, [size, *shape[1:]], data[at * row:(at + size) * row]))
    return parts


def swapped(tensor):
    """The makers have shift and scale, diffusers scale and shift."""
    shift, scale = cut(tensor, tensor[1][0] // 2, tensor[1][0] // 2)
    return tensor[0], tensor[1], scale[2] + shift[2]


def thirds(tensor):
    return cut(tensor, *[tensor[1][0] // 3] * 3)


QUERIES_KEYS_VALUES = {"img": ("to_q", "to_k", "to_v"), "txt": ("add_q_proj", "add_k_proj", "add_v_proj")}


def flux(tensors):
    whole = {"img_in": "x_embedder", "txt_in": "context_embedder", "final_layer.linear": "proj_out"}
    for theirs, ours in {"time_in": "timestep_embedder", "guidance_in": "guidance_embedder", "vector_in": "text_embedder"}.items():
        whole[f"{theirs}.in_layer"], whole[f"{theirs}.out_layer"] = (f"time_text_embed.{ours}.linear_{k}" for k in (1, 2))
    modules = {"img": {"attn.proj": "attn.to_out.0", "mod.lin": "norm1.linear", "mlp.0": "ff.net.0.proj", "mlp.2": "ff.net.2"},
               "txt": {"attn.proj": "attn.to_add_out", "mod.lin": "norm1_context.linear", "mlp.0": "ff_context.net.0.proj",
                       "mlp.2": "ff_context.net.2"}}
    made = {}
    for name, tensor in tensors.items():
        stem, suffix = name.rsplit(".", 1)
        double, single = re.fullmatch(r"double_blocks\.(\d+)\.(img|txt)_(.*)", stem), re.fullmatch(r"single_blocks\.(\d+)\.(.*)", stem)
        if stem in whole:
            made[f"{whole[stem]}.{suffix}"] = tensor
        elif stem == "final_layer.adaLN_modulation.1":
            made[f"norm_out.linear.{suffix}"] = swapped(tensor)
        elif double:
            block, side, module = f"transformer_blocks.{double[1]}.", double[2], double[3]
            if module == "attn.qkv":
                made.update({f"{block}attn.{part}.{suffix}": t for part, t in zip(QUERIES_KEYS_VALUES[side], thirds(tensor))})
            elif module.startswith("attn.norm."):
                made[f"{block}attn.norm_{'added_' if side == 'txt' else ''}{module[10]}.weight"] = tensor
            else:
                made[f"{block}{modules[side][module]}.{suffix}"] = tensor
        else:
            block, module = f"single_transformer_blocks.{single[1]}.", single[2]
            if module == "linear1":
                width = tensor[1][0] // 7
                parts = cut(tensor, width, width, width, 4 * width)
                made.update({f"{block}{part}.{suffix}": t for part, t in zip(("attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp"), parts)})
            elif module.startswith("norm."):
                made[f"{block}attn.norm_{module[5]}.weight"] = tensor
            else:
                made[f"{block}{ {'linear2': 'proj_out', 'modulation.lin': 'norm.linear'}[module] }.{suffix}"] = tensor
    return made


def sd3(tensors):
    prefix = "model.diffusion_model."
    tensors = {name[len(prefix):]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}
    last = max(int(name.split(".")[1]) for name in tensors if name.startswith("joint_blocks."))
    whole = {"context_embedder": "context_embedder", "final_layer.linear": "proj_out", "x_embedder.proj": "pos_embed.proj"}
    for theirs, ours in {"t_embedder": "timestep_embedder", "y_embedder": "text_embedder"}.items():
        whole[f"{theirs}.mlp.0"], whole[f"{theirs}.mlp.2"] = (f"time_text_embed.{ours}.linear_{k}" for k in (1, 2))
    modules = {"x": {"attn.proj": "attn.to_out.0", "attn2.proj": "attn2.to_out.0", "mlp.fc1": "ff.net.0.proj", "mlp.fc2": "ff.net.2"},
               "context": {"attn.proj": "attn.to_add_out", "mlp.fc1": "ff_context.net.0.proj", "mlp.fc2": "ff_context.net.2"}}
    made = {"pos_embed.pos_embed": tensors.pop("pos_embed")}
    for name, tensor in tensors.items():
        stem, suffix = name.rsplit(".", 1)
        joint = re.fullmatch(r"joint_blocks\.(\d+)\.(x|context)_block\.(.*)", stem)
        if stem in whole:
            made[f"{whole[stem]}.{suffix}"] = tensor
            continue
        if stem == "final_layer.adaLN_modulation.1":
            made[f"norm_out.linear.{suffix}"] = swapped(tensor)
            continue
        block, side, module = f"transformer_blocks.{joint[1]}.", joint[2], joint[3]
        if module.endswith(".qkv"):
            parts = QUERIES_KEYS_VALUES["img" if side == "x" else "txt"]
            made.update({f"{block}{module[:-3]}{part}.{suffix}": t for part, t in zip(parts, thirds(tensor))})
        elif ".ln_" in module:
            made[f"{block}{module.split('.')[0]}.norm_{'' if side == 'x' else 'added_'}{module[-1]}.{suffix}"] = tensor
        elif module == "adaLN_modulation.1":
            is_last = side == "context" and int(joint[1]) == last
            made[f"{block}{'norm1' if side == 'x' else 'norm1_context'}.linear.{suffix}"] = swapped(tensor) if is_last else tensor
        else:
            made[f"{block}{modules[side][module]}.{suffix}"] = tensor
    return made


CLASSES = {"flux1-dev.safetensors": ("FluxTransformer2DModel", flux), "sd3.5_large.safetensors": ("SD3Transformer2DModel", sd3)}


def write_component(folder, source):
    """Writes the transformer of a pipeline from the makers' file of that name."""
    class_name, convert = CLASSES[source.name]
    write(folder / "diffusion_pytorch_model.safetensors", convert(read(source)))
    (folder / "config.json").write_text(json.dumps({"_class_name": class_name}))
