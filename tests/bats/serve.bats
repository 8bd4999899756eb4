# Files over HTTP: the hub's protocol, ranges and conditions, who may connect. Needs neither root nor /dev/fuse.

load lib
load serve.bash

setup_file() {
    load lib
    "$PYTHON" "$HERE/../data/make.py" sample "$BATS_FILE_TMPDIR/tiny-llama"
}

setup() {
    need_serve
    need_numpy
    need curl jq
    MODEL=$BATS_FILE_TMPDIR/tiny-llama
    OUT=$BATS_TEST_TMPDIR
    SERVER=
}

# The models of sources, without those for engines.
models() {
    get "$URL/api/models" | jq -r '.[].id' | grep -E '/(tiny-llama|Tiny|Broken)(-GGUF)?$' | tr '\n' ' '
}

teardown() {
    [ -z "$SERVER" ] || kill "$SERVER"
}

@test "a source is two models, whose files are those of hf/ and gguf/" {
    offer "acme/Tiny=$MODEL"
    [ "$(models)" = "acme/Tiny acme/Tiny-GGUF " ]
    for name in $("$WFS" ls "$MODEL" hf); do
        same get "$URL/acme/Tiny/resolve/main/$name" == "$WFS" cat "$MODEL" "hf/$name"
    done
    for type in F16 Q8_0 Q4_K_M; do
        same get "$URL/acme/Tiny-GGUF/resolve/main/Tiny-$type.gguf" == "$WFS" cat "$MODEL" "gguf/model-$type.gguf"
    done
    kill -TERM "$SERVER"
    server_ends_with 0
    [ ! -s "$SERVER_LOG" ]
}

@test "a model without a name is local/DIRECTORY, or ORG/NAME of the hub cache" {
    snapshot=$OUT/hub/models--acme--Tiny/snapshots/0123456789abcdef0123456789abcdef01234567
    mkdir -p "$snapshot"
    cp "$MODEL"/* "$snapshot"
    offer "$MODEL" "$snapshot"
    [ "$(models)" = "local/tiny-llama local/tiny-llama-GGUF acme/Tiny acme/Tiny-GGUF " ]
    fails 1 "acme/Tiny: two sources have this name" "$WFS" serve --listen 127.0.0.1:0 "acme/Tiny=$MODEL" "$snapshot"
    fails 2 "'acme/a/b' is no name of a model" "$WFS" serve --listen 127.0.0.1:0 "acme/a/b=$MODEL"
    fails 2 "'acme/..' is no name of a model" "$WFS" serve --listen 127.0.0.1:0 "acme/..=$MODEL"
    for owner in view api v2 healthz metrics; do
        fails 2 "$owner/Tiny: the server has pages of its own below /$owner/" "$WFS" serve --listen 127.0.0.1:0 "$owner/Tiny=$MODEL"
    done
    mv "$OUT/hub/models--acme--Tiny" "$OUT/hub/models--view--Tiny"
    fails 1 "view/Tiny: the server has pages of its own" "$WFS" serve --listen 127.0.0.1:0 "$OUT/hub/models--view--Tiny"
}

@test "the server listens before it has planned a model, whose errors come when it is asked for" {
    cp -r "$MODEL" "$OUT/broken"
    chmod u+w "$OUT/broken/tokenizer.json"
    printf '{\n"model": ' >"$OUT/broken/tokenizer.json"
    offer "acme/Tiny=$MODEL" "acme/Broken=$OUT/broken"
    [ "$(models)" = "acme/Tiny acme/Tiny-GGUF acme/Broken acme/Broken-GGUF " ]
    get "$URL/" | grep -q 'href="acme/Tiny-GGUF/"'
    get "$URL/acme/Tiny-GGUF/" | grep -q 'href="Tiny-Q4_K_M.gguf"'
    [ ! -s "$SERVER_LOG" ] # names alone plan nothing
    curl --silent --output "$OUT/body" "$URL/acme/Broken-GGUF/resolve/main/Broken-Q8_0.gguf"
    [[ $(jq -r .error "$OUT/body") == "acme/Broken-GGUF has no file 'Broken-Q8_0.gguf': "*"tokenizer.json: line 2: "* ]]
    curl --silent --dump-header "$OUT/headers" --output "$OUT/body" "$URL/api/models/acme/Broken-GGUF"
    [ "$(header X-Error-Code)" = RepoNotFound ]
    [[ $(jq -r .error "$OUT/body") == "acme/Broken-GGUF has no files: "*"tokenizer.json: line 2: "* ]]
    [ "$(grep -c "^wfs: acme/Broken: model.gguf and gguf/ are left out: tokenizer.json: line 2: " "$SERVER_LOG")" -eq 1 ]
    [ "$(models)" = "acme/Tiny acme/Tiny-GGUF acme/Broken " ]
    run ! grep -q Broken-GGUF <(get "$URL/")
    get "$URL/api/models/acme/Broken" | jq -e '.siblings | length > 2'
    get --output /dev/null "$URL/acme/Tiny-GGUF/resolve/main/Tiny-Q8_0.gguf"
    fails 1 "none: No such file" "$WFS" serve --listen 127.0.0.1:0 "acme/Tiny=$MODEL" "acme/None=$OUT/none"
}

@test "vocabularies that do not fit into memory together are made again for who reads them" {
    for name in one two; do
        cp -r "$MODEL" "$OUT/$name"
        chmod -R u+w "$OUT/$name"
        "$PYTHON" - "$OUT/$name" <<'END'
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
tokenizer = json.loads((folder / "tokenizer.json").read_text())
merges = tokenizer["model"]["merges"]
merges += [f"{folder.name}{i} " + 100_000 * "a" for i in range(90)]
(folder / "tokenizer.json").write_text(json.dumps(tokenizer))
END
    done
    offer "acme/one=$OUT/one" "acme/two=$OUT/two"
    for name in one two one; do
        same get "$URL/acme/$name-GGUF/resolve/main/$name-Q8_0.gguf" == "$WFS" cat "$OUT/$name" gguf/model-Q8_0.gguf
    done
}

@test "patterns choose the files of both models" {
    offer --show '*-Q4_K_?.gguf' --show '*.json' --show=*-Q8_0.gguf "acme/Tiny=$MODEL"
    names() { get "$URL/api/models/acme/$1" | jq -r '.siblings[].rfilename' | tr '\n' ' '; }
    [ "$(names Tiny)" = "config.json generation_config.json tokenizer.json tokenizer_config.json " ]
    [ "$(names Tiny-GGUF)" = "Tiny-Q4_K_M.gguf Tiny-Q4_K_S.gguf Tiny-Q8_0.gguf " ]
    [ "$(status_of "$URL/acme/Tiny/resolve/main/README.md")" = 404 ]
    fails 2 "an argument must follow --show" "$WFS" serve --show
}

@test "a model says its commit, exact sizes and the identities of its files" {
    offer "acme/Tiny=$MODEL"
    get "$URL/api/models/acme/Tiny-GGUF?blobs=true" >"$OUT/model.json"
    commit=$(jq -r .sha "$OUT/model.json")
    [[ $commit =~ ^[0-9a-f]{40}$ ]]
    get "$URL/api/models/acme/Tiny-GGUF/revision/$commit" | cmp - "$OUT/model.json"
    get "$URL/api/models/acme/Tiny-GGUF/revision/HEAD" | cmp - "$OUT/model.json" # as @huggingface/hub asks
    # llama.cpp's -hf takes the commit from here, and then lists the files.
    [ "$(get "$URL/api/models/acme/Tiny-GGUF/refs" | jq -c '[.branches[] | .name, .targetCommit]')" = "[\"main\",\"$commit\"]" ]
    size=$("$WFS" cat "$MODEL" gguf/model-Q4_K_M.gguf | wc -c)
    [ "$(jq '.siblings[] | select(.rfilename == "Tiny-Q4_K_M.gguf") | .size' "$OUT/model.json")" -eq "$size" ]
    get --head "$URL/acme/Tiny-GGUF/resolve/$commit/Tiny-Q4_K_M.gguf" >"$OUT/headers"
    [ "$(header Content-Length)" -eq "$size" ]
    [ "$(header X-Repo-Commit)" = "$commit" ]
    [ "$(header ETag)" = "$(jq '.siblings[] | select(.rfilename == "Tiny-Q4_K_M.gguf") | .blobId' "$OUT/model.json")" ]
    [ "$(jq -r '[.siblings[].blobId] | unique | length' "$OUT/model.json")" -eq "$(jq '.siblings | length' "$OUT/model.json")" ]
}

@test "the pages of a tree have every file once" {
    offer "acme/Tiny=$MODEL"
    next="$URL/api/models/acme/Tiny-GGUF/tree/main?recursive=true&limit=7"
    while [ -n "$next" ]; do
        get --dump-header "$OUT/headers" "$next" >"$OUT/page"
        jq -r '.[].path' "$OUT/page" >>"$OUT/names"
        next=$(header Link | sed -n 's/^<\(.*\)>; rel="next"$/\1/p')
        [ -z "$next" ] || [ "$(jq length "$OUT/page")" -eq 7 ] # files that cannot be made leave no gaps
    done
    diff <(sort "$OUT/names") <("$WFS" ls "$MODEL" gguf | sed -n 's/^model-/Tiny-/p' | sort)
    [ "$(wc -l <"$OUT/names")" -gt 7 ]
}

@test "ranges and conditions" {
    offer "acme/Tiny=$MODEL"
    file=$URL/acme/Tiny-GGUF/resolve/main/Tiny-Q8_0.gguf
    "$WFS" cat "$MODEL" gguf/model-Q8_0.gguf >"$OUT/whole"
    size=$(stat -c %s "$OUT/whole")
    same get --dump-header "$OUT/headers" --range 1000-70001 "$file" == eval 'tail -c +1001 "$OUT/whole" | head -c 69002'
    [ "$(header Content-Range)" = "bytes 1000-70001/$size" ]
    same get --range -10 "$file" == tail -c 10 "$OUT/whole"
    etag=$(get --head "$file" | sed -n 's/^etag: \(.*\)\r$/\1/Ip')
    status() { curl --silent --output /dev/null --write-out '%{http_code}' "$@" "$file"; }
    [ "$(status --range 0-9)" = 206 ]
    [ "$(status --range "$size-")" = 416 ]
    [ "$(status --header "If-None-Match: $etag")" = 304 ]
    [ "$(status --header "If-None-Match: \"other\"")" = 200 ]
    [ "$(status --header "If-Match: \"other\"")" = 412 ]
    modified=$(get --head "$file" | sed -n 's/^last-modified: \(.*\)\r$/\1/Ip')
    [ "$(status --header "If-Modified-Since: $modified")" = 304 ]
    [ "$(status --header "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT")" = 200 ]
    [ "$(status --header "If-None-Match: \"other\"" --header "If-Modified-Since: $modified")" = 200 ]
    get --head --range 1000-70001 "$file" >"$OUT/headers"
    [[ $(head -n 1 "$OUT/headers") == *" 200 "* ]]
    [ "$(header Content-Length)" = "$size" ]
    [ "$(status --range 0-9 --header "If-Range: $etag")" = 206 ]
    [ "$(status --range 0-9 --header 'If-Range: "other"')" = 200 ]
    [ "$(status --request POST --data x)" = 405 ]
}

@test "errors are those of the hub, and no path leaves the model" {
    offer "acme/Tiny=$MODEL"
    code() { curl --silent --path-as-is --dump-header "$OUT/headers" --output "$OUT/body" "$URL/$1"; header X-Error-Code; }
    [ "$(code acme/Tiny/resolve/main/none.json)" = EntryNotFound ]
    [ "$(jq -r .error "$OUT/body")" = "acme/Tiny has no file 'none.json'" ]
    [ "$(code acme/Tiny/resolve/dev/config.json)" = RevisionNotFound ]
    [ "$(code acme/None/resolve/main/config.json)" = RepoNotFound ]
    [ "$(code api/models/acme/None)" = RepoNotFound ]
    [ "$(code acme/Tiny/resolve/main/../../../../../../etc/passwd)" = EntryNotFound ]
    [ "$(code acme/Tiny/resolve/main/..%2f..%2f..%2f..%2fetc%2fpasswd)" = EntryNotFound ]
    [ "$(code acme/Tiny/resolve/main/config.json%00.txt)" = EntryNotFound ]
}

@test "with a token, only clients that send it are answered" {
    echo "  secret-token  " >"$OUT/token"
    offer --token-file "$OUT/token" "acme/Tiny=$MODEL"
    file=$URL/acme/Tiny/resolve/main/config.json
    status() { curl --silent --output /dev/null --write-out '%{http_code}' "$@"; }
    [ "$(status "$file")" = 401 ]
    [ "$(status --header 'Authorization: Bearer secret-toke' "$file")" = 401 ]
    [ "$(status --header 'Authorization: Bearer secret-token' "$file")" = 200 ]
    [ "$(status "$URL/")" = 401 ]
    fails 1 "is open to other machines; add --token-file=FILE" "$WFS" serve --listen 0.0.0.0:0 "$MODEL"
    fails 1 "is no address to listen at" "$WFS" serve --listen 8090 "$MODEL"
    for port in 99999 65536 18446744073709551617 -1 80x x ""; do
        fails 1 "cannot listen at '127.0.0.1:$port': the port is not a number from 0 to 65535" "$WFS" serve --listen "127.0.0.1:$port" "$MODEL"
    done
    fails 1 "No such file or directory" "$WFS" serve --token-file "$OUT/none" "$MODEL"
}

@test "libmicrohttpd is loaded by servers alone, and its package named where it is missing" {
    LD_DEBUG=files "$WFS" ls "$MODEL" >"$OUT/loaded" 2>&1
    grep -q libzip "$OUT/loaded"
    run ! grep -q libmicrohttpd "$OUT/loaded"
    mkdir "$OUT/libraries"
    touch "$OUT/libraries/libmicrohttpd.so.12"
    LD_LIBRARY_PATH=$OUT/libraries fails 1 "the HTTP server needs libmicrohttpd (on Debian the package libmicrohttpd12): " "$WFS" serve --listen 127.0.0.1:0 "$MODEL"
}

@test "systemd's socket is used instead of an address of its own" {
    "$PYTHON" - "$WFS" "acme/Tiny=$MODEL" <<'END'
import json, os, signal, socket, sys, urllib.request
listening = socket.create_server(("127.0.0.1", 0))
child = os.fork()
if child == 0:
    os.dup2(listening.fileno(), 3)
    os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
    os.execv(sys.argv[1], ["wfs", "serve", sys.argv[2]])
with urllib.request.urlopen("http://127.0.0.1:%d/api/models" % listening.getsockname()[1]) as answer:
    assert json.load(answer)[0]["id"] == "acme/Tiny"
os.kill(child, signal.SIGTERM)
assert os.waitpid(child, 0)[1] == 0
END
}

@test "200 connections that send nothing hold up nobody" {
    offer "acme/Tiny=$MODEL"
    "$PYTHON" - "$URL" <<'END'
import socket, sys, urllib.request
host, port = sys.argv[1].removeprefix("http://").split(":")
idle = [socket.create_connection((host, int(port))) for _ in range(200)]
for connection in idle:
    connection.send(b"GET /acme/Tiny/resolve/main/config.json HTTP/1.1\r\nHost: localhost\r\n")
with urllib.request.urlopen(sys.argv[1] + "/acme/Tiny/resolve/main/config.json") as answer:
    assert b"hidden_size" in answer.read()
END
}

@test "a file whose source changes fails, and the others work" {
    cp -r "$MODEL" "$OUT/model"
    offer "acme/Tiny=$OUT/model"
    get "$URL/acme/Tiny/resolve/main/config.json" >"$OUT/config.json"
    chmod u+w "$OUT/model/tokenizer_config.json"
    echo '{}' >"$OUT/model/tokenizer_config.json"
    changed() { ! curl --silent --fail --output /dev/null "$URL/acme/Tiny/resolve/main/tokenizer_config.json"; }
    await changed
    get "$URL/acme/Tiny/resolve/main/config.json" | cmp - "$OUT/config.json"
}

@test "after a write to a source, no answer has the identity from before" {
    cp -r "$MODEL" "$OUT/model"
    chmod u+w "$OUT/model/model.safetensors"
    offer "acme/Tiny=$OUT/model"
    "$PYTHON" - "$URL" "$OUT/model/model.safetensors" <<'END'
import http.client, os, sys
connection = http.client.HTTPConnection(sys.argv[1].removeprefix("http://"))
def answer(method, headers={}):
    connection.request(method, "/acme/Tiny/resolve/main/model.safetensors", headers=headers)
    response = connection.getresponse()
    return response.status, response.headers["ETag"], len(response.read())
status, etag, length = answer("GET")
assert status == 200 and length == os.stat(sys.argv[2]).st_size
file = os.open(sys.argv[2], os.O_WRONLY)
os.pwrite(file, b"new", length - 100)
for method, headers in ("HEAD", {}), ("GET", {"If-None-Match": etag}), ("GET", {}):
    assert answer(method, headers)[0] == 500
END
}

@test "the page names every model, and metrics count" {
    offer "acme/Tiny=$MODEL"
    get "$URL/" >"$OUT/page.html"
    grep -q '<h2><a href="acme/Tiny-GGUF/">acme/Tiny-GGUF</a></h2>' "$OUT/page.html"
    get "$URL/acme/Tiny/resolve/main/config.json" >"$OUT/config.json"
    config=$(stat -c %s "$OUT/config.json")
    get "$URL/metrics" >"$OUT/metrics"
    grep -qx "wfs_build_info{version=\"[0-9.]*\",build=\"[0-9a-f]\{16\}\"} 1" "$OUT/metrics"
    grep -qx "wfs_file_bytes_total $config" "$OUT/metrics"
    grep -qx "wfs_computed_bytes_total 0" "$OUT/metrics"
    computed=$(get "$URL/acme/Tiny-GGUF/resolve/main/Tiny-Q8_0.gguf" | wc -c)
    get "$URL/metrics" >"$OUT/metrics"
    grep -qx "wfs_file_bytes_total $((config + computed))" "$OUT/metrics"
    grep -qx "wfs_computed_bytes_total $computed" "$OUT/metrics"
}

@test "-v prints what is served, and a line for each request with its time, its client and the bytes of its body" {
    offer -v "acme/Tiny=$MODEL"
    file=acme/Tiny/resolve/main/config.json
    get --head "$URL/$file" >"$OUT/headers"
    get --range 1-9 "$URL/$file" >"$OUT/part"
    get "$URL/$file" >"$OUT/whole"
    curl --silent --output "$OUT/none" "$URL/none?x=y"
    cat >"$OUT/expected" <<END
wfs: HEAD /$file: 200, 0 bytes
wfs: GET /$file: 206, 9 bytes
wfs: GET /$file: 200, $(wc -c <"$OUT/whole") bytes
wfs: GET /none: 404, $(wc -c <"$OUT/none") bytes
END
    has_lines() { [ "$(grep -c "^wfs: " "$SERVER_LOG")" -eq 4 ]; }
    await has_lines
    grep -q "^serves acme/Tiny acme/Tiny-GGUF, and [0-9]* for engines such as acme/Tiny-" "$SERVER_LOG"
    for command in "llama-server -hf acme/Tiny-GGUF:Q4_K_M" "mlx_lm.server --model acme/Tiny-MLX-" "vllm serve acme/Tiny-FP8_DYNAMIC"; do
        grep -q "^  HF_ENDPOINT=$URL $command" "$SERVER_LOG"
    done
    sed -n 's/^wfs: [0-9-]*T[0-9:]*Z 127.0.0.1 \(.*\), [0-9.]* s$/wfs: \1/p' "$SERVER_LOG" | sort >"$OUT/log" # threads may end their requests in another order
    diff "$OUT/log" <(sort "$OUT/expected")
}

@test "nothing offers a program a model whose class it cannot know, or has no weights for" {
    mkdir -p "$OUT/plain"
    cp "$MODEL"/* "$OUT/plain/"
    sed -i 's/LlamaForCausalLM/FooForCausalLM/; s/"model_type": "llama"/"model_type": "foo"/' "$OUT/plain/config.json"
    offer -v "acme/Plain=$OUT/plain"
    grep -q "^  HF_ENDPOINT=$URL hf download acme/Plain$" "$SERVER_LOG"
    get "$URL/acme/Plain-GGUF/" >"$OUT/page"
    grep -q "hf download acme/Plain-GGUF" "$OUT/page"
    get "$URL/view/acme/Plain" >"$OUT/view"
    [ -z "$(grep -h "llama-server\|ollama\|vllm\|sglang\|mlx_lm\|for engines such" "$SERVER_LOG" "$OUT/page" "$OUT/view")" ]
    kill -TERM "$SERVER"
    server_ends_with 0
    echo '[]' >"$OUT/plain/config.json"
    offer -v "acme/Plain=$OUT/plain"
    [ "$(grep -c "HF_ENDPOINT=" "$SERVER_LOG")" -eq 1 ]
    kill -TERM "$SERVER"
    server_ends_with 0
    cp "$MODEL/config.json" "$OUT/plain/"
    sed -i 's/"model_type": "llama"/"model_type": "foo"/' "$OUT/plain/config.json"
    offer -v "acme/Plain=$OUT/plain" "acme/Tiny=$MODEL" # of the first, mlx-lm has no class
    grep -q "^  HF_ENDPOINT=$URL vllm serve acme/Plain-" "$SERVER_LOG"
    grep -q "^  HF_ENDPOINT=$URL mlx_lm.server --model acme/Tiny-" "$SERVER_LOG"
    [ "$(grep -c "HF_ENDPOINT=" "$SERVER_LOG")" -eq "$(sed -n 's/.*HF_ENDPOINT=[^ ]* \([^ ]*\) .*/\1/p' "$SERVER_LOG" | sort -u | wc -l)" ]
}

@test "without a token, only names of loopback are answered, so that no page can rebind its own" {
    local path=acme/Tiny/resolve/main/config.json port
    offer "acme/Tiny=$MODEL"
    port=${URL##*:}
    for name in "localhost:$port" "LOCALHOST" "127.0.0.1" "[::1]:$port"; do
        [ "$(status_of -H "Host: $name" "$URL/$path")" = 200 ]
    done
    for name in "evil.example:$port" "localhost.evil.example" "192.168.1.2" "0.0.0.0:$port"; do
        [ "$(status_of -H "Host: $name" "$URL/$path")" = 421 ]
        [ "$(status_of -H "Host: $name" "$URL/metrics")" = 421 ]
    done
    [ "$(status_of --request-target "http://evil.example/$path" "$URL/")" = 421 ]
    [[ $(curl --silent -H "Host: evil.example" "$URL/$path") == *"--host=NAME"* ]]
    kill -TERM "$SERVER"
    server_ends_with 0
    offer --host=models.lan,b "acme/Tiny=$MODEL"
    [ "$(status_of -H "Host: models.lan:80" "$URL/$path")" = 200 ]
    [ "$(status_of -H "Host: evil.example" "$URL/$path")" = 421 ]
    kill -TERM "$SERVER"
    server_ends_with 0
    echo token >"$OUT/token"
    offer --token-file "$OUT/token" "acme/Tiny=$MODEL"
    [ "$(status_of -H "Host: models.lan" -H "Authorization: Bearer token" "$URL/$path")" = 200 ]
    [ "$(get -H "Host: 10.0.0.7:8090" "$URL/healthz")" = ok ] # probes have no token and no name
}

@test "odd and hostile requests get an answer, and the server goes on" {
    offer --public "acme/Tiny=$MODEL"
    "$PYTHON" - "$URL" <<'END'
import socket, sys
host, port = sys.argv[1].removeprefix("http://").split(":")
FILE, LARGE = "/acme/Tiny/resolve/main/config.json", "/acme/Tiny-GGUF/resolve/main/Tiny-Q4_K_M.gguf"

def request(target=FILE, *headers, method="GET", version="1.1"):
    return "".join(f"{line}\r\n" for line in (f"{method} {target} HTTP/{version}", "Host: a", *headers, "")).encode("latin-1")

def exchange(data):
    with socket.create_connection((host, int(port))) as connection:
        try:
            connection.sendall(data)
            return connection.makefile("rb").read()
        except ConnectionError:  # refused before its end
            return b""

def status(*arguments, **options):
    answer = exchange(request(*arguments, "Connection: close", **options))
    return int(answer.split()[1]) if answer else 0

def is_refused(*arguments, **options):  # by the library, whose versions differ in the status; or the connection is reset
    return status(*arguments, **options) in (0, *range(400, 502))

def body(*headers):
    return exchange(request(*headers, "Connection: close")).partition(b"\r\n\r\n")[2]

whole = body(FILE)
assert b"hidden_size" in whole
assert exchange(request(version="1.0")).endswith(whole)
assert exchange(request(FILE, "Connection: close", method="HEAD")).endswith(b"\r\n\r\n"), "no body for HEAD"
assert exchange(request("/none", "Connection: close", method="HEAD")).endswith(b"\r\n\r\n"), "no body for HEAD"
pipeline = request(LARGE, "Range: bytes=0-99") * 3 + request(method="HEAD") + request(FILE, "Connection: close")
answers = exchange(pipeline)
assert (answers.count(b"HTTP/1.1 206"), answers.count(b"HTTP/1.1 200"), answers.count(b"hidden_size")) == (3, 2, 1)
for method in ("PUT", "DELETE", "OPTIONS"):
    assert status(FILE, method=method) == 405, method
for method in ("TRACE", "CONNECT", "get", "A" * 5000):
    assert is_refused(FILE, method=method), method
assert is_refused("/" + "a" * 200000)
assert is_refused(FILE, "X: " + "a" * 40000)
assert is_refused(FILE, *(f"X{i}: y" for i in range(3000)))
assert exchange(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n").split()[1] == b"400", "no Host"
for twice in (("Content-Length: 0", "Content-Length: 0"), ("Content-Length: 1", "Content-Length: 50"), ("Host: b",),
              ("Content-Length: 4", "Transfer-Encoding: chunked"), ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked")):
    answer = exchange(request(FILE, *twice) + b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.split()[1] == b"400", twice
# libmicrohttpd 1.0 refuses an encoding by itself, with 400.
for odd, expected in (("Transfer-Encoding: gzip", b"400 501"), ("Transfer-Encoding: gzip, chunked", b"400 501"),
                      ("Transfer-Encoding: identity", b"400 501"), ("Content-Length : 4", b"400"), ("X\t: 1", b"400")):
    answer = exchange(request(FILE, odd) + b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.split()[1] in expected.split(), (odd, answer)
assert exchange(request(FILE, "Transfer-Encoding: chunked", version="1.0")).split()[1] == b"400"
assert is_refused(FILE + "\0b")
assert exchange(request(FILE + "?" + "&".join(f"p{i}={i}" for i in range(500)))).split()[1] == b"414"
assert exchange(request(FILE + "?" + "&" * 5000)).split()[1] == b"414"
answer = exchange(request(FILE, "Transfer-Encoding: chunked", "Connection: close", method="POST") + b"4\r\nbody\r\n0\r\n\r\n")
assert answer.split()[1] == b"405", "a body in chunks is passed over"
assert body("http://other:1" + FILE) == whole, "an absolute target, as proxies get it"
assert status("HTTP://a?x=y") == 200
assert b"<http://b:8/api" in exchange(request("http://b:8/api/models/acme/Tiny-GGUF/tree/main?limit=3", "Connection: close"))
for path in ("%2e%2e/config.json", "%252e%252e/config.json", "..%5cconfig.json", "./config.json", "config.json%00", "%", "\xff"):
    assert is_refused("/acme/Tiny/resolve/main/" + path), path
for one_range in ("bytes=0-0,5-6", "bytes=0 -5", "bytes=5-1", "bytes=0-0" * 1000, "lines=0-1"):
    assert body(FILE, "Range: " + one_range) == whole, one_range
assert body(FILE, "Range: bytes=-18446744073709551615") == whole
assert body(FILE, "Range: bytes=1-18446744073709551615") == whole[1:]
assert status(FILE, "Range: bytes=18446744073709551615-") == 416
assert b"evil" not in exchange(request("/api/models/acme/Tiny-GGUF/tree/main?limit=3", "Connection: close").replace(b"Host: a", b"Host: x>, <http://evil"))
assert b"<evil>" not in exchange(request("/", "Connection: close").replace(b"Host: a", b"Host: <evil>"))
assert b"<https://a/" in exchange(request("/api/models/acme/Tiny-GGUF/tree/main?limit=3", "X-Forwarded-Proto: https", "Connection: close"))
END
    kill -TERM "$SERVER"
    server_ends_with 0
}

@test "SIGTERM ends the server while clients read nothing of what they asked for" {
    offer "acme/Tiny=$MODEL"
    "$PYTHON" - "$URL" "$SERVER" <<'END'
import os, signal, socket, sys
host, port = sys.argv[1].removeprefix("http://").split(":")
slow = []
for _ in range(64):
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect((host, int(port)))
    connection.sendall(b"GET /acme/Tiny-GGUF/resolve/main/Tiny-F32.gguf HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert connection.recv(1) == b"H"
    slow.append(connection)
idle = socket.create_connection((host, int(port)))
os.kill(int(sys.argv[2]), signal.SIGTERM)
try:
    assert idle.recv(1) == b"", "the connection ends"
except ConnectionError:
    pass
END
    server_ends_with 0
}

@test "a server reads what another has computed and kept" {
    unset CACHE_DIRECTORY
    export XDG_CACHE_HOME=$OUT/cache
    cp -r "$MODEL" "$OUT/model"
    touch -d 2020-01-01 "$OUT"/model/* # bytes of an input that was written in this minute are not kept
    for made in computed kept; do
        offer -o keep=whole,cache-size=1GB "acme/Tiny=$OUT/model"
        same get "$URL/acme/Tiny-GGUF/resolve/main/Tiny-Q4_K_M.gguf" == "$WFS" cat "$OUT/model" gguf/model-Q4_K_M.gguf
        get "$URL/metrics" | grep -x "wfs_${made}_bytes_total $(get "$URL/metrics" | sed -n 's/^wfs_file_bytes_total //p')"
        kill -TERM "$SERVER"
        server_ends_with 0
    done
}
