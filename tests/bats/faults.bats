# Sources that are cut, replaced, deleted or failing while they are mounted.

load lib

setup_file() {
    load lib
    make_input dtypes "$BATS_FILE_TMPDIR/model.safetensors"
    make_input large "$BATS_FILE_TMPDIR/large.safetensors"
    make_input infinite "$BATS_FILE_TMPDIR/infinite.safetensors"
}

setup() {
    need_fuse
    need_numpy
    SOURCE=$BATS_TEST_TMPDIR/source.safetensors
    MNT=$BATS_TEST_TMPDIR/mnt
}

# Every file computed from the source fails, and goes on failing; said once, with the words of $1.
has_changed() {
    local file
    for file in tensors/large/{raw,f32,q8_0,metadata.json} tensors/large/f32.npy model.gguf metadata.json; do
        await unreadable "$MNT/$file"
        unreadable "$MNT/$file"
    done
    ls -lR "$MNT" >/dev/null
    unmount "$MNT"
    grep -qxE "wfs: $MNT: source.safetensors: changed since it was mounted${1:-}; mount again" "$SERVER_LOG"
    [ "$(server_lines)" -eq 1 ]
}

# Mounts a copy, and reads files of it so that the kernel has them: all of one, the start of others.
serve_copy() {
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    serve "$SOURCE" "$MNT"
    cat "$MNT/tensors/large/raw" "$MNT/metadata.json" "$MNT/tensors/large/metadata.json" >/dev/null
    head -c 100000 "$MNT/tensors/large/q8_0" >/dev/null
    head -c 10000000 "$MNT/model.gguf" >/dev/null
}

@test "truncating a source makes its files fail with EIO, even if it is restored" {
    serve_copy
    truncate -s 30000001 "$SOURCE"
    await unreadable "$MNT/tensors/large/raw"
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    has_changed "(: it has 30000001 bytes, and had [0-9]+)?"
}

# Another user's, whose limit of inotify instances is used up: the first limit that a desktop or a node of pods reaches.
@test "without inotify, a change is noticed at the next open, and a note says so" {
    need_fuse_for_others
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    install -d -o 1 "$MNT"
    chmod a+rw "$SOURCE"
    OTHER=1 as_other_with_fuse "$PYTHON" - "$BATS_TEST_TMPDIR/wfs" "$SOURCE" "$MNT" <<'END'
import ctypes, os, subprocess, sys
wfs, source, mount = sys.argv[1:]
libc = ctypes.CDLL(None)
while libc.inotify_init1(os.O_CLOEXEC) >= 0:
    pass
run = subprocess.run([wfs, "mount", source, mount], capture_output=True, text=True)
assert run.returncode == 0 and "(fs.inotify.max_user_instances)" in run.stderr, run.stderr
files = [f"{mount}/tensors/large/{name}" for name in ("raw", "q8_0")] + [f"{mount}/model.gguf"]
def head(file):
    with open(file, "rb") as opened:
        return opened.read(100000)
try:
    before = [head(file) for file in files]
    assert before == [head(file) for file in files]
    with open(source, "r+b") as opened:
        opened.seek(5000000)
        opened.write(b"new")
    for file in files:
        try:
            head(file)
        except OSError:
            continue
        raise SystemExit(f"{file} can be read")
finally:
    subprocess.run([wfs, "umount", "-l", mount])
END
}

@test "a growing source makes its files fail" {
    serve_copy
    local size
    size=$(stat -c %s "$SOURCE")
    echo more >>"$SOURCE"
    has_changed ": it has $((size + 5)) bytes, and had $size"
}

@test "writing to a source makes its files fail with EIO" {
    serve_copy
    printf x | dd of="$SOURCE" conv=notrunc bs=1 seek=5000000 status=none
    has_changed
}

@test "writing to a source by another name is noticed, even if its time is restored" {
    serve_copy
    touch -r "$SOURCE" "$BATS_TEST_TMPDIR/time"
    ln "$SOURCE" "$BATS_TEST_TMPDIR/other"
    mv "$SOURCE" "$BATS_TEST_TMPDIR/moved"
    printf x | dd of="$BATS_TEST_TMPDIR/other" conv=notrunc bs=1 seek=5000000 status=none
    touch -r "$BATS_TEST_TMPDIR/time" "$BATS_TEST_TMPDIR/other"
    has_changed
}

@test "writing to a source through a mapping is noticed when a file is read" {
    serve_copy
    run "$PYTHON" - "$SOURCE" <<'END'
import mmap, os, sys
before = os.stat(sys.argv[1]).st_mtime_ns
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
    mapping[5_000_000] ^= 1
    mapping.flush()
sys.exit(3 * (os.stat(sys.argv[1]).st_mtime_ns == before))
END
    [ "$status" -ne 3 ] || skip "this file system keeps no time of what is written through a mapping"
    await unreadable "$MNT/tensors/large/f32" # not read before
    has_changed
}

@test "after a write to the source, a half-read file shows no new byte" {
    for file in raw f32 q8_0 f32.npy ../../model.gguf; do
        serve_copy
        "$PYTHON" - "$MNT/tensors/large/$file" "$SOURCE" <<'END'
import errno, os, sys
with open(sys.argv[1], "rb") as file:
    before = file.read()
reader = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
writer = os.open(sys.argv[2], os.O_WRONLY)
half = len(before) // 2 // 4096 * 4096
assert os.pread(reader, 65536, 0) == before[:65536]
os.pwrite(writer, bytes(range(256)) * 4096, os.fstat(writer).st_size * 3 // 4)
for offset in range(half, len(before), 65536):
    try:
        os.pread(reader, 65536, offset)
    except OSError as error:
        assert error.errno == errno.EIO
    else:
        raise AssertionError(f"read at {offset}")
    with open(sys.argv[1], "rb") as cached:  # what the kernel has may be had until it forgets
        try:
            got = os.pread(cached.fileno(), 65536, offset)  # short where what follows is forgotten meanwhile
            assert got and got == before[offset : offset + len(got)]
        except OSError as error:
            assert error.errno == errno.EIO
END
        has_changed
    done
}

@test "changing a source's permissions, links or name has no effect" {
    serve_copy
    chmod 600 "$SOURCE"
    ln "$SOURCE" "$BATS_TEST_TMPDIR/link"
    mv "$SOURCE" "$BATS_TEST_TMPDIR/moved"
    rm "$BATS_TEST_TMPDIR/link"
    cat "$BATS_TEST_TMPDIR/moved" >/dev/null
    for file in raw f32 q8_0; do
        same cat "$MNT/tensors/large/$file" == "$WFS" cat "$BATS_FILE_TMPDIR/large.safetensors" "tensors/large/$file"
    done
    unmount "$MNT"
    server_is_quiet
}

@test "if one shard or side file changes, files computed from others keep working" {
    model=$BATS_TEST_TMPDIR/model
    mkdir "$model"
    cp "$BATS_FILE_TMPDIR/model.safetensors" "$model/model-00001-of-00002.safetensors"
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$model/model-00002-of-00002.safetensors"
    echo '{"model_type":"unknown"}' >"$model/config.json"
    echo text >"$model/notes.txt"
    serve "$model" "$MNT"
    cat "$MNT/model.gguf" "$MNT/config.json" "$MNT/tensors/f32/raw" "$MNT/tensors/large/raw" >/dev/null
    echo more >>"$model/notes.txt"
    await unreadable "$MNT/notes.txt"
    cat "$MNT/model.gguf" "$MNT/config.json" "$MNT/metadata.json" >/dev/null
    echo '{"model_type":"another"}' >"$model/config.json"
    await unreadable "$MNT/config.json"
    await unreadable "$MNT/model.gguf"
    await unreadable "$MNT/metadata.json" # which tells what config.json says
    cat "$MNT/tensors/large/raw" "$MNT/tensors/f32/f32" >/dev/null
    printf x | dd of="$model/model-00001-of-00002.safetensors" conv=notrunc bs=1 seek=50000 status=none
    await unreadable "$MNT/tensors/f32/raw"
    same cat "$MNT/tensors/large/f32" == "$WFS" cat "$BATS_FILE_TMPDIR/large.safetensors" tensors/large/f32
    unmount "$MNT"
    [ "$(server_lines)" -eq 3 ] # one for each file
}

@test "if params.json changes, its files fail, the others work, and one log line says so" {
    mkdir "$BATS_TEST_TMPDIR/model"
    make_input meta "$BATS_TEST_TMPDIR/model"
    serve "$BATS_TEST_TMPDIR/model" "$MNT"
    cat "$MNT/config.json" "$MNT/tensors/model.layers.0.self_attn.q_proj.weight/raw" >/dev/null
    echo '{}' >"$BATS_TEST_TMPDIR/model/params.json"
    await unreadable "$MNT/config.json"
    await unreadable "$MNT/tensors/model.layers.0.self_attn.q_proj.weight/raw"
    await unreadable "$MNT/params.json"
    cat "$MNT/tensors/model.norm.weight/raw" >/dev/null
    unmount "$MNT"
    grep -qxE "wfs: $MNT: params.json: changed since it was mounted: it has [03] bytes, and had [0-9]+; mount again" "$SERVER_LOG"
    [ "$(server_lines)" -eq 1 ]
}

@test "a failure is logged with the mount point's name, even while files are still being planned" {
    make_input endless "$BATS_TEST_TMPDIR"
    serve "$BATS_TEST_TMPDIR/split" "$MNT" # planning model.gguf takes long
    [ -s "$MNT/model.safetensors" ] # planned from the file as it was, or it would be left out
    echo >>"$BATS_TEST_TMPDIR/split/model.safetensors"
    await unreadable "$MNT/model.safetensors"
    unmount "$MNT"
    grep -qE "^wfs: $MNT: model.safetensors: changed since it was mounted" "$SERVER_LOG"
    [ "$(server_lines)" -eq 1 ]
}

@test "the server survives a truncated source that a reader has mapped" {
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    serve "$SOURCE" "$MNT"
    run "$PYTHON" - "$MNT/tensors/large/raw" "$SOURCE" <<'END'
import mmap, os, sys
with open(sys.argv[1], "rb") as file:
    mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    os.truncate(sys.argv[2], 4096)
    mapping[60_000_000]
END
    [ "$status" -ne 0 ]
    await unreadable "$MNT/metadata.json"
    [ -e "$MNT/tensors/large/q4_0" ]
    unmount "$MNT"
}

@test "a source replaced by a rename is still served" {
    cp "$BATS_FILE_TMPDIR/model.safetensors" "$SOURCE"
    serve "$SOURCE" "$MNT"
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE.new"
    mv "$SOURCE.new" "$SOURCE"
    check contents "$MNT" "$BATS_FILE_TMPDIR/model.safetensors" 2>&1 | grep "source is source.safetensors" # all but its name
    same cat "$MNT/tensors/f32/f32" == "$WFS" cat "$BATS_FILE_TMPDIR/model.safetensors" tensors/f32/raw
    unmount "$MNT"
    server_is_quiet
}

@test "a source deleted with its directory is still served" {
    mkdir "$BATS_TEST_TMPDIR/model"
    cp "$BATS_FILE_TMPDIR/model.safetensors" "$BATS_TEST_TMPDIR/model/"
    serve "$BATS_TEST_TMPDIR/model" "$MNT"
    rm -r "$BATS_TEST_TMPDIR/model"
    check contents "$MNT" "$BATS_FILE_TMPDIR/model.safetensors"
    unmount "$MNT"
    server_is_quiet
}

@test "a failing disk gives EIO, and files work again when it recovers" {
    need_attached_strace
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    serve -o no_readahead "$SOURCE" "$MNT"
    strace -f -o "$BATS_TEST_TMPDIR/trace" -e trace=pread64 -e inject=pread64:error=EIO -p "$SERVER" 2>"$BATS_TEST_TMPDIR/attached" 3>&- &
    tracer=$!
    await grep -q attached "$BATS_TEST_TMPDIR/attached"
    run bash -c 'cat "$0" >/dev/null' "$MNT/tensors/large/f32"
    [ "$status" -eq 1 ]
    [[ $output == *"Input/output error"* ]]
    kill -INT "$tracer"
    wait "$tracer" || true
    same cat "$MNT/tensors/large/f32" == "$WFS" cat "$SOURCE" tensors/large/f32
    unmount "$MNT"
    grep "^wfs: $MNT: tensors/large/f32: read failed: source.safetensors: offset .*: Input/output error" "$SERVER_LOG"
    [ "$(server_lines)" -eq 1 ]
}

# A model with all the small files that general.* and the vocabulary come from.
make_model() {
    MODEL=$BATS_TEST_TMPDIR/llama
    cp -r "$HERE/../data/gguf/models/llama-tiny" "$MODEL"
    printf -- '---\nlicense: mit\n---\n' >"$MODEL/README.md"
    echo '{"temperature": 0.5}' >"$MODEL/generation_config.json"
}

@test "if a small file is unreadable, no file is made without it" {
    need_root
    need setpriv
    make_model
    echo text >"$MODEL/notes.txt"
    cp "$WFS" "$BATS_TEST_TMPDIR/wfs"
    open_to_others "$BATS_TEST_TMPDIR"
    for file in README.md config.json generation_config.json tokenizer.model; do
        chmod 600 "$MODEL/$file"
        fails 1 "model.gguf is left out: $file: Permission denied" as_other "$BATS_TEST_TMPDIR/wfs" cat "$MODEL" model.gguf
        fails 1 "$file: Permission denied" as_other "$BATS_TEST_TMPDIR/wfs" cat "$MODEL" "$file"
        as_other "$BATS_TEST_TMPDIR/wfs" info "$MODEL" | grep -F "$file: Permission denied"
        as_other "$BATS_TEST_TMPDIR/wfs" cat "$MODEL" model.safetensors | cmp - "$MODEL/model.safetensors"
        chmod 644 "$MODEL/$file"
    done
    chmod 600 "$MODEL/notes.txt"
    same as_other "$BATS_TEST_TMPDIR/wfs" cat "$MODEL" model.gguf == "$WFS" cat "$MODEL" model.gguf
}

@test "a small file that links out of the model is not shown, and no file is made without it" {
    make_model
    echo '{"temperature": 1}' >"$BATS_TEST_TMPDIR/secret"
    ln -sf ../secret "$MODEL/generation_config.json"
    run -0 --separate-stderr "$WFS" ls "$MODEL"
    [[ $output != *generation_config.json* && $output != *model.gguf* && $output == *model.safetensors* ]]
    fails 1 "generation_config.json: a symbolic link to $BATS_TEST_TMPDIR/secret, outside of the model's directory" "$WFS" cat "$MODEL" generation_config.json
    fails 1 "model.gguf is left out: generation_config.json: a symbolic link to $BATS_TEST_TMPDIR/secret" "$WFS" cat "$MODEL" model.gguf
    run ! grep temperature <("$WFS" cat "$MODEL" metadata.json)
    ln -sf nowhere "$MODEL/generation_config.json" # as no file
    "$WFS" cat "$MODEL" model.gguf >"$BATS_TEST_TMPDIR/linked"
    rm "$MODEL/generation_config.json"
    "$WFS" cat "$MODEL" model.gguf | cmp - "$BATS_TEST_TMPDIR/linked"
}

@test "whichever system call fails, model.gguf is exact or fails" {
    need_strace
    make_model
    "$WFS" cat "$MODEL" model.gguf >"$BATS_TEST_TMPDIR/right"
    local fault n n_failed status
    ulimit -S -n "$(ulimit -H -n)" # else wfs raises the limit after EMFILE, and opens the file
    for fault in pread64:EIO openat:EMFILE openat:EACCES; do
        n_failed=0
        for ((n = 1; n < 200; n++)); do
            status=0
            strace -f -o "$BATS_TEST_TMPDIR/trace" -e "inject=${fault%:*}:error=${fault#*:}:when=$n" \
                "$WFS" cat "$MODEL" model.gguf >"$BATS_TEST_TMPDIR/got" 2>"$BATS_TEST_TMPDIR/said" || status=$?
            grep -q INJECTED "$BATS_TEST_TMPDIR/trace" || break
            [ "$status" -ne 127 ] || continue # of a library, which the loader reads
            echo "$fault $n: $status, $(cat "$BATS_TEST_TMPDIR/said")"
            if [ "$status" -eq 0 ]; then
                cmp "$BATS_TEST_TMPDIR/got" "$BATS_TEST_TMPDIR/right"
            else
                [ "$status" -eq 1 ]
                grep -q '^wfs: ' "$BATS_TEST_TMPDIR/said"
                n_failed=$((n_failed + 1))
            fi
        done
        [ "$n" -lt 200 ]
        [ "$n_failed" -ge 5 ]
    done
}

@test "whichever read fails, an HDF5 file shows all that it has, or none of it" {
    need_strace
    local source=$HERE/../data/hdf5/latest.h5 n n_failed=0 status
    "$WFS" cat "$source" metadata.json >"$BATS_TEST_TMPDIR/right"
    for ((n = 1; n < 200; n++)); do
        status=0
        strace -f -o "$BATS_TEST_TMPDIR/trace" -e "inject=pread64:error=EIO:when=$n" \
            "$WFS" cat "$source" metadata.json >"$BATS_TEST_TMPDIR/got" 2>"$BATS_TEST_TMPDIR/said" || status=$?
        grep -q INJECTED "$BATS_TEST_TMPDIR/trace" || break
        [ "$status" -ne 127 ] || continue
        echo "$n: $status, $(cat "$BATS_TEST_TMPDIR/said")"
        if [ "$status" -eq 0 ]; then
            cmp "$BATS_TEST_TMPDIR/got" "$BATS_TEST_TMPDIR/right"
        else
            grep -q 'Input/output error' "$BATS_TEST_TMPDIR/said"
            n_failed=$((n_failed + 1))
        fi
    done
    [ "$n" -lt 200 ]
    [ "$n_failed" -ge 5 ]
}

@test "weights that may be packed are not shown plain without their config.json" {
    cp -r "$HERE/../data/packed/gptq-4" "$BATS_TEST_TMPDIR/packed"
    echo '{' >"$BATS_TEST_TMPDIR/packed/config.json"
    fails 1 "model.safetensors is left out: config.json: line 2: invalid JSON" "$WFS" cat "$BATS_TEST_TMPDIR/packed" model.safetensors
}

@test "a weight that is not finite: its quantized range gives EIO, logged once" {
    serve "$BATS_FILE_TMPDIR/infinite.safetensors" "$MNT"
    file=$MNT/tensors/infinite/q8_0
    dd if="$file" iflag=direct bs=68 skip=39 count=1 status=none | wc -c | grep -qx 68
    for i in 1 2 3; do
        run dd if="$file" iflag=direct bs=68 skip=40 count=1 status=none
        [ "$status" -eq 1 ]
        [[ $output == *"Input/output error"* ]]
    done
    dd if="$file" iflag=direct bs=68 skip=41 count=1 status=none | wc -c | grep -qx 68
    cmp "$MNT/tensors/infinite/f32" "$MNT/tensors/infinite/raw"
    unmount "$MNT"
    grep "^wfs: $MNT: tensors/infinite/q8_0: read failed: .*is not finite" "$SERVER_LOG"
    [ "$(server_lines)" -eq 1 ]
}

@test "a mount works even if /dev/fuse cannot be opened twice" {
    need_traced_mount
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    SERVER_LOG=$BATS_TEST_TMPDIR/server.log
    strace -f -o "$BATS_TEST_TMPDIR/trace" -P /dev/fuse -e trace=openat -e inject=openat:error=EPERM:when=2+ \
        "$WFS" mount -f "$SOURCE" "$MNT" 2>"$SERVER_LOG" 3>&- &
    SERVER=$!
    await is_mounted "$MNT"
    check threads "$MNT/tensors/large/q8_0"
    grep -q EPERM "$BATS_TEST_TMPDIR/trace"
    unmount "$MNT"
    server_is_quiet
}

@test "a tokenizer that would take forever: model.gguf is left out with the reason, and other files work" {
    need timeout
    make_input endless "$BATS_TEST_TMPDIR"
    for kind in split write; do
        serve "$BATS_TEST_TMPDIR/$kind" "$MNT"
        timeout 100 ls -l "$MNT/tensors" >/dev/null
        run timeout 100 stat "$MNT/model.gguf"
        [[ $status -eq 1 && $output == *"No such file"* ]]
        timeout 100 ls -l "$MNT" >/dev/null # before, on a busy machine, it may list model.gguf: a listing does not wait for ever
        timeout 100 cat "$MNT/tokenizer.json" "$MNT"/tensors/*/raw >/dev/null
        timeout 100 cat "$MNT/metadata.json" | grep -F 'tokenizer.json: ' | grep -F 'encoding a short text takes more than'
        unmount "$MNT"
    done
}

lacks_memory() {
    [[ $(stat "$1/." 2>&1) == *"Cannot allocate memory"* ]]
}

@test "a file that needs too much memory is left out with the reason, and other files work" {
    need timeout
    ! grep -qE '__(asan|tsan)_init' "$WFS" || skip "a sanitizer takes more address space than a limit could leave"
    make_input wordy "$BATS_TEST_TMPDIR/wordy"
    lacking=0
    for ((kib = 60000; kib <= 600000; kib += 5000)); do # some 15 MB suffice for all but model.gguf
        rm -rf "$MNT"
        (ulimit -v "$kib" && exec "$WFS" mount -f "$BATS_TEST_TMPDIR/wordy" "$MNT") >"$BATS_TEST_TMPDIR/log" 2>&1 3>&- &
        SERVER=$! SERVER_LOG=$BATS_TEST_TMPDIR/log
        await eval 'served_or_dead "$MNT" || lacks_memory "$MNT"'
        is_mounted "$MNT" || continue
        if lacks_memory "$MNT"; then # for its first thread
            kill -KILL "$SERVER"
            wait "$SERVER" || true
            umount -l "$MNT" 2>/dev/null || fusermount3 -uz "$MNT"
            continue
        fi
        timeout 60 cat "$MNT/model.gguf" >/dev/null 2>&1 && status=0 || status=$?
        [ "$status" -ne 124 ]
        served=true
        cat "$MNT"/tensors/*/raw >/dev/null 2>&1 || served=false
        is_mounted "$MNT" || continue # libfuse had no memory for a thread
        if $served && [ "$status" -ne 0 ] && grep -q 'out of memory (' "$MNT/metadata.json"; then
            lacking=$((lacking + 1))
        fi
        if ! unmount "$MNT"; then # libfuse 3.17 had none for a buffer, which it takes when it needs it
            grep -q ': cannot be served: ' "$SERVER_LOG"
            continue
        fi
        [ "$status" -ne 0 ] || break
    done
    [ "$lacking" -gt 0 ]
    [ "$status" -eq 0 ]
}

@test "a server whose device fails while the mount is in use says so, ends and leaves nothing mounted" {
    need_attached_strace
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    serve "$SOURCE" "$MNT"
    (cd "$MNT" && exec sleep 100) 3>&- &
    user=$!
    # Writing a message takes 0.2 s, so that one worker still writes when another one ends the session.
    strace -f -o /dev/null -P /dev/fuse -P "$SERVER_LOG" -e trace=read,write -e inject=read:error=EIO -e inject=write:delay_enter=200000 \
        -p "$SERVER" 2>"$BATS_TEST_TMPDIR/attached" 3>&- &
    await grep -q attached "$BATS_TEST_TMPDIR/attached"
    timeout 60 stat "$MNT"/tensors/* >/dev/null 2>&1 || true
    server_ends_with 1
    [ "$(grep -c "^wfs: $MNT: cannot be served: " "$SERVER_LOG")" -eq 1 ]
    [ "$(grep -c '^fuse: ' "$SERVER_LOG")" -eq "$(grep -c '^fuse: reading device: ' "$SERVER_LOG")" ] # it tried nothing that it may not do
    await not_mounted "$MNT"
    kill "$user"
}

@test "names and attributes do not wait for slow reads" {
    need_attached_strace
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE"
    serve -o no_readahead "$SOURCE" "$MNT"
    strace -f -o /dev/null -e trace=pread64 -e inject=pread64:delay_enter=100000000 -p "$SERVER" 2>"$BATS_TEST_TMPDIR/attached" 3>&- &
    tracer=$!
    await grep -q attached "$BATS_TEST_TMPDIR/attached"
    readers=()
    for ((i = 0; i < 12; i++)); do
        dd if="$MNT/tensors/large/f32" iflag=direct bs=4096 skip="$((i * 100))" count=1 of=/dev/null status=none 3>&- &
        readers+=($!)
    done
    await all_wait_for_the_server
    ls -l "$MNT/tensors" "$MNT/tensors/large" >/dev/null
    stat "$MNT/tensors/large/f16" >/dev/null
    all_wait_for_the_server
    kill -INT "$tracer"
    wait "$tracer" || true
    wait "${readers[@]}"
    unmount "$MNT"
}

# Every reader of the test is in its read.
all_wait_for_the_server() {
    local reader
    for reader in "${readers[@]}"; do
        [ "$(cut -d' ' -f1 "/proc/$reader/syscall")" = 0 ] || return 1
    done
}
