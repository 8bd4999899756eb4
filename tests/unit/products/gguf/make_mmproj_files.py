#!/usr/bin/env python3
"""Makes the expected values of mmproj_files.inc: what llama.cpp's converter writes for each checkpoint that its rows describe.

    python3 tests/unit/products/gguf/make_mmproj_files.py [BUILD] [NAME...]

Runs the converter of a build from PyPI (without one: the pinned build) with --mmproj, for all rows or those whose names contain NAME, and prints the
SHA-256 of files that differ from their rows, or why the converter fails. Exits 1 if a row differs. To add a row, write its checkpoint, give it
`.as_stored = ""` and so on, run this, and copy what it prints. Needs gcc, and what the converter needs: run it in the environment that
tests/interop/run fills.

wfs differs from the converter on purpose for some models (docs/exceptions.md): CONVERTERS and CHECKPOINTS have what this program changes for them.
"""
import hashlib
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "tests/golden"), str(ROOT / "tests/interop"), str(ROOT / "tests/unit/models")]
import converters  # noqa: E402
import golden  # noqa: E402
import make_orders  # noqa: E402

FILES = {"as_stored": "auto", "f16": "f16", "q8_0": "q8_0"}
DOCUMENTS = {"config": "config.json", "preprocessor": "preprocessor_config.json", "processor": "processor_config.json",
             "tokenizer": "tokenizer_config.json", "codec": "audio_tokenizer/config.json"}  # fmt: skip


def read_rows():
    made = subprocess.run(["gcc", "-E", "-P", "-x", "c", ROOT / "tests/unit/products/gguf/mmproj_files.inc"], capture_output=True, text=True, check=True).stdout
    for row in re.split(r"\{\s*(?=\.name = )", made[made.index("towers[] ="):])[1:]:
        yield {name: make_orders.text_of(value) for name, value in re.findall(rf"\.(\w+) =((?:\s*{make_orders.TEXT})+)", row)}


def write_tensors(path, lines):
    """As write_tensors() of mmproj_files.c does: values between 2^-7 and 2 of both signs, or, after a shape with '+', of one."""
    state, header, data = 1, {}, bytearray()
    for pattern, told in (line.split() for line in lines.splitlines()):
        shape = [int(size) for size in told.rstrip("+").split("x") if size != "0"]
        tensors = [(name, shape) for name in golden.expand(pattern)] if not pattern.endswith("*") else [
            (name, shape if name.endswith(".weight") else shape[:1]) for suffix in (".weight", ".bias") for name in golden.expand(pattern[:-1] + suffix)]
        for name, sizes in tensors:
            count = 1
            for size in sizes:
                count *= size
            begin = len(data)
            for _ in range(count):
                state = (state * 1664525 + 1013904223) % 2**32
                data += struct.pack("<H", 0x3C00 + (state >> 22) | (0 if "+" in told else state >> 6 & 0x8000))
            header[name] = (sizes, begin, len(data))
    text = ",".join(f'"{name}":{{"dtype":"BF16","shape":{sizes},"data_offsets":[{begin},{end}]}}' for name, (sizes, begin, end) in header.items())
    path.write_bytes(struct.pack("<Q", len(text) + 2) + b"{" + text.encode() + b"}" + data)


def write_model(row, folder):
    folder.mkdir()
    if "codec" in row or "codec_tensors" in row:
        (folder / "audio_tokenizer").mkdir()
    for field, name in DOCUMENTS.items():
        if field in row:
            (folder / name).write_text(row[field])
    write_tensors(folder / "model.safetensors", row["tensors"])
    if "codec_tensors" in row:
        write_tensors(folder / "audio_tokenizer/model.safetensors", row["codec_tensors"])


# What is changed in the converter, after its modules can be imported.

def llama4_norms():
    """Without the row of Gemma 4, Llama 4's norm after attention has the name that llama.cpp reads."""
    import gguf

    del gguf.TensorNameMap.block_mappings_cfg[gguf.MODEL_TENSOR.V_ENC_ATTN_POST_NORM]


def any_step3vl():
    """Takes other sizes than those of Step3-VL-10B."""
    from conversion import step3

    text = pathlib.Path(step3.__file__).read_text()
    begin = text.index("assert (projector_stride")
    end = text.index(")\n", text.index("10B", begin)) + 1
    exec(compile(text[:begin] + "pass" + text[end:], step3.__file__, "exec"), step3.__dict__)


def exact_sines():
    """Sines and cosines by numpy in F64, instead of MKL's in F32."""
    import numpy
    import torch

    for name in ("sin", "cos"):
        setattr(torch, name, lambda x, of=getattr(numpy, name): torch.from_numpy(of(x.numpy().astype(numpy.float64)).astype(numpy.float32)))


def exact_roots():
    """Square roots that are rounded correctly, instead of MKL's."""
    import torch

    sqrt = torch.sqrt
    torch.sqrt = lambda x: sqrt(x.to(torch.float64)).to(torch.float32)


def granite_norms():
    """The name that batch norms have in other conformers; and square roots."""
    import gguf

    rows = gguf.TensorNameMap.block_mappings_cfg
    name = "encoder.layers.{bid}.conv.batch_norm"
    kind = next(kind for kind, names in rows.items() if name in names and kind != gguf.MODEL_TENSOR.A_ENC_CONV_NORM)
    rows[kind] = tuple(other for other in rows[kind] if other != name)
    rows[gguf.MODEL_TENSOR.A_ENC_CONV_NORM] += (name,)
    exact_roots()


CONVERTERS = {"llama4": llama4_norms, "step3vl-small": any_step3vl, "qwen2.5omni": exact_sines, "qwen3omni": exact_sines, "qwen3asr": exact_sines,
              "lfm2a": exact_roots, "parakeet": exact_roots, "granite_speech": granite_norms, "granite_speech-defaults": granite_norms,
              "granite_speech_plus": granite_norms}  # fmt: skip

# What is changed in the checkpoint.

GEMMA4 = {"vision_config": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 16, "num_attention_heads": 12, "patch_size": 16, "rms_norm_eps": 1e-6,
                            "pooling_kernel_size": 3},
          "audio_config": {"hidden_size": 1024, "num_hidden_layers": 12, "num_attention_heads": 8, "rms_norm_eps": 1e-6}}  # fmt: skip


def with_sizes(row):
    """The defaults of transformers' Gemma4VisionConfig, Gemma4AudioConfig and Gemma4ImageProcessor in so many words."""
    config = json.loads(row["config"])
    for part, sizes in GEMMA4.items():
        config[part] |= sizes
    return row | {"config": json.dumps(config), "preprocessor": '{"image_mean": [0.0, 0.0, 0.0], "image_std": [1.0, 1.0, 1.0]}'}


CHECKPOINTS = {
    "qwen2vl-nested": lambda row: row | {"tensors": row["tensors"].replace("model.visual.", "visual.")},
    "qwen3omni": lambda row: row | {"tensors": row["tensors"].replace("thinker.visual.", "model.visual.").replace("thinker.", "")},
    "whole numbers of the channels": lambda row: row | {"preprocessor": re.sub(r"(?<=[\[,])(\d+)(?=[\],])", r"\1.0", row["preprocessor"])},
    "glma": lambda row: row | {"tensors": re.sub(r"audio_encoder\.proj\b.*\n", "", row["tensors"])},
    "gemma4, whose sizes are those of its classes": with_sizes,
}

FORGOTTEN = {"fast-dvlm"}  # classes that llama.cpp f5b9bd39b knew, and no build on PyPI does


def main():
    words = sys.argv[1:]
    upstream = make_orders.load_upstream()
    build = (words.pop(0) if words and re.fullmatch(r"b\d+", words[0]) else upstream.pinned("llama.cpp"))[1:]
    reason = converters.prepare()
    if reason is not None:
        sys.exit(reason)
    folder, n_different = upstream.llama_folder(int(build)), 0
    for row in read_rows():
        if row["name"] in FORGOTTEN or (words and not any(word in row["name"] for word in words)):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            model, out = pathlib.Path(scratch, "Model"), pathlib.Path(scratch, "mmproj.gguf")
            write_model(CHECKPOINTS.get(row["name"], lambda row: row)(row), model)
            for field in [field for field in FILES if field in row]:
                failure = converters.convert(folder, model, "--mmproj", "--outtype", FILES[field], "--outfile", out, before=CONVERTERS.get(row["name"]))
                made = hashlib.sha256(out.read_bytes()).hexdigest() if failure is None else None
                if made != row[field]:
                    n_different += 1
                    told = f'.{field} = "{made}",' if failure is None else f"the converter fails: {failure[:160]}"
                    print(f"{row['name']}: {told}", flush=True)
    sys.exit(n_different > 0)


if __name__ == "__main__":
    main()
