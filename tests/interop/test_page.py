"""Browsers show the page of `wfs serve`: chromium, and w3m for text."""
import html
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

from interop import ROOT, cat, check, done, serving, skip

NAME = 'a "b" & <i>%23#?.txt'  # in a model, as users name files


def dumped(address):
    """The document as chromium has it after parsing."""
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server", f"--user-data-dir={profile}",
                               "--dump-dom", address], check=True, capture_output=True, text=True, timeout=120).stdout


def main():
    for program in ("chromium", "w3m"):
        if shutil.which(program) is None:
            skip(f"{program} is missing")
    with tempfile.TemporaryDirectory() as scratch:
        model = pathlib.Path(scratch) / "tiny-llama"
        subprocess.run([sys.executable, ROOT / "tests" / "data" / "make.py", "sample", model], check=True, stdout=subprocess.DEVNULL)
        (model / NAME).write_text("odd\n")
        with serving(f"acme/Tiny={model}") as address:
            page = dumped(address + "/acme/Tiny/") + dumped(address + "/acme/Tiny-GGUF/")
            links = {html.unescape(text): html.unescape(link) for link, text in re.findall('<a href="([^"]*)">([^<]*)</a>', page)}
            check("<i>" not in page and NAME in links, "names are shown as they are")
            check(urllib.request.urlopen(f"{address}/acme/Tiny/{links[NAME]}").read() == b"odd\n", "the link of an odd name leads to the file")
            q8 = urllib.request.urlopen(f"{address}/acme/Tiny-GGUF/{links['Tiny-Q8_0.gguf']}").read()
            check(q8 == cat(model, "gguf/model-Q8_0.gguf"), "a link leads to a computed file")
            text = subprocess.run(["w3m", "-dump", "-cols", "120", address + "/acme/Tiny-GGUF/"], check=True, capture_output=True, text=True).stdout
            check(f"HF_ENDPOINT={address} llama-server -hf acme/Tiny-GGUF:Q4_K_M" in text, "w3m shows the command")
            check(re.search(r"^Tiny-Q8_0\.gguf +2\.0 MB$", text, re.M), "w3m shows files and sizes")
            viewer = address + "/view/acme/Tiny"
            check('<th class="s">name</th>' in dumped(viewer), "chromium runs the script that sorts tables, which the policy allows")
            tensor = dumped(viewer + "?tensor=model.layers.0.mlp.up_proj.weight")
            check("<title>model.layers.0.mlp.up_proj.weight</title>" in tensor and tensor.count("<svg") == 2, "chromium shows a tensor's pictures")
            text = subprocess.run(["w3m", "-dump", "-cols", "120", viewer + "?tensor=model.layers.0.mlp.up_proj.weight"], check=True, capture_output=True, text=True).stdout
            check(re.search(r"^ *shape +768 .+ 256$", text, re.M) and re.search(r"^ *standard deviation +0\.0", text, re.M), "w3m shows a tensor's facts")
    done()


main()
