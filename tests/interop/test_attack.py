"""A short run of scripts/attack: mutants read by wfs and by the format's own library, requests, lists, hubs, sources that change."""
import os
import pathlib
import subprocess
import sys

from interop import ROOT, WFS, check, done

LIBRARY = pathlib.Path(os.environ.get("WFS_LIBRARY", pathlib.Path(WFS).resolve().parent / "fs/lib/libwfs.so.0"))
NOT_THERE = 77  # the library of a format
RUNS = [["differential", "safetensors", 600], ["differential", "npy", 600], ["differential", "gguf", 150], ["differential", "torch", 100],
        ["differential", "hdf5", 100], ["differential", "onnx", 300], ["json", 6], ["lists", 8], ["hubs", 2], ["requests", 80], ["sources", 60]]

for run in RUNS:
    result = subprocess.run([sys.executable, ROOT / "scripts/attack", *map(str, run)], capture_output=True, text=True, check=False,
                            env={**os.environ, "WFS": str(pathlib.Path(WFS).resolve()), "WFS_LIBRARY": str(LIBRARY)})
    accepted = run[0] != "differential" or result.returncode == NOT_THERE or " both accept" in result.stdout
    check(result.returncode in (0, NOT_THERE) and accepted, f"{run}: {result.stdout[-2000:]}{result.stderr[-1000:]}")
done()
