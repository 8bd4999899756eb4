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

@test "pack: a fine-tune is stored as its differences, which the decoder reads; its base stays for it" {
    rm -rf tuned tuned.wfs decoded
    "$PYTHON" "$BATS_TEST_DIRNAME/pack.py" tuned tuned
    "$WFS" pack tuned.wfs --as base tuned/base.safetensors >/dev/null
    "$WFS" pack tuned.wfs --as tuned tuned/tuned.safetensors | tail -1 >log
    # 46 % of random weights' bytes are noise that both have
    [ "$(sed 's/.* \([0-9]*\)\.[0-9] % saved/\1/' log)" -ge 60 ]
    "$WFS" pack --remove base tuned.wfs
    "$WFS" pack --prune tuned.wfs >/dev/null
    "$WFS" verify tuned.wfs
    "$PYTHON" decoder tuned.wfs decoded
    cmp decoded/tuned tuned/tuned.safetensors
}

@test "pack: quantized and rounded files are stored as what does not follow from the weights, which the decoder reads" {
    rm -rf ladder ladder.wfs decoded
    "$PYTHON" "$BATS_TEST_DIRNAME/../data/make.py" sample ladder/hf
    chmod u+w ladder/hf/model.safetensors
    dd if=/dev/zero of=ladder/hf/model.safetensors bs=1 seek=200000 count=2000 conv=notrunc status=none # 0 has codes, too
    "$WFS" cp ladder/hf gguf/model-{F16,Q8_0,Q4_0,Q5_1,Q2_K,Q3_K_M,Q4_K_M,Q5_K_M,Q6_K,IQ4_XS,IQ4_NL}.gguf ladder
    "$WFS" cp -r ladder/hf mlx/{4bit,8bit,mxfp4,nvfp4} compressed-tensors/{FP8_DYNAMIC,MXFP4A16,NVFP4A16,W4A16,W4A16_ASYM,W8A8} fp8/block bitsandbytes/{fp4,nf4} ladder
    "$WFS" pack ladder.wfs ladder >log
    # codes, scales and biases follow from the weights
    [ "$(grep -cE '^ladder/(4bit|8bit|mxfp4|nvfp4|W4A16|W4A16_ASYM|fp4|nf4)/model.safetensors: .* [1-9][.][0-9]+ kB written$' log)" -eq 8 ]
    # codes of 8 bits, and of groups of 32, from one scale for each row, block or group
    [ "$(grep -cE '^ladder/(FP8_DYNAMIC|MXFP4A16|W8A8|block)/model.safetensors: .* [12]?[0-9][.][0-9]+ kB written$' log)" -eq 4 ]
    # of groups of 16 too, whose scales are an eighth of such a file
    grep -qE '^ladder/NVFP4A16/model.safetensors: 1.48 MB: .* 1[0-9]{2} kB written$' log
    "$WFS" verify ladder.wfs
    WFS_CPU=portable "$WFS" verify ladder.wfs
    "$PYTHON" decoder ladder.wfs decoded
    diff -r ladder decoded/ladder
    [ "$(du -s --apparent-size ladder.wfs | cut -f 1)" -lt "$(($(du -s --apparent-size ladder | cut -f 1) * 15 / 100))" ]
}

@test "pack: equal runs of bytes are stored once, wherever in a file they begin" {
    rm -rf shifted shifted.wfs decoded
    mkdir shifted
    head -c 700000 /dev/urandom >shifted/a
    cat packed shifted/a packed >shifted/b
    "$WFS" pack shifted.wfs shifted >/dev/null
    "$PYTHON" decoder shifted.wfs decoded
    diff -r shifted decoded/shifted
    [ "$(du -sb shifted.wfs | cut -f 1)" -lt 900000 ]
}

@test "pack: experts are stored once, apart or together" {
    rm -rf experts experts.wfs decoded
    "$PYTHON" "$BATS_TEST_DIRNAME/pack.py" experts experts
    "$WFS" pack experts.wfs experts >log
    grep -q 'together.safetensors: 262 kB: 262 kB in the archive already' log
    "$PYTHON" decoder experts.wfs decoded
    diff -r experts decoded/experts
}

@test "pack: the decoder restores the archives of releases" {
    need sha256sum
    for release in "$BATS_TEST_DIRNAME"/../data/archives/*; do
        rm -rf decoded
        "$PYTHON" decoder "$release/archive.wfs" decoded
        (cd decoded && sha256sum --check --quiet "$release/SHA256SUMS")
    done
}

@test "pack: cp -r restores names, bytes, modes, times and links" {
    rm -rf copied
    "$WFS" cp -r archive files/src copied
    # hard links become files of their own
    same_tree src copied '/^.\/\(text\|sub\/hard\) /s/ 2 / 1 /'
}

@test "pack: ls, cat and sha256 take the original files, and follow links in an archive" {
    [ "$("$WFS" ls archive files | tr '\n' ' ')" = "gguf src " ]
    same "$WFS" ls archive files/src/sub == eval 'LC_ALL=C ls src/sub'
    "$WFS" cat archive files/src/sub/link | cmp - src/f32.safetensors
    "$WFS" cat archive files/src/folder-link/hard | cmp - src/text
    "$WFS" sha256 archive files/src | sed 's|  files/|  |' | grep -v '^\\' | sha256sum -c --quiet
    run -1 "$WFS" cat archive files/src/loop
    [[ $output == *"'files/src/loop' is a symbolic link to loop, which leads nowhere here"* ]]
}

@test "pack: a command reads an archive's index and lists once" {
    need_strace
    strace -f -o trace -e trace=flock "$WFS" cat archive files/src/text >/dev/null
    [ "$(grep -c LOCK_SH trace)" -eq 1 ]
}

@test "pack: a file or directory in an archive is a source" {
    "$WFS" cat archive/gguf/quantized.gguf model.gguf | cmp - gguf/quantized.gguf
    same "$WFS" cat archive/src/bf16.safetensors tensors/a/raw == "$WFS" cat src/bf16.safetensors tensors/a/raw
    "$WFS" cat archive/gguf/quantized.gguf files/gguf/quantized.gguf | cmp - gguf/quantized.gguf
    "$WFS" ls archive models/gguf | grep -q quantized
}

@test "pack: the GGUF of a model in an archive is that of its directory, which has the model's name" {
    local model=$BATS_TEST_TMPDIR/sources/acme/Nice-Model
    mkdir -p "${model%/*}"
    "$PYTHON" "$BATS_TEST_DIRNAME/../data/make.py" sample "$model"
    ln -s Nice-Model "${model%/*}/latest"
    "$WFS" pack -q names "$BATS_TEST_TMPDIR/sources"
    same "$WFS" cat names/sources/acme/Nice-Model model.gguf == "$WFS" cat "$model" model.gguf
    same "$WFS" cat names/sources/acme/latest model.gguf == "$WFS" cat "${model%/*}/latest" model.gguf
    same "$WFS" cat names/sources/acme/latest/model.safetensors model.gguf == "$WFS" cat "${model%/*}/latest" model.gguf
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

@test "pack: a tensor that is too large to be held is read twice" {
    rm -rf huge huge.wfs
    mkdir huge
    header='{"w":{"dtype":"U8","shape":[143654912],"data_offsets":[0,143654912]}}'
    printf '%b%s' "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0" "$header" >huge/model.safetensors
    truncate -s $((143654912 + 8 + ${#header})) huge/model.safetensors
    printf last | dd of=huge/model.safetensors bs=1 seek=143654000 conv=notrunc status=none
    "$WFS" pack huge.wfs huge >/dev/null
    run -0 "$WFS" verify huge.wfs
    "$WFS" cat huge.wfs files/huge/model.safetensors | cmp - huge/model.safetensors
    rm -rf huge huge.wfs
}

@test "pack: messages say what is wrong with an archive, and results what a user can read" {
    rm -rf broken small small.wfs
    cp -r archive broken
    echo '{' >broken/index.json
    run -1 "$WFS" ls broken
    [[ $output == *"broken/index.json: line 2: invalid JSON"* ]]
    run -1 "$WFS" ls archive/absent
    [[ $output == *"archive has no source of that name"* ]]
    mkdir small
    echo x >small/x
    [[ $("$WFS" pack -q small.wfs small) == "1 file, 2 bytes: "*", nothing saved" ]]
}

@test "pack: an archive may have more packs than a process may have files" {
    rm -rf many many.wfs
    mkdir many
    for i in {1..64}; do head -c 1050000 /dev/urandom >many/$i; done # a pack each
    "$WFS" pack many.wfs many >/dev/null
    (
        ulimit -n 60
        "$WFS" pack many.wfs packed >/dev/null
        "$WFS" verify many.wfs
    )
    rm -rf many many.wfs
}

@test "pack: links of an archive to folders above lead to no second model" {
    mkdir -p loops/deep
    cp gguf/quantized.gguf loops/deep/
    ln -s . loops/self
    ln -s .. loops/up
    ln -s ../../loops loops/deep/above
    ln -s deep loops/again
    "$WFS" pack -q loops.wfs loops
    [ "$("$WFS" ls loops.wfs models | xargs)" = loops ]
    [ "$("$WFS" ls loops.wfs models/loops | xargs)" = quantized ]
    "$WFS" cat loops.wfs files/loops/self/again/above/deep/quantized.gguf | cmp - gguf/quantized.gguf
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
    [[ $output == *"the directory of the archive"* ]]
    run -2 "$WFS" pack archive missing
    [[ $output == *"missing: no such file or directory"* ]]
}

@test "pack --replace: originals are removed once the archive has given all of them back" {
    rm -rf moved moved.wfs restored
    cp -a src moved
    "$WFS" pack --replace moved.wfs moved >log
    [ ! -e moved ]
    grep -q '^[0-9]* files removed, ' log
    "$WFS" cp -r moved.wfs files/moved restored
    same_tree src restored '/^.\/\(text\|sub\/hard\) /s/ 2 / 1 /'
}

@test "pack --replace: a file stays that is open for writing or has a link elsewhere" {
    rm -rf stays stays.wfs
    mkdir -p stays/d
    echo 1 >stays/plain
    echo 2 >stays/linked
    echo 3 >stays/d/open
    echo 4 >stays/d/twice
    ln stays/linked elsewhere
    ln stays/d/twice stays/again
    exec 7>>stays/d/open
    run -1 "$WFS" pack --replace stays.wfs stays
    exec 7>&-
    [[ $output == *"stays/d/open: stays: it is open for writing"* ]]
    [[ $output == *"stays/linked: stays: it has another link elsewhere"* ]]
    [[ $output == *"2 files stay; the archive has each, too, as when it was packed"* ]]
    [ "$(cd stays && find . -type f | sort | tr '\n' ' ')" = "./d/open ./linked " ]
    rm elsewhere
    "$WFS" pack --replace stays.wfs stays
    [ ! -e stays ]
    [ "$("$WFS" cat stays.wfs files/stays/plain files/stays/linked files/stays/d/open files/stays/again | tr '\n' ' ')" = "1 2 3 4 " ]
}

@test "pack --replace: what is left after a kill is added to the archive, and folders keep their times" {
    rm -rf killed killed.wfs restored
    cp -a src killed
    "$WFS" pack killed.wfs killed >/dev/null
    rm -r killed/f32.safetensors killed/sub/other.safetensors killed/a # as a process that was killed while it removed
    "$WFS" pack --replace killed.wfs killed >/dev/null
    [ ! -e killed ]
    "$WFS" cp -r killed.wfs files/killed restored
    same_tree src restored '/^.\/\(text\|sub\/hard\) /s/ 2 / 1 /'
}

@test "pack --replace: nothing is removed if the archive does not give a file back" {
    rm -rf kept kept.wfs
    cp -a src kept
    "$WFS" pack kept.wfs kept >/dev/null
    # the same blobs, one of them damaged: the second run finds all tensors there
    blob=$(find kept.wfs/blobs -type f -printf '%s %p\n' | sort -n | tail -1 | cut -d' ' -f2)
    printf X | dd of="$blob" bs=1 seek=$(($(stat -c %s "$blob") / 2)) conv=notrunc status=none
    run -1 "$WFS" pack --replace kept.wfs kept
    [[ $output == *"nothing is removed: "*"is damaged"* ]]
    same_tree src kept ''
}

# control WHAT: asks the server of start_server.
control() {
    "$PYTHON" -c 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())' "http://127.0.0.1:$HUB/control/$1"
}

# Serves an archive of `pack.py large` as WEB, and as S3.
start_server() {
    "$WFS" ls https:// 2>&1 | grep -q 'built without libcurl' && skip "built without remote sources"
    rm -rf large root ports
    "$PYTHON" "$BATS_TEST_DIRNAME/pack.py" large large
    mkdir -p root/web root/s3/bucket root/hub
    "$WFS" pack root/web/models.wfs large >/dev/null
    cp -r root/web/models.wfs root/s3/bucket/models.wfs
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 -keyout key -out certificate 2>/dev/null
    cat certificate key >both
    "$PYTHON" "$BATS_TEST_DIRNAME/../remote/server.py" ports root both 3>&- >server.log 2>&1 &
    export SERVER=$! SERVER_LOG=server.log # for teardown()
    await test -s ports
    read -r HUB _ TLS <ports
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache no_proxy=127.0.0.1
    export AWS_ENDPOINT_URL=http://127.0.0.1:$HUB/s3 AWS_REGION=eu-test-1 AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=secret/Key+1
    unset AWS_SESSION_TOKEN AWS_PROFILE AWS_ENDPOINT_URL_S3 CACHE_DIRECTORY
    WEB=http://127.0.0.1:$HUB/web/models.wfs SECURE=https://127.0.0.1:$TLS/web/models.wfs S3=s3://bucket/models.wfs
}

@test "pack: a tensor that is coded against another one is fetched with it, in few requests" {
    need openssl
    start_server
    control reset >/dev/null
    "$WFS" cat "$WEB/" files/large/tuned.safetensors | cmp - large/tuned.safetensors
    # 9 MB are fetched; when the input was asked for chunk by chunk, that took 39 requests
    [ "$(control log | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["content"])')" -le 30 ]
}

@test "pack: an archive behind https or in a bucket is a source" {
    need openssl
    start_server
    export SSL_CERT_FILE=$PWD/certificate
    "$WFS" cat "$SECURE/" files/large/tuned.safetensors | cmp - large/tuned.safetensors
    "$WFS" ls "$SECURE/large/" files/large >/dev/null
    "$WFS" sha256 "$SECURE/large" files/large/base.safetensors | sed 's|  files/|  |' | sha256sum --check --quiet
    "$WFS" cat "$S3" files/large/tuned.safetensors | cmp - large/tuned.safetensors
    [[ $("$WFS" verify "$S3/") == "$S3/: 2 of 2 files have the SHA-256 of the originals, "* ]]
    [ "$("$WFS" ls "$S3/large" files/large)" = "$(ls large)" ]
    "$WFS" cp -r "$S3" files/large restored.s3
    diff -r large restored.s3
    same "$WFS" cat "$S3/large/base.safetensors" tensors/w1/raw == "$WFS" cat large/base.safetensors tensors/w1/raw
}

@test "pack --remove takes a source out, and --prune the blobs that no source needs" {
    rm -rf two
    "$WFS" pack two src gguf >/dev/null
    run -1 "$WFS" pack --remove nothing two
    [[ $output == *"two has no source 'nothing'"* ]]
    "$WFS" pack --remove gguf two
    [ "$("$WFS" ls two files)" = src ]
    n=$(find two/blobs -type f | wc -l)
    [[ $("$WFS" pack --prune two) == "3 blobs removed, "* ]]
    [ "$(find two/blobs -type f | wc -l)" -eq $((n - 3)) ]
    "$WFS" verify two >/dev/null
    run -2 "$WFS" pack --prune two src
    exec 7<two
    flock 7
    run -1 "$WFS" pack --prune two
    exec 7<&-
    [[ $output == *"another wfs changes the archive"* ]]
}

@test "pack --prune rewrites packs of which less than half is needed, and those that are coded against them" {
    need zstd
    rm -rf half half.wfs whole.wfs decoded
    "$PYTHON" "$BATS_TEST_DIRNAME/pack.py" half half
    "$WFS" pack half.wfs half/base >/dev/null
    "$WFS" pack half.wfs half/tuned >/dev/null
    "$WFS" pack --remove base half.wfs
    [[ $("$WFS" pack --prune half.wfs) == "2 packs rewritten, 6 blobs removed, "* ]]
    # what is left of the base is two of six tensors, which `tuned` alone would take, too
    "$WFS" pack whole.wfs half/tuned >/dev/null
    [ "$(du -sb half.wfs | cut -f1)" -lt "$(($(du -sb whole.wfs | cut -f1) * 120 / 100))" ]
    "$WFS" verify half.wfs
    "$PYTHON" decoder half.wfs decoded
    diff -r half/tuned decoded/tuned
    for blob in half.wfs/blobs/sha256/*; do
        [ "$(sha256sum <"$blob" | cut -d' ' -f1)" = "${blob##*/}" ]
        case $(head -c1 "$blob") in '{') ;; *) zstd -tq --format=zstd - <"$blob" ;; esac
    done
    [ "$("$WFS" pack --prune half.wfs)" = "0 blobs removed, 0 bytes" ]
    # two tensors of the base are still there
    [[ $("$WFS" pack half.wfs half/base | tail -1) == "1 file, 480 kB: 160 kB in the archive already, "* ]]
    "$WFS" verify half.wfs
}

@test "pack: packs that a run left unfinished are used if they are whole" {
    rm -rf left left.wfs
    "$PYTHON" "$BATS_TEST_DIRNAME/pack.py" half left
    "$WFS" pack left.wfs left/base left/tuned >/dev/null
    echo '{"schemaVersion":2,"manifests":[]}' >left.wfs/index.json
    [[ $("$WFS" pack left.wfs left/tuned | tail -1) == "1 file, 240 kB: 240 kB in the archive already, "* ]]
    "$WFS" verify left.wfs
    # of the damaged pack of the base nothing is used, nor what is coded against it
    echo '{"schemaVersion":2,"manifests":[]}' >left.wfs/index.json
    base=$(find left.wfs/blobs -size +200k)
    printf X | dd of="$base" bs=1 seek=100000 conv=notrunc status=none
    [[ $("$WFS" pack left.wfs left/tuned | tail -1) == "1 file, 240 kB: 0 bytes in the archive already, "* ]]
    "$WFS" verify left.wfs
}

@test "pack --prune: a pack stays whole of which half is needed" {
    rm -rf both both.wfs
    mkdir both
    for i in 1 2 3 4; do head -c 50000 /dev/urandom >both/$i; done
    "$WFS" pack both.wfs both >/dev/null
    rm both/1
    echo >both/2
    "$WFS" pack both.wfs both >/dev/null
    [[ $("$WFS" pack --prune both.wfs) == "2 blobs removed, "* ]]
    "$WFS" verify both.wfs
}

@test "pack --replace: no kill loses a file" {
    "$PYTHON" "$BATS_TEST_DIRNAME/pack_kills.py" "$WFS" src "$BATS_TEST_TMPDIR/kills" 2
}

# faults KIND...: prints how many faults pack_faults.py tried. A disk takes most of the time for fsync, memory none.
faults() {
    local scratch=$BATS_TEST_TMPDIR
    [ ! -w /dev/shm ] || scratch=$(mktemp -d /dev/shm/wfs-XXXXXX)
    "$PYTHON" "$BATS_TEST_DIRNAME/pack_faults.py" "$WFS" little "$scratch/faults" "$@" >tried || echo 0 >tried
    rm -rf "$scratch/faults"
    [ "$scratch" = "$BATS_TEST_TMPDIR" ] || rmdir "$scratch"
    cut -d' ' -f1 tried
}

@test "pack: no kill at a system call loses a file, and the same command goes on" {
    ! grep -qE '__(asan|tsan)_init' "$WFS" || skip "the calls of a sanitizer would count, too"
    need_strace
    rm -rf little
    "$PYTHON" "$BATS_TEST_DIRNAME/pack.py" small little
    [ "$(faults /^{rename,unlink,link,mkdir}:kill)" -ge 40 ]
}

@test "pack: no system call that fails loses a file, and each is reported" {
    ! grep -qE '__(asan|tsan)_init' "$WFS" || skip "the calls of a sanitizer would count, too"
    need_strace
    rm -rf little
    "$PYTHON" "$BATS_TEST_DIRNAME/pack.py" small little
    [ "$(faults /^{rename,unlink,link,mkdir}:EIO write:ENOSPC)" -ge 60 ]
}

@test "pack --replace: an archive on another disk, which is full" {
    need_mount_namespace
    rm -rf full full.src
    mkdir full
    cp -a src full.src
    # shellcheck disable=SC2016 # the inner shell expands these
    "$HERE/namespace" bash -euc '
        mount -t tmpfs -o size=200k none full
        ! "$WFS" pack --replace full/archive.wfs full.src 2>log
        grep -q "No space left on device" log
        diff -r --no-dereference src full.src
        [ "$(find full/archive.wfs/blobs -type f)" = "" ]
        mount -o remount,size=20m full
        "$WFS" pack --replace full/archive.wfs full.src >/dev/null
        [ ! -e full.src ]
        "$WFS" cp -r full/archive.wfs files/full.src restored.full'
    same_tree src restored.full '/^.\/\(text\|sub\/hard\) /s/ 2 / 1 /'
}

@test "pack --replace: files that change while others are removed stay" {
    need_strace
    rm -rf changing changing.wfs
    mkdir changing
    for name in appended modified replaced same swapped z; do echo "$name" >changing/$name; done
    echo other >new
    strace -f -o trace -P "$PWD/changing" -e trace=unlinkat -e inject=unlinkat:signal=STOP:when=1 "$WFS" pack --replace changing.wfs changing >/dev/null 2>log &
    STRACE=$!
    await grep -q 'stopped by SIGSTOP' trace
    echo more >>changing/appended
    touch -d @1000000000 changing/modified
    mv new changing/replaced
    mv changing/swapped changing/swapped.was
    ln -s swapped.was changing/swapped
    kill -CONT "$(sed -n 's/ .*stopped by SIGSTOP.*//p' trace | head -1)"
    wait "$STRACE" && status=0 || status=$?
    [ "$status" -eq 1 ]
    for name in appended modified replaced; do grep -q "changing/$name: stays: it changed since it was packed" log; done
    grep -q 'changing/swapped: stays: ' log
    grep -q '4 files stay; the archive has each, too, as when it was packed' log
    [ "$(find changing -mindepth 1 -printf '%f ' | tr ' ' '\n' | LC_ALL=C sort | tr '\n' ' ')" = "appended modified replaced swapped swapped.was " ]
    [ "$(cat changing/appended changing/replaced changing/swapped | tr '\n' ' ')" = "appended more other swapped " ]
    "$WFS" verify changing.wfs >/dev/null
    [ "$("$WFS" cat changing.wfs files/changing/replaced files/changing/swapped files/changing/z | tr '\n' ' ')" = "replaced swapped z " ]
}

@test "pack --replace: a killed step is reported" {
    need_strace
    rm -rf stopped stopped.wfs
    mkdir stopped
    echo 1 >stopped/1
    run -1 strace -f -o trace -P "$PWD/stopped" -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=1 "$WFS" pack --replace stopped.wfs stopped
    [[ $output == *"signal 9 ended the process that removes the originals; the same command goes on from there"* ]]
    [ "$(cat stopped/1)" = 1 ]
    [ "$("$WFS" pack --replace stopped.wfs stopped | tail -1)" = "1 file removed, 2 bytes" ]
    [ ! -e stopped ]
}

@test "pack: several processes add to an archive at once" {
    rm -rf shared shared.d
    mkdir shared.d
    for i in 1 2 3 4; do
        mkdir shared.d/$i
        echo "$i" >shared.d/$i/own
        cp src/text shared.d/$i
    done
    pids=()
    for i in 1 2 3 4; do
        "$WFS" pack shared shared.d/$i >/dev/null &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid"; done
    [ "$("$WFS" ls shared files | tr '\n' ' ')" = "1 2 3 4 " ]
    [ "$("$WFS" cat shared files/{1,2,3,4}/own | tr '\n' ' ')" = "1 2 3 4 " ]
    "$WFS" verify shared >/dev/null
}

@test "pack: who reads an archive goes on while it changes, and keeps others from pruning it" {
    rm -rf read read.src
    mkdir read.src
    head -c 3000000 /dev/urandom >read.src/a
    cp src/text read.src/b
    "$WFS" pack read read.src >/dev/null
    mkfifo fifo
    "$WFS" cat read files/read.src/a files/read.src/b >fifo &
    READER=$!
    exec 8<fifo
    [ "$(dd bs=1 count=1 status=none <&8 | od -An -tx1)" = "$(head -c 1 read.src/a | od -An -tx1)" ]
    cat read.src/a read.src/b >expected
    head -c 3000000 /dev/urandom >read.src/a
    "$WFS" pack read read.src >/dev/null
    run -1 "$WFS" pack --prune read
    [[ $output == *"read: a mount or another command reads the archive; end it, or prune the archive later"* ]]
    cmp <(tail -c +2 expected) - <&8
    exec 8<&-
    wait "$READER"
    [[ $("$WFS" pack --prune read) == "3 blobs removed, "* ]]
    "$WFS" cat read files/read.src/a | cmp - read.src/a
}

@test "pack: a write that fails leaves the archive as it was" {
    rm -rf limited
    "$WFS" pack limited gguf >/dev/null
    before=$(find limited -type f | sort)
    run -1 bash -c "trap '' XFSZ; ulimit -f 100; '$WFS' pack --replace limited src"
    [[ $output == *"limited: File too large"* ]]
    [ "$(find limited -type f | sort)" = "$before" ]
    [ -e src/f32.safetensors ]
    "$WFS" verify limited >/dev/null
}

@test "pack: archives that nobody packed are refused soon, in little memory" {
    local sanitized=()
    ! grep -qE '__(asan|tsan)_init' "$WFS" || sanitized=(sanitized)
    "$PYTHON" "$BATS_TEST_DIRNAME/pack_hostile.py" "$WFS" "$BATS_TEST_TMPDIR/hostile" "${sanitized[@]}"
}

@test "pack: an archive on a server is a source, too" {
    "$WFS" ls https:// 2>&1 | grep -q 'built without libcurl' && skip "built without remote sources"
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache no_proxy=127.0.0.1
    mkdir -p models--acme--x/{refs,snapshots/abc}
    printf abc >models--acme--x/refs/main
    cp gguf/quantized.gguf models--acme--x/snapshots/abc/
    "$WFS" pack -q repository models--acme--x
    "$PYTHON" -u -m http.server 0 --bind 127.0.0.1 3>&- >port 2>/dev/null &
    HTTP=$!
    await grep -q port port
    url=http://127.0.0.1:$(sed 's/.* port \([0-9]*\) .*/\1/' port)/archive
    "$WFS" cat "$url/" files/src/f32.safetensors | cmp - src/f32.safetensors && status=0 || status=1
    [ "$status" -ne 0 ] || "$WFS" verify "$url/" >verified || status=1
    [ "$status" -ne 0 ] || same "$WFS" cat "$url/src/bf16.safetensors" tensors/a/raw == "$WFS" cat src/bf16.safetensors tensors/a/raw || status=1
    [ "$status" -ne 0 ] || same "$WFS" cat "${url%archive}repository/models--acme--x" model.gguf == cat gguf/quantized.gguf || status=1
    kill "$HTTP"
    wait "$HTTP" || true
    [ "$status" -eq 0 ]
    grep -q 'files have the SHA-256 of the originals' verified
}
