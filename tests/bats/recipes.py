"""Models and recipes for recipes.bats, and what numpy makes of them.

    recipes.py DIRECTORY          base/, a Llama of two layers in BF16; tuned/ in BF16 and half/ in F16, which differ from it; recipes
    recipes.py linear SAFETENSORS the merge of linear.yaml, element by element with one rounding for each step
    recipes.py slices SAFETENSORS the layers of slices.yaml
"""
import json
import pathlib
import struct
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "data"))
import make  # noqa: E402

HIDDEN, HEADS, INNER, VOCAB, LAYERS = 32, 4, 64, 40, 2
LAYER = {
    "self_attn.q_proj.weight": (HIDDEN, HIDDEN), "self_attn.k_proj.weight": (HIDDEN, HIDDEN), "self_attn.v_proj.weight": (HIDDEN, HIDDEN),
    "self_attn.o_proj.weight": (HIDDEN, HIDDEN), "mlp.gate_proj.weight": (INNER, HIDDEN), "mlp.up_proj.weight": (INNER, HIDDEN),
    "mlp.down_proj.weight": (HIDDEN, INNER), "input_layernorm.weight": (HIDDEN,), "post_attention_layernorm.weight": (HIDDEN,),
}
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER, "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS, "num_hidden_layers": LAYERS, "vocab_size": VOCAB, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
}
TOKENIZER = {
    "added_tokens": [], "pre_tokenizer": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {chr(ord("A") + i): i for i in range(VOCAB)}, "merges": []},
}
RECIPES = {
    "linear": """\
models:
  - model: tuned
    parameters: {weight: [0.25, 0.75]}
  - model: half
    parameters: {weight: [{filter: mlp, value: 0.3}, {value: 0.7}]}
merge_method: linear
base_model: base
parameters: {weight: 0.1}
dtype: bfloat16
""",
    "slices": """\
slices:
  - sources: [{model: base, layer_range: [0, 2]}]
  - sources: [{model: tuned, layer_range: [0, 1], parameters: {scale: [{filter: o_proj, value: 0.5}]}}]
merge_method: passthrough
""",
}


def weights(seed):
    random = numpy.random.default_rng(seed)
    shapes = {"model.embed_tokens.weight": (VOCAB, HIDDEN), "model.norm.weight": (HIDDEN,), "lm_head.weight": (VOCAB, HIDDEN)}
    shapes.update({f"model.layers.{i}.{name}": shape for i in range(LAYERS) for name, shape in LAYER.items()})
    return {name: random.standard_normal(shape, dtype=numpy.float32) for name, shape in sorted(shapes.items())}


def bf16(x):
    """Rounded to nearest even, as F32."""
    bits = numpy.ascontiguousarray(x, numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32)


def models():
    base, noise, other = weights(1), weights(2), weights(3)
    return {"base": {n: bf16(x) for n, x in base.items()}, "tuned": {n: bf16(base[n] + noise[n] / 8) for n in base},
            "half": {n: (base[n] + other[n] / 8).astype(numpy.float16).astype(numpy.float32) for n in base}}


def write(directory):
    for name, tensors in models().items():
        folder = directory / name
        folder.mkdir()
        dtype = "F16" if name == "half" else "BF16"
        encode = (lambda x: x.astype("<f2").tobytes()) if dtype == "F16" else (lambda x: (x.view(numpy.uint32) >> 16).astype("<u2").tobytes())
        header, data = {}, b""
        for tensor, x in tensors.items():
            header[tensor] = {"dtype": dtype, "shape": list(x.shape), "data_offsets": [len(data), len(data) + x.size * 2]}
            data += encode(x)
        text = json.dumps(header).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
        (folder / "config.json").write_text(json.dumps(CONFIG))
        (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    for name, text in RECIPES.items():
        (directory / (name + ".yaml")).write_text(text)


def read(path):
    raw = pathlib.Path(path).read_bytes()
    length, = struct.unpack_from("<Q", raw)
    out = {}
    for name, t in json.loads(raw[8:8 + length]).items():
        if name == "__metadata__":
            continue
        assert t["dtype"] == "BF16", (name, t)
        begin, end = (8 + length + at for at in t["data_offsets"])
        out[name] = (numpy.frombuffer(raw[begin:end], "<u2").astype(numpy.uint32) << 16).view(numpy.float32).reshape(t["shape"])
    return out


def same(path, expected):
    got = read(path)
    assert sorted(got) == sorted(expected), sorted(got)
    for name in got:
        assert numpy.array_equal(got[name], expected[name]), name


def linear():
    """Sums of exact products, rounded to F32 after each: fused multiplication and addition."""
    three, out = models(), {}
    for name in three["base"]:
        at = int(name.split(".")[2]) if ".layers." in name else 0
        factors = [numpy.float32(0.25 if at == 0 else 0.75), numpy.float32(0.3 if "mlp" in name else 0.7), numpy.float32(0.1)]
        total = numpy.zeros_like(three["base"][name])
        for x, factor in zip((three["tuned"][name], bf16(three["half"][name]), three["base"][name]), factors):
            total = (total.astype(numpy.float64) + x.astype(numpy.float64) * numpy.float64(factor)).astype(numpy.float32)
        out[name] = bf16(total / (factors[0] + factors[1] + factors[2]))
    return out


def slices():
    three, out = models(), {}
    for name in three["base"]:
        out[name] = three["tuned" if name in ("model.norm.weight", "lm_head.weight") else "base"][name]
        if ".layers.0." in name:
            x = three["tuned"][name]
            out[name.replace(".0.", ".2.")] = bf16(x * numpy.float32(0.5)) if "o_proj" in name else x
    return out


if __name__ == "__main__":
    if len(sys.argv) == 2:
        write(pathlib.Path(sys.argv[1]))
    else:
        same(sys.argv[2], {"linear": linear, "slices": slices}[sys.argv[1]]())
