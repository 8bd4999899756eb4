# Recipes of mergekit: merges that are computed when they are read.

load lib

setup_file() {
    load lib
    "$PYTHON" "$HERE/recipes.py" "$BATS_FILE_TMPDIR"
}

setup() {
    need_numpy
    MODELS=$BATS_FILE_TMPDIR
    MNT=$BATS_TEST_TMPDIR/mnt
}

@test "a linear merge and a frankenmerge have the bits that numpy computes" {
    for recipe in linear slices; do
        "$WFS" cat "$MODELS/$recipe.yaml" model.safetensors >"$BATS_TEST_TMPDIR/$recipe"
        "$PYTHON" "$HERE/recipes.py" "$recipe" "$BATS_TEST_TMPDIR/$recipe"
    done
    [ "$("$WFS" cat "$MODELS/slices.yaml" config.json | jq -r '"\(.num_hidden_layers) \(.dtype)"')" = "3 bfloat16" ]
    same "$WFS" cat "$MODELS/slices.yaml" mergekit_config.yml == cat "$MODELS/slices.yaml"
}

@test "every other file follows from the merge" {
    mkdir "$BATS_TEST_TMPDIR/linear"
    for file in model.safetensors config.json tokenizer.json tokenizer_config.json README.md; do
        "$WFS" cat "$MODELS/linear.yaml" "$file" >"$BATS_TEST_TMPDIR/linear/$file"
    done
    for file in model.gguf gguf/model-Q8_0.gguf mlx/4bit-g32/model.safetensors tensors/lm_head.weight/f32; do
        same "$WFS" cat "$MODELS/linear.yaml" "$file" == "$WFS" cat "$BATS_TEST_TMPDIR/linear" "$file"
        "$WFS" cat "$MODELS/linear.yaml" "$file" >/dev/null
    done
    "$WFS" diff "$MODELS/linear.yaml" "$BATS_TEST_TMPDIR/linear"
    run -1 "$WFS" diff "$MODELS/linear.yaml" "$MODELS/base"
    [[ $output == *"21 of 21 tensors (21 in their values) and 2 keys differ" ]]
}

@test "a GGUF and a recipe are models, too" {
    mkdir "$BATS_TEST_TMPDIR/mixed"
    for model in tuned half base; do
        "$WFS" cat -o name=m "$MODELS/$model" model.gguf >"$BATS_TEST_TMPDIR/mixed/$model"
    done
    cp "$MODELS/linear.yaml" "$BATS_TEST_TMPDIR/mixed/"
    "$WFS" cat "$BATS_TEST_TMPDIR/mixed/linear.yaml" model.safetensors >"$BATS_TEST_TMPDIR/out"
    "$PYTHON" "$HERE/recipes.py" linear "$BATS_TEST_TMPDIR/out"
    printf 'merge_method: passthrough\nmodels: [{model: linear.yaml}]\n' >"$MODELS/same.yaml"
    same "$WFS" cat "$MODELS/same.yaml" model.safetensors == cat "$BATS_TEST_TMPDIR/out"
}

@test "models are named beside the recipe, or in the hub cache" {
    export HF_HUB_CACHE=$BATS_TEST_TMPDIR/hub
    local snapshot=$HF_HUB_CACHE/models--nobody--tiny/snapshots/abc
    mkdir -p "$snapshot" "$HF_HUB_CACHE/models--nobody--tiny/refs"
    cp "$MODELS"/base/* "$snapshot/"
    printf abc >"$HF_HUB_CACHE/models--nobody--tiny/refs/main"
    printf 'merge_method: passthrough\nmodels: [{model: nobody/tiny@main}]\n' >"$MODELS/hub.yml"
    "$WFS" cat "$MODELS/hub.yml" README.md | head -8 |
        cmp - <(printf '%s\n' --- base_model: '- nobody/tiny' 'library_name: transformers' tags: '- mergekit' '- merge' '')
    same "$WFS" cat "$MODELS/hub.yml" tensors/lm_head.weight/raw == "$WFS" cat "$MODELS/base" tensors/lm_head.weight/raw
    printf 'merge_method: passthrough\nmodels: [{model: nobody/large}]\n' >"$MODELS/hub.yml"
    fails 1 "hub.yml: model 'nobody/large': nobody/large: no such file or directory, and no $HF_HUB_CACHE/models--nobody--large in the hub cache" \
        "$WFS" ls "$MODELS/hub.yml"
}

@test "a recipe opens nothing outside of its directory, unless the user says so" {
    mkdir "$BATS_TEST_TMPDIR/recipe"
    local recipe=$BATS_TEST_TMPDIR/recipe/out.yaml
    ln -s "$MODELS/base" "$BATS_TEST_TMPDIR/recipe/linked"
    cp -r "$MODELS/base" "$BATS_TEST_TMPDIR/other"
    for name in "$MODELS/base" ../other linked; do
        printf 'merge_method: passthrough\nmodels: [{model: %s}]\n' "$name" >"$recipe"
        fails 1 "is outside of the recipe's directory; -o follow-links opens it" "$WFS" ls "$recipe"
        same "$WFS" cat -o follow-links "$recipe" tensors/lm_head.weight/raw == "$WFS" cat "$MODELS/base" tensors/lm_head.weight/raw
    done
    cd "$MODELS" # whose models a name means otherwise
    printf 'merge_method: passthrough\nmodels: [{model: base}]\n' >"$recipe"
    fails 1 "/base is outside of the recipe's directory" "$WFS" ls "$recipe"
    printf 'merge_method: passthrough\nmodels: [{model: "http://127.0.0.1:9/m"}]\n' >"$recipe"
    fails 1 "a URL, which a recipe names only with -o follow-links" "$WFS" ls "$recipe"
    printf 'merge_method: passthrough\nmodels: [{model: "base+%s"}]\n' "$MODELS/base" >"$recipe"
    cp -r "$MODELS/base" "$BATS_TEST_TMPDIR/recipe/base"
    fails 1 "is outside of the recipe's directory" "$WFS" ls "$recipe"
}

@test "a mount: ranges, permissions of all models, and a model that changes" {
    need_fuse
    cp -r "$MODELS" "$BATS_TEST_TMPDIR/models"
    chmod 640 "$BATS_TEST_TMPDIR/models/half/model.safetensors"
    serve "$BATS_TEST_TMPDIR/models/linear.yaml" "$MNT"
    "$PYTHON" "$HERE/recipes.py" linear "$MNT/model.safetensors"
    same dd if="$MNT/model.safetensors" bs=1 skip=3001 count=803 status=none == \
        eval 'cat "$MNT/model.safetensors" | tail -c +3002 | head -c 803'
    [ "$(stat -c %a "$MNT/model.safetensors")" = 440 ]
    printf x | dd of="$BATS_TEST_TMPDIR/models/half/model.safetensors" bs=1 seek=3000 conv=notrunc 2>/dev/null
    await unreadable "$MNT/model.safetensors"
    unmount "$MNT"
}

@test "wfs info shows what is merged, tensor by tensor" {
    local merge='linear of 3 models (base, tuned, half), config.json of base; 139 kB are read for all tensors'
    "$WFS" info "$MODELS/linear.yaml" | grep -qx "merge       $merge; a range of a tensor takes just that range of every model"
    "$WFS" info --all "$MODELS/linear.yaml" |
        grep -qx 'model.layers.1.mlp.up_proj.weight = linear: tuned weight 0.75, half weight 0.3, base weight 0.1'
    [ "$("$WFS" info --json "$MODELS/linear.yaml" | jq -r '"\(.merge.method) \(.merge.base) \(.merge.tensors | length)"')" = "linear base 21" ]
    [ "$("$WFS" info --json "$MODELS/base" | jq .merge)" = null ]
}

@test "a tokenizer made of several is as private as each of them" {
    need_fuse
    cp -r "$MODELS" "$BATS_TEST_TMPDIR/models"
    printf 'merge_method: linear\nparameters: {weight: 1}\nmodels: [{model: base}, {model: tuned}]\n' >"$BATS_TEST_TMPDIR/models/two.yaml"
    chmod 600 "$BATS_TEST_TMPDIR/models/tuned/tokenizer.json"
    serve "$BATS_TEST_TMPDIR/models/two.yaml" "$MNT"
    [ "$(stat -c %a "$MNT/tokenizer.json" "$MNT/model.safetensors" | tr '\n' ' ')" = "444 444 " ]
    unmount "$MNT"
    echo 'tokenizer_source: union' >>"$BATS_TEST_TMPDIR/models/two.yaml"
    serve "$BATS_TEST_TMPDIR/models/two.yaml" "$MNT"
    [ "$(stat -c %a "$MNT/tokenizer.json" "$MNT/model.safetensors" | tr '\n' ' ')" = "400 400 " ]
    unmount "$MNT"
}

@test "a recipe that asks for what cannot be is one line" {
    sed 's/weight: 0.1/wieght: 0.1/' "$MODELS/linear.yaml" >"$MODELS/bad.yaml"
    fails 1 "bad.yaml: line 8: parameters of linear: unknown key 'wieght'; did you mean 'weight'?" "$WFS" ls "$MODELS/bad.yaml"
    printf 'base_model: base\nexperts:\n- {source_model: tuned, positive_prompts: [a]}\n' >"$MODELS/moe.yaml"
    fails 1 "moe.yaml: line 1: a recipe of mergekit-moe: wfs cannot compute its gates (gate_mode: hidden)" "$WFS" ls "$MODELS/moe.yaml"
    fails 2 "option seed: 'x' is not a number from 0 to" "$WFS" ls -o seed=x "$MODELS/linear.yaml"
}

@test "random methods depend on -o seed=N alone" {
    printf 'merge_method: dare_ties\nbase_model: base\nmodels: [{model: tuned, parameters: {weight: 1, density: 0.5}}]\n' \
        >"$MODELS/dare.yaml"
    local sums=()
    for seed in 7 7 8 4294967303; do # the last is 7 in the low 32 bits
        sums+=("$("$WFS" cat -o "seed=$seed" "$MODELS/dare.yaml" tensors/lm_head.weight/raw | sha256sum)")
    done
    [ "${sums[0]}" = "${sums[1]}" ]
    [ "${sums[0]}" != "${sums[2]}" ]
    [ "${sums[0]}" = "${sums[3]}" ]
    fails 1 "dare.yaml: dare_ties drops weights at random; -o seed=N chooses which" "$WFS" ls "$MODELS/dare.yaml"
}
