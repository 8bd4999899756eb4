#!/usr/bin/env python3
"""Writes build.c, the build of wfs (identity.h): write_build.py ROOT OUTPUT. Leaves the file alone if it is the same."""
import hashlib
import pathlib
import sys

ROOMS = "base fs formats models products quant remote sources text".split()
SOURCES = {".c", ".h", ".inc", ".json", ".proto"}


def main(root, output):
    hashed = hashlib.sha256()
    for path in sorted(path for room in ROOMS for path in (root / room).rglob("*") if path.suffix in SOURCES):
        content = path.read_bytes()
        hashed.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    text = f'#include "fs/tree/identity.h"\n\nconst char wfs_build[] = "{hashed.hexdigest()[:16]}";\n'
    if not output.exists() or output.read_text() != text:
        output.write_text(text)


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
