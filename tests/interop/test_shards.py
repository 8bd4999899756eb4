"""Rank files of the golden checkpoints are, byte for byte, what TensorRT-LLM's converters and vLLM's loader wrote.

Weight-only quantization is plain weights here, and only config.json is compared; what the original refuses is not asked for."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from interop import WFS, check, done, golden_checkpoints


def trtllm_options(run, folder):
    """The options of a converter as those of the layout, and whether the weights are the same."""
    words, options, plain = run.split(": ", 1)[1].split(), [], True
    names = {"tp_size": "tp", "pp_size": "pp", "world-size": "tp", "moe_ep_size": "moe-ep", "dtype": "dtype"}
    keymap = {}
    for word in words:
        name, _, value = word.partition("=")
        if name in names:
            options.append(f"{names[name]}={value}")
        elif name == "use_parallel_embedding":
            options.append("parallel-embedding" + ("=1" if "embedding_sharding_dim=1" in words else ""))
        elif name == "use_fp8_rowwise":
            options.append("quant=FP8_PER_CHANNEL_PER_TOKEN")
        elif name == "v0.17":
            options.append("release=0.17")
        elif name == "use_weight_only":
            options.append("quant=" + ("W4A16" if "weight_only_precision=int4" in words else "W8A16"))
            plain = False
        elif word != "keys" and "keys" in words:
            keymap[name] = value
    if keymap:
        (folder / "keys.json").write_text(json.dumps(keymap))
        options.append(f"keymap={folder / 'keys.json'}")
    return "trtllm", ",".join(options), plain


def vllm_options(version, run):
    options = [word for word in run.split() if "=" in word]
    return "vllm", ",".join(options + (["release=0.13", "scales=0"] if version < "0.33" else [])), True


def same_config(truth, run, first, path):
    wanted = {key: value for key, value in (run.get("config") or {}).items() if key != "as"}
    if "as" in (run.get("config") or {}):
        wanted = {key: value for key, value in {**first["config"], **wanted}.items() if value is not None or key in first["config"]}
    found = json.loads(path.read_text())
    return [f"{key}: {found.get(key)!r} instead of {wanted.get(key)!r}" for key in {**wanted, **found}
            if wanted.get(key) != found.get(key)]


def compare(name, source, engine, key, run, first, options, plain, folder, tool):
    """What is wrong with the files of a run."""
    out = folder / "out"
    subprocess.run(["rm", "-rf", out], check=True)
    made = subprocess.run([WFS, "cp", "-r", "-o", f"shards={engine}:{options}", source, f"layouts/{engine}", out],
                          capture_output=True, text=True)
    if made.returncode != 0:
        return [made.stderr.strip()]
    wrong = []
    if plain:
        compared = subprocess.run([sys.executable, tool, name, key, out], capture_output=True, text=True)
        wrong += compared.stdout.splitlines() if compared.returncode != 0 else []
        wrong += compared.stderr.splitlines()[-1:]
    if engine == "trtllm":
        wrong += same_config(None, run, first, out / "config.json")
    return wrong


def main():
    models, _ = golden_checkpoints()
    if not models:
        print("no golden checkpoints: WFS_GOLDEN is not set")
        sys.exit(0)
    folder = pathlib.Path(os.environ["WFS_GOLDEN"]) / "expected-shards"
    only = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        for truth in sorted(folder.glob("*.json")):
            if truth.stem not in models or (only and truth.stem not in only):
                continue
            for tool, runs in json.loads(truth.read_text()).items():
                runs = runs["runs"] if tool == "trtllm" else runs
                first = next(iter(runs.values()))
                for key, run in runs.items():
                    if "refused" in run:
                        continue
                    engine, options, plain = (trtllm_options(key, pathlib.Path(scratch)) if tool == "trtllm" else
                                              vllm_options(tool.split("-")[1], key))
                    wrong = compare(truth.stem, models[truth.stem], engine, key if tool == "trtllm" else f"{tool} {key}", run,
                                    first, options, plain, pathlib.Path(scratch), folder / "check")
                    check(not wrong, f"{truth.stem}, {tool}, {key}" + "".join("\n    " + line for line in wrong[:12]))
    done()


if __name__ == "__main__":
    main()
