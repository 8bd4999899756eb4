"""Layouts compared with numpy: layouts.py WHAT ARGUMENTS...

    make DIRECTORY [tied]     a small Llama
    antigravity SOURCE OUT    what the layout made, by the engine's own rules
    own SOURCE OUT            what own.json made
    rename SOURCE DIRECTORY   the same model under other names
    falcon|filled|vocabulary|phi|transposed|shared|below|neox|starcoder|falcon_shards|long_rope WFS DIRECTORY   ranks of such models, by the rules of the engines
    experts WFS DIRECTORY SEED    ranks of random experts, put together again
    contiguous SOURCE OUT     what examples/layouts/experts.json made: each expert's matrices follow each other
    missing WFS DIRECTORY     a model that lacks tensors is refused
    torch WFS SOURCE DIRECTORY    ranks of the model in a torch file are those of SOURCE
    sizes WFS DIRECTORY       of the shape of Llama 3.2 1B
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


def contiguous(source, out):
    stored = read(pathlib.Path(source) / "model.safetensors")
    prefixes = [name.removesuffix("gate.weight") for name in stored if name.endswith("block_sparse_moe.gate.weight")]
    assert sorted(path.name for path in pathlib.Path(out).iterdir()) == [f"experts-{i}.safetensors" for i in range(len(prefixes))]
    for layer, prefix in enumerate(sorted(prefixes)):
        raw = (pathlib.Path(out) / f"experts-{layer}.safetensors").read_bytes()
        length = struct.unpack("<Q", raw[:8])[0]
        head = json.loads(raw[8:8 + length])
        n_experts = sum(name.startswith(prefix + "experts.") for name in stored) // 3
        assert n_experts > 1 and len(head) == 3 * n_experts, head
        for expert in range(n_experts):
            parts = {"gate": "w1", "down": "w2", "up": "w3"}
            places = sorted(head[f"{expert}.{part}"]["data_offsets"] for part in parts)
            assert places[0][1] == places[1][0] and places[1][1] == places[2][0], f"{places} of expert {expert} have gaps"
            for part, own in parts.items():
                first, end = head[f"{expert}.{part}"]["data_offsets"]
                assert raw[8 + length:][first:end] == stored[f"{prefix}experts.{expert}.{own}.weight"][2], f"{expert}.{part}"


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


def write_model(folder, shapes, config):
    """A model of random numbers in BF16, as bit patterns."""
    numbers, folder = numpy.random.default_rng(7), pathlib.Path(folder)
    made = {name: numbers.integers(0, 0x7f00, shape, dtype="<u2") for name, shape in shapes.items()}
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(data.safetensors({name: ("BF16", list(values.shape), values.tobytes())
                                                                 for name, values in made.items()}))
    (folder / "config.json").write_text(json.dumps(config))
    return made


def shown(wfs, source, engine, options):
    """The files that a layout makes."""
    out = pathlib.Path(str(source) + f".{engine}.{options.replace(',', '.')}")
    subprocess.run([wfs, "cp", "-r", "-o", f"shards={engine}:{options}", source, f"layouts/{engine}", out], check=True)
    return out


def same(rank, name, wanted):
    assert rank[name][1] == list(wanted.shape) and (words(rank[name]) == wanted).all(), (name, rank[name][1], wanted.shape)


def falcon(wfs, directory):
    heads, keys, width, hidden, inner = 8, 2, 4, 32, 48
    layer, shapes = "transformer.h.0.", {"transformer.word_embeddings.weight": [40, hidden]}
    for name, shape in {"self_attention.query_key_value": [(heads + 2 * keys) * width, hidden], "self_attention.dense": [hidden, hidden],
                        "mlp.dense_h_to_4h": [inner, hidden], "mlp.dense_4h_to_h": [hidden, inner]}.items():
        shapes[f"{layer}{name}.weight"] = shape
    for name in (layer + "ln_attn", layer + "ln_mlp", "transformer.ln_f"):
        shapes.update({name + ".weight": [hidden], name + ".bias": [hidden]})
    source = pathlib.Path(directory) / "falcon"
    made = write_model(source, shapes, {
        "architectures": ["FalconForCausalLM"], "model_type": "falcon", "new_decoder_architecture": True, "num_kv_heads": keys,
        "num_attention_heads": heads, "hidden_size": hidden, "num_hidden_layers": 1, "vocab_size": 40, "bias": False,
        "layer_norm_epsilon": 1e-5, "torch_dtype": "bfloat16", "ffn_hidden_size": inner})
    groups = made[layer + "self_attention.query_key_value.weight"].reshape(keys, heads // keys + 2, width, hidden)
    for tp in (1, 2, 4, 8):
        out, copies = shown(wfs, source, "trtllm", f"tp={tp}"), max(1, tp // keys)
        k, v = (numpy.repeat(groups[:, i], copies, 0) for i in (-2, -1))
        for i in range(tp):
            rank, own = read(out / f"rank{i}.safetensors"), "transformer.layers.0."
            parts = [numpy.split(part.reshape(-1, hidden), tp)[i] for part in (groups[:, :-2], k, v)]
            same(rank, own + "attention.qkv.weight", numpy.concatenate(parts))
            same(rank, own + "attention.dense.weight", numpy.split(made[layer + "self_attention.dense.weight"], tp, 1)[i])
            same(rank, own + "mlp.fc.weight", numpy.split(made[layer + "mlp.dense_h_to_4h.weight"], tp)[i])
            same(rank, own + "mlp.proj.weight", numpy.split(made[layer + "mlp.dense_4h_to_h.weight"], tp, 1)[i])
            same(rank, own + "input_layernorm.bias", made[layer + "ln_attn.bias"])
            same(rank, own + "mlp_layernorm.weight", made[layer + "ln_mlp.weight"])


def llama_shapes(inner, prefix=""):
    shapes = {prefix + "model.embed_tokens.weight": [50, 32], prefix + "model.norm.weight": [32], prefix + "lm_head.weight": [50, 32]}
    for name, shape in {"input_layernorm": [32], "post_attention_layernorm": [32], "self_attn.q_proj": [32, 32],
                        "self_attn.k_proj": [16, 32], "self_attn.v_proj": [16, 32], "self_attn.o_proj": [32, 32],
                        "mlp.gate_proj": [inner, 32], "mlp.up_proj": [inner, 32], "mlp.down_proj": [32, inner]}.items():
        shapes[f"{prefix}model.layers.0.{name}.weight"] = shape
    return shapes


LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 48,
         "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 1, "vocab_size": 50, "rms_norm_eps": 1e-5,
         "torch_dtype": "bfloat16"}


def filled(wfs, directory):
    """Fewer rows than intermediate_size: each rank has its share of those there are, then zeros."""
    source = pathlib.Path(directory) / "filled"
    made = write_model(source, llama_shapes(45), LLAMA)
    out = shown(wfs, source, "trtllm", "tp=2")
    for i in range(2):
        rank, own = read(out / f"rank{i}.safetensors"), "transformer.layers.0.mlp."
        for name, other in (("fc", "gate_proj"), ("gate", "up_proj")):
            part = made[f"model.layers.0.mlp.{other}.weight"][i * 23:i * 23 + 23]
            same(rank, f"{own}{name}.weight", numpy.pad(part, ((0, 24 - len(part)), (0, 0))))
        part = made["model.layers.0.mlp.down_proj.weight"][:, i * 23:i * 23 + 23]
        same(rank, f"{own}proj.weight", numpy.pad(part, ((0, 0), (0, 24 - part.shape[1]))))


def below(wfs, directory):
    """What is missing is looked for below language_model."""
    plain, source = (pathlib.Path(directory) / name for name in ("plain", "below"))
    write_model(plain, llama_shapes(48), LLAMA)
    write_model(source, llama_shapes(48, "language_model."), LLAMA)
    ranks = [[path.read_bytes() for path in sorted(shown(wfs, folder, "trtllm", "tp=2").glob("*.safetensors"))]
             for folder in (plain, source)]
    assert len(ranks[0]) == 2 and ranks[0] == ranks[1]


def vocabulary(wfs, directory):
    """Fewer rows than vocab_size: zeros in their place, at the end of each rank's part of the head."""
    source = pathlib.Path(directory) / "vocabulary"
    made = write_model(source, llama_shapes(48), {**LLAMA, "vocab_size": 57})
    whole = numpy.pad(made["model.embed_tokens.weight"], ((0, 7), (0, 0)))
    for options, part in (("tp=2", lambda i: whole), ("tp=2,parallel-embedding", lambda i: numpy.pad(whole[i * 25:i * 25 + 25][:25], ((0, 4), (0, 0)))),
                          ("tp=2,parallel-embedding=1", lambda i: whole[:, i * 16:i * 16 + 16])):
        out = shown(wfs, source, "trtllm", options)
        for i in range(2):
            rank = read(out / f"rank{i}.safetensors")
            same(rank, "transformer.vocab_embedding.weight", part(i))
            same(rank, "lm_head.weight", numpy.pad(made["lm_head.weight"][i * 25:i * 25 + 25], ((0, 4), (0, 0))))
    (source / "config.json").write_text(json.dumps({**LLAMA, "vocab_size": 49}))
    refused = subprocess.run([wfs, "layout", "check", "trtllm:tp=1", source], capture_output=True, text=True)
    assert refused.returncode == 1 and "more rows than vocab_size" in refused.stderr, refused.stderr


def phi(wfs, directory):
    """q, k and v that are one tensor, gate and up that are one: a rank has its part of each."""
    heads, width, hidden, inner = 12, 4, 24, 60
    for keys, tp in ((12, 3), (6, 2), (3, 6), (2, 4), (1, 2), (12, 1)):
        source, layer = pathlib.Path(directory) / f"phi{keys}-{tp}", "model.layers.0."
        made = write_model(source, {
            "model.embed_tokens.weight": [70, hidden], "lm_head.weight": [70, hidden], "model.norm.weight": [hidden],
            layer + "input_layernorm.weight": [hidden], layer + "post_attention_layernorm.weight": [hidden],
            layer + "self_attn.qkv_proj.weight": [(heads + 2 * keys) * width, hidden], layer + "self_attn.o_proj.weight": [hidden, heads * width],
            layer + "mlp.gate_up_proj.weight": [2 * inner, hidden], layer + "mlp.down_proj.weight": [hidden, inner]},
            {"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_size": hidden, "num_attention_heads": heads, "head_dim": width,
             "num_key_value_heads": keys, "num_hidden_layers": 1, "intermediate_size": inner, "vocab_size": 70, "torch_dtype": "bfloat16"})
        copies = max(1, tp // keys)
        q, k, v = numpy.split(made[layer + "self_attn.qkv_proj.weight"], [heads * width, (heads + keys) * width])
        k, v = (numpy.repeat(part.reshape(keys, width, hidden), copies, 0).reshape(-1, hidden) for part in (k, v))
        out = shown(wfs, source, "vllm", f"tp={tp}")
        for i in range(tp):
            rank = read(out / f"model-rank-{i}-part-0.safetensors")
            same(rank, layer + "self_attn.qkv_proj.weight", numpy.concatenate([numpy.split(part, tp)[i] for part in (q, k, v)]))
            same(rank, layer + "mlp.gate_up_proj.weight", numpy.concatenate(
                [numpy.split(half, tp)[i] for half in numpy.split(made[layer + "mlp.gate_up_proj.weight"], 2)]))
            same(rank, layer + "self_attn.o_proj.weight", numpy.split(made[layer + "self_attn.o_proj.weight"], tp, 1)[i])


def long_rope(wfs, directory):
    """Phi-3 of 128000 positions and more: the tables of its long factors, numpy's sines and cosines to a unit or two in the last place."""
    positions, trained, layer = 128000, 4096, "model.layers.0."
    short, factors, source = [1.0, 1.25, 1.5, 2.0], [1.05, 1.5, 20.25, 64.1], pathlib.Path(directory) / "long"
    config = {"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "hidden_size": 16, "num_attention_heads": 2, "num_key_value_heads": 2,
              "num_hidden_layers": 1, "intermediate_size": 32, "vocab_size": 70, "torch_dtype": "bfloat16", "rope_theta": 10000.0,
              "max_position_embeddings": positions, "original_max_position_embeddings": trained,
              "rope_scaling": {"type": "longrope", "short_factor": short, "long_factor": factors}}
    write_model(source, {
        "model.embed_tokens.weight": [70, 16], "lm_head.weight": [70, 16], "model.norm.weight": [16],
        layer + "input_layernorm.weight": [16], layer + "post_attention_layernorm.weight": [16], layer + "self_attn.qkv_proj.weight": [48, 16],
        layer + "self_attn.o_proj.weight": [16, 16], layer + "mlp.gate_up_proj.weight": [64, 16], layer + "mlp.down_proj.weight": [16, 32]}, config)
    out = shown(wfs, source, "trtllm", "tp=1")
    rank, made = read(out / "rank0.safetensors"), json.loads((out / "config.json").read_text())
    wanted = {"position_embedding_type": "long_rope", "original_max_position_embeddings": trained, "rotary_scaling": None,
              "longrope_scaling_short_factors": short, "longrope_scaling_long_factors": factors}
    assert {key: made.get(key) for key in wanted} == wanted, made
    frequencies = 1 / (numpy.array(factors, "<f4") * (10000.0 ** (numpy.arange(0, 8, 2) / 8)).astype("<f4"))
    assert rank["long_rope_rotary_inv_freq"] == ("F32", [1, 4], frequencies.astype("<f4").tobytes())
    dtype, shape, raw = rank["long_rope_embed_positions_for_gpt_attention"]
    assert (dtype, shape) == ("F32", [1, positions * 8]), (dtype, shape)
    angles = (numpy.arange(positions, dtype="<f4")[:, None] * frequencies).astype("f8")
    exact = numpy.stack([numpy.cos(angles), numpy.sin(angles)], -1).ravel() * (1 + numpy.log(positions / trained) / numpy.log(trained)) ** 0.5
    off = numpy.abs(numpy.frombuffer(raw, "<f4") - exact) / numpy.spacing(numpy.abs(exact).astype("<f4"))
    assert off.max() < 3, off.max()
    (source / "config.json").write_text(json.dumps({**config, "rope_scaling": None}))
    refused = subprocess.run([wfs, "layout", "check", "trtllm:tp=1", source], capture_output=True, text=True)
    assert refused.returncode == 1 and "no short_factor and long_factor" in refused.stderr, refused.stderr


def padded(values, rows):
    return numpy.pad(values, ((0, rows - len(values)), (0, 0)))


def same_shard(out, tp, i, wanted):
    """A rank of vLLM has these tensors and no others but the scales of attention, which are 1."""
    rank = read(out / f"model-rank-{i}-part-0.safetensors")
    scales = {name for name in rank if name.endswith("_scale")}
    assert set(rank) - scales == set(wanted), (tp, set(rank) - scales ^ set(wanted))
    assert all(rank[name] == ("F32", [], struct.pack("<f", 1)) for name in scales)
    for name, values in wanted.items():
        same(rank, name, values)
    return scales


def modules(prefix, shapes):
    """Weights of these shapes, and biases of as many elements as they have rows."""
    return {f"{prefix}{name}.{kind}": shape if kind == "weight" else shape[:1] for name, shape in shapes.items() for kind in ("weight", "bias")}


def neox(wfs, directory):
    """vLLM runs the class of transformers: its names below "model.", by its plan for tensor parallelism."""
    heads, width, hidden, inner = 4, 6, 24, 40
    layer, source = "gpt_neox.layers.0.", pathlib.Path(directory) / "neox"
    made = write_model(source, {
        "gpt_neox.embed_in.weight": [70, hidden], "embed_out.weight": [70, hidden], layer + "attention.rotary_emb.inv_freq": [3],
        **modules("gpt_neox.", {"final_layer_norm": [hidden]}),
        **modules(layer, {"input_layernorm": [hidden], "post_attention_layernorm": [hidden], "mlp.dense_h_to_4h": [inner, hidden],
                          "mlp.dense_4h_to_h": [hidden, inner], "attention.query_key_value": [3 * heads * width, hidden],
                          "attention.dense": [hidden, hidden]})},
        {"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "hidden_size": hidden, "num_attention_heads": heads,
         "num_hidden_layers": 1, "intermediate_size": inner, "vocab_size": 70, "torch_dtype": "bfloat16"})
    del made[layer + "attention.rotary_emb.inv_freq"]
    for tp in (1, 2, 4):
        out = shown(wfs, source, "vllm", f"tp={tp}")
        for i in range(tp):
            wanted = {name.replace("gpt_neox", "model").replace("embed_out", "lm_head"): values for name, values in made.items()}
            for name in list(wanted):
                if "embed_in" in name or "lm_head" in name:
                    wanted[name] = numpy.split(padded(wanted[name], 128), tp)[i]
                elif "query_key_value" in name or "dense_h_to_4h" in name:
                    wanted[name] = numpy.split(wanted[name], tp)[i]
                elif name.endswith((".dense.weight", "dense_4h_to_h.weight")):
                    wanted[name] = numpy.split(wanted[name], tp, 1)[i]
            assert same_shard(out, tp, i, wanted) == {f"model.layers.0.attention.attn._{n}_scale" for n in ("q", "k", "v", "prob")}
    refused = subprocess.run([wfs, "layout", "check", "vllm:tp=1,release=0.13", source], capture_output=True, text=True)
    assert refused.returncode == 1 and "GPTNeoXForCausalLM is supported only with release=0.33" in refused.stderr, refused.stderr


def starcoder(wfs, directory):
    """As transformers has StarCoder2, with q, k and v joined; the head is the embedding."""
    heads, width, hidden, inner = 12, 4, 24, 48
    layer = "model.layers.0."
    for keys, tp in ((2, 2), (3, 6), (4, 4), (1, 2), (2, 1)):
        source = pathlib.Path(directory) / f"starcoder{keys}-{tp}"
        made = write_model(source, {
            "model.embed_tokens.weight": [70, hidden], **modules("model.", {"norm": [hidden]}),
            **modules(layer, {"input_layernorm": [hidden], "post_attention_layernorm": [hidden], "mlp.c_fc": [inner, hidden],
                              "mlp.c_proj": [hidden, inner], "self_attn.q_proj": [heads * width, hidden],
                              "self_attn.k_proj": [keys * width, hidden], "self_attn.v_proj": [keys * width, hidden],
                              "self_attn.o_proj": [hidden, heads * width]})},
            {"architectures": ["Starcoder2ForCausalLM"], "model_type": "starcoder2", "hidden_size": hidden, "num_attention_heads": heads,
             "num_key_value_heads": keys, "head_dim": width, "num_hidden_layers": 1, "intermediate_size": inner, "vocab_size": 70,
             "torch_dtype": "bfloat16", "use_bias": True})
        out, copies = shown(wfs, source, "vllm", f"tp={tp}"), max(1, tp // keys)
        for i in range(tp):
            wanted = {name: values for name, values in made.items() if "_proj." not in name and "embed" not in name}
            wanted["lm_head.weight"] = numpy.split(padded(made["model.embed_tokens.weight"], -(-128 // tp) * tp), tp)[i]
            for kind in ("weight", "bias"):
                q, k, v = (made[f"{layer}self_attn.{n}_proj.{kind}"] for n in "qkv")
                k, v = (numpy.repeat(part.reshape(keys, width, -1), copies, 0).reshape(-1, *part.shape[1:]) for part in (k, v))
                wanted[f"{layer}self_attn.qkv_proj.{kind}"] = numpy.concatenate([numpy.split(part, tp)[i] for part in (q, k, v)])
                wanted[f"{layer}mlp.c_fc.{kind}"] = numpy.split(made[f"{layer}mlp.c_fc.{kind}"], tp)[i]
            for name in ("self_attn.o_proj", "mlp.c_proj"):
                wanted[f"{layer}{name}.weight"] = numpy.split(made[f"{layer}{name}.weight"], tp, 1)[i]
                wanted[f"{layer}{name}.bias"] = made[f"{layer}{name}.bias"]
            assert len(same_shard(out, tp, i, wanted)) == 4


def falcon_shards(wfs, directory):
    """Falcon's own class in vLLM keeps the names; groups of queries with their key and value become all queries, keys, values."""
    heads, width, hidden, layer = 8, 4, 32, "transformer.h.0."
    for keys, config, norms in ((2, {"new_decoder_architecture": True, "num_kv_heads": 2}, ("ln_attn", "ln_mlp")),
                                (1, {"multi_query": True}, ("input_layernorm",)),
                                (8, {"multi_query": False, "parallel_attn": False, "bias": True}, ("input_layernorm", "post_attention_layernorm"))):
        source, biased = pathlib.Path(directory) / f"falcon-vllm{keys}", "bias" in config
        shapes = modules(layer, {"self_attention.query_key_value": [(heads + 2 * keys) * width, hidden], "self_attention.dense": [hidden, hidden],
                                 "mlp.dense_h_to_4h": [4 * hidden, hidden], "mlp.dense_4h_to_h": [hidden, 4 * hidden]})
        made = write_model(source, {
            "transformer.word_embeddings.weight": [70, hidden], **{name: shape for name, shape in shapes.items() if biased or "bias" not in name},
            **modules(layer, {norm: [hidden] for norm in norms}), **modules("transformer.", {"ln_f": [hidden]})},
            {"architectures": ["FalconForCausalLM"], "model_type": "falcon", "num_attention_heads": heads, "hidden_size": hidden,
             "num_hidden_layers": 1, "vocab_size": 70, "bias": False, "layer_norm_epsilon": 1e-5, "torch_dtype": "bfloat16", **config})
        for tp in (1, 2, 4, 8):
            out, copies = shown(wfs, source, "vllm", f"tp={tp}"), max(1, tp // keys)
            for i in range(tp):
                wanted = {name: values for name, values in made.items() if "embeddings" not in name}
                wanted["lm_head.weight"] = numpy.split(padded(made["transformer.word_embeddings.weight"], 128), tp)[i]
                for name in list(wanted):
                    if "query_key_value" in name:
                        groups = made[name].reshape(keys, heads // keys + 2, width, *made[name].shape[1:])
                        parts = groups[:, :-2], *(numpy.repeat(groups[:, j], copies, 0) for j in (-2, -1))
                        wanted[name] = numpy.concatenate([numpy.split(part.reshape(-1, *made[name].shape[1:]), tp)[i] for part in parts])
                    elif "dense_h_to_4h" in name:
                        wanted[name] = numpy.split(made[name], tp)[i]
                    elif name.endswith((".dense.weight", "dense_4h_to_h.weight")):
                        wanted[name] = numpy.split(made[name], tp, 1)[i]
                assert same_shard(out, tp, i, wanted) == {f"{layer}self_attention.attn._{n}_scale" for n in ("q", "k", "v", "prob")}


def experts(wfs, directory, seed):
    """Ranks of random experts put together: TensorRT-LLM's have some experts each, and a part of those; vLLM's a part of all."""
    choose = random.Random(int(seed))
    ep, share = choose.choice([1, 2, 3]), choose.choice([1, 2])
    tp, count, inner, hidden = ep * share, ep * choose.randint(1, 3), share * ep * choose.randint(1, 9), 4 * ep * share
    is_mixtral = choose.random() < 0.5
    mlp, names = ("block_sparse_moe", ("w1", "w3", "w2")) if is_mixtral else ("mlp", ("gate_proj", "up_proj", "down_proj"))
    shapes = {"model.embed_tokens.weight": [50, hidden], "model.norm.weight": [hidden], "lm_head.weight": [50, hidden]}
    for name, shape in {"input_layernorm": [hidden], "post_attention_layernorm": [hidden], "self_attn.q_proj": [tp * 4, hidden],
                        "self_attn.k_proj": [4, hidden], "self_attn.v_proj": [4, hidden], "self_attn.o_proj": [hidden, tp * 4],
                        f"{mlp}.gate": [count, hidden]}.items():
        shapes[f"model.layers.0.{name}.weight"] = shape
    for e in range(count):
        shapes |= {f"model.layers.0.{mlp}.experts.{e}.{name}.weight": [hidden, inner] if name == names[2] else [inner, hidden] for name in names}
    source = pathlib.Path(directory) / f"experts{seed}"
    made = write_model(source, shapes, {
        **LLAMA, "architectures": ["MixtralForCausalLM" if is_mixtral else "Qwen3MoeForCausalLM"], "model_type": "mixtral" if is_mixtral else "qwen3_moe",
        "hidden_size": hidden, "head_dim": 4, "num_attention_heads": tp, "num_key_value_heads": 1, "num_local_experts": count, "num_experts": count,
        "num_experts_per_tok": 1, "moe_intermediate_size": inner, "intermediate_size": inner})
    wanted = [[made[f"model.layers.0.{mlp}.experts.{e}.{name}.weight"] for name in names] for e in range(count)]
    what = f"seed {seed}: {count} experts, tp={tp}, ep={ep}, {inner}, {hidden}"

    def together(parts):
        """[gate, up, down] of one expert, of parts of [gate, up] and down."""
        return [numpy.concatenate([part[i] for part in parts], int(i == 2)) for i in range(3)]

    out = shown(wfs, source, "trtllm", f"tp={tp},moe-ep={ep}")
    ranks = [read(out / f"rank{i}.safetensors") for i in range(tp)]
    fc, proj, router = (f"transformer.layers.0.mlp.{name}.weight" for name in ("fc", "proj", "router"))
    for e in range(count):
        holders = [rank for i, rank in enumerate(ranks) if i % ep == e // (count // ep)]
        halves = [numpy.split(words(rank[fc])[e % (count // ep)], 2) for rank in holders]
        found = together([(gate, up, words(rank[proj])[e % (count // ep)]) for (up, gate), rank in zip(halves, holders)])
        assert all((a == b).all() for a, b in zip(found, wanted[e], strict=True)), f"trtllm, {what}: {e}"
    gate = made[f"model.layers.0.{mlp}.gate.weight"].astype("<u4") << 16
    assert all(rank[router] == ("F32", list(gate.shape), gate.tobytes()) for rank in ranks), f"router, {what}"

    out, prefix = shown(wfs, source, "vllm", f"tp={tp},release=0.13"), f"model.layers.0.{mlp}.experts."
    ranks = [read(out / f"model-rank-{i}-part-0.safetensors") for i in range(tp)]
    for e in range(count):
        halves = [numpy.split(words(rank[prefix + "w13_weight"])[e], 2) for rank in ranks]
        found = together([(gate, up, words(rank[prefix + "w2_weight"])[e]) for (gate, up), rank in zip(halves, ranks)])
        assert all((a == b).all() for a, b in zip(found, wanted[e], strict=True)), f"vllm, {what}: {e}"


def missing(wfs, directory):
    """What the engine would miss is not left out without a word; what is not everywhere is there where it is."""
    source = pathlib.Path(directory) / "missing"
    for left_out in ("self_attn.k_proj", "mlp.up_proj", "mlp.down_proj", "self_attn.o_proj"):
        write_model(source, {name: shape for name, shape in llama_shapes(48).items() if left_out not in name}, LLAMA)
        for engine in ("trtllm", "vllm"):
            refused = subprocess.run([wfs, "ls", "-o", f"shards={engine}:tp=2", source], capture_output=True, text=True)
            wanted = f"the model has no tensor 'model.layers.0.{left_out}.weight'\n"
            assert refused.returncode == 1 and refused.stderr.endswith(wanted) and refused.stderr.count("\n") == 1, (engine, refused.stderr)
    biased = {**llama_shapes(48), "model.layers.0.self_attn.q_proj.bias": [32]}
    write_model(source, biased, LLAMA)
    for engine in ("trtllm", "vllm"):
        refused = subprocess.run([wfs, "ls", "-o", f"shards={engine}:tp=2", source], capture_output=True, text=True)
        assert refused.returncode == 1 and "no tensor 'model.layers.0.self_attn.v_proj.bias'" in refused.stderr, (engine, refused.stderr)
    write_model(source, {**biased, "model.layers.0.self_attn.k_proj.bias": [16], "model.layers.0.self_attn.v_proj.bias": [16]}, LLAMA)
    rank = read(shown(wfs, source, "vllm", "tp=2") / "model-rank-1-part-0.safetensors")
    assert rank["model.layers.0.self_attn.qkv_proj.bias"][1] == [32], rank.keys()


def transposed(wfs, directory):
    """GPT-2 by a dictionary: the loader expects rows where columns are."""
    source, layer = pathlib.Path(directory) / "transposed", "h.0."
    shapes = {"wte.weight": [50, 32], "ln_f.weight": [32], "ln_f.bias": [32], layer + "attn.c_attn.weight": [32, 96], layer + "attn.c_attn.bias": [96],
              layer + "attn.c_proj.weight": [32, 32], layer + "mlp.c_fc.weight": [32, 128], layer + "mlp.c_proj.weight": [128, 32]}
    write_model(source, {**shapes, layer + "ln_1.weight": [32], layer + "ln_2.weight": [32]}, {
        **LLAMA, "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "num_key_value_heads": 4, "intermediate_size": 128})
    keys = pathlib.Path(directory) / "transposed.json"
    keys.write_text(json.dumps({"transformer": "", "layers": "h", "vocab_embedding": "wte", "lm_head": "wte", "attention": "attn", "qkv": "c_attn",
                                "dense": "c_proj", "fc": "c_fc", "proj": "c_proj", "input_layernorm": "ln_1", "post_layernorm": "ln_2", "ln_f": "ln_f"}))
    refused = subprocess.run([wfs, "ls", "-o", f"shards=trtllm:tp=1,keymap={keys}", source], capture_output=True, text=True)
    assert refused.returncode == 1 and "there are more columns than hidden_size" in refused.stderr, refused.stderr


def shared(wfs, directory):
    shapes = {name: shape for name, shape in llama_shapes(48).items() if ".mlp." not in name}
    mlp = "model.layers.0.mlp."
    shapes.update({mlp + "gate.weight": [4, 32], mlp + "shared_expert_gate.weight": [1, 32]})
    for expert, inner in (*((f"experts.{i}", 16) for i in range(4)), ("shared_expert", 24)):
        shapes.update({f"{mlp}{expert}.gate_proj.weight": [inner, 32], f"{mlp}{expert}.up_proj.weight": [inner, 32],
                       f"{mlp}{expert}.down_proj.weight": [32, inner]})
    source = pathlib.Path(directory) / "shared"
    made = write_model(source, shapes, {**LLAMA, "architectures": ["Qwen2MoeForCausalLM"], "model_type": "qwen2_moe", "num_experts": 4,
                                        "num_experts_per_tok": 2, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 24})
    out = shown(wfs, source, "trtllm", "tp=2")
    for i in range(2):
        rank, own = read(out / f"rank{i}.safetensors"), "transformer.layers.0.mlp."
        halves = {name: numpy.split(made[f"{mlp}shared_expert.{name}_proj.weight"], 2, name == "down")[i] for name in ("up", "gate", "down")}
        same(rank, own + "shared_expert.fc.weight", numpy.concatenate([halves["up"], halves["gate"]]))
        same(rank, own + "shared_expert.proj.weight", halves["down"])
        same(rank, own + "shared_expert_gate.weight", made[mlp + "shared_expert_gate.weight"])


def torch(wfs, source, directory):
    """A legacy torch file, written without torch: the same ranks."""
    import make_torch_file
    other = pathlib.Path(directory) / "torch"
    other.mkdir()
    (other / "config.json").write_bytes((pathlib.Path(source) / "config.json").read_bytes())
    make_torch_file.write(other / "pytorch_model.bin", {
        name: (dtype, shape, raw) for name, (dtype, shape, raw) in read(pathlib.Path(source) / "model.safetensors").items()})
    for engine in ("trtllm", "vllm"):
        wanted, found = (shown(wfs, folder, engine, "tp=2,pp=3") for folder in (link(source, directory), other))
        names = sorted(path.name for path in wanted.glob("*.safetensors"))
        assert len(names) == 6 and names == sorted(path.name for path in found.glob("*.safetensors"))
        for name in names:
            assert (wanted / name).read_bytes() == (found / name).read_bytes(), name


def link(source, directory):
    """The source under a name beside which files may be written."""
    path = pathlib.Path(directory) / "source"
    if not path.exists():
        path.symlink_to(source)
    return path


def sizes(wfs, directory):
    hidden, inner, vocabulary = 2048, 8192, 128256
    shapes = {"model.embed_tokens": [vocabulary, hidden], "model.norm": [hidden]}
    for i in range(16):
        for name, shape in {"input_layernorm": [hidden], "post_attention_layernorm": [hidden], "self_attn.q_proj": [2048, hidden],
                            "self_attn.k_proj": [512, hidden], "self_attn.v_proj": [512, hidden], "self_attn.o_proj": [hidden, 2048],
                            "mlp.gate_proj": [inner, hidden], "mlp.up_proj": [inner, hidden], "mlp.down_proj": [hidden, inner]}.items():
            shapes[f"model.layers.{i}.{name}"] = shape
    folder, header, offset = pathlib.Path(directory) / "hole", {}, 0
    folder.mkdir()
    for name, shape in shapes.items():
        end = offset + 2 * int(numpy.prod(shape))
        header[name + ".weight"] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
    (folder / "config.json").write_text(json.dumps({
        **LLAMA, "hidden_size": hidden, "intermediate_size": inner, "num_attention_heads": 32, "num_key_value_heads": 8,
        "num_hidden_layers": 16, "vocab_size": vocabulary, "tie_word_embeddings": True}))
    for options, wanted in (("tp=1", [2996965376]), ("tp=2", [1761218560] * 2), ("tp=2,parallel-embedding", [1498550272] * 2),
                            ("tp=4", [1143345152] * 4)):
        checked = subprocess.run([wfs, "layout", "check", f"trtllm:{options}", folder], check=True, capture_output=True, text=True).stdout
        found = [int(line.split()[-4]) for line in checked.splitlines() if line.startswith("rank")]
        assert found == wanted, (options, found)
    checked = subprocess.run([wfs, "layout", "check", "vllm:tp=2,scales=0", folder], check=True, capture_output=True, text=True).stdout
    found = [int(line.split()[-4]) for line in checked.splitlines() if line.startswith("model-rank")]
    assert found == [1235881984] * 2, found


if __name__ == "__main__":
    {"make": make, "antigravity": antigravity, "contiguous": contiguous, "own": own, "ranks": ranks, "rename": rename, "falcon": falcon, "filled": filled,
     "vocabulary": vocabulary, "phi": phi, "experts": experts, "missing": missing, "transposed": transposed,
     "shared": shared, "below": below, "neox": neox, "starcoder": starcoder, "falcon_shards": falcon_shards, "long_rope": long_rope, "torch": torch,
     "sizes": sizes}[sys.argv[1]](*sys.argv[2:])
