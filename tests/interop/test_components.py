"""Pipelines against diffusers and transformers: what save_pretrained() writes is opened from a mount of the root, and from each component's
hf/, with the same weights."""
import gc
import pathlib
import tempfile

import interop

try:
    import diffusers
    import torch
    import transformers
except ImportError as error:
    interop.skip(str(error))


def same(wanted, model, what):
    state, found = wanted.state_dict(), model.state_dict()
    interop.check(state.keys() == found.keys() and all(torch.equal(state[name], found[name]) for name in state), what)


def make(directory):
    torch.manual_seed(0)
    unet = diffusers.UNet2DConditionModel(
        sample_size=8, block_out_channels=(32, 64), layers_per_block=1, cross_attention_dim=32, attention_head_dim=8,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"))  # fmt: skip
    vae = diffusers.AutoencoderKL(
        block_out_channels=(32,), down_block_types=("DownEncoderBlock2D",), up_block_types=("UpDecoderBlock2D",), latent_channels=4)  # fmt: skip
    text = transformers.CLIPTextModel(transformers.CLIPTextConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, vocab_size=96, max_position_embeddings=16))  # fmt: skip
    pipeline = diffusers.StableDiffusionPipeline(
        vae, text, None, unet, diffusers.DDIMScheduler(steps_offset=1, clip_sample=False), None, None, requires_safety_checker=False)  # fmt: skip
    pipeline.save_pretrained(directory)
    return {"unet": unet, "vae": vae, "text_encoder": text}


def open_pipeline(mountpoint, components):
    shown = diffusers.StableDiffusionPipeline.from_pretrained(mountpoint, tokenizer=None, safety_checker=None)
    for name, wanted in components.items():
        same(wanted, getattr(shown, name), f"{name}, of the pipeline")
        same(wanted, type(wanted).from_pretrained(mountpoint / name / "hf"), f"{name}/hf")


with tempfile.TemporaryDirectory() as directory:
    root = pathlib.Path(directory) / "pipeline"
    made = make(root)
    with interop.mounted(root) as mountpoint:
        open_pipeline(mountpoint, made)
        gc.collect()  # what is opened keeps its files mapped
interop.done()
