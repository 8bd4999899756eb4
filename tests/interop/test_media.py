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
    scratch.unlink(missing_ok=True)
    done()


main()
