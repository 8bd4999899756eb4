"""Clients of OCI registries pull images of models from `wfs serve`: skopeo and umoci, and podman and containerd where they can mount them."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from interop import ROOT, cat, check, done, serving, skip


def run(*arguments):
    return subprocess.run([*map(str, arguments)], check=True, capture_output=True, text=True).stdout


def has_files(folder, model, directory):
    names = {path.name for path in folder.iterdir()}
    return {"config.json", "model.safetensors"} <= names and all((folder / name).read_bytes() == cat(model, f"{directory}/{name}") for name in names)


def check_skopeo(registry, model, scratch):
    for tag, directory in (("hf", "hf"), ("mlx-4bit", "mlx/4bit")):
        layout, unpacked = scratch / "oci", scratch / f"unpacked-{tag}"
        run("skopeo", "copy", "--src-tls-verify=false", "--src-creds=any:secret", f"docker://{registry}/acme/tiny:{tag}", f"oci:{layout}:{tag}")
        run("umoci", "unpack", "--rootless", "--image", f"{layout}:{tag}", unpacked)
        check(has_files(unpacked / "rootfs" / "models", model, directory), f"umoci unpacks {directory}/ from a copy of skopeo")
    every = scratch / "every"
    run("skopeo", "copy", "--all", "--src-tls-verify=false", "--src-creds=any:secret", f"docker://{registry}/acme/tiny:Q8_0", f"oci:{every}:Q8_0")
    index = json.loads(run("skopeo", "inspect", "--raw", f"oci:{every}:Q8_0"))
    check({entry["platform"]["architecture"] for entry in index["manifests"]} == {"amd64", "arm64"}, "skopeo copies an image for all platforms")
    tags = json.loads(run("skopeo", "list-tags", "--tls-verify=false", "--creds=any:secret", f"docker://{registry}/acme/tiny"))["Tags"]
    check({"hf", "Q4_K_M", "mlx-4bit", "FP8_DYNAMIC"} <= set(tags), "skopeo lists the tags")
    check(run("skopeo", "inspect", "--tls-verify=false", "--creds=any:secret", "--format", "{{.Digest}}", f"docker://{registry}/acme/tiny:hf").startswith("sha256:"),
          "skopeo inspects a tag")


def check_podman(registry, model, scratch):
    storage = ("podman", "--root", scratch / "storage", "--runroot", scratch / "run", "--storage-driver", "vfs")
    image = f"{registry}/acme/tiny:Q4_K_M"
    try:
        run(*storage, "pull", "--tls-verify=false", "--creds=any:secret", image)
        mounted = pathlib.Path(run(*storage, "image", "mount", image).strip())
    except subprocess.CalledProcessError as error:
        print(f"left out: podman: {error.stderr.strip().splitlines()[-1]}")
        return
    check((mounted / "models" / "Tiny-Q4_K_M.gguf").read_bytes() == cat(model, "gguf/model-Q4_K_M.gguf"), "podman mounts an image with a computed file")
    run(*storage, "image", "unmount", image)


@contextlib.contextmanager
def containerd(scratch):
    """A containerd of its own; gives what begins a command of ctr."""
    socket, config = scratch / "containerd.sock", scratch / "containerd.toml"
    config.write_text(f"""version = 2
root = "{scratch}/containerd"
state = "{scratch}/containerd-state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
grpc.address = "{socket}"
ttrpc.address = "{socket}.ttrpc"
""")
    with open(scratch / "containerd.log", "w") as log, subprocess.Popen(["containerd", "-c", config], stdout=log, stderr=log) as server:
        try:
            ctr = ("ctr", "--address", socket)
            for _ in range(100):
                if subprocess.run([*ctr, "version"], capture_output=True).returncode == 0 or server.poll() is not None:
                    break
                time.sleep(0.1)
            yield ctr
        finally:
            server.terminate()


def check_containerd(registry, model, scratch):
    with containerd(scratch) as ctr:
        for tag, snapshotter in (("Q4_K_M", "native"), ("mlx-4bit", "overlayfs")):
            image, target = f"{registry}/acme/tiny:{tag}", scratch / f"ctr-{tag}"
            target.mkdir()
            try:
                run(*ctr, "images", "pull", "--plain-http", "--user", "any:secret", "--snapshotter", snapshotter, image)
                run(*ctr, "images", "mount", "--snapshotter", snapshotter, image, target)
            except subprocess.CalledProcessError as error:
                print(f"left out: containerd's {snapshotter}: {error.stderr.strip().splitlines()[-1]}")
                continue
            if tag == "Q4_K_M":
                right = (target / "models" / "Tiny-Q4_K_M.gguf").read_bytes() == cat(model, "gguf/model-Q4_K_M.gguf")
            else:
                right = has_files(target / "models", model, "mlx/4bit")
            check(right, f"ctr mounts {tag} by {snapshotter}")
            run(*ctr, "images", "unmount", target)


def main():
    for program in ("skopeo", "umoci"):
        if shutil.which(program) is None:
            skip(f"{program} is missing")
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        model, token = scratch / "tiny-llama", scratch / "token"
        run(sys.executable, ROOT / "tests" / "data" / "make.py", "sample", model)
        token.write_text("secret")
        os.environ["XDG_CACHE_HOME"] = os.path.join(scratch, "cache")
        with serving("--token-file", token, f"acme/Tiny={model}") as address:
            registry = address.removeprefix("http://")
            check_skopeo(registry, model, scratch)
            if shutil.which("podman") is not None:
                check_podman(registry, model, scratch)
            if os.geteuid() == 0 and shutil.which("containerd") is not None and shutil.which("ctr") is not None:
                check_containerd(registry, model, scratch)
            else:
                print("left out: containerd: not root, or containerd and ctr are missing")
    done()


main()
