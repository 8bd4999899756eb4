"""Packed weights are, bit for bit, what each format's own library makes of them: f32.npy of the vectors that come with the golden checkpoints."""
import io
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

from interop import WFS, check, done


def main():
    golden = os.environ.get("WFS_GOLDEN")
    vectors = pathlib.Path(golden) / "quantized-vectors" if golden else None
    if vectors is None or not vectors.is_dir():
        print("no vectors: WFS_GOLDEN is not set, or has none")
        sys.exit(0)
    for name, row in json.loads((vectors / "vectors.json").read_text()).items():
        expected = np.load(vectors / name / "expected" / f"{row['tensor']}.npy")
        made = subprocess.run([WFS, "cat", vectors / name, f"tensors/{row['tensor']}/f32.npy"], capture_output=True)
        if not check(made.returncode == 0, f"{name}: {made.stderr.decode().strip()}"):
            continue
        values = np.load(io.BytesIO(made.stdout))
        same = values.shape == expected.shape and np.array_equal(values.view(np.uint32), expected.view(np.uint32))
        check(same, f"{name}: {values.shape}, {np.count_nonzero(values != expected) if values.shape == expected.shape else 'another shape'} differ")
    done()


if __name__ == "__main__":
    main()
