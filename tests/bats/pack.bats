# Archives: wfs pack, and the original files that it shows.

load lib

setup_file() {
    load lib
    cd "$BATS_FILE_TMPDIR" || return
    "$PYTHON" "$BATS_TEST_DIRNAME/pack.py" models src
    mkdir gguf
    cp "$BATS_TEST_DIRNAME/../data/gguf/quantized.gguf" gguf/
    "$WFS" pack archive src gguf >packed
    sed -n '/^```python$/,/^```$/p' "$BATS_TEST_DIRNAME/../../docs/archive.md" | sed '/^```/d' >decoder
}

setup() {
    need_numpy
    cd "$BATS_FILE_TMPDIR" || return
}

# states DIR: all that an archive keeps of a tree. The number of names is that of hard links.
states() {
    (cd "$1" && find . -printf '%p %y %m %T@ %l ' \( -type f -printf '%n %s' -o -true \) -printf '\n' | LC_ALL=C sort)
}

same_tree() {
    diff -r --no-dereference "$1" "$2"
    diff <(states "$1" | sed "$3") <(states "$2" | sed "$3")
}

@test "pack: equal tensors are stored once, and what was written is counted" {
    grep -q '^src/sub/other.safetensors: 480 kB: 480 kB in the archive already, ' packed
    [ "$(tail -1 packed | cut -d, -f1)" = "$(find src gguf -type f -printf '%i\n' | sort -u | wc -l) files" ]
    [ "$(du -sb archive | cut -f1)" -lt "$(($(du -sb src | cut -f1) * 60 / 100))" ]
}

@test "pack: an archive is an OCI image layout of zstd frames, named by their SHA-256" {
    need zstd sha256sum
    [ "$(cat archive/oci-layout)" = '{"imageLayoutVersion":"1.0.0"}' ]
    for blob in archive/blobs/sha256/*; do
        [ "$(sha256sum <"$blob" | cut -d' ' -f1)" = "${blob##*/}" ]
        case $(head -c1 "$blob") in '{') ;; *) zstd -tq --format=zstd - <"$blob" ;; esac
    done
}

@test "pack: the decoder of docs/archive.md restores all that was packed" {
    [ "$(wc -l <decoder)" -le 120 ]
    rm -rf decoded
    "$PYTHON" decoder archive decoded
    same_tree src decoded/src ''
    same_tree gguf decoded/gguf ''
}

@test "pack: cp -r restores names, bytes, modes, times and links" {
    rm -rf copied
    "$WFS" cp -r archive files/src copied
    # hard links become files of their own
    same_tree src copied '/^.\/\(text\|sub\/hard\) /s/ 2 / 1 /'
}

@test "pack: ls, cat and sha256 take the original files, and follow links in an archive" {
    [ "$("$WFS" ls archive files | tr '\n' ' ')" = "gguf src " ]
    "$WFS" ls archive files/src/sub | diff - <(LC_ALL=C ls src/sub)
    "$WFS" cat archive files/src/sub/link | cmp - src/f32.safetensors
    "$WFS" cat archive files/src/folder-link/hard | cmp - src/text
    "$WFS" sha256 archive files/src | sed 's|  files/|  |' | grep -v '^\\' | sha256sum -c --quiet
    run -1 "$WFS" cat archive files/src/loop
    [[ $output == *"'files/src/loop' is a symbolic link to loop, which leads nowhere here"* ]]
}

@test "pack: a file or directory in an archive is a source" {
    "$WFS" cat archive/gguf/quantized.gguf model.gguf | cmp - gguf/quantized.gguf
    "$WFS" cat archive/src/bf16.safetensors tensors/a/raw | cmp - <("$WFS" cat src/bf16.safetensors tensors/a/raw)
    "$WFS" cat archive/gguf/quantized.gguf files/gguf/quantized.gguf | cmp - gguf/quantized.gguf
    "$WFS" ls archive models/gguf | grep -q quantized
}

@test "pack: verify reads everything, and names what is damaged" {
    run -0 "$WFS" verify archive
    [[ $output == "archive: "*" files have the SHA-256 of the originals, "* ]]
    "$WFS" verify archive/src/sub
    rm -rf damaged
    cp -r archive damaged
    # a byte in the middle of the largest blob
    blob=$(find damaged/blobs -type f -printf '%s %p\n' | sort -n | tail -1 | cut -d' ' -f2)
    printf X | dd of="$blob" bs=1 seek=$(($(stat -c %s "$blob") / 2)) conv=notrunc status=none
    run -1 "$WFS" verify damaged
    [[ $output == *"is damaged: "* ]]
    run -1 "$WFS" cat damaged files/src/f32.safetensors
    [[ $output == *damaged* ]]
}

@test "pack: a mount shows the original files" {
    need_fuse
    mnt=$BATS_TEST_TMPDIR/mnt
    mkdir "$mnt"
    serve archive "$mnt"
    same_tree src "$mnt"/files/src '/^.\/\(text\|sub\/hard\) /s/ 2 / 1 /'
    [ "$(readlink "$mnt"/files/src/sub/link)" = ../f32.safetensors ]
    [ -e "$mnt"/models/gguf/quantized/quantized.gguf ]
    unmount "$mnt"
}

@test "pack: a source goes in under its last name, or --as NAME" {
    rm -rf named
    (cd src/sub && "$WFS" pack ../../named .. >/dev/null)
    (cd src/sub && "$WFS" pack ../../named . ../text >/dev/null)
    "$WFS" pack named --as other src/a >/dev/null
    [ "$("$WFS" ls named files | tr '\n' ' ')" = "other src sub text " ]
    "$WFS" cat named files/text | cmp - src/text
    run -2 "$WFS" pack named --as x/y src
    [[ $output == *"has no '/'"* ]]
    run -2 "$WFS" pack named --as x src gguf
    run -2 "$WFS" pack named src/sub src/a/../sub
    [[ $output == *"would both be called 'sub'"* ]]
}

@test "pack: a source that is added again replaces changed files and adds new ones; the others stay" {
    rm -rf again more
    mkdir -p more/d
    echo 1 >more/kept
    echo 1 >more/d/changed
    "$WFS" pack again more >/dev/null
    rm more/kept
    echo 2 >more/d/changed
    echo 3 >more/new
    "$WFS" pack again more >/dev/null
    [ "$("$WFS" cat again files/more/kept files/more/d/changed files/more/new | tr '\n' ' ')" = "1 2 3 " ]
    rm -r more/d
    echo file >more/d
    "$WFS" pack again more >/dev/null
    [ "$("$WFS" ls again files/more | tr '\n' ' ')" = "d kept new " ]
}

@test "pack: what an archive cannot keep is refused by name, before anything is written" {
    rm -rf special refused
    mkdir special
    mkfifo special/pipe
    run -1 "$WFS" pack refused special
    [[ $output == *"special/pipe: a FIFO"* ]]
    [ "$(find refused/blobs -type f | wc -l)" -eq 0 ]
    mkdir full
    touch full/file
    run -1 "$WFS" pack full gguf
    [[ $output == *"full: neither empty nor an archive: it has file"* ]]
    run -2 "$WFS" pack src/archive src
    [[ $output == *"the archive src/archive is in its source"* ]]
    [ ! -e src/archive ]
    run -2 "$WFS" pack archive archive/blobs/sha256
    [[ $output == *"lies in the archive"* ]]
    run -2 "$WFS" pack archive missing
    [[ $output == *"missing: no such file or directory"* ]]
}
