"""Programs of OCI copy archives of `wfs pack`: skopeo, and oras if it is installed. The copies are read by wfs and by the decoder of docs/archive.md."""
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from interop import ROOT, WFS, check, done, skip, wfs


def run(*arguments):
    return subprocess.run(list(map(str, arguments)), check=True, capture_output=True, text=True).stdout


def hashes(top):
    return {str(path.relative_to(top)): hashlib.sha256(path.read_bytes()).hexdigest() for path in top.rglob("*") if path.is_file()}


def check_copy(copied, sources, scratch, what):
    result = wfs("verify", copied)
    check(result.returncode == 0, f"wfs verifies {what}: {result.stderr.decode()}")
    decoded = scratch / f"decoded-{copied.name}"
    run(sys.executable, scratch / "decoder", copied, decoded)
    check(all(hashes(decoded / source.name) == hashes(source) for source in sources), f"the decoder restores {what}")
    for blob in (copied / "blobs" / "sha256").iterdir():
        check(hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name, f"{what}: blob {blob.name} has its name")


def check_skopeo(archive, sources, scratch):
    copied = scratch / "skopeo"
    for source in sources:
        run("skopeo", "copy", f"oci:{archive}:{source.name}", f"oci:{copied}:{source.name}")
        raw = run("skopeo", "inspect", "--raw", f"oci:{archive}:{source.name}")
        check(json.loads(raw)["artifactType"] == "application/vnd.wfs.archive.v1", f"skopeo inspects {source.name}")
    check_copy(copied, sources, scratch, "skopeo's copy")
    # a source whose packs hold what another is coded against is whole by itself
    alone = scratch / "alone"
    run("skopeo", "copy", f"oci:{archive}:{sources[-1].name}", f"oci:{alone}:{sources[-1].name}")
    check_copy(alone, sources[-1:], scratch, f"skopeo's copy of {sources[-1].name} alone")


def check_oras(archive, sources, scratch):
    copied = scratch / "oras"
    for source in sources:
        run("oras", "copy", "--from-oci-layout", f"{archive}:{source.name}", "--to-oci-layout", f"{copied}:{source.name}")
    check_copy(copied, sources, scratch, "oras's copy")


def main():
    if shutil.which("skopeo") is None:
        skip("skopeo is missing")
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        text = (ROOT / "docs" / "archive.md").read_text()
        (scratch / "decoder").write_text(re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1])
        sources = [scratch / "weights", scratch / "ladder"]
        run(sys.executable, ROOT / "tests" / "data" / "make.py", "sample", sources[0])
        sources[1].mkdir()
        run(WFS, "cp", sources[0], "gguf/model-Q4_K_M.gguf", "gguf/model-Q8_0.gguf", sources[1])
        archive = scratch / "archive"
        for source in sources:
            run(WFS, "pack", archive, source)
        check_skopeo(archive, sources, scratch)
        if shutil.which("oras") is not None:
            check_oras(archive, sources, scratch)
        else:
            print("left out: oras is not installed")
    done()


main()
