# The viewer of `wfs serve`: pages about tensors, compared with numpy; hostile names, sizes and values.

load lib
load serve.bash

setup() {
    need_numpy
    need curl
    OUT=$BATS_TEST_TMPDIR
    SERVER=
}

teardown() {
    [ -z "$SERVER" ] || kill "$SERVER"
}

# write_file FILE: safetensors with the arrays and headers that the script on standard input puts into `tensors`; `holes`
# are shapes of zeros that the disk does not store.
write_file() {
    "$PYTHON" - "$1" <<END
import json, struct, sys
import numpy
tensors, holes = {}, {}
$(cat)
header, at, data = {}, 0, b""
for name, array in tensors.items():
    array = array.astype("<f4")
    header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
    at, data = at + array.nbytes, data + array.tobytes()
for name, shape in holes.items():
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * shape[0] * shape[1]]}
    at += 4 * shape[0] * shape[1]
text = json.dumps(header).encode()
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + data)
    file.truncate(8 + len(text) + at)
END
}

# page TARGET: the page in $OUT/page.html, whose text is in $OUT/page.
page() {
    get -o "$OUT/page.html" "$URL$1"
    "$PYTHON" - "$OUT/page.html" >"$OUT/page" <<'END'
import html.parser, sys
class Page(html.parser.HTMLParser):
    skips = False
    def handle_starttag(self, tag, attributes):
        self.skips = tag in ("style", "script")
        if tag in ("tr", "p", "h1", "h2", "title"):
            print()
    def handle_endtag(self, tag):
        self.skips = False
    def handle_data(self, data):
        if not self.skips:
            print(data.replace("\n", " "), end=" ")
Page().feed(open(sys.argv[1]).read())
print()
END
}

@test "a tensor's page has its name as title, and numpy's statistics" {
    write_file "$OUT/m.safetensors" <<'END'
tensors["layers.0.weight"] = numpy.random.default_rng(5).standard_normal((60, 200))
END
    offer "acme/M=$OUT/m.safetensors"
    page "/view/acme/M?tensor=layers.0.weight"
    grep -qF '<title>layers.0.weight</title>' "$OUT/page.html"
    grep -qF 'Of all 12000 values.' "$OUT/page"
    "$PYTHON" - "$OUT/page" <<'END'
import re, sys
import numpy
array = numpy.random.default_rng(5).standard_normal((60, 200)).astype("<f4").astype("f8")
text = open(sys.argv[1]).read()
for name, value in {"mean": array.mean(), "standard deviation": array.std(), "least": array.min(), "largest": array.max()}.items():
    shown = float(re.search(rf"^{name}  ?(\S+)", text, re.M)[1])
    assert abs(shown - value) <= 6e-6 * max(1, abs(value)), (name, shown, value)
END
    # The histogram's bars have the heights of numpy's, and the cells of the map numpy's root mean squares.
    "$PYTHON" - "$OUT/page.html" <<'END'
import re, sys
import numpy
array = numpy.random.default_rng(5).standard_normal((60, 200)).astype("<f4").astype("f8")
source = open(sys.argv[1]).read()
heights = [float(height) for height in re.findall(r'<rect class="bar"[^>]* height="([0-9.]+)"', source)]
reach = 6 * array.std()
bins, _ = numpy.histogram(array, 60, (max(array.min(), array.mean() - reach), min(array.max(), array.mean() + reach)))
assert numpy.abs(numpy.array(heights) - 176 * bins / bins.max()).max() < 0.2
cells = numpy.full((60, 64), -1)
for colour, path in re.findall(r'<path class="h(\d+)" d="([^"]*)"', source):
    for x, y, length in re.findall(r"M(\d+) (\d+)\.5h(\d+)", path):
        cells[int(y), int(x):int(x) + int(length)] = int(colour)
edges = [i * 200 // 64 for i in range(65)]
wanted = numpy.array([[numpy.sqrt((row[a:b] ** 2).mean()) for a, b in zip(edges, edges[1:])] for row in array])
colours = numpy.minimum(wanted / wanted.max() * 14, 13).astype(int)
assert (cells == colours).mean() > 0.999, (cells != colours).sum()
END
}

@test "a tensor's page has the error of Q8_0 that numpy computes" {
    write_file "$OUT/m.safetensors" <<'END'
tensors["w"] = numpy.random.default_rng(6).standard_normal((16, 256))
END
    offer "acme/M=$OUT/m.safetensors"
    page "/view/acme/M?tensor=w"
    "$PYTHON" - "$OUT/page" <<'END'
import re, sys
import numpy
blocks = numpy.random.default_rng(6).standard_normal((16, 256)).astype("<f4").reshape(-1, 32)
scales = (numpy.abs(blocks).max(axis=1, keepdims=True) / numpy.float32(127)).astype("f4")
decoded = numpy.round(blocks / scales) * scales.astype("f2").astype("f4")
error = 100 * numpy.sqrt(((decoded - blocks) ** 2).sum() / (blocks**2).sum())
shown = float(re.search(r"^Q8_0 +8.5 +(\S+) %", open(sys.argv[1]).read(), re.M)[1])
assert abs(shown - error) < 0.005, (shown, error)
END
    page "/view/acme/M" # whose tensors have links to their pages
    grep -qF 'href="?tensor=w"' "$OUT/page.html"
}

@test "hostile names and values are shown as text" {
    write_file "$OUT/m.safetensors" <<'END'
tensors["<script>alert(1)</script>"] = numpy.ones((3, 4))
tensors["a\"b'&c/%2e"] = numpy.array([[1, numpy.nan], [numpy.inf, -2]])
tensors["x" * 5000] = numpy.arange(24).reshape(2, 3, 4)
tensors[".."] = numpy.full((8, 8), numpy.nan)
tensors["new\nline + plus"] = numpy.zeros((0, 7))
tensors["scalar"] = numpy.array(3.5)
tensors["huge"], tensors["#0"] = numpy.full((70, 70), 3e38), numpy.full((2, 2), 7.5)
END
    offer "acme/M=$OUT/m.safetensors"
    page /view/acme/M
    run ! grep -qi '<script>alert' "$OUT/page.html"
    [ "$(grep -c 'href="?tensor=' "$OUT/page.html")" -eq 8 ]
    sed -n 's/.*href="\(?tensor=[^"]*\)".*/\1/p' "$OUT/page.html" >"$OUT/links"
    while read -r link; do
        page "/view/acme/M$link"
        run ! grep -qE '<script>alert|[" >]-?(nan|inf)[" <.:]' "$OUT/page.html"
        head -n 3 "$OUT/page" | grep -qE '<script>|a"b|xxx|^\.\. *$|new.x0aline|scalar|huge|#0'
    done <"$OUT/links"
    page '/view/acme/M?tensor=a%22b%27%26c%252F%25252e'
    grep -qE '^NaN +1' "$OUT/page"
    grep -qE '^infinite +1' "$OUT/page"
    grep -qE '^least +-2' "$OUT/page"
    page '/view/acme/M?tensor=%230' # a name, not a number
    grep -qE '^mean +7.5' "$OUT/page"
    [ "$(status_of "$URL/view/acme/M?tensor=no")" = 404 ]
    [ "$(status_of "$URL/view/acme/M?tensor=/99")" = 404 ]
    [ "$(status_of "$URL/view/acme/no")" = 404 ]
    [ "$(status_of "$URL/view/acme/M?diff=acme/no")" = 404 ]
    [ "$(status_of "$URL/view/acme/M?tensor=huge&matrix=18446744073709551615")" = 200 ]
}

@test "the page of a tensor of a terabyte reads a sample" {
    write_file "$OUT/m.safetensors" <<'END'
holes["w"] = (2**18, 2**20)
END
    [ "$(stat -c %b "$OUT/m.safetensors")" -lt 1000 ] || skip "this file system has no holes"
    offer "acme/M=$OUT/m.safetensors"
    page "/view/acme/M?tensor=w"
    grep -qE '^zeros +[1-9]' "$OUT/page"
    grep -qF '262144 rows by 1048576 columns' "$OUT/page"
}

@test "a page allows its own style and script, and names no other host" {
    "$PYTHON" "$HERE/../data/make.py" sample "$OUT/tiny"
    offer "acme/Tiny=$OUT/tiny"
    for target in / /acme/Tiny/ /view/acme/Tiny "/view/acme/Tiny?tensor=model.norm.weight" "/view/acme/Tiny?diff=acme/Tiny"; do
        get -D "$OUT/headers" -o "$OUT/page.html" "$URL$target"
        "$PYTHON" - "$OUT/page.html" "$(header Content-Security-Policy)" "$URL" <<'END'
import base64, hashlib, re, sys
source, policy = open(sys.argv[1]).read(), sys.argv[2]
assert "unsafe" not in policy and policy.startswith("default-src 'none'"), policy
for tag in "style", "script":
    for text in re.findall(rf"<{tag}>(.*?)</{tag}>", source, re.S):
        assert base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in policy, tag
assert not re.search(r' (style|on\w+)="', source)
assert not set(re.findall(r"https?://[^/\s<\"]+", source)) - {sys.argv[3]}
END
    done
    page /view/acme/Tiny
    grep -qF 'LlamaForCausalLM' "$OUT/page"
    grep -qF "HF_ENDPOINT=$URL vllm serve acme/Tiny-FP8_DYNAMIC" "$OUT/page"
    page '/view/acme/Tiny?q=q_proj'
    [ "$(grep -c 'href="?tensor=' "$OUT/page.html")" -eq "$(grep -c 'q_proj' <(grep -o 'href="?tensor=[^"]*' "$OUT/page.html"))" ]
    # Programs that list the index of a model meet no link to the viewer.
    page /acme/Tiny/
    run ! grep -qE '<a [^>]*view/' "$OUT/page.html"
}

@test "a tokenizer's page has its tokens, their types and the chat template" {
    "$PYTHON" "$HERE/../data/make.py" sample "$OUT/tiny"
    "$PYTHON" - "$OUT/tiny/tokenizer_config.json" <<'END'
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": "<b>{{ messages }}</b>\nsecond"}))
END
    write_file "$OUT/m.safetensors" <<'END'
tensors["w"] = numpy.ones(3)
END
    offer "acme/Tiny=$OUT/tiny" "acme/M=$OUT/m.safetensors"
    page /view/acme/Tiny
    grep -qF 'href="?tokenizer"' "$OUT/page.html"
    page '/view/acme/Tiny?tokenizer'
    grep -qE '^<b>\{\{ messages \}\}</b> second|</b>.*second' "$OUT/page"
    run ! grep -q '<b>' "$OUT/page.html"
    "$PYTHON" - "$OUT/page.html" "$OUT/tiny/tokenizer.json" <<'END'
import html, json, re, sys
rows = re.findall(r'<tr><td class="n">(\d+)</td><td><code>(.*?)</code></td><td>(.*?)</td>', open(sys.argv[1]).read())
tokenizer = json.load(open(sys.argv[2]))
tokens = {index: text for text, index in tokenizer["model"]["vocab"].items()}
special = {token["id"] for token in tokenizer["added_tokens"] if token["special"]}
tokens.update({token["id"]: token["content"] for token in tokenizer["added_tokens"]})
assert len(rows) == min(500, len(tokens)) > 100
for index, text, kind in rows:
    assert html.unescape(text) == tokens[int(index)], (index, text)
    assert kind == ("control" if int(index) in special else "normal"), (index, kind)
END
    page '/view/acme/Tiny?tokenizer&q=%3Cno+such+token%3E&from=18446744073709551615'
    grep -qF 'value="&#60;no such token&#62;"' "$OUT/page.html"
    run ! grep -q '<code>' "$OUT/page.html"
    [ "$(status_of "$URL/view/acme/M?tokenizer")" = 404 ]
}

@test "two models are compared by layer" {
    write_file "$OUT/a.safetensors" <<'END'
for layer in 0, 1:
    tensors[f"layers.{layer}.w"] = numpy.ones((4, 50))
tensors["only"], tensors["other"] = numpy.ones(3), numpy.ones(5)
END
    write_file "$OUT/b.safetensors" <<'END'
tensors["layers.0.w"], tensors["layers.1.w"] = numpy.ones((4, 50)), numpy.full((4, 50), 1.25)
tensors["other"] = numpy.ones((5, 1))
END
    offer "acme/A=$OUT/a.safetensors" "acme/B=$OUT/b.safetensors"
    page "/view/acme/A?diff=acme/B"
    grep -qE '^0 +1 +0 %' "$OUT/page"
    grep -qE '^1 +1 +25 %' "$OUT/page"
    grep -qF '1 tensor is left out: the other model has none of that name' "$OUT/page"
    grep -qF '1 tensor is left out: they have other shapes there' "$OUT/page"
    page /view/acme/A
    grep -qF 'href="?diff=acme/B"' "$OUT/page.html"
}
