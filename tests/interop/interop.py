"""What the interoperability tests share: running wfs, mounting, and counting checks."""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time

WFS = os.environ.get("WFS", "build/wfs")
ROOT = pathlib.Path(__file__).resolve().parents[2]
STRICT = os.environ.get("WFS_TEST_STRICT") == "1"

_checks = {"passed": 0, "failed": 0}


def check(condition, what):
    """One check: a line of output; the exit status of done() tells whether all passed."""
    _checks["passed" if condition else "failed"] += 1
    if not condition:
        print(f"not ok - {what}")
    return bool(condition)


def done():
    print(f"{_checks['passed']} checks passed, {_checks['failed']} failed")
    sys.exit(_checks["failed"] != 0 or _checks["passed"] == 0)


def skip(reason):
    """Ends the whole test: a failure where everything must be there (CI)."""
    print(f"skipped: {reason}")
    sys.exit(1 if STRICT else 0)


def leave_out(reason):
    """Ends the whole test, which needs what CI does not install: no failure there either."""
    print(f"left out: {reason}")
    sys.exit(0)


def wfs(*arguments, **options):
    return subprocess.run([WFS, *map(str, arguments)], check=False, capture_output=True, **options)


def cat(source, path):
    """The bytes of a virtual file, without a mount."""
    result = wfs("cat", source, path)
    if result.returncode != 0:
        raise OSError(result.stderr.decode())
    return result.stdout


@contextlib.contextmanager
def mounted(source, *options):
    """Mounts `source` for the time of the block; yields the mount point."""
    if not os.path.exists("/dev/fuse"):
        skip("/dev/fuse is missing")
    with tempfile.TemporaryDirectory() as directory:
        mountpoint = pathlib.Path(directory) / "mnt"
        result = wfs("mount", *options, source, mountpoint)
        if result.returncode != 0:
            raise OSError(result.stderr.decode())
        try:
            yield mountpoint
        finally:
            for _ in range(100):  # who read it may still be about to end
                wfs("umount", mountpoint)
                if not os.path.ismount(mountpoint):
                    break
                time.sleep(0.1)


@contextlib.contextmanager
def serving(*arguments):
    """Runs `wfs serve` for the time of the block; yields its address."""
    with subprocess.Popen([WFS, "serve", "--listen", "127.0.0.1:0", *map(str, arguments)], stdout=subprocess.PIPE, text=True) as server:
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def golden_checkpoints(kind=""):
    """The golden checkpoints that WFS_GOLDEN names, made where they are missing: {name: path}, and the tool that compares.

    WFS_GOLDEN is a folder with the programs `make` and `check`, and `make-KIND` of further sets; WFS_GOLDEN_MODELS is where the models are
    kept, those of a further set in the folder KIND beside it.
    """
    golden = os.environ.get("WFS_GOLDEN")
    maker = os.path.join(golden, f"make-{kind}" if kind else "make") if golden else ""
    if not os.path.exists(maker):
        return {}, None
    models = pathlib.Path(os.environ.get("WFS_GOLDEN_MODELS", ROOT / "build" / "golden"))
    models = models.parent / kind if kind else models
    if not models.is_dir():
        subprocess.run([sys.executable, maker, models], check=True, stdout=subprocess.DEVNULL)
    expected = pathlib.Path(golden, f"expected-{kind}" if kind else "expected")
    made = (path for path in sorted(models.iterdir()) if path.is_dir() or (expected / f"{path.name}.json").exists())
    return {path.name: path for path in made}, os.path.join(golden, "check")
