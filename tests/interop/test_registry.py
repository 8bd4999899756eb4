"""A client of OCI registries, skopeo, copies models from `wfs serve`."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from interop import ROOT, cat, check, done, serving, skip


def skopeo(*arguments):
    return subprocess.run(["skopeo", *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def main():
    if shutil.which("skopeo") is None:
        skip("skopeo is missing")
    with tempfile.TemporaryDirectory() as scratch:
        model, copy, token = (pathlib.Path(scratch) / name for name in ("tiny-llama", "copy", "token"))
        subprocess.run([sys.executable, ROOT / "tests" / "data" / "make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
        token.write_text("secret")
        os.environ["XDG_CACHE_HOME"] = os.path.join(scratch, "cache")
        with serving("--token-file", token, f"acme/Tiny={model}") as address:
            reference = f"docker://{address.removeprefix('http://')}/acme/tiny-gguf:Q4_K_M"
            skopeo("copy", "--src-tls-verify=false", "--src-creds=any:secret", reference, f"dir:{copy}")
            tags = skopeo("list-tags", "--tls-verify=false", "--creds=any:secret", reference.removesuffix(":Q4_K_M"))
        manifest = json.loads((copy / "manifest.json").read_text())
        wanted = cat(model, "gguf/model-Q4_K_M.gguf")
        layer = manifest["layers"][0]
        check(layer["digest"] == "sha256:" + hashlib.sha256(wanted).hexdigest(), "the manifest has the file's digest")
        check((copy / layer["digest"].removeprefix("sha256:")).read_bytes() == wanted, "skopeo copies a computed file")
        check({"Q4_K_M", "Q8_0", "F16"} <= set(json.loads(tags)["Tags"]), "skopeo lists the tags")
    done()


main()
