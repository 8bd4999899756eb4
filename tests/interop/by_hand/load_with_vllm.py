"""vLLM's own loader fills its model from each directory of compressed-tensors/: it finds every parameter, and each one has the bytes of the file.

By hand, because vLLM takes 9 GB:

    python3 -m venv ENV && ENV/bin/pip install vllm==0.33.0
    WFS=build/wfs ENV/bin/python tests/interop/by_hand/load_with_vllm.py

vLLM chooses the kernels for a GPU while it makes a model; here each one says that it runs, because none does.
"""
import os
import pathlib
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", VLLM_LOGGING_LEVEL="ERROR", MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import torch  # noqa: E402
import transformers  # noqa: E402
import vllm.platforms  # noqa: E402
from interop import check, done, wfs  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from vllm.platforms.cpu import CpuPlatform  # noqa: E402

vllm.platforms._current_platform = CpuPlatform()

import vllm.model_executor.kernels.linear as linear  # noqa: E402
from vllm.config import set_current_vllm_config  # noqa: E402
from vllm.distributed import ensure_model_parallel_initialized, init_distributed_environment  # noqa: E402
from vllm.engine.arg_utils import EngineArgs  # noqa: E402
from vllm.model_executor.model_loader import get_model_loader  # noqa: E402
from vllm.model_executor.model_loader.utils import initialize_model  # noqa: E402
from vllm.utils.torch_utils import set_default_torch_dtype  # noqa: E402

SMALL = dict(hidden_size=256, intermediate_size=384, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=64, vocab_size=64,
             max_position_embeddings=64, dtype="bfloat16")  # fmt: skip
MODELS = {
    "Llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig(**SMALL, tie_word_embeddings=False)),
    "Qwen2": (transformers.Qwen2ForCausalLM, transformers.Qwen2Config(**SMALL, tie_word_embeddings=True)),
}
SCHEMES = ("FP8_DYNAMIC", "FP8_BLOCK", "W8A8", "W8A16", "W4A16", "NVFP4A16", "MXFP4A16", "oneshot/FP8_DYNAMIC", "oneshot/W4A16")
PARTS = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


def let_kernels_be_chosen():
    yes = classmethod(lambda *_, **__: (True, None))
    for name, by_platform in vars(linear).items():
        if name.startswith("_POSSIBLE"):
            by_platform[vllm.platforms.PlatformEnum.CPU] = by_platform[vllm.platforms.PlatformEnum.CUDA]
    for kernel in (value for name, value in vars(linear).items() if isinstance(value, type) and name.endswith("Kernel")):
        for base in kernel.__mro__[:-1]:
            for method in {"is_supported", "can_implement"} & set(vars(base)):
                setattr(base, method, yes)


def load(directory):
    """vLLM's model, and the names of the parameters that its loader filled."""
    arguments = EngineArgs(model=str(directory), skip_tokenizer_init=True, enforce_eager=True, dtype="bfloat16", max_model_len=64)
    config = arguments.create_engine_config()
    with set_current_vllm_config(config), set_default_torch_dtype(torch.bfloat16):
        if not torch.distributed.is_initialized():
            init_distributed_environment(1, 0, "env://", 0, "gloo")
            ensure_model_parallel_initialized(1, 1)
        model = initialize_model(vllm_config=config, model_config=config.model_config)
        loaded = model.load_weights(get_model_loader(config.load_config).get_all_weights(config.model_config, model))
    return model, loaded


def stored_as(name, stored):
    """The tensors of the file that a parameter holds one after the other."""
    for joined, parts in PARTS.items():
        if f".{joined}." in name:
            return [stored[name.replace(joined, part)] for part in parts]
    return [stored[name]]


def compare(directory, what):
    model, loaded = load(directory)
    stored = load_file(directory / "model.safetensors")
    parameters = {name: value.data for name, value in model.named_parameters() if ".attn." not in name}
    check(set(parameters) <= loaded, f"{what}: not loaded: {sorted(set(parameters) - loaded)}")
    for name, value in parameters.items():
        parts = stored_as(name, stored)
        if name.endswith("weight_shape"):
            parts = parts[-1:]  # vLLM keeps that of the last part
        joined = next((whole for axis in range(parts[0].dim()) if (whole := torch.cat(parts, axis)).shape == value.shape), torch.cat(parts))
        check(torch.equal(joined.to(value.dtype).reshape(-1).view(torch.uint8), value.reshape(-1).view(torch.uint8)), f"{what}: {name} has other bytes")


def main():
    let_kernels_be_chosen()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, (kind, config) in MODELS.items():
            torch.manual_seed(7)
            model = kind(config).bfloat16()
            with torch.no_grad():
                for weight in model.parameters():
                    weight.normal_(0, 0.1)
            model.save_pretrained(folder / name)
            for scheme in SCHEMES:
                copy = folder / "engines" / name / scheme
                copy.mkdir(parents=True)
                result = wfs("cp", "-r", folder / name, f"compressed-tensors/{scheme}", copy)
                if check(result.returncode == 0, f"{name}, {scheme}: {result.stderr.decode()}"):
                    compare(copy / copy.name, f"{name}, {scheme}")
    done()


if __name__ == "__main__":
    main()
