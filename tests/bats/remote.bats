# Sources on servers, all of them on loopback: tests/remote/server.py.

load lib

setup_file() {
    load lib
    ROOT=$BATS_FILE_TMPDIR/root
    mkdir -p "$ROOT/hub/org" "$ROOT/web"
    "$PYTHON" "$HERE/../data/make.py" sample "$ROOT/hub/org/tiny"
    cp -r "$ROOT/hub/org/tiny" "$ROOT/web/model"
    "$PYTHON" "$HERE/remote_inputs.py" "$ROOT/hub/org"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
        -keyout "$BATS_FILE_TMPDIR/key" -out "$BATS_FILE_TMPDIR/certificate" 2>/dev/null
    cat "$BATS_FILE_TMPDIR/certificate" "$BATS_FILE_TMPDIR/key" >"$BATS_FILE_TMPDIR/both"
}

setup() {
    need_numpy
    need openssl
    "$WFS" ls https:// 2>&1 | grep -q 'built without libcurl' && skip "built without remote sources"
    ROOT=$BATS_FILE_TMPDIR/root
    PORTS=$BATS_TEST_TMPDIR/ports
    "$PYTHON" "$HERE/../remote/server.py" "$PORTS" "$ROOT" "$BATS_FILE_TMPDIR/both" 3>&- >"$BATS_TEST_TMPDIR/http.log" 2>&1 &
    HTTP=$!
    await test -s "$PORTS"
    read -r HUB _ TLS <"$PORTS"
    unset HF_TOKEN HUGGING_FACE_HUB_TOKEN HF_HUB_OFFLINE TRANSFORMERS_OFFLINE CACHE_DIRECTORY HF_HUB_CACHE HUGGINGFACE_HUB_CACHE
    export HF_ENDPOINT=http://127.0.0.1:$HUB HF_HOME=$BATS_TEST_TMPDIR/hf XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    export HOME=$BATS_TEST_TMPDIR no_proxy=127.0.0.1
    WEB=http://127.0.0.1:$HUB/web/model/
    LOCAL=$ROOT/web/model
}

# The server ends with its test, whatever became of that; then what lib.bash does.
eval "remaining_$(declare -f teardown)"
teardown() {
    kill "$HTTP" 2>/dev/null || true
    wait "$HTTP" 2>/dev/null || true
    remaining_teardown
}

control() {
    "$PYTHON" -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end="")' \
        "http://127.0.0.1:$HUB/control/$1"
}

# counter NAME: requests, content (answers with bytes of files), bytes, weights (bytes of weights files), waves, stalled.
counter() {
    control log | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

fault() {
    control "fault?$1" >/dev/null
}

reset() {
    control reset >/dev/null
}

sum_of() {
    "$WFS" sha256 "$@" | cut -d ' ' -f 1
}

@test "a folder on a web server is what a directory is" {
    [ "$("$WFS" ls "$WEB")" = "$("$WFS" ls "$LOCAL")" ]
    for path in model.gguf gguf/model-Q4_K_M.gguf tensors/model.norm.weight/f32 config.json; do
        [ "$(sum_of "$WEB" $path)" = "$(sum_of "$LOCAL" $path)" ]
    done
    [ "$("$WFS" info "$WEB" | grep -v -e ^cached -e ^next)" = "$("$WFS" info "$LOCAL" | grep -v ^next)" ]
    "$WFS" cp "$WEB" model.gguf "$BATS_TEST_TMPDIR/model.gguf"
    same cat "$BATS_TEST_TMPDIR/model.gguf" == "$WFS" cat "$LOCAL" model.gguf
    [ "$("$WFS" sha256 "${WEB}model.safetensors" model.safetensors | cut -d ' ' -f 1)" = "$(sum_of "$LOCAL" model.safetensors)" ]
}

@test "a recipe names models on servers" {
    local recipe=$BATS_TEST_TMPDIR/recipe.yaml
    printf 'merge_method: linear\nmodels:\n- {model: hf://org/tiny, parameters: {weight: 1}}\n- {model: %s, parameters: {weight: 3}}\n' \
        "$WEB" >"$recipe"
    sed "s|hf://org/tiny|$ROOT/hub/org/tiny|; s|$WEB|$LOCAL|" "$recipe" >"$BATS_TEST_TMPDIR/local.yaml"
    local sum
    sum=$("$WFS" sha256 -o follow-links "$recipe" model.safetensors | cut -d ' ' -f 1)
    [ "$sum" = "$("$WFS" sha256 -o follow-links "$BATS_TEST_TMPDIR/local.yaml" model.safetensors | cut -d ' ' -f 1)" ]
    [ "${#sum}" -eq 64 ]
    fails 1 "a URL, which a recipe names only with -o follow-links" "$WFS" info "$recipe"
    "$WFS" info -o follow-links "$recipe" | grep -q "linear of 2 models (hf://org/tiny, $WEB)"
}

@test "info says how much of the weights is cached" {
    need jq
    local size first
    size=$(stat -c %s "$LOCAL/model.safetensors")
    first=$("$WFS" info --json "$WEB" | jq .cached)
    [ "$first" -gt 0 ]
    [ "$first" -lt "$size" ]
    "$WFS" fetch "$WEB" 2>/dev/null
    [ "$("$WFS" info --json "$WEB" | jq .cached)" -eq "$size" ]
    [[ $("$WFS" info "$WEB" | grep ^cached) =~ ^cached\ +([0-9.]+\ [KM]B)\ of\ ([0-9.]+\ [KM]B)$ ]]
    [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
    [ "$("$WFS" info --json "$LOCAL" | jq 'has("cached")')" = false ]
}

@test "each byte is fetched once, and none a second time, or offline" {
    sum_of "$WEB" model.safetensors model.gguf gguf/model-Q4_0.gguf
    [ "$(counter bytes)" -eq "$(cat "$LOCAL"/* | wc -c)" ]
    reset
    sum_of "$WEB" model.safetensors model.gguf gguf/model-Q4_0.gguf
    [ "$(counter content)" -eq 0 ]
    reset
    sum_of -o offline "$WEB" model.gguf
    [ "$(counter requests)" -eq 0 ]
    fails 1 "offline" "$WFS" ls -o "offline,cache=$BATS_TEST_TMPDIR/empty" "$WEB"
}

@test "readers of one mount share what they fetch" {
    need_fuse
    mkdir "$BATS_TEST_TMPDIR/mnt"
    serve "$WEB" "$BATS_TEST_TMPDIR/mnt"
    for reader in 1 2 3 4; do
        sha256sum "$BATS_TEST_TMPDIR/mnt/model.gguf" >"$BATS_TEST_TMPDIR/sum.$reader" 3>&- &
        READERS+=($!)
    done
    wait "${READERS[@]}"
    for reader in 1 2 3 4; do
        [ "$(cut -d ' ' -f 1 "$BATS_TEST_TMPDIR/sum.$reader")" = "$(sum_of "$LOCAL" model.gguf)" ]
    done
    grep -F " $BATS_TEST_TMPDIR/mnt fuse.wfs " /proc/self/mounts | grep -q "^$WEB "
    unmount "$BATS_TEST_TMPDIR/mnt"
    [ "$(counter bytes)" -eq "$(cat "$LOCAL"/* | wc -c)" ]
}

# cannot_be_read PATH: its attributes cannot be had now.
cannot_be_read() {
    [[ $(stat "$1" 2>&1) == *": Input/output error" ]]
}

@test "a file whose sources cannot be read gives EIO, and is there once they can" {
    local mnt=$BATS_TEST_TMPDIR/mnt
    need_fuse
    mkdir "$mnt"
    fault "path=tokenizer.json&kind=status&status=503"
    serve -o timeout=1 hf://org/tiny "$mnt"
    cannot_be_read "$mnt/model.gguf"
    cannot_be_read "$mnt/gguf/model-Q8_0.gguf"
    [ "$(stat -c %s "$mnt/config.json")" -eq "$(stat -c %s "$LOCAL/config.json")" ]
    grep -q 'files cannot be made now: tokenizer.json: nothing came' "$SERVER_LOG"
    [ -z "$(sort "$SERVER_LOG" | uniq -d)" ]
    reset
    await test -e "$mnt/model.gguf"
    await test -e "$mnt/gguf/model-Q8_0.gguf"
    [ -n "$(find "$mnt" -maxdepth 1 -name model.gguf)" ]
    [ "$(sha256sum <"$mnt/model.gguf" | cut -d ' ' -f 1)" = "$(sum_of "$ROOT/hub/org/tiny" model.gguf)" ]
    unmount "$mnt"
}

@test "exec, and a mount in the background, of a server's model" {
    need_fuse
    [ "$("$WFS" exec "$WEB" -- sha256sum {}/model.gguf | cut -d ' ' -f 1)" = "$(sum_of "$LOCAL" model.gguf)" ]
    "$WFS" mount hf://org/tiny "$BATS_TEST_TMPDIR/mnt" 3>&-
    [ "$(sha256sum <"$BATS_TEST_TMPDIR/mnt/model.safetensors" | cut -d ' ' -f 1)" = "$(sum_of "$LOCAL" model.safetensors)" ]
    "$WFS" umount "$BATS_TEST_TMPDIR/mnt"
}

@test "libcurl is loaded for remote sources alone, and its package named where it is missing" {
    LD_DEBUG=files "$WFS" ls "$LOCAL" 2>&1 | tee "$BATS_TEST_TMPDIR/local" | grep -q libzip
    run ! grep -q libcurl "$BATS_TEST_TMPDIR/local"
    LD_DEBUG=files "$WFS" ls "$WEB" 2>&1 | grep -q libcurl
    mkdir "$BATS_TEST_TMPDIR/libraries"
    touch "$BATS_TEST_TMPDIR/libraries/libcurl.so.4"
    for source in "$WEB" hf://org/tiny s3://bucket/tiny; do
        LD_LIBRARY_PATH=$BATS_TEST_TMPDIR/libraries fails 1 "$source: remote sources need libcurl (on Debian the package libcurl4): " "$WFS" ls "$source"
    done
}

@test "folders are found by lists in HTML and JSON, or by the names that models have" {
    cp -r "$LOCAL" "$ROOT/web/json.$$"
    [ "$("$WFS" ls "http://127.0.0.1:$HUB/web/json.$$/")" = "$("$WFS" ls "$LOCAL")" ]
    fault "path=/web/model/&kind=nolist"
    [ "$("$WFS" ls "$WEB")" = "$("$WFS" ls "$LOCAL")" ]
    reset
    fails 1 "write its URL with a '/' at its end" "$WFS" ls "${WEB%/}"
}

@test "the shards in a folder without a list are those that the index names" {
    cp -r "$ROOT/hub/org/sixteen" "$ROOT/web/sixteen"
    fault "path=/web/sixteen/&kind=nolist"
    [ "$(sum_of "http://127.0.0.1:$HUB/web/sixteen/" model.safetensors)" = "$(sum_of "$ROOT/web/sixteen" model.safetensors)" ]
    rm "$ROOT/web/sixteen/model-00007-of-00016.safetensors"
    fails 1 "model-00007-of-00016.safetensors: no such file at http" "$WFS" ls "http://127.0.0.1:$HUB/web/sixteen/"
}

@test "broken answers are asked for again, and give no wrong bytes" {
    local expected kind
    expected=$(sum_of "$LOCAL" model.safetensors)
    for kind in short reset "short&after=0" "status&status=503" "status&status=429&header-Retry-After=1" nolength; do
        rm -rf "$XDG_CACHE_HOME"
        reset
        fault "path=model.safetensors&times=2&kind=$kind"
        [ "$(sum_of "$WEB" model.safetensors)" = "$expected" ]
    done
    rm -rf "$XDG_CACHE_HOME"
    reset
    fault "path=model.safetensors&kind=norange"
    [ "$(sum_of "$WEB" model.safetensors)" = "$expected" ]
}

# refused FAULT MESSAGE: after the first bytes were fetched, others fail so.
refused() {
    rm -rf "$XDG_CACHE_HOME"
    reset
    "$WFS" ls "$WEB" >/dev/null
    fault "path=model.safetensors&skip=1&$1" # the first request of a run asks only whether the file has changed
    run --separate-stderr "$WFS" cat -o "timeout=${TIMEOUT:-60}" "$WEB" model.safetensors
    echo "$1: $status: $stderr"
    [ "$status" -eq 1 ]
    [[ $stderr == *"$2"* ]]
    [ "${#stderr_lines[@]}" -eq 1 ]
}

@test "answers that cannot be used are errors that say why" {
    refused "kind=wrongrange" "were asked for"
    refused "kind=wrongtotal" "has changed on the server: it has 3740345 bytes now, and had 3740344"
    refused "kind=gzip" "compressed"
    refused "kind=status&status=404" "status 404"
    refused "kind=status&status=403" "status 403: the server's reason"
    refused "kind=status&status=416" "status 416"
    refused "kind=status&status=412" "has changed on the server"
    TIMEOUT=1 refused "kind=status&status=500" "nothing came for 1 s: the server answers with status 500"
    refused "kind=loop" "redirects too often"
    refused "kind=redirect&to=file:///etc/passwd" "redirects to an address that is not valid"
    TIMEOUT=1 refused "kind=stall" "nothing came for 1 s"
}

@test "a model on the hub: its files, its commit, a revision, a file, a folder" {
    [ "$("$WFS" ls hf://org/tiny)" = "$("$WFS" ls "$LOCAL")" ]
    [ "$(sum_of hf://models/org/tiny@refs/pr/1 model.safetensors)" = "$(sum_of "$LOCAL" model.safetensors)" ]
    [ "$(sum_of hf://org/tiny/model.safetensors tensors/model.norm.weight/raw)" = "$(sum_of "$LOCAL" tensors/model.norm.weight/raw)" ]
    "$WFS" info hf://org/tiny | head -n 1 | grep -qx tiny
    reset
    sum_of hf://org/tiny@0123456789abcdef0123456789abcdef01234567 model.safetensors
    [ "$(counter requests)" -eq 0 ]
    sum_of hf://org/tiny model.safetensors
    [ "$(counter requests)" -eq 1 ]
    HF_HUB_OFFLINE=1 sum_of hf://org/tiny model.safetensors
    [ "$(counter requests)" -eq 1 ]
}

@test "redirects are remembered, and a signature that has expired is made again" {
    fault "path=/blobs/org/tiny/model.safetensors&skip=1&times=1&kind=status&status=403"
    [ "$(sum_of hf://org/tiny model.safetensors)" = "$(sum_of "$LOCAL" model.safetensors)" ]
    rm -rf "$XDG_CACHE_HOME"
    fault "path=/blobs/org/tiny/model.safetensors&skip=1&kind=status&status=403"
    fails 1 "status 403: the server's reason" "$WFS" sha256 hf://org/tiny model.safetensors
}

@test "what the hub refuses is one line that says what to do" {
    fails 1 "hf://org/none: there is no such model, or it is private and HF_TOKEN is missing" "$WFS" ls hf://org/none
    fails 1 "hf://org/tiny: no revision 'v2'" "$WFS" ls hf://org/tiny@v2
    fails 1 "hf://org/tiny: no file 'x.gguf' at 0123456789abcdef0123456789abcdef01234567" "$WFS" ls hf://org/tiny/x.gguf
    fails 1 "wfs reads models, not datasets" "$WFS" ls hf://datasets/org/tiny
    fails 1 "not hf://ORG/NAME" "$WFS" ls hf://../org/tiny
    HF_TOKEN=hf_wrong fails 1 "the token in HF_TOKEN is not valid" "$WFS" ls hf://org/tiny
    mkdir -p "$ROOT/hub/org/gated"
    cp "$LOCAL/config.json" "$ROOT/hub/org/gated/"
    { head -c 3000000 "$LOCAL/model.safetensors"; head -c 740344 /dev/urandom; } >"$ROOT/hub/org/gated/model.safetensors"
    fails 1 "hf://org/gated: gated: accept its terms on its page, then set HF_TOKEN" "$WFS" ls hf://org/gated
    HF_TOKEN=hf_other fails 1 "hf://org/gated: gated, and this token's account has no access yet" "$WFS" ls hf://org/gated
    HF_TOKEN=hf_secrettoken "$WFS" ls hf://org/gated model.safetensors
}

@test "complete files of the hub cache are read there" {
    local blobs=$HF_HOME/hub/models--org--tiny/blobs
    mkdir -p "$blobs"
    cp "$LOCAL/model.safetensors" "$blobs/$(sha256sum <"$LOCAL/model.safetensors" | cut -d ' ' -f 1)"
    [ "$(sum_of hf://org/tiny model.safetensors)" = "$(sum_of "$LOCAL" model.safetensors)" ]
    control log >"$BATS_TEST_TMPDIR/log"
    grep -q api/models "$BATS_TEST_TMPDIR/log"
    run ! grep -q 'model.safetensors.*bytes=' "$BATS_TEST_TMPDIR/log"
}

@test "a sharded model is opened in three waves of requests" {
    control "barrier?count=99" >/dev/null
    "$WFS" ls -l hf://org/sixteen model.gguf
    [ "$(counter waves)" -le 3 ]
    [ "$(counter requests)" -le 40 ]
}

@test "no secret is shown" {
    local everything=$BATS_TEST_TMPDIR/everything
    need_fuse
    mkdir "$BATS_TEST_TMPDIR/mnt"
    export HF_TOKEN=hf_secrettoken
    {
        "$WFS" info "${WEB}?sig=secretquery"
        "$WFS" cat "${WEB}?sig=secretquery" metadata.json
        "$WFS" ls "https://user:secretpassword@127.0.0.1:$HUB/web/none/?sig=secretquery" || true
        "$WFS" ls "http://127.0.0.1:$HUB/web/none/x?sig=secretquery" || true
        "$WFS" info hf://org/tiny
        "$WFS" cat hf://org/tiny metadata.json
        serve "${WEB}?sig=secretquery" "$BATS_TEST_TMPDIR/mnt"
        cat /proc/self/mounts "$BATS_TEST_TMPDIR/mnt/metadata.json" "$SERVER_LOG"
        fault "path=model.safetensors&kind=loop"
        cat "$BATS_TEST_TMPDIR/mnt/model.safetensors" || true
        cat "$SERVER_LOG"
        unmount "$BATS_TEST_TMPDIR/mnt"
    } >"$everything" 2>&1
    grep -q safetensors "$everything"
    run ! grep secret "$everything"
    run ! grep -rl secret "$XDG_CACHE_HOME"
}

@test "only loopback may be read without encryption" {
    fails 1 "use https://" "$WFS" ls http://example.org/model/
    fails 1 "not a kind of URL that wfs reads" "$WFS" ls ftp://example.org/model/
}

# A bucket with a model below a prefix of characters that need encoding; signatures are checked.
make_bucket() {
    mkdir -p "$ROOT/s3/bucket/team a" "$ROOT/s3/public-bucket"
    cp -r "$LOCAL" "$ROOT/s3/bucket/team a/tiny+é"
    cp -r "$LOCAL" "$ROOT/s3/public-bucket/tiny"
    export AWS_ENDPOINT_URL=http://127.0.0.1:$HUB/s3 AWS_REGION=eu-test-1 AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=secret/Key+1
    unset AWS_SESSION_TOKEN AWS_PROFILE AWS_ENDPOINT_URL_S3
    S3="s3://bucket/team a/tiny+é"
}

@test "a prefix in a bucket is what a directory is, in any number of pages" {
    make_bucket
    [ "$("$WFS" ls "$S3")" = "$("$WFS" ls "$LOCAL")" ]
    [ "$("$WFS" ls "$S3/")" = "$("$WFS" ls "$LOCAL")" ]
    for path in model.safetensors config.json tensors/model.norm.weight/f32; do
        [ "$(sum_of "$S3" $path)" = "$(sum_of "$LOCAL" $path)" ]
    done
    [ "$(sum_of "$S3/model.safetensors" model.safetensors)" = "$(sum_of "$LOCAL" model.safetensors)" ]
    "$WFS" info "$S3/model.safetensors" | grep -q "^tokenizer"
    [ "$("$WFS" ls "s3://public-bucket/tiny/" | wc -l)" -gt 5 ]
}

@test "objects are fetched once, and read offline" {
    make_bucket
    sum_of "$S3" model.safetensors config.json
    reset
    sum_of "$S3" model.safetensors config.json
    [ "$(counter content)" -eq 0 ]
    reset
    [ "$(sum_of -o offline "$S3" model.safetensors)" = "$(sum_of "$LOCAL" model.safetensors)" ]
    [ "$(counter requests)" -eq 0 ]
    fails 1 "offline, and not in the cache" "$WFS" ls -o offline s3://bucket/other
}

@test "credentials, regions and clocks: errors say what to do" {
    make_bucket
    AWS_REGION=us-east-1 "$WFS" ls "$S3" >/dev/null
    AWS_ACCESS_KEY_ID=ASIATEST AWS_SECRET_ACCESS_KEY=secret/Key+2 AWS_SESSION_TOKEN=session/token== "$WFS" ls "$S3" >/dev/null
    mkdir "$HOME/.aws"
    printf '[work]\naws_access_key_id=AKIDTEST\naws_secret_access_key=secret/Key+1\n' >"$HOME/.aws/credentials"
    AWS_ACCESS_KEY_ID='' AWS_PROFILE=work "$WFS" ls "$S3" >/dev/null
    AWS_SECRET_ACCESS_KEY=wrong fails 1 "the store does not accept the credentials: SignatureDoesNotMatch" "$WFS" ls "$S3"
    AWS_ACCESS_KEY_ID=AKIDOTHER fails 1 "the store does not accept the credentials: InvalidAccessKeyId" "$WFS" ls "$S3"
    AWS_ACCESS_KEY_ID='' fails 1 "access is denied without credentials; set AWS_PROFILE" "$WFS" ls "$S3"
    AWS_PROFILE=none fails 1 "has the profile 'none' of AWS_PROFILE" "$WFS" ls "$S3"
    fails 1 "there is no such bucket" "$WFS" ls s3://none/tiny
    fails 1 "the bucket has no object of that name" "$WFS" ls s3://bucket/none
    fails 1 "is no name of a bucket" "$WFS" ls s3://
    fails 1 "'x' is no name of a bucket, which has 3 to 63 letters" "$WFS" ls s3://x
    AWS_ENDPOINT_URL=http://192.0.2.1 fails 1 "use an https:// endpoint" "$WFS" ls "$S3"
}

@test "an object that changes is ESTALE, and no secret key is shown or stored" {
    make_bucket
    "$WFS" ls "$S3" >/dev/null
    run "$WFS" cat "$S3" tensors/model.norm.weight/raw
    [ "$status" -eq 0 ]
    fault "path=model.safetensors&kind=status&status=412"
    rm -r "$XDG_CACHE_HOME"
    fails 1 "changed" "$WFS" cat "$S3" tensors/model.embed_tokens.weight/raw
    run ! grep -rq -e 'secret/Key' -e AWS4-HMAC "$XDG_CACHE_HOME" "$BATS_TEST_TMPDIR"/*.log
}

@test "the cache lists its models, removes one, and does not grow beyond its size" {
    "$WFS" cache ls | grep -qx ' *0 bytes  all'
    sum_of hf://org/tiny model.safetensors
    sum_of hf://org/sixteen model.safetensors
    [ "$("$WFS" cache ls | grep -c ' hf://org/')" -eq 2 ]
    fails 1 "nothing of it is in the cache" "$WFS" cache rm hf://org/none
    "$WFS" cache rm hf://org/sixteen
    [ "$("$WFS" cache ls | grep -c ' hf://org/')" -eq 1 ]
    "$WFS" cache prune -o cache-size=0
    "$WFS" cache ls | grep -qx ' *0 bytes  all'
    reset
    [ "$(sum_of -o cache-size=0 hf://org/tiny model.safetensors)" = "$(sum_of "$LOCAL" model.safetensors)" ]
    "$WFS" cache ls | grep -qx ' *0 bytes  all'
    fails 2 "neither ls, rm nor prune" "$WFS" cache list
}

@test "bytes that are evicted while a mount is read are fetched again" {
    need_fuse
    mkdir "$BATS_TEST_TMPDIR/mnt"
    serve "$WEB" "$BATS_TEST_TMPDIR/mnt"
    head -c 1000000 "$BATS_TEST_TMPDIR/mnt/model.safetensors" >/dev/null
    "$WFS" cache prune -o cache-size=0
    [ "$(sha256sum <"$BATS_TEST_TMPDIR/mnt/gguf/model-Q8_0.gguf" | cut -d ' ' -f 1)" = "$(sum_of "$LOCAL" gguf/model-Q8_0.gguf)" ]
    unmount "$BATS_TEST_TMPDIR/mnt"
}

@test "fetch brings all of a model, or what a path needs, and continues" {
    "$WFS" fetch hf://org/tiny tensors/model.norm.weight
    [ "$(counter bytes)" -lt 1000000 ]
    "$WFS" fetch hf://org/tiny
    # The first command may have ended before a small file was here, which it does not need.
    [ "$(counter weights)" -eq "$(wc -c <"$LOCAL/model.safetensors")" ]
    reset
    "$WFS" fetch hf://org/tiny
    [ "$(counter content)" -eq 0 ]
    [ "$(sum_of -o offline hf://org/tiny gguf/model-Q4_K_M.gguf)" = "$(sum_of "$ROOT/hub/org/tiny" gguf/model-Q4_K_M.gguf)" ]
    rm -rf "$XDG_CACHE_HOME"
    fault "path=/blobs/org/tiny/model.safetensors&skip=1&kind=status&status=404"
    fails 1 "model.safetensors: the server answers with status 404" "$WFS" fetch hf://org/tiny
}

@test "fetch compares a file with the SHA-256 that the hub states" {
    mkdir -p "$ROOT/hub/org/other"
    cp "$LOCAL/config.json" "$ROOT/hub/org/other/"
    { head -c 2000000 "$LOCAL/model.safetensors"; head -c 1740344 /dev/zero; } >"$ROOT/hub/org/other/model.safetensors"
    fault "path=/blobs/org/tiny/model.safetensors&kind=file&from=/hub/org/other/model.safetensors"
    local wrong
    wrong="model.safetensors: the bytes that arrived have the SHA-256 $(sha256sum <"$ROOT/hub/org/other/model.safetensors" | cut -d ' ' -f 1), but the server states $(sha256sum <"$LOCAL/model.safetensors" | cut -d ' ' -f 1)"
    fails 1 "$wrong" "$WFS" fetch hf://org/tiny
    fails 1 "$wrong" "$WFS" sha256 hf://org/tiny model.safetensors
    fails 1 "$wrong" "$WFS" attest hf://org/tiny model.gguf
    reset # what was wrong is gone
    "$WFS" fetch hf://org/tiny
    [ "$(sum_of hf://org/tiny model.safetensors)" = "$(sha256sum <"$LOCAL/model.safetensors" | cut -d ' ' -f 1)" ]
}

# org/false states the hashes of org/tiny, and another hub's org/tiny does, too; both send other bytes.
@test "bytes are known by the SHA-256 that a server states only after they were compared with it" {
    local other=http://localhost:$HUB no_proxy=127.0.0.1,localhost bytes
    mkdir -p "$ROOT/hub/org/false" "$ROOT/hub/org/changed"
    cp "$LOCAL"/* "$ROOT/hub/org/false/"
    { head -c 2000000 "$LOCAL/model.safetensors"; head -c 1740344 /dev/zero; } >"$ROOT/hub/org/changed/model.safetensors"
    for path in org/false org/tiny; do
        fault "path=/blobs/$path/model.safetensors&kind=file&from=/hub/org/changed/model.safetensors"
        HF_ENDPOINT=$other "$WFS" cat "hf://$path" model.gguf >/dev/null
        reset
        [ "$(sum_of hf://org/tiny model.gguf)" = "$(sum_of "$ROOT/hub/org/tiny" model.gguf)" ]
    done
    HF_ENDPOINT=$other "$WFS" cache rm hf://org/tiny
    [ -z "$("$WFS" cache ls | grep org/tiny)" ]

    "$WFS" fetch hf://org/tiny
    reset
    HF_ENDPOINT=$other "$WFS" fetch hf://org/false # which the other hub sends honestly by now
    bytes=$(counter bytes)
    [ "$bytes" -lt 1000000 ] # and of which the weights are here
    "$WFS" cache ls | grep -q org/tiny
    "$WFS" cache rm hf://org/false
    [ "$(find "$XDG_CACHE_HOME" -name sealed)" = "" ]
    [ "$(sum_of hf://org/tiny model.safetensors)" = "$(sha256sum <"$LOCAL/model.safetensors" | cut -d ' ' -f 1)" ]
}

@test "a cache without inodes is a full disk" {
    need_mount_namespace
    mkdir -p "$XDG_CACHE_HOME/wfs"
    run --separate-stderr "$HERE/namespace" sh -c 'mount -t tmpfs -o nr_inodes=5,mode=0700 tmpfs "$XDG_CACHE_HOME/wfs" && "$WFS" sha256 hf://org/tiny model.safetensors'
    [ "$status" -eq 0 ]
    [[ $output == "$(sha256sum <"$LOCAL/model.safetensors" | cut -d ' ' -f 1)"* ]]
    echo "$stderr"
    [[ $stderr == *"$XDG_CACHE_HOME/wfs: No space left on device; "* ]]
}

@test "a cache that others may write to is not used" {
    mkdir -p "$XDG_CACHE_HOME/wfs"
    chmod 0777 "$XDG_CACHE_HOME/wfs"
    run --separate-stderr "$WFS" ls hf://org/tiny
    [ "$status" -eq 0 ]
    [[ $stderr == *"$XDG_CACHE_HOME/wfs: others may write to this cache; 'chmod go-w'"* ]]
    [ -z "$(ls "$XDG_CACHE_HOME/wfs")" ]
    chmod 0700 "$XDG_CACHE_HOME/wfs"
    if [ "$(id -u)" -eq 0 ]; then
        chown 65534 "$XDG_CACHE_HOME/wfs"
        run --separate-stderr "$WFS" ls hf://org/tiny
        [[ $stderr == *"$XDG_CACHE_HOME/wfs: the cache of another user"* ]]
        run --separate-stderr "$WFS" cache ls
        [ "$status" -eq 1 ]
        [[ $stderr == *"$XDG_CACHE_HOME/wfs: the cache of another user"* ]]
        [ -z "$(ls "$XDG_CACHE_HOME/wfs")" ]
    fi
}

@test "fetch --hub-cache makes the cache of the hub's Python clients" {
    local folder=$HF_HOME/hub/models--org--nested commit=0123456789abcdef0123456789abcdef01234567
    mkdir -p "$ROOT/hub/org/nested"
    cp -r "$LOCAL" "$ROOT/hub/org/nested/part"
    cp "$LOCAL/config.json" "$ROOT/hub/org/nested"
    "$WFS" fetch --hub-cache hf://org/nested
    diff -r "$ROOT/hub/org/nested" "$folder/snapshots/$commit"
    [ "$(cat "$folder/refs/main")" = "$commit" ]
    [ "$(readlink "$folder/snapshots/$commit/part/model.safetensors")" = "../../../blobs/$(sha256sum <"$LOCAL/model.safetensors" | cut -d ' ' -f 1)" ]
    [ -f "$folder/blobs/$({ printf 'blob %d\0' "$(stat -c %s "$LOCAL/config.json")"; cat "$LOCAL/config.json"; } | sha1sum | cut -d ' ' -f 1)" ]
    reset
    "$WFS" fetch --hub-cache hf://org/nested/part/config.json
    [ "$(counter content)" -eq 0 ]
    [ "$("$WFS" ls org/nested)" = "$("$WFS" ls "$ROOT/hub/org/nested")" ] # found as any model of the hub cache is
    rm -rf "$XDG_CACHE_HOME" "$HF_HOME"
    tr '{' '[' <"$LOCAL/config.json" >"$ROOT/web/changed.json"
    fault "path=/config.json&kind=file&from=/web/changed.json"
    fails 1 "config.json: the bytes that arrived have the Git hash" "$WFS" fetch --hub-cache hf://org/nested/config.json
    [ -z "$(ls "$folder/blobs")" ]
    fails 1 "not on the hub; --hub-cache takes hf://ORG/NAME" "$WFS" fetch --hub-cache "$WEB"
    fails 2 "no PATH of virtual files can follow" "$WFS" fetch --hub-cache hf://org/nested model.gguf
}

@test "a model of more than a thousand files is listed page by page, and known offline" {
    local many=$ROOT/hub/org/many
    mkdir -p "$many/logs"
    cp "$LOCAL"/* "$many"
    for ((i = 0; i < 2100; i++)); do
        : >"$many/logs/$i.log"
    done
    [ "$(sum_of hf://org/many model.safetensors)" = "$(sum_of "$LOCAL" model.safetensors)" ]
    control log | grep -o '"path": "/api/[^"]*"' | sort | uniq -c >"$BATS_TEST_TMPDIR/pages"
    grep -q ' 3 .*/tree/' "$BATS_TEST_TMPDIR/pages"
    reset
    [ "$(sum_of -o offline hf://org/many model.safetensors)" = "$(sum_of "$LOCAL" model.safetensors)" ]
    [ "$(sum_of hf://org/many@0123456789abcdef0123456789abcdef01234567 config.json)" = "$(sum_of "$LOCAL" config.json)" ]
    [ "$(counter requests)" -eq 0 ]
    rm "$XDG_CACHE_HOME"/wfs/texts/*-tree
    fails 1 "offline, and 'main' is not in the cache" "$WFS" ls -o offline hf://org/many
}

@test "https is read only from a server whose certificate is trusted, and never leads to http" {
    local url=https://127.0.0.1:$TLS/web/model/
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout "$BATS_TEST_TMPDIR/key" \
        -out "$BATS_TEST_TMPDIR/other" 2>/dev/null
    SSL_CERT_FILE=$BATS_TEST_TMPDIR/other fails 1 "the server's certificate is not trusted; -o cacert=FILE" "$WFS" ls "$url"
    SSL_CERT_FILE=$BATS_TEST_TMPDIR/none fails 1 "install ca-certificates, or name a file" "$WFS" ls "$url"
    [ "$(sum_of -o "cacert=$BATS_FILE_TMPDIR/certificate" "$url" model.gguf)" = "$(sum_of "$LOCAL" model.gguf)" ]
    export SSL_CERT_FILE=$BATS_FILE_TMPDIR/certificate
    rm -rf "$XDG_CACHE_HOME"
    fault "path=model.safetensors&kind=redirect&to=CDN/web/model/model.safetensors"
    fails 1 "redirects from https to http" "$WFS" ls "$url"
}
