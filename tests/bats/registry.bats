# The registry of `wfs serve`: manifests and blobs as Ollama, Docker Model Runner and OCI clients ask for them.

load lib
load serve.bash

OLLAMA="Accept: application/vnd.docker.distribution.manifest.v2+json"
OCI="Accept: application/vnd.oci.image.manifest.v1+json"
MODELPACK="Accept: application/vnd.cncf.model.manifest.v1+json"

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
    unset CACHE_DIRECTORY
    export XDG_CACHE_HOME=$OUT/cache
    SERVER=
}

digest_of() {
    sha256sum | sed 's/^\([0-9a-f]*\) .*/sha256:\1/'
}

manifest() { # HEADER REFERENCE
    get --header "$1" "$URL/v2/acme/Tiny-GGUF/manifests/$2"
}

@test "Ollama's client: manifest, HEAD of each blob, where it is, ranges from there, and their digest" {
    offer "acme/Tiny=$MODEL"
    "$PYTHON" - "$URL" <<'END'
import hashlib, json, sys, urllib.parse, urllib.request
base = sys.argv[1] + "/v2/acme/Tiny-GGUF/"

def ask(path, method="GET", **headers):
    return urllib.request.urlopen(urllib.request.Request(urllib.parse.urljoin(base, path), headers=headers, method=method))

manifest = json.load(ask("manifests/q4_k_m", Accept="application/vnd.docker.distribution.manifest.v2+json"))
assert manifest["schemaVersion"] == 2
for layer in [*manifest["layers"], manifest["config"]]:
    blob, size = "blobs/" + layer["digest"], layer["size"]
    assert int(ask(blob, "HEAD").headers["Content-Length"]) == size
    with ask(blob) as whole:  # of which Ollama reads the headers alone: it requires a Location, which need not be elsewhere
        ranges = urllib.parse.urljoin(whole.url, whole.headers["Location"])
        assert whole.status == 200 and whole.headers["Location"] is not None
    step, whole = size // 3 + 1, hashlib.sha256()
    for first in range(0, size, step):
        part = ask(ranges, Range=f"bytes={first}-{min(size, first + step) - 1}")
        assert part.status == 206
        whole.update(part.read())
    assert "sha256:" + whole.hexdigest() == layer["digest"]
END
    manifest "$OLLAMA" Q4_K_M >"$OUT/manifest"
    [ "$(jq -r '.layers[].mediaType' "$OUT/manifest")" = application/vnd.ollama.image.model ]
    [ "$(jq -r '.layers[].digest' "$OUT/manifest")" = "$("$WFS" cat "$MODEL" gguf/model-Q4_K_M.gguf | digest_of)" ]
    get "$URL/v2/acme/Tiny-GGUF/blobs/$(jq -r .config.digest "$OUT/manifest")" >"$OUT/config"
    [ "$(jq -r '[.model_format, .model_family, .file_type, .model_type] | join(" ")' "$OUT/config")" = "gguf llama Q4_K_M 1.9M" ]
    manifest "Accept: */*" latest | cmp - "$OUT/manifest"
    kill -TERM "$SERVER"
    server_ends_with 0
    server_is_quiet
}

@test "the Accept header chooses the form, and a manifest has its own digest" {
    offer "acme/Tiny=$MODEL"
    manifest "$OCI" Q8_0 >"$OUT/oci"
    manifest "$MODELPACK" Q8_0 >"$OUT/modelpack"
    manifest "$OLLAMA" Q8_0 >"$OUT/ollama"
    [ "$(jq -r '.config.mediaType' "$OUT/oci")" = application/vnd.docker.ai.model.config.v0.1+json ]
    [ "$(jq -r '.layers[0].mediaType' "$OUT/oci")" = application/vnd.docker.ai.gguf.v3 ]
    [ "$(jq -r '.layers[0].annotations["org.opencontainers.image.title"]' "$OUT/oci")" = Tiny-Q8_0.gguf ]
    [ "$(jq -r '.artifactType' "$OUT/modelpack")" = application/vnd.cncf.model.manifest.v1+json ]
    [ "$(jq -r '.layers[0].mediaType' "$OUT/modelpack")" = application/vnd.cncf.model.weight.v1.raw ]
    for form in oci modelpack ollama; do
        digest=$(digest_of <"$OUT/$form")
        get --dump-header "$OUT/headers" "$URL/v2/acme/tiny-gguf/manifests/$digest" | cmp - "$OUT/$form"
        [ "$(header Docker-Content-Digest)" = "$digest" ]
        [ "$(header Content-Type)" = "$(jq -r .mediaType "$OUT/$form")" ]
        get --output /dev/null "$URL/v2/acme/tiny-gguf/blobs/$(jq -r .config.digest "$OUT/$form")"
    done
    # Several headers of that name are one list.
    get --header "Accept: text/plain" --header "$OCI" "$URL/v2/acme/Tiny-GGUF/manifests/Q8_0" | cmp - "$OUT/oci"
    get --head --header "$OCI" "$URL/v2/acme/Tiny-GGUF/manifests/Q8_0" >"$OUT/headers"
    [ "$(header Content-Length)" -eq "$(wc -c <"$OUT/oci")" ]
    get --user-agent llama-cpp --header "Accept: application/json" "$URL/v2/acme/Tiny-GGUF/manifests/Q8_0" >"$OUT/llama"
    [ "$(jq -r .ggufFile.rfilename "$OUT/llama")" = Tiny-Q8_0.gguf ]
}

@test "template, system, params and LICENSE of the source are layers" {
    cp -r "$MODEL" "$OUT/model"
    chmod u+w "$OUT/model"
    echo '{{ .Prompt }}' >"$OUT/model/template"
    echo '{"stop":["<end>"]}' >"$OUT/model/params"
    echo 'Do what you like.' >"$OUT/model/LICENSE"
    offer "acme/Tiny=$OUT/model"
    manifest "$OLLAMA" Q8_0 >"$OUT/manifest"
    for layer in template params LICENSE; do
        digest=$(digest_of <"$OUT/model/$layer")
        type=application/vnd.ollama.image.${layer,,}
        [ "$(jq -r --arg type "$type" '.layers[] | select(.mediaType == $type) | .digest' "$OUT/manifest")" = "$digest" ]
        get "$URL/v2/acme/Tiny-GGUF/blobs/$digest" | cmp - "$OUT/model/$layer"
    done
    [ "$(manifest "$OCI" Q8_0 | jq -r '[.layers[].mediaType] | join(" ")')" = \
        "application/vnd.docker.ai.gguf.v3 application/vnd.docker.ai.license" ]
}

@test "the projector of a vision model is a layer" {
    "$PYTHON" "$HERE/../data/make.py" vision "$OUT/vision"
    offer "acme/Tiny=$OUT/vision"
    "$WFS" cat "$OUT/vision" gguf/mmproj-F16.gguf >"$OUT/projector"
    layer() { # HEADER TYPE
        manifest "$1" Q8_0 | jq -r --arg type "$2" '.layers[] | select(.mediaType == $type) | "\(.digest) \(.size)"'
    }
    expected="$(digest_of <"$OUT/projector") $(stat -c %s "$OUT/projector")"
    [ "$(layer "$OLLAMA" application/vnd.ollama.image.projector)" = "$expected" ]
    [ "$(layer "$OCI" application/vnd.docker.ai.mmproj)" = "$expected" ]
    [ "$(layer "$MODELPACK" application/vnd.cncf.model.weight.v1.raw | tail -n 1)" = "$expected" ]
    [ "$(manifest "$OCI" Q8_0 | jq -r '.layers[1].annotations["org.opencontainers.image.title"]')" = mmproj-Tiny-F16.gguf ]
    get "$URL/v2/acme/Tiny-GGUF/blobs/${expected% *}" | cmp - "$OUT/projector"
    # llama.cpp's own form of a manifest names it, too.
    get --user-agent llama-cpp "$URL/v2/acme/Tiny-GGUF/manifests/Q8_0" >"$OUT/llama"
    [ "$(jq -r .mmprojFile.rfilename "$OUT/llama")" = mmproj-Tiny-F16.gguf ]
    get "$URL/acme/Tiny-GGUF/resolve/main/mmproj-Tiny-F16.gguf" | cmp - "$OUT/projector"
}

@test "a projector and a draft beside a GGUF are layers of its models, and no models" {
    mkdir -p "$OUT/own"
    "$WFS" cat "$MODEL" model.gguf | tee "$OUT/own/tiny.gguf" >"$OUT/own/draft.gguf"
    echo projector >"$OUT/own/mmproj.gguf"
    offer "acme/A-longer-name-than-theirs=$OUT/own"
    local repository=$URL/v2/acme/A-longer-name-than-theirs-GGUF
    get "$repository/tags/list" | jq -e '.tags | index("Q8_0") and all(test("^[A-Z0-9_]+$"))'
    get "$URL/v2/acme/a-longer-name-than-theirs/tags/list" | jq -e '.tags | index("Q8_0") and all(test("gguf") | not)'
    get "$repository/manifests/Q8_0" >"$OUT/manifest"
    layer() {
        jq -r --arg type "application/vnd.ollama.image.$1" '.layers[] | select(.mediaType == $type) | .digest' "$OUT/manifest"
    }
    get "$repository/blobs/$(layer projector)" | cmp - "$OUT/own/mmproj.gguf"
    get "$repository/blobs/$(layer draft)" | cmp - "$OUT/own/draft.gguf"
}

@test "digests are kept for the next server" {
    offer "acme/Tiny=$MODEL"
    blob=v2/acme/Tiny-GGUF/blobs/$("$WFS" cat "$MODEL" gguf/model-Q8_0.gguf | digest_of)
    [ "$(status_of "$URL/$blob")" = 404 ]
    manifest "$OLLAMA" Q8_0 >"$OUT/manifest"
    [ "$(status_of "$URL/$blob")" = 200 ]
    kill -TERM "$SERVER"
    server_ends_with 0
    offer "acme/Tiny=$MODEL"
    same get "$URL/$blob" == "$WFS" cat "$MODEL" gguf/model-Q8_0.gguf
    kill -TERM "$SERVER"
    server_ends_with 0
    kept=$(find "$XDG_CACHE_HOME" -name 'sha256-*')
    [ -f "$kept" ]
    echo broken >"$kept"
    offer "acme/Tiny=$MODEL"
    manifest "$OLLAMA" Q8_0 | cmp - "$OUT/manifest"
}

@test "a page of another site starts no digest" {
    offer "acme/Tiny=$MODEL"
    [ "$(status_of -H 'Sec-Fetch-Site: cross-site' "$URL/v2/acme/Tiny-GGUF/manifests/Q8_0")" = 500 ]
    manifest "$OLLAMA" Q8_0 >"$OUT/manifest"
    [ "$(status_of -H 'Sec-Fetch-Site: cross-site' "$URL/v2/acme/Tiny-GGUF/manifests/Q8_0")" = 200 ] # known by now
}

@test "clients that ask for a manifest at once wait for one pass" {
    offer "acme/Tiny=$MODEL"
    for i in 1 2 3 4 5 6 7 8; do
        manifest "$OLLAMA" F32 >"$OUT/manifest.$i" &
        clients[i]=$!
    done
    wait "${clients[@]}"
    for i in 2 3 4 5 6 7 8; do
        cmp "$OUT/manifest.1" "$OUT/manifest.$i"
    done
    get "$URL/metrics" | grep -x "wfs_digest_bytes_total $(jq '.layers[0].size' "$OUT/manifest.1")"
}

@test "errors are those of registries, and a token is a password" {
    echo secret-token >"$OUT/token"
    offer --token-file "$OUT/token" "acme/Tiny=$MODEL"
    [ "$(status_of --dump-header "$OUT/headers" "$URL/v2/")" = 401 ]
    [ "$(header WWW-Authenticate)" = 'Basic realm="wfs"' ]
    [ "$(status_of --user any:secret-token "$URL/v2/")" = 200 ]
    [ "$(status_of --user any:wrong "$URL/v2/")" = 401 ]
    code() { curl --silent --user any:secret-token "$URL/v2/$1" | jq -r '.errors[0].code'; }
    [ "$(code acme/Tiny-GGUF/manifests/Q9)" = MANIFEST_UNKNOWN ]
    [ "$(code acme/None/manifests/Q8_0)" = NAME_UNKNOWN ]
    [[ $(curl --silent --user any:secret-token "$URL/v2/acme/none/tags/list") == *"ORG/NAME has images"* ]]
    [ "$(code "acme/Tiny-GGUF/manifests/sha256:$(printf '%064d' 0)")" = MANIFEST_UNKNOWN ]
    [ "$(code "acme/Tiny-GGUF/blobs/sha256:$(printf '%064d' 0)")" = BLOB_UNKNOWN ]
    [ "$(code acme/Tiny-GGUF/blobs/sha256:..)" = BLOB_UNKNOWN ]
    get --user any:secret-token "$URL/v2/acme/Tiny-GGUF/tags/list" | jq -e '.tags | index("Q4_K_M")'
}
