"""Checkpoints of torch, written and loaded by torch itself: every tensor that wfs shows has the bytes of torch.load().

Also Meta's layout of Llama against the Hugging Face layout of the same model: equal tensors, and an equal model.gguf but for the keys
that only the latter knows."""
import base64
import json
import pathlib
import pickle
import sys
import tempfile
import warnings
import zipfile

import interop

try:
    import numpy
    import torch
except ImportError as error:
    interop.skip(str(error))

ROOT = interop.ROOT
DTYPES = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128"]
NEW_DTYPES = ["uint16", "uint32", "uint64", "complex32", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
              "float8_e8m0fnu"]


def random_tensor(name, shape):
    """Random bits of a dtype, so that NaNs with payloads and negative zeros are among them."""
    dtype = getattr(torch, name)
    size = torch.empty(0, dtype=dtype).element_size()
    raw = torch.randint(0, 256, (int(numpy.prod(shape)) * size,), dtype=torch.uint8)
    return (raw % 2 if name == "bool" else raw).view(dtype).reshape(shape)


def views_of(tensor):
    yield "itself", tensor
    yield "transposed", tensor.transpose(0, 1)
    yield "permuted", tensor.permute(2, 0, 1)
    yield "slice", tensor[1:, 1:-1, ::2]
    yield "one", tensor[1, 2, 3]
    yield "column", tensor[:, 1]
    yield "expanded", tensor[:, :1].expand(-1, 5, -1)
    yield "strided", tensor.as_strided((2, 3, 4), (1, 2, 3), 1)
    yield "empty", tensor[:0]


def raw_bytes(tensor):
    if isinstance(tensor, numpy.ndarray):
        return numpy.ascontiguousarray(tensor).tobytes()
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def compare(path, expected):
    """All tensors of a file against {name: tensor}."""
    listing = interop.wfs("ls", path, "tensors").stdout.decode().split()
    interop.check(sorted(name.rstrip("/") for name in listing) == sorted(expected), f"{path.name}: the names of the tensors")
    for name, tensor in expected.items():
        metadata = json.loads(interop.cat(path, f"tensors/{name}/metadata.json"))
        interop.check(metadata["shape"] == list(tensor.shape), f"{path.name}: the shape of {name}")
        interop.check(interop.cat(path, f"tensors/{name}/raw") == raw_bytes(tensor), f"{path.name}: the bytes of {name}")


def save_and_compare(value, path, expected=None, **options):
    torch.save(value, path, **options)
    compare(path, torch.load(path, weights_only=False) if expected is None else expected)


def test_views_and_dtypes(directory):
    for zipped in (True, False):
        for protocol, name in zip((2, 3, 4, 5), ("float32", "bfloat16", "complex64", "int8")):
            save_and_compare(dict(views_of(random_tensor(name, (3, 4, 6)))), directory / f"views-{protocol}-{zipped}.pt",
                             pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
        names = [name for name in DTYPES + (NEW_DTYPES if zipped else []) if hasattr(torch, name)]
        tensors = {name: random_tensor(name, (5, 7)) for name in names}
        save_and_compare(tensors | {f"{name}.t": tensor.t() for name, tensor in tensors.items()},
                         directory / f"dtypes-{zipped}.pt", _use_new_zipfile_serialization=zipped)


def test_bits(directory):
    tensor = random_tensor("complex64", (4, 5))
    save_and_compare({"conj": tensor.conj(), "conj.t": tensor.conj().t(), "both": torch._neg_view(tensor.conj())},
                     directory / "bits.pt")
    save_and_compare({"neg": torch._neg_view(random_tensor("float32", (3, 3))), "neg.half": torch._neg_view(random_tensor("float16", (9,)))},
                     directory / "neg.pt")


def test_pickled(directory):
    """Tensors that pickle.dump() writes: each storage is a file of its own in the pickle."""
    for protocol in (2, 4, 5):
        names = [name for name in DTYPES + NEW_DTYPES if hasattr(torch, name)]
        tensors = {name: random_tensor(name, (5, 7)) for name in names}
        tensors |= {f"{name}.t": tensor.t() for name, tensor in tensors.items()} | {"large": random_tensor("float32", (300, 200))}
        path = directory / f"pickled-{protocol}.pkl"
        path.write_bytes(pickle.dumps(tensors, protocol=protocol))
        compare(path, tensors)


def odd_tensors():
    """Tensors without values in wfs."""
    for layout in (torch.strided, torch.jagged):
        yield f"nested-{layout}", torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=layout)
    for name in ("quint4x2", "quint2x4", "qint8"):
        if hasattr(torch, "quantize_per_channel"):  # until torch 2.16
            yield name, torch.quantize_per_channel(torch.ones(8, 8), torch.ones(8), torch.zeros(8), 0, getattr(torch, name))
    yield "sparse", torch.eye(3).to_sparse()
    yield "csr", torch.eye(3).to_sparse_csr()
    yield "meta", torch.empty(3, device="meta")


def test_odd(directory):
    """A tensor that cannot be shown does not hide others."""
    writers = {"zip": torch.save, "pickle": lambda value, path: path.write_bytes(pickle.dumps(value)),
               "legacy": lambda value, path: torch.save(value, path, _use_new_zipfile_serialization=False)}
    warnings.simplefilter("ignore")  # nested and sparse tensors are beta features
    for name, tensor in odd_tensors():
        for how, write in writers.items():
            path = directory / f"{name}.{how}"
            write({"odd": tensor, "x": torch.ones(2)}, path)
            interop.check(interop.cat(path, "tensors/x/raw") == raw_bytes(torch.ones(2)), f"{path.name}: the tensor beside it")
            interop.check(interop.wfs("cat", path, "tensors/odd/raw").returncode == 1, f"{path.name}: has no values")


def test_names(directory):
    one = torch.arange(3.0)
    value = {"model": {"a.b": one, 3: one + 1}, "list": [one, (one, {"k": one + 2})], "epoch": 7}
    save_and_compare(value, directory / "nested.pt",
                     {"model.a.b": one, "model.3": one + 1, "list.0": one, "list.1.0": one, "list.1.1.k": one + 2})
    metadata = json.loads(interop.cat(directory / "nested.pt", "metadata.json"))
    interop.check('"epoch":7' in json.dumps(metadata, separators=(",", ":")), "the scalars are in metadata.json")
    save_and_compare({"state_dict": {"module.w": one}}, directory / "wrapped.pt", {"w": one})
    save_and_compare(one, directory / "alone.pt", {"alone": one})
    optimizer = torch.optim.AdamW([torch.nn.Parameter(one)])
    one.grad = None
    optimizer.param_groups[0]["params"][0].grad = torch.ones(3)
    optimizer.step()
    state = optimizer.state_dict()["state"][0]
    save_and_compare({"optimizer": optimizer.state_dict()}, directory / "optimizer.pt",
                     {f"optimizer.state.0.{name}": tensor for name, tensor in state.items()})


def test_deflated(directory):
    tensors = {f"t{i}": torch.arange(100000.0 * (i + 1)) for i in range(3)}
    torch.save(tensors, directory / "stored.pt")
    with zipfile.ZipFile(directory / "stored.pt") as stored, zipfile.ZipFile(directory / "deflated.pt", "w", zipfile.ZIP_DEFLATED) as out:
        for name in stored.namelist():
            out.writestr(name, stored.read(name))
    compare(directory / "deflated.pt", tensors)


def test_sharded(directory):
    shards = [{"a": torch.arange(4.0), "b": torch.ones(2, 2)}, {"c": torch.arange(6).reshape(2, 3).t()}]
    for index in (True, False):
        path = directory / f"sharded-{index}"
        path.mkdir()
        names = [f"pytorch_model-{i + 1:05}-of-00002.bin" for i in range(2)]
        for name, shard in zip(names, shards):
            torch.save(shard, path / name)
        if index:
            weight_map = {key: name for name, shard in zip(names, shards) for key in shard}
            (path / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
        compare(path, shards[0] | shards[1])


# Meta's layout.

def to_meta_rows(weight, heads):
    """The inverse of the conversion's permute()."""
    rows, columns = weight.shape
    return weight.view(heads, 2, rows // heads // 2, columns).transpose(1, 2).reshape(rows, columns)


def meta_shards(state, n_shards, heads, kv_heads, layers, embedding_axis):
    shards = [{} for _ in range(n_shards)]

    def put(name, tensor, axis, pieces=n_shards):
        for i, shard in enumerate(shards):
            shard[name] = (tensor if axis is None else tensor.chunk(pieces, axis)[i * pieces // n_shards]).clone()

    kv_pieces = min(n_shards, kv_heads)
    put("tok_embeddings.weight", state["model.embed_tokens.weight"], embedding_axis)
    put("norm.weight", state["model.norm.weight"], None)
    put("output.weight", state["lm_head.weight"], 0)
    put("rope.freqs", torch.ones(4), None)
    for i in range(layers):
        layer = {name.removeprefix(f"model.layers.{i}."): tensor for name, tensor in state.items() if f".layers.{i}." in name}
        put(f"layers.{i}.attention.wq.weight", to_meta_rows(layer["self_attn.q_proj.weight"], heads), 0)
        put(f"layers.{i}.attention.wk.weight", to_meta_rows(layer["self_attn.k_proj.weight"], kv_heads), 0, kv_pieces)
        put(f"layers.{i}.attention.wv.weight", layer["self_attn.v_proj.weight"], 0, kv_pieces)
        put(f"layers.{i}.attention.wo.weight", layer["self_attn.o_proj.weight"], 1)
        put(f"layers.{i}.feed_forward.w1.weight", layer["mlp.gate_proj.weight"], 0)
        put(f"layers.{i}.feed_forward.w2.weight", layer["mlp.down_proj.weight"], 1)
        put(f"layers.{i}.feed_forward.w3.weight", layer["mlp.up_proj.weight"], 0)
        put(f"layers.{i}.attention_norm.weight", layer["input_layernorm.weight"], None)
        put(f"layers.{i}.ffn_norm.weight", layer["post_attention_layernorm.weight"], None)
    return shards


def write_both(directory, n_shards, kv_heads, version, heads=8, layers=2, dim=64, vocab=320):
    """One model in both layouts; returns both directories and its tensors."""
    from transformers import LlamaConfig, LlamaForCausalLM, LlamaTokenizer

    hugging_face, meta = directory / f"hf-{version}-{n_shards}", directory / f"meta-{version}-{n_shards}"
    scaling = {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 8192,
               "rope_type": "llama3"}
    config = LlamaConfig(
        hidden_size=dim, intermediate_size=2 * dim, num_attention_heads=heads, num_key_value_heads=kv_heads, num_hidden_layers=layers,
        vocab_size=vocab, rms_norm_eps=1e-5, max_position_embeddings=131072 if version == 3 else 4096,
        rope_theta=500000.0 if version == 3 else 10000.0, rope_scaling=scaling if version == 3 else None, tie_word_embeddings=False)
    model = LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(hugging_face)
    (hugging_face / "generation_config.json").unlink()
    meta.mkdir()
    state = model.state_dict()
    for i, shard in enumerate(meta_shards(state, n_shards, heads, kv_heads, layers, 0 if version == 3 else 1)):
        torch.save(shard, meta / f"consolidated.{i:02}.pth")
    params = {"dim": dim, "n_layers": layers, "n_heads": heads, "n_kv_heads": kv_heads, "norm_eps": 1e-05, "vocab_size": -1}
    if version == 3:
        params |= {"rope_theta": 500000.0, "use_scaled_rope": True}
    else:
        train_sentencepiece(meta, vocab)
        LlamaTokenizer(str(meta / "tokenizer.model")).save_pretrained(hugging_face)
    (meta / "params.json").write_text(json.dumps(params))
    return hugging_face, meta, state


def train_sentencepiece(directory, vocab):
    import sentencepiece

    text = (ROOT / "LICENSE").read_text() * 4
    (directory / "text").write_text(text)
    sentencepiece.SentencePieceTrainer.train(
        input=str(directory / "text"), model_prefix=str(directory / "tokenizer"), vocab_size=vocab, model_type="bpe", byte_fallback=True,
        character_coverage=1.0, minloglevel=2)
    (directory / "text").unlink()
    (directory / "tokenizer.vocab").unlink()


# What only the Hugging Face layout knows: its release, what its authors wrote of it, and how its tokenizer was saved.
ONLY_HUGGING_FACE = {
    "general.name", "general.basename", "general.finetune", "general.version", "general.size_label", "general.license",
    "general.languages", "general.tags", "general.base_model.count", "tokenizer.chat_template", "general.sampling.temp",
    "general.sampling.top_p",
}


def gguf_contents(path, file):
    import gguf

    with tempfile.NamedTemporaryFile() as copy:
        copy.write(interop.cat(path, file))
        copy.flush()
        reader = gguf.GGUFReader(copy.name)
        fields = {name: field.contents() for name, field in reader.fields.items() if not name.startswith("GGUF.")}
        tensors = {tensor.name: (tensor.tensor_type, tuple(tensor.shape), tensor.data.tobytes()) for tensor in reader.tensors}
    return fields, tensors


def compare_gguf(hugging_face, meta):
    if "model.gguf" not in interop.wfs("ls", hugging_face).stdout.decode().split():
        print(f"{hugging_face.name}: no model.gguf to compare with")
        return
    (fields, tensors), (meta_fields, meta_tensors) = gguf_contents(hugging_face, "model.gguf"), gguf_contents(meta, "model.gguf")
    different = {name for name in fields.keys() | meta_fields.keys() if fields.get(name) != meta_fields.get(name)}
    interop.check(different <= ONLY_HUGGING_FACE, f"{meta.name}: model.gguf differs in {sorted(different - ONLY_HUGGING_FACE)}")
    interop.check(list(tensors.items()) == list(meta_tensors.items()), f"{meta.name}: the tensors of model.gguf")


def test_meta(directory):
    try:
        import sentencepiece  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        interop.skip(str(error))
    for n_shards, kv_heads, version in ((1, 8, 2), (2, 4, 2), (8, 8, 2), (1, 2, 3), (8, 2, 3)):
        hugging_face, meta, state = write_both(directory, n_shards, kv_heads, version)
        compare(meta, state)
        compare(meta / "consolidated.00.pth", state)
        compare_gguf(hugging_face, meta)


def tiktoken_ranks():
    """Ranks of a byte-level vocabulary, as a tiktoken file keeps them: all bytes, then pairs of the tokens before."""
    words = ["th", "the", " the", "in", "ing", " a", " an", " and", "ou", "you", "  ", "    ", "\n\n", "0", "00"]
    ranks = {bytes([byte]): byte for byte in range(256)}
    for word in words:
        ranks.setdefault(word.encode(), len(ranks))
    return ranks


def test_tiktoken(directory):
    """tokenizer.json of Llama 3 against TikTokenConverter."""
    import types

    try:
        from transformers.convert_slow_tokenizer import TikTokenConverter
    except ImportError as error:
        interop.skip(str(error))
    ranks = tiktoken_ranks()
    _, meta, _ = write_both(directory / "tiktoken", 1, 2, 3, vocab=len(ranks) + 256)
    (meta / "tokenizer.model").write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items()))
    fake = types.ModuleType("tiktoken.load")
    fake.load_tiktoken_bpe = lambda path: ranks
    sys.modules["tiktoken"], sys.modules["tiktoken.load"] = types.ModuleType("tiktoken"), fake
    reference = json.loads(TikTokenConverter(str(meta / "tokenizer.model"), additional_special_tokens={}).converted().to_str())["model"]
    made = json.loads(interop.cat(meta, "tokenizer.json"))["model"]
    merges = [" ".join(pair) if isinstance(pair, list) else pair for pair in reference["merges"]]
    interop.check(made["vocab"] == reference["vocab"], "tokenizer.json: the vocabulary")
    interop.check(made["merges"] == merges, "tokenizer.json: the merges")
    config = json.loads(interop.cat(meta, "config.json"))
    interop.check(config["bos_token_id"] == len(ranks), "config.json: bos is the first token after the ranks")


torch.manual_seed(0)
for test in [function for name, function in list(globals().items()) if name.startswith("test_")]:
    with tempfile.TemporaryDirectory() as temporary:
        test(pathlib.Path(temporary))
interop.done()
