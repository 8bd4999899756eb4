"""Small diffusion models, as files with their makers' names and as pipelines: diffusion.py KIND PATH; or
"same FILE FILE": whether two files have the same tensors."""
import json
import pathlib
import struct
import sys

import make_torch_file

FLUX = {"double_blocks.0.img_attn.proj.weight": (256, 256), "double_blocks.0.img_attn.qkv.weight": (768, 256), "img_in.weight": (256, 64),
        "double_blocks.0.img_attn.proj.bias": (256,), **{f"single_blocks.{i}.linear2.weight": (256, 512) for i in range(20)}}
UNET_MODULES = ("time_embedding.linear_1", "time_embedding.linear_2", "conv_in", "conv_norm_out", "conv_out", "down_blocks.0.downsamplers.0.conv",
                "down_blocks.1.resnets.0.norm1", "up_blocks.3.attentions.2.norm")
UNET = {f"{module}.{part}": (4, 4) for module in UNET_MODULES for part in ("weight", "bias")}
VAE = {"decoder.up_blocks.0.resnets.2.conv1.weight": (4, 4, 1, 1), "encoder.mid_block.attentions.0.to_out.0.weight": (4, 4),
       "encoder.mid_block.attentions.0.to_q.bias": (4,)}
TEXT = {"text_model.final_layer_norm.weight": (4,)}


def elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def write(path, tensors):
    """Writes F32 tensors of small numbers."""
    header, data = {}, b""
    for name, shape in tensors.items():
        values = struct.pack(f"<{elements(shape)}f", *(float(i % 97) for i in range(elements(shape))))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_raw(path, tensors, metadata=None):
    """Writes tensors, each a dtype, a shape and its bytes."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def quantized_flux(path, how):
    """Flux with matrices of bytes and a scale for each row as ComfyUI stores it: by "mark"s, by the "header", with an "unknown" format; or
    "plain" the same values. A matrix has the dtype of its bias, else F16."""
    tensors, layers, prefix = {}, {}, "model.diffusion_model." if how == "header" else ""
    for name, shape in FLUX.items():
        count = elements(shape)
        codes = [i % 97 for i in range(count)]
        if len(shape) == 1:
            tensors[prefix + name] = ("F32", shape, struct.pack(f"<{count}f", *codes))
            continue
        module, scales = prefix + name[:-len(".weight")], [0.5 if row % 2 else 0.25 for row in range(shape[0])]
        if how == "plain":
            has_bias = name[:-len("weight")] + "bias" in FLUX
            values = [code * scales[i // shape[1]] for i, code in enumerate(codes)]
            tensors[name] = ("F32" if has_bias else "F16", shape, struct.pack(f"<{count}{'f' if has_bias else 'e'}", *values))
            continue
        layer = {"format": "int8_blockwise" if how == "unknown" else "int8_tensorwise"}
        layers[name[:-len(".weight")]] = layer
        tensors[f"{module}.weight"] = ("I8", shape, bytes(codes))
        tensors[f"{module}.weight_scale"] = ("F32", [shape[0], 1], struct.pack(f"<{shape[0]}f", *scales))
        if how != "header":
            tensors[f"{module}.comfy_quant"] = ("U8", [len(json.dumps(layer))], json.dumps(layer).encode())
    if how == "plain":  # in the order of save_file()
        tensors = dict(sorted(tensors.items(), key=lambda tensor: (tensor[1][0] == "F16", tensor[0])))
    write_raw(path, tensors, {"_quantization_metadata": json.dumps({"layers": layers})} if how == "header" else None)


def pipeline(path):
    write(path / "unet" / "diffusion_pytorch_model.safetensors", UNET)
    write(path / "vae" / "diffusion_pytorch_model.safetensors", VAE)
    write(path / "text_encoder" / "model.safetensors", TEXT)
    (path / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"],
                                                       "vae": ["diffusers", "AutoencoderKL"], "text_encoder": ["transformers", "CLIPTextModel"]}))


def modules(shapes):
    """A weight and a bias for each module."""
    return {f"{name}.{part}": shape if part == "weight" else shape[:1] for name, shape in shapes.items() for part in ("weight", "bias")}


def attention(block, depth, width, context, linear):
    tensors = {f"{block}.transformer_blocks.{i}.attn2.to_k.weight": (width, context) for i in range(depth)}
    return {**tensors, **modules({f"{block}.proj_in": (width, width) if linear else (width, width, 1, 1), f"{block}.norm": (width,)})}


def makers_unet(depths, context, linear=True, middle=1, channels=4):
    """The tensors of a U-Net under its makers' names that tell its configuration; depths: transformer blocks, level by level."""
    n, widths = len(depths), [8 * (i + 1) for i in range(len(depths))]
    shapes = {"time_embed.0": (32, 8), "time_embed.2": (32, 32), "input_blocks.0.0": (8, channels, 3, 3), "out.0": (8,), "out.2": (4, 8, 3, 3),
              "middle_block.0.in_layers.0": (widths[-1],), "middle_block.2.out_layers.3": (widths[-1], widths[-1], 3, 3)}
    tensors = attention("middle_block.1", middle, widths[-1], context, linear)
    for i, (width, depth) in enumerate(zip(widths, depths)):
        up = n - 1 - i
        for j in range(3):
            if j < 2:
                shapes[f"input_blocks.{3 * i + j + 1}.0.in_layers.2"] = (width, width, 3, 3)
                tensors.update(attention(f"input_blocks.{3 * i + j + 1}.1", depth, width, context, linear) if depth else {})
            shapes[f"output_blocks.{3 * up + j}.0.skip_connection"] = (width, width, 1, 1)
            tensors.update(attention(f"output_blocks.{3 * up + j}.1", depth, width, context, linear) if depth else {})
        if up > 0:
            shapes[f"input_blocks.{3 * i + 3}.0.op"] = (width, width, 3, 3)
        if i > 0:
            shapes[f"output_blocks.{3 * up + 2}.{2 if depth else 1}.conv"] = (width, width, 3, 3)
    return {f"model.diffusion_model.{name}": shape for name, shape in {**modules(shapes), **tensors}.items()}


MAKERS_VAE = {f"first_stage_model.{name}": shape for name, shape in modules({
    "encoder.conv_in": (8, 3, 3, 3), "decoder.conv_in": (16, 4, 3, 3), "decoder.conv_out": (3, 8, 3, 3), "quant_conv": (8, 8, 1, 1),
    **{f"encoder.down.{i}.block.0.conv1": (8 + 4 * i, 8, 3, 3) for i in range(4)}, "encoder.down.1.block.0.nin_shortcut": (12, 8, 1, 1),
    "decoder.up.3.upsample.conv": (8, 8, 3, 3), "decoder.mid.attn_1.q": (4, 4, 1, 1), "decoder.mid.attn_1.norm": (4,), "decoder.norm_out": (4,),
}).items()}


def clip(prefix):
    shapes = {"text_model.embeddings.token_embedding.weight": (50, 64), "text_model.embeddings.position_embedding.weight": (77, 64),
              "text_model.embeddings.position_ids": (1, 77),
              **modules({f"text_model.encoder.layers.{i}.mlp.fc1": (256, 64) for i in range(3)}), **modules({"text_model.final_layer_norm": (64,)})}
    return {prefix + name: shape for name, shape in shapes.items()}


def open_clip(prefix, layers):
    shapes = {"token_embedding.weight": (50, 4), "positional_embedding": (77, 4), "text_projection": (4, 6), "logit_scale": (), **modules({"ln_final": (4,)})}
    for i in layers:
        block = f"transformer.resblocks.{i}."
        shapes.update({f"{block}attn.in_proj_weight": (12, 4), f"{block}attn.in_proj_bias": (12,),
                       **modules({f"{block}attn.out_proj": (4, 4), f"{block}mlp.c_fc": (16, 4), f"{block}ln_1": (4,)})})
    return {prefix + name: shape for name, shape in shapes.items()}


CHECKPOINTS = {
    "v1": {**makers_unet((1, 1, 1, 0), 12, linear=False), **MAKERS_VAE, **clip("cond_stage_model.transformer."), "model_ema.decay": (), "alphas_cumprod": (1000,)},
    "v2": {**makers_unet((1, 1, 1, 0), 4), **MAKERS_VAE, **open_clip("cond_stage_model.model.", (0, 22, 23))},
    "xl": {**makers_unet((0, 2, 3), 20, middle=3), **modules({f"model.diffusion_model.label_emb.0.{i}": (32, 44) for i in (0, 2)}), **MAKERS_VAE,
           **clip("conditioner.embedders.0.transformer."), **open_clip("conditioner.embedders.1.model.", (0, 1))},
    "inpainting": {**makers_unet((1, 1, 1, 0), 12, channels=9), **MAKERS_VAE, **clip("cond_stage_model.transformer.")},
}


def checkpoint(kind, changes=(), left_out=""):
    """A whole checkpoint under its makers' names; `changes` are tensors with other shapes, and a name without `left_out` stays."""
    tensors = {**CHECKPOINTS[kind], **dict(changes)}
    return {name: shape for name, shape in tensors.items() if not left_out or left_out not in name}


def firsts(path):
    """Prints the first two values of each tensor of an F32 safetensors file."""
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    for name, tensor in json.loads(data[8:start]).items():
        if name != "__metadata__":
            first, end = tensor["data_offsets"]
            print(name, *(int(value) for value in struct.unpack(f"<{min(2, (end - first) // 4)}f", data[start + first:start + min(end, first + 8)])))


def names(path):
    """Prints the names and shapes of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    header.pop("__metadata__", None)
    for name, tensor in header.items():
        print(name, tensor["dtype"], *tensor["shape"])


def read(path):
    """The tensors of a safetensors file: dtype, shape and bytes."""
    file = path.read_bytes()
    start = 8 + struct.unpack("<Q", file[:8])[0]
    header = json.loads(file[8:start])
    header.pop("__metadata__", None)
    return {name: (tensor["dtype"], tensor["shape"], file[start + tensor["data_offsets"][0]:start + tensor["data_offsets"][1]]) for name, tensor in header.items()}


def compare(path, other):
    """Fails unless two files have the same tensors."""
    ours, theirs = read(path), read(other)
    differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    sys.exit(f"{path.name}: {differing}" if differing or not ours else 0)


def torch(path, tensors=FLUX, wrapper=None):
    make_torch_file.write(path, {name: ("BF16", shape, bytes(2 * elements(shape))) for name, shape in tensors.items()},
                          around=lambda state: {wrapper: state, "epoch": 1} if wrapper else state)


KINDS = {
    "flux": lambda path: write(path, FLUX),
    **{f"flux-{how}": lambda path, how=how: quantized_flux(path, how) for how in ("mark", "header", "unknown", "plain")},
    "mixed": lambda path: write(path, {**FLUX, "single_transformer_blocks.0.attn.norm_k.weight": (4,)}),
    "torch": torch,
    "torch-model": lambda path: torch(path, wrapper="model"),
    "torch-state-dict": lambda path: torch(path, wrapper="state_dict"),
    "torch-few": lambda path: torch(path, dict(list(FLUX.items())[:19])),
    "clash": lambda path: write(path, {**FLUX, "double_blocks.0.img_attn.proj.input_scale": ()}),
    "pipeline": pipeline,
    "names": names,
    "firsts": firsts,
    **{kind: lambda path, kind=kind: write(path, checkpoint(kind)) for kind in CHECKPOINTS},
    "v1-torch": lambda path: torch(path, checkpoint("v1"), "state_dict"),
    "xl-no-vae": lambda path: write(path, checkpoint("xl", left_out="first_stage_model.")),
    "xl-uneven": lambda path: write(path, checkpoint("xl", {"model.diffusion_model.input_blocks.8.1.transformer_blocks.3.attn2.to_k.weight": (24, 20)})),
    "xl-cut": lambda path: write(path, checkpoint("xl", {"conditioner.embedders.1.model.transformer.resblocks.1.attn.in_proj_bias": (10,)})),
    "xl-flat": lambda path: write(path, checkpoint("xl", {"conditioner.embedders.1.model.text_projection": (24,)})),
    "v1-wide": lambda path: write(path, checkpoint("v1", {"first_stage_model.decoder.mid.attn_1.q.weight": (4, 4, 3, 3)})),
    "v1-no-time": lambda path: write(path, checkpoint("v1", left_out="time_embed.2.bias")),
}

if __name__ == "__main__":
    if sys.argv[1] == "same":
        compare(*map(pathlib.Path, sys.argv[2:]))
    KINDS[sys.argv[1]](pathlib.Path(sys.argv[2]))
