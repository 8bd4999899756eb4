# LoRA adapters: mounted as themselves, and merged into a base.

load lib

setup_file() {
    load lib
    need_fuse
    need_numpy
    "$PYTHON" "$HERE/lora.py" "$BATS_FILE_TMPDIR"
}

setup() {
    ADAPTER=$BATS_FILE_TMPDIR/sql-lora
    BASE=$BATS_FILE_TMPDIR/base
    MNT=$BATS_TEST_TMPDIR/mnt
    export HF_HUB_CACHE=$BATS_TEST_TMPDIR/hub
}

@test "an adapter: both matrices of each weight, in the order and the names of the base's GGUF" {
    serve -o "base=$BASE" "$ADAPTER" "$MNT"
    [ "$(ls "$MNT/gguf" | tr '\n' ' ')" = "adapter-BF16.gguf adapter-F16.gguf adapter-F32.gguf adapter-Q8_0.gguf " ]
    cmp "$MNT/adapter.gguf" "$MNT/gguf/adapter-F32.gguf"
    cmp "$MNT/adapter_model.safetensors" "$ADAPTER/adapter_model.safetensors"
    [ ! -e "$MNT/model.gguf" ]
    "$PYTHON" "$HERE/lora.py" check "$MNT/gguf/adapter-F32.gguf" "$MNT/gguf/adapter-F16.gguf"
    unmount "$MNT"
    server_is_quiet
}

@test "an adapter whose base is not there: everything else, and why" {
    [ "$("$WFS" ls "$ADAPTER")" = "$(printf '%s\n' metadata.json gguf adapter_model.safetensors hf tensors adapter_config.json)" ]
    run "$WFS" cat "$ADAPTER" adapter.gguf
    [ "$status" -eq 1 ]
    [[ "$output" == *"the model that it is of is not known, -o base=DIR says where it is: nobody/tiny: there is no $HF_HUB_CACHE/models--nobody--tiny in the hub cache; 'hf download nobody/tiny' fetches it" ]]
    run -1 "$WFS" info --quantization "$ADAPTER"
    [[ $output == *": a LoRA adapter, and adapters are not quantized; -o lora= merges it with its base" ]]
    "$WFS" info "$ADAPTER" | grep -qx 'adapter     LoRA of 4 weights of nobody/tiny, rank 2, alpha 8'
    [ "$("$WFS" info --json "$ADAPTER" | jq -r .adapter)" = 'LoRA of 4 weights of nobody/tiny, rank 2, alpha 8' ]
}

@test "an adapter whose base is in the hub cache, without its weights" {
    mkdir -p "$HF_HUB_CACHE/models--nobody--tiny/snapshots/abc" "$HF_HUB_CACHE/models--nobody--tiny/refs"
    echo abc >"$HF_HUB_CACHE/models--nobody--tiny/refs/main"
    cp "$BASE/config.json" "$HF_HUB_CACHE/models--nobody--tiny/snapshots/abc/"
    cmp <("$WFS" cat "$ADAPTER" adapter.gguf) <("$WFS" cat -o "base=$BASE" "$ADAPTER" adapter.gguf)
}

@test "a path that adapter_config.json names is not followed" {
    cp -r "$ADAPTER" "$BATS_TEST_TMPDIR/adapter"
    sed "s|nobody/tiny|$BASE|" "$ADAPTER/adapter_config.json" >"$BATS_TEST_TMPDIR/adapter/adapter_config.json"
    run "$WFS" cat "$BATS_TEST_TMPDIR/adapter" adapter.gguf
    [ "$status" -eq 1 ]
    [[ "$output" == *"'$BASE' is not the name of a repository"* ]]
}

@test "-o lora=: every file of the mount shows the merged weights" {
    serve -o "lora=$ADAPTER" -o "lora=$BATS_FILE_TMPDIR/other:-0.5" "$BASE" "$MNT"
    "$PYTHON" "$HERE/lora.py" merged "$MNT"
    cmp "$MNT/hf/model.safetensors" "$MNT/model.safetensors"
    run -1 cmp -s "$MNT/model.safetensors" "$BASE/model.safetensors"
    grep -q "merged with $ADAPTER: 4 weights" "$MNT/metadata.json"
    unmount "$MNT"
}

@test "-o lora=: a range is the same as a slice of the whole" {
    local file=tensors/model.layers.0.mlp.up_proj.weight/f32
    serve -o "lora=$ADAPTER" "$BASE" "$MNT"
    dd if="$MNT/$file" bs=1 skip=517 count=803 2>/dev/null | cmp - <(dd if=<(cat "$MNT/$file") bs=1 skip=517 count=803 2>/dev/null)
    unmount "$MNT"
}

@test "-o lora=: an adapter that is changed while it is mounted" {
    cp -r "$ADAPTER" "$BATS_TEST_TMPDIR/adapter"
    serve -o "lora=$BATS_TEST_TMPDIR/adapter" "$BASE" "$MNT"
    cat "$MNT/tensors/model.norm.weight/raw" "$MNT/model.safetensors" >/dev/null
    printf x | dd of="$BATS_TEST_TMPDIR/adapter/adapter_model.safetensors" bs=1 seek=2000 conv=notrunc 2>/dev/null
    await unreadable "$MNT/model.safetensors"
    cat "$MNT/config.json" >/dev/null
    unmount "$MNT"
}

@test "-o lora= on packed weights: unpacked, merged in F32, rounded once" {
    "$PYTHON" "$HERE/lora.py" packed "$WFS" "$HERE/../data/packed" "$BATS_TEST_TMPDIR"
}

@test "-o lora= on a packed base: all of it is plain, and nothing says that it is packed" {
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
    grep -q '1 packed weights (gptq) are shown plain, as the model unpacked and saved again' "$MNT/metadata.json"
    cmp <(tail -c 2048 "$MNT/model.safetensors") "$MNT/tensors/$name.weight/raw"
    printf x | dd of="$BATS_TEST_TMPDIR/base/config.json" bs=1 conv=notrunc 2>/dev/null
    await unreadable "$MNT/model.safetensors"
    unmount "$MNT"
}

@test "-o lora= on a packed base: all files are those of the merged model saved again" {
    local options=(-o "lora=$BATS_FILE_TMPDIR/fp8-lora" -o name=sample) saved=$BATS_TEST_TMPDIR/saved
    "$WFS" cp -r "${options[@]}" "$BATS_FILE_TMPDIR/fp8" hf "$saved"
    run -1 cmp -s <("$WFS" cat "${options[@]}" "$BATS_FILE_TMPDIR/fp8" model.gguf) <("$WFS" cat -o name=sample "$BATS_FILE_TMPDIR/fp8" model.gguf)
    for file in model.gguf gguf/model-F32.gguf gguf/model-Q4_K_M.gguf model.safetensors config.json; do
        cmp <("$WFS" cat "${options[@]}" "$BATS_FILE_TMPDIR/fp8" $file) <("$WFS" cat -o name=sample "$saved" $file)
    done
}

@test "-o lora= on a packed base: what does not fit is one line" {
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
    [ "$output" = "wfs: option lora: $ADAPTER: tensor 'model.layers.0.mlp.down_proj.weight' is [16, 64] in the base, and [16, 24] in the adapter" ]
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

@test "-o lora= on a GGUF: as if the model had been merged first" {
    make_ggufs
    cmp <("$WFS" cat -o "$LORA" sample gguf/model-F32.gguf) <("$WFS" cat -o "$LORA" F32.gguf model.gguf)
    for file in model.safetensors hf/model.safetensors gguf/model-Q4_K_M.gguf; do
        cmp <("$WFS" cat -o "$LORA" sample $file) <("$WFS" cat -o "$LORA" -o name=sample F32.gguf $file)
    done
    "$WFS" cp -r -o dtype=f32 F16.gguf hf halves
    cmp <("$WFS" cat -o "$LORA" -o names=gguf halves tensors/blk.0.attn_q.weight/f16) <("$WFS" cat -o "$LORA" F16.gguf tensors/blk.0.attn_q.weight/raw)
    cmp <("$WFS" cat F16.gguf tensors/blk.0.attn_k.weight/raw) <("$WFS" cat -o "$LORA" F16.gguf tensors/blk.0.attn_k.weight/raw)
}

@test "-o lora= on a quantized GGUF: merged weights are F32, all others as they are" {
    make_ggufs
    "$WFS" cp -r -o dtype=f32 Q4_K_M.gguf hf plain
    "$WFS" cat -o "$LORA" Q4_K_M.gguf model.gguf >merged.gguf
    for name in blk.0.attn_q.weight blk.1.ffn_down.weight; do
        cmp <("$WFS" cat -o "$LORA" -o names=gguf plain tensors/$name/f32) <("$WFS" cat merged.gguf tensors/$name/raw)
    done
    for name in blk.0.attn_k.weight blk.1.ffn_up.weight output_norm.weight; do
        cmp <("$WFS" cat Q4_K_M.gguf tensors/$name/raw) <("$WFS" cat merged.gguf tensors/$name/raw)
    done
    cmp <("$WFS" cat -o requantize merged.gguf gguf/model-Q4_K_M.gguf) <("$WFS" cat -o "$LORA" -o requantize Q4_K_M.gguf gguf/model-Q4_K_M.gguf)
    "$WFS" cat -o "$LORA" Q4_K_M.gguf metadata.json | grep -q 'merged weights that the GGUF has in blocks are F32'
}

@test "-o lora= on a GGUF: several adapters, whole tensors, and what does not fit" {
    make_ggufs
    cp -r "$BATS_FILE_TMPDIR/whole-lora" whole
    cmp <("$WFS" cat -o "$LORA:2" -o lora=whole sample gguf/model-F32.gguf) <("$WFS" cat -o "$LORA:2" -o lora=whole F32.gguf model.gguf)
    run "$WFS" ls -o "lora=$ADAPTER" F32.gguf
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: $ADAPTER: tensor 'model.layers.0.mlp.down_proj.weight' is [256, 768] in the base, and [16, 24] in the adapter" ]
    "$WFS" cat -o override-kv=general.architecture=str:unheard F32.gguf model.gguf >unheard.gguf
    run "$WFS" ls -o "$LORA" unheard.gguf
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: unheard.gguf: what Hugging Face calls its tensors cannot be told: no family of this architecture is known" ]
}

@test "an adapter whose base is a GGUF" {
    make_ggufs
    cmp <("$WFS" cat -o base=sample "$BATS_FILE_TMPDIR/fp8-lora" adapter.gguf) <("$WFS" cat -o base=Q4_K_M.gguf "$BATS_FILE_TMPDIR/fp8-lora" adapter.gguf)
}

@test "-o lora=: what does not fit is one line" {
    run "$WFS" ls -o "lora=$ADAPTER:nan" "$BASE"
    [ "$status" -eq 2 ]
    [ "$output" = "wfs: option lora: 'nan' is not a scale" ]
    run "$WFS" ls -o "lora=$BATS_FILE_TMPDIR/larger" "$BASE"
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: $BATS_FILE_TMPDIR/larger: tensor 'model.layers.0.mlp.down_proj.weight' is [16, 24] in the base, and [16, 25] in the adapter" ]
    run "$WFS" ls -o "lora=$BASE" "$BASE"
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: $BASE: there is no adapter_config.json" ]
    run "$WFS" ls -o "lora=$ADAPTER" "$ADAPTER"
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: $ADAPTER: an adapter is not merged into another" ]
    run "$WFS" ls -o lora=/nowhere "$BASE"
    [ "$status" -eq 1 ]
    [ "$output" = "wfs: option lora: /nowhere: No such file or directory" ]
}
