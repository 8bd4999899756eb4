#!/usr/bin/env python3
"""convert.py MODEL PATH DEST [--parts N] [--cpus N] [OPTION of wfs cp ...]: a file of wfs, made in parts by the nodes of a Ray cluster.

MODEL and DEST are seen by all nodes under these names: a shared file system; MODEL may also be s3:// or hf://. Each task makes a part with
all threads of its node and returns nothing but its number. Ray repeats a task whose worker or node has died; a task whose disk was full or
whose server did not answer is repeated, too (status 3 of wfs). Any other failure ends the conversion with the message of wfs.
"""
import argparse
import os
import subprocess
import sys

os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")

import ray

TRY_AGAIN = 3  # the exit status of wfs after an I/O error, on a full disk, or if a server does not answer


class TryAgain(OSError):
    """A part that may succeed if it is made again."""


@ray.remote(max_retries=3, retry_exceptions=[TryAgain], scheduling_strategy="SPREAD")
def make_part(number, count, arguments):
    result = subprocess.run([os.environ.get("WFS", "wfs"), "cp", "--part", f"{number}/{count}", *arguments], stderr=subprocess.PIPE, text=True)
    if result.returncode == TRY_AGAIN or result.returncode < 0:
        raise TryAgain(f"part {number}: status {result.returncode}: {result.stderr.strip()}")
    if result.returncode != 0:
        raise RuntimeError(result.stderr.strip())
    return number


def convert(arguments, count, cpus):
    """Makes all parts; `arguments` are those of `wfs cp`."""
    parts = [make_part.options(num_cpus=cpus).remote(number, count, arguments) for number in range(1, count + 1)]
    ray.get(parts)
    subprocess.run([os.environ.get("WFS", "wfs"), "cp", "--join", str(count), *arguments], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, help="4 for each node by default")
    parser.add_argument("--cpus", type=int, help="of a task: by default all of the smallest node")
    options, arguments = parser.parse_known_args()
    ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False)
    cpus = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    convert(arguments, options.parts or 4 * len(cpus), options.cpus or min(filter(None, cpus)))


if __name__ == "__main__":
    sys.exit(main())
