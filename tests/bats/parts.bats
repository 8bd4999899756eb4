# wfs cp --part and --join: copies made in parts are those of one wfs cp, whoever makes the parts, in whatever order, and
# whatever happens to them. Needs neither root nor /dev/fuse.

load lib

FILE=gguf/model-Q8_0.gguf

setup_file() {
    load lib
    "$PYTHON" "$HERE/../data/make.py" sample "$BATS_FILE_TMPDIR/model"
    [ "$PYTHON" = : ] || "$WFS" cp "$BATS_FILE_TMPDIR/model" gguf/model-Q8_0.gguf "$BATS_FILE_TMPDIR/whole"
}

setup() {
    need_numpy
    MODEL=$BATS_FILE_TMPDIR/model
    WHOLE=$BATS_FILE_TMPDIR/whole
    OUT=$BATS_TEST_TMPDIR/out
    DEST=$OUT/copy
    mkdir "$OUT"
}

# part NUMBER/COUNT [SOURCE [OPTION...]]: makes a part of the copy at DEST.
part() {
    local number=$1 source=${2:-$MODEL}
    shift
    [ $# -eq 0 ] || shift
    "$WFS" cp --part "$number" "$@" "$source" "$FILE" "$DEST"
}

# The copy is whole, and nothing else is left.
is_whole() {
    cmp "$DEST" "$WHOLE"
    [ "$(ls -A "$OUT")" = copy ]
}

# another_model DIR: a model with the same names, sizes and headers, one byte of whose weights differs; with equal times.
another_model() {
    cp -r "$MODEL" "$1"
    "$PYTHON" - "$1/model.safetensors" <<'END'
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(2_000_001)  # a sign
    byte = file.read(1)[0]
    file.seek(2_000_001)
    file.write(bytes([byte ^ 128]))
END
    touch -r "$MODEL/model.safetensors" "$1/model.safetensors"
}

@test "parts in any order make the file of one wfs cp" {
    local n
    for n in 1 2 3 16; do
        for i in $(seq "$n" | shuf --random-source="$WHOLE"); do
            [ ! -e "$DEST" ]
            part "$i/$n"
        done
        is_whole
        rm "$DEST"
    done
}

@test "there may be more parts than units of 64 KiB" {
    seq 97 | shuf --random-source="$WHOLE" | head -n 96 |
        xargs -P 8 -I {} "$WFS" cp --part {}/97 "$MODEL" "$FILE" "$DEST"
    [ ! -e "$DEST" ]
    part "$(seq 97 | shuf --random-source="$WHOLE" | tail -n 1)/97"
    is_whole
}

@test "parts are made at once, and each by several workers" {
    local i
    for i in 1 2 3 4 3 2 1 4 1; do
        part "$i/4" 3>&- &
    done
    for i in 1 2 3 4 5 6 7 8 9; do
        wait -n
    done
    is_whole
    for i in 1 2 3 4; do
        part "$i/4"
    done
    "$WFS" cp --join 4 "$MODEL" "$FILE" "$DEST"
    is_whole
}

@test "a directory is made in parts, and a part of it made again" {
    local i
    "$WFS" cp -r -o shard-size=1MB "$MODEL" hf "$BATS_TEST_TMPDIR/hf"
    for i in 5 2 3 1 4; do
        [ ! -e "$DEST" ]
        "$WFS" cp -r -o shard-size=1MB --part "$i/5" "$MODEL" hf "$DEST"
    done
    diff -r "$DEST" "$BATS_TEST_TMPDIR/hf"
    [ "$(ls -A "$OUT")" = copy ]
    "$WFS" cp -r -o shard-size=1MB --part 2/5 "$MODEL" hf "$DEST"
    "$WFS" cp -r -o shard-size=1MB --join 5 "$MODEL" hf "$DEST"
    [ ! -e "$DEST/hf" ]
    fails 1 "exists, and is not this copy" "$WFS" cp -r -o shard-size=2MB --part 2/5 "$MODEL" hf "$DEST"
    mkdir "$OUT/into"
    for i in 1 2; do
        "$WFS" cp -r -o shard-size=1MB --part "$i/2" "$MODEL" hf "$OUT/into/"
    done
    diff -r "$OUT/into/hf" "$DEST"
}

@test "several files and a directory of many go into a directory in parts" {
    local i
    for i in 2 1; do
        "$WFS" cp --part "$i/2" "$MODEL" config.json tensors/lm_head.weight/q4_0 "$OUT"
    done
    [ "$(ls -A "$OUT")" = $'config.json\nq4_0' ]
    cmp "$OUT/config.json" "$MODEL/config.json"
    for i in 3 1 2; do
        "$WFS" cp -r --part "$i/3" "$MODEL" tensors/model.norm.weight "$DEST"
    done
    "$WFS" cp -r "$MODEL" tensors/model.norm.weight "$BATS_TEST_TMPDIR/tensor"
    diff -r "$DEST" "$BATS_TEST_TMPDIR/tensor"
}

@test "an empty file is made in parts" {
    make_input dtypes "$BATS_TEST_TMPDIR/model.safetensors"
    for i in 1 2 3; do
        "$WFS" cp --part "$i/3" "$BATS_TEST_TMPDIR/model.safetensors" tensors/empty/raw "$DEST"
    done
    [ -f "$DEST" ] && [ ! -s "$DEST" ]
    [ "$(ls -A "$OUT")" = copy ]
}

@test "a killed worker leaves nothing that counts, and the same command goes on" {
    need_strace
    local call
    for call in pwrite64:1 fsync:1 fsync:2 rename:1 openat:20; do
        part 1/3
        run strace -f -o /dev/null -e trace=pwrite64,fsync,rename,openat \
            -e inject="${call%:*}:signal=KILL:when=${call#*:}" "$WFS" cp --part 2/3 "$MODEL" "$FILE" "$DEST"
        [ ! -e "$DEST" ]
        fails 1 "of 3 parts these are missing: " "$WFS" cp --join 3 "$MODEL" "$FILE" "$DEST"
        part 3/3
        part 2/3
        is_whole
        rm "$DEST"
    done
}

@test "a worker that is killed while it ends the copy leaves the rest to any part made again" {
    need_strace
    local call
    for call in link:1 unlink:1 unlink:3 rmdir:1; do
        part 1/2
        run strace -f -o /dev/null -e trace=link,unlink,rmdir -e inject="${call%:*}:signal=KILL:when=${call#*:}" \
            "$WFS" cp --part 2/2 "$MODEL" "$FILE" "$DEST"
        [ ! -e "$DEST" ] || cmp "$DEST" "$WHOLE"
        part 1/2
        [ -e "$DEST" ] || part 2/2
        is_whole
        rm "$DEST"
    done
}

@test "an I/O error or a full disk ends with status 3, and the part does not count" {
    need_strace
    local failure
    for failure in fallocate:ENOSPC pwrite64:ENOSPC fsync:ENOSPC fsync:EIO; do
        fails 3 "$DEST.wfs-parts/data: " strace -f -o /dev/null -P "$DEST.wfs-parts/data" -e trace=fallocate,pwrite64,fsync \
            -e inject="${failure%:*}:error=${failure#*:}" "$WFS" cp --part 1/2 "$MODEL" "$FILE" "$DEST"
        fails 1 "of 2 parts these are missing: 1-2" "$WFS" cp --join 2 "$MODEL" "$FILE" "$DEST"
    done
    part 2/2
    part 1/2
    is_whole
}

@test "without hard links the copy is renamed, and never over another file" {
    need_strace
    part 1/2
    echo other >"$DEST"
    fails 1 "$DEST: exists, and is not this copy: it has 6 bytes, and the copy 2005312; remove it" \
        strace -f -o /dev/null -e trace=link -e inject=link:error=EPERM "$WFS" cp --part 2/2 "$MODEL" "$FILE" "$DEST"
    rm "$DEST"
    strace -f -o /dev/null -e trace=link -e inject=link:error=EPERM "$WFS" cp --part 2/2 "$MODEL" "$FILE" "$DEST"
    is_whole
}

@test "a file system that cannot write in the middle of a file is refused by name" {
    need_strace
    fails 1 "cannot write a part of a file" strace -f -o /dev/null -P "$DEST.wfs-parts/data" -e trace=pwrite64 \
        -e inject=pwrite64:error=EOPNOTSUPP "$WFS" cp --part 2/2 "$MODEL" "$FILE" "$DEST"
}

@test "parts of another source, option, file or number are refused before a byte is written" {
    another_model "$BATS_TEST_TMPDIR/model"
    part 1/3
    local before
    before=$(cd "$DEST.wfs-parts" && sha256sum ./*)
    fails 1 "copy.wfs-parts: was begun in 3 parts, not 4; remove the directory" "$WFS" cp --part 2/4 "$MODEL" "$FILE" "$DEST"
    fails 1 "was begun with no options, not -o pure;" part 2/3 "$MODEL" -o pure
    fails 1 "was begun of $FILE, not gguf/model-Q4_0.gguf;" "$WFS" cp --part 2/3 "$MODEL" gguf/model-Q4_0.gguf "$DEST"
    fails 1 "was begun from another source, or the source has changed since" part 2/3 "$BATS_TEST_TMPDIR/model"
    [ "$(cd "$DEST.wfs-parts" && sha256sum ./*)" = "$before" ]
    part 2/3
    part 3/3
    is_whole
}

# reads_tokenizer NUMBER/COUNT: makes a part, and reports whether that reads the tokenizer.
reads_tokenizer() {
    strace -f -y -o "$BATS_TEST_TMPDIR/trace" -e trace=pread64 "$WFS" cp --part "$1" "$MODEL" "$FILE" "$DEST"
    grep -q 'tokenizer.json>' "$BATS_TEST_TMPDIR/trace"
}

@test "the header is made once, and again where it is missing or damaged" {
    need_strace
    local header=$DEST.wfs-parts/header
    reads_tokenizer 8/8
    run -1 reads_tokenizer 5/8
    run -1 reads_tokenizer 1/8
    rm "$DEST.wfs-parts/000001.done"
    printf x | dd of="$header" bs=1 seek=100 conv=notrunc status=none
    run -1 reads_tokenizer 2/8 # which has none of its bytes
    reads_tokenizer 1/8
    : >"$header"
    reads_tokenizer 3/8
    rm "$header"
    reads_tokenizer 4/8
    part 6/8
    part 7/8
    is_whole
}

@test "the files of all kinds are made in parts with a kept header" {
    local file i
    "$WFS" cp "$MODEL" model.gguf "$BATS_TEST_TMPDIR/source.gguf"
    while read -r source file; do
        "$WFS" cat "$source" "$file" >"$BATS_TEST_TMPDIR/wanted"
        for i in 2 1; do
            "$WFS" cp --part "$i/2" "$source" "$file" "$DEST"
        done
        cmp "$DEST" "$BATS_TEST_TMPDIR/wanted"
        rm "$DEST"
    done <<END
$MODEL model.gguf
$MODEL gguf/model-Q4_K_M.gguf
$MODEL gguf/model-Q4_K.gguf
$MODEL gguf/converter/model-q8_0.gguf
$MODEL model.safetensors
$BATS_TEST_TMPDIR/source.gguf gguf/model-Q5_0.gguf
$BATS_TEST_TMPDIR/source.gguf model.gguf
$BATS_TEST_TMPDIR/source.gguf model.safetensors
END
}

@test "the parts of a merge whose tensors are read whole make the file of one wfs cp" {
    local models=$BATS_TEST_TMPDIR/models number
    mkdir "$models"
    cp -r "$MODEL" "$models/base"
    another_model "$models/tuned"
    printf '%s\n' 'merge_method: slerp' 'models: [{model: base}, {model: tuned}]' 'base_model: base' 'parameters: {t: 0.5}' \
        'dtype: bfloat16' >"$models/slerp.yaml"
    "$WFS" cp "$models/slerp.yaml" "$FILE" "$BATS_TEST_TMPDIR/merged"
    for number in 5 2 7 1 3 6 4; do
        part "$number/7" "$models/slerp.yaml"
    done
    cmp "$DEST" "$BATS_TEST_TMPDIR/merged"
}

@test "a copy of the source with other times is the same source" {
    cp -r "$MODEL" "$BATS_TEST_TMPDIR/model"
    touch -d '2020-01-01' "$BATS_TEST_TMPDIR/model"/*
    part 1/2
    part 2/2 "$BATS_TEST_TMPDIR/model"
    is_whole
}

@test "a source that changes between two parts is refused" {
    cp -r "$MODEL" "$BATS_TEST_TMPDIR/model"
    part 1/2 "$BATS_TEST_TMPDIR/model"
    rm -r "$BATS_TEST_TMPDIR/model"
    another_model "$BATS_TEST_TMPDIR/model"
    fails 1 "the source has changed since" part 2/2 "$BATS_TEST_TMPDIR/model"
    [ ! -e "$DEST" ]
}

@test "once the file has its name, a part of the same bytes succeeds, and one of others fails" {
    another_model "$BATS_TEST_TMPDIR/model"
    part 1/2
    part 2/2
    part 1/2
    part 5/7
    local failed=0
    for i in 1 2; do
        part "$i/2" "$BATS_TEST_TMPDIR/model" 2>>"$BATS_TEST_TMPDIR/said" || failed=$((failed + 1))
    done
    [ "$failed" -eq 1 ] # the part with the byte that differs
    grep -qE 'copy: exists, and is not this copy: the [0-9]+ bytes from offset [0-9]+ on differ; remove it' "$BATS_TEST_TMPDIR/said"
    fails 1 "exists, and is not this copy: it has 2005312 bytes, and the copy 1109440" \
        "$WFS" cp --part 1/2 "$MODEL" gguf/model-Q4_0.gguf "$DEST"
    is_whole
}

@test "join names what is missing, ends a copy, and with --verify finds damage" {
    need_strace
    local i
    part 1/6
    part 5/6
    fails 1 "copy: of 6 parts these are missing: 2-4, 6; make them with --part" "$WFS" cp --join 6 "$MODEL" "$FILE" "$DEST"
    : >"$DEST.wfs-parts/000005.done" # not whole: the part is made again
    for i in 2 3 4 5; do
        part "$i/6"
    done
    fails 3 "$DEST: Input/output error" strace -f -o /dev/null -e trace=link -e inject=link:error=EIO \
        "$WFS" cp --part 6/6 "$MODEL" "$FILE" "$DEST"
    "$PYTHON" -c 'import os, sys; os.pwrite(os.open(sys.argv[1], os.O_RDWR), b"damaged", 1400000)' "$DEST.wfs-parts/data"
    fails 3 "data: part 5 is damaged; remove $DEST.wfs-parts/000005.done and make the part again" \
        "$WFS" cp --join 6 --verify "$MODEL" "$FILE" "$DEST"
    rm "$DEST.wfs-parts/000005.done"
    part 1/6
    [ ! -e "$DEST" ]
    part 5/6
    is_whole
    fails 1 "copy2.wfs-parts" "$WFS" cp --join 6 "$MODEL" "$FILE" "${DEST}2"
}

@test "join ends a copy that its last worker could not" {
    need_strace
    part 1/2
    fails 3 "$DEST: Input/output error" strace -f -o /dev/null -e trace=link -e inject=link:error=EIO \
        "$WFS" cp --part 2/2 "$MODEL" "$FILE" "$DEST"
    "$WFS" cp --join 2 --verify "$MODEL" "$FILE" "$DEST"
    is_whole
}

@test "numbers out of range, and flags that exclude each other, are misuse" {
    local wrong
    for wrong in 0/3 4/3 1/0 1/100001 99999999999/3; do
        fails 2 "cp: --part: " "$WFS" cp --part "$wrong" "$MODEL" "$FILE" "$DEST"
    done
    fails 2 "--part: 'x/3' is not NUMBER/COUNT" "$WFS" cp --part=x/3 "$MODEL" "$FILE" "$DEST"
    fails 2 "--join: 'two' is not a number of parts" "$WFS" cp --join two "$MODEL" "$FILE" "$DEST"
    fails 2 "--part and --join exclude each other" "$WFS" cp --part 1/2 --join 2 "$MODEL" "$FILE" "$DEST"
    fails 2 "--verify needs --join" "$WFS" cp --part 1/2 --verify "$MODEL" "$FILE" "$DEST"
    fails 2 "--reflink shares blocks of whole files" "$WFS" cp --part 1/2 --reflink "$MODEL" "$FILE" "$DEST"
    [ -z "$(ls -A "$OUT")" ]
}

# slurm ID MIN MAX COUNT WORD...: runs wfs cp in the environment of a task of an array.
slurm() {
    env SLURM_ARRAY_TASK_ID="$1" SLURM_ARRAY_TASK_MIN="$2" SLURM_ARRAY_TASK_MAX="$3" SLURM_ARRAY_TASK_COUNT="$4" \
        SLURM_ARRAY_TASK_STEP=1 "$WFS" cp "${@:5}" "$MODEL" "$FILE" "$DEST"
}

@test "--part takes its number from an array job, if that is sure" {
    fails 2 "no array job is in the environment" "$WFS" cp --part "$MODEL" "$FILE" "$DEST"
    fails 2 "task" slurm 3 3 3 1 --part   # a single task, submitted again
    fails 2 "task" slurm 3 0 7 1 --part   # COUNT disagrees
    fails 2 "task" slurm 3 0 3 4 --part /8
    fails 2 "write --part /COUNT" env JOB_COMPLETION_INDEX=1 "$WFS" cp --part "$MODEL" "$FILE" "$DEST"
    fails 2 "there is no part 4 of 3" env JOB_COMPLETION_INDEX=3 "$WFS" cp --part /3 "$MODEL" "$FILE" "$DEST"
    run --separate-stderr slurm 1 1 3 3 --part
    [ "$status" -eq 0 ] && [ "$stderr" = "wfs: part 1 of 3, by SLURM_ARRAY_TASK_ID" ]
    run --separate-stderr slurm 1 0 2 3 --part /3
    [ "$status" -eq 0 ] && [ "$stderr" = "wfs: part 2 of 3, by SLURM_ARRAY_TASK_ID" ]
    run --separate-stderr env JOB_COMPLETION_INDEX=2 "$WFS" cp "$MODEL" --part /3 "$FILE" "$DEST"
    [ "$status" -eq 0 ] && [ "$stderr" = "wfs: part 3 of 3, by JOB_COMPLETION_INDEX" ]
    is_whole
}
