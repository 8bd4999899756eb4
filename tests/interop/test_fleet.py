"""nginx between clients and `wfs serve`, with the configurations of examples/nginx/: as a cache, and with TLS."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.request

from interop import ROOT, cat, check, done, serving, skip

SCRIPT = ROOT / "scripts" / "fleet"


def check_costs(scratch):
    """Each byte leaves the origin once, whatever the number of clients, which check what they get."""
    results = scratch / "results.json"
    subprocess.run([sys.executable, SCRIPT, "--clients", "8", "--json", results], check=True, stdout=subprocess.DEVNULL)
    result = json.loads(results.read_text())
    count, size = result["bytes"], result["size"]
    check(count["no cache"] == 8 * size, "without a cache each client costs the file")
    check(count["nginx cache"] == size, "behind nginx the file leaves the origin once")
    check(size <= count.get("copied image", size) < size + 4096, "an image is copied once, with its configuration")


def check_tls(scratch):
    loader = importlib.machinery.SourceFileLoader("fleet", str(SCRIPT))
    fleet = importlib.util.module_from_spec(importlib.util.spec_from_loader("fleet", loader))
    loader.exec_module(fleet)
    model, key, certificate = (scratch / name for name in ("m", "key", "certificate"))
    subprocess.run([sys.executable, ROOT / "tests" / "data" / "make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
    port = fleet.free_port()
    with serving(f"acme/Tiny={model}") as address, fleet.run_nginx(scratch / "tls", "wfs-tls.conf", port, {
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl", "127.0.0.1:8090": address.removeprefix("http://"),
            "/etc/nginx/models.example.crt": str(certificate), "/etc/nginx/models.example.key": str(key)}):
        trust = ssl.create_default_context(cafile=certificate)
        page = urllib.request.urlopen(f"https://127.0.0.1:{port}/api/models/acme/Tiny-GGUF/tree/main?limit=3", context=trust)
        link = re.match("<(.*)>", page.headers["Link"])[1]
        check(link.startswith(f"https://127.0.0.1:{port}/"), "links have the proxy's scheme and address")
        check(len(json.load(urllib.request.urlopen(link, context=trust))) == 3, "the next page is there")
        os.environ |= {"HF_ENDPOINT": f"https://127.0.0.1:{port}", "HF_HOME": str(scratch / "home"), "REQUESTS_CA_BUNDLE": str(certificate),
                       "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        from huggingface_hub import hf_hub_download
        downloaded = pathlib.Path(hf_hub_download("acme/Tiny-GGUF", "Tiny-Q8_0.gguf"))
        check(downloaded.read_bytes() == cat(model, "gguf/model-Q8_0.gguf"), "huggingface_hub downloads by https")


def main():
    if shutil.which("nginx") is None:
        skip("nginx is missing")
    os.environ["no_proxy"] = "127.0.0.1"
    os.environ.pop("HF_TOKEN", None)
    with tempfile.TemporaryDirectory() as directory:
        scratch = pathlib.Path(directory)
        scratch.chmod(0o755)
        check_costs(scratch)
        check_tls(scratch)
    done()


main()
