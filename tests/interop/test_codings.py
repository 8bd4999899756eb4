"""Chunks that wfs codes are decoded by numpy (codings.py), which computes codes from scales in its own way."""
import pathlib
import subprocess
import tempfile

import numpy as np

from codings import TYPES, compute, decode
from interop import ROOT, check, done

ALONE = ["raw", "zstd", *(f"planes-{bits}" for bits in (8, 16, 32, 64)), *(f"rotated-{bits}" for bits in (16, 32, 64)), *(f"fields-{name}" for name in TYPES)]
CODES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"]
COMPUTED = ["cast-F32", "cast-F16", "cast-BF16", "mlx-2-32-BF16-codes", "mlx-3-64-BF16-codes", "mlx-4-64-BF16-codes", "mlx-5-32-BF16-codes", "mlx-6-128-F16-codes", "mlx-8-64-BF16-codes",
            "mlx-4-64-BF16-scale", "mlx-4-64-BF16-bias", "mlx-8-32-F16-scale", "mlx-3-128-F16-bias", "int-4-128-BF16-codes", "int-4-128-BF16-scale", "int-4-32-BF16-codes", "int-8-64-F16-scale", "int-8-128-F16-codes", "int-8-128-F16-scale",
            "nf4-4-64-F32-codes", "nf4-4-64-F32-scale", "fp4-4-64-F32-codes",
            *(f"{engine}-{kind}-{part}" for engine in ("mxfp4-4-32", "mxfp8-8-32", "nvfp4-4-16") for kind in ("BF16", "F16", "F32") for part in ("codes", "scale")),
            *(f"{engine}-F32-{part}" for engine in ("mxfp4even-4-32", "nvfp4even-4-16") for part in ("codes", "scale"))]
SCALED = [f"{engine}-{columns}-{kind}-codes" for engine, columns in (("e4m3-8", 128), ("e4m3-8", 32), ("i8-8", 128), ("i8-8", 32), ("e2m1-4", 32), ("e2m1-4", 16)) for kind in ("BF16", "F16", "F32")]
CHECKSUM = 12  # bytes of the frame that ends a chunk with an input
GUESSED = ["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS"]
random = np.random.default_rng(1)


def values(n):
    """Rows of different size; of some all values are zero, or tiny, or equal."""
    rows = random.normal(0, 1, (n // 256, 256)) * np.exp(random.normal(-4, 2, (n // 256, 1)))
    rows[1::50], rows[2::50] = 0, rows[2::50] * 1e-9
    rows[3::50] = rows[3::50, :1]
    return rows.astype("<f4")


def encode(dtype, rows):
    """As wfs encodes; gguf-py has no K types."""
    return subprocess.run([ROOT / "build/tests/interop/encode", dtype], input=rows.tobytes(), capture_output=True, check=True).stdout


def code(directory, coding, plain, base=b""):
    (directory / "base").write_bytes(base)
    run = subprocess.run([ROOT / "build/tests/interop/code", coding, directory / "base"], input=plain, capture_output=True)
    return run.stdout if run.returncode == 0 else None


def returns(directory, coding, plain, base=b""):
    data = code(directory, coding, plain, base)
    return check(data and decode(coding, data, len(plain), base) == plain, f"{coding}, {len(plain)} bytes") and len(data)


def unit(coding):
    name = coding.partition("-")[2]
    return tuple(map(int, TYPES[name][:2])) if name in TYPES else (1, int(name or 8) // 8)


with tempfile.TemporaryDirectory() as name:
    scratch = pathlib.Path(name)
    floats = values(1 << 16)
    strange = floats.copy()
    strange[4::9, ::37] = np.array([np.nan, np.inf, -np.inf, -0.0, 1e38, -1e38, 1e-45], "<f4")
    for coding in ALONE:
        n_values, width = unit(coding)
        for n in 1, 3, 65536 // n_values:
            returns(scratch, coding, (floats.tobytes() * 3)[5:5 + n * width])

    for kind, bits in ("<u2", 16), ("<u4", 32):
        base = floats.view("<u4").reshape(-1) >> (32 - bits)
        for step in 0, 1, 40, 5000, 1 << 40:
            tuned = (base.astype("i8") + random.integers(-step, step + 1, base.size)).astype(kind)
            for n in 1, 2, 999, 65536:
                returns(scratch, f"difference-{bits}", tuned[:n].tobytes(), base.astype(kind)[:n].tobytes())

    for name in CODES:
        blocks = np.frombuffer(encode(name, floats), np.uint8).reshape(-1, int(TYPES[name][1])).copy()
        size = returns(scratch, f"codes-{name}", blocks.tobytes(), floats.tobytes())
        check(size and size < 0.17 * blocks.size, f"codes-{name} has {size} bytes of {blocks.size}")
        blocks[::7] = random.integers(0, 256, blocks[::7].shape)  # no block of a tool: scales of any size, NaN and infinity among them
        returns(scratch, f"codes-{name}", blocks.tobytes(), floats.tobytes())
        if name in GUESSED:
            returns(scratch, f"codes-{name}", blocks.tobytes(), strange.tobytes())

    for coding in COMPUTED:
        weights = floats.reshape(-1)[::4].copy()
        with np.errstate(all="ignore"):
            plain = bytearray(compute(coding, weights))
        size = returns(scratch, coding, bytes(plain), weights.tobytes())
        check(size == CHECKSUM, f"{coding}: all that numpy computes follows, {size} bytes are stored")
        for i in range(0, len(plain), 97):
            plain[i] ^= 64
        returns(scratch, coding, bytes(plain), weights.tobytes())
        returns(scratch, coding, bytes(plain), strange.reshape(-1)[::4].astype("<f4").tobytes())

    for coding in SCALED:  # with a scale for each row of 512 values, or for all
        weights, top = floats.reshape(-1)[::4].copy(), {"e4m3": 448, "i8-8": 127, "e2m1": 6}[coding[:4]]
        columns = int(coding.split("-")[2])
        for row in 512, weights.size:
            scales = np.repeat(np.abs(weights.reshape(-1, row)).max(1) / np.float32(top), row // columns)
            scales[scales == 0] = 1
            with np.errstate(all="ignore"):
                plain = bytearray(compute(coding, weights, scales))
            size = returns(scratch, coding, bytes(plain), weights.tobytes())
            check(size and size < CHECKSUM + 100 + 13 * weights.size // row, f"{coding}: a scale for each {row} values has {size} bytes")
        for i in range(0, len(plain), 97):
            plain[i] ^= 64
        returns(scratch, coding, bytes(plain), weights.tobytes())
        returns(scratch, coding, bytes(plain), strange.reshape(-1)[::4].astype("<f4").tobytes())
done()
