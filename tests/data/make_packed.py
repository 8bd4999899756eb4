#!/usr/bin/env python3
"""Makes tests/data/packed/NAME/: config.json and model.safetensors with one packed weight each, and expected.f32, its values; and of the same
what tests/fuzz/fuzz_packed.c begins with.

    python3 tests/data/make_packed.py

Every format is written and computed here by its definition: integers are drawn, put into bits one by one, and multiplied in numpy's float32.
What libraries make of larger ones is compared by tests/interop/test_packed.py. Needs numpy.
"""
import json
import pathlib
import struct

import numpy as np

OUT = pathlib.Path(__file__).parent / "packed"
CORPUS = pathlib.Path(__file__).parent.parent / "fuzz" / "corpus" / "packed"
BASE = "model.layers.0.mlp.down_proj"
R, C = 16, 64
rng = np.random.default_rng(15)
f32 = np.float32
DTYPES = {"float32": "F32", "float16": "F16", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "uint32": "U32", "int64": "I64"}
E2M1 = f32([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


class As:
    """An array under the name of a type that numpy has not."""

    def __init__(self, array, dtype):
        self.array, self.dtype = array, dtype


def bf16(values):
    bits = f32(values).view(np.uint32)
    return As((bits + 0x7FFF + (bits >> 16 & 1) >> 16).astype(np.uint16), "BF16")


def value(array):
    """The float32 values of what is stored."""
    if not isinstance(array, As):
        return array.astype(f32)
    if array.dtype == "BF16":
        return (array.array.astype(np.uint32) << 16).view(f32)
    if array.dtype == "F8_E8M0":
        return np.ldexp(f32(1), array.array.astype(int) - 127)
    exponent_bits, bias = (4, 7) if array.dtype == "F8_E4M3" else (5, 15)
    mantissa_bits = 7 - exponent_bits
    bits = array.array.astype(int)
    exponent, mantissa = bits >> mantissa_bits & (1 << exponent_bits) - 1, bits & (1 << mantissa_bits) - 1
    magnitude = np.where(exponent > 0, np.ldexp(f32(1) + mantissa / f32(1 << mantissa_bits), exponent - bias), np.ldexp(f32(mantissa), 1 - bias - mantissa_bits))
    return np.where(bits >> 7, -magnitude, magnitude).astype(f32)


def f8(shape, dtype="F8_E4M3"):
    bits = rng.integers(0, 256, shape, dtype=np.uint8)
    bits[(bits & 0x7F) >= (0x7F if dtype == "F8_E4M3" else 0x7C)] = 0x30
    return As(bits, dtype)


def scales(*shape):
    return f32((rng.random(shape) + 1) * 2.0 ** rng.integers(-9, -5, shape))


def spread(s, rows, columns):
    """Blocks repeated and cut to the shape of the weight."""
    s = np.repeat(np.repeat(s, -(-R // s.shape[0]) if rows is None else rows, 0), -(-C // s.shape[1]) if columns is None else columns, 1)
    return s[:R, :C]


def pack(q, bits, word=32, axis=1, dense=False):
    """Fields along an axis, the first in the least significant bits; the rest of a word is 0, or begins the next one's."""
    q = np.moveaxis(np.asarray(q), axis, 1)
    per = word // bits
    n = q.shape[1]
    words = -(-n * bits // word) if dense else -(-n // per)
    out = [[0] * words for _ in range(len(q))]
    for r, row in enumerate(q):
        for i, field in enumerate(row):
            at = i * bits if dense else i // per * word + i % per * bits
            for bit in range(bits):
                if int(field) >> bit & 1:
                    out[r][(at + bit) // word] |= 1 << (at + bit) % word
    return np.moveaxis(np.array(out, dtype=np.uint64).astype({8: np.uint8, 16: np.int16, 32: np.int32}[word]), 1, axis)


def write(name, quantization, tensors, expected, key="quantization_config", base=BASE, metadata=None, **config):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    config = {"architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16", **config}
    if quantization is not None:
        config[key] = quantization
    (folder / "config.json").write_text(json.dumps(config) + "\n")
    header, data, lines = {}, b"", [json.dumps(config)]
    for suffix, array in tensors.items():
        dtype = array.dtype if isinstance(array, As) else DTYPES[array.dtype.name]
        array = array.array if isinstance(array, As) else array
        raw = np.ascontiguousarray(array).tobytes()
        header[base + suffix] = dict(dtype=dtype, shape=list(array.shape), data_offsets=[len(data), len(data) + len(raw)])
        data += raw
        lines.append(f"{base + suffix} {dtype} {json.dumps(list(array.shape), separators=(',', ':'))} {len(raw)}")
    (CORPUS / name).write_bytes("\n".join(lines + ["", ""]).encode() + data[:200])
    text = json.dumps({"__metadata__": metadata, **header} if metadata else header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    assert expected.dtype == f32, name
    (folder / "expected.f32").write_bytes(np.ascontiguousarray(expected).tobytes())


def scaled():
    w = f8((R, C))
    s = bf16(scales(4, 3))
    write("fp8-blocks", dict(quant_method="fp8", weight_block_size=[5, 24]), {".weight": w, ".weight_scale_inv": s}, value(w) * spread(value(s), 5, 24))
    s = scales(6, 4)
    write("fp8-more-blocks", dict(quant_method="fp8", weight_block_size=[5, 24]), {".weight": w, ".weight_scale_inv": s}, value(w) * spread(s, 5, 24))
    w5 = f8((R, C), "F8_E5M2")
    e = As(rng.integers(100, 130, (2, 2), dtype=np.uint8), "F8_E8M0")
    write("fp8-e5m2-e8m0", dict(quant_method="fp8", weight_block_size=[8, 32]), {".weight": w5, ".weight_scale_inv": e}, value(w5) * spread(value(e), 8, 32))
    s = np.array(scales(1)[0])
    write("fp8-tensor", dict(quant_method="fp8", weight_block_size=None), {".weight": w, ".weight_scale_inv": s, ".activation_scale": s}, value(w) * s)
    s = scales(R)
    write("modelopt-row", dict(quant_method="modelopt", quant_algo="FP8_PER_CHANNEL_PER_TOKEN"), {".weight": w, ".weight_scale": s}, value(w) * s[:, None])
    q, s, z = rng.integers(-128, 128, (R, C), dtype=np.int8), bf16(scales(R, 1)), rng.integers(-9, 9, (R, 1), dtype=np.int8)
    group = {"group_0": {"weights": dict(num_bits=8, type="int", strategy="channel"), "targets": ["Linear"]}}
    write("int8-asymmetric", {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": group},
          {".weight": q, ".weight_scale": s, ".weight_zero_point": z}, (value(q) - value(z)) * value(s))
    s = scales(3, 4)
    group = {"group_0": {"weights": dict(num_bits=8, type="int", strategy="block", block_structure=[6, 20]), "targets": ["Linear"]}}
    write("int8-blocks", {"quant_method": "compressed-tensors", "format": "naive-quantized", "config_groups": group}, {".weight": q, ".weight_scale": s},
          value(q) * spread(s, 6, 20))
    e = rng.integers(100, 130, (R, C // 32), dtype=np.uint8)
    write("mxfp8", {"quant_method": "compressed-tensors", "format": "mxfp8-quantized"}, {".weight": w, ".weight_scale": e}, value(w) * spread(value(As(e, "F8_E8M0")), 1, 32))
    w3, s = f8((3, 8, 6)), scales(3, 1, 6)
    write("fbgemm-experts", dict(quant_method="fbgemm_fp8"), {"": w3, "_scale": s}, value(w3) * s, base="model.layers.0.feed_forward.experts.down_proj")


def pack_quantized():
    for name, bits, n, zero, dense, order in (("pack-4", 4, 2, False, False, False), ("pack-8-channel", 8, 1, True, False, False), ("pack-3", 3, 4, True, False, False),
                                              ("pack-3-dense", 3, 4, True, True, False), ("pack-6-dense", 6, 2, False, True, False), ("pack-2-order", 2, 4, True, False, True)):
        q, z, s = rng.integers(0, 1 << bits, (R, C)), rng.integers(0, 1 << bits, (R, n)), bf16(scales(R, n))
        g = rng.permutation(np.arange(C) * n // C).astype(np.int32) if order else (np.arange(C) * n // C).astype(np.int32)
        t = {".weight_packed": pack(q, bits, dense=dense), ".weight_scale": s, ".weight_shape": np.array([R, C])}
        if zero:
            t[".weight_zero_point"] = pack(z, bits, axis=0, dense=dense)
        if order:
            t[".weight_g_idx"] = g
        z = z if zero else np.full((R, n), 1 << bits - 1)
        weights = dict(num_bits=bits, type="int", symmetric=not zero, strategy="group" if n > 1 else "channel", group_size=C // n if n > 1 else None)
        write(name, {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": {"weights": weights}}}, t,
              f32(q - z[:, g]) * value(s)[:, g])


def gptq():
    for name, bits, n, version, order, index in (("gptq-4", 4, 2, "gptq", True, True), ("gptq-2-v2", 2, 4, "gptq_v2", False, True), ("gptq-8-no-index", 8, 2, None, False, False),
                                                 ("gptq-4-one-group", 4, 1, None, False, True)):
        q, z, s = rng.integers(0, 1 << bits, (C, R)), rng.integers(0, 1 << bits, (n, R)), scales(n, R).astype(np.float16)
        g = np.arange(C) * n // C
        g = (rng.permutation(g) - n * rng.integers(0, 2, C) if order else g).astype(np.int32)
        t = {".qweight": pack(q, bits, axis=0), ".qzeros": pack(z, bits), ".scales": s}
        if index:
            t[".g_idx"] = g
        config = dict(quant_method="gptq", bits=bits, group_size=C // n if n > 1 else -1, desc_act=order)
        if version:
            config["checkpoint_format"] = version
        write(name, config, t, (value(s)[g] * f32(q - (z + (version != "gptq_v2"))[g])).T)
    q, z, s = rng.integers(0, 8, (C, 32)), rng.integers(0, 8, (2, 32)), scales(2, 32)
    g = (np.arange(C) // 32).astype(np.int32)
    write("gptq-3", dict(quant_method="gptq", bits=3, group_size=32), {".qweight": pack(q, 3, axis=0, dense=True), ".qzeros": pack(z, 3, dense=True), ".scales": s, ".g_idx": g},
          (s[g] * f32(q - (z + 1)[g])).T)


def bitnet():
    q, s = rng.integers(-1, 2, (R, C)), bf16(scales(1) * f32(300))
    parts = (q + 1).reshape(4, R // 4, C)
    w = (parts[0] | parts[1] << 2 | parts[2] << 4 | parts[3] << 6).astype(np.uint8)
    write("bitnet", dict(quant_method="bitnet"), {".weight": w, ".weight_scale": s}, f32(q) / value(s))
    write("bitnet-product", dict(quant_method="bitnet", linear_class="autobitlinear"), {".weight": w, ".weight_scale": s}, f32(q) * value(s))


def nvfp4():
    codes, s, one = rng.integers(0, 16, (R, C), dtype=np.uint8), f8((R, C // 16)), scales(1)
    packed = codes[:, ::2] | codes[:, 1::2] << 4
    write("nvfp4-modelopt", dict(quant_method="modelopt", quant_algo="NVFP4"), {".weight": packed, ".weight_scale": s, ".weight_scale_2": one[0].reshape(()), ".input_scale": one[0].reshape(())},
          E2M1[codes] * spread(value(s) * one, 1, 16))
    write("nvfp4-compressed", {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"},
          {".weight_packed": packed, ".weight_scale": s, ".weight_global_scale": one}, E2M1[codes] * spread(value(s) / one, 1, 16))


def mxfp4():
    codes, e = rng.integers(0, 16, (R, C), dtype=np.uint8), rng.integers(0, 256, (R, C // 32), dtype=np.uint8)
    write("mxfp4-compressed", {"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized"},
          {".weight_packed": codes[:, ::2] | codes[:, 1::2] << 4, ".weight_scale": np.minimum(e, 250)}, E2M1[codes] * spread(np.ldexp(f32(1), np.minimum(e, 250).astype(int) - 127), 1, 32))


def mxfp4_experts():
    codes, e = rng.integers(0, 16, (2, 8, C), dtype=np.uint8), rng.integers(0, 250, (2, 8, C // 32), dtype=np.uint8)
    w = E2M1[codes] * np.repeat(np.ldexp(f32(1), e.astype(int) - 127), 32, 2)
    write("mxfp4-experts", dict(quant_method="mxfp4"), {"_blocks": (codes[..., ::2] | codes[..., 1::2] << 4).reshape(2, 8, C // 32, 16), "_scales": e},
          np.swapaxes(w, 1, 2), base="model.layers.0.mlp.experts.gate_up_proj")


def modelopt_int4():
    q, s = rng.integers(-8, 8, (R, C)), scales(R, 2).astype(np.float16)
    write("modelopt-int4", dict(quant_method="modelopt", quant_algo="W4A16_AWQ", group_size=32),
          {".weight": ((q[::2] & 15) | (q[1::2] & 15) << 4).astype(np.uint8), ".weight_scale": s, ".pre_quant_scale": bf16(np.ones(C))}, f32(q) * spread(value(s), 1, 32))


def awq():
    q, z, s = rng.integers(0, 16, (R, C)), rng.integers(0, 16, (R, 2)), scales(R, 2).astype(np.float16)
    w = f32(q - np.repeat(z, 32, 1)) * spread(value(s), 1, 32)
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def gemm(v):
        return pack(v.reshape(len(v), -1, 8)[..., order].reshape(len(v), -1), 4)
    config = dict(quant_method="awq", bits=4, group_size=32)
    write("awq-gemm", dict(config, version="gemm"), {".qweight": gemm(q.T), ".qzeros": gemm(z.T), ".scales": s.T}, w)
    pad = np.zeros((R, 30))
    write("awq-gemv", dict(config, version="gemv"), {".qweight": pack(q, 4), ".qzeros": pack(np.hstack((z, pad)).astype(int), 4), ".scales": np.hstack((s, pad.astype(np.float16)))}, w)


def bitsandbytes():
    nf4 = f32([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534,
               0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0])
    positive = f32([0, 0.0625, 8, 12, 4, 6, 2, 3]) / f32(12)
    fp4 = np.concatenate((positive, np.where(positive == 0, f32(0), -positive)))
    for name, kind, table, nested in (("bnb-nf4", "nf4", nf4, False), ("bnb-fp4", "fp4", fp4, False), ("bnb-nf4-nested", "nf4", nf4, True)):
        codes, absmax = rng.integers(0, 16, R * C, dtype=np.uint8), scales(R * C // 64)
        state = dict(quant_type=kind, blocksize=64, dtype="bfloat16", shape=[R, C])
        t = {".weight": (codes[::2] << 4 | codes[1::2]).reshape(-1, 1), ".weight.absmax": absmax, ".weight.quant_map": table}
        if nested:
            absmax, table2, second, offset = rng.integers(0, 256, R * C // 64, dtype=np.uint8), f32(np.sort(rng.random(256))), scales(1), f32(0.0123)
            t.update({".weight.absmax": absmax, ".weight.nested_absmax": second, ".weight.nested_quant_map": table2})
            state.update(nested_blocksize=256, nested_dtype="float32", nested_offset=float(offset))
            absmax = table2[absmax] * second[0] + offset
        t[f".weight.quant_state.bitsandbytes__{kind}"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
        write(name, dict(quant_method="bitsandbytes", load_in_4bit=True), t, (table[codes] * np.repeat(absmax, 64)).reshape(R, C))
    q, s = rng.integers(-127, 128, (R, C), dtype=np.int8), scales(R)
    write("bnb-int8", dict(quant_method="bitsandbytes", load_in_8bit=True), {".weight": q, ".SCB": s, ".weight_format": np.uint8(0).reshape(())}, f32(q) * s[:, None] * f32(7.874015718698502e-3))


def hqq():
    for bits, axis, group in ((8, 1, 64), (4, 1, 64), (3, 1, 32), (2, 0, 32), (1, 0, 16)):
        n = R * C // group
        shape = (group, n) if axis == 0 else (n, group)
        q = rng.integers(0, 1 << bits, shape)
        s, z = scales(n).reshape((1, n) if axis == 0 else (n, 1)).astype(np.float16), (rng.random(n) * (1 << bits)).reshape((1, n) if axis == 0 else (n, 1)).astype(np.float16)
        parts, top, dtype = {8: (1, 0, np.uint8), 4: (2, 4, np.uint8), 3: (10, 27, np.int32), 2: (4, 6, np.uint8), 1: (8, 7, np.uint8)}[bits]
        step = -(-shape[0] // parts)
        padded = np.zeros((step * parts, shape[1]), np.int64)
        padded[:shape[0]] = q
        w = sum(padded[i * step:(i + 1) * step] << top - i * bits for i in range(parts)).astype(dtype)
        little = {"." + k: np.int32(v).reshape(()) for k, v in dict(nbits=bits, axis=axis, group_size=group).items()}
        write(f"hqq-{bits}-axis{axis}", dict(quant_method="hqq"), {".W_q": w, ".scale": s, ".zero": z, ".shape": np.array([R, C]), ".packing": np.frombuffer({3: "3bit_32"}.get(bits, f"{bits}bit_u8").encode(), np.uint8), **little},
              ((f32(q) - value(z)) * value(s)).reshape(R, C))


def mlx():
    for bits in (2, 3, 4, 5, 6, 8):
        q, s, b = rng.integers(0, 1 << bits, (R, C)), scales(R, 2).astype(np.float16), bf16(scales(R, 2))
        quantization = dict(group_size=32, bits=bits, mode="affine")
        write(f"mlx-{bits}", quantization, {".weight": pack(q, bits, dense=True).view(np.uint32), ".scales": s, ".biases": b}, f32(q) * spread(value(s), 1, 32) + spread(value(b), 1, 32), key="quantization")


def quanto():
    for bits in (4, 2):
        k, groups = 8 // bits, 2 * R
        q, s, z = rng.integers(0, 1 << bits, (R, C)), scales(groups, 1), scales(groups, 1) * f32(3)
        parts = q.reshape(k, R // k, C)
        w = sum(parts[i] << bits * i for i in range(k)).astype(np.uint8)
        write(f"quanto-{bits}", dict(quant_method="quanto", weights=f"qint{bits}"), {".weight._data._data": w, ".weight._scale": s, ".weight._shift": z, ".input_scale": s[0, 0].reshape(())},
              (f32(q).reshape(groups, -1) * s - z).reshape(R, C))
    w, s = f8((R, C)), scales(R, 1)
    write("quanto-float8", dict(quant_method="quanto", weights="qfloat8"), {".weight._data": w, ".weight._scale": s}, value(w) * s)


def fp8_ranks():
    """Four ranks that have rows of queries, keys and values each, and scales of 128 rows that begin anew."""
    parts, ranks, columns = (640, 320, 160), 4, 16
    rows = sum(parts) // ranks
    w, s = f8((ranks * rows, columns)), scales(ranks * -(-rows // 128), 1)
    v = value(w).reshape(ranks, rows, columns) * np.repeat(s.reshape(ranks, -1, 1), 128, 1)[:, :rows]
    at = np.cumsum([0, *(n // ranks for n in parts)])
    uncut = np.concatenate([v[:, at[i]:at[i + 1]].reshape(-1, columns) for i in range(3)])
    write("fp8-ranks", dict(quant_method="fp8", weight_block_size=[128, 128]), {".weight": w, ".weight_scale_inv": s}, uncut, base="model.layers.1.self_attn.qkv_proj",
          architectures=["MiMoV2FlashForCausalLM"], num_hidden_layers=2, num_attention_heads=16, num_key_value_heads=4, swa_num_key_value_heads=8, head_dim=40, v_head_dim=20,
          hybrid_layer_pattern=[0, 1])


def mlx_floats():
    """Modes of the model, of a stack of experts, and an affine layer with an entry of its own in a model of mxfp4."""
    q, e = rng.integers(0, 16, (R, C)), rng.integers(0, 255, (R, C // 32), dtype=np.uint8)
    expected = E2M1[q] * spread(value(As(e, "F8_E8M0")), 1, 32)
    t = {".weight": pack(q, 4).view(np.uint32), ".scales": e}
    write("mlx-mxfp4", dict(group_size=32, bits=4, mode="mxfp4"), t, expected, key="quantization")
    experts = {".weight": t[".weight"].reshape(2, R // 2, -1), ".scales": e.reshape(2, R // 2, -1)}
    name = "model.layers.0.mlp.switch_mlp.up_proj"
    write("mlx-mxfp4-experts", {"group_size": 64, "bits": 8, "mode": "affine", name: dict(group_size=32, bits=4, mode="mxfp4")}, experts, expected, key="quantization", base=name)
    w, e = f8((R, C)), rng.integers(20, 230, (R, C // 32), dtype=np.uint8)
    write("mlx-mxfp8", dict(group_size=32, bits=8, mode="mxfp8"), {".weight": w.array.view(np.uint32), ".scales": e}, value(w) * spread(value(As(e, "F8_E8M0")), 1, 32), key="quantization")
    s = f8((R, C // 16))
    write("mlx-nvfp4", dict(group_size=16, bits=4, mode="nvfp4"), {".weight": pack(q, 4).view(np.uint32), ".scales": s.array}, E2M1[q] * spread(value(s), 1, 16), key="quantization")
    q, s, b = rng.integers(0, 256, (R, C)), scales(R, 1).astype(np.float16), bf16(scales(R, 1))
    write("mlx-entry", {"group_size": 32, "bits": 4, "mode": "mxfp4", BASE: dict(group_size=64, bits=8)},
          {".weight": pack(q, 8).view(np.uint32), ".scales": s, ".biases": b}, f32(q) * spread(value(s), 1, 64) + spread(value(b), 1, 64), key="quantization")


def mark(**layer):
    return np.frombuffer(json.dumps(layer).encode(), np.uint8)


def tiled(s):
    """Scales in tiles of 128 x 4, each as 32 x 4 x 4, with zeros where there are none."""
    whole = np.zeros((-(-s.shape[0] // 128) * 128, -(-s.shape[1] // 4) * 4), np.uint8)
    whole[:s.shape[0], :s.shape[1]] = s
    return whole.reshape(len(whole) // 128, 4, 32, -1, 4).transpose(0, 3, 2, 1, 4).reshape(whole.shape)


def regular_hadamard(size):
    one = h = np.array([[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]], np.float64)
    while len(h) < size:
        h = np.kron(h, one)
    return h / np.sqrt(size)


def comfy():
    """ComfyUI's layers, by their own marks and by the header's; padded ones; a rotated one; a stack of experts."""
    w, s, bias = f8((R, C)), scales(1)[0].reshape(()), bf16(scales(R))
    write("comfy-fp8", None, {".weight": w, ".weight_scale": s, ".bias": bias, ".comfy_quant": mark(format="float8_e4m3fn", full_precision_matrix_mult=True), ".input_scale": s}, value(w) * s)
    w5 = f8((R, C), "F8_E5M2")
    write("comfy-fp8-old", None, {".weight": w5, ".scale_weight": s, ".scale_input": s}, value(w5) * s)
    q, s = rng.integers(-128, 128, (R, C)).astype(np.int8), scales(R, 1)
    turned = (f32(q) * s).astype(np.float64).reshape(R, -1, 16) @ regular_hadamard(16)
    write("comfy-int8-rotated", None, {".weight": q, ".weight_scale": s, ".comfy_quant": mark(format="int8_tensorwise", convrot=True, convrot_groupsize=16)}, f32(turned.reshape(R, C)))
    rows, columns = 160, 96
    w, e = f8((rows, columns)), rng.integers(20, 230, (rows, columns // 32), dtype=np.uint8)
    e[::7] = 0
    powers = np.where(e == 0, f32(0), np.ldexp(f32(1), e.astype(int) - 127)).astype(f32)
    write("comfy-mxfp8", None, {".weight": w, ".weight_scale": As(tiled(e), "F8_E8M0"), ".bias": bf16(scales(rows - 5)), ".comfy_quant": mark(format="mxfp8")},
          (value(w) * np.repeat(powers, 32, 1))[:rows - 5])
    name = "model.diffusion_model." + BASE
    q, s, one, inputs = rng.integers(0, 16, (rows, columns)), f8((rows, columns // 16)), scales(1)[0].reshape(()), bf16(scales(columns - 7))
    values = E2M1[q] * np.repeat(one * value(s), 16, 1)
    parts = {".weight": (q[:, ::2] << 4 | q[:, 1::2]).astype(np.uint8), ".weight_scale": As(tiled(s.array), "F8_E4M3"), ".weight_scale_2": one, ".pre_quant_scale": inputs}
    write("comfy-nvfp4", None, parts, values[:, :columns - 7] * value(inputs), base=name, metadata={"_quantization_metadata": json.dumps({"layers": {BASE: {"format": "nvfp4"}}})})
    q, s, all_ = rng.integers(0, 16, (2, R, C)), [f8((R, C // 16)) for _ in range(2)], scales(2)
    values = np.stack([E2M1[q[i]] * np.repeat(all_[i] * value(s[i]), 16, 1) for i in range(2)])
    write("comfy-nvfp4-experts", None, {".weight": (q[..., ::2] << 4 | q[..., 1::2]).astype(np.uint8), ".weight_scale": np.stack([tiled(t.array) for t in s]), ".weight_scale_2": all_,
          ".comfy_quant": mark(format="nvfp4", num_experts=2, orig_shape=[2, R, C - 3], orig_dtype="torch.bfloat16")}, np.ascontiguousarray(values[..., :C - 3]))


def sylvester(size):
    h = np.ones((1, 1))
    while len(h) < size:
        h = np.block([[h, h], [h, -h]])
    return h


def scaled_and_rotated_inputs():
    """What a module does to its inputs: ModelOpt's factors, AutoRound's rotations, the same for all or one's own."""
    q, s, inputs = rng.integers(0, 16, (R, C)), scales(R, C // 32), bf16(scales(C))
    signed = q - (q >> 3) * 16
    write("modelopt-int4-inputs", dict(quant_method="modelopt", quant_algo="W4A16_AWQ", group_size=32, has_zero_point=False, pre_quant_scale=True),
          {".weight": (q[::2] | q[1::2] << 4).astype(np.uint8), ".weight_scale": s, ".pre_quant_scale": inputs}, f32(signed) * spread(s, 1, 32) * value(inputs))
    bytes_, s, one = (q[:, ::2] | q[:, 1::2] << 4).astype(np.uint8), f8((R, C // 16)), scales(1)
    write("nvfp4-inputs", dict(quant_method="modelopt", quant_algo="NVFP4_AWQ"), {".weight": bytes_, ".weight_scale": s, ".weight_scale_2": one[0].reshape(()), ".pre_quant_scale": inputs},
          E2M1[q] * spread(value(s) * one, 1, 16) * value(inputs))
    config = dict(quant_method="auto-round", packing_format="auto_round:llm_compressor", bits=4, sym=True, data_type="mx_fp", group_size=32, iters=0, autoround_version="0.16.1",
                  rotation_config=dict(algorithm="hadamard", backend="auto", block_size=32, hadamard_type="hadamard", layerwise=False, fuse_online_to_weight=None, allow_online_rotation=True))
    e = rng.integers(100, 150, (R, C // 32), dtype=np.uint8)
    turned = (E2M1[q] * spread(value(As(e, "F8_E8M0")), 1, 32)).astype(np.float64).reshape(R, -1, 32) @ sylvester(32) / np.sqrt(32)
    write("mxfp4-rotated", config, {".weight_packed": bytes_, ".weight_scale": e}, f32(turned.reshape(R, C)))
    matrix = sylvester(16) * rng.choice([-1, 1], 16) / 4
    config = dict(config, data_type="nv_fp", group_size=16, rotation_config=dict(config["rotation_config"], block_size=None, hadamard_type="random_hadamard"))
    turned = (E2M1[q] * spread(value(s) / one, 1, 16)).astype(np.float64).reshape(R, -1, 16) @ matrix
    write("nvfp4-rotated", config, {".weight_packed": bytes_, ".weight_scale": s, ".weight_global_scale": one, ".hadamard_matrix": bf16(matrix)}, f32(turned.reshape(R, C)))


def torchao_flat():
    """TorchAO's classes in safetensors; what each is, is in the header."""
    def flat(name, kind, block, tensors, expected, **data):
        last = data.pop("last", "weight")
        parts = {f"._{last}_{part}": array for part, array in tensors.items()}
        about = dict(_type=kind, _data=dict(block_size=block, dtype={"_type": "torch.dtype", "_data": "bfloat16"}, **data), _tensor_data_names=list(tensors))
        write(name, dict(quant_method="torchao", quant_type={"default": {"_type": "X", "_version": 2}}), parts, expected, metadata={f"{BASE}.{last}": json.dumps(about)})
    w, s = f8((R, C)), scales(R, 1)
    flat("torchao-flat-float8", "Float8Tensor", [1, C], dict(qdata=w, scale=s), value(w) * s, mm_config=None)
    q, s, z = rng.integers(-128, 128, (R, C)).astype(np.int8), bf16(scales(R, 4)), rng.integers(-9, 9, (R, 4)).astype(np.int8)
    flat("torchao-flat-intx", "IntxUnpackedToInt8Tensor", [1, C // 4], dict(qdata=q, scale=s, zero_point=z), (f32(q) - spread(f32(z), 1, 16)) * spread(value(s), 1, 16))
    q, s, z = rng.integers(-8, 8, (2, R, C)), bf16(scales(2, 2, R)), bf16(scales(2, 2, R))
    expected = np.stack([f32(q[i]) * spread(value(s)[i].T, 1, 32) + spread(value(z)[i].T, 1, 32) for i in range(2)])
    flat("torchao-flat-int4", "Int4Tensor", [1, 1, 32], dict(qdata=((q[..., ::2] & 15) | (q[..., 1::2] & 15) << 4).astype(np.uint8).view(np.int8), scale=s, zero_point=z), expected)


def mxfp6():
    """Four codes in three bytes; and MXFP8 as transformers names it."""
    q, e = rng.integers(0, 64, (R, C)), rng.integers(20, 230, (R, C // 32), dtype=np.uint8)
    levels = np.array([(8 + c % 8) * 2.0 ** ((c >> 3 & 3) - 1) if c >> 3 & 3 else c % 8 for c in range(64)]) / 8
    levels = f32(np.where(np.arange(64) >= 32, -levels, levels))
    packed = np.stack([sum(q[:, i::4] << 6 * i for i in range(4)) >> 8 * byte & 255 for byte in range(3)], 2).reshape(R, -1).astype(np.uint8)
    write("mxfp6-compressed", {"quant_method": "compressed-tensors", "format": "mxfp6-pack-quantized"}, {".weight_packed": packed, ".weight_scale": e},
          levels[q] * spread(value(As(e, "F8_E8M0")), 1, 32))
    w = f8((R, C))
    write("mxfp8-inverse", dict(quant_method="mxfp8", weight_block_size=[1, 32], scale_fmt="ue8m0"), {".weight": w, ".weight_scale_inv": e}, value(w) * spread(value(As(e, "F8_E8M0")), 1, 32))


def quark():
    """By rows in FP8; exponents for 32 columns; and transposed integers in AWQ's order, with signs, and in order, with zero points."""
    def config(dtype, **export):
        weight = dict(dtype=dtype, qscheme="per_group", symmetric=dtype == "int4", group_size=32)
        return dict(quant_method="quark", quant_mode="eager_mode", algo_config=[{"name": "awq"}], exclude=["lm_head"],
                    layer_quant_config={"*.up_proj": {"weight": {"dtype": "fp4"}}}, global_quant_config={"weight": weight}, export=dict(weight_format="real_quantized", **export))
    w, s = f8((R, C)), scales(R)
    write("quark-fp8", config("fp8_e4m3"), {".weight": w, ".weight_scale": s, ".input_scale": scales(1)[0].reshape(())}, value(w) * s[:, None])
    q, e = rng.integers(0, 16, (R, C)), rng.integers(20, 230, (R, C // 32), dtype=np.uint8)
    write("quark-mxfp4", config("fp4"), {".weight": (q[:, ::2] | q[:, 1::2] << 4).astype(np.uint8), ".weight_scale": e}, E2M1[q] * spread(value(As(e, "F8_E8M0")), 1, 32))
    for mantissa, name in (3, "e2m3"), (2, "e3m2"):
        q = rng.integers(0, 64, (R, C))
        exponent, rest = (q & 31) >> mantissa, (q & (1 << mantissa) - 1) / (1 << mantissa)
        bias = 1 if mantissa == 3 else 3
        levels = np.where(exponent > 0, (1 + rest) * 2.0 ** (exponent - bias), rest * 2.0 ** (1 - bias)) * np.where(q >> 5, -1, 1)
        packed = np.stack([sum(q[:, i::4] << 6 * i for i in range(4)) >> 8 * byte & 255 for byte in range(3)], 2).reshape(R, -1).astype(np.uint8)
        write(f"quark-mxfp6-{name}", config(f"fp6_{name}"), {".weight": packed, ".weight_scale": e}, f32(levels) * spread(value(As(e, "F8_E8M0")), 1, 32))
    s, z = scales(C // 32, R), rng.integers(0, 16, (C // 32, R))
    words = lambda codes, order: sum(codes[:, order[i]::8].astype(np.uint64) << 4 * i for i in range(8)).astype(np.uint32).view(np.int32)  # noqa: E731
    for name, dtype, order, low in ("int4", "int4", (0, 2, 4, 6, 1, 3, 5, 7), -8), ("uint4", "uint4", range(8), 0):
        q, zero = rng.integers(low, low + 16, (C, R)), z + low
        write(f"quark-{name}", config(dtype, pack_method="reorder" if low else "order"),
              {".weight": words(q & 15, order), ".weight_scale": s, ".weight_zero_point": words(zero & 15, order)}, ((f32(q) - np.repeat(f32(zero), 32, 0)) * np.repeat(s, 32, 0)).T)


def gemma():
    """Four and two bits in bytes, by the module's name; a row may end in the middle of a byte, which config.json shows."""
    s = scales(R, 1)
    for name, bits, columns in ("gemma-int4", 4, C), ("gemma-int2-odd", 2, C - 3):
        q = rng.integers(0, 1 << bits, (R, columns))
        codes, whole = 8 // bits, np.zeros((R, C), int)
        whole[:, :columns] = q
        write(name, dict(quant_method="gemma", num_bits=8, module_quant_configs={r"\.up_proj$": {"num_bits": 8}, r"mlp\.": {"num_bits": bits}}),
              {".weight": sum(whole[:, i::codes] << bits * i for i in range(codes)).astype(np.uint8), ".weight_scale": s}, (f32(q) - (1 << bits - 1)) * s, intermediate_size=columns)
    q = rng.integers(-128, 128, (R, C)).astype(np.int8)
    write("gemma-int8", dict(quant_method="gemma", num_bits=8), {".weight": q, ".weight_scale": s, ".input_activation_scale": scales(1)[0].reshape(())}, f32(q) * s)


def sinq():
    """Groups of the flattened weight, whose scales and zero points are numbers of 8 bits, and a factor for each column."""
    def factor(part, rows):
        numbers = rng.integers(0, 256, (rows // 4, 4), dtype=np.uint8)
        steps, least = ((rng.random((1, 4)) / 8 + 0.01).astype(np.float16) for _ in range(2))
        stored = {f".meta.{part}.x": numbers, f".meta.{part}.s": steps, f".meta.{part}.m": least}
        return stored, f32((numbers * f32(steps)).astype(np.float16).astype(f32) + f32(least)).astype(np.float16).astype(f32).reshape(-1, 1)
    for bits, group in (4, 32), (3, 16), (5, 16), (6, 32):
        rows = R * C // group
        q = rng.integers(0, 1 << bits, (rows, group))
        scale_parts, scale = factor("scale", rows)
        zero_parts, zero = factor("zero", rows)
        columns = (rng.random((1, C)) + 0.5).astype(np.float16)
        slices = {3: 10, 4: 2, 5: 6, 6: 5}[bits]
        height = -(-rows // slices)
        whole = np.zeros((height * slices, group), np.uint32)
        whole[:rows] = q
        words = sum(whole[i * height:(i + 1) * height] << np.uint32(bits * (slices - 1 - i)) for i in range(slices))
        config = dict(quant_method="sinq", quantization_method="sinq", method="sinq", nbits=bits, group_size=group, sinq=True, sinq_version="auto", tiling_mode="1D", _extra_kwargs={})
        write(f"sinq-{bits}", config, {".W_q": words.astype(np.uint8 if bits == 4 else np.int32), **scale_parts, **zero_parts, ".meta.scale2": columns},
              (((f32(q) - zero) * scale).reshape(R, C) * f32(columns)).astype(f32))


def later_forms():
    """TorchAO's stack of experts with one scale, under a parameter's own name; and Quark's integers with a scale for each row; and Gemma's
    expressions, of which the one that matches earliest in the name decides, and may leave the bits as they are."""
    q, s = rng.integers(-128, 128, (2, R, C)).astype(np.int8), bf16(scales(1, 1, 1))
    about = dict(_type="Int8Tensor", _data=dict(block_size=[2, R, C], dtype={"_type": "torch.dtype", "_data": "bfloat16"}, act_quant_kwargs=None, reduce_range=False),
                 _tensor_data_names=["qdata", "scale"])
    write("torchao-flat-experts", dict(quant_method="torchao"), {"._gate_up_proj_qdata": q, "._gate_up_proj_scale": s}, f32(q) * value(s), metadata={f"{BASE}.gate_up_proj": json.dumps(about)})
    q, zero, s = rng.integers(0, 16, (R, C)), rng.integers(0, 16, (1, R)), scales(R)
    words = lambda codes: sum(codes[:, at::8].astype(np.uint64) << 4 * i for i, at in enumerate((0, 2, 4, 6, 1, 3, 5, 7))).astype(np.uint32).view(np.int32)  # noqa: E731
    config = dict(quant_method="quark", export=dict(weight_format="real_quantized", pack_method="reorder"), global_quant_config={"weight": dict(dtype="uint4", qscheme="per_channel", ch_axis=0)})
    write("quark-uint4-rows", config, {".weight": words(q), ".weight_scale": s, ".weight_zero_point": words(zero)[0]}, (f32(q) - f32(zero).T) * s[:, None])
    q = rng.integers(0, 16, (R, C))
    config = dict(quant_method="gemma", num_bits=4, module_quant_configs={r"mlp\.": {"num_bits": 2}, r"layers\.0": {}, r"\.0\.": {"num_bits": 2}})
    write("gemma-int4-earliest", config, {".weight": pack(q, 4, 8), ".weight_scale": s[:, None]}, f32(q - 8) * s[:, None])


CORPUS.mkdir(parents=True, exist_ok=True)
for make in (scaled, pack_quantized, gptq, bitnet, nvfp4, mxfp4, modelopt_int4, awq, bitsandbytes, hqq, mlx, quanto, mxfp4_experts, fp8_ranks, mlx_floats, comfy, scaled_and_rotated_inputs, torchao_flat, mxfp6, quark, gemma, sinq, later_forms):
    make()
