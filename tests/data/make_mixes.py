#!/usr/bin/env python3
"""Makes tests/data/gguf/mixes.txt: models by their tensors' names and shapes, and the types llama-quantize gives them.

    python3 tests/data/make_mixes.py LLAMA_QUANTIZE > tests/data/gguf/mixes.txt

LLAMA_QUANTIZE is the program, of 2026 (made with the llama.cpp that llama-cpp-python 0.3.36 brings, as --dry-run). Needs numpy and gguf
from PyPI. Rows that are no multiple of 32 stand only where a type of 256 is wanted: later versions of the tool no longer refuse others.

Three models with an importance matrix were taken from the tensors of whole files that llama-quantize of llama.cpp 34af94cd9 made; the last
two, glm5-next and bailingmoe3, from those of b11739.

A model is a line "model ARCH LAYERS HEADS KV_HEADS EXPERTS", a line "mixes" with the mixes and their options, and a line for each tensor: name,
dimensions as ggml counts them, and a type for each mix.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import gguf
import numpy as np

MIXES = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4_MOE".split()
OPTIONS = ["Q4_K_M,pure", "Q4_K_M,leave-output-tensor", "Q4_K_M,output-tensor-type=q8_0", "Q4_K_M,token-embedding-type=f16", "Q4_K_M,tensor-type=attn_v=q8_0",
           "Q4_K_M,tensor-type=BLK\\.[0-3]\\..*weight=q5_k,tensor-type=ffn=iq4_nl", "Q3_K_M,tensor-type=blk\\.(1|4)\\.attn_v=f32,tensor-type=^output$=q4_0,tensor-type=\\Dutput=q5_1",
           "Q8_0,pure", "MXFP4_MOE,pure", "Q5_K_M,output-tensor-type=f32,pure"]
DENSE = ["attn_k", "attn_output", "attn_q", "attn_v", "ffn_down", "ffn_gate", "ffn_up"]
FUSED = ["attn_output", "attn_qkv", "ffn_down", "ffn_up"]
EXPERTS = ["attn_k", "attn_output", "attn_v", "ffn_down_exps", "ffn_gate_exps", "ffn_gate_inp", "ffn_up_exps"]
FEW = ["attn_k", "attn_v", "ffn_down"]


def model(arch, layers, heads, kv_heads, experts=0, tied=False, parts=DENSE, row=256, down=None, mixes=MIXES):
    return dict(arch=arch, layers=layers, heads=heads, kv_heads=kv_heads, experts=experts, tied=tied, parts=parts, row=row, down=down or row, mixes=mixes)


MODELS = [
    model("llama", 1, 4, 4), model("llama", 2, 4, 2, tied=True), model("llama", 7, 32, 8), model("llama", 8, 32, 32), model("llama", 11, 6, 2, parts=DENSE[1:5]),
    model("llama", 32, 32, 8, parts=FEW), model("llama", 80, 64, 8, parts=FEW, mixes=MIXES[5:16]), model("llama", 80, 64, 64, parts=["attn_v"], mixes=MIXES[5:16]),
    model("qwen2", 80, 64, 64, parts=["attn_v"], mixes=MIXES[5:16]), model("llama", 80, 64, 8, experts=8, parts=["attn_v"], mixes=MIXES[5:16]),
    model("llama", 9, 32, 8, experts=8, parts=EXPERTS), model("llama", 8, 8, 8, experts=2, parts=EXPERTS, tied=True), model("llama", 3, 8, 1, experts=16, parts=EXPERTS),
    model("qwen3moe", 17, 8, 2, experts=128, parts=EXPERTS), model("falcon", 17, 71, 1, parts=FUSED), model("falcon", 3, 4, 2, tied=True, parts=FUSED),
    model("phi3", 9, 32, 32, parts=FUSED), model("gpt2", 12, 12, 12, parts=FUSED, tied=True),
    model("llama", 9, 4, 1, row=288), model("llama", 9, 4, 4, row=288, tied=True), model("llama", 3, 4, 4, down=260, mixes=[m for m in MIXES if "_K" in m and m != "Q8_0"]),
    model("falcon", 3, 4, 2, parts=FUSED, row=288),
    model("llama", 8, 4, 1, mixes=OPTIONS), model("llama", 8, 4, 1, tied=True, mixes=OPTIONS), model("llama", 8, 4, 1, row=288, mixes=OPTIONS[:1] + OPTIONS[2:5]),
]

KEYS = {"context_length": 64, "feed_forward_length": 256, "expert_used_count": 1, "expert_feed_forward_length": 256, "vocab_size": 64,
        "rope.dimension_count": 64, "attention.sliding_window": 0}


def tensors(m):
    yield from [] if m["tied"] else [("output.weight", (m["row"], 2))]
    yield from [("output_norm.weight", (m["row"],)), ("token_embd.weight", (m["row"], 2))]
    for layer in range(m["layers"]):
        for part in m["parts"]:
            stacked = (m["experts"],) if part.endswith("_exps") else ()
            yield f"blk.{layer}.{part}.weight", (m["down" if "down" in part else "row"], 2) + stacked


def write(path, m):
    writer = gguf.GGUFWriter(path, m["arch"])
    for key, value in dict(KEYS, **{"block_count": m["layers"], "embedding_length": 64 * m["heads"], "attention.head_count": m["heads"], "attention.head_count_kv": m["kv_heads"]}).items():
        if key != "expert_used_count" or m["experts"]:
            writer.add_uint32(f"{m['arch']}.{key}", value)
    if m["experts"]:
        writer.add_uint32(f"{m['arch']}.expert_count", m["experts"])
    for key in ("layer_norm_rms_epsilon", "layer_norm_epsilon"):
        writer.add_float32(f"{m['arch']}.attention.{key}", 1e-5)
    for name, dims in tensors(m):
        writer.add_tensor(name, np.zeros(dims[::-1], np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def types(program, path, mix):
    name, *options = mix.split(",")
    arguments = [part for option in options for part in ("--" + option).split("=", 1)]
    done = subprocess.run([program, *arguments, "--dry-run", path, name], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{path} {mix}: " + "; ".join(re.findall(r"failed to quantize: .*", done.stderr)))
    return {tensor: (to or was).upper() for tensor, was, to in
            re.findall(r"^\[ *\d+/ *\d+\] (\S+) +- \[.*?\], type = +(\w+), size = [^\n(]*(?:\((\w+)\))?$", re.sub(r"warning: .*?\n", "", done.stdout + done.stderr), re.M)}


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.gguf"
        for m in MODELS:
            write(path, m)
            print("model", m["arch"], m["layers"], m["heads"], m["kv_heads"], m["experts"])
            print("mixes", *m["mixes"])
            found = [types(sys.argv[1], str(path), mix) for mix in m["mixes"]]
            for name, dims in tensors(m):
                print(name, "x".join(map(str, dims)), *(f[name] for f in found))


main()
