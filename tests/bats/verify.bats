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
    need_numpy
    MODEL=$BATS_FILE_TMPDIR/model
    SOURCE=$MODEL/model.safetensors
    LARGE=$BATS_FILE_TMPDIR/large.safetensors
    OUT=$BATS_TEST_TMPDIR/out
    mkdir "$OUT"
}

@test "sha256 of stored, computed and empty files equals sha256sum of copies, in the order given" {
    for path in tensors/large/q8_0 metadata.json tensors/large/raw; do
        "$WFS" cat "$LARGE" "$path" | sha256sum | sed "s,-\$,$path,"
    done >"$OUT/wanted"
    "$WFS" sha256 "$LARGE" tensors/large/q8_0 /metadata.json ./tensors//large/./raw >"$OUT/sums"
    diff "$OUT/wanted" "$OUT/sums"
    [ "$("$WFS" sha256 "$SOURCE" tensors/empty/raw)" = "$(sha256sum </dev/null | sed 's,-$,tensors/empty/raw,')" ]
}

@test "sha256 sums directories and whole trees in sha256sum's format" {
    echo hello >"$MODEL/odd\\name.txt"
    "$WFS" sha256 "$MODEL" >"$OUT/SUMS"
    "$WFS" cp -r "$MODEL" / "$OUT/all"
    [ "$(find "$OUT/all" -type f | wc -l)" -eq "$(wc -l <"$OUT/SUMS")" ]
    (cd "$OUT/all" && sha256sum --strict --quiet -c ../SUMS)
    (cd "$OUT/all" && find . -type f -printf '%P\0' | xargs -0 sha256sum | sort) | diff - <(sort "$OUT/SUMS")
    [ "$("$WFS" sha256 "$MODEL" tensors/f32 | wc -l)" -eq "$("$WFS" ls "$MODEL" tensors/f32 | wc -l)" ]
}

@test "sha256 takes patterns, and names that look like patterns" {
    [ "$("$WFS" sha256 "$SOURCE" 'tensors/f*/raw' | awk '{ print $2 }')" = "tensors/f16/raw
tensors/f32/raw
tensors/f64/raw" ]
    [ "$("$WFS" sha256 "$SOURCE" 'tensors/[ui]8/f32')" = "$("$WFS" sha256 "$SOURCE" tensors/i8/f32 tensors/u8/f32)" ]
    echo star >"$MODEL/a[1].txt"
    echo other >"$MODEL/a1.txt"
    [ "$("$WFS" sha256 "$MODEL" 'a[1].txt')" = "$(cd "$MODEL" && sha256sum 'a[1].txt')" ]
}

@test "sha256 reports unreadable files and sums the others" {
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

@test "diff measures differences as numpy does, and is silent about equal sources" {
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

@test "diff compares a model and its GGUF with GGUF names" {
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
    [[ ${lines[0]} == "compared with GGUF names and shapes" ]]
    grep -qE '^tensor blk\.0\.ffn_up\.weight: .* in A, Q8_0 in B; [0-9]+ of [0-9]+ values differ, by .* \(0\.00[0-9]+ of A' <<<"$output"
    [[ $output != *"key "* ]]
    differs 1 "$WFS" diff -o name=other "$llama" "$OUT/f32.gguf"
    [[ $output == *"key general.name: Other (string) in A, Llama Tiny (string) in B"* ]]
    differs 1 "$WFS" diff "$OUT/f32.gguf" "$OUT/q8_0.gguf"
    [[ $output == *"key general.file_type: 0 (u32) in A, 7 (u32) in B"* ]]
}

@test "diff ignores the split keys of a sharded GGUF" {
    local llama=$HERE/../data/gguf/models/llama-tiny
    mkdir -p "$OUT/parts"
    "$WFS" cp "$llama" model.gguf "$OUT/whole.gguf"
    "$WFS" cp -o split=4 "$OUT/whole.gguf" "gguf/split/model-0*" "$OUT/parts"
    differs 1 "$WFS" diff "$llama" "$OUT/parts"
    [[ $output == *"(0 in their values) and 0 keys differ" ]]
}

@test "diff compares weights without a configuration with a GGUF by Hugging Face names" {
    local llama=$HERE/../data/gguf/models/llama-tiny
    mkdir -p "$OUT/alone"
    cp "$llama/model.safetensors" "$OUT/alone/weights.safetensors"
    "$WFS" cp "$llama" gguf/model-F32.gguf "$OUT/f32.gguf"
    differs 1 "$WFS" diff "$OUT/alone/weights.safetensors" "$OUT/f32.gguf"
    [[ ${lines[0]} == "compared with Hugging Face names and shapes" ]]
    grep -F "tensor model.layers.0.self_attn.q_proj.weight: F16 in A, F32 in B; the values are equal" <<<"$output"
    run ! grep -E "^tensor .*: only in " <<<"$output"
}

@test "diff refuses an option without effect" {
    for option in lora=x q4_0=absmax7 layout=y pure dtype=f32 allow_other; do
        run --separate-stderr "$WFS" diff -o "$option" "$SOURCE" "$SOURCE"
        [ "$status" -eq 2 ]
        [ "$stderr" = "wfs: option ${option%%=*} has no effect on this command; it takes format, name, seed, lora-merge-dtype, partial, allow_trailing, optimizer, follow-links, cache, cache-size, offline, timeout, cacert" ]
    done
    differs 0 "$WFS" diff -o name=a,format=safetensors "$SOURCE" "$SOURCE"
    [[ $("$WFS" diff --help) != *" lora="* ]]
}

@test "diff exits with 2 if it cannot compare" {
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

# made_by WANTED FILE SOURCE: verify's answer is "identical", and the command that it prints makes the file again.
made_by() {
    differs 0 "$WFS" verify "$2" "$3"
    echo "$output"
    [ "${#lines[@]}" -eq 2 ]
    [[ ${lines[0]} == "$2: identical to "* && ${lines[1]} == "made by: wfs cp $1"* ]]
    cp "$2" "$OUT/original.gguf"
    rm "$2"
    eval "${lines[1]/#made by: wfs/"$WFS"}"
    cmp "$OUT/original.gguf" "$2"
}

@test "verify finds how identical files were made: outtypes, mixes and options" {
    local llama=$HERE/../data/gguf/models/llama-tiny path option
    for path in model.gguf gguf/model-Q4_K_M.gguf gguf/converter/model-q8_0.gguf; do
        "$WFS" cp "$llama" "$path" "$OUT/x.gguf"
        made_by "$llama $path" "$OUT/x.gguf" "$llama"
    done
    for option in 'tensor-type=attn_v=q8_0,tensor-type=ffn_up=f16' leave-output-tensor token-embedding-type=q4_0 \
        "name=Other-7B,override-kv=general.author=str:it's me\\, \$you" override-kv=general.quantization_version=int:1; do
        "$WFS" cp -o "$option" "$llama" gguf/model-Q4_K_M.gguf "$OUT/x.gguf"
        made_by "" "$OUT/x.gguf" "$llama"
    done
}

@test "verify tells keys that only describe a model from others" {
    local llama=$HERE/../data/gguf/models/llama-tiny
    "$WFS" cp -o name=Other,override-kv=a.b=int:3 "$llama" gguf/model-Q4_K_M.gguf "$OUT/keys.gguf"
    verdict "$OUT/keys.gguf" "$llama"
    [[ $output == *": different; the nearest is gguf/model-Q4_K_M.gguf of $llama: 1 other key: +a.b" ]]
    differs 0 "$WFS" verify -o name=Other,override-kv=a.b=int:3 "$OUT/keys.gguf" "$llama"
    "$WFS" cp "$llama" model.gguf "$OUT/plain.gguf"
    sed 's/general.name/general.nama/' "$OUT/plain.gguf" >"$OUT/renamed.gguf"
    differs 3 "$WFS" verify "$OUT/renamed.gguf" "$llama"
    [[ ${lines[0]} == *": equal, but not identical, to model.gguf of $llama: 1 other key: -general.name" ]]
    sed 's/llama.block_count/llama.block_cound/' "$OUT/plain.gguf" >"$OUT/renamed.gguf"
    verdict "$OUT/renamed.gguf" "$llama"
}

@test "verify counts the near ties that ggml makes on ARM, and takes no altered block for one" {
    need jq
    local llama=$OUT/llama mix offset count
    make_input contracted "$llama"
    for mix in Q4_0 Q4_K_S Q6_K; do
        "$WFS" cp "$llama" "gguf/model-$mix.gguf" "$OUT/x.gguf"
        offset=$("$WFS" cat "$OUT/x.gguf" tensors/blk.0.attn_output.weight/metadata.json | jq .offset)
        type=${mix,,}
        count=$(make_input contract "$OUT/x.gguf" "$offset" "${type%_s}" own)
        run --separate-stderr "$WFS" verify --json "$OUT/x.gguf" "$llama"
        echo "$output"
        [ "$status" -eq 3 ]
        jq -e --argjson n "$count" '.answer == "equal" and .blocks.different == $n and .blocks.near_ties == $n and .keys == []' <<<"$output"
        jq -e '.tensors | length == 1 and (.[0] | .name == "blk.0.attn_output.weight" and .verdict == "near ties" and .blocks.largest > 0.5)' <<<"$output"
        differs 3 "$WFS" verify "$OUT/x.gguf" "$llama"
        [[ ${lines[0]} == *": equal, but not identical, to gguf/model-$mix.gguf of $llama: near ties, as another rounding gives: $count of "* ]]
        [[ ${lines[1]} == "made like: wfs cp $llama gguf/model-$mix.gguf $OUT/x.gguf" ]]
        make_input contract "$OUT/x.gguf" "$offset" "${type%_s}" altered
        differs 1 "$WFS" verify "$OUT/x.gguf" "$llama"
        [[ $output == *"1 tensor rounded differently"*"; first blk.0.attn_output.weight, $((count + 1)) of "* ]]
    done
}

@test "verify calls files equal that differ only in what lies around the tensors" {
    local llama=$HERE/../data/gguf/models/llama-tiny
    "$WFS" cp "$llama" model.gguf "$OUT/x.gguf"
    printf 'x' >>"$OUT/x.gguf"
    differs 3 "$WFS" verify "$OUT/x.gguf" "$llama"
    [[ ${lines[0]} == *": the same tensors and keys in another order or alignment" ]]
}

@test "verify tells rounding from other weights by the error that numpy finds" {
    need jq
    local llama=$HERE/../data/gguf/models/llama-tiny file=$OUT/q8_0.gguf offset length
    "$WFS" cp "$llama" gguf/converter/model-q8_0.gguf "$file"
    read -r offset length < <("$WFS" cat "$file" tensors/blk.0.ffn_up.weight/metadata.json | jq -r '"\(.offset) \(.length)"')
    "$WFS" cat "$llama" tensors/model.layers.0.mlp.up_proj.weight/f32 >"$OUT/f32"
    cost=$(make_input error "$file" "$offset" "$length" "$OUT/f32")
    make_input patch "$file" "$offset" "$length" nudge
    verdict "$file" "$llama"
    [[ $output == *": an importance matrix, or another tool: 1 tensor rounded differently, with up to 1."*" times the error of their types; first blk.0.ffn_up.weight, "* ]]
    run -1 "$WFS" verify --json "$file" "$llama"
    [ "$(jq -c '[.identical, .nearest, .counts.same, .counts."other rounding", .keys]' <<<"$output")" = '[false,"gguf/converter/model-q8_0.gguf",20,1,[]]' ]
    [ "$(jq -r '.tensors[] | .name, .verdict' <<<"$output" | xargs)" = "blk.0.ffn_up.weight other rounding" ]
    error=$(make_input error "$file" "$offset" "$length" "$OUT/f32")
    jq -e --argjson cost "$cost" --argjson error "$error" \
        '.tensors[0] | (.cost / $cost - 1 | fabs) < 1e-4 and (.error / $error - 1 | fabs) < 1e-4' <<<"$output"
    make_input patch "$file" "$offset" "$length" reverse
    verdict "$file" "$llama"
    [[ $output == *": weights of another model: 1 of 21 tensors, with up to "*" times the error of their types; first blk.0.ffn_up.weight, "* ]]
}

@test "verify proves by its codes what an unknown importance matrix gives, and needs the matrix for an identical file" {
    need jq
    local llama=$HERE/../data/gguf/models/llama-tiny matrix=$OUT/imatrix.gguf name
    make_input imatrix "$matrix"
    for name in Q4_K_M IQ4_XS; do
        "$WFS" cp -o "imatrix=$matrix" "$llama" "gguf/model-$name.gguf" "$OUT/$name.gguf"
        differs 0 "$WFS" verify -o "imatrix=$matrix" "$OUT/$name.gguf" "$llama"
        differs 4 "$WFS" verify "$OUT/$name.gguf" "$llama"
        [[ ${lines[0]} == *": quantized from the same weights with other scales than gguf/model-$name.gguf of $llama: the codes of "*" tensors are the nearest for their scales, and the scales are within 0."* ]]
        [[ ${lines[1]} == "made like: wfs cp $llama gguf/model-$name.gguf "* ]]
        run -4 "$WFS" verify --json "$OUT/$name.gguf" "$llama"
        jq -e '.answer == "nearest codes" and .counts."nearest codes" > 5 and .counts."other weights" == 0' <<<"$output"
        jq -e '.codes.all > 5000 and .codes.other == 0 and .scales.outside == 0 and .scales.least > 0.5 and .scales.most < 1.7' <<<"$output"
        [ "$(jq -c '[.keys[].key | select(startswith("quantize.imatrix."))] | length' <<<"$output")" = 4 ]
    done
}

@test "verify finds a changed code or scale in a file of an unknown importance matrix, and other weights" {
    need jq
    local llama=$OUT/llama mix name=blk.0.attn_output.weight scale code offset length how
    make_input contracted "$llama"
    make_input imatrix "$OUT/imatrix.gguf" 256
    while read -r mix scale code; do
        "$WFS" cp -o "imatrix=$OUT/imatrix.gguf" "$llama" "gguf/model-$mix.gguf" "$OUT/$mix.gguf"
        run -4 "$WFS" verify --json "$OUT/$mix.gguf" "$llama"
        jq -e '.codes == {"all": 458752, "other": 0, "second_nearest": 0} and .scales.outside == 0' <<<"$output"
        read -r offset length < <("$WFS" cat "$OUT/$mix.gguf" "tensors/$name/metadata.json" | jq -r '"\(.offset) \(.length)"')
        for how in half more code; do
            cp "$OUT/$mix.gguf" "$OUT/x.gguf"
            make_input change "$OUT/x.gguf" "$offset" "$length" "$([ $how = code ] && echo "$code" || echo "$scale")" "$how"
            run -1 "$WFS" verify --json "$OUT/x.gguf" "$llama"
            jq -e --arg name $name --arg how $how '[.tensors[] | select(.verdict != "nearest codes")] | length == 1 and
                (.[0] | .name == $name and .codes.first_other == 128 and (.codes.other == 1 or ($how != "code" and .codes.other > 100)))' <<<"$output"
            verdict "$OUT/x.gguf" "$llama"
            [[ $output == *"; first $name, "*" of 65536 codes are not the nearest for their scales, first in block 128"* ]]
        done
    done <<<"Q4_K_S 0 60
Q6_K 208 20"
    make_input contracted "$OUT/other"
    "$PYTHON" - "$OUT/other/model.safetensors" <<'END'
import sys

data = bytearray(open(sys.argv[1], "rb").read())
start = 8 + int.from_bytes(data[:8], "little")
data[start + 2:] = data[start:-2]  # each weight in the place of the next
open(sys.argv[1], "wb").write(data)
END
    run -1 "$WFS" verify --json "$OUT/Q4_K_S.gguf" "$OUT/other"
    jq -e '.counts."nearest codes" == 0 and .counts."other weights" >= 7' <<<"$output"
}

@test "verify finds the cast of the weights before they were quantized" {
    need jq
    local llama=$OUT/llama
    make_input contracted "$llama"
    make_input imatrix "$OUT/imatrix.gguf" 256
    "$WFS" cp "$llama" gguf/model-BF16.gguf "$OUT/bf16.gguf"
    "$WFS" cp -o "imatrix=$OUT/imatrix.gguf" "$OUT/bf16.gguf" gguf/model-Q4_K_S.gguf "$OUT/x.gguf"
    run -4 "$WFS" verify --json "$OUT/x.gguf" "$llama"
    jq -e '[.tensors[] | select(.verdict == "nearest codes") | .codes.cast == "BF16"] | length >= 7 and all' <<<"$output"
}

@test "verify reports weights of another model, and files of another version" {
    need jq
    local llama=$HERE/../data/gguf/models/llama-tiny name
    for name in Q4_K_M Q2_K; do
        "$WFS" cp -o override-kv=general.quantization_version=int:1,override-kv=quantize.imatrix.file=str:x "$llama" \
            "gguf/model-$name.gguf" "$OUT/older.gguf"
        differs 3 "$WFS" verify "$OUT/older.gguf" "$llama"
        [[ ${lines[0]} == *": equal, but not identical, to gguf/model-$name.gguf of $llama: 1 other key: +quantize.imatrix.file" ]]
        [[ ${lines[1]} == "made like: wfs cp -o override-kv=general.quantization_version=int:1 $llama "* ]]
        "$WFS" cp "$HERE/../data/gguf/models/gemma-tiny" "gguf/model-$name.gguf" "$OUT/gemma.gguf"
        run -1 "$WFS" verify --json "$OUT/gemma.gguf" "$llama"
        [ "$(jq -c '[.identical, (.counts."other weights" > 5), .counts.missing, (.keys[0].key)]' <<<"$output")" = '[false,true,1,"general.architecture"]' ]
        verdict "$OUT/gemma.gguf" "$llama"
        [[ ${#lines[@]} -eq 1 && $output == *": weights of another model: "*" times the error of their types; "*" of another shape; 1 tensor missing; "* ]]
    done
}

@test "verify exits with 2 if it cannot compare" {
    fails 2 "out/missing.gguf: No such file or directory" "$WFS" verify out/missing.gguf "$SOURCE"
    [[ $stderr != *download* ]]
    run --separate-stderr "$WFS" verify "$SOURCE" "$HERE/../data/gguf/models/llama-tiny"
    [ "$status" -eq 2 ]
    [[ $stderr == *": not a GGUF file"* ]]
    run --separate-stderr "$WFS" verify "$OUT/none.gguf" "$SOURCE"
    [ "$status" -eq 2 ]
}

@test "verify ARCHIVE and info --check test every member's CRC and name damaged members" {
    python3 - "$OUT" "$BATS_TEST_DIRNAME" <<'EOF'
import sys, zipfile
sys.path.insert(0, sys.argv[2])
import make_torch_file
out = sys.argv[1]
make_torch_file.write(f"{out}/good.pt", {"a": (None, (8,), b"\1\2" * 8), "b": (None, (8,), b"\3\4" * 8)})
data = bytearray(open(f"{out}/good.pt", "rb").read())
data[data.index(b"\3\4" * 8)] ^= 1
open(f"{out}/bad.pt", "wb").write(data)
for signature, crc in (b"PK\3\4", 14), (b"PK\1\2", 16):  # as torch writes them without computing CRCs
    at = data.find(signature)
    while at >= 0:
        data[at + crc:at + crc + 4] = bytes(4)
        at = data.find(signature, at + 4)
open(f"{out}/unknown.pt", "wb").write(data)
EOF
    run --separate-stderr "$WFS" verify "$OUT/good.pt"
    [ "$status" -eq 0 ]
    [[ $output == "$OUT/good.pt: 4 of 4 members have the CRC of the directory, "* ]]
    [ -z "$stderr" ]
    run --separate-stderr "$WFS" verify "$OUT/bad.pt"
    [ "$status" -eq 1 ]
    [[ $stderr == *"/bad.pt: archive/data/1: damaged: "* ]]
    run "$WFS" info --check "$OUT/good.pt"
    [ "$status" -eq 0 ]
    [[ $output == *"4 of 4 members"* ]]
    run "$WFS" info --check "$OUT/bad.pt"
    [ "$status" -eq 1 ]
    run --separate-stderr "$WFS" verify "$OUT/unknown.pt"
    [ "$status" -eq 0 ]
    [[ $output == "$OUT/unknown.pt: 0 of 4 members have the CRC of the directory, "*"; of 4 members the directory has no CRC" ]]
    same "$WFS" cat "$OUT/unknown.pt" tensors/a/raw == printf '\1\2%.0s' {1..8}
    run "$WFS" verify "$SOURCE"
    [ "$status" -eq 2 ]
    [[ $output == *"not a zip archive of torch or numpy"* ]]
}

# sample_with_rules MODEL: a model whose file two rules change, those of ByteLevel and of repetition_penalty.
sample_with_rules() {
    "$PYTHON" "$HERE/../data/make.py" sample "$1"
    echo '{"repetition_penalty": 1.5}' >"$1/generation_config.json"
    jq '.post_processor = {"type": "ByteLevel"}' "$1/tokenizer.json" >"$OUT/tokenizer.json"
    mv "$OUT/tokenizer.json" "$1/tokenizer.json"
}

@test "verify goes through the builds of llama.cpp" {
    need jq
    local model=$OUT/gpt-two build
    sample_with_rules "$model"
    # every known build: its file is of one run of builds, to which it belongs
    for build in $("$WFS" complete -- cp -o llama.cpp= | tail -n +2 | cut -f 1 | sed 's/llama.cpp=//'); do
        "$WFS" cp -o "llama.cpp=$build" "$model" gguf/model-F16.gguf "$OUT/$build.gguf"
        run -0 "$WFS" verify --json "$OUT/$build.gguf" "$model"
        jq -e --argjson build "${build#b}" '.identical and .builds.first <= $build and .builds.last >= $build' <<<"$output"
    done
    run -0 "$WFS" verify "$OUT/b10472.gguf" "$model"
    [[ ${lines[0]} == *": identical to gguf/model-F16.gguf of $model, as llama.cpp b10470 to b10605 writes it" ]]
    [[ ${lines[1]} == "made by: wfs cp -o llama.cpp=b10605 "* ]]
    # the converter writes the keys of llama-quantize in another order
    "$WFS" cp -o llama.cpp=b10472 "$model" gguf/converter/model-q8_0.gguf "$OUT/q8_0.gguf"
    run -0 "$WFS" verify "$OUT/q8_0.gguf" "$model"
    [[ ${lines[0]} == *": identical to gguf/converter/model-q8_0.gguf of $model, as llama.cpp b10470 to b10605 writes it" ]]
    run -0 "$WFS" verify "$OUT/b10830.gguf" "$model"
    [[ ${lines[0]} == *", as llama.cpp b10615 to b11181 writes it" ]]
    run -0 "$WFS" verify --json "$OUT/b11549.gguf" "$model"
    [ "$(jq -c .builds <<<"$output")" = '{"first":11192,"last":11549}' ]
    [ "$(jq -r .command <<<"$output")" = "wfs cp $model gguf/model-F16.gguf $OUT/b11549.gguf" ]
}

@test "verify calls files equal whose keys are those of another build, and names them" {
    need jq
    local model=$OUT/gpt-two keys=tokenizer.ggml.add_bos_token,tokenizer.ggml.add_eos_token
    sample_with_rules "$model"
    "$WFS" cp "$model" gguf/model-F16.gguf "$OUT/new.gguf"
    run -3 "$WFS" verify -o llama.cpp=b10470 "$OUT/new.gguf" "$model"
    [[ ${lines[0]} == *"; llama.cpp b11192 to b11549 writes tokenizer.ggml.add_bos_token, tokenizer.ggml.add_eos_token" ]]
    run -3 "$WFS" verify --json -o llama.cpp=b10470 "$OUT/new.gguf" "$model"
    [ "$(jq -r '[.keys[] | select(.builds.first == 11192) | .key] | join(",")' <<<"$output")" = "$keys" ]
    # a value that no build writes
    "$WFS" cp -o override-kv=tokenizer.ggml.add_bos_token=bool:true "$model" gguf/model-F16.gguf "$OUT/true.gguf"
    run -1 "$WFS" verify "$OUT/true.gguf" "$model"
}
