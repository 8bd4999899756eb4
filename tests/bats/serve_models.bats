# The models that `wfs serve` offers: indices of them, and the directories for engines.

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

teardown() {
    [ -z "$SERVER" ] || kill "$SERVER"
}

# The relative links of an index, without that to the directory above.
links() {
    get "$1" | grep -o 'href="[^"]*"' | sed 's/href="\(.*\)"/\1/; /^\.\.\/$/d'
}

@test "indices lead from the address to every file" {
    offer "acme/Tiny=$MODEL" "other/Model=$MODEL"
    [ "$(links "$URL/" | grep -c '^[^/]*/$')" -eq 2 ]
    links "$URL/acme/" | grep -qx Tiny/
    links "$URL/acme/" | grep -qx Tiny-GGUF/
    run ! grep -q Model <(links "$URL/acme/")
    same eval 'links "$URL/acme/Tiny/" | sort' == eval '"$WFS" ls "$MODEL" hf | sort'
    same eval 'links "$URL/acme/Tiny-GGUF/" | sed s/^Tiny-/model-/ | sort' == eval '"$WFS" ls "$MODEL" gguf | grep ^model- | sort'
    same get "$URL/acme/Tiny-GGUF/Tiny-Q8_0.gguf" == "$WFS" cat "$MODEL" gguf/model-Q8_0.gguf
    same get --range 5-70000 "$URL/acme/Tiny-GGUF/Tiny-Q8_0.gguf" == "$WFS" cat --range 5:69996 "$MODEL" gguf/model-Q8_0.gguf
    computed() { get "$URL/metrics" | grep '^wfs_computed_bytes_total'; }
    before=$(computed)
    [ "$(get --head "$URL/acme/Tiny-GGUF/Tiny-Q4_K_M.gguf" | tr -d '\r' | sed -n 's/^content-length: //Ip')" -eq "$("$WFS" cat "$MODEL" gguf/model-Q4_K_M.gguf | wc -c)" ]
    [ "$(computed)" = "$before" ]
}

@test "an index names odd files and directories so that their links work, and leads clients to its slash" {
    cp -r "$MODEL" "$OUT/model"
    chmod u+w "$OUT/model"
    name='a "b" & <i>%23#?: é.txt'
    echo odd >"$OUT/model/$name"
    mkdir "$OUT/model/1_Pooling"
    echo '{}' >"$OUT/model/1_Pooling/config.json"
    offer "acme/Tiny=$OUT/model"
    for link in $(links "$URL/acme/Tiny/"); do
        [[ $link != *[:\<\ \"]* ]]
        get "$URL/acme/Tiny/$link" >"$OUT/body"
        ! cmp --silent "$OUT/body" "$OUT/model/$name" || odd=found
    done
    [ "$odd" = found ]
    [ "$(links "$URL/acme/Tiny/1_Pooling/")" = config.json ]
    for path in acme acme/Tiny acme/Tiny/1_Pooling; do
        [ "$(curl --silent --output /dev/null --write-out '%{redirect_url}' "$URL/$path?x=y")" = "$URL/$path/" ]
    done
    for path in none none/ acme/None/ acme/Tiny/none acme/Tiny/none/ acme/Tiny/config.json/ api v2/acme metrics/x; do
        [ "$(status_of "$URL/$path")" = 404 ]
    done
    [ "$(curl --silent --path-as-is --output /dev/null --write-out '%{redirect_url}' "$URL//acme")" = "$URL/acme/" ]
}

@test "directories for engines are models, which others are found by name beside" {
    offer "acme/Tiny=$MODEL"
    get "$URL/api/models" | jq -r '.[].id' >"$OUT/ids"
    for model in MLX-4bit=mlx/4bit FP8_DYNAMIC=compressed-tensors/FP8_DYNAMIC bnb-nf4=bitsandbytes/nf4; do
        id=acme/Tiny-${model%=*} directory=${model#*=}
        grep -qx "$id" "$OUT/ids"
        get "$URL/api/models/$id" >"$OUT/model"
        same eval 'jq -r ".siblings[].rfilename" "$OUT/model" | sort' == eval '"$WFS" ls "$MODEL" "$directory" | sort'
        for name in config.json model.safetensors; do
            "$WFS" cat "$MODEL" "$directory/$name" >"$OUT/file"
            [ $name != config.json ] || get "$URL/$id/resolve/main/$name" | cmp - "$OUT/file"
            same get --range 100-90000 "$URL/$id/$name" == eval 'tail -c +101 "$OUT/file" | head -c 89901'
            [ "$(jq ".siblings[] | select(.rfilename == \"$name\") | .size" "$OUT/model")" -eq "$(stat -c %s "$OUT/file")" ]
        done
    done
    has_sizes() { # of all directories; the first look may have had no time for some
        get "$URL/view/acme/Tiny" >"$OUT/page"
        [ "$(grep -c '^<p>[0-9.]* [kMG]B</p>$' "$OUT/page")" -eq "$(grep -c '^acme/Tiny-' <(grep -v GGUF "$OUT/ids"))" ]
    }
    await has_sizes
    for model in MLX-4bit-g32=mlx/4bit-g32 oneshot-W4A16=compressed-tensors/oneshot/W4A16; do
        run ! grep -qx "acme/Tiny-${model%=*}" "$OUT/ids"
        same get "$URL/acme/Tiny-${model%=*}/config.json" == "$WFS" cat "$MODEL" "${model#*=}/config.json"
    done
    [ "$(status_of "$URL/acme/Tiny-MLX-4bit/resolve/main/none")" = 404 ]
    [ "$(status_of "$URL/api/models/acme/Tiny-MLX-5.5bit")" = 404 ]
    commits=$(for id in Tiny Tiny-GGUF Tiny-MLX-4bit Tiny-MLX-8bit; do get "$URL/api/models/acme/$id" | jq -r .sha; done | sort -u | wc -l)
    [ "$commits" -eq 4 ]
}

@test "a model's own name wins over a directory for an engine, and patterns list none of these" {
    offer "acme/Tiny=$MODEL" "acme/Tiny-FP8_DYNAMIC=$MODEL" "acme/X-W4A16=$MODEL" "acme/X=$MODEL"
    for id in Tiny-FP8_DYNAMIC X-W4A16; do
        same get "$URL/acme/$id/config.json" == "$WFS" cat "$MODEL" hf/config.json
    done
    [ "$(get "$URL/api/models" | jq -r '.[].id' | sort | uniq -d)" = "" ]
    kill "$SERVER"
    offer --show '*.json' "acme/Tiny=$MODEL"
    [ "$(get "$URL/api/models" | jq -r '.[].id')" = acme/Tiny ]
    same get "$URL/acme/Tiny-MLX-4bit/config.json" == "$WFS" cat "$MODEL" mlx/4bit/config.json
    [ "$(status_of "$URL/acme/Tiny-MLX-4bit/model.safetensors")" = 404 ]
}

@test "a model that cannot be one for an engine says why" {
    cp -r "$MODEL" "$OUT/plain"
    chmod -R u+w "$OUT/plain"
    jq '.model_type = "unheard_of" | .architectures = ["UnheardOf"]' "$MODEL/config.json" >"$OUT/plain/config.json"
    offer "acme/Plain=$OUT/plain"
    curl --silent --output "$OUT/body" "$URL/acme/Plain-MLX-4bit/model.safetensors"
    [[ $(jq -r .error "$OUT/body") == "acme/Plain-MLX-4bit has no file 'model.safetensors': "*unheard_of* ]]
    get "$URL/acme/Plain-FP8_DYNAMIC/" >"$OUT/index"
}

@test "a terminal gets the models and commands, and a script only the address" {
    need script
    offer "acme/Tiny=$MODEL"
    [ "$(wc -l <"$OUT/address")" -eq 1 ]
    [ ! -s "$SERVER_LOG" ]
    timeout 20 script -qec "$WFS serve --listen 127.0.0.1:0 acme/Tiny=$MODEL & sleep 1; kill \$!" "$OUT/typed" >/dev/null
    grep -q "HF_ENDPOINT=http://127.0.0.1:[0-9]* mlx_lm.server --model acme/Tiny-MLX-" "$OUT/typed"
}

@test "projectors and drafts have the names that llama-server looks for" {
    "$PYTHON" -c 'import sys, pathlib; sys.path.insert(0, sys.argv[1]); import golden
golden.make(golden.load("hy3"), pathlib.Path(sys.argv[2]))' "$BATS_TEST_DIRNAME/../golden" "$OUT/hy3"
    mkdir "$OUT/vision"
    cp "$BATS_TEST_DIRNAME/../data/gguf/quantized.gguf" "$OUT/vision/small.gguf"
    echo "GGUF projector" >"$OUT/vision/mmproj-small-F16.gguf"
    offer "acme/Hy3=$OUT/hy3" "acme/Small=$OUT/vision"
    links "$URL/acme/Hy3-GGUF/" | grep -qx mtp-Hy3-Q8_0.gguf
    get "$URL/acme/Hy3-GGUF/mtp-Hy3-Q8_0.gguf" | cmp - <("$WFS" cat "$OUT/hy3" gguf/mtp-model-Q8_0.gguf)
    get "$URL/acme/Small-GGUF/mmproj-small-F16.gguf" | cmp - "$OUT/vision/mmproj-small-F16.gguf"
}

@test "originals of an archive have their SHA-256 as ETag, and in lists, before anything is read" {
    local sum
    "$WFS" pack "$OUT/archive.wfs" --as tiny "$MODEL" >/dev/null
    offer "acme/Tiny=$OUT/archive.wfs/tiny"
    for name in model.safetensors config.json tokenizer.json; do
        sum=$(sha256sum <"$MODEL/$name" | cut -d ' ' -f 1)
        get --head --dump-header "$OUT/headers" "$URL/acme/Tiny/resolve/main/$name" >/dev/null
        [ "$(header ETag)" = "\"$sum\"" ]
        [ "$(get "$URL/api/models/acme/Tiny" | jq -r ".siblings[] | select(.rfilename == \"$name\").blobId")" = "$sum" ]
    done
    same get "$URL/acme/Tiny/resolve/main/model.safetensors" == cat "$MODEL/model.safetensors"
    # a computed file keeps its identity
    get --head --dump-header "$OUT/headers" "$URL/acme/Tiny-GGUF/resolve/main/Tiny-Q8_0.gguf" >/dev/null
    [ "$(header ETag)" != "\"$("$WFS" cat "$MODEL" gguf/model-Q8_0.gguf | sha256sum | cut -d ' ' -f 1)\"" ]
}
