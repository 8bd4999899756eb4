"""OpenSSF Model Signing signs and verifies what wfs shows, and in-toto's own library accepts what wfs attests."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from google.protobuf import json_format
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement

from interop import ROOT, check, done, mounted, wfs

MODEL = ROOT / "tests" / "data" / "gguf" / "models" / "llama-tiny"


def model_signing(*arguments):
    command = [sys.executable, "-m", "model_signing", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def make_keys(folder):
    private, public = folder / "key.pem", folder / "key.pub"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", private], check=True)
    subprocess.run(["openssl", "ec", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
    return private, public


def check_signatures(folder, shown, what):
    """A signature of a directory of a mount holds for the mount and for a copy, until a byte changes."""
    private, public = make_keys(folder)
    signature, copy = folder / "model.sig", folder / "copy"

    def verify(directory):
        return model_signing("verify", "key", "--public_key", public, "--signature", signature, directory)

    result = model_signing("sign", "key", "--private_key", private, "--signature", signature, shown)
    check(result.returncode == 0, f"{what}: signed: {result.stderr}")
    check(verify(shown).returncode == 0, f"{what}: the mount is verified")
    shutil.copytree(shown, copy)
    check(verify(copy).returncode == 0, f"{what}: a copy is verified")
    changed = max(copy.iterdir(), key=lambda path: path.stat().st_size)
    changed.chmod(0o600)
    with open(changed, "r+b") as file:
        file.seek(changed.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    check(verify(copy).returncode != 0, f"{what}: a changed copy is refused")
    shutil.rmtree(copy)


def check_statement(folder):
    """A statement is one for in-toto, and a signature of it that of its bytes."""
    result = wfs("attest", MODEL, "model.gguf", "gguf/model-Q4_K_M.gguf")
    check(result.returncode == 0, f"attest: {result.stderr.decode()}")
    message = json_format.ParseDict(json.loads(result.stdout), statement_pb2.Statement())
    statement = Statement.copy_from_pb(message)
    statement.validate()
    names = [subject.name for subject in statement.pb.subject]
    check(sorted(names) == ["gguf/model-Q4_K_M.gguf", "model.gguf"], f"subjects: {names}")
    statements = folder / "statements"
    statements.mkdir()
    (statements / "model.intoto.json").write_bytes(result.stdout)
    check_signatures(folder, statements, "statement")


def main():
    with mounted(MODEL) as point, tempfile.TemporaryDirectory() as name:
        check_signatures(pathlib.Path(name), point / "hf", "hf/")
        check_signatures(pathlib.Path(name), point / "gguf", "gguf/")
    with tempfile.TemporaryDirectory() as name:
        check_statement(pathlib.Path(name))
    done()


if __name__ == "__main__":
    main()
