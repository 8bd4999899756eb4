"""Layouts compared with numpy: layouts.py WHAT ARGUMENTS...

    make DIRECTORY [tied]     a small Llama
    antigravity SOURCE OUT    what the layout made, by the engine's own rules
    own SOURCE OUT            what own.json made
    rename SOURCE DIRECTORY   the same model under other names
    ranks WFS DIRECTORY SEED  ranks of TensorRT-LLM and vLLM of a model of random shape, put together again: the model
"""
import json
import pathlib
import random
import struct
import subprocess
import sys

import check
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "data"))
import make as data  # noqa: E402

HEADS, KEY_HEADS, HEAD, HIDDEN, INNER, LAYERS, VOCABULARY = 4, 2, 16, 64, 96, 3, 101


def make(directory, tied=None):
    numbers = numpy.random.default_rng(11)
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
    tensors = {name + ".weight": ("BF16", shape, data.bf16(numbers.standard_normal(shape, dtype=numpy.float32)))
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


def rename(source, directory):
    """The same model under other names."""
    tensors = {}
    for name, (dtype, shape, raw) in read(pathlib.Path(source) / "model.safetensors").items():
        for own, other in {"model.": "net.", "layers": "h", "self_attn": "attn", "q_proj": "q", "k_proj": "k", "v_proj": "v",
                           "gate_proj": "in"}.items():
            name = name.replace(own, other)
        tensors[name] = (dtype, shape, raw)
    (pathlib.Path(directory) / "model.safetensors").write_bytes(data.safetensors(tensors))


def joined_qkv(ranks, name):
    """q, k and v of all ranks; key heads that several ranks have are the same in all."""
    tp, held = len(ranks), max(1, KEY_HEADS // len(ranks)) * HEAD
    parts = [numpy.split(words(rank[name]), [HEADS * HEAD // tp, HEADS * HEAD // tp + held]) for rank in ranks]
    copies = max(1, tp // KEY_HEADS)
    for first in range(0, tp, copies):
        for other in parts[first:first + copies]:
            assert (other[1] == parts[first][1]).all() and (other[2] == parts[first][2]).all(), name
    return [numpy.concatenate([part[0] for part in parts]), *(numpy.concatenate([part[i] for part in parts[::copies]])
                                                               for i in (1, 2))]


def joined_rows(ranks, name, rows):
    """Rows of all ranks; those that were added are zeros."""
    whole = numpy.concatenate([words(rank[name]) for rank in ranks])
    assert not whole[rows:].any(), name
    return whole[:rows]


def same_in_all(ranks, name):
    assert all(rank[name] == ranks[0][name] for rank in ranks), name
    return words(ranks[0][name])


def join_attention(ranks, made, layer, qkv, dense, norms):
    for kind, values in zip("qkv", joined_qkv(ranks, qkv)):
        made[f"{layer}.self_attn.{kind}_proj"] = values
    made[f"{layer}.self_attn.o_proj"] = numpy.concatenate([words(rank[dense]) for rank in ranks], 1)
    for own, name in norms.items():
        made[f"{layer}.{name}"] = same_in_all(ranks, own)


def join_trtllm(out, tp, pp):
    made, at = {}, 0
    for stage in range(pp):
        ranks = [read(out / f"rank{stage * tp + i}.safetensors") for i in range(tp)]
        for i in range(sum(name.endswith("attention.dense.weight") for name in ranks[0])):
            own, layer = f"transformer.layers.{i}", f"model.layers.{at}"
            join_attention(ranks, made, layer, f"{own}.attention.qkv.weight", f"{own}.attention.dense.weight",
                           {f"{own}.input_layernorm.weight": "input_layernorm",
                            f"{own}.post_layernorm.weight": "post_attention_layernorm"})
            made[f"{layer}.mlp.gate_proj"] = joined_rows(ranks, f"{own}.mlp.fc.weight", INNER)
            made[f"{layer}.mlp.up_proj"] = joined_rows(ranks, f"{own}.mlp.gate.weight", INNER)
            made[f"{layer}.mlp.down_proj"] = numpy.concatenate([words(rank[f"{own}.mlp.proj.weight"]) for rank in ranks], 1)
            at += 1
        if stage == 0:
            made["model.embed_tokens"] = same_in_all(ranks, "transformer.vocab_embedding.weight")
        if stage == pp - 1:
            made["model.norm"] = same_in_all(ranks, "transformer.ln_f.weight")
            made["lm_head"] = joined_rows(ranks, "lm_head.weight", VOCABULARY)
    return made


def join_vllm(out, tp, pp):
    made = {}
    for stage in range(pp):
        start = f"model-pp-{stage}-tp-" if pp > 1 else "model-rank-"
        ranks = [{name: tensor for part in out.glob(f"{start}{i}-part-*.safetensors") for name, tensor in read(part).items()}
                 for i in range(tp)]
        for own in {name[:-len(".self_attn.o_proj.weight")] for name in ranks[0] if name.endswith(".self_attn.o_proj.weight")}:
            join_attention(ranks, made, own, f"{own}.self_attn.qkv_proj.weight", f"{own}.self_attn.o_proj.weight",
                           {f"{own}.{name}.weight": name for name in ("input_layernorm", "post_attention_layernorm")})
            both = [numpy.split(words(rank[f"{own}.mlp.gate_up_proj.weight"]), 2) for rank in ranks]
            for i, name in enumerate(("gate_proj", "up_proj")):
                made[f"{own}.mlp.{name}"] = numpy.concatenate([half[i] for half in both])
            made[f"{own}.mlp.down_proj"] = numpy.concatenate([words(rank[f"{own}.mlp.down_proj.weight"]) for rank in ranks], 1)
        if stage == 0:
            made["model.embed_tokens"] = joined_rows(ranks, "model.embed_tokens.weight", VOCABULARY)
        if stage == pp - 1:
            made["model.norm"] = same_in_all(ranks, "model.norm.weight")
            made["lm_head"] = joined_rows(ranks, "lm_head.weight", VOCABULARY)
    return made


def ranks(wfs, directory, seed):
    global HEADS, KEY_HEADS, HEAD, HIDDEN, INNER, LAYERS, VOCABULARY
    choose = random.Random(int(seed))
    tp, pp = choose.choice([1, 2, 3, 4, 6]), choose.choice([1, 2, 3])
    KEY_HEADS = choose.choice([n for n in (1, 2, 3, 4, 6, 12) if n % tp == 0 or tp % n == 0])
    HEADS = KEY_HEADS * tp * choose.choice([1, 2])
    HEAD, HIDDEN, INNER = choose.choice([4, 6, 8]), choose.randint(1, 40) * 2, choose.randint(1, 20) * tp
    LAYERS, VOCABULARY = choose.randint(pp, 7), choose.randint(tp * tp, 300)
    what = f"seed {seed}: tp={tp} pp={pp} heads {HEADS}/{KEY_HEADS} of {HEAD}, {HIDDEN}, {INNER}, {LAYERS}, {VOCABULARY}"
    source = pathlib.Path(directory) / f"random{seed}"
    make(source)
    tensors = read(source / "model.safetensors")
    for engine, join, more in (("trtllm", join_trtllm, ""), ("vllm", join_vllm, f",max={choose.randint(100, 100000)}")):
        out = pathlib.Path(directory) / f"{engine}{seed}"
        subprocess.run([wfs, "cp", "-r", "-o", f"shards={engine}:tp={tp},pp={pp}{more}", source, f"layouts/{engine}", out],
                       check=True)
        made = join(out, tp, pp)
        assert {name + ".weight" for name in made} == set(tensors), f"{engine}, {what}: {set(made) ^ set(tensors)}"
        for name, values in made.items():
            wanted = words(tensors[name + ".weight"])
            assert values.shape == wanted.shape and (values == wanted).all(), f"{engine}, {what}: {name}"


if __name__ == "__main__":
    {"make": make, "antigravity": antigravity, "own": own, "ranks": ranks, "rename": rename}[sys.argv[1]](*sys.argv[2:])
