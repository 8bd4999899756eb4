# What compares and checks without a mount: sha256, diff, verify. Needs neither root nor /dev/fuse.

load lib

setup_file() {
    load lib
    mkdir "$BATS_FILE_TMPDIR/model"
    make_input dtypes "$BATS_FILE_TMPDIR/model/model.safetensors"
    make_input infinite "$BATS_FILE_TMPDIR/infinite.safetensors"
    make_input large "$BATS_FILE_TMPDIR/large.safetensors"
}

setup() {
    MODEL=$BATS_FILE_TMPDIR/model
    SOURCE=$MODEL/model.safetensors
    LARGE=$BATS_FILE_TMPDIR/large.safetensors
    OUT=$BATS_TEST_TMPDIR/out
    mkdir "$OUT"
}

@test "sha256: stored, computed and empty files are what sha256sum says of the copies, in the order asked for" {
    for path in tensors/large/q8_0 metadata.json tensors/large/raw; do
        "$WFS" cat "$LARGE" "$path" | sha256sum | sed "s,-\$,$path,"
    done >"$OUT/wanted"
    "$WFS" sha256 "$LARGE" tensors/large/q8_0 /metadata.json ./tensors//large/./raw >"$OUT/sums"
    diff "$OUT/wanted" "$OUT/sums"
    [ "$("$WFS" sha256 "$SOURCE" tensors/empty/raw)" = "$(sha256sum </dev/null | sed 's,-$,tensors/empty/raw,')" ]
}

@test "sha256: directories and all there is, in sha256sum's own format" {
    echo hello >"$MODEL/odd\\name.txt"
    "$WFS" sha256 "$MODEL" >"$OUT/SUMS"
    "$WFS" cp -r "$MODEL" / "$OUT/all"
    [ "$(find "$OUT/all" -type f | wc -l)" -eq "$(wc -l <"$OUT/SUMS")" ]
    (cd "$OUT/all" && sha256sum --strict --quiet -c ../SUMS)
    (cd "$OUT/all" && find . -type f -printf '%P\0' | xargs -0 sha256sum | sort) | diff - <(sort "$OUT/SUMS")
    [ "$("$WFS" sha256 "$MODEL" tensors/f32 | wc -l)" -eq "$("$WFS" ls "$MODEL" tensors/f32 | wc -l)" ]
}

@test "sha256: patterns, and names that only look like them" {
    [ "$("$WFS" sha256 "$SOURCE" 'tensors/f*/raw' | awk '{ print $2 }')" = "tensors/f16/raw
tensors/f32/raw
tensors/f64/raw" ]
    [ "$("$WFS" sha256 "$SOURCE" 'tensors/[ui]8/f32')" = "$("$WFS" sha256 "$SOURCE" tensors/i8/f32 tensors/u8/f32)" ]
    echo star >"$MODEL/a[1].txt"
    echo other >"$MODEL/a1.txt"
    [ "$("$WFS" sha256 "$MODEL" 'a[1].txt')" = "$(cd "$MODEL" && sha256sum 'a[1].txt')" ]
}

@test "sha256: what cannot be read is said, and the others are summed" {
    run --separate-stderr "$WFS" sha256 "$BATS_FILE_TMPDIR/infinite.safetensors" tensors/infinite/q4_0 no/such 'x*' tensors/infinite/raw
    [ "$status" -eq 1 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == *"  tensors/infinite/raw" ]]
    [[ $stderr == *"tensors/infinite/q4_0: "*"is not finite"* && $stderr == *"there is no 'no'"* && $stderr == *"there is no 'x*'"* ]]
}

# differs STATUS COMMAND...: that status, and nothing on stderr.
differs() {
    local wanted=$1
    shift
    run --separate-stderr "$@"
    echo "status $status: $stderr"
    [ "$status" -eq "$wanted" ]
    [ -z "$stderr" ]
}

@test "diff: what differs, by how much, as numpy says; the same is silent" {
    make_input differing "$OUT"
    differs 1 "$WFS" diff "$OUT/a.safetensors" "$OUT/b.safetensors"
    diff <(sort "$OUT/differences") <(sort <<<"$output")
    differs 1 "$WFS" diff -q "$OUT/a.safetensors" "$OUT/b.safetensors"
    [ "$output" = "6 of 9 tensors (2 in their values) and 1 key differ" ]
    cp "$OUT/a.safetensors" "$OUT/copy.safetensors"
    differs 0 "$WFS" diff "$OUT/a.safetensors" "$OUT/copy.safetensors"
    [ -z "$output" ]
    WFS_CPU=portable differs 0 "$WFS" diff "$MODEL" "$SOURCE"
}

@test "diff: a model and its GGUF are compared as GGUF has them" {
    local llama=$HERE/../data/gguf/models/llama-tiny
    "$WFS" cp "$llama" gguf/model-F32.gguf "$OUT/f32.gguf"
    "$WFS" cp "$llama" gguf/converter/model-q8_0.gguf "$OUT/q8_0.gguf"
    "$WFS" cp "$OUT/f32.gguf" model.gguf "$OUT/copy.gguf"
    differs 0 "$WFS" diff "$OUT/f32.gguf" "$OUT/copy.gguf"
    [ -z "$output" ]
    differs 1 "$WFS" diff "$llama" "$OUT/f32.gguf"
    [[ $output == *"tensor token_embd.weight: F16 in A, F32 in B; the values are equal"* ]]
    [ "${lines[-1]}" = "20 of 21 tensors (0 in their values) and 0 keys differ" ]
    differs 1 "$WFS" diff "$OUT/f32.gguf" "$llama"
    [ "${lines[-1]}" = "20 of 21 tensors (0 in their values) and 0 keys differ" ]
    differs 1 "$WFS" diff "$llama" "$OUT/q8_0.gguf"
    [[ ${lines[0]} == "compared by GGUF's names and layout" ]]
    grep -qE '^tensor blk\.0\.ffn_up\.weight: .* in A, Q8_0 in B; [0-9]+ of [0-9]+ values differ, by .* \(0\.00[0-9]+ of A' <<<"$output"
    [[ $output != *"key "* ]]
    differs 1 "$WFS" diff -o name=other "$llama" "$OUT/f32.gguf"
    [[ $output == *"key general.name: Other (string) in A, Llama Tiny (string) in B"* ]]
    differs 1 "$WFS" diff "$OUT/f32.gguf" "$OUT/q8_0.gguf"
    [[ $output == *"key general.file_type: 0 (u32) in A, 7 (u32) in B"* ]]
}

@test "diff: of a GGUF in parts no keys are others than the model's" {
    local llama=$HERE/../data/gguf/models/llama-tiny
    mkdir -p "$OUT/parts"
    "$WFS" cp "$llama" model.gguf "$OUT/whole.gguf"
    "$WFS" cp -o split=4 "$OUT/whole.gguf" "gguf/split/model-0*" "$OUT/parts"
    differs 1 "$WFS" diff "$llama" "$OUT/parts"
    [[ $output == *"(0 in their values) and 0 keys differ" ]]
}

@test "diff: weights without a configuration and a GGUF are compared as Hugging Face has them" {
    local llama=$HERE/../data/gguf/models/llama-tiny
    mkdir -p "$OUT/alone"
    cp "$llama/model.safetensors" "$OUT/alone/weights.safetensors"
    "$WFS" cp "$llama" gguf/model-F32.gguf "$OUT/f32.gguf"
    differs 1 "$WFS" diff "$OUT/alone/weights.safetensors" "$OUT/f32.gguf"
    [[ ${lines[0]} == "compared by Hugging Face's names and layout" ]]
    grep -F "tensor model.layers.0.self_attn.q_proj.weight: F16 in A, F32 in B; the values are equal" <<<"$output"
    run ! grep -E "^tensor .*: only in " <<<"$output"
}

@test "diff: an option that would change nothing is refused" {
    for option in lora=x q4_0=absmax7 layout=y pure dtype=f32 allow_other; do
        run --separate-stderr "$WFS" diff -o "$option" "$SOURCE" "$SOURCE"
        [ "$status" -eq 2 ]
        [ "$stderr" = "wfs: option ${option%%=*} changes nothing here, where there is only format, name, allow_trailing" ]
    done
    differs 0 "$WFS" diff -o name=a,format=safetensors "$SOURCE" "$SOURCE"
    [[ $("$WFS" diff --help) != *lora* ]]
}

@test "diff: what cannot be compared is 2" {
    local wanted="no/such: No such file or directory"
    run --separate-stderr "$WFS" diff "$SOURCE" ./no/such
    [ "$status" -eq 2 ]
    [[ $stderr == *"$wanted" ]]
    run --separate-stderr "$WFS" diff "$SOURCE"
    [ "$status" -eq 2 ]
    run --separate-stderr bash -c "'$WFS' diff '$SOURCE' '$LARGE' >/dev/full"
    [ "$status" -eq 2 ]
}

# verdict ARGUMENT...: status 1; the lines are in $output.
verdict() {
    differs 1 "$WFS" verify "$@"
    echo "$output"
}

@test "verify: identical to the byte; other keys; another mix" {
    local llama=$HERE/../data/gguf/models/llama-tiny
    for path in model.gguf gguf/model-Q4_K_M.gguf gguf/converter/model-q8_0.gguf; do
        "$WFS" cp "$llama" "$path" "$OUT/x.gguf"
        differs 0 "$WFS" verify "$OUT/x.gguf" "$llama"
        [ "$output" = "$OUT/x.gguf: identical to $path of $llama" ]
    done
    "$WFS" cp -o name=Other,override-kv=a.b=int:3 "$llama" gguf/model-Q4_K_M.gguf "$OUT/keys.gguf"
    verdict "$OUT/keys.gguf" "$llama"
    [[ $output == *": not identical; the nearest is gguf/model-Q4_K_M.gguf of $llama: 2 other keys: general.name, +a.b" ]]
    differs 0 "$WFS" verify -o name=Other,override-kv=a.b=int:3 "$OUT/keys.gguf" "$llama"
    "$WFS" cp -o tensor-type=attn_v=q8_0,tensor-type=ffn_up=f16 "$llama" gguf/model-Q4_K_M.gguf "$OUT/mix.gguf"
    verdict --all "$OUT/mix.gguf" "$llama"
    [[ ${lines[0]} == *"gguf/model-Q4_K_M.gguf of $llama: another mix: "[34]" tensors of other types" ]]
    grep -qE '^tensor blk\.1\.ffn_up\.weight: other type, F16 and not [A-Z0-9_]+, error ' <<<"$output"
}

@test "verify: rounded otherwise, and other weights, told by the error that numpy finds" {
    need jq
    local llama=$HERE/../data/gguf/models/llama-tiny file=$OUT/q8_0.gguf offset length
    "$WFS" cp "$llama" gguf/converter/model-q8_0.gguf "$file"
    read -r offset length < <("$WFS" cat "$file" tensors/blk.0.ffn_up.weight/metadata.json | jq -r '"\(.offset) \(.length)"')
    "$WFS" cat "$llama" tensors/model.layers.0.mlp.up_proj.weight/f32 >"$OUT/f32"
    cost=$(make_input error "$file" "$offset" "$length" "$OUT/f32")
    make_input patch "$file" "$offset" "$length" nudge
    verdict "$file" "$llama"
    [[ $output == *": an importance matrix, or another tool: 1 tensor rounded otherwise, with up to 1."*" times the error that their types cost" ]]
    run -1 "$WFS" verify --json "$file" "$llama"
    [ "$(jq -c '[.identical, .nearest, .counts.same, .counts."other rounding", .keys]' <<<"$output")" = '[false,"gguf/converter/model-q8_0.gguf",20,1,[]]' ]
    [ "$(jq -r '.tensors[] | .name, .verdict' <<<"$output" | xargs)" = "blk.0.ffn_up.weight other rounding" ]
    error=$(make_input error "$file" "$offset" "$length" "$OUT/f32")
    jq -e --argjson cost "$cost" --argjson error "$error" \
        '.tensors[0] | (.cost / $cost - 1 | fabs) < 1e-4 and (.error / $error - 1 | fabs) < 1e-4' <<<"$output"
    make_input patch "$file" "$offset" "$length" reverse
    verdict "$file" "$llama"
    [[ $output == *": weights that are not this model's: 1 of 21 tensors, with up to "*" times the error that their types cost" ]]
}

@test "verify: an importance matrix is known by its keys, and with it the file is identical" {
    need jq
    local llama=$HERE/../data/gguf/models/llama-tiny matrix=$OUT/imatrix.gguf name
    make_input imatrix "$matrix"
    for name in Q4_K_M IQ4_XS; do
        "$WFS" cp -o "imatrix=$matrix" "$llama" "gguf/model-$name.gguf" "$OUT/$name.gguf"
        differs 0 "$WFS" verify -o "imatrix=$matrix" "$OUT/$name.gguf" "$llama"
        verdict "$OUT/$name.gguf" "$llama"
        [[ $output == *"the nearest is gguf/model-$name.gguf of $llama: an importance matrix: "*" tensors rounded otherwise, with up to 1."* ]]
        run -1 "$WFS" verify --json "$OUT/$name.gguf" "$llama"
        jq -e '.counts."other rounding" > 5 and .counts."other weights" == 0' <<<"$output"
        [ "$(jq -c '[.keys[].key | select(startswith("quantize.imatrix."))] | length' <<<"$output")" = 4 ]
    done
}

@test "verify: weights of another model, and what another version writes" {
    need jq
    local llama=$HERE/../data/gguf/models/llama-tiny name
    for name in Q4_K_M Q2_K; do
        "$WFS" cp -o override-kv=general.quantization_version=int:1,override-kv=quantize.imatrix.file=str:x "$llama" \
            "gguf/model-$name.gguf" "$OUT/older.gguf"
        verdict "$OUT/older.gguf" "$llama"
        [[ $output == *"gguf/model-$name.gguf of $llama: 2 other keys: general.quantization_version, +quantize.imatrix.file" ]]
        "$WFS" cp "$HERE/../data/gguf/models/gemma-tiny" "gguf/model-$name.gguf" "$OUT/gemma.gguf"
        run -1 "$WFS" verify --json "$OUT/gemma.gguf" "$llama"
        [ "$(jq -c '[.identical, (.counts."other weights" > 5), .counts.missing, (.keys[0].key)]' <<<"$output")" = '[false,true,1,"general.architecture"]' ]
        verdict "$OUT/gemma.gguf" "$llama"
        [[ ${#lines[@]} -eq 1 && $output == *": weights that are not this model's: "*" times the error that their types cost; "*" of another shape; 1 tensor missing; "* ]]
    done
}

@test "verify: what cannot be verified is 2" {
    run --separate-stderr "$WFS" verify "$SOURCE" "$HERE/../data/gguf/models/llama-tiny"
    [ "$status" -eq 2 ]
    [[ $stderr == *"is not a GGUF file"* ]]
    run --separate-stderr "$WFS" verify "$OUT/none.gguf" "$SOURCE"
    [ "$status" -eq 2 ]
}
