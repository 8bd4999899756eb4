"""Every command that README and docs/ show is typed here, as a reader would: line after line, in a home of its own.

MODEL and the other names in capitals are samples, hf://ORG/NAME and example.org are servers on this machine, and programs that are not
wfs are stood in for: one that is named fails unless the files in its arguments are there and can be read. A command that fails, or
names a file that is not there, fails the test.

The convention: a block of `sh` is typed whole, in the `console` blocks the lines that begin with "$ ". Blocks of other kinds are output,
files or other languages."""
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

from interop import ROOT, WFS, check, done, serving, skip

sys.path.insert(0, str(ROOT / "tests" / "data"))
import make  # noqa: E402

# Programs that are stood in for, and the file that each leaves where it is told to.
PROGRAMS = """llama-cli llama-server llama-imatrix llama-perplexity vllm mlx_lm.generate mlx_lm.server sd whisper-cli hf ollama skopeo
              systemctl nginx cosign kubectl sbatch squeue ray pip parallel openssl rclone wget aws podman""".split()
STAND_IN = """#!/bin/sh
# Reads a byte of each file that is named, and leaves the one that -o names.
[ "${0##*/}" != sbatch ] || echo 17
[ "${0##*/}" != openssl ] || echo 0123456789abcdef
output=
while [ $# -gt 0 ]; do
    case $1 in
    -o | --output-signature | --bundle) output=$2; shift ;;
    *{*) ;;
    /*/model*|/*.gguf|/*/hf|/*/FP8_DYNAMIC|/*bit|/*.bin) [ -d "$1" ] || head -c 1 "$1" >/dev/null || exit 1; ls "$1" >/dev/null || exit 1 ;;
    esac
    shift
done
[ -z "$output" ] || cp "$HOME/inputs/imatrix.gguf" "$output"
"""
# What a reader has elsewhere is below the home here. The first that fits counts.
PLACES = [("~/venv/bin/pip install .", "true"), ("~/venv/bin/python -c", "$PYTHON -c"), ("python3 -m venv ~/venv", "true"), ("scripts/setup", "true"),
          ("sudo ", ""), ("https://example.org", "$WEB"), ("/etc/", "$HOME/etc/"), ("/srv/", "$HOME/srv/"), ("/shared/", "$HOME/srv/"), ("/mnt/", "$HOME/mnt/"),
          ("meson install -C build", "true"), (" /models/", " $HOME/models/"), ("http://HOST:", "http://127.0.0.1:"), ("http://server:", "http://127.0.0.1:"),
          ("--host CACHE", "--host localhost"), ("0.0.0.0:8090", "127.0.0.1:8090"), ("python3 -m sglang.launch_server", "vllm"),
          ("python3 -m model_signing", "cosign"), ("python3 -c", "$PYTHON -c"), ("examples/", f"{ROOT}/examples/"), ("cat token", "cat $HOME/etc/wfs/token")]
# Lines that need what no stand-in gives, and why.
NOT_TYPED = {"s3://models": "a bucket", "from transformers import": "test_hub.py", "examples/ray/convert.py": "test_ray.py", "examples/nginx": "test_fleet.py",
             "examples/slurm": "test_slurm.py", "squeue": "test_slurm.py", "wfs cp --join": "test_parallel.py", "wfs diff recipe.yaml OUT": "OUT is mergekit's",
             "scripts/demo": "CI", "scripts/test": "CI", "pip install": "python/test_wheel", "PIPELINE transformer/": "a pipeline of Flux"}
HUB = ("Qwen/Qwen2.5-0.5B", "meta-llama/Llama-3.2-1B", "org/b")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *unused):
        pass


def furnish(home):
    """What the pages assume: models at the places that they name."""
    def data(script, *arguments):
        subprocess.run([sys.executable, ROOT / "tests" / "bats" / script, *arguments], check=True)

    models = "models/Llama-3.2-1B models/qwen models/a models/tiny srv/kimi-k2 srv/models/Llama-3.2-1B MODEL tiny-llama SOURCE run/checkpoint-2000"
    for path in [home / name for name in models.split()] + [home / "hub" / f"models--Qwen--{name}" / "snapshots" / "abc" for name in ("Qwen2.5-0.5B", "Qwen3-0.6B")]:
        make.make_sample(path)
        if path.name == "abc":
            (path.parent.parent / "refs").mkdir()
            (path.parent.parent / "refs" / "main").write_text("abc")
    data("make_inputs.py", "seeing", home / "VISION-MODEL")
    (home / "inputs").mkdir()
    data("lora.py", home / "inputs")
    shutil.copytree(home / "inputs" / "fp8", home / "BASE")
    shutil.copytree(home / "inputs" / "fp8-lora", home / "ADAPTER")
    data("diffusion.py", "flux", home / "flux1-dev.safetensors")
    data("diffusion.py", "pipeline", home / "PIPELINE")
    (home / "inputs" / "whisper").mkdir()
    data("whisper.py", home / "inputs" / "whisper")
    shutil.copytree(home / "inputs" / "whisper" / "hf", home / "openai" / "whisper-base")
    for name in ["etc/wfs", "mnt/m", "mnt/llama", "out", "copy", "bin", *(f"ComfyUI/models/{one}" for one in ("unet", "diffusion_models", "text_encoders", "checkpoints"))]:
        (home / name).mkdir(parents=True)
    merge = "merge_method: linear\nmodels: [{model: MODEL, parameters: {weight: 1}}, {model: models/a, parameters: {weight: 1}}]\ndtype: bfloat16\n"
    for name in ("recipe.yaml", "average.yaml"):
        (home / name).write_text(merge)
    kept = home / "models" / "qwen"
    for path in kept.iterdir():
        os.utime(path, (0, 0))  # bytes of an input that was written in this minute are not kept
    for source, path, to, options in ((home / "MODEL", "model.gguf", "other.gguf", []), (kept, "gguf/model-Q4_K_M.gguf", "qwen2.5-0.5b-q4_k_m.gguf", ["-o", "keep=whole"])):
        subprocess.run([WFS, "cp", *options, source, path, home / to], check=True, stderr=subprocess.DEVNULL, env=os.environ | {"HOME": str(home), "XDG_CACHE_HOME": ""})
    matrix(home)
    for name in PROGRAMS:
        (home / "bin" / name).write_text(STAND_IN)
        (home / "bin" / name).chmod(0o755)
    (home / "bin" / "wfs").symlink_to(pathlib.Path(WFS).resolve())


def matrix(home):
    """What the stand-in of llama-imatrix leaves: importances of 1 for each matrix of MODEL, in the tool's older format."""
    listed = subprocess.run([WFS, "cat", home / "other.gguf", "metadata.json"], check=True, capture_output=True).stdout
    columns = {tensor["name"]: tensor["shape"][1] for tensor in json.loads(listed)["tensors"] if len(tensor["shape"]) == 2}
    entries = [struct.pack(f"<i{len(name)}sii{n}f", len(name), name.encode(), 1, n, *[1.0] * n) for name, n in columns.items()]
    (home / "inputs" / "imatrix.gguf").write_bytes(struct.pack("<i", len(entries)) + b"".join(entries))


def blocks(page):
    """The line number and the lines of each block that is typed."""
    for found in re.finditer(r"^```(sh|console)\n(.*?)^```$", page.read_text(), re.M | re.S):
        lines = found[2].splitlines()
        if found[1] == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        yield page.read_text().count("\n", 0, found.start()) + 1, lines


def placed(line):
    for theirs, ours in PLACES:
        line = line.replace(theirs, ours)
    return re.sub(r" \.\.\.$", "", line)


class Reader:
    def __init__(self, home, web, hub):
        self.home, self.servers = home, []
        self.environment = {"HOME": str(home), "PATH": f"{home}/bin:/usr/bin:/bin:/usr/sbin", "HF_HUB_CACHE": str(home / "hub"), "WEB": web, "PYTHON": sys.executable,
                            "HF_ENDPOINT": hub, "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT / "python"),
                            "WFS_LIBRARY": str(pathlib.Path(WFS).resolve().parent / "fs" / "lib" / "libwfs.so.0")}

    def type(self, line, where):
        if any(part in line for part in NOT_TYPED):
            return
        text = placed(line)
        if text.startswith("wfs serve"):
            self.serve(text, where)
            return
        result = subprocess.run(["bash", "-uc", text], cwd=self.home, env=self.environment, capture_output=True, text=True, timeout=120)
        check(result.returncode == 0, f"{where}: {line}\n    status {result.returncode}: {result.stderr.strip()[-300:]}")

    def serve(self, text, where):
        server = subprocess.Popen(["bash", "-uc", "exec " + text], cwd=self.home, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.servers.append(server)
        check(server.stdout.readline().startswith("http://"), f"{where}: {text}")

    def leave(self):
        for server in self.servers:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=20)
        self.servers.clear()
        for place in ("m", "all", "mnt/m", "mnt/llama"):
            while os.path.ismount(self.home / place):
                subprocess.run([WFS, "umount", self.home / place], capture_output=True)
                time.sleep(0.05)
        shutil.rmtree(self.home / "m", ignore_errors=True)


def main():
    if not os.path.exists("/dev/fuse"):
        skip("/dev/fuse is missing")
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        furnish(home)
        web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *request: Quiet(*request, directory=str(home)))
        threading.Thread(target=web.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{web.server_address[1]}"
        with serving(*(f"{name}={home / 'models' / 'tiny'}" for name in HUB)) as hub:
            reader = Reader(home, address, hub)
            for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
                for number, lines in blocks(page):
                    if any("~/m" in line for line in lines) and not any("mount" in line for line in lines):
                        reader.type("wfs mount MODEL ~/m", "the model that the page has mounted")
                    if any("/mnt/llama" in line for line in lines) and not any("mount" in line for line in lines if line.startswith("wfs")):
                        reader.type("wfs mount MODEL /mnt/llama", "the model that the page has mounted")
                    for line in filter(str.strip, lines):
                        reader.type(line, f"{page.relative_to(ROOT)}:{number}")
                    reader.leave()
        web.shutdown()
    done()


main()
