"""The Python package: its wheel is built and repaired, and tested in clean environments."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
environment = {**os.environ, "WFS_INTEROP_ENV": sys.prefix}
sys.exit(subprocess.run([ROOT / "python" / "test_wheel"], env=environment, check=False).returncode)
