"""ggml-model.bin, ggml-model-f32.bin and ggml/ are, byte for byte, what whisper.cpp's scripts and whisper-quantize write.

Golden files come from WFS_GOLDEN. Without them, tiny models of transformers are compared with what its own classes say: the order and the values of a state dict.
"""
import hashlib
import json
import lzma
import os
import pathlib
import struct
import tempfile

from interop import check, done, golden_checkpoints, wfs

FILES = {"f16": "ggml-model.bin", "f32": "ggml-model-f32.bin"}
CONV_BIASES = ("encoder.conv1.bias", "encoder.conv2.bias")
MODULES = {"self_attn_layer_norm": "attn_ln", "encoder_attn_layer_norm": "cross_attn_ln", "self_attn.": "attn.", "encoder_attn.": "cross_attn.", "q_proj": "query", "k_proj": "key",
           "v_proj": "value", "out_proj": "out", "fc1": "mlp.0", "fc2": "mlp.2", "final_layer_norm": "mlp_ln", "embed_positions.weight": "positional_embedding",
           "embed_tokens": "token_embedding", ".layers.": ".blocks.", "encoder.layer_norm": "encoder.ln_post", "decoder.layer_norm": "decoder.ln"}  # fmt: skip


def compare_golden(scratch):
    checkpoints, compare = golden_checkpoints("media")
    if not checkpoints:
        print("no golden files: WFS_GOLDEN is not set")
        return
    golden = pathlib.Path(compare).parent
    for name in ("multilingual", "gpt2"):
        packed = golden / "tokenizers" / f"whisper.{name}.tiktoken.xz"
        (scratch / f"{name}.tiktoken").write_bytes(lzma.decompress(packed.read_bytes()))
    models = next(iter(checkpoints.values())).parent
    for expected in sorted((golden / "expected-media").glob("*.json")):
        variants = json.loads(expected.read_text())
        if "vocab" not in next(iter(variants.values())):
            continue  # not a file of whisper.cpp
        for variant, wanted in variants.items():
            path = FILES.get(variant, f"ggml/ggml-model-{variant}.bin")
            made = wfs("cat", "-o", f"whisper={scratch}", models / expected.stem, path) if expected.stem.endswith(".pt") else wfs("cat", models / expected.stem, path)
            check(made.returncode == 0, f"{expected.stem} {path}: {made.stderr.decode().strip()}")
            check(hashlib.sha256(made.stdout).hexdigest() == wanted["sha256"], f"{expected.stem} {path}: other bytes")


def tensors_of(data):
    """The tensors of a file of whisper.cpp: name, type, dimensions, bytes."""
    n_mels, n_fft = struct.unpack_from("<ii", data, 48)
    at = 56 + 4 * n_mels * n_fft
    (n_tokens,) = struct.unpack_from("<i", data, at)
    at += 4
    for _ in range(n_tokens):
        at += 4 + struct.unpack_from("<i", data, at)[0]
    while at < len(data):
        rank, length, kind = struct.unpack_from("<iii", data, at)
        dimensions = struct.unpack_from(f"<{rank}i", data, at + 12)
        at += 12 + 4 * rank
        name, size = data[at : at + length].decode(), [4, 2][kind]
        at += length
        for dimension in dimensions:
            size *= dimension
        yield name, kind, list(dimensions), data[at : at + size]
        at += size


def renamed(name):
    name = name.removeprefix("model.")
    for old, new in MODULES.items():
        name = name.replace(old, new)
    return name


def compare_class(torch, transformers, model, dtype):
    """Compares with the state dict of the model's class."""
    config = transformers.WhisperConfig(vocab_size=30, d_model=32, encoder_layers=2, decoder_layers=3, encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=96,
                                        decoder_ffn_dim=64, max_source_positions=8, max_target_positions=9, num_mel_bins=128, pad_token_id=0, bos_token_id=0, eos_token_id=0,
                                        decoder_start_token_id=0)  # fmt: skip
    transformers.WhisperForConditionalGeneration(config).to(dtype).save_pretrained(model)
    (model / "vocab.json").write_text(json.dumps({chr(97 + i): 25 - i for i in range(26)}))
    (model / "added_tokens.json").write_text("{}")
    loaded = transformers.WhisperForConditionalGeneration.from_pretrained(model, dtype=torch.float32)
    wanted = [(renamed(name), tensor) for name, tensor in loaded.state_dict().items() if name != "proj_out.weight"]
    for path in FILES.values():
        data = wfs("cat", model, path).stdout
        made = list(tensors_of(data))
        check(struct.unpack_from("<11i", data, 4) == (30, 8, 32, 2, 2, 9, 32, 4, 3, 128, int(path == FILES["f16"])), f"{dtype} {path}: header")
        check([name for name, *_ in made] == [name for name, _ in wanted], f"{dtype} {path}: names and order")
        for (name, kind, dimensions, data), (_, tensor) in zip(made, wanted):
            half = tensor.to(torch.float16)
            values = half if kind == 1 else half.to(torch.float32)
            shape = [1, *tensor.shape] if name in CONV_BIASES else list(reversed(tensor.shape))
            check(dimensions == shape and data == values.numpy().tobytes(), f"{dtype} {path}: {name}")
            check(kind == int(path == FILES["f16"] and tensor.dim() > 1 and not name.endswith("positional_embedding")), f"{dtype} {path}: the type of {name}")


def main():
    with tempfile.TemporaryDirectory() as scratch:
        compare_golden(pathlib.Path(scratch))
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch
    import transformers

    torch.manual_seed(7)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        with tempfile.TemporaryDirectory() as model:
            compare_class(torch, transformers, pathlib.Path(model), dtype)
    done()


main()
