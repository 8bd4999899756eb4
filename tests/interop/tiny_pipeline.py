"""A Stable Diffusion pipeline of random weights: tiny_pipeline.py DIR"""
import sys

import diffusers
import torch
import transformers


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


if __name__ == "__main__":
    make(sys.argv[1])
