"""Small diffusion models, as files with their makers' names and as pipelines: diffusion.py KIND PATH."""
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


def pipeline(path):
    write(path / "unet" / "diffusion_pytorch_model.safetensors", UNET)
    write(path / "vae" / "diffusion_pytorch_model.safetensors", VAE)
    write(path / "text_encoder" / "model.safetensors", TEXT)
    (path / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionPipeline", "unet": ["diffusers", "UNet2DConditionModel"],
                                                       "vae": ["diffusers", "AutoencoderKL"], "text_encoder": ["transformers", "CLIPTextModel"]}))


def names(path):
    """Prints the names and shapes of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    for name, tensor in header.items():
        print(name, tensor["dtype"], *tensor["shape"])


def torch(path, tensors=FLUX, wrapper=None):
    make_torch_file.write(path, {name: ("BF16", shape, bytes(2 * elements(shape))) for name, shape in tensors.items()},
                          around=lambda state: {wrapper: state, "epoch": 1} if wrapper else state)


KINDS = {
    "flux": lambda path: write(path, FLUX),
    "mixed": lambda path: write(path, {**FLUX, "single_transformer_blocks.0.attn.norm_k.weight": (4,)}),
    "torch": torch,
    "torch-model": lambda path: torch(path, wrapper="model"),
    "torch-state-dict": lambda path: torch(path, wrapper="state_dict"),
    "torch-few": lambda path: torch(path, dict(list(FLUX.items())[:19])),
    "pipeline": pipeline,
    "names": names,
}

if __name__ == "__main__":
    KINDS[sys.argv[1]](pathlib.Path(sys.argv[2]))
