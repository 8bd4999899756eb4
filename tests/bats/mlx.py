"""Models for the tests of mlx/, and what MLX makes of them, by numpy: mlx.py WHAT ARGUMENTS...

    make DIRECTORY           a Llama of two layers in BF16
    make-experts DIRECTORY   a Qwen3 MoE of one layer with three experts
    check BITS SOURCE FILE   compares every tensor of an affine quantization in groups of 64
    make-of-mlx DIRECTORY    checkpoints that mlx-lm wrote, a directory each: of classes whose changes cannot be undone, with halves of a
                             matrix in an unknown quantization, and with convolutions
    make-gptq DIRECTORY      a Llama of one layer in GPTQ of 4 bits in groups of 64, symmetric
    make-asymmetric DIRECTORY  the same with zero points
    make-int8 DIRECTORY      the same in bitsandbytes' 8 bits, whose rows are no groups of MLX
    check-repacked SOURCE FILE  compares codes, scales and biases with those of GPTQ
    experts SOURCE FILE      compares stacked experts
    shape FILE INDEX         checks the layout of a file, and its index
"""
import json
import pathlib
import struct
import sys

import numpy

GROUP, HIDDEN = 64, 128


def to_bf16(values):
    """F32 numbers rounded half to even to BF16, as F32."""
    bits = numpy.asarray(values, "<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("<u4").view("<f4")


def raw(values):
    return (to_bf16(values).view("<u4") >> 16).astype("<u2").tobytes()


def write(directory, config, shapes):
    random = numpy.random.default_rng(5)
    path = pathlib.Path(directory)
    path.mkdir(parents=True)
    header, data = {}, b""
    for name, shape in shapes.items():
        values = to_bf16(random.standard_normal(shape, dtype=numpy.float32) * 0.05)
        if len(shape) == 2 and shape[0] > 3:
            values[0], values[1], values[2, 3] = 0, 0.125, -3
            values[3] = numpy.abs(values[3])
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [len(data), len(data) + 2 * values.size]}
        data += raw(values)
    text = json.dumps(header).encode()
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (path / "config.json").write_text(json.dumps(config))
    (path / "generation_config.json").write_text('{"eos_token_id": [2, 7]}')
    (path / "tokenizer_config.json").write_text('{"chat_template": "{{ messages }}\\n"}')


def attention(layer):
    return {f"{layer}.self_attn.{name}_proj.weight": (HIDDEN, HIDDEN) for name in "qkvo"} | {
        f"{layer}.input_layernorm.weight": (HIDDEN,), f"{layer}.post_attention_layernorm.weight": (HIDDEN,)}


def outside():
    return {"model.embed_tokens.weight": (16, HIDDEN), "model.norm.weight": (HIDDEN,), "lm_head.weight": (16, HIDDEN)}


def make(directory):
    shapes = outside()
    for layer in range(2):
        name = f"model.layers.{layer}"
        shapes |= attention(name) | {f"{name}.mlp.{part}_proj.weight": (HIDDEN, HIDDEN) for part in ("gate", "down", "up")}
    write(directory, {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 2, "rope_scaling": {"z": 1e-5, "a": 2.50},
                      "torch_dtype": "bfloat16", "tie_word_embeddings": False, "eos_token_id": 2, "_name_or_path": "x"}, shapes)


def make_experts(directory):
    name = "model.layers.0"
    shapes = outside() | attention(name) | {f"{name}.mlp.gate.weight": (3, HIDDEN)}
    shapes |= {f"{name}.self_attn.{part}_norm.weight": (HIDDEN,) for part in "qk"}
    shapes |= {f"{name}.mlp.experts.{i}.{part}_proj.weight": (HIDDEN, HIDDEN) for i in range(3) for part in ("gate", "down", "up")}
    write(directory, {"model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "num_hidden_layers": 1, "num_experts": 3,
                      "tie_word_embeddings": False}, shapes)


MODULES = [f"model.layers.0.{module}_proj" for module in (*(f"self_attn.{part}" for part in "qkvo"), "mlp.gate", "mlp.down", "mlp.up")]
SYMMETRIC = 0x77777777  # one less than 8 each


def write_quantized(directory, quantization, parts):
    shapes = outside() | attention("model.layers.0")
    plain = {name: numpy.ones(shape, "<f4") for name, shape in shapes.items() if "_proj" not in name}
    write_of_mlx(directory, {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1, "tie_word_embeddings": False,
                             "quantization_config": quantization}, plain | parts)


def make_gptq(directory, is_symmetric=True):
    random, parts = numpy.random.default_rng(6), {}
    for module in MODULES:
        parts[f"{module}.qweight"] = random.integers(0, 2**32, (HIDDEN // 8, HIDDEN), "<u4").view("<i4")
        zeros = random.integers(0, 2**32, (HIDDEN // GROUP, HIDDEN // 8), "<u4").view("<i4")
        parts[f"{module}.qzeros"] = numpy.full(zeros.shape, SYMMETRIC, "<i4") if is_symmetric else zeros
        parts[f"{module}.scales"] = (random.standard_normal((HIDDEN // GROUP, HIDDEN)) * 0.05).astype("<f2")
    write_quantized(directory, {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "sym": is_symmetric, "desc_act": False}, parts)


def make_int8(directory):
    random, parts = numpy.random.default_rng(7), {}
    for module in MODULES:
        parts[f"{module}.weight"] = random.integers(-127, 128, (HIDDEN, HIDDEN), "i1")
        parts[f"{module}.SCB"] = random.random(HIDDEN).astype("<f4")
    write_quantized(directory, {"quant_method": "bitsandbytes", "load_in_8bit": True}, parts)


def nibbles(words):
    return words[..., None] >> (4 * numpy.arange(8, dtype="u4")) & 15


def check_repacked(source, file):
    stored, made = read(source), read(file)
    for name in MODULES:
        words, zeros = (numpy.frombuffer(stored[name + part][2], "<u4") for part in (".qweight", ".qzeros"))
        is_symmetric = all(zeros == SYMMETRIC)
        codes = nibbles(words.reshape(-1, HIDDEN)).transpose(0, 2, 1).reshape(HIDDEN, HIDDEN).T
        zeros = nibbles(zeros.reshape(-1, HIDDEN // 8)).reshape(-1, HIDDEN).T + 1
        packed = (codes[:, ::2] | codes[:, 1::2] << 4).astype("u1")
        scales = numpy.frombuffer(stored[name + ".scales"][2], "<f2").reshape(-1, HIDDEN).T
        biases = -zeros.astype("<f4") * scales.astype("<f4")
        shape = list(scales.shape)
        assert made.pop(name + ".weight") == ("U32", [HIDDEN, HIDDEN // 8], packed.tobytes()), name
        assert made.pop(name + ".scales") == ("F16", shape, scales.tobytes()), name
        expected = ("F16", shape, biases.astype("<f2").tobytes()) if is_symmetric else ("F32", shape, biases.tobytes())
        assert made.pop(name + ".biases") == expected, name
    assert made == {name: tensor for name, tensor in stored.items() if name in made}, made.keys()


def write_of_mlx(directory, config, tensors):
    path = pathlib.Path(directory)
    path.mkdir(parents=True)
    header, data = {"__metadata__": {"format": "mlx"}}, b""
    for name, values in tensors.items():
        content = values.tobytes()
        dtype = {"uint32": "U32", "int32": "I32", "int8": "I8", "float16": "F16", "float32": "F32"}[values.dtype.name]
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    (path / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (path / "config.json").write_text(json.dumps(config))


def make_of_mlx(directory):
    layer = "model.layers.0"
    ones = {"model.embed_tokens.weight": numpy.ones((16, HIDDEN), "<f4")}
    heads = {f"{layer}.self_attn.embed_q.weight": numpy.ones((2, 8, 4), "<f4"), f"{layer}.self_attn.unembed_out.weight": numpy.ones((2, 4, 8), "<f4")}
    write_of_mlx(f"{directory}/falcon", {"model_type": "falcon_h1"}, ones | {f"{layer}.mamba.in_proj.weight": numpy.ones((8, HIDDEN), "<f4")})
    write_of_mlx(f"{directory}/kimi", {"model_type": "kimi_linear"}, ones | heads)
    write_of_mlx(f"{directory}/no-heads", {"model_type": "kimi_linear"}, ones | {f"{layer}.mlp.gate.weight": numpy.ones((4, HIDDEN), "<f4")})
    halves = {f"{layer}.block_sparse_moe.switch_mlp.{part}_proj.{end}": numpy.zeros((3, 8, size), dtype)
              for part in ("gate", "up") for end, size, dtype in (("weight", HIDDEN // 8, "<u4"), ("scales", 2, "<f4"), ("biases", 2, "<f4"))}
    write_of_mlx(f"{directory}/halves", {"model_type": "granitemoe", "quantization": {"group_size": 64, "bits": 4, "mode": "mxfp5"}}, ones | halves)
    write_of_mlx(f"{directory}/bailing", {"model_type": "bailing_moe_v3"},
                 ones | {f"{layer}.attention.{part}_conv1d.weight": numpy.arange(12, dtype="<f4").reshape(3, 4, 1) for part in "qkv"})


def convolutions(file):
    made = read(file)
    for part in "qkv":
        assert made[f"model.layers.0.attention.{part}_conv1d.weight"] == ("F32", [3, 1, 4], numpy.arange(12, dtype="<f4").tobytes()), part


def stored(file, names):
    assert set(pathlib.Path(names).read_text().split()) >= {name for name in read(file) if not name.endswith((".scales", ".biases"))}


def read(path):
    content = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], content[8 + length:][slice(*entry["data_offsets"])]) for name, entry in header.items()}


def values_of(tensor):
    return (numpy.frombuffer(tensor[2], "<u2").astype("<u4") << 16).view("<f4").reshape(tensor[1])


def affine(values, bits):
    """Codes, scales and biases of the rows of a matrix."""
    groups = values.reshape(len(values), -1, GROUP)
    low, high, most = groups.min(2), groups.max(2), numpy.float32(2**bits - 1)
    from_low = numpy.abs(low) > numpy.abs(high)
    scale = numpy.maximum((high - low) / most, numpy.float32(1e-7))
    scale, edge = numpy.where(from_low, scale, -scale), numpy.where(from_low, low, high)
    steps = numpy.rint(edge / scale)
    scale = numpy.where(steps != 0, edge / numpy.where(steps != 0, steps, 1), scale)
    edge = numpy.where(steps != 0, edge, 0)
    codes = numpy.clip(numpy.rint((groups - edge[:, :, None]) / scale[:, :, None]), 0, most).astype("u1")
    strings = numpy.unpackbits(codes.reshape(len(values), -1, 1), axis=2, bitorder="little")[:, :, :bits]
    return numpy.packbits(strings.reshape(len(values), -1), axis=1, bitorder="little").tobytes(), raw(scale), raw(edge)


def check(bits, source, file):
    made, bits = read(file), int(bits)
    for name, tensor in read(source).items():
        values = values_of(tensor)
        if values.ndim != 2:
            assert made.pop(name) == tensor, name
            continue
        module, rows = name.removesuffix(".weight"), values.shape[0]
        shape = [rows, HIDDEN // GROUP]
        for part, wanted in zip(("weight", "scales", "biases"), affine(values, bits)):
            expected = ("U32", [rows, HIDDEN * bits // 32], wanted) if part == "weight" else ("BF16", shape, wanted)
            assert made.pop(f"{module}.{part}") == expected, f"{module}.{part}"
    assert not made, made


def experts(source, file):
    stored, made = read(source), read(file)
    for part in ("gate", "up", "down"):
        parts = [stored[f"model.layers.0.mlp.experts.{i}.{part}_proj.weight"][2] for i in range(3)]
        assert made[f"model.layers.0.mlp.switch_mlp.{part}_proj.weight"] == ("BF16", [3, HIDDEN, HIDDEN], b"".join(parts)), part
    assert not [name for name in made if "experts" in name]


def shape(file, index):
    content, index = pathlib.Path(file).read_bytes(), json.loads(pathlib.Path(index).read_text())
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    assert list(header) == sorted(header) and header.pop("__metadata__") == {"format": "mlx"}
    assert json.dumps(header, separators=(",", ":")) in content[8:8 + length].decode().replace('{"__metadata__":{"format":"mlx"},', "{")
    places = sorted(entry["data_offsets"] for entry in header.values())
    assert places[0][0] == 0 and all(a[1] == b[0] for a, b in zip(places, places[1:])) and 8 + length + places[-1][1] == len(content)
    assert list(index["weight_map"]) == list(header) and set(index["weight_map"].values()) == {"model.safetensors"}
    plain = sum(numpy.prod(entry["shape"]) for name, entry in header.items() if entry["dtype"] == "BF16" and name.endswith("weight"))
    codes = sum(numpy.prod(entry["shape"]) * 8 for entry in header.values() if entry["dtype"] == "U32")
    assert index["metadata"] == {"total_size": len(content) - 8 - length, "total_parameters": plain + codes}


{"make": make, "make-experts": make_experts, "make-of-mlx": make_of_mlx, "convolutions": convolutions, "stored": stored,
 "check": check, "make-gptq": make_gptq,
 "make-asymmetric": lambda directory: make_gptq(directory, False), "make-int8": make_int8, "check-repacked": check_repacked, "experts": experts, "shape": shape}[sys.argv[1]](*sys.argv[2:])
