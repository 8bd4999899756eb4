# `wfs serve` with a source on a server that stalls: it holds up nobody, and ends with the server.

load lib
load serve.bash

FAULT="path=/web/model/model.safetensors&kind=stall&after=0"

setup_file() {
    load lib
    mkdir -p "$BATS_FILE_TMPDIR/root/web"
    "$PYTHON" "$HERE/../data/make.py" sample "$BATS_FILE_TMPDIR/root/web/model"
}

setup() {
    need_serve
    need_numpy
    need curl
    "$WFS" ls https:// 2>&1 | grep -q 'built without libcurl' && skip "built without remote sources"
    OUT=$BATS_TEST_TMPDIR
    LOCAL=$BATS_FILE_TMPDIR/root/web/model
    "$PYTHON" "$HERE/../remote/server.py" "$OUT/ports" "$BATS_FILE_TMPDIR/root" 3>&- >"$OUT/http.log" 2>&1 &
    HTTP=$!
    await test -s "$OUT/ports"
    read -r PORT _ <"$OUT/ports"
    unset HF_TOKEN HF_ENDPOINT HUGGING_FACE_HUB_TOKEN HF_HUB_OFFLINE TRANSFORMERS_OFFLINE CACHE_DIRECTORY
    export XDG_CACHE_HOME=$OUT/cache HOME=$OUT no_proxy=127.0.0.1
    offer "acme/Near=$LOCAL" "acme/Far=http://127.0.0.1:$PORT/web/model/"
    # Plans the file while the source answers.
    curl --silent --fail --head --output /dev/null "$URL/acme/Far-GGUF/resolve/main/Far-Q8_0.gguf"
}

eval "remaining_$(declare -f teardown)"
teardown() {
    kill "$HTTP" 2>/dev/null || true
    wait "$HTTP" 2>/dev/null || true
    remaining_teardown
}

# Runs a Python program with functions for the server, the control port and connections.
client() {
    "$PYTHON" - "$URL" "http://127.0.0.1:$PORT/control/" "$FAULT" "$@" 3>&- <<END
import concurrent.futures, json, socket, subprocess, sys, time, urllib.request
url, control, fault = sys.argv[1:4]
FAR = "/acme/Far-GGUF/resolve/main/Far-Q8_0.gguf"
NEAR = "/acme/Near-GGUF/resolve/main/Near-Q8_0.gguf"
N_READERS, FIRST, STEP, LENGTH = 64, 1000000, 10000, 5000

def ask(path):
    with urllib.request.urlopen(path) as answer:
        return answer.read()

def connect(request):
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    connection.sendall(request.encode())
    return connection

def has_stalled():
    return json.loads(ask(control + "log"))["stalled"] > 0

def stalled_reader(i):
    """A reader of a range of its own, which has the header of its answer but no body."""
    first = FIRST + STEP * i
    connection = connect(f"GET {FAR} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                         f"Range: bytes={first}-{first + LENGTH - 1}\r\n\r\n")
    stream = connection.makefile("rb")
    assert stream.readline().startswith(b"HTTP/1.1 206"), "an answer"
    while stream.readline() != b"\r\n":
        pass
    return stream

def stall():
    ask(control + "fault?" + fault)
    idle = [connect(f"GET {NEAR} HTTP/1.1\r\nHost: localhost\r\n") for _ in range(200)]
    readers = [stalled_reader(i) for i in range(N_READERS)]
    while not has_stalled():
        time.sleep(0.05)
    return idle, readers

$(cat)
END
}

@test "64 readers are answered beside 200 open requests and 64 readers of a source that stalls" {
    client "$WFS" "$LOCAL" <<'END'
whole = subprocess.run([sys.argv[4], "cat", sys.argv[5], "gguf/model-Q8_0.gguf"], check=True, capture_output=True).stdout
idle, readers = stall()
with concurrent.futures.ThreadPoolExecutor(N_READERS) as pool:
    assert all(got == whole for got in pool.map(ask, [url + NEAR] * N_READERS)), "others are answered"
assert ask(url + "/api/models/acme/Far-GGUF/tree/main"), "the stalled model is listed"
ask(control + "reset")
for i, reader in enumerate(readers):
    first = FIRST + STEP * i
    assert reader.read() == whole[first:first + LENGTH], f"reader {i} gets its bytes at last"
END
    kill -TERM "$SERVER"
    server_ends_with 0
}

@test "SIGTERM ends the server while readers wait" {
    client "$SERVER" <<'END'
import os, signal
idle, readers = stall()
os.kill(int(sys.argv[4]), signal.SIGTERM)
for reader in readers:
    try:
        assert len(reader.read()) < LENGTH, "the reader's connection ends"
    except ConnectionError:
        pass
END
    server_ends_with 0
}

@test "SIGTERM ends the server while a digest waits for its source" {
    client "$SERVER" <<'END'
import os, signal
ask(control + "fault?" + fault)
manifest = connect("GET /v2/acme/Far-GGUF/manifests/Q8_0 HTTP/1.0\r\n\r\n")
while not has_stalled():
    time.sleep(0.05)
os.kill(int(sys.argv[4]), signal.SIGTERM)
assert b" 200 " not in manifest.makefile("rb").readline(), "no manifest"
END
    server_ends_with 0
}
