"""Parts made by workers on two NFS clients, in User Mode Linux: the file is that of one wfs cp, and a reader never sees another one."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from interop import ROOT, WFS, check, done, leave_out, wfs

PATH = "gguf/model-Q8_0.gguf"
PARTS = 8
TOOLS = "linux.uml", "modprobe", "rpc.nfsd", "mount.nfs", "rpcbind", "ip"


def poll(path, stop, seen):
    """Reads the file again and again by its name, as a consumer that waits for it."""
    while not stop.is_set():
        try:
            seen.add(hashlib.sha256(path.read_bytes()).hexdigest())
        except FileNotFoundError:
            pass
        time.sleep(0.05)


def on_clients(version, a, b, server, model, wanted):
    """Runs in the machine: workers on both clients at once, each part by two of them, and a reader on one."""
    stop, seen = threading.Event(), set()
    name = f"copy-{version[0]}.gguf"
    reader = threading.Thread(target=poll, args=(pathlib.Path(b, name), stop, seen))
    reader.start()
    command = lambda i, place: [WFS, "cp", "--part", f"{i}/{PARTS}", model, PATH, f"{place}/{name}"]
    workers = [subprocess.Popen(command(i, place)) for i in range(1, PARTS + 1) for place in ((a, b), (b, a))[i % 2][:1 + (i < 3)]]
    statuses = [worker.wait() for worker in workers]
    again = [subprocess.run(command(i, place), check=False).returncode for i, place in ((1, a), (PARTS, b))]
    time.sleep(0.2)
    stop.set()
    reader.join()
    whole = hashlib.sha256(pathlib.Path(server, name).read_bytes()).hexdigest()
    print(f"{version}: {'right' if whole == wanted and seen == {wanted} and not any(statuses + again) else 'wrong'} {statuses} {again} "
          f"{os.listdir(server)}")


def main():
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    if missing or os.geteuid() != 0:
        leave_out(f"needs {', '.join(missing)}" if missing else "needs root")
    os.environ["PATH"] = path
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        model, whole, command = scratch / "model", scratch / "whole.gguf", scratch / "command"
        subprocess.run([sys.executable, ROOT / "tests/data/make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
        check(wfs("cp", model, PATH, whole).returncode == 0, "the copy of one wfs cp")
        wanted = hashlib.sha256(whole.read_bytes()).hexdigest()
        command.write_text(f'#!/bin/sh\nexport WFS="{pathlib.Path(WFS).resolve()}"\n'
                           f'exec "{sys.executable}" "{pathlib.Path(__file__).resolve()}" "$@" "{model}" {wanted}\n')
        command.chmod(0o755)
        result = subprocess.run([ROOT / "tests/interop/nfs_machine", command], check=False, capture_output=True, text=True)
        for version in "3,nolock", "4.2":
            said = next((line for line in result.stdout.splitlines() if line.startswith(f"{version}: right")), None)
            check(said is not None and ".wfs-parts" not in said, f"NFS {version}: {result.stdout[-600:]}{result.stderr[-300:]}")
    done()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        on_clients(*sys.argv[1:])
    else:
        main()
