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
    differs 1 "$WFS" diff "$llama" "$OUT/q8_0.gguf"
    [[ ${lines[0]} == "compared by GGUF's names and layout" ]]
    grep -qE '^tensor blk\.0\.ffn_up\.weight: .* in A, Q8_0 in B; [0-9]+ of [0-9]+ values differ, by .* \(0\.00[0-9]+ of A' <<<"$output"
    [[ $output != *"key "* ]]
    differs 1 "$WFS" diff -o name=other "$llama" "$OUT/f32.gguf"
    [[ $output == *"key general.name: Other (string) in A, Llama Tiny (string) in B"* ]]
    differs 1 "$WFS" diff "$OUT/f32.gguf" "$OUT/q8_0.gguf"
    [[ $output == *"key general.file_type: 0 (u32) in A, 7 (u32) in B"* ]]
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
