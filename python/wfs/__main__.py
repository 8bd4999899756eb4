"""`wfs` and `python -m wfs`: the program that came with the package."""
from __future__ import annotations

import os
import pathlib
import shutil
import sys


def find_program() -> str:
    inside = pathlib.Path(__file__).parent / "bin" / "wfs"
    if inside.exists():
        return str(inside)
    found = os.environ.get("WFS") or shutil.which("wfs")
    if found is None:
        raise FileNotFoundError("the program wfs is not in this package, nor on the PATH")
    return found


def main() -> None:
    program = find_program()
    os.execv(program, ["wfs", *sys.argv[1:]])


if __name__ == "__main__":
    main()
