"""Stable Diffusion checkpoints in a single file become pipelines that diffusers opens, with the tensors of its from_single_file(), and with the
configurations of the models of their kind on the hub."""
import json
import pathlib
import struct
import subprocess
import tempfile

import torch
from interop import WFS, cat, check, done, wfs

import diffusers
import safetensors.torch
import transformers

LEVELS = {"down_block_types": ("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",), "up_block_types": ("UpBlock2D",) + ("CrossAttnUpBlock2D",) * 3}
XL_LEVELS = {"down_block_types": ("DownBlock2D",) + ("CrossAttnDownBlock2D",) * 2, "up_block_types": ("CrossAttnUpBlock2D",) * 2 + ("UpBlock2D",),
             "addition_embed_type": "text_time", "addition_time_embed_dim": 256, "use_linear_projection": True}
VAE = {"down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4, "layers_per_block": 2, "latent_channels": 4}
TEXT = {"vocab_size": 49408, "max_position_embeddings": 77, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "dropout": 0.0}
BETAS = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear", "num_train_timesteps": 1000, "clip_sample": False,
         "set_alpha_to_one": False, "skip_prk_steps": True, "steps_offset": 1}

# The models on the hub: configurations of stable-diffusion-v1-5, stable-diffusion-2-1 and stable-diffusion-xl-base-1.0.
MODELS = {
    "v1": {
        "pipeline": "StableDiffusionPipeline",
        "unet": {**LEVELS, "block_out_channels": (320, 640, 1280, 1280), "attention_head_dim": 8, "cross_attention_dim": 768, "sample_size": 64},
        "vae": {**VAE, "block_out_channels": (128, 256, 512, 512), "sample_size": 512, "scaling_factor": 0.18215},
        "text_encoder": {**TEXT, "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
                         "hidden_act": "quick_gelu", "projection_dim": 768},
        "scheduler": ("PNDMScheduler", BETAS),
    },
    "v2": {
        "pipeline": "StableDiffusionPipeline",
        "unet": {**LEVELS, "block_out_channels": (320, 640, 1280, 1280), "attention_head_dim": (5, 10, 20, 20), "cross_attention_dim": 1024,
                 "sample_size": 96, "use_linear_projection": True, "upcast_attention": True},
        "vae": {**VAE, "block_out_channels": (128, 256, 512, 512), "sample_size": 768, "scaling_factor": 0.18215},
        "text_encoder": {**TEXT, "hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16, "num_hidden_layers": 23,
                         "hidden_act": "gelu", "projection_dim": 512},
        "scheduler": ("DDIMScheduler", {**BETAS, "prediction_type": "v_prediction"}),
    },
    "xl": {
        "pipeline": "StableDiffusionXLPipeline",
        "unet": {**XL_LEVELS, "block_out_channels": (320, 640, 1280), "attention_head_dim": (5, 10, 20), "cross_attention_dim": 2048,
                 "transformer_layers_per_block": (1, 2, 10), "projection_class_embeddings_input_dim": 2816, "sample_size": 128},
        "vae": {**VAE, "block_out_channels": (128, 256, 512, 512), "sample_size": 1024, "scaling_factor": 0.13025},
        "text_encoder": {**TEXT, "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12,
                         "hidden_act": "quick_gelu", "projection_dim": 768},
        "text_encoder_2": {**TEXT, "hidden_size": 1280, "intermediate_size": 5120, "num_attention_heads": 20, "num_hidden_layers": 32,
                           "hidden_act": "gelu", "projection_dim": 1280},
        "scheduler": ("EulerDiscreteScheduler", {**BETAS, "timestep_spacing": "leading", "interpolation_type": "linear", "prediction_type": "epsilon",
                                                 "sample_max_value": 1.0, "use_karras_sigmas": False, "trained_betas": None}),
    },
}
# What makes the models small.
SMALL = {
    "unet": {"block_out_channels": (64, 128, 128, 128)}, "vae": {"block_out_channels": (32, 32, 64, 64)},
    "text_encoder": {"vocab_size": 100, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 1},
    "text_encoder_2": {"vocab_size": 100, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 2, "num_hidden_layers": 10,
                       "projection_dim": 128},
}
SMALL_OF = {
    "v1": {"unet": {"cross_attention_dim": 64}, "text_encoder": {"num_hidden_layers": 2, "projection_dim": 64}},
    "v2": {"unet": {"cross_attention_dim": 64, "attention_head_dim": (1, 2, 2, 2)}},
    "xl": {"unet": {"block_out_channels": (64, 128, 128), "cross_attention_dim": 192, "attention_head_dim": (1, 2, 2),
                    "transformer_layers_per_block": (1, 2, 3), "projection_class_embeddings_input_dim": 128 + 6 * 256},
           "text_encoder": {"num_hidden_layers": 2, "projection_dim": 64}},
}
CLASSES = {"unet": "UNet2DConditionModel", "vae": "AutoencoderKL", "text_encoder": "CLIPTextModel", "text_encoder_2": "CLIPTextModelWithProjection"}
# Tensors that a checkpoint may have besides its components', and that diffusers leaves out: prefix, and names.
BESIDE = {
    "v1": ("cond_stage_model.transformer.", ("text_model.embeddings.position_ids",)),
    "v2": ("cond_stage_model.model.", ("logit_scale", "text_projection", "attn_mask", "transformer.resblocks.23.attn.in_proj_weight",
                                       "transformer.resblocks.23.attn.in_proj_bias", "transformer.resblocks.23.mlp.c_fc.weight")),
    "xl": ("conditioner.embedders.1.model.", ("logit_scale", "attn_mask")),
}


def parts_of(model):
    return [name for name in CLASSES if name in model]


def small(kind):
    return {name: {**value, **SMALL[name], **SMALL_OF[kind].get(name, {})} if name in CLASSES else value for name, value in MODELS[kind].items()}


def make_part(name, config):
    if name.startswith("text_encoder"):
        return getattr(transformers, CLASSES[name])(transformers.CLIPTextConfig(**config))
    return getattr(diffusers, CLASSES[name])(**config)


def randomize(part):
    """Gives all tensors other numbers, those of norms and biases, too."""
    for parameter in part.parameters():
        torch.nn.init.uniform_(parameter)
    return part


def tokenizer(folder):
    folder.mkdir(exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({"<|startoftext|>": 0, "<|endoftext|>": 1, "a</w>": 2}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return transformers.CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"))


def index_of(kind):
    parts = {name: ["transformers" if name.startswith("text") else "diffusers", CLASSES[name]] for name in parts_of(MODELS[kind])}
    return {"_class_name": MODELS[kind]["pipeline"], **parts}


def same(first, second):
    return first.keys() == second.keys() and all(first[k].dtype == second[k].dtype and torch.equal(first[k], second[k]) for k in first)


def write_single(kind, folder, dtype):
    """Makes a small pipeline of random weights, and of that a single file, by the direction that the golden files hold. Returns both."""
    model, whole, single = small(kind), folder / "whole", folder / "single.safetensors"
    torch.manual_seed(1)
    for name in parts_of(model):
        randomize(make_part(name, model[name])).to(dtype).save_pretrained(whole / name)
    (whole / "model_index.json").write_text(json.dumps(index_of(kind)))
    single.write_bytes(cat(whole, "single_file.safetensors"))
    tensors = safetensors.torch.load_file(single)
    prefix, names = BESIDE[kind]
    tensors.update({prefix + name: torch.arange(192 if "in_proj" in name else 64).to(dtype) for name in names})
    if kind == "v2":
        tensors[prefix + "text_projection"] = torch.zeros(64, 64)
    tensors.update({"model_ema.decay": torch.tensor(0.5), "first_stage_model.loss.logvar": torch.zeros(1, dtype=dtype)})
    safetensors.torch.save_file(tensors, single)
    class_name, config = model["scheduler"]
    getattr(diffusers, class_name).from_config(config).save_pretrained(whole / "scheduler")
    index = {**index_of(kind), "scheduler": ["diffusers", class_name], "tokenizer": ["transformers", "CLIPTokenizer"]}
    if kind == "xl":
        index["tokenizer_2"] = index["tokenizer"]
    (whole / "model_index.json").write_text(json.dumps(index))
    return whole, single


def settings(config):
    """What a configuration says, without where it came from."""
    config = config.to_dict() if hasattr(config, "to_dict") else config
    config = {k: list(v) if isinstance(v, tuple) else v for k, v in dict(config).items()}
    return {k: v for k, v in config.items() if not k.startswith("_") and k not in ("dtype", "torch_dtype", "transformers_version")}


def check_settings(ours, theirs, what):
    ours, theirs = settings(ours), settings(theirs)
    check(ours == theirs, f"{what}: {[(key, ours.get(key), theirs.get(key)) for key in {*ours, *theirs} if ours.get(key) != theirs.get(key)]}")


def check_opens(kind, dtype):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        whole, single = write_single(kind, folder, dtype)
        made = wfs("cp", "-r", single, "diffusers", folder)
        if not check(made.returncode == 0, f"{kind}: diffusers/: {made.stderr.decode()}"):
            return
        tokenizers = {name: tokenizer(folder / name) for name in (("tokenizer", "tokenizer_2") if kind == "xl" else ("tokenizer",))}
        pipeline = getattr(diffusers, MODELS[kind]["pipeline"])
        opened = pipeline.from_pretrained(folder / "diffusers", torch_dtype=dtype, **tokenizers)
        expected = pipeline.from_single_file(str(single), config=str(whole), torch_dtype=dtype, **tokenizers)
        for name in parts_of(MODELS[kind]):
            ours, theirs = getattr(opened, name), getattr(expected, name)
            check(same(ours.state_dict(), theirs.state_dict()), f"{kind} {name}: other tensors than from_single_file()")
            shown = safetensors.torch.load_file(next((folder / "diffusers" / name).glob("*.safetensors")))
            check(same(shown, safetensors.torch.load_file(next((whole / name).glob("*.safetensors")))), f"{kind} {name}: other tensors than saved")
            check_settings(ours.config, theirs.config, f"{kind} {name}")
        check(type(opened.scheduler) is type(expected.scheduler), f"{kind}: {type(opened.scheduler)}")
        check_settings(opened.scheduler.config, expected.scheduler.config, f"{kind} scheduler")


def write_sparse(path, tensors, head=None, size=None):
    """Writes a safetensors file of F16 zeros that takes no space, or one with these first bytes and this size."""
    if head is None:
        header, offset = {}, 0
        for name, shape in sorted(tensors.items()):
            end = offset + 2 * int(torch.Size(shape).numel())
            header[name], offset = {"dtype": "F16", "shape": list(shape), "data_offsets": [offset, end]}, end
        text = json.dumps(header).encode()
        head, size = struct.pack("<Q", len(text)) + text, 8 + len(text) + offset
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(size)


def first_bytes(source, path):
    """The header of a safetensors file that is too large to be read whole."""
    with subprocess.Popen([WFS, "cat", str(source), path], stdout=subprocess.PIPE) as cat:
        length = cat.stdout.read(8)
        head = length + cat.stdout.read(struct.unpack("<Q", length)[0])
        cat.kill()
    return head


def shapes(head):
    header = json.loads(head[8:])
    header.pop("__metadata__", None)
    return {name: tuple(tensor["shape"]) for name, tensor in header.items()}


def read_config(name, text):
    """A component's configuration with its class's defaults."""
    config = json.loads(text)
    if name.startswith("text"):
        check(config.pop("architectures", None) == [CLASSES[name]], f"{name}: {config}")
        return transformers.CLIPTextConfig.from_dict(config)
    with torch.device("meta"):
        return getattr(diffusers, CLASSES[name]).from_config(config).config


def check_real(kind):
    """A checkpoint with the shapes of the model on the hub has its configurations; its weights are zeros on a sparse disk."""
    with tempfile.TemporaryDirectory() as folder:
        folder, model, expected = pathlib.Path(folder), MODELS[kind], {}
        for name in parts_of(model):
            with torch.device("meta"):
                expected[name] = make_part(name, model[name])
            file = "model" if name.startswith("text") else "diffusion_pytorch_model"
            write_sparse(folder / "whole" / name / f"{file}.safetensors", {k: v.shape for k, v in expected[name].state_dict().items()})
        (folder / "whole" / "model_index.json").write_text(json.dumps(index_of(kind)))
        head = first_bytes(folder / "whole", "single_file.safetensors")
        end = max(t["data_offsets"][1] for t in json.loads(head[8:]).values())
        single = folder / "single.safetensors"
        write_sparse(single, None, head, len(head) + end)
        for name, part in expected.items():
            check_settings(read_config(name, cat(single, f"diffusers/{name}/config.json")), part.config, f"{kind} {name}")
            file = "model" if name.startswith("text") else "diffusion_pytorch_model"
            found = shapes(first_bytes(single, f"diffusers/{name}/{file}.safetensors"))
            check(found == {k: tuple(v.shape) for k, v in part.state_dict().items()}, f"{kind} {name}: other names or shapes")
        class_name, wanted = model["scheduler"]
        scheduler = getattr(diffusers, class_name)
        shown = json.loads(cat(single, "diffusers/scheduler/scheduler_config.json"))
        check_settings(scheduler.from_config(shown).config, scheduler.from_config(wanted).config, f"{kind} scheduler")


def main():
    diffusers.utils.logging.set_verbosity_error()
    diffusers.utils.logging.disable_progress_bar()
    for kind in MODELS:
        for dtype in (torch.float16, torch.float32):
            check_opens(kind, dtype)
        check_real(kind)
    done()


main()
