"""rclone, wget, fsspec and davfs2 read what `wfs serve` lists, in its index pages and by WebDAV: mounts, and copies."""
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


def check_files(model, directory, mount):
    wanted = cat(model, "gguf/model-Q4_K_M.gguf")
    file = directory / "acme" / "Tiny-GGUF" / "Tiny-Q4_K_M.gguf"
    check(file.name in os.listdir(file.parent), f"{mount} lists a model")
    check(file.stat().st_size == len(wanted), f"{mount} has the exact size of a file")
    with file.open("rb") as opened:
        opened.seek(1000)
        check(opened.read(5000) == wanted[1000:6000], f"{mount} reads a range")
    check(file.read_bytes() == wanted, f"{mount} reads a computed file")
    check((directory / "acme" / "Tiny-MLX-4bit" / "model.safetensors").read_bytes() == cat(model, "mlx/4bit/model.safetensors"),
          f"{mount} has the directories for engines")


def check_mount(model, directory, *remote):
    directory.mkdir()
    mount = "rclone's mount of " + remote[-1]
    with subprocess.Popen(["rclone", "--config", os.devnull, "mount", *remote, directory]) as running:
        try:
            if check(is_mounted_soon(directory), f"{mount} appears"):
                check_files(model, directory, mount)
        finally:
            running.terminate()
    subprocess.run(["fusermount3", "-uz", directory], check=False, capture_output=True)


def check_davfs(address, model, scratch):
    if os.geteuid() != 0 or shutil.which("mount.davfs") is None:
        print("left out: davfs2: it is missing, or this is not root")
        return
    directory, configuration = scratch / "davfs", scratch / "davfs2.conf"
    directory.mkdir()
    # The kernel asks for more entries of a directory at a time than the buffer of davfs2's default has room for.
    configuration.write_text("ask_auth 0\nbuf_size 256\n")
    subprocess.run(["mount", "-t", "davfs", "-o", f"ro,conf={configuration}", address, directory], check=True, capture_output=True)
    try:
        check_files(model, directory, "davfs2's mount")
    finally:
        subprocess.run(["umount", directory], check=True, capture_output=True)


def check_token(model, scratch):
    (scratch / "token").write_text("secret")
    with serving("--token-file", scratch / "token", f"acme/Tiny={model}") as address:
        password = rclone("obscure", "secret").strip()
        text = rclone("cat", "--webdav-url", address, "--webdav-user", "any", "--webdav-pass", password, ":webdav:acme/Tiny/config.json")
        check(text.encode() == cat(model, "hf/config.json"), "the token is the password of WebDAV")


def check_copies(address, model, scratch):
    sizes = dict(reversed(line.split()) for line in rclone("ls", "--http-url", address, ":http:acme/Tiny-MLX-4bit").splitlines())
    dates = rclone("lsl", "--webdav-url", address, ":webdav:acme/Tiny-MLX-4bit")
    check(sizes == {line.split()[-1]: line.split()[0] for line in dates.splitlines()}, "rclone lists the same by WebDAV")
    check(int(sizes.get("model.safetensors", 0)) == len(cat(model, "mlx/4bit/model.safetensors")), "rclone ls has exact sizes")
    rclone("copy", "--http-url", address, ":http:acme/Tiny-MLX-4bit", scratch / "rclone")
    rclone("copy", "--webdav-url", address, ":webdav:acme/Tiny-MLX-4bit", scratch / "rclone by WebDAV")
    subprocess.run(["wget", "--quiet", "--recursive", "--no-parent", "--no-host-directories", "--cut-dirs=2", "--reject=index.html*", "--directory-prefix",
                    scratch / "wget", address + "/acme/Tiny-MLX-4bit/"], check=True)
    for tool in "rclone", "rclone by WebDAV", "wget":
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
            check_mount(model, scratch / "http", "--http-url", address, ":http:")
            check_mount(model, scratch / "webdav", "--webdav-url", address, ":webdav:")
            check_davfs(address, model, scratch)
            check_copies(address, model, scratch)
            check_fsspec(address, model)
        check_token(model, scratch)
    done()


main()
