"""Models for the tests of engines' directories, and what compressed-tensors' arithmetic makes of them, by numpy: engines.py WHAT ARGUMENTS...

    make DIRECTORY                 a model with a few matrices in BF16, with zeros, outliers and constants
    make-odd DIRECTORY             one whose matrices have 96 columns
    make-shards DIRECTORY          one in two files, with fused weights in different ones
    check SCHEME SOURCE FILE       compares every part of every weight
    check-bnb TYPE SOURCE FILE     the same for a type of bitsandbytes
    check-shards DIRECTORY LIMIT   compares shards with model.safetensors, their sizes with the limit, and the index with both
    check-modelopt FILE MODULE F32  compares dequantized values with the codes and scales that ModelOpt exported
    check-zeros FILE               looks for negative zeros in FP8
    names FILE                     prints the names of tensors
    near SCHEME SOURCE F32         compares dequantized values with the source's
"""
import json
import math
import pathlib
import struct
import sys

import numpy

MODULES = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"]
FUSED = [MODULES[:3], MODULES[3:5], MODULES[5:]]
LAYER = "model.layers.0."


def to_bf16(values):
    """F32 numbers rounded half to even to BF16, as F32."""
    bits = numpy.asarray(values, "<f4").view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("<u4").view("<f4")


def matrices(columns):
    random = numpy.random.default_rng(11)
    made = {}
    for module in MODULES:
        values = to_bf16(random.standard_normal((64, columns), dtype=numpy.float32) * 0.05)
        values[0] = 0
        values[1] = -0.0
        values[2, 7] = 3
        values[3] = 0.125
        values[4] *= to_bf16(numpy.float32(2.0**-20))
        made[f"{LAYER}{module}.weight"] = values
    return made


def write(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        raw = (values.view("<u4") >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def make(directory, columns=256, shards=1):
    path = pathlib.Path(directory)
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": columns, "architectures": ["LlamaForCausalLM"]}))
    (path / "README.md").write_text("a model\n")
    tensors = matrices(columns) | {f"{LAYER}input_layernorm.weight": numpy.ones(columns, "<f4"),
                                   "model.embed_tokens.weight": to_bf16(numpy.ones((8, columns), "<f4"))}
    if shards == 1:
        write(path / "model.safetensors", tensors)
        return
    second = {name for name in tensors if "up_proj" in name or "down_proj" in name}
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    write(path / names[0], {name: values for name, values in tensors.items() if name not in second})
    write(path / names[1], {name: tensors[name] for name in second})
    index = {"metadata": {}, "weight_map": {name: names[name in second] for name in tensors}}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))


def make_odd(directory):
    make(directory, columns=96)


def make_shards(directory):
    make(directory, shards=2)


def read(path):
    content = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    return {name: (entry["dtype"], entry["shape"], content[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]])
            for name, entry in header.items() if name != "__metadata__"}


def bf16_bytes(values):
    return (to_bf16(values).view("<u4") >> 16).astype("<u2").tobytes()


E4M3 = numpy.array([(1 + m / 8) * 2.0 ** (e - 7) if e else m / 8 * 2.0**-6 for e in range(16) for m in range(8)][:127])


def nearest(levels, values, to_even):
    """The index of the nearest level of each magnitude; of two as near, the even index or the lower one."""
    values = numpy.minimum(numpy.abs(values).astype("f8"), levels[-1])
    above = numpy.clip(numpy.searchsorted(levels, values), 1, len(levels) - 1)
    low, high = values - levels[above - 1], levels[above] - values
    return numpy.where((high < low) | ((high == low) & (above % 2 == 0 if to_even else False)), above, above - 1)


def e4m3(values):
    return (nearest(E4M3, values, True) | numpy.signbit(values) << 7).astype("u1")


def e2m1(values):
    return nearest(numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]), values, True) | (values < 0) << 3


def divide(values, scales, group):
    """Each result rounded to BF16."""
    shape = values.shape
    return to_bf16((values.reshape(shape[0], -1, group) / scales[:, :, None]).astype("<f4")).reshape(shape)


def largest(values, group):
    return numpy.abs(values).reshape(values.shape[0], -1, group).max(axis=2)


def symmetric(values, group, most):
    scales = to_bf16(largest(values, group) / numpy.float32(most))
    return numpy.where(scales == 0, numpy.float32(2.0**-7), scales)


def nibbles(codes):
    return (codes[:, ::2] | codes[:, 1::2] << 4).astype("u1").tobytes()


def shape_of(values):
    return struct.pack("<2q", *values.shape)


def parts_fp8(values, _):
    scales = symmetric(values, values.shape[1], 448)
    return {"weight": e4m3(divide(values, scales, values.shape[1])).tobytes(), "weight_scale": bf16_bytes(scales)}


def parts_int8(values, _):
    scales = symmetric(values, values.shape[1], 127.5)
    codes = numpy.rint(numpy.clip(divide(values, scales, values.shape[1]), -128, 127)).astype("i1")
    return {"weight": codes.tobytes(), "weight_scale": bf16_bytes(scales)}


def parts_int4(values, _):
    scales = symmetric(values, 128, 7.5)
    codes = numpy.rint(numpy.clip(divide(values, scales, 128), -8, 7)).astype("i4") + 8
    return {"weight_packed": nibbles(codes), "weight_scale": bf16_bytes(scales), "weight_shape": shape_of(values)}


def parts_mxfp4(values, _):
    powers = ((largest(values, 32).view("<u4") + (32 << 16)) & 0xFF800000).view("<f4")
    with numpy.errstate(divide="ignore"):
        exponents = numpy.clip(127 + numpy.log2(powers) - 2, 0, 255).astype("i4")
    scales = numpy.exp2((exponents - 127).astype("f8")).astype("<f4")
    return {"weight_packed": nibbles(e2m1(divide(values, scales, 32))), "weight_scale": exponents.astype("u1").tobytes()}


def parts_nvfp4(values, largest_of_fused):
    one = to_bf16(to_bf16(numpy.float32(1) / numpy.float32(largest_of_fused)) * numpy.float32(2688))
    ratios = one * to_bf16(largest(values, 16) / numpy.float32(6))
    codes = e4m3(ratios)
    codes[codes == 0] = 0x20
    scales = E4M3[codes].astype("<f4") / one
    quotients = (values.reshape(values.shape[0], -1, 16) / scales[:, :, None]).astype("<f4").reshape(values.shape)
    return {"weight_packed": nibbles(e2m1(quotients)), "weight_scale": codes.tobytes(), "weight_global_scale": struct.pack("<f", one)}


LEVELS = {
    "nf4": [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
            0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
            0.7229568362236023, 1.0],
    "fp4": [sign * twelfths / 12 for sign in (1, -1) for twelfths in (0, 0.0625, 8, 12, 4, 6, 2, 3)],
}


def parts_4bit(values, kind):
    blocks, levels = values.reshape(-1, 64), numpy.array(LEVELS[kind], "<f4")
    maxima = numpy.abs(blocks).max(axis=1)
    scaled = blocks * (numpy.float32(1) / numpy.maximum(maxima, numpy.float32(1e-38)))[:, None]
    order = numpy.argsort(levels, kind="stable")
    midway = (levels[order][1:] + levels[order][:-1]) / numpy.float32(2)
    codes = order[numpy.searchsorted(midway, scaled)].astype("u1").reshape(-1, 2)
    state = {"quant_type": kind, "blocksize": 64, "dtype": "bfloat16", "shape": list(values.shape)}
    return {"weight": (codes[:, 0] << 4 | codes[:, 1]).tobytes(), "weight.absmax": maxima.tobytes(), "weight.quant_map": levels.tobytes(),
            f"weight.quant_state.bitsandbytes__{kind}": json.dumps(state).encode()}


def parts_8bit(values, _):
    halves = values.astype("<f2").astype("<f4")
    maxima = numpy.abs(halves).max(axis=1)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        codes = numpy.rint(halves * (numpy.float32(1) / maxima * numpy.float32(127))[:, None])
    return {"weight": numpy.nan_to_num(codes).astype("i1").tobytes(), "SCB": maxima.tobytes(), "weight_format": b"\0"}


PARTS = {"FP8_DYNAMIC": parts_fp8, "W8A8": parts_int8, "W4A16": parts_int4, "MXFP4A16": parts_mxfp4, "NVFP4A16": parts_nvfp4}


def values_of(source, name):
    dtype, shape, raw = read(source)[name]
    assert dtype == "BF16"
    return (numpy.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)


def check(scheme, source, file):
    made, plain = read(file), read(source)
    for fused in FUSED:
        names = [f"{LAYER}{module}" for module in fused]
        most = max(numpy.abs(values_of(source, f"{name}.weight")).max() for name in names)
        for name in names:
            for part, wanted in PARTS[scheme](values_of(source, f"{name}.weight"), most).items():
                assert made[f"{name}.{part}"][2] == wanted, f"{scheme}: {name}.{part}"
    for name in (f"{LAYER}input_layernorm.weight", "model.embed_tokens.weight"):
        assert made[name] == plain[name], name


def check_bnb(kind, source, file):
    made, plain = read(file), read(source)
    for module in MODULES:
        wanted = (parts_8bit if kind == "int8" else parts_4bit)(values_of(source, f"{LAYER}{module}.weight"), kind)
        for part, content in wanted.items():
            assert made[f"{LAYER}{module}.{part}"][2] == content, f"{kind}: {module}.{part}"
    for name in (f"{LAYER}input_layernorm.weight", "model.embed_tokens.weight"):
        assert made[name] == plain[name], name


def check_shards(directory, limit):
    path = pathlib.Path(directory)
    whole, index = read(path / "model.safetensors"), json.loads((path / "model.safetensors.index.json").read_text())
    shards = {file.name: read(file) for file in sorted(path.glob("model-*"))}
    assert {name: part for shard in shards.values() for name, part in shard.items()} == whole
    assert index["weight_map"] == {name: file for file, shard in shards.items() for name in shard} and list(index["weight_map"]) == sorted(whole)
    sizes = [sum(len(part[2]) for part in shard.values()) for shard in shards.values()]
    assert max(sizes) <= int(limit) and index["metadata"]["total_size"] == sum(sizes)
    outside = sum(math.prod(shape) for dtype, shape, _ in whole.values() if dtype == "BF16")
    assert index["metadata"]["total_parameters"] == outside + 64 * 256 * len(MODULES)


def check_zeros(file):
    """The source's second row is -0, whose code stays 0 without a sign."""
    made = read(file)
    for module in MODULES:
        dtype, shape, raw = made[f"{LAYER}{module}.weight"]
        assert dtype == "F8_E4M3" and raw[shape[1]:2 * shape[1]] == bytes(shape[1]), module
        assert 0x80 not in raw[:2 * shape[1]]


def check_modelopt(file, module, values):
    made = read(file)
    shape, codes = made[f"{module}.weight"][1], numpy.frombuffer(made[f"{module}.weight"][2], "u1")
    levels = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], "f4")
    elements = levels[numpy.stack([codes & 15, codes >> 4], 1).reshape(shape[0], -1, 16)]
    bits = numpy.frombuffer(made[f"{module}.weight_scale"][2], "u1").astype(int)
    scales = numpy.where(bits >> 3 == 0, bits * 2.0**-9, (8 + bits % 8) * 2.0 ** ((bits >> 3) - 10)).astype("f4").reshape(shape[0], -1, 1)
    factor = numpy.frombuffer(made[f"{module}.weight_scale_2"][2], "<f4")
    wanted = elements * (scales * factor)
    assert numpy.array_equal(numpy.fromfile(values, "<f4"), wanted.ravel()), module


def names(file):
    print("\n".join(read(file)))


def near(scheme, source, file):
    wanted = values_of(source, f"{LAYER}mlp.up_proj.weight")
    found = numpy.fromfile(file, "<f4").reshape(wanted.shape)
    share = {"FP8_DYNAMIC": 0.04, "MXFP8": 0.07, "W8A8": 0.01, "W8A16": 0.01, "W3A16": 0.2, "MXFP4A16": 0.26}.get(scheme, 0.17)  # of the row's largest
    rows = numpy.abs(wanted).max(axis=1)
    kept = rows > 2**-9 * rows.max() if scheme == "NVFP4A16" else rows >= 0  # whose scales are below the least one of the others
    assert (numpy.abs(found - wanted).max(axis=1) <= share * rows + 1e-9)[kept].all(), scheme


globals()[sys.argv[1].replace("-", "_")](*sys.argv[2:])
