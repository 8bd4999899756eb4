# LoRA adapters: mounted as themselves, and merged into a base.

load lib

setup_file() {
    load lib
    "$PYTHON" "$HERE/lora.py" "$BATS_FILE_TMPDIR"
}

setup() {
    need_fuse
    need_numpy
    ADAPTER=$BATS_FILE_TMPDIR/sql-lora
    BASE=$BATS_FILE_TMPDIR/base
    MNT=$BATS_TEST_TMPDIR/mnt
    export HF_HUB_CACHE=$BATS_TEST_TMPDIR/hub
}

@test "adapter.gguf has both matrices of each weight, in the order and names of the base's GGUF" {
    serve -o "base=$BASE" "$ADAPTER" "$MNT"
    [ "$(ls "$MNT/gguf" | tr '\n' ' ')" = "adapter-BF16.gguf adapter-F16.gguf adapter-F32.gguf adapter-Q8_0.gguf " ]
    cmp "$MNT/adapter.gguf" "$MNT/gguf/adapter-F32.gguf"
    cmp "$MNT/adapter_model.safetensors" "$ADAPTER/adapter_model.safetensors"
    [ ! -e "$MNT/model.gguf" ]
    "$PYTHON" "$HERE/lora.py" check "$MNT/gguf/adapter-F32.gguf" "$MNT/gguf/adapter-F16.gguf"
    unmount "$MNT"
    server_is_quiet
}

@test "an adapter without its base shows everything else, and says why" {
    [ "$("$WFS" ls "$ADAPTER")" = "$(printf '%s\n' metadata.json gguf adapter_model.safetensors hf tensors adapter_config.json)" ]
    run "$WFS" cat "$ADAPTER" adapter.gguf
    [ "$status" -eq 1 ]
    [[ "$output" == *"cannot find the base model, use -o base=DIR: nobody/tiny: no $HF_HUB_CACHE/models--nobody--tiny in the hub cache; 'hf download nobody/tiny' fetches it" ]]
    run -1 "$WFS" info --quantization "$ADAPTER"
    [[ $output == *": a LoRA adapter, and adapters are not quantized; -o lora= merges it with its base" ]]
    "$WFS" info "$ADAPTER" | grep -qx 'adapter     LoRA of 4 weights of nobody/tiny, rank 2, alpha 8'
    [ "$("$WFS" info --json "$ADAPTER" | jq -r .adapter)" = 'LoRA of 4 weights of nobody/tiny, rank 2, alpha 8' ]
}

@test "a bad path in an option is an error in every command, and mount notes files left out" {
    for command in mount "mount -f" ls; do
        for option in base lora imatrix chat-template; do
            fails 1 "option $option: $BATS_TEST_TMPDIR/none: No such file or directory" \
                "$WFS" $command -o "$option=$BATS_TEST_TMPDIR/none" "$BASE" "$MNT"
            [ ! -e "$MNT" ]
        done
        for option in layout shards; do
            fails 2 "option $option: $BATS_TEST_TMPDIR/none.json: No such file" \
                "$WFS" $command -o "$option=$BATS_TEST_TMPDIR/none.json" "$BASE" "$MNT"
        done
        for adapter in "$ADAPTER" "$BATS_FILE_TMPDIR/other"; do
            fails 1 "option base: $BATS_TEST_TMPDIR/none: No such file or directory" \
                "$WFS" $command -o "base=$BATS_TEST_TMPDIR/none" "$adapter" "$MNT"
        done
    done
    run --separate-stderr "$WFS" mount "$ADAPTER" "$MNT"
    [ "$status" -eq 0 ]
    [[ $stderr == "wfs: note: adapter.gguf and gguf/ are left out: cannot find the base model"* ]]
    "$WFS" umount "$MNT"
}

@test "a base with broken weights: the error of the weights, or a hint if its other files do" {
    local base=$BATS_TEST_TMPDIR/base
    printf GGUFxxxx >"$BATS_TEST_TMPDIR/broken.gguf"
    fails 1 "option base: $BATS_TEST_TMPDIR/broken.gguf: unsupported version" "$WFS" ls -o "base=$BATS_TEST_TMPDIR/broken.gguf" "$ADAPTER"
    cp -r "$BASE" "$base"
    printf x >"$base/model.safetensors"
    same "$WFS" cat -o "base=$base" "$ADAPTER" adapter.gguf == "$WFS" cat -o "base=$BASE" "$ADAPTER" adapter.gguf
    run -0 "$WFS" cat -o "base=$base" "$ADAPTER" metadata.json
    [[ $output == *"no weights of the base are used: $base: model.safetensors: "* ]]
}

@test "broken weights of an adapter are named by the directory that the user typed" {
    cp -r "$ADAPTER" "$BATS_TEST_TMPDIR/broken"
    printf x >"$BATS_TEST_TMPDIR/broken/adapter_model.safetensors"
    fails 1 "option lora: $BATS_TEST_TMPDIR/broken: adapter_model.safetensors: " "$WFS" ls -o "lora=$BATS_TEST_TMPDIR/broken" "$BASE"
    fails 1 "option lora: $BATS_TEST_TMPDIR/broken/adapter_model.safetensors: " \
        "$WFS" ls -o "lora=$BATS_TEST_TMPDIR/broken/adapter_model.safetensors" "$BASE"
}

# Puts the base's config.json into the hub cache, as the snapshot that adapter_config.json leads to.
cache_base() {
    mkdir -p "$HF_HUB_CACHE/models--nobody--tiny/snapshots/abc" "$HF_HUB_CACHE/models--nobody--tiny/refs"
    echo abc >"$HF_HUB_CACHE/models--nobody--tiny/refs/main"
    cp "$BASE/config.json" "$HF_HUB_CACHE/models--nobody--tiny/snapshots/abc/"
}

@test "adapter.gguf has the mode, time and identity of an input that is its base's" {
    need getfattr
    cache_base
    local config=$HF_HUB_CACHE/models--nobody--tiny/snapshots/abc/config.json facts=()
    for change in true "chmod 640 $config" "sed -i s/rms_norm_eps/ignored/ $config"; do
        $change
        serve "$ADAPTER" "$MNT"
        facts+=("$(stat -c '%a %y' "$MNT/adapter.gguf") $(getfattr --only-values -n user.wfs.identity "$MNT/adapter.gguf")")
        unmount "$MNT"
    done
    [ "${facts[0]/#444/440}" = "${facts[1]}" ]
    [ "${facts[1]%% *}" = "${facts[2]%% *}" ]
    [ "$(printf '%s\n' "${facts[1]}" "${facts[2]}" | cut -d' ' -f3 | sort -u | wc -l)" -eq 2 ]
    [ "${facts[1]##* }" != "${facts[2]##* }" ]
}

@test "an adapter finds its base in the hub cache, even without weights" {
    cache_base
    same "$WFS" cat "$ADAPTER" adapter.gguf == "$WFS" cat -o "base=$BASE" "$ADAPTER" adapter.gguf
}

@test "a path that adapter_config.json names is not followed" {
    cp -r "$ADAPTER" "$BATS_TEST_TMPDIR/adapter"
    sed "s|nobody/tiny|$BASE|" "$ADAPTER/adapter_config.json" >"$BATS_TEST_TMPDIR/adapter/adapter_config.json"
    run "$WFS" cat "$BATS_TEST_TMPDIR/adapter" adapter.gguf
    [ "$status" -eq 1 ]
    [[ "$output" == *"'$BASE' is not a repository name"* ]]
}

@test "-o lora= merges the adapter into every file of the mount" {
    serve -o "lora=$ADAPTER" -o "lora=$BATS_FILE_TMPDIR/other:-0.5" "$BASE" "$MNT"
    "$PYTHON" "$HERE/lora.py" merged "$MNT"
    cmp "$MNT/hf/model.safetensors" "$MNT/model.safetensors"
    run -1 cmp -s "$MNT/model.safetensors" "$BASE/model.safetensors"
    grep -q "merged with $ADAPTER: 4 weights" "$MNT/metadata.json"
    unmount "$MNT"
}

@test "-o lora=: a range equals a slice of the whole" {
    local file=tensors/model.layers.0.mlp.up_proj.weight/f32
    serve -o "lora=$ADAPTER" "$BASE" "$MNT"
    same dd if="$MNT/$file" bs=1 skip=517 count=803 status=none == eval 'cat "$MNT/$file" | tail -c +518 | head -c 803'
    unmount "$MNT"
}

@test "-o lora=: changing the adapter makes reads fail" {
    cp -r "$ADAPTER" "$BATS_TEST_TMPDIR/adapter"
    serve -o "lora=$BATS_TEST_TMPDIR/adapter" "$BASE" "$MNT"
    cat "$MNT/tensors/model.norm.weight/raw" "$MNT/model.safetensors" >/dev/null
    printf x | dd of="$BATS_TEST_TMPDIR/adapter/adapter_model.safetensors" bs=1 seek=2000 conv=notrunc 2>/dev/null
    await unreadable "$MNT/model.safetensors"
    cat "$MNT/config.json" >/dev/null
    unmount "$MNT"
}

@test "-o lora= dequantizes packed weights, merges in F32 and rounds once" {
    "$PYTHON" "$HERE/lora.py" packed "$WFS" "$HERE/../data/packed" "$BATS_TEST_TMPDIR"
}

@test "-o lora= on a packed base leaves no trace of the packing" {
    local name=model.layers.0.mlp.down_proj
    "$PYTHON" "$HERE/lora.py" packed "$WFS" "$HERE/../data/packed" "$BATS_TEST_TMPDIR"
    cp -r "$HERE/../data/packed/gptq-4" "$BATS_TEST_TMPDIR/base"
    echo '{}' >"$BATS_TEST_TMPDIR/base/quantize_config.json"
    serve -o "lora=$BATS_TEST_TMPDIR/gptq-4" "$BATS_TEST_TMPDIR/base" "$MNT"
    [ "$(ls "$MNT/tensors")" = $name.weight ]
    cmp "$MNT/tensors/$name.weight/raw" "$MNT/tensors/$name.weight/bf16"
    cmp "$MNT/config.json" "$MNT/hf/config.json"
    [ "$(jq -c . "$MNT/config.json")" = '{"architectures":["LlamaForCausalLM"],"torch_dtype":"bfloat16"}' ]
    [ ! -e "$MNT/quantize_config.json" ]
    [ ! -e "$MNT/hf/quantize_config.json" ]
    grep -q '1 packed weights (gptq) are shown dequantized' "$MNT/metadata.json"
    same tail -c 2048 "$MNT/model.safetensors" == cat "$MNT/tensors/$name.weight/raw"
    printf x | dd of="$BATS_TEST_TMPDIR/base/config.json" bs=1 conv=notrunc 2>/dev/null
    await unreadable "$MNT/model.safetensors"
    unmount "$MNT"
}

@test "-o lora= on a packed base gives the files of the merged model saved again" {
    local options=(-o "lora=$BATS_FILE_TMPDIR/fp8-lora" -o name=sample) saved=$BATS_TEST_TMPDIR/saved
    "$WFS" cp -r "${options[@]}" "$BATS_FILE_TMPDIR/fp8" hf "$saved"
    differ "$WFS" cat "${options[@]}" "$BATS_FILE_TMPDIR/fp8" model.gguf == "$WFS" cat -o name=sample "$BATS_FILE_TMPDIR/fp8" model.gguf
    for file in model.gguf gguf/model-F32.gguf gguf/model-Q4_K_M.gguf model.safetensors config.json; do
        same "$WFS" cat "${options[@]}" "$BATS_FILE_TMPDIR/fp8" $file == "$WFS" cat -o name=sample "$saved" $file
    done
}

@test "-o lora= on a packed base that does not fit: one line" {
    local packed=$HERE/../data/packed/fp8-blocks
    "$PYTHON" "$HERE/lora.py" packed "$WFS" "$HERE/../data/packed" "$BATS_TEST_TMPDIR"
    mkdir "$BATS_TEST_TMPDIR/base"
    cp "$packed/model.safetensors" "$BATS_TEST_TMPDIR/base/"
    echo '{"quantization_config":{"quant_method":"fp8","weight_block_size":[2,2]}}' >"$BATS_TEST_TMPDIR/base/config.json"
    run "$WFS" ls -o "lora=$BATS_TEST_TMPDIR/fp8-blocks" "$BATS_TEST_TMPDIR/base"
    [ "$status" -eq 1 ]
    [[ "$output" == "wfs: option lora: tensor 'model.layers.0.mlp.down_proj.weight': "* ]]
    [ "${#lines[@]}" -eq 1 ]
    run "$WFS" ls -o "lora=$ADAPTER" "$packed"
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: $ADAPTER: tensor 'model.layers.0.mlp.down_proj.weight' is [16, 64] in the base, but [16, 24] in the adapter" ]
}

# The sample in F32, as a directory and as GGUF files.
make_ggufs() {
    "$WFS" cp -r -o dtype=f32 "$BATS_FILE_TMPDIR/fp8" hf "$BATS_TEST_TMPDIR/sample"
    cd "$BATS_TEST_TMPDIR" || return
    for type in F32 F16 Q4_K_M; do
        "$WFS" cat sample gguf/model-$type.gguf >$type.gguf
    done
    LORA=lora=$BATS_FILE_TMPDIR/fp8-lora
}

@test "-o lora= on a GGUF gives the GGUF of the merged model" {
    make_ggufs
    same "$WFS" cat -o "$LORA" sample gguf/model-F32.gguf == "$WFS" cat -o "$LORA" F32.gguf model.gguf
    for file in model.safetensors hf/model.safetensors gguf/model-Q4_K_M.gguf; do
        same "$WFS" cat -o "$LORA" sample $file == "$WFS" cat -o "$LORA" -o name=sample F32.gguf $file
    done
    "$WFS" cp -r -o dtype=f32 F16.gguf hf halves
    same "$WFS" cat -o "$LORA" -o names=gguf halves tensors/blk.0.attn_q.weight/f16 == "$WFS" cat -o "$LORA" F16.gguf tensors/blk.0.attn_q.weight/raw
    same "$WFS" cat F16.gguf tensors/blk.0.attn_k.weight/raw == "$WFS" cat -o "$LORA" F16.gguf tensors/blk.0.attn_k.weight/raw
}

@test "-o lora= on a quantized GGUF stores merged weights in F32 and keeps all others" {
    make_ggufs
    "$WFS" cp -r -o dtype=f32 Q4_K_M.gguf hf plain
    "$WFS" cat -o "$LORA" Q4_K_M.gguf model.gguf >merged.gguf
    for name in blk.0.attn_q.weight blk.1.ffn_down.weight; do
        same "$WFS" cat -o "$LORA" -o names=gguf plain tensors/$name/f32 == "$WFS" cat merged.gguf tensors/$name/raw
    done
    for name in blk.0.attn_k.weight blk.1.ffn_up.weight output_norm.weight; do
        same "$WFS" cat Q4_K_M.gguf tensors/$name/raw == "$WFS" cat merged.gguf tensors/$name/raw
    done
    same "$WFS" cat -o requantize merged.gguf gguf/model-Q4_K_M.gguf == "$WFS" cat -o "$LORA" -o requantize Q4_K_M.gguf gguf/model-Q4_K_M.gguf
    "$WFS" cat -o "$LORA" Q4_K_M.gguf metadata.json | grep -q 'merged weights that are quantized in the GGUF become F32'
}

@test "-o lora= on a GGUF takes several adapters and whole tensors, and refuses misfits" {
    make_ggufs
    cp -r "$BATS_FILE_TMPDIR/whole-lora" whole
    same "$WFS" cat -o "$LORA:2" -o lora=whole sample gguf/model-F32.gguf == "$WFS" cat -o "$LORA:2" -o lora=whole F32.gguf model.gguf
    run "$WFS" ls -o "lora=$ADAPTER" F32.gguf
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: $ADAPTER: tensor 'model.layers.0.mlp.down_proj.weight' is [256, 768] in the base, but [16, 24] in the adapter" ]
    "$WFS" cat -o override-kv=general.architecture=str:unheard F32.gguf model.gguf >unheard.gguf
    run "$WFS" ls -o "$LORA" unheard.gguf
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: unheard.gguf: the tensors' Hugging Face names are unknown: the architecture is unknown" ]
}

@test "the base of an adapter can be a GGUF" {
    make_ggufs
    same "$WFS" cat -o base=sample "$BATS_FILE_TMPDIR/fp8-lora" adapter.gguf == "$WFS" cat -o base=Q4_K_M.gguf "$BATS_FILE_TMPDIR/fp8-lora" adapter.gguf
}

@test "-o lora= that does not fit: one line" {
    run "$WFS" ls -o "lora=$ADAPTER:nan" "$BASE"
    [ "$status" -eq 2 ]
    [ "$output" = "wfs: option lora: 'nan' is not a scale" ]
    run "$WFS" ls -o "lora=$BATS_FILE_TMPDIR/larger" "$BASE"
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: $BATS_FILE_TMPDIR/larger: tensor 'model.layers.0.mlp.down_proj.weight' is [16, 24] in the base, but [16, 25] in the adapter" ]
    run "$WFS" ls -o "lora=$BASE" "$BASE"
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: $BASE: adapter_config.json is missing" ]
    run "$WFS" ls -o "lora=$ADAPTER" "$ADAPTER"
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: $ADAPTER: an adapter cannot be merged into another adapter" ]
    run "$WFS" ls -o lora=/nowhere "$BASE"
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: /nowhere: No such file or directory" ]
}

# The size and the time, in whole seconds, of model.safetensors as a mount with these options has it.
size_and_time() {
    serve "$@" "$BASE" "$MNT"
    stat -c '%s %Y' "$MNT/model.safetensors"
    unmount "$MNT"
}

@test "an option that changes bytes changes the time, even if the size is equal" {
    local plain merged half
    plain=$(size_and_time)
    merged=$(size_and_time -o "lora=$ADAPTER")
    half=$(size_and_time -o "lora=$ADAPTER:0.5")
    [ "${plain% *}" = "${merged% *}" ]
    [ "${plain% *}" = "${half% *}" ]
    [ "$(printf '%s\n' "$plain" "$merged" "$half" | sort -u | wc -l)" -eq 3 ]
    [ "${merged#* }" -le "$(date +%s)" ]
    [ "${plain#* }" -eq "$(stat -c %Y "$BASE/model.safetensors")" ]
    # the adapter is an input: another one in its place is another request
    cp -r "$ADAPTER" "$BATS_TEST_TMPDIR/adapter"
    merged=$(size_and_time -o "lora=$BATS_TEST_TMPDIR/adapter")
    touch -d '2024-02-03' "$BATS_TEST_TMPDIR/adapter/adapter_config.json"
    [ "$(size_and_time -o "lora=$BATS_TEST_TMPDIR/adapter")" != "$merged" ]
}

@test "equal options in any order give equal times" {
    local first
    first=$(size_and_time -o "lora=$ADAPTER,override-kv=general.name=str:a" -o pure,allow-trailing)
    [ "$(size_and_time -o "allow_trailing,override-kv=general.name=str:a" -o "pure,lora=$ADAPTER")" = "$first" ]
    [ "$(size_and_time -o "uid=1,lora=$ADAPTER,pure,override_kv=general.name=str:a,allow_trailing,noexec")" = "$first" ]
    [ "$(size_and_time -o "lora=$ADAPTER,override-kv=general.name=str:b" -o pure,allow-trailing)" != "$first" ]
    [ "$(size_and_time -o "lora=$ADAPTER,override-kv=general.name=str:a" -o pure)" != "$first" ]
}

@test "-o fold-scale makes llama.cpp's scale peft's; without it a note says that they differ" {
    need_numpy
    local other=$BATS_FILE_TMPDIR/other
    "$WFS" cp -o "base=$BASE" "$other" adapter.gguf "$BATS_TEST_TMPDIR/plain.gguf"
    "$WFS" cp -o "base=$BASE,fold-scale" "$other" adapter.gguf "$BATS_TEST_TMPDIR/folded.gguf"
    "$PYTHON" "$HERE/lora.py" folded "$BATS_TEST_TMPDIR/plain.gguf" "$BATS_TEST_TMPDIR/folded.gguf"
    "$WFS" info --all "$other" | grep -F "llama.cpp applies rsLoRA too weakly"
    "$WFS" cat "$other" metadata.json | grep -F "fold-scale folds the difference into lora_b"
    run -0 "$WFS" mount -o "base=$BASE" "$other" "$MNT"
    [[ $output == *"llama.cpp applies rsLoRA too weakly"* ]]
    "$WFS" umount "$MNT"
    "$WFS" info --all -o fold-scale "$other" | grep -F "wfs folds the scale of rsLoRA into lora_b"
    same "$WFS" cat -o "base=$BASE" "$ADAPTER" adapter.gguf == "$WFS" cat -o "base=$BASE,fold-scale" "$ADAPTER" adapter.gguf
}
