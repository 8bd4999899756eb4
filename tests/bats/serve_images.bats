# Directories as archives: `wfs cat MODEL DIRECTORY.tar`, and the images of `wfs serve`, whose layers are such archives.

load lib
load serve.bash

MANIFEST="Accept: application/vnd.oci.image.manifest.v1+json"
INDEX="Accept: application/vnd.oci.image.index.v1+json"

setup_file() {
    load lib
    "$PYTHON" "$HERE/../data/make.py" sample "$BATS_FILE_TMPDIR/tiny-llama"
}

setup() {
    need_serve
    need_numpy
    need curl jq tar
    MODEL=$BATS_FILE_TMPDIR/tiny-llama
    OUT=$BATS_TEST_TMPDIR
    unset CACHE_DIRECTORY
    export XDG_CACHE_HOME=$OUT/cache
    SERVER=
}

teardown() {
    [ -z "$SERVER" ] || kill "$SERVER"
}

digest_of() {
    sha256sum | sed 's/^\([0-9a-f]*\) .*/sha256:\1/'
}

manifest() { # TAG [FLAGS]
    get --header "$MANIFEST" "${@:2}" "$URL/v2/acme/tiny/manifests/$1"
}

@test "a directory is one archive, with every name and byte" {
    cp -r "$MODEL" "$OUT/model"
    chmod u+w "$OUT/model"
    long=$(printf 'n%.0s' {1..130})
    split=$(printf 'd%.0s' {1..90})/$(printf 'f%.0s' {1..90}).txt
    mkdir -p "$OUT/model/${split%/*}"
    echo split >"$OUT/model/$split"
    echo long >"$OUT/model/$long é.txt"
    : >"$OUT/model/empty.txt"
    head -c 1024 /dev/zero >"$OUT/model/blocks.txt"
    "$WFS" cat "$OUT/model" hf.tar >"$OUT/hf.tar"
    "$WFS" cat "$OUT/model" hf.tar | cmp - "$OUT/hf.tar"
    mkdir "$OUT/unpacked"
    tar -C "$OUT/unpacked" -xf "$OUT/hf.tar" 2>"$OUT/warnings"
    [ ! -s "$OUT/warnings" ]
    same eval 'cd "$OUT/unpacked/hf" && find . -type f | sort' == eval 'cd "$OUT/model" && find . -type f | sort'
    for name in config.json model.safetensors "$split" "$long é.txt" blocks.txt; do
        same cat "$OUT/unpacked/hf/$name" == "$WFS" cat "$OUT/model" "hf/$name"
    done
    [ -f "$OUT/unpacked/hf/empty.txt" ] && [ ! -s "$OUT/unpacked/hf/empty.txt" ]
    "$PYTHON" - "$OUT/hf.tar" <<'END'
import sys, tarfile
with tarfile.open(sys.argv[1]) as archive:
    members = archive.getmembers()
names = [member.name for member in members]
assert len(set(names)) == len(names) and [n for n, m in zip(names, members) if m.isfile()] == sorted((n for n, m in zip(names, members) if m.isfile()), key=str.encode)
for member in members:
    assert (member.uid, member.gid, member.mtime) == (0, 0, 0) and member.mode == (0o755 if member.isdir() else 0o644)
END
    [ "$("$WFS" cat --range 700:5000 "$OUT/model" hf.tar | cksum)" = "$(tail -c +701 "$OUT/hf.tar" | head -c 5000 | cksum)" ]
    same eval '"$WFS" cat "$MODEL" mlx/4bit.tar | tar -xO 4bit/config.json' == "$WFS" cat "$MODEL" mlx/4bit/config.json
    fails 1 "there is no 'none.tar'" "$WFS" cat "$MODEL" none.tar
    fails 1 "config.json.tar" "$WFS" cat "$MODEL" hf/config.json.tar
}

@test "an archive has files above 8 GiB" {
    "$PYTHON" - "$OUT/big.safetensors" <<'END'
import json, struct, sys
header = json.dumps({"big": {"dtype": "U8", "shape": [9 << 30], "data_offsets": [0, 9 << 30]}}).encode()
header += b" " * (-len(header) % 8)
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header)
    file.truncate(8 + len(header) + (9 << 30))
END
    "$WFS" cat --range 0:8192 "$OUT/big.safetensors" tensors/big.tar >"$OUT/beginning"
    "$PYTHON" - "$OUT/beginning" <<'END'
import sys, tarfile
archive = tarfile.open(sys.argv[1])
assert archive.next().name == "big"
member = archive.next()
assert (member.name, member.size) == ("big/bf16", 18 << 30), (member.name, member.size)
END
}

@test "a tag is an image whose layers are the files of a directory below /models" {
    offer "acme/Tiny=$MODEL"
    for tag in hf=hf FP8_DYNAMIC=compressed-tensors/FP8_DYNAMIC mlx-8bit-g32=mlx/8bit-g32; do
        directory=${tag#*=}
        manifest "${tag%=*}" --dump-header "$OUT/headers" >"$OUT/manifest"
        [ "$(header Docker-Content-Digest)" = "$(digest_of <"$OUT/manifest")" ]
        [ "$(header Content-Type)" = application/vnd.oci.image.manifest.v1+json ]
        rm -rf "$OUT/root"
        mkdir "$OUT/root"
        while read -r digest size; do
            get "$URL/v2/acme/tiny/blobs/$digest" >"$OUT/layer"
            [ "$(digest_of <"$OUT/layer")" = "$digest" ]
            [ "$(stat -c %s "$OUT/layer")" -eq "$size" ]
            tar -C "$OUT/root" -xf "$OUT/layer"
        done < <(jq -r '.layers[] | "\(.digest) \(.size)"' "$OUT/manifest")
        same ls "$OUT/root/models" == eval '"$WFS" ls "$MODEL" "$directory" | sort'
        for name in config.json model.safetensors; do
            same cat "$OUT/root/models/$name" == "$WFS" cat "$MODEL" "$directory/$name"
        done
        config=$(jq -r .config.digest "$OUT/manifest")
        get "$URL/v2/acme/Tiny/blobs/$config" >"$OUT/config"
        [ "$(digest_of <"$OUT/config")" = "$config" ]
        [ "$(jq -c .rootfs.diff_ids "$OUT/config")" = "$(jq -c '[.layers[].digest]' "$OUT/manifest")" ]
    done
    manifest q4_k_m >"$OUT/manifest"
    get "$URL/v2/acme/tiny/blobs/$(jq -r '.layers[0].digest' "$OUT/manifest")" >"$OUT/layer"
    same tar -xOf "$OUT/layer" models/Tiny-Q4_K_M.gguf == "$WFS" cat "$MODEL" gguf/model-Q4_K_M.gguf
}

@test "sizes are exact before a byte is computed, HEAD computes nothing, and digests are kept" {
    offer "acme/Tiny=$MODEL"
    digested() { get "$URL/metrics" | sed -n 's/^wfs_digest_bytes_total //p'; }
    manifest FP8_DYNAMIC --head >"$OUT/headers"
    [ -z "$(header Docker-Content-Digest)" ]
    size=$(header Content-Length)
    [ "$(digested)" -eq 0 ]
    [ "$(status_of -H "Sec-Fetch-Site: cross-site" "$URL/v2/acme/tiny/manifests/FP8_DYNAMIC")" = 404 ]
    [ "$(digested)" -eq 0 ]
    manifest FP8_DYNAMIC >"$OUT/manifest"
    [ "$(stat -c %s "$OUT/manifest")" -eq "$size" ]
    once=$(digested)
    [ "$once" -eq "$(jq '[.layers[].size] | add' "$OUT/manifest")" ]
    manifest FP8_DYNAMIC --head >"$OUT/headers"
    [ "$(header Docker-Content-Digest)" = "$(digest_of <"$OUT/manifest")" ]
    layer=$(jq -r '.layers[0].digest' "$OUT/manifest")
    get "$URL/v2/acme/tiny/blobs/$layer" >"$OUT/layer"
    same get --range 600-90000 "$URL/v2/acme/tiny/blobs/$layer" == eval 'tail -c +601 "$OUT/layer" | head -c 89401'
    [ "$(digested)" -eq "$once" ]
    kill "$SERVER"
    offer "acme/Tiny=$MODEL" # knows the blobs of the first server
    get "$URL/v2/acme/tiny/blobs/$layer" | cmp - "$OUT/layer"
    manifest "$(digest_of <"$OUT/manifest")" | cmp - "$OUT/manifest"
    [ "$(digested)" -eq 0 ]
}

@test "equal files of a MiB are one layer for all tags" {
    cp -r "$MODEL" "$OUT/model"
    chmod -R u+w "$OUT/model"
    "$PYTHON" - "$OUT/model/tokenizer.json" <<'END'
import json, pathlib, sys
path = pathlib.Path(sys.argv[1])
tokenizer = json.loads(path.read_text())
path.write_text(json.dumps(tokenizer | {"padding": None}) + (1 << 20) * " ")
END
    offer "acme/Tiny=$OUT/model"
    layers() { manifest "$1" | jq -r '.layers[].digest' | sort; }
    [ "$(comm -12 <(layers hf) <(layers W4A16) | wc -l)" -ge 1 ]
    layer=$(comm -12 <(layers hf) <(layers W4A16) | head -n 1)
    get "$URL/v2/acme/tiny/blobs/$layer" | tar -xO models/tokenizer.json | cmp - "$OUT/model/tokenizer.json"
}

@test "an index for clients that take one, sorted tags, and no referrers" {
    offer "acme/Tiny=$MODEL"
    get --dump-header "$OUT/headers" --header "$MANIFEST" --header "$INDEX" "$URL/v2/acme/Tiny/manifests/hf" >"$OUT/index"
    [ "$(header Content-Type)" = application/vnd.oci.image.index.v1+json ]
    [ "$(jq -r '.manifests[].platform.architecture' "$OUT/index" | tr '\n' ' ')" = "amd64 arm64 " ]
    while read -r digest size; do
        manifest "$digest" >"$OUT/manifest"
        [ "$(digest_of <"$OUT/manifest")" = "$digest" ]
        [ "$(stat -c %s "$OUT/manifest")" -eq "$size" ]
    done < <(jq -r '.manifests[] | "\(.digest) \(.size)"' "$OUT/index")
    same manifest latest == manifest hf
    get "$URL/v2/acme/tiny/tags/list" >"$OUT/tags"
    jq -r '.tags[]' "$OUT/tags" | LC_ALL=C sort --check
    for tag in hf Q4_K_M mlx-4bit FP8_DYNAMIC bnb-nf4; do
        jq -e --arg tag $tag '.tags | index($tag) != null' "$OUT/tags"
    done
    next="/v2/acme/tiny/tags/list?n=7"
    while [ -n "$next" ]; do
        get --dump-header "$OUT/headers" "$URL$next" | jq -r '.tags[]' >>"$OUT/pages"
        next=$(header Link | sed -n 's/^<\(.*\)>; rel="next"$/\1/p')
    done
    diff "$OUT/pages" <(jq -r '.tags[]' "$OUT/tags")
    none=$(printf x | digest_of)
    for name in tiny tiny-gguf; do
        [ "$(get "$URL/v2/acme/$name/referrers/$none" | jq -c .manifests)" = "[]" ]
    done
    [ "$(status_of "$URL/v2/acme/tiny/referrers/x")" = 400 ]
    for path in manifests/none "manifests/$none" "blobs/$none" blobs/x "blobs/sha256:../../etc/passwd"; do
        [ "$(status_of "$URL/v2/acme/tiny/$path")" = 404 ]
    done
    [ "$(status_of "$URL/v2/acme/none/tags/list")" = 404 ]
    # The registry of GGUF files goes on beside.
    get --header "Accept: application/vnd.docker.distribution.manifest.v2+json" "$URL/v2/acme/tiny-gguf/manifests/Q4_K_M" | grep -q vnd.ollama.image.model
}

@test "names that differ in case alone are images of their own, and none answers for both" {
    cp -r "$MODEL" "$OUT/other"
    chmod u+w "$OUT/other" "$OUT/other/README.md"
    echo other >"$OUT/other/README.md"
    offer "acme/Tiny=$MODEL" "acme/TINY=$OUT/other" "acme/one=$MODEL"
    for name in Tiny TINY; do
        get --header "$MANIFEST" "$URL/v2/acme/$name/manifests/hf" >"$OUT/$name"
        get "$URL/v2/acme/$name/blobs/$(jq -r '.layers | min_by(.size).digest' "$OUT/$name")" | tar -xO models/README.md >"$OUT/$name.md"
    done
    cmp "$OUT/Tiny.md" "$MODEL/README.md"
    cmp "$OUT/TINY.md" "$OUT/other/README.md"
    [ "$(get "$URL/v2/acme/Tiny/tags/list" | jq '.tags | length')" -eq "$(get "$URL/v2/acme/ONE/tags/list" | jq '.tags | length')" ]
    for name in tiny tiny-gguf; do
        [ "$(status_of "$URL/v2/acme/$name/tags/list")" = 404 ]
    done
}
