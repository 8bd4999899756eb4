# Files that the kernel reads from their sources by itself, where it can: as root, from Linux 6.9 on.

load lib

setup_file() {
    load lib
    make_input large "$BATS_FILE_TMPDIR/large.safetensors"
    "$WFS" cat "$BATS_FILE_TMPDIR/large.safetensors" model.gguf >"$BATS_FILE_TMPDIR/large.gguf"
}

setup() {
    need_fuse
    need_numpy
    SOURCE=$BATS_TEST_TMPDIR/source.gguf
    MNT=$BATS_TEST_TMPDIR/mnt
}

# Serves a copy of the GGUF. Sets FILE.
serve_copy() {
    cp "$BATS_FILE_TMPDIR/large.gguf" "$SOURCE"
    serve "$@" "$SOURCE" "$MNT"
    FILE=$MNT/model.gguf
}

# Ends the server without a chance to unmount.
kill_server() {
    kill -KILL "$SERVER"
    wait "$SERVER" || true
    SERVER=
    await not_served
}

not_served() {
    [[ $(stat "$MNT/tensors" 2>&1) == *"Transport endpoint is not connected"* ]]
}

# Skips where the kernel reads nothing by itself.
need_passthrough() {
    serve_copy
    exec 5<"$FILE"
    kill_server
    head -c 10 <&5 >/dev/null 2>&1 || skip "this kernel, user or file system has no passthrough"
    exec 5<&-
    umount -l "$MNT"
}

@test "an open file needs no server, if it is a GGUF, a safetensors file or a side file as it is" {
    need_passthrough
    local model=$BATS_TEST_TMPDIR/model name
    mkdir "$model"
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$model/model.safetensors"
    echo '{"model_type":"unknown"}' >"$model/config.json"
    for name in model.safetensors config.json; do
        serve "$model" "$MNT"
        cat "$MNT/metadata.json" "$MNT/tensors/large/q4_0" >/dev/null
        exec 5<"$MNT/$name"
        kill_server
        cmp - "$model/$name" <&5
        exec 5<&-
        umount -l "$MNT"
    done
    serve_copy
    exec 5<"$FILE"
    kill_server
    cmp - "$SOURCE" <&5
    exec 5<&-
    umount -l "$MNT"
}

@test "what is computed still needs the server, and so does everything with passthrough=no" {
    need_passthrough
    serve_copy
    exec 5<"$MNT/tensors/large/q4_0"
    kill_server
    run head -c 10 <&5
    [ "$status" -ne 0 ]
    umount -l "$MNT"
    serve_copy -o passthrough=no
    exec 5<"$FILE"
    kill_server
    run head -c 10 <&5
    [ "$status" -ne 0 ]
    exec 5<&-
    umount -l "$MNT"
}

@test "a quantization that is complete in the store needs no server in the next mount" {
    need_passthrough
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    local model=$BATS_TEST_TMPDIR/model file=$MNT/gguf/model-Q4_K_M.gguf wanted
    "$PYTHON" "$HERE/../data/make.py" sample "$model"
    touch -d 2020-01-01 "$model"/* # nothing is kept of inputs that were written in this minute
    wanted=$("$WFS" cat "$model" gguf/model-Q4_K_M.gguf 2>/dev/null | sha256sum)
    serve -o keep=whole "$model" "$MNT"
    [ "$(sha256sum <"$file")" = "$wanted" ]
    await is_sealed
    [ "$(sha256sum <"$file")" = "$wanted" ]
    unmount "$MNT"
    [ "$("$WFS" cache ls | grep -c "  $model/gguf/model-Q4_K_M.gguf\$")" -eq 1 ]
    serve -o keep=whole "$model" "$MNT"
    [ "$(sha256sum <"$MNT/gguf/model-Q4_K_S.gguf")" = "$("$WFS" cat "$model" gguf/model-Q4_K_S.gguf 2>/dev/null | sha256sum)" ]
    "$WFS" cache rm "$model/gguf/model-Q4_K_S.gguf"
    exec 5<"$file"
    "$WFS" cache rm "$model/gguf/model-Q4_K_M.gguf"
    kill_server
    [ "$(sha256sum <&5)" = "$wanted" ]
    exec 5<&-
    umount -l "$MNT"
    serve -o keep=whole "$model" "$MNT"
    [ "$(sha256sum <"$file")" = "$wanted" ]
    unmount "$MNT"
}

@test "a sealed file that is damaged is not handed to the kernel" {
    need_passthrough
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    local model=$BATS_TEST_TMPDIR/model file=$MNT/gguf/model-Q4_K_M.gguf wanted sealed
    "$PYTHON" "$HERE/../data/make.py" sample "$model"
    touch -d 2020-01-01 "$model"/*
    wanted=$("$WFS" cat "$model" gguf/model-Q4_K_M.gguf 2>/dev/null | sha256sum)
    serve -o keep=whole "$model" "$MNT"
    [ "$(sha256sum <"$file")" = "$wanted" ]
    await is_sealed
    unmount "$MNT"
    sealed=$(compgen -G "$XDG_CACHE_HOME/wfs/objects/*/computed-*/sealed")
    chmod u+w "$sealed"
    printf damage | dd of="$sealed" bs=1 seek=500000 conv=notrunc status=none
    serve -o keep=whole "$model" "$MNT"
    [ "$(sha256sum <"$file")" = "$wanted" ]
    [ "$(sha256sum <"$file")" = "$wanted" ]
    unmount "$MNT"
}

is_sealed() {
    compgen -G "$XDG_CACHE_HOME/wfs/objects/*/computed-*/sealed" >/dev/null
}

@test "the bytes are the same by every way of reading, at once and in any order" {
    local option
    for option in yes no; do
        serve_copy -o "passthrough=$option"
        "$PYTHON" - "$FILE" "$SOURCE" <<'END'
import mmap, os, random, sys, threading

path, source = sys.argv[1:]
with open(source, "rb") as file:
    wanted = file.read()


def read(flags, seed):
    """Ranges of all sizes and places, by several descriptors."""
    generator = random.Random(seed)
    for _ in range(8):
        descriptor = os.open(path, os.O_RDONLY | flags)
        for _ in range(10):
            offset = generator.randrange(len(wanted) + 10)
            size = generator.choice([1, 68, 4096, 100_000, 3 << 20])
            buffer = mmap.mmap(-1, size)
            count = os.preadv(descriptor, [buffer], offset)
            assert buffer[:count] == wanted[offset : offset + count], (flags, offset, size)
            assert count == size or offset + count >= len(wanted), (count, size)
        os.close(descriptor)


def map(flags, seed):
    for _ in range(4):
        with open(path, "rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, flags, mmap.PROT_READ)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
        mapping.madvise(mmap.MADV_WILLNEED)
        assert mapping[:] == wanted
        mapping.close()


MAP_POPULATE = 0x8000
failures = []
threading.excepthook = lambda failed: failures.append(failed.exc_value)
jobs = [(read, 0), (read, os.O_DIRECT), (read, os.O_NONBLOCK), (map, mmap.MAP_SHARED), (map, mmap.MAP_PRIVATE | MAP_POPULATE)]
threads = [threading.Thread(target=job, args=(flags, seed)) for seed, (job, flags) in enumerate(jobs * 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures, failures
many = [os.open(path, os.O_RDONLY | (i % 2 and os.O_DIRECT)) for i in range(500)]
assert {os.fstat(descriptor).st_size for descriptor in many} == {len(wanted)}
assert os.pread(many[-2], 100, 1000) == wanted[1000:1100]
END
        cmp "$FILE" "$SOURCE"
        "$WFS" cat "$SOURCE" tensors/large/q4_0 | cmp - "$MNT/tensors/large/q4_0"
        unmount "$MNT"
        server_is_quiet
    done
}

# Opens the file, changes the source by the statement given, and reads through both the earlier and a new descriptor.
change_while_open() {
    "$PYTHON" - "$FILE" "$SOURCE" "$1" <<'END'
import os, sys, time

path, source, change = sys.argv[1:]
before = os.open(path, os.O_RDONLY)
with open(source, "rb") as file:
    old = file.read()
exec(change)
with open(source, "rb") as file:
    new = file.read()


def can_be_read():
    try:
        with open(path, "rb") as file:
            file.read(1)
        return True
    except OSError as error:
        assert error.errno == 5
        return False


for _ in range(1200):  # until the server knows, and the kernel has forgotten its pages
    if not can_be_read():
        break
    time.sleep(0.05)
else:
    sys.exit("a changed source can be read")
for offset in range(0, len(old), 1 << 20):
    try:
        got = os.pread(before, 1 << 20, offset)
    except OSError as error:
        assert error.errno == 5
    else:  # of the source as it is, or pages from before that the kernel still has
        assert got in (old[offset : offset + len(got)], new[offset : offset + len(got)])
assert not can_be_read()
END
}

@test "a changed source cannot be opened any more, and one log line says so" {
    local option change
    for option in yes no; do
        for change in 'os.truncate(source, 5_000_000)' \
            'd = os.open(source, os.O_WRONLY); os.pwrite(d, bytes(4096), 3_000_000); os.close(d)' \
            'd = os.open(source, os.O_WRONLY | os.O_APPEND); os.write(d, bytes(4096)); os.close(d)'; do
            serve_copy -o "passthrough=$option"
            change_while_open "$change"
            await unreadable "$MNT/tensors/large/raw"
            await unreadable "$FILE"
            unmount "$MNT"
            grep -q "^wfs: $MNT: source.gguf: changed since it was mounted" "$SERVER_LOG"
            [ "$(server_lines)" -eq 1 ]
        done
    done
}

@test "a source that changed before the first open is not opened" {
    serve_copy
    printf x | dd of="$SOURCE" conv=notrunc bs=1 seek=5000000 status=none
    unreadable "$FILE"
    unreadable "$FILE"
    unmount "$MNT"
}

@test "a source that is replaced by a rename or removed is still shown" {
    serve_copy
    cp "$BATS_FILE_TMPDIR/large.safetensors" "$SOURCE.new"
    mv "$SOURCE.new" "$SOURCE"
    cmp "$FILE" "$BATS_FILE_TMPDIR/large.gguf"
    rm "$SOURCE"
    cmp "$FILE" "$BATS_FILE_TMPDIR/large.gguf"
    unmount "$MNT"
    server_is_quiet
}

@test "nobody writes to the source through the mount, also after root remounts read-write" {
    local option
    for option in passthrough=yes passthrough=yes,allow_rdwr; do
        serve_copy -o "$option"
        exec 5<"$FILE"
        "$PYTHON" - "$FILE" "$MNT" <<'END'
import ctypes, errno, mmap, os, sys

MS_NOSUID, MS_NODEV, MS_REMOUNT = 2, 4, 32
if os.getuid() == 0:
    remounted = ctypes.CDLL(None).mount(None, os.fsencode(sys.argv[2]), None, MS_REMOUNT | MS_NOSUID | MS_NODEV, None)
    assert remounted == 0
for flags in os.O_RDWR, os.O_WRONLY, os.O_RDWR | os.O_DIRECT:
    try:
        descriptor = os.open(sys.argv[1], flags)
        os.write(descriptor, mmap.mmap(-1, 4096))
    except OSError as error:
        assert error.errno in (errno.EROFS, errno.EACCES), error
    else:
        sys.exit("written")
END
        exec 5<&-
        unmount "$MNT"
        cmp "$SOURCE" "$BATS_FILE_TMPDIR/large.gguf"
    done
}

@test "an ordinary user's mount works the same, and says nothing of it" {
    need_fuse_for_others
    cp "$BATS_FILE_TMPDIR/large.gguf" "$SOURCE"
    chmod a+r "$SOURCE"
    mkdir "$MNT"
    chown 65534 "$MNT"
    as_other_with_fuse sh -c '"$0/wfs" mount "$1" "$2" 2>&1 && cmp "$1" "$2/model.gguf" && cmp "$1" "$2/model.gguf" && "$0/wfs" umount "$2"' \
        "$BATS_TEST_TMPDIR" "$SOURCE" "$MNT" >"$BATS_TEST_TMPDIR/said"
    run ! grep -v '^wfs: note: ' "$BATS_TEST_TMPDIR/said"
}

@test "umount names who maps a file that the kernel reads by itself" {
    serve_copy
    mkfifo "$BATS_TEST_TMPDIR/end"
    exec 6<>"$BATS_TEST_TMPDIR/end"
    "$PYTHON" - "$FILE" "$BATS_TEST_TMPDIR/end" >"$BATS_TEST_TMPDIR/mapped" 3>&- 6>&- <<'END' &
import mmap, sys

with open(sys.argv[1], "rb") as file:
    mapping = mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
print(mapping[0], flush=True)
open(sys.argv[2]).readline()
END
    local reader=$!
    await grep -q . "$BATS_TEST_TMPDIR/mapped"
    run "$WFS" umount "$MNT"
    echo end >&6
    exec 6>&-
    wait "$reader"
    [ "$status" -eq 1 ]
    [[ $output == *"$reader"*"maps model.gguf"* ]]
    unmount "$MNT"
}

@test "passthrough= is yes or no" {
    fails 2 "'maybe' is not yes or no" "$WFS" mount -o passthrough=maybe "$BATS_FILE_TMPDIR/large.gguf" "$MNT"
}
