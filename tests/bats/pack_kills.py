"""Kills `wfs pack --replace` at random points: pack_kills.py WFS SOURCE SCRATCH COUNT

After each kill every file of SOURCE must be whole in its place or in the archive. SCRATCH is a new folder.
"""
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time

WFS, SOURCE, SCRATCH, COUNT = sys.argv[1], os.fsencode(sys.argv[2]), os.fsencode(sys.argv[3]), int(sys.argv[4])


def hashes(top):
    found = {}
    for at, _, files in os.walk(top):
        for name in files:
            path = os.path.join(at, name)
            if not os.path.islink(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = hashlib.sha256(file.read()).hexdigest()
    return found


def pack(seconds):
    """Runs for that time, or to the end."""
    child = subprocess.Popen([WFS, "pack", "--replace", b"archive", b"source"], stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def check(wanted):
    """Every file in the source or, as a copy, in the archive."""
    shutil.rmtree(b"copy", ignore_errors=True)
    if os.path.exists(b"archive/index.json"):
        subprocess.run([WFS, "cp", "-r", b"archive", b"files/source", b"copy"], stderr=subprocess.DEVNULL)
    left, copied = hashes(b"source"), hashes(b"copy")
    for path, digest in wanted.items():
        assert digest in (left.get(path), copied.get(path)), path
        assert path not in left or left[path] == digest, path


os.makedirs(SCRATCH)
wanted = hashes(SOURCE)
source = os.path.abspath(SOURCE)
os.chdir(SCRATCH)
shutil.copytree(source, b"source", symlinks=True)
start = time.monotonic()
pack(100)
whole = time.monotonic() - start
random.seed()
for i in range(COUNT):
    shutil.rmtree(b"archive", ignore_errors=True)
    shutil.rmtree(b"source", ignore_errors=True)
    shutil.copytree(source, b"source", symlinks=True)
    for _ in range(2):
        pack(random.random() * whole)
        check(wanted)
        if not os.path.exists(b"source"):
            break
    if os.path.exists(b"source"):
        pack(100)
    check(wanted)
    assert not os.path.exists(b"source")
    subprocess.run([WFS, "verify", b"archive"], stdout=subprocess.DEVNULL, check=True)
