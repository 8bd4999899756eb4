"""Every block format encodes and decodes as ggml does, bit for bit, with each set of kernels this processor has."""
import ctypes
import os
import pathlib
import subprocess
import tempfile

import llama_cpp
import numpy as np

from interop import WFS, check, done

ENCODE = pathlib.Path(WFS).parent / "tests" / "interop" / "encode"
FORMATS = {  # ggml's type number, elements and bytes of a block
    "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34),
    "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210),
    "IQ4_NL": (20, 32, 18), "IQ4_XS": (23, 256, 136), "TQ1_0": (34, 256, 54), "TQ2_0": (35, 256, 66), "MXFP4": (39, 32, 17),
    "NVFP4": (40, 64, 36), "Q1_0": (41, 128, 18), "Q2_0": (42, 64, 18),
}
GRIDS = {  # slow to encode; of IQ1_M the package's search differs from llama.cpp 34af94cd9's
    "IQ2_XXS": (16, 256, 66), "IQ2_XS": (17, 256, 74), "IQ3_XXS": (18, 256, 98), "IQ1_S": (19, 256, 50), "IQ3_S": (21, 256, 110),
    "IQ2_S": (22, 256, 82), "IQ1_M": (29, 256, 56),
}
FOLLOWING = {  # the most codes that do not follow from scales, without and with importance
    "Q2_K": (0, 0), "Q3_K": (0, 0), "Q4_K": (0, 0), "Q5_K": (0, 0), "Q6_K": (0, 0), "Q8_0": (0, 0), "Q4_0": (0, 0.02),
    "Q4_1": (0, 0.02), "Q5_0": (0, 0.02), "Q5_1": (0, 0.02), "IQ4_NL": (0.002, 0.002), "IQ4_XS": (0.002, 0.002),
}
COLUMNS = 1024
N_VALUES = int(os.environ.get("WFS_QUANT_VALUES", 1 << 20))
GGML = ctypes.CDLL(str(next((pathlib.Path(llama_cpp.__file__).parent / "lib").glob("libggml-base.so"))))
GGML.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
GGML.ggml_quantize_chunk.restype = ctypes.c_size_t


def inputs():
    """Names and values: as weights are, and as they are not."""
    random = np.random.default_rng(11)
    normal = random.normal(0, 1, N_VALUES)
    block = random.normal(0, 1, N_VALUES // 256).repeat(256)
    ties = random.integers(-16, 17, N_VALUES) / 2
    sparse = np.where(random.random(N_VALUES) < 0.9, random.choice([0.0, -0.0], N_VALUES), normal)
    with np.errstate(under="ignore", over="ignore"):
        return {
            "gaussian": (normal * 0.02).astype("<f4"),
            "heavy tails": (random.standard_t(2, N_VALUES) * 0.02).astype("<f4"),
            "cauchy": np.clip(random.standard_cauchy(N_VALUES), -60000, 60000).astype("<f4"),
            "uniform of one sign": np.abs(normal).astype("<f4"),
            "constant blocks": block.astype("<f4"),
            "ties": ties.astype("<f4"),
            "sparse, both zeros": sparse.astype("<f4"),
            "all magnitudes": (normal * 10.0 ** random.integers(-45, 4, N_VALUES // 256).repeat(256)).astype("<f4"),
            "denormal": (normal * 2.0**-130 * 2.0 ** -random.integers(0, 20, N_VALUES // 32).repeat(32)).astype("<f4"),
        }


def run(arguments, data, level):
    environment = os.environ | {"WFS_CPU": level}
    return subprocess.run([ENCODE, *arguments], input=data, stdout=subprocess.PIPE, env=environment, check=True).stdout


def differing(ours, theirs, size):
    ours, theirs = (np.frombuffer(data, "u1").reshape(-1, size) for data in (ours, theirs))
    return int((ours != theirs).any(axis=1).sum()) if ours.shape == theirs.shape else -1


def ggml_encode(number, values, size, columns=None):
    blocks = np.zeros(size, "u1")
    width = len(values) if columns is None else len(columns)
    pointer = None if columns is None else columns.ctypes.data
    GGML.ggml_quantize_chunk(number, values.ctypes.data, blocks.ctypes.data, 0, len(values) // width, width, pointer)
    return blocks.tobytes()


def ggml_decode(name, blocks, n_values):
    values = np.zeros(n_values, "<f4")
    data = np.frombuffer(blocks, "u1")
    dequantize = getattr(GGML, "dequantize_row_" + name.lower().replace("_k", "_K"))
    dequantize(*map(ctypes.c_void_p, (data.ctypes.data, values.ctypes.data)), ctypes.c_int64(n_values))
    return values.tobytes()


def weights(*formats):
    """By the importance of columns, a few rows of each."""
    random = np.random.default_rng(13)
    columns = (np.where(random.random(COLUMNS) < 0.02, 0, random.exponential(1, COLUMNS)) ** 2).astype("<f4")
    with tempfile.NamedTemporaryFile() as file:
        columns.tofile(file.name)
        for kind, values in inputs().items():
            rows = values[: 16 * COLUMNS]
            for name, (number, elements, size) in formats:
                expected = ggml_encode(number, rows, len(rows) // elements * size, columns)
                for level in ("portable", "avx2", "avx512") if name != "IQ1_M" else ():
                    differences = differing(run([name, file.name], rows.tobytes(), level), expected, size)
                    check(differences == 0, f"{name} of {kind} with weights, {level}: {differences} blocks differ from ggml's")


def codes():
    """Codes follow from the scales that ggml stored: exactly where it computes them from these, with importance or not."""
    random = np.random.default_rng(17)
    columns = (random.exponential(1, COLUMNS) ** 2).astype("<f4")
    values = (random.standard_t(4, 512 * COLUMNS) * 0.02).astype("<f4")
    for name, most in FOLLOWING.items():
        number, elements, size = FORMATS[name]
        for weights in (None, columns):
            expected = ggml_encode(number, values, len(values) // elements * size, weights)
            with tempfile.NamedTemporaryFile() as file:
                file.write(expected)
                file.flush()
                for level in ("portable", "avx2", "avx512"):
                    made = run(["-c", name, file.name], values.tobytes(), level)
                    share = np.mean(np.frombuffer(ggml_decode(name, made, len(values)), "<f4")
                                    != np.frombuffer(ggml_decode(name, expected, len(values)), "<f4"))
                    check(share <= most[weights is not None],
                          f"{name}, weights: {weights is not None}, {level}: {share:.2g} of the codes do not follow from the scales")


def main():
    codes()
    for kind, values in inputs().items():
        for name, (number, elements, size) in FORMATS.items():
            expected = ggml_encode(number, values, len(values) // elements * size)
            decoded = ggml_decode(name, expected, len(values))
            for level in ("portable", "avx2", "avx512"):
                encode_differences = differing(run([name], values.tobytes(), level), expected, size)
                decode_differences = differing(run(["-d", name], expected, level), decoded, 4 * elements)
                check(encode_differences == 0 == decode_differences,
                      f"{name} of {kind}, {level}: of {len(values) // elements} blocks {encode_differences} encoded and "
                      f"{decode_differences} decoded otherwise than by ggml")
    weights(*FORMATS.items(), *GRIDS.items())
    for name, (_, elements, size) in GRIDS.items():
        blocks = np.random.default_rng(12).integers(0, 256, N_VALUES // elements * size, "u1").tobytes()
        decoded = np.frombuffer(ggml_decode(name, blocks, N_VALUES), "<f4")
        for level in ("portable", "avx2", "avx512"):
            ours = np.frombuffer(run(["-d", name], blocks, level), "<f4")
            differences = int(((ours.view("u4") != decoded.view("u4")) & ~(np.isnan(ours) & np.isnan(decoded))).sum())
            check(differences == 0, f"{name} of any bytes, {level}: {differences} values decoded otherwise than by ggml")
    done()


if __name__ == "__main__":
    main()
