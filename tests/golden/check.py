#!/usr/bin/env python3
"""Compares files that wfs makes with the golden files (golden.py), as TAP. WFS is the program."""
import os
import pathlib
import subprocess
import sys
import tempfile

import golden


def compare(number, name, build, variant, expected, folder):
    _, path, options = golden.VARIANTS[variant]
    words = [word for option in [f"llama.cpp={build}", *options] for word in ("-o", option)]
    made = subprocess.run([os.environ["WFS"], "cat", *words, folder, path], capture_output=True, check=False)
    lines = [made.stderr.decode()] if made.returncode != 0 else golden.differences(expected, golden.record(made.stdout))
    print(f"{'not ' if lines else ''}ok {number} - {name} {variant} {build}")
    for line in lines:
        print(f"# {line}")
    return not lines


def compare_again(number, name, folder, scratch):
    """The GGUF's hf/, as a folder of the same name, becomes the same GGUF."""
    gguf, back = pathlib.Path(scratch, f"{name}.gguf"), pathlib.Path(scratch, "back", name)
    back.parent.mkdir(exist_ok=True)
    for words in (["cp", folder, "model.gguf", gguf], ["cp", "-r", gguf, "hf", back]):
        subprocess.run([os.environ["WFS"], *words], capture_output=True, check=False)
    again = subprocess.run([os.environ["WFS"], "cat", back, "model.gguf"], capture_output=True, check=False)
    lines = [again.stderr.decode()] if again.returncode != 0 else golden.differences(golden.record(gguf.read_bytes()), golden.record(again.stdout))
    print(f"{'not ' if lines else ''}ok {number} - {name} again")
    for line in lines:
        print(f"# {line}")
    return not lines


def main():
    good, number = True, 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in golden.names():
            description = golden.load(name)
            folder = golden.make(description, pathlib.Path(scratch, name))
            for build, files in description["files"].items():
                for variant, expected in files.items():
                    number += 1
                    good &= compare(number, name, build, variant, expected, folder)
            if description.get("comes_back"):
                number += 1
                good &= compare_again(number, name, folder, scratch)
    print(f"1..{number}")
    sys.exit(not good)


main()
