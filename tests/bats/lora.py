"""Inputs for lora.bats, and what numpy makes of them.

    lora.py DIRECTORY               base/, a Llama of one layer; sql-lora/, an adapter of four of its weights
                                    other/, another; larger/, one of a wider base
                                    fp8/, the sample of tests/data with linear layers in FP8; fp8-lora/, an adapter of two of them;
                                    whole-lora/, one of one of them and a norm
    lora.py merged MOUNTPOINT       base with sql-lora, and other by -0.5
    lora.py check F32 F16           the two GGUF files of the adapter hold what they should
    lora.py packed WFS PACKED DIR   an adapter for each packed weight of tests/data/packed, in DIR; merged by wfs it is right to the bit
"""
import json
import pathlib
import struct
import subprocess
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "data"))
import make  # noqa: E402

HIDDEN, HEADS, INNER, VOCAB, RANK = 16, 4, 24, 40, 2
LAYER = "model.layers.0."
SHAPES = {
    "model.embed_tokens.weight": (VOCAB, HIDDEN),
    LAYER + "self_attn.q_proj.weight": (HIDDEN, HIDDEN),
    LAYER + "self_attn.k_proj.weight": (HIDDEN, HIDDEN),
    LAYER + "self_attn.v_proj.weight": (HIDDEN, HIDDEN),
    LAYER + "self_attn.o_proj.weight": (HIDDEN, HIDDEN),
    LAYER + "mlp.gate_proj.weight": (INNER, HIDDEN),
    LAYER + "mlp.up_proj.weight": (INNER, HIDDEN),
    LAYER + "mlp.down_proj.weight": (HIDDEN, INNER),
    LAYER + "input_layernorm.weight": (HIDDEN,),
    LAYER + "post_attention_layernorm.weight": (HIDDEN,),
    "model.norm.weight": (HIDDEN,),
    "lm_head.weight": (VOCAB, HIDDEN),
}
ADAPTED = {"self_attn.q_proj": "attn_q", "self_attn.v_proj": "attn_v", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": INNER, "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS, "num_hidden_layers": 1, "vocab_size": VOCAB, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
}
ADAPTER = {
    "base_model_name_or_path": "nobody/tiny", "peft_type": "LORA", "r": RANK, "lora_alpha": 8, "target_modules": sorted(n.split(".")[1] for n in ADAPTED),
    "fan_in_fan_out": False, "use_rslora": False, "use_dora": False, "bias": "none", "modules_to_save": None, "rank_pattern": {}, "alpha_pattern": {},
}


def weights():
    random = numpy.random.default_rng(11)
    return {name: random.standard_normal(shape, dtype=numpy.float32) for name, shape in SHAPES.items()}


def halves(seed=12):
    """The adapter: A and B of each weight."""
    random = numpy.random.default_rng(seed)
    out = {}
    for name in ADAPTED:
        rows, columns = SHAPES[LAYER + name + ".weight"]
        out[name] = random.standard_normal((RANK, columns), dtype=numpy.float32), random.standard_normal((rows, RANK), dtype=numpy.float32)
    return out


def write(folder, config_name, config, weights_name, tensors):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / config_name).write_text(json.dumps(config))
    (folder / weights_name).write_bytes(make.safetensors({n: ("F32", list(v.shape), v.tobytes()) for n, v in tensors.items()}, {"format": "pt"}))


def write_adapter(folder, config, seed=12):
    tensors = {}
    for name, (a, b) in halves(seed).items():
        tensors[f"base_model.model.{LAYER}{name}.lora_A.weight"] = a
        tensors[f"base_model.model.{LAYER}{name}.lora_B.weight"] = b
    write(folder, "adapter_config.json", config, "adapter_model.safetensors", tensors)


def inputs(folder):
    write(folder / "base", "config.json", CONFIG, "model.safetensors", weights())
    write_adapter(folder / "sql-lora", ADAPTER)
    write_adapter(folder / "other", {**ADAPTER, "use_rslora": True, "alpha_pattern": {"mlp.up_proj": 3}}, 13)
    wide = {f"base_model.model.{LAYER}mlp.down_proj.lora_{half}.weight": numpy.ones(shape, "<f4") for half, shape in (("A", (RANK, INNER + 1)), ("B", (HIDDEN, RANK)))}
    write(folder / "larger", "adapter_config.json", ADAPTER, "adapter_model.safetensors", wide)
    inputs_of_fp8(folder / "fp8")


def inputs_of_fp8(folder):
    random, tensors, halves = numpy.random.default_rng(15), make.sample_weights(), {}
    make.make_sample(folder)
    for name, (_, shape, _) in list(tensors.items()):
        if "_proj" in name:
            tensors[name] = "F8_E4M3", shape, random.integers(0, 0x60, shape, "u1").tobytes()
            tensors[name + "_scale"] = "F32", [], numpy.float32(2.0**-9).tobytes()
    for name in (n for n in tensors if n.endswith(("0.self_attn.q_proj.weight", "1.mlp.down_proj.weight"))):
        rows, columns = tensors[name][1]
        for half, shape in (("A", (RANK, columns)), ("B", (rows, RANK))):
            halves[f"base_model.model.{name[:-7]}.lora_{half}.weight"] = random.standard_normal(shape, dtype=numpy.float32)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": {"quant_method": "fp8", "weight_block_size": None}}))
    (folder / "model.safetensors").write_bytes(make.safetensors(tensors, {"format": "pt"}))
    norm = {"base_model.model.model.norm.weight": random.standard_normal(make.SAMPLE["hidden"], dtype=numpy.float32)}
    write(folder.parent / "whole-lora", "adapter_config.json", ADAPTER, "adapter_model.safetensors", {**norm, **{name: half[::-1] for name, half in halves.items() if "q_proj" in name}})
    write(folder.parent / "fp8-lora", "adapter_config.json", ADAPTER, "adapter_model.safetensors", halves)


def merged(mountpoint):
    """Off by a few units of what is added up: numpy's sums have another order."""
    expected = {name: value.astype("<f8") for name, value in weights().items()}
    for name, (a, b) in halves().items():
        expected[f"{LAYER}{name}.weight"] += 8 / RANK * (b.astype("<f8") @ a)
    for name, (a, b) in halves(13).items():
        expected[f"{LAYER}{name}.weight"] += -0.5 * (3 if name == "mlp.up_proj" else 8) / RANK**0.5 * (b.astype("<f8") @ a)
    for name, value in expected.items():
        for file in "raw", "f32":
            shown = numpy.fromfile(f"{mountpoint}/tensors/{name}/{file}", "<f4").reshape(value.shape)
            assert numpy.abs(shown - value).max() <= 2e-5, (name, file, numpy.abs(shown - value).max())
    _, tensors = read_safetensors(f"{mountpoint}/model.safetensors")
    for name, value in expected.items():
        assert numpy.abs(tensors[name] - value).max() <= 2e-5, name


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    start = 8 + struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", None)
    return metadata, {name: numpy.frombuffer(data[start + row["data_offsets"][0]:start + row["data_offsets"][1]], "<f4").reshape(row["shape"]) for name, row in header.items()}


OTHER_WEIGHTS = {"fp8-ranks": ("model.layers.1.self_attn.qkv_proj.", 16), "gemma-int2-odd": ("model.layers.0.mlp.down_proj.", 61)}


def packed(wfs, folder, scratch):
    """Numbers are such that no sum is rounded, so that the only rounding is that of the whole, and the one to BF16."""
    scratch, random, n_merged = pathlib.Path(scratch), numpy.random.default_rng(14), 0
    for base in sorted(pathlib.Path(folder).iterdir()):
        values = numpy.fromfile(base / "expected.f32", "<f4")
        if "experts" in base.name or base.name.startswith("comfy-"):  # files of ComfyUI are no bases of peft
            continue
        if base.name == "torchao-flat-int4":  # experts, too
            continue
        name, width = OTHER_WEIGHTS.get(base.name, ("model.layers.0.mlp.down_proj.", 64))
        values = values.reshape(-1, width)
        a, b = (random.integers(-8, 9, shape).astype("<f4") / 8 for shape in ((RANK, width), (len(values), RANK)))
        write(scratch / base.name, "adapter_config.json", ADAPTER, "adapter_model.safetensors",
              {f"base_model.model.{name}lora_A.weight": a, f"base_model.model.{name}lora_B.weight": b})
        made = subprocess.run([wfs, "cat", "-o", f"lora={scratch / base.name}", base, "model.safetensors"], stdout=subprocess.PIPE, check=True).stdout
        start = 8 + struct.unpack_from("<Q", made)[0]
        header = json.loads(made[8:start])
        expected = (values + numpy.float32(8 / RANK) * (b @ a)).astype("<f4")
        assert {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [0, 2 * values.size]} == header[name + "weight"], (base.name, header)
        assert made[start:] == make.bf16(expected), base.name
        n_merged += 1
    assert n_merged > 30, n_merged


def read_gguf(path):
    """Keys and tensors of a GGUF whose keys are texts, numbers of 4 bytes or lists of texts."""
    data, at = pathlib.Path(path).read_bytes(), 0

    def number(form):
        nonlocal at
        at += struct.calcsize(form)
        return struct.unpack_from(form, data, at - struct.calcsize(form))[0]

    def text():
        nonlocal at
        length = number("<Q")
        at += length
        return data[at - length:at].decode()

    assert data[:4] == b"GGUF"
    at = 8
    n_tensors, n_keys, keys, infos = number("<Q"), number("<Q"), {}, []
    for _ in range(n_keys):
        key, kind = text(), number("<I")
        keys[key] = text() if kind == 8 else number("<f") if kind == 6 else number("<I")
    for _ in range(n_tensors):
        name, rank = text(), number("<I")
        shape = [number("<Q") for _ in range(rank)][::-1]
        infos.append((name, shape, number("<I"), number("<Q")))
    start = (at + 31) // 32 * 32
    tensors = {}
    for name, shape, kind, offset in infos:
        dtype = {0: "<f4", 1: "<f2"}[kind]
        count = int(numpy.prod(shape))
        tensors[name] = numpy.frombuffer(data, dtype, count, start + offset).reshape(shape)
    return keys, tensors


def check(f32, f16):
    for path, dtype in ((f32, "<f4"), (f16, "<f2")):
        keys, tensors = read_gguf(path)
        assert keys == {"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora", "general.name": "Sql Lora",
                        "adapter.lora.alpha": 8.0, "general.quantization_version": 2}, keys
        expected = {}
        for name, (a, b) in sorted(halves().items()):
            if name == "self_attn.q_proj":
                b = b.reshape(HEADS, 2, HIDDEN // HEADS // 2, RANK).swapaxes(1, 2).reshape(HIDDEN, RANK)
            expected[f"blk.0.{ADAPTED[name]}.weight.lora_a"] = a
            expected[f"blk.0.{ADAPTED[name]}.weight.lora_b"] = b
        assert list(tensors) == list(expected), list(tensors)
        for name, value in expected.items():
            assert tensors[name].dtype == dtype and numpy.array_equal(tensors[name], value.astype(dtype)), name


def folded(plain, path):
    """llama.cpp multiplies B A with adapter.lora.alpha / rank; peft with alpha / sqrt(rank), and alpha of alpha_pattern, of the adapter `other`."""
    (keys, stored), (folded_keys, tensors) = read_gguf(plain), read_gguf(path)
    assert keys == folded_keys and list(stored) == list(tensors), folded_keys
    for name, value in tensors.items():
        if name.endswith("lora_a"):
            assert numpy.array_equal(value, stored[name]), name
            continue
        peft = (3 if "ffn_up" in name else 8) / RANK**0.5
        by_llama = value.astype("<f8") * keys["adapter.lora.alpha"] / RANK
        assert numpy.allclose(by_llama, stored[name].astype("<f8") * peft, rtol=1e-6, atol=0), name


if sys.argv[1] == "check":
    check(*sys.argv[2:])
elif sys.argv[1] == "folded":
    folded(*sys.argv[2:])
elif sys.argv[1] == "packed":
    packed(*sys.argv[2:])
elif sys.argv[1] == "merged":
    merged(sys.argv[2])
else:
    inputs(pathlib.Path(sys.argv[1]))
