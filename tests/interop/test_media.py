"""The files of diffusion and speech models are, byte for byte, what the tools of their programs wrote: those of ComfyUI-GGUF and
stable-diffusion.cpp, and diffusers' scripts."""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import diffusers_names
from interop import WFS, check, done, golden_checkpoints

# Variants of the expected files, by the program that wrote them: the path of a variant in the tree.
KINDS = {
    "ComfyUI-GGUF": {"auto": "model.gguf", "*": "gguf/model-{}.gguf"},
    "diffusers": {"single": "single_file.safetensors", "single-half": "single_file-fp16.safetensors"},
}
# Whose files are not made yet.
OTHER_KINDS = ("whisper", "tiny.pt")


def virtual_file(variant):
    for paths in KINDS.values():
        if variant in paths:
            return paths[variant]
    if variant.startswith("sdcpp-"):
        return f"sdcpp/model-{variant.removeprefix('sdcpp-')}.gguf"
    return KINDS["ComfyUI-GGUF"]["*"].format(variant)


def digest(source, path, scratch):
    """The SHA-256 of a virtual file, which is also left in `scratch`; or why there is none."""
    with open(scratch, "wb") as out:
        made = subprocess.run([WFS, "cat", source, path], stdout=out, stderr=subprocess.PIPE)
    return hashlib.sha256(scratch.read_bytes()).hexdigest() if made.returncode == 0 else made.stderr.decode().strip()


def check_components(checkpoints, expected_folder, scratch):
    """A transformer under diffusers' names becomes the GGUF of its makers' file."""
    for name in diffusers_names.CLASSES:
        expected = json.loads((expected_folder / f"{name}.json").read_text())
        with tempfile.TemporaryDirectory() as folder:
            diffusers_names.write_component(pathlib.Path(folder, "transformer"), checkpoints[name])
            pathlib.Path(folder, "model_index.json").write_text('{"_class_name": "DiffusionPipeline"}')
            for variant in ("auto", "Q8_0", "Q4_K_S"):
                found = digest(folder, f"transformer/{virtual_file(variant)}", scratch)
                check(found == expected[variant]["sha256"], f"{name} in diffusers' names, {variant}: {found}")


def check_diffusers(checkpoints):
    """The makers' file becomes a transformer that diffusers opens, with the tensors that its from_single_file() has."""
    for name, (class_name, convert) in diffusers_names.CLASSES.items():
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            made = subprocess.run([WFS, "cp", "-r", checkpoints[name], "diffusers/transformer", folder], capture_output=True)
            if not check(made.returncode == 0, f"{name}: diffusers/: {made.stderr.decode()}"):
                continue
            shown = diffusers_names.read(folder / "transformer" / "diffusion_pytorch_model.safetensors")
            check(shown == convert(diffusers_names.read(checkpoints[name])), f"{name}: diffusers/ has other tensors than the script writes")
            try:
                import diffusers
                import torch
            except ImportError:
                print("diffusers is not installed: nothing opens diffusers/")
                continue
            model = getattr(diffusers, class_name)
            dtype = torch.bfloat16 if next(iter(shown.values()))[0] == "BF16" else torch.float16
            opened = model.from_pretrained(folder / "transformer", torch_dtype=dtype).state_dict()
            bits = {key: tensor.contiguous().view(torch.int16).numpy().tobytes() for key, tensor in opened.items()}
            check(bits == {key: tensor[2] for key, tensor in shown.items()}, f"{name}: from_pretrained() has other tensors than diffusers/")
            if class_name == "FluxTransformer2DModel":
                continue  # whose from_single_file() takes the width of the real model alone
            single = model.from_single_file(str(checkpoints[name]), config=str(folder / "transformer"), torch_dtype=dtype).state_dict()
            check(opened.keys() == single.keys() and all(torch.equal(opened[key], single[key]) for key in opened),
                  f"{name}: from_pretrained() and from_single_file() differ")


def main():
    if not os.environ.get("WFS_GOLDEN"):
        print("no golden checkpoints: WFS_GOLDEN is not set")
        sys.exit(0)
    checkpoints, compare = golden_checkpoints("media")
    expected_folder = pathlib.Path(compare).parent / "expected-media"
    scratch = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"wfs-media-{os.getpid()}"
    for name, source in checkpoints.items():
        for variant, expected in json.loads((expected_folder / f"{name}.json").read_text()).items():
            if name.startswith(OTHER_KINDS) or variant.startswith(OTHER_KINDS):
                continue
            found = digest(source, virtual_file(variant), scratch)
            what = f"{name} {variant}: {found}"
            if found != expected["sha256"] and "kv" in expected and len(found) == len(expected["sha256"]):
                what = subprocess.run([sys.executable, compare, name, variant, scratch], capture_output=True, text=True,
                                      env={**os.environ, "GOLDEN_EXPECTED": str(expected_folder)}).stdout
            check(found == expected["sha256"], what)
    check_components(checkpoints, expected_folder, scratch)
    check_diffusers(checkpoints)
    scratch.unlink(missing_ok=True)
    done()


main()
