"""Layouts compared with numpy: layouts.py WHAT ARGUMENTS...

    make DIRECTORY [tied]     a small Llama
    antigravity SOURCE OUT    what the layout made, by the engine's own rules
    own SOURCE OUT            what own.json made
"""
import json
import pathlib
import struct
import sys

import check
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "data"))
import make as data  # noqa: E402

HEADS, KEY_HEADS, HEAD, HIDDEN, INNER, LAYERS, VOCABULARY = 4, 2, 16, 64, 96, 3, 101


def make(directory, tied=None):
    random = numpy.random.default_rng(11)
    shapes = {"model.embed_tokens": [VOCABULARY, HIDDEN], "model.norm": [HIDDEN]}
    for i in range(LAYERS):
        for name, shape in {
            "input_layernorm": [HIDDEN], "post_attention_layernorm": [HIDDEN],
            "self_attn.q_proj": [HEADS * HEAD, HIDDEN], "self_attn.k_proj": [KEY_HEADS * HEAD, HIDDEN],
            "self_attn.v_proj": [KEY_HEADS * HEAD, HIDDEN], "self_attn.o_proj": [HIDDEN, HEADS * HEAD],
            "mlp.gate_proj": [INNER, HIDDEN], "mlp.up_proj": [INNER, HIDDEN], "mlp.down_proj": [HIDDEN, INNER],
        }.items():
            shapes[f"model.layers.{i}.{name}"] = shape
    if not tied:
        shapes["lm_head"] = [VOCABULARY, HIDDEN]
    tensors = {name + ".weight": ("BF16", shape, data.bf16(random.standard_normal(shape, dtype=numpy.float32)))
               for name, shape in shapes.items()}
    folder = pathlib.Path(directory)
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(data.safetensors(tensors, {"format": "pt"}))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER,
        "num_attention_heads": HEADS, "num_key_value_heads": KEY_HEADS, "head_dim": HEAD, "num_hidden_layers": LAYERS,
        "vocab_size": VOCABULARY, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 128,
        "tie_word_embeddings": bool(tied), "torch_dtype": "bfloat16", "hidden_act": "silu"}))


def read(path):
    """The tensors of a file: their dtypes, shapes and bytes."""
    raw = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + length])
    return {name: (t["dtype"], t["shape"], raw[8 + length + t["data_offsets"][0]:8 + length + t["data_offsets"][1]])
            for name, t in head.items() if name != "__metadata__"}


def f32(tensor):
    dtype, shape, raw = tensor
    assert dtype == "BF16", dtype
    return (numpy.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)


def words(tensor):
    return numpy.frombuffer(tensor[2], "<u2").reshape(tensor[1])


def antigravity(source, out):
    tensors, out = read(pathlib.Path(source) / "model.safetensors"), pathlib.Path(out)
    names = {"embed_tokens": "model.embed_tokens", "norm": "model.norm",
             "lm_head": "lm_head" if "lm_head.weight" in tensors else "model.embed_tokens"}
    for i in range(LAYERS):
        for own, name in {"attention_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
                          "wq": "self_attn.q_proj", "wk": "self_attn.k_proj", "wv": "self_attn.v_proj",
                          "wo": "self_attn.o_proj", "w_gate": "mlp.gate_proj", "w_up": "mlp.up_proj",
                          "w_down": "mlp.down_proj"}.items():
            names[f"layers.{i}.{own}"] = f"model.layers.{i}.{name}"
    manifest = {entry["name"]: entry for entry in json.loads((out / "manifest.json").read_text())["tensors"]}
    assert set(manifest) == set(names), set(manifest) ^ set(names)
    assert {path.name for path in out.iterdir()} == {*(entry["file"] for entry in manifest.values()), "manifest.json"}
    for own, name in names.items():
        values, entry = f32(tensors[name + ".weight"]), manifest[own]
        is_matrix = values.ndim == 2 and own != "embed_tokens"
        wanted = check.to_q4_0_absmax7(values) if is_matrix else values.tobytes()
        assert (entry["dtype"], entry["shape"]) == ("Q4_0" if is_matrix else "F32", list(values.shape)), entry
        assert entry["bytes"] == len(wanted), entry
        assert (out / entry["file"]).read_bytes() == wanted, own


def own(source, out):
    tensors, out = read(pathlib.Path(source) / "model.safetensors"), pathlib.Path(out)
    for rank in range(2):
        made = read(out / f"part-{rank}.safetensors")
        wanted = {}
        for i in range(LAYERS):
            q, k = (words(tensors[f"model.layers.{i}.self_attn.{name}_proj.weight"]) for name in "qk")
            half = [numpy.split(matrix, 2)[rank] for matrix in (q, k)]
            wanted[f"block{i + 1}.qk"] = ("BF16", numpy.concatenate(half))
        names = [f"model.layers.{i}.mlp.down_proj.weight" for i in range(LAYERS)]
        wanted["all_down"] = ("BF16", numpy.stack([words(tensors[name]) for name in names])[:, :, rank * 48:rank * 48 + 48])
        padded = numpy.zeros((102, HIDDEN), "<u2")
        padded[:VOCABULARY] = words(tensors["model.embed_tokens.weight"])
        wanted["embedding"] = ("BF16", padded[rank * 51:rank * 51 + 51])
        assert set(made) == {*wanted, "one"}, set(made)
        assert made["one"] == ("F32", [], struct.pack("<f", 1.0)), made["one"]
        for name, (dtype, values) in wanted.items():
            assert made[name] == (dtype, list(values.shape), numpy.ascontiguousarray(values).tobytes()), name
    assert json.loads((out / "info.json").read_text()) == {"layers": LAYERS, "kind": "llama", "tied": False, "halves": [2]}


if __name__ == "__main__":
    {"make": make, "antigravity": antigravity, "own": own}[sys.argv[1]](*sys.argv[2:])
