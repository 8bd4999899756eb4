"""The tables that hold what other programs own are those of the pinned versions: see scripts/tables."""
import os
import subprocess
import sys

import interop
from interop import check, done

try:
    import torch  # noqa: F401, for the order of modules
    import transformers  # noqa: F401
except ImportError as error:
    interop.skip(str(error))

for tool in ("llama.cpp", "transformers", "mlx-lm"):
    checked = subprocess.run([sys.executable, interop.ROOT / "scripts/tables", tool, "--check"], capture_output=True, text=True,
                             env={**os.environ, "TABLES_INSIDE": "1"})
    check(checked.returncode == 0, f"scripts/tables {tool} --check: {checked.stdout}{checked.stderr}")
done()
