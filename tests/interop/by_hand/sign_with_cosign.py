"""cosign signs what wfs attests and files of a mount, and verifies them until a byte changes.

By hand, because no distribution of Debian has cosign, and compiling it takes minutes:

    go install github.com/sigstore/cosign/v2/cmd/cosign@v2.4.1
    WFS=build/wfs PATH=$PATH:~/go/bin python3 tests/interop/by_hand/sign_with_cosign.py

Keys are files, and nothing is written to a public log.
"""
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from interop import ROOT, check, done, mounted, skip, wfs  # noqa: E402

MODEL = ROOT / "tests" / "data" / "gguf" / "models" / "llama-tiny"
GGUF = "gguf/model-Q4_K_M.gguf"


def cosign(folder, *arguments):
    environment = {**os.environ, "COSIGN_PASSWORD": ""}
    return subprocess.run(["cosign", *map(str, arguments)], check=False, capture_output=True, text=True, cwd=folder, env=environment)


def changed_copy(folder, path):
    copy = folder / f"changed-{path.name}"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    copy.write_bytes(data)
    return copy


def check_blob(folder, path, what):
    """A signature of a file holds for it, and for no other bytes."""
    signature = folder / "blob.sig"
    result = cosign(folder, "sign-blob", "--yes", "--tlog-upload=false", "--key", "cosign.key", "--output-signature", signature, path)
    check(result.returncode == 0, f"{what}: signed: {result.stderr}")
    verify = ["verify-blob", "--insecure-ignore-tlog=true", "--key", "cosign.pub", "--signature", signature]
    result = cosign(folder, *verify, path)
    check(result.returncode == 0, f"{what}: verified: {result.stderr}")
    check(cosign(folder, *verify, changed_copy(folder, path)).returncode != 0, f"{what}: a changed copy is refused")


def check_attestation(folder, path, statement):
    """cosign's own statement of a file says how wfs made it, and has the digest that wfs attests."""
    predicate, envelope = folder / "predicate.json", folder / "attestation.json"
    predicate.write_text(json.dumps(statement["predicate"]))
    result = cosign(folder, "attest-blob", "--yes", "--tlog-upload=false", "--key", "cosign.key", "--type", "slsaprovenance1", "--predicate",
                    predicate, "--output-signature", envelope, path)  # fmt: skip
    if not check(result.returncode == 0, f"attested: {result.stderr}"):
        return
    made = json.loads(base64.b64decode(json.loads(envelope.read_text())["payload"]))
    for key in "buildType", "externalParameters", "resolvedDependencies":
        definitions = [each["predicate"]["buildDefinition"][key] for each in (made, statement)]
        check(definitions[0] == definitions[1], f"cosign's statement has the predicate's {key}")
    check(made["subject"][0]["digest"] == statement["subject"][0]["digest"], "cosign finds the digest that wfs attests")
    verify = ["verify-blob-attestation", "--insecure-ignore-tlog=true", "--key", "cosign.pub", "--type", "slsaprovenance1", "--signature", envelope]
    result = cosign(folder, *verify, path)
    check(result.returncode == 0, f"attestation verified: {result.stderr}")
    check(cosign(folder, *verify, changed_copy(folder, path)).returncode != 0, "attestation: a changed copy is refused")


def main():
    if shutil.which("cosign") is None:
        skip("cosign is missing")
    with tempfile.TemporaryDirectory() as name, mounted(MODEL) as point:
        folder = pathlib.Path(name)
        result = cosign(folder, "generate-key-pair")
        check(result.returncode == 0, f"keys: {result.stderr}")
        attested = wfs("attest", MODEL, GGUF)
        check(attested.returncode == 0, f"attest: {attested.stderr.decode()}")
        path = folder / "model.intoto.json"
        path.write_bytes(attested.stdout)
        check_blob(folder, path, "statement")
        check_blob(folder, point / GGUF, "file of a mount")
        check_attestation(folder, point / GGUF, json.loads(attested.stdout))
    done()


if __name__ == "__main__":
    main()
