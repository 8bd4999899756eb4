"""Kills `wfs pack` at each of its system calls that change something, or lets that call fail: pack_faults.py WFS SOURCE SCRATCH KINDS...

A kind is CALL:FAULT, such as fsync:EIO, or, as strace knows system calls by a pattern, /^unlink:kill. It is tried at the call's first, second ... execution, in `pack`, `--replace`,
`--remove` and `--prune`, until a command does not reach it. After each fault

- every file of the source is whole in its place, in the archive, or in both, and what other sources of the archive have is whole;
- a command whose call failed ended with status 1 and a message, or did all that it should;
- the same command, without a fault, ends with status 0, and the archive then shows all files, links, modes and folders' times.

SOURCE is that of `pack.py small`, SCRATCH a new folder. Needs strace.
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys

WFS, SOURCE, SCRATCH, KINDS = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3], sys.argv[4:]
MOST = 500  # of calls of a kind in one command
MISSING_LIBRARY = 127  # the loader's status: the fault was its own
COMMANDS = {
    "new": ["pack", "archive", "source"],
    "pack": ["pack", "archive", "source"],
    "replace": ["pack", "--replace", "archive", "source"],
    "remove": ["pack", "--remove", "source", "archive"],
    "prune": ["pack", "--prune", "archive"],
}
OTHERS = {"new": [], "pack": ["other"], "replace": ["other"], "remove": ["other", "gone"], "prune": ["other"]}


def states(top):
    """What an archive keeps of each entry; of a link its target."""
    found = {}
    top = os.fsencode(top)
    for at, folders, files in os.walk(top):
        for path in [at] + [os.path.join(at, name) for name in folders + files]:
            status = os.lstat(path)
            if os.path.islink(path):
                contents = os.readlink(path)
            elif os.path.isdir(path):
                contents = None
            else:
                with open(path, "rb") as file:
                    contents = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(path, top)] = (contents, status.st_mode, status.st_mtime_ns)
    return found


def wfs(*words, fails=False):
    result = subprocess.run([WFS, *words], capture_output=True)
    assert fails or result.returncode == 0, (words, result.stderr.decode(errors="replace"))
    return result


def names():
    """The sources of the archive. A new archive may lack its files, and then has none."""
    if not os.path.exists("archive/index.json"):
        return []
    with open("archive/index.json", encoding="utf-8") as index:
        return [manifest["annotations"]["org.opencontainers.image.ref.name"] for manifest in json.load(index)["manifests"]]


def is_pruned(command):
    """The empty config; a manifest, a list and a pack of each source; and, in `prune`, a pack that was rewritten."""
    blobs = [os.path.join("archive/blobs/sha256", name) for name in os.listdir("archive/blobs/sha256")]
    return len(blobs) == 1 + 3 * len(names()) + (command == "prune") and sum(map(os.path.getsize, blobs)) < 60000


def restored():
    """What the archive has of each source. One process restores them all: starting it takes most of the time."""
    shutil.rmtree("copy", ignore_errors=True)
    found = names()
    if found:
        wfs("cp", "-r", "archive", "files", "copy")
    return {name: states(f"copy/{name}") for name in found}


def make(command, prepared):
    """The state before a command, which is made once."""
    if not os.path.exists(prepared):
        os.mkdir(prepared)
        shutil.copytree(SOURCE, f"{prepared}/source", symlinks=True)
        os.chmod(f"{prepared}/source", 0o755)
        for n in ("other", "gone"):
            os.mkdir(f"{prepared}/{n}")
            with open(f"{prepared}/{n}/file", "w") as file:
                file.write(n * 1000)
        if command != "new":
            wfs("pack", f"{prepared}/archive", f"{prepared}/other")
        if command == "prune":  # most of a pack is not needed any more
            shutil.copy(f"{prepared}/source/noise", f"{prepared}/gone")
            with open(f"{prepared}/gone/more", "wb") as file:
                file.write(os.urandom(100000))
        if command in ("remove", "prune"):
            wfs("pack", f"{prepared}/archive", f"{prepared}/gone")
            wfs("pack", f"{prepared}/archive", f"{prepared}/source")
        if command == "prune":
            wfs("pack", "--remove", "gone", f"{prepared}/archive")
            open(f"{prepared}/archive/.index.json.host-0123456789abcdef", "w").close()
    for name in ("archive", "source"):
        shutil.rmtree(name, ignore_errors=True)
        if os.path.exists(f"{prepared}/{name}"):
            shutil.copytree(f"{prepared}/{name}", name, symlinks=True)


def run(command, call, fault, n):
    """Returns the result, whether the fault was reached, and whether it met the message, too: strace counts the calls of each thread."""
    if os.path.exists("trace"):
        os.remove("trace")
    what = "signal=KILL" if fault == "kill" else f"error={fault}"
    result = subprocess.run(["strace", "-f", "-o", "trace", "-e", f"trace={call}", "-e", f"inject={call}:{what}:when={n}", WFS, *COMMANDS[command]],
                            capture_output=True)
    assert os.path.exists("trace"), result.stderr.decode()
    with open("trace", errors="replace") as trace:
        text = trace.read()
    is_silenced = any("write(2," in line and "INJECTED" in line for line in text.splitlines())
    return result, "INJECTED" in text or "+++ killed by SIGKILL" in text, is_silenced


def is_done(command):
    return {
        "new": "source" in names(),
        "pack": "source" in names(),
        "replace": not os.path.exists("source"),
        "remove": "source" not in names(),
        "prune": is_pruned("prune"),
    }[command]


def check(command, result, fault, is_silenced, wanted, others):
    """Checks what is there right after a fault. Of a fault that met the message, too, only the status tells."""
    left, sources = states("source"), restored()
    copied = sources.pop("source", {})
    assert all(others[name] == found for name, found in sources.items())
    assert command == "new" or "other" in sources
    for path, (contents, *_) in wanted.items():
        places = [place[path][0] for place in (left, copied) if path in place]
        assert contents in places and set(places) == {contents}, (path, places)
    if fault == "kill":
        return
    said = result.stderr.decode(errors="replace")
    if result.returncode == MISSING_LIBRARY:
        return
    assert result.returncode in (0, 1), (result.returncode, said)
    assert result.returncode == 0 or is_silenced or any(line.startswith("wfs: ") for line in said.splitlines()), said
    assert result.returncode == 1 or is_done(command), said


def go_on(command, wanted, others):
    """The same command, which ends what the killed one began."""
    again = wfs(*COMMANDS[command], fails=True)
    assert again.returncode == 0 or command in ("replace", "remove") and is_done(command), again.stderr.decode(errors="replace")
    assert is_done(command)
    wfs("pack", "--prune", "archive")
    assert sorted(os.listdir("archive")) == ["blobs", "index.json", "oci-layout"], os.listdir("archive")
    assert is_pruned(command), os.listdir("archive/blobs/sha256")
    assert restored() == others | ({} if command == "remove" else {"source": wanted})


n_tried = 0
os.makedirs(SCRATCH)
os.chdir(SCRATCH)
for kind in KINDS:
    call, fault = kind.rsplit(":", 1)
    for command in COMMANDS:
        make(command, command + "-prepared")
        wanted, others = states("source"), {name: states(f"{command}-prepared/{name}") for name in OTHERS[command]}
        for n in range(1, MOST):
            make(command, command + "-prepared")
            result, is_reached, is_silenced = run(command, call, fault, n)
            if not is_reached:
                break
            n_tried += 1
            try:
                check(command, result, fault, is_silenced, wanted, others)
                go_on(command, wanted, others)
            except AssertionError as error:
                raise AssertionError(f"{kind} {n} of {command}: {error}") from error
print(n_tried, "faults")
