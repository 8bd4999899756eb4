# What people expect of a read-only file system.

load lib

setup_file() {
    load lib
    mkdir "$BATS_FILE_TMPDIR/model"
    make_input dtypes "$BATS_FILE_TMPDIR/model/model.safetensors"
    echo '{}' >"$BATS_FILE_TMPDIR/model/config.json"
    touch -d '2024-02-03 04:05:06.789' "$BATS_FILE_TMPDIR"/model/*
}

setup() {
    need_fuse
    need_numpy
    SOURCE=$BATS_FILE_TMPDIR/model/model.safetensors
    MNT=$BATS_TEST_TMPDIR/mnt
}

@test "-o allow_rdwr lets programs open files for writing, but every write fails" {
    serve -o allow_rdwr "$SOURCE" "$MNT"
    grep -q " $MNT fuse.wfs rw," /proc/self/mounts
    "$WFS" sha256 "$SOURCE" >"$BATS_TEST_TMPDIR/before"
    check writers "$MNT"
    for path in tensors/f32/raw tensors/f32/q4_k model.gguf; do
        "$WFS" cat "$SOURCE" "$path" >"$BATS_TEST_TMPDIR/wanted"
        check allow_rdwr "$MNT" "$path" "$BATS_TEST_TMPDIR/wanted"
    done
    for command in "touch $MNT/new" "touch $MNT/model.gguf" "rm -f $MNT/model.gguf" "chmod 777 $MNT/model.gguf" "mkdir $MNT/new" \
        "truncate -s 0 $MNT/model.gguf" "rmdir $MNT/tensors" "mv $MNT/model.gguf $MNT/new" "cp $MNT/metadata.json $MNT/new"; do
        run $command
        [ "$status" -ne 0 ]
        [[ $output == *"Read-only file system"* ]]
    done
    (cd "$MNT" && sha256sum --quiet -c "$BATS_TEST_TMPDIR/before")
    unmount "$MNT"
    server_is_quiet
    "$WFS" exec -o allow_rdwr "$SOURCE" -- sh -c 'exec 7<>{}/model.gguf && ! { echo >&7; } 2>/dev/null'
}

# numbers_in PATH...: the inode numbers below these directories of the mount, which are listed in this order.
numbers_in() {
    local directory
    for directory; do
        (cd "$MNT" && find "$directory" -printf '%i %p\n')
    done | sort -k 2
}

@test "inode numbers follow from the path alone, and fit into a double and 32 bits" {
    local model=$BATS_TEST_TMPDIR/tiny
    "$PYTHON" "$HERE/../data/make.py" sample "$model"
    serve "$model" "$MNT"
    numbers_in tensors mlx bitsandbytes compressed-tensors gguf >"$BATS_TEST_TMPDIR/one"
    unmount "$MNT"
    serve "$model" "$MNT"
    numbers_in compressed-tensors gguf bitsandbytes mlx tensors >"$BATS_TEST_TMPDIR/other"
    unmount "$MNT"
    cmp "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/other"
    awk '$1 >= 2 ^ 32 || $1 in seen { exit 1 } { seen[$1] = 1 } END { exit NR < 500 }' "$BATS_TEST_TMPDIR/one"
}

@test "a file handle opens the same file after a remount, or is stale" {
    need_root
    local model=$BATS_TEST_TMPDIR/tiny other=$BATS_TEST_TMPDIR/other
    "$PYTHON" "$HERE/../data/make.py" sample "$model"
    cp -r "$model" "$other"
    echo '{}' >"$other/added.json"
    "$PYTHON" - "$WFS" "$MNT" "$model" "$other" <<'END'
import ctypes, os, subprocess, sys
wfs, mnt, model, other = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [("n", ctypes.c_uint), ("kind", ctypes.c_int), ("bytes", ctypes.c_ubyte * 128)]
def handle(path):
    found, mount = Handle(128), ctypes.c_int()
    assert libc.name_to_handle_at(-100, f"{mnt}/{path}".encode(), ctypes.byref(found), ctypes.byref(mount), 0) == 0
    return found
def read(handle):
    top = os.open(mnt, os.O_RDONLY)
    fd = libc.open_by_handle_at(top, ctypes.byref(handle), os.O_RDONLY)
    reason = ctypes.get_errno()
    os.close(top)
    if fd < 0:
        return os.strerror(reason)
    with open(fd, "rb") as file:
        return file.read()
paths = "tokenizer.json", "mlx/4bit/config.json", "tensors/model.norm.weight/raw"
def mounted(source, *options):
    subprocess.run([wfs, "mount", *options, source, mnt], check=True, stderr=subprocess.DEVNULL)
try:
    mounted(model)
    handles = [handle(path) for path in paths]
    contents = [open(f"{mnt}/{path}", "rb").read() for path in paths]
    subprocess.run([wfs, "umount", mnt], check=True)
    mounted(model)
    os.listdir(f"{mnt}/mlx/4bit") # a number in a directory that nobody has looked into is unknown
    assert [read(handle) for handle in handles] == contents
    subprocess.run([wfs, "umount", mnt], check=True)
    for source, *options in (other,), (model, "-o", "shard-size=1MB"):
        mounted(source, *options)
        assert [read(handle) for handle in handles] == ["Stale file handle"] * 3
        subprocess.run([wfs, "umount", mnt], check=True)
finally:
    subprocess.run([wfs, "umount", "-l", mnt], stderr=subprocess.DEVNULL)
END
}

@test "every write fails with EROFS" {
    serve "$SOURCE" "$MNT"
    check writers_of_read_only_mount "$MNT"
    unmount "$MNT"
    server_is_quiet
}

@test "writes fail with EROFS even after root remounts read-write" {
    need_root
    serve "$SOURCE" "$MNT"
    mount -o remount,rw "$MNT" || skip "this mount program does not remount"
    check writers "$MNT"
    unmount "$MNT"
}

@test "listings, stat and fstat give the same complete attributes" {
    serve "$SOURCE" "$MNT"
    check attributes "$MNT"
    check same_times "$MNT" "$SOURCE"
    unmount "$MNT"
}

@test "mountinfo has ro, nosuid, nodev, type fuse.wfs and the source's path" {
    serve "$SOURCE" "$MNT"
    grep -F " $MNT ro,nosuid,nodev" /proc/self/mountinfo | grep -F " - fuse.wfs $SOURCE ro" | grep default_permissions
    unmount "$MNT"
}

@test "mountinfo escapes commas, spaces and backslashes in the source's path" {
    directory="$BATS_TEST_TMPDIR/a, b\\c"
    mkdir "$directory"
    cp "$SOURCE" "$directory/m,o=1.safetensors"
    serve "$directory/m,o=1.safetensors" "$MNT"
    [ "$(findmnt -n -o SOURCE "$MNT" || true)" = "$directory/m,o=1.safetensors" ] ||
        grep -F 'a,\040b\134c/m,o=1.safetensors' /proc/self/mountinfo
    unmount "$MNT"
}

mode() {
    stat -c %a "$MNT/$1"
}

@test "-o uid, gid and umask set owner, group and mode" {
    serve -o uid=123,gid=456 "$SOURCE" "$MNT"
    [ "$(stat -c '%u %g %a' "$MNT/metadata.json" "$MNT/tensors")" = "123 456 444
123 456 755" ]
    unmount "$MNT"
    serve -o umask=0227 "$SOURCE" "$MNT"
    [ "$(mode metadata.json) $(mode tensors)" = "440 550" ]
    unmount "$MNT"
}

@test "the owner of a copy can remove it" {
    serve "$SOURCE" "$MNT"
    mkdir "$BATS_TEST_TMPDIR/out"
    cp -r "$MNT" "$BATS_TEST_TMPDIR/out/copy"
    unmount "$MNT"
    local as_owner=()
    if is_root; then
        need setpriv
        as_owner=(as_other)
        open_to_others "$BATS_TEST_TMPDIR"
        chown -R 65534 "$BATS_TEST_TMPDIR/out"
    fi
    "${as_owner[@]}" rm -rf "$BATS_TEST_TMPDIR/out/copy"
}

@test "-o allow_other admits other users, and modes decide" {
    need_root
    need setpriv
    open_to_others "$BATS_TEST_TMPDIR"
    serve "$SOURCE" "$MNT"
    run ! as_other cat "$MNT/metadata.json"
    unmount "$MNT"
    serve -o allow_other "$SOURCE" "$MNT"
    as_other cat "$MNT/metadata.json" | cmp - "$MNT/metadata.json"
    unmount "$MNT"
    serve -o allow_other,umask=007 "$SOURCE" "$MNT"
    run ! as_other cat "$MNT/metadata.json"
    unmount "$MNT"
}

@test "a container with users of its own sees them as owners" {
    need_mount_namespace
    need setpriv
    open_to_others "$BATS_TEST_TMPDIR"
    mkdir "$BATS_TEST_TMPDIR/container"
    serve -o allow_other,umask=077 "$SOURCE" "$MNT"
    run "$HERE/namespace" "$PYTHON" "$HERE/idmapped.py" "$MNT" "$BATS_TEST_TMPDIR/container"
    [ "$status" -ne 4 ] || skip "no namespaces of users here"
    [ "$status" -ne 3 ] || [ "$(printf '%s\n6.12\n' "$(uname -r)" | sort -V | head -n 1)" = 6.12 ] || skip "Linux before 6.12"
    "$HERE/namespace" sh -euc '
        "$1" "$2/idmapped.py" "$3" "$4"
        [ "$(stat -c %u:%g "$4/model.gguf")" = 100000:100000 ]
        setpriv --reuid 100000 --regid 100000 --clear-groups cat "$4/model.gguf" | cmp - "$3/model.gguf"
        ! setpriv --reuid 100001 --regid 100000 --clear-groups cat "$4/model.gguf" 2>/dev/null
    ' sh "$PYTHON" "$HERE" "$MNT" "$BATS_TEST_TMPDIR/container"
}

@test "a file has only the permissions that all its sources have" {
    model=$BATS_TEST_TMPDIR/model
    mkdir "$model"
    cp "$SOURCE" "$model/model-00001-of-00002.safetensors"
    make_input large "$model/model-00002-of-00002.safetensors"
    echo '{"model_type":"unknown"}' >"$model/config.json"
    echo '# A model' >"$model/README.md"
    chmod 640 "$model/model-00001-of-00002.safetensors"
    chmod 604 "$model/model-00002-of-00002.safetensors"
    chmod 755 "$model/config.json"
    chmod 600 "$model/README.md"
    serve "$model" "$MNT"
    [ "$(mode tensors/f32/raw)" = 440 ]
    [ "$(mode tensors/f32/metadata.json)" = 440 ]
    [ "$(mode tensors/f32)" = 750 ]
    [ "$(mode tensors/large/raw)" = 404 ]
    [ "$(mode tensors/large)" = 705 ]
    [ "$(mode tensors)" = 700 ]
    [ "$(mode metadata.json)" = 400 ]
    [ "$(mode model.gguf)" = 400 ]
    [ "$(mode config.json)" = 444 ]
    [ "$(mode README.md)" = 400 ]
    [ "$(mode .)" = 755 ]
    unmount "$MNT"
    serve -o umask=004 "$model" "$MNT"
    [ "$(mode tensors/f32/raw)" = 440 ]
    [ "$(mode tensors/large/raw)" = 400 ]
    [ "$(mode config.json)" = 440 ]
    unmount "$MNT"
}

@test "model.gguf is as private as its config.json" {
    model=$BATS_TEST_TMPDIR/model
    mkdir "$model"
    cp "$SOURCE" "$model"
    echo '{"model_type":"unknown"}' >"$model/config.json"
    echo strange >"$model/notes.txt"
    chmod 644 "$model/model.safetensors"
    chmod 440 "$model/config.json"
    chmod 600 "$model/notes.txt"
    serve "$model" "$MNT"
    [ "$(mode model.gguf)" = 440 ]
    [ "$(mode tensors/f32/f32)" = 444 ]
    [ "$(mode notes.txt)" = 400 ]
    unmount "$MNT"
}

@test "files that need an index or params.json are as private as these" {
    model=$BATS_TEST_TMPDIR/model
    mkdir "$model" "$BATS_TEST_TMPDIR/meta"
    cp "$SOURCE" "$model/model-00001-of-00001.safetensors"
    "$PYTHON" - >"$model/model.safetensors.index.json" <<'END'
import json
names = ["f32", "f16"]
print(json.dumps({"weight_map": {name: "model-00001-of-00001.safetensors" for name in names}}))
END
    chmod 644 "$model"/*
    chmod 600 "$model/model.safetensors.index.json"
    serve "$model" "$MNT"
    [ "$(mode metadata.json)" = 400 ]
    [ "$(mode model.gguf)" = 400 ]
    [ "$(mode tensors/f32/f32)" = 444 ]
    unmount "$MNT"
    make_input meta "$BATS_TEST_TMPDIR/meta"
    chmod 644 "$BATS_TEST_TMPDIR"/meta/*
    chmod 600 "$BATS_TEST_TMPDIR/meta/params.json"
    serve "$BATS_TEST_TMPDIR/meta" "$MNT"
    [ "$(mode config.json)" = 400 ]
    [ "$(mode metadata.json)" = 400 ]
    [ "$(mode tensors/model.layers.0.self_attn.q_proj.weight/raw)" = 400 ]
    [ "$(mode tensors/model.norm.weight/raw)" = 444 ]
    unmount "$MNT"
}

@test "a group other than the source's gets no more than others" {
    need_root
    cp "$SOURCE" "$BATS_TEST_TMPDIR/a.safetensors"
    chmod 640 "$BATS_TEST_TMPDIR/a.safetensors"
    serve "$BATS_TEST_TMPDIR/a.safetensors" "$MNT"
    [ "$(mode tensors/f32/raw)" = 440 ]
    unmount "$MNT"
    chgrp 456 "$BATS_TEST_TMPDIR/a.safetensors"
    serve "$BATS_TEST_TMPDIR/a.safetensors" "$MNT"
    [ "$(mode tensors/f32/raw) $(mode tensors/f32) $(mode gguf)" = "400 700 755" ]
    unmount "$MNT"
    serve -o gid=456 "$BATS_TEST_TMPDIR/a.safetensors" "$MNT"
    [ "$(mode tensors/f32/raw) $(mode tensors/f32)" = "440 750" ]
    unmount "$MNT"
}

@test "a file beside a single source is not published" {
    need_root
    need setpriv
    home=$BATS_TEST_TMPDIR/home
    mkdir "$home"
    open_to_others "$BATS_TEST_TMPDIR"
    cp "$SOURCE" "$home/a.safetensors"
    for name in .netrc notes.txt .config.json; do
        echo secret >"$home/$name"
        chmod 600 "$home/$name"
    done
    serve -o allow_other "$home/a.safetensors" "$MNT"
    [ "$(ls -A "$MNT" | tr '\n' ' ')" = "gguf hf metadata.json model.gguf model.safetensors tensors " ]
    run ! grep -E 'netrc|notes.txt|\.config' "$MNT/metadata.json"
    unmount "$MNT"
    echo '{}' >"$home/config.json"
    chmod 600 "$home/config.json"
    serve -o allow_other "$home/a.safetensors" "$MNT"
    [ "$(ls -A "$MNT" | tr '\n' ' ')" = "bitsandbytes compressed-tensors config.json fp8 gguf hf metadata.json mlx model.gguf model.safetensors modelopt tensors " ]
    run ! as_other cat "$MNT/config.json"
    run ! as_other cat "$MNT/metadata.json" # which tells what config.json says
    as_other cat "$MNT/tensors/f32/raw" >/dev/null
    run ! grep -E 'netrc|notes.txt' "$MNT/metadata.json"
    unmount "$MNT"
}

@test "df, du, find, tar and ls work" {
    serve "$SOURCE" "$MNT"
    [ "$(df --output=size -B4096 "$MNT" | tail -1)" -gt 0 ]
    [ "$(df --output=avail "$MNT" | tail -1)" -eq 0 ]
    [ "$(du -s "$MNT" | cut -f 1)" -ge $(($(du -sb --apparent-size "$MNT" | cut -f 1) / 1024)) ]
    [ "$(du -sb --apparent-size "$MNT" | cut -f 1)" -gt 100000 ]
    [ "$(find "$MNT" -name raw -size 131072c)" = "$MNT/tensors/f32/raw" ]
    tar -C "$MNT" -cf "$BATS_TEST_TMPDIR/all.tar" .
    mkdir "$BATS_TEST_TMPDIR/out"
    tar -C "$BATS_TEST_TMPDIR/out" -xf "$BATS_TEST_TMPDIR/all.tar"
    diff -r "$MNT" "$BATS_TEST_TMPDIR/out"
    ls -lRaZ "$MNT" >/dev/null
    [ "$(ls -d "$MNT"/{config.json,metadata.json,tensors})" = "$(printf '%s\n' "$MNT"/{config.json,metadata.json,tensors})" ]
    [ "$(ls "$MNT" | sort)" = "$("$WFS" ls "$SOURCE" | sort)" ]
    cd "$MNT/tensors/f32/.."
    [ "$(cd .. && pwd -P)" = "$MNT" ]
    cd "$BATS_TEST_TMPDIR"
    unmount "$MNT"
}

@test "files count blocks of 512 bytes, rounded up, and directories none" {
    serve "$SOURCE" "$MNT"
    find "$MNT" -type f -printf '%s %b\n' | awk '$2 != int(($1 + 511) / 512) { exit 1 }'
    find "$MNT" -type d -printf '%b\n' | sort -u | grep -qx 0
    [ "$(stat -c '%s %b' "$MNT/tensors/f32/raw")" = "131072 256" ]
    unmount "$MNT"
}

# Programs that look for holes before they read must find everything.
round_trip() {
    diff -r "$MNT/tensors" "$BATS_TEST_TMPDIR/out/tensors"
    cmp "$MNT/model.gguf" "$BATS_TEST_TMPDIR/out/model.gguf"
    rm -r "$BATS_TEST_TMPDIR/out"
}

@test "tar -S and cp --sparse=always make sparse copies" {
    serve "$SOURCE" "$MNT"
    out=$BATS_TEST_TMPDIR/out
    for detection in raw seek; do
        tar -C "$MNT" -cS --hole-detection=$detection -f "$BATS_TEST_TMPDIR/all.tar" .
        mkdir "$out"
        tar -C "$out" -xf "$BATS_TEST_TMPDIR/all.tar"
        round_trip
    done
    cp -r --sparse=always "$MNT" "$out"
    round_trip
    unmount "$MNT"
}

@test "rsync -S makes sparse copies" {
    need rsync
    serve "$SOURCE" "$MNT"
    rsync -rS "$MNT/" "$BATS_TEST_TMPDIR/out/"
    round_trip
    unmount "$MNT"
}

@test "bsdtar makes sparse copies" {
    need bsdtar
    serve "$SOURCE" "$MNT"
    bsdtar -C "$MNT" -cf "$BATS_TEST_TMPDIR/all.tar" .
    mkdir "$BATS_TEST_TMPDIR/out"
    bsdtar -C "$BATS_TEST_TMPDIR/out" -xSf "$BATS_TEST_TMPDIR/all.tar"
    round_trip
    unmount "$MNT"
}

@test "-o only lists what a backup shall read, and the rest opens by name" {
    serve -o 'only=model.gguf,only=tensors/f[36]*/raw,cachedir-tag' "$SOURCE" "$MNT"
    [ "$(cd "$MNT" && find . -type f | sort)" = "./model.gguf
./tensors/f32/raw
./tensors/f64/raw" ]
    "$WFS" cat "$SOURCE" tensors/f32/f16 | cmp - "$MNT/tensors/f32/f16"
    unmount "$MNT"
    serve -o cachedir-tag "$SOURCE" "$MNT"
    [ "$(head -c 43 "$MNT/CACHEDIR.TAG")" = "Signature: 8a477f597d28d172789f06886806bc55" ]
    [ "$(tar -C "$MNT" --exclude-caches-all -c . 2>/dev/null | tar -t | wc -l)" -eq 0 ]
    unmount "$MNT"
    serve "$SOURCE" "$MNT"
    [ ! -e "$MNT/CACHEDIR.TAG" ]
}

@test "missing names stay missing" {
    serve "$SOURCE" "$MNT"
    for name in nothing tensors/nothing tensors/f32/nothing tensors/c64/f32 metadata.json/x "tensors/$(printf 'x%.0s' {1..255})"; do
        [ ! -e "$MNT/$name" ]
        [ ! -e "$MNT/$name" ]
    done
    unmount "$MNT"
}

@test "extended attributes describe each file" {
    need getfattr
    serve "$SOURCE" "$MNT"
    file=$MNT/tensors/f16/f32
    value() { getfattr --absolute-names --only-values -n "user.wfs.$1" "$file"; }
    [ "$(value name)" = f16 ]
    [ "$(value elements)" = 3168 ]
    [ "$(value stored)" = false ]
    file=$MNT/tensors/f16/raw
    [ "$(value stored)" = true ]
    [ "$(value source)" = model.safetensors ]
    getfattr --absolute-names -d "$MNT/tensors/f16" | grep -qF 'user.wfs.dtype="F16"'
    getfattr --absolute-names -d "$MNT/tensors/f16" | grep -qF 'user.wfs.shape="[33'
    getfattr --absolute-names -e hex -d "$MNT/tensors/nul%00name" | grep -qx 'user.wfs.name=0x6e756c006e616d65'
    [ "$(getfattr --absolute-names -d "$MNT/metadata.json" | grep -c user.wfs)" -eq 1 ]
    run getfattr --absolute-names -n user.wfs.nothing "$file"
    [[ $output == *"No such attribute"* ]]
    run getfattr --absolute-names -n security.selinux "$file"
    [[ $output == *"not supported"* || $output == *"No such attribute"* ]]
    unmount "$MNT"
}

@test "fifty thousand tensors are listed without delay" {
    make_input many "$BATS_TEST_TMPDIR/many.safetensors" 50000
    need timeout
    serve "$BATS_TEST_TMPDIR/many.safetensors" "$MNT"
    [ "$(timeout 100 ls -f "$MNT/tensors" | wc -l)" -eq 50002 ]
    [ "$(timeout 100 ls -l "$MNT/tensors" | wc -l)" -eq 50001 ]
    [ "$(timeout 100 find "$MNT/tensors" -maxdepth 1 -type d | sort -u | wc -l)" -eq 50001 ]
    [ "$(stat -c %s "$MNT/tensors/model.layers.781.experts.15.weight/f32")" -eq 16 ]
    unmount "$MNT"
}

# Reads the mode, time, size and identity of every file below a mount, sorted.
facts_of() {
    (cd "$1" && find . -type f | sort | while read -r file; do
        printf '%s %s %s\n' "$file" "$(stat -c '%a %Y %s' "$file")" "$(getfattr --only-values -n user.wfs.identity "$file")"
    done)
}

@test "modes, times and identities do not depend on the order of reads" {
    need getfattr
    local model=$BATS_TEST_TMPDIR/model first=$BATS_TEST_TMPDIR/first second=$BATS_TEST_TMPDIR/second
    cp -r "$HERE/../data/gguf/models/llama-tiny" "$model"
    chmod 640 "$model/tokenizer.model"
    mkdir "$first" "$second"
    serve "$model" "$first"
    facts_of "$first" >"$BATS_TEST_TMPDIR/facts"
    serve "$model" "$second"
    cat "$second/gguf/model-F16.gguf" "$second/hf/config.json" "$second/metadata.json" >/dev/null
    find "$second" -type f | sort -r | xargs cat >/dev/null
    diff "$BATS_TEST_TMPDIR/facts" <(facts_of "$second")
    [ "$(cut -d' ' -f5 "$BATS_TEST_TMPDIR/facts" | sort -u | wc -l)" -eq "$(wc -l <"$BATS_TEST_TMPDIR/facts")" ]
    [ "$(stat -c %a "$second/model.gguf")" = 440 ]
    umount "$first" "$second"
}

@test "computed files name the tool that they agree with" {
    need getfattr
    local llama=$HERE/../data/gguf/models/llama-tiny first
    serve -o llama.cpp=b10470 "$llama" "$MNT"
    stat "$MNT/model.gguf" "$MNT/config.json" >/dev/null
    [ "$(getfattr --only-values -n user.wfs.reference "$MNT/model.gguf")" = llama.cpp=b10470 ]
    run ! getfattr --only-values -n user.wfs.reference "$MNT/config.json"
    first=$(getfattr --only-values -n user.wfs.identity "$MNT/model.gguf")
    unmount "$MNT"
    serve "$llama" "$MNT"
    [ "$(getfattr --only-values -n user.wfs.reference "$MNT/model.gguf")" = llama.cpp=b11549 ]
    [ "$(getfattr --only-values -n user.wfs.identity "$MNT/model.gguf")" != "$first" ]
    unmount "$MNT"
}
