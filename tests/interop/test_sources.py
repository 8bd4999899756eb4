"""Checkpoints of other frameworks, compared with what their own libraries load from them.

WFS_GOLDEN is a folder; its sources/expected.json says of each source there whether it can be read, and of each of its tensors the dtype, the shape,
and the SHA-256 of the elements. Its README.md has the keys. Only formats that wfs reads are compared: the tensors that wfs
shows, and those of model.safetensors.
"""
import hashlib
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import tempfile
import zipfile

import h5py
import torch
from safetensors.torch import load_file
from torch.distributed.checkpoint import FileSystemWriter
from torch.distributed.checkpoint import save as torch_save
from torch.distributed.checkpoint.filesystem import SerializationFormat
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from interop import cat, check, done, golden_checkpoints, wfs

READ = {"dcp", "flax", "ggml", "hdf5", "keras", "nemo", "onnx", "orbax", "paddle", "pt2", "tensorflow", "tensorizer", "tflite", "zero"}
UNREAD = {"h5.scaleoffset.h5"}  # a filter that wfs does not undo
OPTIONS = {"dcp": ["-o", "optimizer"]}
SAFETENSORS = {"BF16", "F16", "F32", "F64", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "F4", "I8", "I16", "I32",
               "I64", "U8", "U16", "U32", "U64", "BOOL", "C64"}  # the dtypes of the safetensors crate


def answers(expected):
    """The dtypes, shapes and digests that are right for a tensor."""
    return [(one["dtype"], one["shape"], one["sha256"]) for one in (expected, *expected.get("or", []))]


def shown(path, options, tensor):
    """The dtype, shape and digest of a tensor that wfs shows; None without values."""
    result = wfs("cat", *options, path, f"tensors/{tensor['directory']}/raw")
    if result.returncode != 0:
        return None
    return (tensor["dtype"], tensor["shape"], hashlib.sha256(result.stdout).hexdigest())


def find(tensors, name):
    """The tensor of that name; a first key that all tensors share may be missing from names."""
    return tensors.get(name) or tensors.get(name.partition(".")[2])


def compare(path, options, entry, described):
    tensors = {tensor["name"]: tensor for tensor in described["tensors"]}
    known = []
    for name, expected in entry.get("tensors", {}).items():
        tensor = find(tensors, name)
        known.append(tensor and tensor["name"])
        if check(tensor is not None, f"{path.name}: {name}: missing"):
            found = shown(path, options, tensor)
            check(found in answers(expected), f"{path.name}: {name}: {found} instead of {answers(expected)}")
    for name, expected in entry.get("loose", {}).items():
        known.append(name)
        found = shown(path, options, tensors[name]) if name in tensors else None
        check(found is None or found in answers(expected), f"{path.name}: {name}: {found}")
    for name in (*entry.get("valueless", []), *entry.get("absent", [])):
        known.append(name)
        check(name not in tensors or shown(path, options, tensors[name]) is None, f"{path.name}: {name}: has values")
    more = set(tensors) - set(known)
    check("tensors" not in entry or entry.get("extra") or not more, f"{path.name}: more tensors: {sorted(more)[:5]}")


def held(data, bits):
    """The dtype, shape and digest of each tensor of a safetensors file. bits: for integers that have a byte each, the number of
    bits that the golden digests have of it, where wfs repeats the sign."""
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)

    def stored(name, one):
        return bytes(byte & (1 << bits.get(name, 8)) - 1 for byte in data[start:][slice(*one["data_offsets"])])

    return {name: (one["dtype"], one["shape"], hashlib.sha256(stored(name, one)).hexdigest()) for name, one in header.items()}


def compare_saved(path, options, entry):
    """Compares model.safetensors, at the root and in hf/, with the tensors that safetensors has a dtype for."""
    wanted = {name: answers(one) for name, one in entry.get("tensors", {}).items()}
    wanted = {name: right for name, right in wanted.items() if any(dtype in SAFETENSORS for dtype, _, _ in right)}
    if not wanted:  # of a file of 8 TiB, say
        return
    if entry.get("loose"):  # may be left out
        options = [*options, "-o", "partial"]
    result = wfs("cat", *options, path, "model.safetensors")
    if not check(result.returncode == 0, f"{path.name}: no model.safetensors: {result.stderr.decode()}"):
        return
    packed = {"I4": 4, "I2": 2}
    tensors = held(result.stdout, {name: packed[right[0][0]] for name, right in wanted.items() if right[0][0] in packed})
    for name, right in wanted.items():
        found = find(tensors, name)
        check(found in right, f"{path.name}: model.safetensors: {name}: {found} instead of {right}")
    check(wfs("cat", *options, path, "hf/model.safetensors").stdout == result.stdout, f"{path.name}: hf/ has another file")


def check_source(path, entry):
    options = OPTIONS.get(entry["format"], [])
    result = wfs("cat", *options, path, "metadata.json")
    refused = result.returncode != 0
    check(result.returncode in (0, 1), f"{path.name}: ends with {result.returncode}")
    if refused:
        message = result.stderr.decode(errors="replace")
        check(entry["answer"] != "accept", f"{path.name}: refused: {message}")
        check(message.count("\n") == 1, f"{path.name}: the refusal is not one line: {message}")
    elif check(entry["answer"] != "refuse", f"{path.name}: not refused"):
        compare(path, options, entry, json.loads(result.stdout))
        compare_saved(path, options, entry)
    if "secret" in entry:
        check(entry["secret"].encode() not in result.stdout, f"{path.name}: shows bytes of another file")
    if "owned" in entry:
        check(not os.path.exists(entry["owned"]), f"{path.name}: ran code")


def check_distributed(folder):
    """A checkpoint that torch saves here."""
    weights = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(4, dtype=torch.bfloat16), "t": torch.arange(6.0).reshape(2, 3).T}
    state = {"model": weights, "optimizer": {"m": torch.zeros(2)}, "pair": (torch.ones(2), {"x": [torch.arange(6.0).reshape(2, 3).T]}), "step": (1, 2)}
    torch_save(state, checkpoint_id=folder, no_dist=True)
    weights.update({"pair.0": state["pair"][0], "pair.1.x.0": state["pair"][1]["x"][0]})
    described = json.loads(cat(folder, "metadata.json"))
    check({tensor["name"] for tensor in described["tensors"]} == set(weights), "torch: names of the model alone")
    for name, tensor in weights.items():
        values = torch.frombuffer(bytearray(cat(folder, f"tensors/{name}/raw")), dtype=tensor.dtype).reshape(tensor.shape)
        check(torch.equal(values, tensor), f"torch: {name}")


# What ranks save: values, and how they are cut; None: a tensor that is no DTensor.
CUT = {
    "rows": (torch.arange(40.0).reshape(8, 5), [Shard(0)]),
    "uneven": (torch.arange(35).to(torch.bfloat16).reshape(5, 7), [Shard(0)]),
    "few": (torch.arange(3.0).half().reshape(1, 3), [Shard(0)]),
    "columns": (torch.arange(42).short().reshape(6, 7), [Shard(1)]),
    "grid": (torch.arange(60.0).reshape(4, 15), [Shard(0), Shard(1)]),
    "cube": (torch.complex(torch.arange(60.0), torch.ones(60)).reshape(3, 4, 5), [Shard(2)]),
    "copied": (torch.arange(9) % 2 == 0, [Replicate()]),
    "plain": (torch.arange(6.0).double().reshape(2, 3), None),
    "scalar": (torch.tensor(4, dtype=torch.uint8), None),
    "empty": (torch.zeros(0, 3), None),
}


def cut(whole, placements, n_ranks):
    """What a rank has of a tensor, as a DTensor."""
    if n_ranks == 1 or placements is None:
        return whole
    mesh = init_device_mesh("cpu", (n_ranks,) if len(placements) == 1 else (2, n_ranks // 2))
    local = whole
    for placement, at, size in zip(placements, mesh.get_coordinate(), mesh.shape):
        if placement.is_shard():
            pieces = torch.chunk(local, size, placement.dim)
            local = pieces[at] if at < len(pieces) else local.narrow(placement.dim, 0, 0)
    return DTensor.from_local(local.contiguous(), mesh, placements, run_check=False, shape=whole.shape, stride=whole.stride())


def save_rank(rank, n_ranks, folder, options):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}.rendezvous", rank=rank, world_size=n_ranks)
    tensors = {name: cut(*how, n_ranks) for name, how in CUT.items()}
    writer = FileSystemWriter(folder, serialization_format=SerializationFormat.SAFETENSORS, **options)
    torch_save({"model": tensors, "optimizer": {"m": torch.zeros(2)}, "step": 5, "pair": (1, "x")}, storage_writer=writer)
    torch.distributed.destroy_process_group()


def check_parts(folder):
    """Checkpoints in safetensors, which torch does not load itself: compared with what was saved."""
    context = multiprocessing.get_context("fork")
    variants = [(1, {}), (1, {"thread_count": 3}), (2, {"sync_files": False}), (4, {}), (4, {"single_file_per_rank": False, "thread_count": 2})]
    for at, (n_ranks, options) in enumerate(variants):
        path = f"{folder}/{at}"
        ranks = [context.Process(target=save_rank, args=(rank, n_ranks, path, options)) for rank in range(n_ranks)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
        tensors = {tensor["name"]: tensor for tensor in json.loads(cat(path, "metadata.json"))["tensors"]}
        check(set(tensors) == set(CUT), f"safetensors of {n_ranks} ranks, {options}: names")
        for name, (values, _) in CUT.items():
            is_whole = tensors[name]["shape"] == list(values.shape) and cat(path, f"tensors/{name}/raw") == values.flatten().view(torch.uint8).numpy().tobytes()
            check(is_whole, f"safetensors of {n_ranks} ranks, {options}: {name}")


def check_exported(folder):
    """A program that torch exports here, and its weights as torch saved them before it wrote .pt2 by JSON files."""
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    torch.export.save(torch.export.export(module.eval(), (torch.zeros(2, 3),)), f"{folder}/module.pt2")
    torch.save(dict(module.state_dict()), f"{folder}/weights")
    with zipfile.ZipFile(f"{folder}/older.pt2", "w") as archive:
        archive.write(f"{folder}/weights", "data/weights/model.pt")
        archive.writestr("archive_format", "pt2")
    for name in ("module", "older"):
        described = json.loads(cat(f"{folder}/{name}.pt2", "metadata.json"))
        check({tensor["name"] for tensor in described["tensors"]} == set(module.state_dict()), f"{name}.pt2: names")
        for tensor, value in module.state_dict().items():
            check(cat(f"{folder}/{name}.pt2", f"tensors/{tensor}/raw") == value.numpy().tobytes(), f"{name}.pt2: {tensor}")


TORCHTITAN = {
    "self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1", "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3", "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
    "embed_tokens": "tok_embeddings", "norm": "norm", "lm_head": "output",
}


def of_torchtitan(name, tensor, config):
    """A tensor of transformers' Llama as torchtitan has it: pairs of rotary rows side by side."""
    layer, module = re.fullmatch(r"(?:model\.)?(layers\.\d+\.)?(.*)\.weight", name).groups()
    heads = {"self_attn.q_proj": "num_attention_heads", "self_attn.k_proj": "num_key_value_heads"}.get(module)
    if heads:
        tensor = tensor.unflatten(0, (config[heads], 2, -1)).transpose(1, 2).reshape(tensor.shape)
    return f"{layer or ''}{TORCHTITAN[module]}.weight", tensor.contiguous()


def of_megatron(weights, config):
    """The weights of transformers' Llama as Megatron-Core's torch_dist has them: layers stacked, key heads' queries, key
    and value side by side, gate and up joined, and padding after the embeddings."""
    n_layers, n_groups = config["num_hidden_layers"], config["num_key_value_heads"]

    def layers(*names, join=torch.cat):
        parts = [[weights[f"model.layers.{i}.{name}.weight"] for name in names] for i in range(n_layers)]
        return torch.stack([join(tensors) for tensors in parts])

    def group(tensors):
        heads = [tensor.unflatten(0, (n_groups, -1)) for tensor in tensors]
        return torch.cat(heads, dim=1).flatten(0, 1)

    embedding, decoder = weights["model.embed_tokens.weight"], "decoder.layers."
    return {
        "embedding.word_embeddings.weight": torch.cat([embedding, embedding.new_ones(3, embedding.shape[1])]),
        "decoder.final_layernorm.weight": weights["model.norm.weight"],
        decoder + "self_attention.linear_qkv.layer_norm_weight": layers("input_layernorm"),
        decoder + "self_attention.linear_qkv.weight":
            layers("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", join=group),
        decoder + "self_attention.linear_proj.weight": layers("self_attn.o_proj"),
        decoder + "mlp.linear_fc1.layer_norm_weight": layers("post_attention_layernorm"),
        decoder + "mlp.linear_fc1.weight": layers("mlp.gate_proj", "mlp.up_proj"),
        decoder + "mlp.linear_fc2.weight": layers("mlp.down_proj"),
    }


def of_keras(name, tensor):
    """A tensor of transformers' BERT as TFBertModel saved it."""
    path, leaf = name.rsplit(".", 1)
    if "LayerNorm" in path:
        leaf = {"weight": "gamma", "bias": "beta"}[leaf]
    elif leaf == "weight" and "embeddings" not in path:
        leaf, tensor = "kernel", tensor.T
    path = re.sub(r"layer/(\d+)", r"layer_._\1", path.replace(".", "/"))
    return f"bert/tf_bert_model/bert/{path}/{leaf}:0", tensor


def copy_model(model, folder):
    """Copies all but the weights, and returns these."""
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("*.safetensors", "*.index.json"))
    return {name: tensor for file in model.glob("*.safetensors") for name, tensor in load_file(file).items()}


def check_names(models):
    """Weights in another framework's names and layout make the same model.gguf."""
    with tempfile.TemporaryDirectory() as folder:
        llama, bert = models / "Llama-3.2-1B-Instruct", models / "bge-small-en-v1.5"
        run = pathlib.Path(folder, llama.name)
        weights, config = copy_model(llama, run), json.loads((llama / "config.json").read_text())
        state = dict(of_torchtitan(name, tensor, config) for name, tensor in weights.items())
        torch_save({"model": state, "optimizer": {"m": torch.zeros(2)}}, checkpoint_id=run, no_dist=True)
        check(cat(run, "model.gguf") == cat(llama, "model.gguf"), "torchtitan: model.gguf")
        run = pathlib.Path(folder, "iter_0000010", llama.name)
        torch_save(of_megatron(copy_model(llama, run), config), checkpoint_id=run, no_dist=True)
        torch.save({"iteration": 10}, run / "common.pt")
        check(cat(run, "model.gguf") == cat(llama, "model.gguf"), "Megatron-Core: model.gguf")
        keras = pathlib.Path(folder, bert.name)
        weights = copy_model(bert, keras)
        with h5py.File(keras / "tf_model.h5", "w") as file:
            for name, tensor in weights.items():
                if not name.endswith("position_ids"):
                    file[of_keras(name, tensor)[0]] = of_keras(name, tensor)[1].numpy()
        check(cat(keras, "model.gguf") == cat(bert, "model.gguf"), "Keras: model.gguf")


def check_golden(folder):
    for name, entry in json.loads((folder / "expected.json").read_text()).items():
        if entry["format"] in READ and name not in UNREAD:
            check_source(folder / name, entry)


def main():
    with tempfile.TemporaryDirectory() as folder:
        check_distributed(folder)
    with tempfile.TemporaryDirectory() as folder:
        check_exported(folder)
    with tempfile.TemporaryDirectory() as folder:
        check_parts(folder)
    golden = pathlib.Path(os.environ.get("WFS_GOLDEN", ""), "sources")
    if (golden / "expected.json").exists():
        check_golden(golden)
    else:
        print("no sources of other frameworks: WFS_GOLDEN is not set")
    models, _ = golden_checkpoints()
    if "Llama-3.2-1B-Instruct" in models:
        check_names(models["Llama-3.2-1B-Instruct"].parent)
    else:
        print("no models to rename: WFS_GOLDEN is not set")
    done()


if __name__ == "__main__":
    main()
