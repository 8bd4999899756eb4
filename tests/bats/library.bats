# Libraries: several models as models/PUBLISHER/NAME/ and ollama/.

load lib

MODELS=$BATS_TEST_DIRNAME/../data/gguf/models
TINY=$MODELS/llama-tiny

# The models of a scan: one of this publisher, one of acme, a GGUF, a pipeline's two components, a hub cache's.
setup_file() {
    load lib
    cd "$BATS_FILE_TMPDIR" || return
    mkdir -p scan/acme scan/nothing scan/.hidden scan/pipeline/{text_encoder,unet,scheduler} scan/models--org--hub/{refs,snapshots/abc} scan/broken
    ln -s "$BATS_TEST_DIRNAME/../data/gguf/models/llama-tiny" scan/tiny
    ln -s "$BATS_TEST_DIRNAME/../data/gguf/models/gemma-tiny" scan/acme/gemma
    cp "$BATS_TEST_DIRNAME/../data/gguf/quantized.gguf" scan/small.gguf
    cp scan/small.gguf scan/mmproj-small.gguf
    cp "$BATS_TEST_DIRNAME/../data/gguf/models/llama-tiny/model.safetensors" scan/.hidden/
    echo '{"_class_name": "A", "text_encoder": ["a", "B"], "unet": ["a", "C"]}' >scan/pipeline/model_index.json
    cp "$BATS_TEST_DIRNAME"/../data/gguf/models/llama-tiny/* scan/pipeline/text_encoder/
    cp "$BATS_TEST_DIRNAME/../data/gguf/models/llama-tiny/model.safetensors" scan/pipeline/unet/
    cp "$BATS_TEST_DIRNAME"/../data/gguf/models/llama-tiny/* scan/models--org--hub/snapshots/abc/
    printf abc >scan/models--org--hub/refs/main
    echo no >scan/broken/model.safetensors
    mkdir scan/quantized
    cp scan/small.gguf scan/quantized/a.gguf
    cp scan/small.gguf scan/quantized/b-00001-of-00002.gguf
    cp scan/small.gguf scan/quantized/b-00002-of-00002.gguf
    echo '{}' >scan/quantized/config.json
}

setup() {
    cd "$BATS_FILE_TMPDIR" || return
    STORE=ollama/manifests/registry.ollama.ai/library
}

# listed PATH: what a library shows there, on one line.
listed() {
    "$WFS" ls -o library "${@:2}" scan "$1" 2>/dev/null | tr '\n' ' '
}

@test "library: a directory of models, two levels deep, with pipelines and repositories of the hub" {
    [ "$(listed models)" = "acme local org quantized " ]
    [ "$(listed models/local)" = "broken pipeline-text_encoder pipeline-unet small tiny " ]
    [ "$(listed models/acme)$(listed models/org)" = "gemma hub " ]
    [ "$(listed models/quantized)" = "a b " ]
    [ "$(listed models/local/pipeline-text_encoder)" = "pipeline-text_encoder-F16.gguf pipeline-text_encoder-Q8_0.gguf pipeline-text_encoder-Q4_K_M.gguf " ]
    "$WFS" cat -o library scan models/org/hub/hub-Q4_K_M.gguf >hub.gguf
    HF_HUB_CACHE=$PWD/scan "$WFS" cat org/hub gguf/model-Q4_K_M.gguf | cmp - hub.gguf
}

@test "library: names carry the model; what -o show= names first comes last; the rest is found by name" {
    [ "$(listed models/local/tiny)" = "tiny-F16.gguf tiny-Q8_0.gguf tiny-Q4_K_M.gguf " ]
    [ "$(listed models/local/small)" = "mmproj-small.gguf small.gguf " ]
    [ "$(listed models/local/tiny -o show=q6_k -o 'show=Q4_K_*')" = "tiny-Q4_K_S.gguf tiny-Q4_K_M.gguf tiny-Q6_K.gguf " ]
    same "$WFS" cat -o library scan models/local/tiny/tiny-Q4_K_M.gguf == "$WFS" cat scan/tiny gguf/model-Q4_K_M.gguf
    "$WFS" cat -o library scan models/local/small/small.gguf | cmp - scan/small.gguf
    "$WFS" cat -o library scan models/local/tiny/hf/config.json | cmp - "$TINY/config.json"
    [ "$("$WFS" ls -o show=Q6_K scan/tiny gguf | tr '\n' ' ')" = "converter model-Q6_K.gguf " ]
    same "$WFS" cat -o show=Q6_K scan/tiny gguf/model-F16.gguf == "$WFS" cat scan/tiny gguf/model-F16.gguf
}

@test "library: Ollama's store names every blob that it has, and only those" {
    need jq
    [ "$(listed "$STORE")" = "gemma hub pipeline-text_encoder pipeline-unet a b small tiny " ]
    [ "$(listed "$STORE/tiny" | tr ' ' '\n' | sort | tr '\n' ' ')" = "f16 latest q4_k_m q8_0 " ]
    "$WFS" cp -r -o library scan ollama copied 2>/dev/null
    cmp copied/manifests/registry.ollama.ai/library/tiny/{latest,q4_k_m}
    local manifest digest
    for manifest in copied/manifests/registry.ollama.ai/*/*/*; do
        jq -er '.mediaType == "application/vnd.docker.distribution.manifest.v2+json" and .schemaVersion == 2' "$manifest" >/dev/null
        [ "$(tail -c 1 "$manifest")" = "" ]
        jq -r '.config, .layers[] | "\(.digest) \(.size)"' "$manifest"
    done | sort -u | while read -r digest size; do
        [ "$(stat -c %s "copied/blobs/${digest/:/-}")" = "$size" ]
        echo "${digest/:/-}"
    done | sort >named
    diff named <(ls copied/blobs | sort)
    digest=$(jq -r '.config.digest' copied/manifests/registry.ollama.ai/library/tiny/latest)
    [ "$(sha256sum <"copied/blobs/${digest/:/-}")" = "${digest#sha256:}  -" ]
    jq -e '.model_family == "llama" and .file_type == "Q4_K_M"' "copied/blobs/${digest/:/-}"
}

@test "library: -o true-digests names blobs by their SHA-256, kept for later" {
    local blob
    "$WFS" ls -o "library,true-digests,cache=$BATS_TEST_TMPDIR/cache" scan/acme ollama/blobs >blobs
    [ "$(wc -l <blobs)" = 6 ]
    while read -r blob; do
        [ "$("$WFS" cat -o "library,true-digests,cache=$BATS_TEST_TMPDIR/cache" scan/acme "ollama/blobs/$blob" | sha256sum)" = "${blob#sha256-}  -" ]
    done <blobs
    need jq
    [ "$("$WFS" cat -o library,true-digests scan metadata.json | jq -r .ollama.digests)" = sha256 ]
    [ "$("$WFS" cat -o library scan metadata.json | jq -r .ollama.digests)" = identity ]
}

@test "library: a mount of several sources opens each when it is looked into; a broken one leaves the others" {
    need_fuse
    cp -r "$TINY" mine
    "$WFS" mount mine scan/small.gguf "org/named=scan/acme/gemma" scan/broken mnt
    [ "$(cd mnt/models && echo */*)" = "local/broken local/mine local/small org/named" ]
    [ "$(ls mnt/models/org/named)" = "$(printf 'named-F16.gguf\nnamed-Q4_K_M.gguf\nnamed-Q8_0.gguf')" ]
    cmp mnt/models/local/small/small.gguf scan/small.gguf
    [ -z "$(ls mnt/models/local/broken)" ]
    [ "$(ls mnt/ollama/manifests/registry.ollama.ai/library | tr '\n' ' ')" = "mine named small " ]
    same "$WFS" cat mine gguf/model-Q4_K_M.gguf == cat mnt/models/local/mine/mine-Q4_K_M.gguf
    "$WFS" umount mnt
}

@test "library: wfs info lists the models, and opens none" {
    [ "$("$WFS" info -o library scan/acme)" = "library
models      models/local/gemma
next        wfs mount -o library scan/acme ~/m" ]
    local publisher
    "$WFS" info -o library scan | grep -o 'models/.*' >told
    for publisher in $(listed models); do
        "$WFS" ls -o library scan "models/$publisher" | sed "s|^|models/$publisher/|"
    done | diff told -
}

@test "library: what cannot be one is named" {
    fails 1 "nowhere: no such file or directory" "$WFS" mount "$TINY" nowhere mnt
    fails 1 "scan/nothing: holds no models" "$WFS" ls -o library scan/nothing
    fails 1 "local/tiny: two sources have this name; give one another: ORG/NAME=SOURCE" "$WFS" mount scan/tiny scan/tiny mnt
    [ ! -e mnt ]
    need_serve
    fails 1 "option library has no effect on serve: name each model" "$WFS" serve -o library scan
}

@test "library: GGUFs of LM Studio and of llama.cpp's cache have their projectors beside them" {
    local dir=$BATS_TEST_TMPDIR
    mkdir -p "$dir/lmstudio/acme/Small-GGUF" "$dir/cache"
    cp scan/small.gguf "$dir/lmstudio/acme/Small-GGUF/Small-F16.gguf"
    echo "GGUF projector" >"$dir/lmstudio/acme/Small-GGUF/mmproj-Small-F16.gguf"
    [ "$("$WFS" ls -o library "$dir/lmstudio" models/acme/Small-F16 | xargs)" = "mmproj-Small-F16.gguf Small-F16.gguf" ]
    "$WFS" cat -o library "$dir/lmstudio" models/acme/Small-F16/mmproj-Small-F16.gguf | cmp - "$dir/lmstudio/acme/Small-GGUF/mmproj-Small-F16.gguf"
    cp scan/small.gguf "$dir/cache/some_one_Small-GGUF_small.gguf"
    echo "GGUF projector" >"$dir/cache/some_one_Small-GGUF_mmproj-small.gguf"
    echo '{"ggufFile": {"rfilename": "small.gguf"}, "mmprojFile": {"rfilename": "mmproj-small.gguf"}}' >"$dir/cache/manifest=some_one=Small-GGUF=latest.json"
    [ "$("$WFS" ls -o library "$dir/cache" models | xargs)" = some_one ]
    [ "$("$WFS" ls -o library "$dir/cache" models/some_one | xargs)" = small ]
    [ "$("$WFS" ls -o library "$dir/cache" models/some_one/small | xargs)" = "mmproj-small.gguf small.gguf" ]
}

@test "library: files of several repositories with one name are models of their own, and a file model.gguf is shown" {
    local dir=$BATS_TEST_TMPDIR/same a
    for a in A B C; do
        mkdir -p "$dir/acme/$a-GGUF"
        cp scan/small.gguf "$dir/acme/$a-GGUF/model.gguf"
    done
    echo "GGUF projector" >"$dir/acme/B-GGUF/mmproj-model.gguf"
    [ "$("$WFS" ls -o library "$dir" models/acme | xargs)" = "model B-GGUF-model C-GGUF-model" ]
    [ "$("$WFS" ls -o library "$dir" models/acme/B-GGUF-model | xargs)" = "mmproj-model.gguf model.gguf" ]
    "$WFS" cat -o library "$dir" models/acme/C-GGUF-model/model.gguf | cmp - scan/small.gguf
    for a in A B C; do
        mkdir -p "$dir/hub/models--acme--$a-GGUF"/{refs,snapshots/abc}
        printf abc >"$dir/hub/models--acme--$a-GGUF/refs/main"
        cp scan/small.gguf "$dir/hub/models--acme--$a-GGUF/snapshots/abc/model.gguf"
    done
    [ "$("$WFS" ls -o library "$dir/hub" models/acme | xargs)" = "model B-GGUF-model C-GGUF-model" ]
    rm -r "$dir/hub"
    [ "$("$WFS" ls -o library "$dir" "$STORE" | xargs)" = "model b-gguf-model c-gguf-model" ]
}

@test "library: models that Ollama cannot tell apart do not share tags" {
    local dir=$BATS_TEST_TMPDIR/alike
    mkdir -p "$dir/one" "$dir/two"
    cp scan/small.gguf "$dir/one/a.gguf"
    cp scan/small.gguf "$dir/two/A.gguf"
    cp -r "$TINY" "$dir/two/a"
    [ "$("$WFS" ls -o library "$dir" models/two | xargs)" = "A a" ]
    [ "$("$WFS" ls -o library "$dir" "$STORE" | xargs)" = a ]
    [ "$("$WFS" ls -o library "$dir" "${STORE%/*}/two/a" | xargs)" = latest ]
}

@test "library: repositories of two caches with one name are numbered" {
    local dir=$BATS_TEST_TMPDIR/caches cache
    for cache in one two; do
        mkdir -p "$dir/$cache/models--acme--x"/{refs,snapshots/abc}
        printf abc >"$dir/$cache/models--acme--x/refs/main"
        cp "$TINY"/* "$dir/$cache/models--acme--x/snapshots/abc/"
    done
    [ "$("$WFS" ls -o library "$dir" models/acme | xargs)" = "x x-2" ]
    "$WFS" pack -q "$dir/archive" "$dir/one" "$dir/two"
    [ "$("$WFS" ls "$dir/archive" models/acme | xargs)" = "x x-2" ]
    same "$WFS" cat "$dir/archive" models/acme/x-2/x-F16.gguf == "$WFS" cat -o library "$dir" models/acme/x-2/x-F16.gguf
}

@test "library: links to folders above are left out" {
    local dir=$BATS_TEST_TMPDIR/loops i
    mkdir -p "$dir/acme/Small-GGUF" "$dir/store/blobs" "$dir/store/manifests/host/space/name"
    cp scan/small.gguf "$dir/acme/Small-GGUF/"
    echo '{}' >"$dir/store/manifests/host/space/name/latest"
    ln -s .. "$dir/acme/Small-GGUF/up"
    for i in 1 2 3; do
        ln -s . "$dir/self$i"
        ln -s "$dir" "$dir/acme/up$i"
        ln -s . "$dir/store/manifests/self$i"
    done
    [ "$("$WFS" ls -o library "$dir" models | xargs)" = "acme space" ]
    [ "$("$WFS" ls -o library "$dir" models/acme | xargs)" = small ]
    [ "$("$WFS" ls -o library "$dir" models/space | xargs)" = name ]
}

@test "library: a folder that many links lead to is searched once" {
    local dir=$BATS_TEST_TMPDIR/links i
    mkdir -p "$dir/many" "$dir/shared/folder" "$BATS_TEST_TMPDIR/far/away" "$dir/store/blobs" "$dir/store/manifests/host/space/name"
    echo '{}' >"$dir/store/manifests/host/space/name/latest"
    ln -s "$TINY" "$dir/shared/tiny"
    cp scan/small.gguf "$dir/shared/folder/inner.gguf"
    cp scan/small.gguf "$BATS_TEST_TMPDIR/far/away/small.gguf"
    for i in {1..200}; do
        ln -s ../shared "$dir/many/a$i"
        ln -s "$PWD/scan/small.gguf" "$dir/shared/small$i.gguf"
        ln -s space "$dir/store/manifests/host/space$i"
        ln -s "$BATS_TEST_TMPDIR/far/away" "$dir/far$i"
    done
    "$WFS" cat -o library "$dir" metadata.json >"$BATS_TEST_TMPDIR/metadata.json"
    jq -r '.models[].path' "$BATS_TEST_TMPDIR/metadata.json" | sort >"$BATS_TEST_TMPDIR/paths"
    diff "$BATS_TEST_TMPDIR/paths" <(printf 'models/%s\n' far1/small shared/inner shared/small{1..200} shared/tiny space/name | sort)
}

@test "library: a folder or file whose name is none of a model's keeps no other from being shown" {
    local dir=$BATS_TEST_TMPDIR/names name
    mkdir -p "$dir/cache"
    for name in models----x models--a--..; do
        mkdir -p "$dir/$name/refs" "$dir/$name/snapshots/abc"
        printf abc >"$dir/$name/refs/main"
        cp scan/small.gguf "$dir/$name/snapshots/abc/"
    done
    cp scan/small.gguf "$dir/-00001-of-00001.gguf"
    cp scan/small.gguf "$dir/cache/x_y_z.gguf"
    echo '{"url": "https://host/../y/resolve/main/z.gguf"}' >"$dir/cache/x_y_z.gguf.json"
    [ "$("$WFS" ls -o library "$dir" models | xargs)" = "local cache models----x models--a--.." ]
    [ "$("$WFS" ls -o library "$dir" models/models----x | xargs)" = small ]
    [ "$("$WFS" ls -o library "$dir" models/cache | xargs)" = "x_y_z" ]
    [ "$(cd scan/tiny && "$WFS" ls -o library . models/local)" = llama-tiny ]
}
