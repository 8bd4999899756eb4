"""Ranks of one model from whatever it is stored as: layout_sources.py WFS DIRECTORY

A Llama of random numbers as safetensors, and beside it the same as Meta's .pth, as GGUF, in FP8 by blocks and as GPTQ, all written here.
The ranks of TensorRT-LLM and vLLM must be the same, byte for byte, and so must the files of an on-device engine."""
import json
import pathlib
import struct
import subprocess
import sys

import check
import make_torch_file
import numpy
from layouts import data

HEADS, KEYS, WIDTH, HIDDEN, INNER, LAYERS, VOCABULARY = 4, 2, 16, 64, 96, 2, 70
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER,
          "num_attention_heads": HEADS, "num_key_value_heads": KEYS, "head_dim": WIDTH, "num_hidden_layers": LAYERS,
          "vocab_size": VOCABULARY, "rms_norm_eps": 1e-5, "max_position_embeddings": 128, "torch_dtype": "bfloat16"}
MATRICES = {"self_attn.q_proj": ("wq", "attn_q", [HEADS * WIDTH, HIDDEN]), "self_attn.k_proj": ("wk", "attn_k", [KEYS * WIDTH, HIDDEN]),
            "self_attn.v_proj": ("wv", "attn_v", [KEYS * WIDTH, HIDDEN]), "self_attn.o_proj": ("wo", "attn_output", [HIDDEN, HEADS * WIDTH]),
            "mlp.gate_proj": ("w1", "ffn_gate", [INNER, HIDDEN]), "mlp.up_proj": ("w3", "ffn_up", [INNER, HIDDEN]),
            "mlp.down_proj": ("w2", "ffn_down", [HIDDEN, INNER])}
NORMS = {"input_layernorm": ("attention_norm", "attn_norm"), "post_attention_layernorm": ("ffn_norm", "ffn_norm")}
TOPS = {"model.embed_tokens": ("tok_embeddings", "token_embd", [VOCABULARY, HIDDEN]), "model.norm": ("norm", "output_norm", [HIDDEN]),
        "lm_head": ("output", "output", [VOCABULARY, HIDDEN])}
numbers = numpy.random.default_rng(23)


def words(values):
    """BF16 of numbers that are of BF16."""
    bits = numpy.ascontiguousarray(values, "<f4").view("<u4")
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype("<u2")


def numbers_of_bf16(shape):
    return (numbers.integers(0x3c00, 0x3f80, shape).astype("<u4") << 16 | numbers.integers(0, 2, shape).astype("<u4") << 31).view("<f4")


def model():
    """The values by Hugging Face's names without .weight."""
    made = {name: numbers_of_bf16(shape) for name, (_, _, shape) in TOPS.items()}
    for i in range(LAYERS):
        made |= {f"model.layers.{i}.{name}": numbers_of_bf16(shape) for name, (_, _, shape) in MATRICES.items()}
        made |= {f"model.layers.{i}.{name}": numbers_of_bf16([HIDDEN]) for name in NORMS}
    return made


def pairs(values, heads):
    """Rows of halves as rows of pairs, as Meta and GGUF have them."""
    return values.reshape(heads, 2, WIDTH // 2, -1).swapaxes(1, 2).reshape(values.shape)


def stored(made, which):
    """Under the names of Meta (0) or GGUF (1), with their order of rows."""
    renamed, (layer, attention, feed) = {}, (("layers", "attention.", "feed_forward."), ("blk", "", ""))[which]
    for name, values in made.items():
        if name in TOPS:
            renamed[TOPS[name][which] + ".weight"] = values
            continue
        _, _, i, name = name.split(".", 3)
        heads = {"self_attn.q_proj": HEADS, "self_attn.k_proj": KEYS}.get(name)
        own = NORMS[name][which] if name in NORMS else (attention if name.startswith("self_attn") else feed) + MATRICES[name][which]
        renamed[f"{layer}.{i}.{own}.weight"] = pairs(values, heads) if heads else values
    return renamed


def write_safetensors(folder, tensors, config):
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(data.safetensors(tensors))
    (folder / "config.json").write_text(json.dumps(config))


def bf16_tensors(made):
    return {name + ".weight": ("BF16", list(values.shape), words(values).tobytes()) for name, values in made.items()}


def meta(folder, made):
    folder.mkdir()
    make_torch_file.write(folder / "consolidated.00.pth", {
        name: ("BF16", list(values.shape), words(values).tobytes()) for name, values in stored(made, 0).items()})
    (folder / "params.json").write_text(json.dumps({"dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS, "n_kv_heads": KEYS,
                                                    "multiple_of": 32, "norm_eps": 1e-05, "vocab_size": VOCABULARY}))


def gguf(path, made):
    def text(value):
        return struct.pack("<Q", len(value)) + value

    keys = [(b"general.architecture", 8, text(b"llama"))] + [
        (b"llama." + key, 4, struct.pack("<I", value)) for key, value in {
            b"block_count": LAYERS, b"embedding_length": HIDDEN, b"feed_forward_length": INNER, b"attention.head_count": HEADS,
            b"attention.head_count_kv": KEYS, b"context_length": 128, b"vocab_size": VOCABULARY, b"rope.dimension_count": WIDTH,
            b"attention.key_length": WIDTH, b"attention.value_length": WIDTH}.items()]
    keys.append((b"llama.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", 1e-5)))
    header, body = b"", b""
    tensors = stored(made, 1)
    for name, values in tensors.items():
        is_matrix = values.ndim == 2  # in BF16, and vectors in F32, as the converter has them
        header += text(name.encode()) + struct.pack(f"<I{values.ndim}QIQ", values.ndim, *values.shape[::-1], 30 if is_matrix else 0, len(body))
        raw = words(values).tobytes() if is_matrix else values.tobytes()
        body += raw + bytes(-len(raw) % 32)
    start = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    start += b"".join(text(key) + struct.pack("<I", type) + value for key, type, value in keys) + header
    path.write_bytes(start + bytes(-len(start) % 32) + body)


def fp8(shape):
    """Codes, scales of blocks of 16 x 16, and what they stand for."""
    bits = numbers.integers(0, 0x7f, shape, dtype=numpy.uint8) | numbers.integers(0, 2, shape, dtype=numpy.uint8) << 7
    scales = numpy.ldexp(numpy.float32(1), numbers.integers(-9, -4, [-(-size // 16) for size in shape])).astype("<f4")
    values = check.f8_e4m3(bits.ravel()).reshape(shape) * scales.repeat(16, 0).repeat(16, 1)[:shape[0], :shape[1]]
    return {"weight": ("F8_E4M3", list(shape), bits.tobytes()), "weight_scale_inv": ("F32", list(scales.shape), scales.tobytes())}, values


def nibbles(codes, axis):
    """Eight of them in a word, the first in the lowest bits."""
    codes = numpy.moveaxis(codes.astype("<u4"), axis, -1)
    packed = (codes.reshape(*codes.shape[:-1], -1, 8) << numpy.arange(8, dtype="<u4") * 4).sum(-1, dtype="<u4")
    return numpy.moveaxis(packed, -1, axis)


def gptq(shape):
    """4 bits, groups of 32 columns with a zero and a scale."""
    rows, columns = shape
    codes, zeros = numbers.integers(0, 16, (columns, rows)), numbers.integers(1, 16, (columns // 32, rows))
    scales = numpy.ldexp(numpy.float32(1), numbers.integers(-9, -4, zeros.shape))
    values = ((codes - zeros.repeat(32, 0)) * scales.repeat(32, 0)).T.astype("<f4")
    parts = {"qweight": nibbles(codes, 0), "qzeros": nibbles(zeros - 1, 1), "g_idx": numpy.arange(columns, dtype="<i4") // 32}
    made = {name: ("I32", list(part.shape), numpy.ascontiguousarray(part).tobytes()) for name, part in parts.items()}
    return {**made, "scales": ("F16", list(scales.shape), scales.astype("<f2").tobytes())}, values


def packed(folder, made, pack, quantization):
    """The model with packed matrices, and a plain one of the values that these stand for."""
    plain, tensors = dict(made), bf16_tensors(made)
    for name, values in made.items():
        if name.startswith("model.layers") and values.ndim == 2:
            parts, plain[name] = pack(values.shape)
            del tensors[name + ".weight"]
            tensors |= {f"{name}.{part}": tensor for part, tensor in parts.items()}
    write_safetensors(folder, tensors, {**CONFIG, "quantization_config": quantization})
    return plain


def outputs(wfs, source):
    """The files of all layouts: their bytes. config.json tells of the source's own configuration."""
    found = {}
    for layout in ("trtllm:tp=2,pp=2,dtype=bfloat16", "trtllm:tp=4,dtype=bfloat16", "vllm:tp=2,dtype=bfloat16", "antigravity"):
        name, out = layout.partition(":")[0], pathlib.Path(f"{source}.{layout.translate({58: '.', 44: '.'})}")
        subprocess.run([wfs, "cp", "-r", "-o", f"layout={layout}", source, f"layouts/{name}", out], check=True)
        paths = list(out.glob("*" if name == "antigravity" else "*.safetensors"))
        assert len(paths) == {"antigravity": 9 * LAYERS + 4, "vllm": 2}.get(name, 4), paths
        found |= {(layout, path.name): path.read_bytes() for path in paths}
    return found


def same(wanted, found, what):
    assert wanted.keys() == found.keys(), (what, wanted.keys() ^ found.keys())
    differing = [name for name in wanted if wanted[name] != found[name]]
    assert not differing, (what, differing)


def main(wfs, directory):
    folder, made = pathlib.Path(directory), model()
    write_safetensors(folder / "plain", bf16_tensors(made), CONFIG)
    meta(folder / "meta", made)
    gguf(folder / "model.gguf", made)
    wanted = outputs(wfs, folder / "plain")
    for other in ("meta", "model.gguf"):
        same(wanted, outputs(wfs, folder / other), other)
    for name, pack, quantization in (
            ("fp8", fp8, {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [16, 16]}),
            ("gptq", gptq, {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False, "sym": False})):
        write_safetensors(folder / f"{name}.plain", bf16_tensors(packed(folder / name, made, pack, quantization)), CONFIG)
        same(outputs(wfs, folder / f"{name}.plain"), outputs(wfs, folder / name), name)


if __name__ == "__main__":
    main(*sys.argv[1:])
