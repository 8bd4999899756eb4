"""The scripts of examples/slurm on two nodes: an array of which a process is killed and a task requeued, and the job that ends the copy."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from interop import ROOT, WFS, check, done, leave_out, wfs

PATH = "gguf/model-Q8_0.gguf"
PARTS = 8
SLURM = "slurmctld", "slurmd", "sbatch", "munged", "ip", "unshare"


def sbatch(*arguments):
    return subprocess.run(["sbatch", "--parsable", *map(str, arguments)], check=True, capture_output=True, text=True).stdout.strip()


def states(job):
    return subprocess.run(["squeue", "-h", "-t", "all", "-o", "%K %T", "-j", job], check=False, capture_output=True, text=True).stdout.split("\n")


def wait_for(what, condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            check(False, f"waited in vain for {what}")
            return False
        time.sleep(0.1)
    return True


def is_over(job):
    return all(line.split()[-1] in ("COMPLETED", "FAILED", "CANCELLED") for line in states(job) if line)


def wait_until_over(*jobs):
    return all(wait_for(f"job {job}: {states(job)}", lambda: is_over(job)) for job in jobs)


def in_cluster(scratch):
    """Runs where there is a cluster. The wfs of the tasks waits first, so that they can be met while they run."""
    dest, model, slow = scratch / "copy.gguf", scratch / "model", scratch / "slow-wfs"
    slow.write_text(f'#!/bin/bash\nsleep 1\nexec "{WFS}" "$@"\n')
    slow.chmod(0o755)
    os.environ.update(WFS=str(slow), PARTS=str(PARTS))
    array = sbatch(f"--array=0-{PARTS - 1}", ROOT / "examples/slurm/parts", model, PATH, dest)
    join = sbatch(f"--dependency=afterany:{array}", ROOT / "examples/slurm/join", model, PATH, dest)
    running = lambda task: f"{task} RUNNING" in states(array)
    wait_for("task 1", lambda: running(1))
    subprocess.run(["scontrol", "requeue", f"{array}_1"], check=True)
    wait_for("task 3", lambda: running(3))
    subprocess.run(["scancel", "--signal=KILL", "--full", f"{array}_3"], check=True)
    wait_until_over(array, join)
    ended = states(array)
    check(f"{PARTS - 1} COMPLETED" in ended and "3 COMPLETED" not in ended, f"all tasks but the killed one have ended well: {ended}")
    check(dest.exists(), "the dependent job has made the missing part")

    # One task submitted again: Slurm then counts one task, and the number is right all the same.
    os.environ["WFS"] = WFS
    again = scratch / "again.gguf"
    for tasks in "3", "0-2,4-7":
        wait_until_over(sbatch(f"--array={tasks}", ROOT / "examples/slurm/parts", model, PATH, again))
    check(again.exists(), "a task that is submitted again makes its own part")


def main():
    missing = [tool for tool in SLURM if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None]
    if missing or os.geteuid() != 0:
        leave_out(f"needs {', '.join(missing)}" if missing else "only root can make a network namespace")
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        subprocess.run([sys.executable, ROOT / "tests/data/make.py", "sample", scratch / "model"], check=True, stdout=subprocess.DEVNULL)
        check(wfs("cp", scratch / "model", PATH, scratch / "whole.gguf").returncode == 0, "the copy of one wfs cp")
        inside = subprocess.run([ROOT / "tests/interop/slurm_cluster", scratch / "slurm", sys.executable, __file__, "inside", directory],
                                check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180)
        print(inside.stdout, end="")
        check(inside.returncode == 0, f"the jobs end well: {inside.stderr[-800:]}")
        for name in "copy.gguf", "again.gguf":
            same = (scratch / name).exists() and (scratch / name).read_bytes() == (scratch / "whole.gguf").read_bytes()
            check(same, f"{name} has the bytes of one wfs cp")
            check(not (scratch / f"{name}.wfs-parts").exists(), "no parts are left")
    done()


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        in_cluster(pathlib.Path(sys.argv[2]))
        done()
    main()
