"""rclone, wget and fsspec read the indices of `wfs serve`: listings, a mount, and copies."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import fsspec
from interop import ROOT, cat, check, done, serving, skip


def rclone(*arguments):
    return subprocess.run(["rclone", "--config", os.devnull, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def is_mounted_soon(directory):
    for _ in range(100):
        if os.path.ismount(directory):
            return True
        time.sleep(0.1)
    return False


def check_mount(address, model, directory):
    directory.mkdir()
    with subprocess.Popen(["rclone", "--config", os.devnull, "mount", "--http-url", address, ":http:", directory]) as mount:
        try:
            if not check(is_mounted_soon(directory), "rclone mounts the server"):
                return
            wanted = cat(model, "gguf/model-Q4_K_M.gguf")
            file = directory / "acme" / "Tiny-GGUF" / "Tiny-Q4_K_M.gguf"
            check(file.stat().st_size == len(wanted), "a mounted file has its exact size")
            with file.open("rb") as opened:
                opened.seek(1000)
                check(opened.read(5000) == wanted[1000:6000], "rclone's mount reads a range")
            check(file.read_bytes() == wanted, "rclone's mount reads a computed file")
            check((directory / "acme" / "Tiny-MLX-4bit" / "model.safetensors").read_bytes() == cat(model, "mlx/4bit/model.safetensors"),
                  "rclone's mount has the directories for engines")
        finally:
            mount.terminate()
    subprocess.run(["fusermount3", "-uz", directory], check=False, capture_output=True)


def check_copies(address, model, scratch):
    sizes = dict(reversed(line.split()) for line in rclone("ls", "--http-url", address, ":http:acme/Tiny-MLX-4bit").splitlines())
    check(int(sizes.get("model.safetensors", 0)) == len(cat(model, "mlx/4bit/model.safetensors")), "rclone ls has exact sizes")
    rclone("copy", "--http-url", address, ":http:acme/Tiny-MLX-4bit", scratch / "rclone")
    subprocess.run(["wget", "--quiet", "--recursive", "--no-parent", "--no-host-directories", "--cut-dirs=2", "--reject=index.html*", "--directory-prefix",
                    scratch / "wget", address + "/acme/Tiny-MLX-4bit/"], check=True)
    for tool in "rclone", "wget":
        folder = scratch / tool
        check({path.name for path in folder.iterdir()} == set(sizes), f"{tool} copies every file")
        check(all((folder / name).read_bytes() == cat(model, f"mlx/4bit/{name}") for name in sizes), f"{tool} copies the bytes of mlx/4bit/")


def check_fsspec(address, model):
    try:
        files = fsspec.filesystem("http")
    except ImportError as error:  # aiohttp comes with other packages, if at all
        print(f"left out: fsspec: {error}")
        return
    names = {path.rpartition("/")[2] for path in files.ls(address + "/acme/Tiny/", detail=False)}
    check({"config.json", "model.safetensors"} <= names, "fsspec lists a model")
    with files.open(address + "/acme/Tiny-GGUF/Tiny-Q8_0.gguf") as file:
        file.seek(1000)
        check(file.read(5000) == cat(model, "gguf/model-Q8_0.gguf")[1000:6000], "fsspec reads a range")


def main():
    for program in ("rclone", "wget", "fusermount3"):
        if shutil.which(program) is None:
            skip(f"{program} is missing")
    if not os.path.exists("/dev/fuse"):
        skip("/dev/fuse is missing")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        model = scratch / "tiny-llama"
        subprocess.run([sys.executable, ROOT / "tests" / "data" / "make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
        with serving(f"acme/Tiny={model}") as address:
            check_mount(address, model, scratch / "mnt")
            check_copies(address, model, scratch)
            check_fsspec(address, model)
    done()


main()
