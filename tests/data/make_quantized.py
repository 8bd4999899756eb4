#!/usr/bin/env python3
"""Makes tests/data/gguf/quantized.gguf: what llama-quantize writes as Q4_0 of the model in tests/unit/models/quantize/quantize.c.

    python3 tests/data/make_quantized.py LLAMA_QUANTIZE

LLAMA_QUANTIZE is the program (made with the llama.cpp that llama-cpp-python 0.3.36 brings). Needs numpy and gguf from PyPI.
"""
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np

NAMES = ["token_embd.weight", "blk.0.attn_norm.weight", "blk.10.attn_v.weight", "blk.2.attn_v.weight", "blk.2.attn_v.bias", "output_norm.weight", "blk.2.attn_k.weight"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "model.gguf")
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_type("model")
        writer.add_uint32("llama.block_count", 11)
        writer.add_uint32("llama.context_length", 64)
        writer.add_uint32("llama.embedding_length", 64)
        writer.add_uint32("llama.feed_forward_length", 64)
        writer.add_uint32("llama.attention.head_count", 1)
        writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
        writer.add_file_type(0)
        writer.add_uint32("llama.vocab_size", 3)
        writer.add_quantization_version(2)
        writer.add_token_list(["a", "b", "c"])
        for name in NAMES:
            writer.add_tensor(name, np.zeros((64,) if "norm" in name else (1, 64) if "bias" in name else (3, 64), np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        subprocess.run([sys.argv[1], path, str(pathlib.Path(__file__).parent / "gguf" / "quantized.gguf"), "Q4_0", "1"], check=True, capture_output=True)


main()
