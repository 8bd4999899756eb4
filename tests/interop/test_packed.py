"""Packed weights are, bit for bit, what each format's own library makes of them: f32.npy of the vectors that come with the golden checkpoints, and
what MLX itself quantizes and dequantizes here, in each of its modes."""
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from interop import WFS, check, done


def f32_of(folder, tensor):
    made = subprocess.run([WFS, "cat", folder, f"tensors/{tensor}/f32.npy"], capture_output=True)
    return np.load(io.BytesIO(made.stdout)) if check(made.returncode == 0, f"{folder}: {made.stderr.decode().strip()}") else None


def compare(name, values, expected):
    same = values.shape == expected.shape and np.array_equal(values.view(np.uint32), expected.view(np.uint32))
    check(same, f"{name}: {values.shape}, {np.count_nonzero(values != expected) if values.shape == expected.shape else 'another shape'} differ")


def mlx_modes():
    """Weights with rows of zeros, of outliers, and of numbers that become subnormal, as matrices and as a stack of experts."""
    try:
        import mlx.core as mx
    except ImportError:
        print("without mlx: its modes are not compared")
        return False
    draw = np.random.default_rng(8)
    weight = draw.standard_normal((3, 64, 256)).astype(np.float32)
    weight[:, 0], weight[:, 1], weight[:, 2] = 0, weight[:, 1] * 1e-39, weight[:, 2] * 1e30
    weight[:, 3, 7] = 1e4
    with tempfile.TemporaryDirectory() as folder:
        for mode, group, bits in (("affine", 64, 4), ("affine", 32, 3), ("affine", 128, 6), ("mxfp4", 32, 4), ("mxfp8", 32, 8), ("nvfp4", 16, 4)):
            for shape in ((192, 256), (3, 64, 256)):
                words, scales, *biases = mx.quantize(mx.array(weight.reshape(shape)), group_size=group, bits=bits, mode=mode)
                expected = np.array(mx.dequantize(words, scales, *biases, group_size=group, bits=bits, mode=mode, dtype=mx.float32))
                named = dict(zip(("a.weight", "a.scales", "a.biases"), (words, scales, *biases)))
                mx.save_safetensors(os.path.join(folder, "model.safetensors"), named)
                config = dict(group_size=group, bits=bits, mode=mode)
                (pathlib.Path(folder) / "config.json").write_text(json.dumps(dict(quantization=config, quantization_config=config)))
                values = f32_of(folder, "a.weight")
                if values is not None:
                    compare(f"mlx {mode} of {bits} bits, {shape}", values, expected)
    return True


def main():
    has_mlx = mlx_modes()
    golden = os.environ.get("WFS_GOLDEN")
    vectors = pathlib.Path(golden) / "quantized-vectors" if golden else None
    if vectors is None or not vectors.is_dir():
        print("no vectors: WFS_GOLDEN is not set, or has none")
        done() if has_mlx else sys.exit(0)
    for name, row in json.loads((vectors / "vectors.json").read_text()).items():
        expected = np.load(vectors / name / "expected" / f"{row['tensor']}.npy")
        values = f32_of(vectors / name, row["tensor"])
        if values is not None:
            compare(name, values, expected)
    done()


if __name__ == "__main__":
    main()
