"""Chunks of packs decoded with numpy, by the format's description alone: decode(coding, data, n_bytes, base)."""
import ctypes
import ctypes.util
import zlib

import numpy as np

zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
zstd.ZSTD_findFrameCompressedSize.restype = zstd.ZSTD_decompress.restype = ctypes.c_size_t
zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong

F, i8, u8 = np.float32, np.int8, np.uint8
# values and bytes of a block; planes of scales (h: F16 numbers; 4, 3, x: of 6 bits) and of codes: offset, bytes
TYPES = {row.split()[0]: row.split()[1:] for row in """
Q4_0 32 18 h0,1 b2,16|Q4_1 32 20 h0,2 b4,16|Q5_0 32 22 h0,1 b2,4 b6,16|Q5_1 32 24 h0,2 b4,4 b8,16|Q8_0 32 34 h0,1 b2,32|Q8_1 32 36 h0,2 b4,32
Q2_K 256 84 h80,2 s0,16 b16,64|Q3_K 256 110 h108,1 396,12 b0,32 b32,64|Q4_K 256 144 h0,2 44,12 b16,128|Q5_K 256 176 h0,2 44,12 b16,32 b48,128
Q6_K 256 210 h208,1 s192,16 b0,128 b128,64|IQ4_NL 32 18 h0,1 b2,16|IQ4_XS 256 136 h0,1 x2,6 b8,128|IQ1_S 256 50 h0,1 b2,32 b34,16|IQ1_M 256 56 s48,8 b0,32 b32,16
IQ2_XXS 256 66 h0,1 b2,64|IQ2_XS 256 74 h0,1 s66,8 b2,64|IQ2_S 256 82 h0,1 s74,8 b2,32 b34,32 b66,8|IQ3_XXS 256 98 h0,1 b2,64 b66,32
IQ3_S 256 110 h0,1 s106,4 b2,64 b66,8 b74,32|TQ1_0 256 54 h52,1 b0,48 b48,4|TQ2_0 256 66 h64,1 b0,64|MXFP4 32 17 s0,1 b1,16|NVFP4 64 36 s0,4 b4,32
Q1_0 128 18 h0,1 b2,16|Q2_0 64 18 h0,1 b2,16""".replace("\n", "|").split("|") if row}
PACK6 = {"4": lambda s: [s[:, :4] & 63 | s[:, 4:8] >> 4 << 6, s[:, 8:12] & 63 | s[:, 12:] >> 4 << 6, s[:, 4:8] & 15 | s[:, 12:] << 4],
         "3": lambda s: [s[:, :8] & 15 | s[:, 8:] << 4, sum((s[:, 4 * k:4 * k + 4] >> 4 & 3) << 2 * k for k in range(4))],
         "x": lambda s: [sum((s[:, k::4] >> 4 & 3) << 2 * k for k in range(4)), s[:, ::2] & 15 | s[:, 1::2] << 4]}
NF4 = np.array([-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
                0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1], F)
FP4 = np.array([0, 0.0625, 8, 12, 4, 6, 2, 3, 0, -0.0625, -8, -12, -4, -6, -2, -3], F) / F(12)
FLOATS = {"e4m3": [(code & 7 | 8 * (code > 7)) * 2.0 ** (max(code >> 3, 1) - 10) for code in range(127)], "e2m1": [0, 0.5, 1, 1.5, 2, 3, 4, 6]}
IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], F)


def guess(t, v, h):  # the scales of sub-blocks that cover the values, given those of the blocks
    n_parts, levels, low, high, zero = {"Q2_K": (16, 3, 0, 15, 0), "Q3_K": (16, -4, -32, 31, 32), "Q4_K": (8, 15, 0, 63, 0), "Q5_K": (8, 31, 0, 63, 0),
                                        "Q6_K": (16, -32, -128, 127, 0), "IQ4_XS": (8, -127, -32, 31, 32)}[t]
    with_zero = np.concatenate([np.where(np.isnan(v), F(0), v).reshape(len(h), n_parts, -1), np.zeros((len(h), n_parts, 1), F)], 2)
    least, most, d = with_zero.min(2), with_zero.max(2), h.view("<f2").astype(F)
    within = lambda x: np.rint(np.nan_to_num(x, nan=low, posinf=high, neginf=low).clip(low, high)).astype(int) + zero
    if levels < 0:
        return within(np.where(most > -least, most, least) / F(levels) / d[:, :1])
    scales, minimums = within((most - least) / F(levels) / d[:, :1]), within(-least / d[:, 1:])
    return scales + 16 * minimums if t == "Q2_K" else np.hstack([scales, minimums])


def sum_of(t, stored, guesses):  # number by number
    if t == "Q2_K":
        return ((stored + guesses) % 16 + (stored // 16 + guesses // 16) % 16 * 16).astype(u8)
    return ((stored + guesses) % (256 if t == "Q6_K" else 64)).astype(u8)


def put(b, field, frames, t=None, v=None, h=None):  # the next planes into the blocks; returns them if they are scales
    at, n = map(int, field[1:].split(","))
    p = [frames.pop(0).reshape(len(b), -1) for _ in range(1 + (field[0] == "h"))]
    if h is not None:
        p = [sum_of(t, p[0], guess(t, v, h))]
    if field[0] == "h":
        p = [np.stack(p, 2).reshape(len(b), -1)]
    b[:, at:at + n * (1 + (field[0] == "h"))] = np.concatenate(PACK6[field[0]](p[0]), 1) if field[0] in PACK6 else p[0]
    return [np.ascontiguousarray(p[0]).view("<u2" if field[0] == "h" else u8)] if field[0] != "b" else []


def fold(q, *shape):  # joins the codes of an axis to bytes: shape has the bits of a code in its place of that axis
    axis = next(i for i, n in enumerate(shape) if n < 0)
    q = q.reshape(len(q), *(8 // -n if n < 0 else n for n in shape))
    return sum(q.take(k, axis + 1) << -shape[axis] * k for k in range(q.shape[axis + 1])).astype(u8).reshape(len(q), -1)


def codes(t, b, v, h, s=None):  # sets the codes of blocks by their scales and the values
    h = h if t[3] in "01" else h.view("<f2").astype(F)
    if t[:2] == "IQ":
        d = (h if s is None else h * (s.astype(F) - 32)).reshape(-1, 1)
        x = np.nan_to_num(v.reshape(-1, 32) * np.where(d != 0, 1 / d, F(0)), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        q = ((IQ4[1:] + IQ4[:-1]) / 2).searchsorted(x, "right").reshape(len(b), -1)
        b[:, 2 if s is None else 8:] = fold(q, q.shape[1] // 32, -4, 16)
    elif t[2:] == "_K":
        low, high = {"2": (0, 3), "3": (-4, 3), "4": (0, 15), "5": (0, 31), "6": (-32, 31)}[t[1]]
        d, m = {"2": (s & 15, s >> 4), "3": (s.astype(F) - 32, None), "6": (s.view(i8), None)}.get(t[1], (s[:, :8], s[:, 8:]))
        d, m = (h[:, :1] * d.astype(F))[:, :, None], F(0) if m is None else (h[:, 1:] * m.astype(F))[:, :, None]
        x = np.rint(np.fmin(np.fmax((v.reshape(len(b), d.shape[1], -1) + m) / d, F(low)), F(high)))
        q = np.where(d != 0, x - low, 0).astype(u8).reshape(-1, 256)
        if t[1] in "23":
            b[:, 16 * int(t[1]) - 16:][:, :64] = fold(q & 3, 2, -2, 32)
        if t[1] in "35":
            b[:, :32 if t[1] == "3" else 48][:, -32:] = fold(q >> {"3": 2, "5": 4}[t[1]], -1, 32)
        if t[1] in "45":
            b[:, -128:] = fold(q & 15, 4, -4, 32)
        if t[1] == "6":
            b[:, :192] = np.concatenate([fold(q & 15, 2, -4, 64), fold(q >> 4, 2, -2, 32)], 1)
    else:
        v, n = v.reshape(-1, 32), {"4": 16, "5": 32}.get(t[1], 0)
        low = v.min(1, keepdims=True) if t[3] == "1" else F(0)
        top = v[np.arange(len(v)), np.abs(v).argmax(1)][:, None]
        d = np.abs(top) / F(127) if n == 0 else (v.max(1, keepdims=True) - low) / F(n - 1) if t[3] == "1" else top / F(-n // 2)
        h, same = h ^ np.concatenate([d, low + 0 * d], 1)[:, :h.shape[1]].astype("<f2").view("<u2"), h == 0
        b[:, :2 * h.shape[1]], h = h.view(u8), h.view("<f2").astype(F)
        m = h[:, 1:] if t[3] == "1" else F(0)
        x = np.where(same.all(1, keepdims=True), (v - low) * np.where(d != 0, 1 / d, F(0)), np.where(h[:, :1] != 0, (v - m) / h[:, :1], F(0)))
        q = np.trunc(x + (F(0.5 + n // 2 * (t[3] == "0")) if n else np.copysign(F(0.49999997), x)))
        q = np.clip(np.where(q < 2.0**31, q, -np.inf), 0 if n else -128, n - 1 if n else 127).astype(i8).view(u8)
        b[:, -16 if n else 2:] = fold(q & 15, -4, 16) if n else q
        if n == 32:
            b[:, -20:-16] = fold(q >> 4, 4, -1)


def stored(values, kind):  # numbers as they are stored
    if kind == "BF16":
        return (values.view("<u4") + 0x7FFF + (values.view("<u4") >> 16 & 1) >> 16).astype("<u2")
    return values.astype({"F32": "<f4", "F16": "<f2"}[kind])


def as_kind(values, kind):  # rounded, as F32
    numbers = stored(values, kind)
    return (numbers.astype("<u4") << 16).view("<f4") if kind == "BF16" else numbers.astype(F)


def nearest_float(levels, x, is_low=False):  # codes with their signs; of two equally near ones the even one, or the lower, and 0 without a sign
    if is_low:  # by distances in F32
        return [int(code) + len(levels) * int(y < 0 and code > 0) for code, y in zip(np.abs(np.array(levels, F) - np.abs(x)[:, None]).argmin(1), x)]
    distances = np.abs(np.array(levels) - np.minimum(np.abs(x.astype("f8")), levels[-1])[:, None])
    nearest = [np.flatnonzero(row == row.min()) for row in distances]
    return [int(codes[0] if len(codes) == 1 or codes[0] % 2 == 0 else codes[1]) + (len(levels) + 1 & ~1) * int(np.signbit(y)) for codes, y in zip(nearest, x)]


def quantized_floats(engine, bits, kind, v):  # the codes of one group, its scale as it is stored, and no bias
    levels = FLOATS["e4m3" if bits == 8 else "e2m1"]
    ratio = as_kind(np.array([np.abs(v).max() / F(levels[-1])], F), kind)
    if engine[0] == "n":
        stored = nearest_float(FLOATS["e4m3"], ratio)[0]
        scale = F(FLOATS["e4m3"][stored])
    else:
        exponent = next(e for e in range(-149, 129) if ratio[0] <= 2.0**e) if ratio[0] > 0 else 0
        stored, scale = exponent + 127 & 255, F(2.0**exponent)
    return nearest_float(levels, as_kind(v / scale, kind) if scale != 0 else 0 * np.abs(v), engine in ("mxfp4", "nvfp4")), stored, None


def quantized_group(engine, bits, kind, v, scale):  # the codes, the scale and the bias of one group
    steps = F(2**bits - 1)
    if engine in ("nf4", "fp4"):  # the nearest level; of two equally near ones the lower
        levels, scaled = {"nf4": NF4, "fp4": FP4}[engine], v * (F(1) / max(np.abs(v).max(), F(1e-38)))
        order = sorted(range(16), key=lambda code: (levels[code], code))
        bounds = (levels[order[:-1]] + levels[order[1:]]) / F(2)
        return [order[int((x > bounds).sum())] for x in scaled], np.abs(v).max(), None
    if engine[:4] in ("mxfp", "nvfp"):
        return quantized_floats(engine, bits, kind, v)
    if engine in FLOATS or engine == "i8":
        top = FLOATS[engine][-1] if engine in FLOATS else 127
        quotients = as_kind(v / (scale or np.abs(v).max() / F(top) or F(1)), kind)
        return nearest_float(FLOATS[engine], quotients) if engine in FLOATS else [int(x) % 256 for x in np.rint(quotients).clip(-128, 127)], None, None
    if engine == "int":
        scale = as_kind(np.array([np.abs(v).max() / (steps / F(2))], F), kind)[0]
        scale = scale if scale != 0 else F({"BF16": 0.0078125, "F16": 0.0009765625}[kind])
        half = 2 ** (bits - 1)
        return [int(x) + half for x in np.rint(as_kind(v / scale, kind)).clip(-half, half - 1)], scale, None
    least, most = v.min(), v.max()
    scale = max((most - least) / steps, F(1e-7))
    scale, edge = (scale, least) if abs(least) > abs(most) else (-scale, most)
    whole, bias = np.rint(edge / scale), F(0)
    if whole != 0:
        scale, bias = edge / whole, edge
    return [int(x) for x in np.rint((v - bias) / scale).clip(0, steps)], scale, bias


def quantize_groups(coding, values, scales):  # the bytes of ENGINE-BITS-VALUES-TYPE-PART
    engine, bits, columns, kind, part = coding.split("-")
    bits, groups, values = int(bits), [], as_kind(values, kind)
    values = np.where(np.isfinite(values), values, F(0))
    for number, v in enumerate(values.reshape(-1, int(columns))):
        codes_of_group, scale, bias = quantized_group(engine, bits, kind, v, None if scales is None else scales[number])
        if part == "codes":
            if engine in ("nf4", "fp4"):
                codes_of_group = [code for pair in zip(codes_of_group[1::2], codes_of_group[::2]) for code in pair]
            groups.append(sum(code << bits * i for i, code in enumerate(codes_of_group)).to_bytes(bits * len(v) // 8, "little"))
        elif engine[:4] in ("mxfp", "nvfp"):
            groups.append(bytes([scale]))
        else:
            groups.append(stored(np.array([scale if part == "scale" else bias], F), kind).tobytes())
    return b"".join(groups)


def compute(coding, values, scales=None):  # what follows from the values, and of some codings from the scale of each group
    values = np.where(np.isfinite(values), values, F(0))
    return stored(values, coding[5:]).tobytes() if coding.startswith("cast-") else quantize_groups(coding, values, scales)


def frames_of(data):
    out = []
    while data:
        used, size = zstd.ZSTD_findFrameCompressedSize(data, ctypes.c_size_t(len(data))), zstd.ZSTD_getFrameContentSize(data, ctypes.c_size_t(len(data)))
        content = ctypes.create_string_buffer(size + 1)
        assert zstd.ZSTD_decompress(content, ctypes.c_size_t(size), data, ctypes.c_size_t(used)) == size, "damaged frame"
        out.append(np.frombuffer(content.raw[:size], u8))
        data = data[used:]
    return out


def decode(coding, data, n_bytes, base=None):  # a chunk
    kind, _, t = coding.partition("-")
    is_scaled = kind in ("e4m3", "e2m1", "i8")
    is_computed = kind in ("cast", "mlx", "int", "nf4", "fp4") or kind[:4] in ("mxfp", "nvfp")
    is_checked = is_scaled or is_computed or kind in ("codes", "difference")
    frames = frames_of(data[:-12] if is_checked else data)
    if is_scaled or is_computed:
        scales = np.array([frames.pop(0) for _ in range(4)]).T.copy().view("<f4").ravel() if is_scaled else None
        with np.errstate(all="ignore"):
            out = np.frombuffer(compute(coding, np.frombuffer(base, "<f4"), scales), u8) ^ (frames[0] if frames else u8(0))
    elif kind in ("raw", "zstd"):
        out = frames[0]
    elif kind in ("fields", "codes"):
        out = np.zeros((n_bytes // int(TYPES[t][1]), int(TYPES[t][1])), u8)
        if kind == "fields":
            for field in TYPES[t][2:]:
                put(out, field, frames)
        else:
            values, scales = np.frombuffer(base, "<f4"), []
            with np.errstate(all="ignore"):
                for field in TYPES[t][2:]:
                    scales += put(out, field, frames, t, values, *scales) if field[0] != "b" else []
                codes(t, out, values, *scales)
            out ^= frames[0].reshape(out.shape) if frames else u8(0)
    else:
        u, n, bits = np.dtype(f"<u{int(t) // 8}").type, n_bytes * 8 // int(t), int(t)
        low = frames.pop(0) if len(frames[0]) < n else None
        out = sum(plane.astype(u) << u(8 * i) for i, plane in enumerate(frames))
        if kind == "rotated":
            out = out >> u(1) | out << u(bits - 1)
        if kind == "difference":
            out = out if low is None else out << u(4) | np.concatenate([low & 15, low >> 4])[:n].astype(u)
            order = lambda x: np.where(x >> u(bits - 1), x ^ u(2 ** (bits - 1) - 1), x).astype(u)
            out = order(order(np.frombuffer(base, u)) + (out >> u(1) ^ -(out & u(1))))
    assert len(out.tobytes()) == n_bytes and (not is_checked or zlib.crc32(out.tobytes()) == int.from_bytes(data[-4:], "little")), "damaged chunk"
    return out.tobytes()
