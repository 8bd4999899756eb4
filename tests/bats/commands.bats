# The command without a mount: ls, cat, cp, info, help, and what is said about mistakes. Needs neither root nor /dev/fuse.

load lib

setup_file() {
    load lib
    mkdir "$BATS_FILE_TMPDIR/model"
    make_input dtypes "$BATS_FILE_TMPDIR/model/model.safetensors"
    echo '{"architectures":["LlamaForCausalLM"]}' >"$BATS_FILE_TMPDIR/model/config.json"
    make_input large "$BATS_FILE_TMPDIR/large.safetensors"
    make_input infinite "$BATS_FILE_TMPDIR/infinite.safetensors"
}

setup() {
    need_numpy
    MODEL=$BATS_FILE_TMPDIR/model
    SOURCE=$MODEL/model.safetensors
    LARGE=$BATS_FILE_TMPDIR/large.safetensors
    OUT=$BATS_TEST_TMPDIR/out
    mkdir "$OUT"
}

@test "a comparison of two commands fails if both do" {
    same printf 'a\n' == echo a
    differ echo a == echo b
    run -1 same echo a == echo b
    run -1 differ echo a == echo a
    run -1 same false == false
    run -1 same true == true
    run -1 same eval 'echo a; false' == echo a
    run -1 same echo a == eval 'echo a; false'
    run -1 differ eval 'echo b; false' == echo a
}

@test "ls lists the tree in its own order" {
    [ "$("$WFS" ls "$SOURCE" tensors/c64)" = "metadata.json
raw
raw.npy" ]
    [ "$("$WFS" ls "$SOURCE" /tensors/c64/raw)" = tensors/c64/raw ]
    "$WFS" ls "$MODEL" | grep -qx config.json
    [ "$("$WFS" ls "$SOURCE" tensors | wc -l)" -eq 18 ]
}

@test "ls -l and ls -R print mode, exact size and time" {
    touch -d '2024-02-03 04:05:06' "$SOURCE"
    [ "$("$WFS" ls -l "$SOURCE" tensors/f32/q8_0)" = "-r--r--r-- 34816 2024-02-03 04:05 tensors/f32/q8_0" ]
    "$WFS" ls -l "$SOURCE" tensors | grep -qE '^drwxr-xr-x +[0-9]+ 2024-02-03 04:05 f32$'
    "$WFS" ls -lR "$SOURCE" | grep -qE '^-r--r--r-- +34816 .* q8_0$'
    [ "$("$WFS" ls -R "$SOURCE" | grep -c '^tensors/.*:$')" -eq 18 ]
    [ "$("$WFS" ls --recursive --long "$SOURCE")" = "$("$WFS" ls -Rl "$SOURCE")" ]
}

@test "ls takes several paths and patterns, -h, -a and -d" {
    [ "$("$WFS" ls "$SOURCE" tensors/u8/raw ./metadata.json tensors/c64)" = "tensors/u8/raw
metadata.json

tensors/c64:
metadata.json
raw
raw.npy" ]
    [ "$("$WFS" ls -d "$SOURCE" 'tensors/[ui]8' .)" = "tensors/i8
tensors/u8
/" ]
    [ "$("$WFS" ls -a "$SOURCE" tensors/c64 | head -3 | tr '\n' ' ')" = ". .. metadata.json " ]
    "$WFS" ls -lh "$LARGE" tensors/large | grep -qE '^-r--r--r-- +134 MB .* f32$'
    "$WFS" ls -lh "$LARGE" tensors/large | grep -qE '^-r--r--r-- +67\.1 MB .* raw$'
    [ "$("$WFS" ls -aR "$SOURCE" tensors | grep -c '^tensors/.*:$')" -eq 18 ]
    run --separate-stderr "$WFS" ls "$SOURCE" no/such metadata.json
    [ "$status" -eq 1 ]
    [ "$output" = metadata.json ]
    [[ $stderr == *"there is no 'no'"* ]]
}

@test "cat writes one file, several files, or a range through a pipe" {
    same "$WFS" cat "$SOURCE" tensors/f32/raw == "$WFS" cat "$SOURCE" tensors/f32/f32
    same "$WFS" cat "$SOURCE" tensors/u8/raw tensors/i8/raw == eval '"$WFS" cat "$SOURCE" tensors/u8/raw; "$WFS" cat "$SOURCE" tensors/i8/raw'
    [ "$("$WFS" cat "$LARGE" tensors/large/f32 | head -c 1000 | wc -c)" -eq 1000 ]
    [ "$("$WFS" cat "$LARGE" tensors/large/q4_0 | wc -c)" -eq $((64 * 1024 * 1024 / 2 / 32 * 18)) ]
}

@test "cat is silent when its reader exits" {
    run --separate-stderr bash -c '"$0" cat "$1" tensors/large/f32 | true' "$WFS" "$LARGE"
    [ -z "$stderr" ]
}

@test "a missing path exits with 1 and a hint" {
    fails 1 "there is no 'tensors/nothing'" "$WFS" cat "$SOURCE" tensors/nothing
    fails 1 "there is no 'nothing'" "$WFS" ls "$SOURCE" nothing/else
    fails 1 "is not a directory" "$WFS" cat "$SOURCE" metadata.json/x
    fails 1 "tensors: is a directory" "$WFS" cat "$SOURCE" tensors
    fails 1 "No such file or directory" "$WFS" info "$OUT/nothing"
    fails 1 "there is no '..'" "$WFS" ls "$SOURCE" ../..
    echo '{' >"$OUT/bad.safetensors"
    for command in ls info "cat:metadata.json" "cp:metadata.json:$OUT/x"; do
        IFS=: read -ra words <<<"$command"
        fails 1 "bad.safetensors" "$WFS" "${words[0]}" "$OUT/bad.safetensors" "${words[@]:1}"
    done
}

@test "a usage error exits with 2 and names the help" {
    need_mount_commands
    run --separate-stderr "$WFS"
    [ "$status" -eq 2 ] && [ -z "$output" ] && [ "${stderr_lines[-1]}" = "wfs: no command given" ]
    [[ $stderr == *"Usage: wfs COMMAND"*"  info "*"Examples:"* && $(wc -l <<<"$stderr") -le 40 ]]
    fails 2 "missing operand; usage: wfs mount SOURCE... MOUNTPOINT" "$WFS" mount
    fails 2 "umount: extra operand 'b'; usage: wfs umount MOUNTPOINT" "$WFS" umount a b
    fails 2 "'q99' is not a type to quantize to (known: F32 " "$WFS" ls -o token-embedding-type=q99 "$SOURCE"
    fails 2 "unknown command 'nonsense'" "$WFS" nonsense
    fails 2 "unknown flag -x" "$WFS" ls -x "$SOURCE"
    fails 2 "unknown flag --nonsense" "$WFS" ls --nonsense "$SOURCE"
    fails 2 "missing operand; usage: wfs ls " "$WFS" ls
    fails 2 "SOURCE PATH... DEST" "$WFS" cp a b
    fails 2 "an argument must follow -o" "$WFS" ls "$SOURCE" -o
    fails 2 "unknown option 'nonsense'" "$WFS" ls -o nonsense "$OUT/nothing"
    fails 2 "option pure takes no value" "$WFS" ls -o pure=1 "$SOURCE"
    fails 2 "option name needs a value: NAME" "$WFS" ls -o name "$SOURCE"
    fails 2 "option q4_0: 'best'" "$WFS" ls -o q4_0=best "$SOURCE"
    fails 2 "option umask: '999' is not an octal number" "$WFS" ls -o umask=999 "$SOURCE"
    fails 2 "option uid: '-1'" "$WFS" ls -o uid=-1 "$SOURCE"
    fails 2 "option tensor-type: 'x' is not PATTERN=TYPE" "$WFS" ls -o tensor-type=x "$SOURCE"
    fails 2 "'Q9_9' is not a type" "$WFS" ls -o token-embedding-type=Q9_9 "$SOURCE"
}

@test "options accept a comma in a value, '-' for '_', words of fstab, and several -o" {
    "$WFS" cat "$SOURCE" metadata.json -o 'name=a\,b' | grep -qF '"a,b"'
    "$WFS" ls -o leave_output_tensor,token_embedding_type=q8_0 -o output-tensor-type=F16 -o 'tensor_type=a\,b\.c=q4_K' "$SOURCE"
    "$WFS" ls -o defaults,ro,noauto,nofail,_netdev,x-anything=1,,umask=022 "$SOURCE"
    same "$WFS" cat -o q4_0=ggml "$SOURCE" tensors/f32/q4_0 == "$WFS" cat "$SOURCE" tensors/f32/q4_0
    differ "$WFS" cat -o q4-0=absmax7 "$SOURCE" tensors/f32/q4_0 == "$WFS" cat "$SOURCE" tensors/f32/q4_0
    "$WFS" ls -- "$SOURCE" tensors
}

@test "cp writes to a file, into a directory, over a file, through a link and to a pipe" {
    "$WFS" cat "$LARGE" tensors/large/q8_0 >"$OUT/wanted"
    "$WFS" cp "$LARGE" tensors/large/q8_0 "$OUT/file"
    cmp "$OUT/file" "$OUT/wanted"
    [ "$(stat -c %a "$OUT/file")" = "$(stat -c %a "$OUT/wanted")" ]
    mkdir "$OUT/directory"
    "$WFS" cp "$LARGE" tensors/large/q8_0 "$OUT/directory"
    cmp "$OUT/directory/q8_0" "$OUT/wanted"
    echo old >"$OUT/old"
    ln -s old "$OUT/link"
    "$WFS" cp "$LARGE" tensors/large/q8_0 "$OUT/link"
    [ -L "$OUT/link" ]
    cmp "$OUT/old" "$OUT/wanted"
    (cd "$OUT" && "$WFS" cp "$LARGE" tensors/large/q8_0 here && cmp here wanted)
    "$WFS" cp "$LARGE" tensors/large/q8_0 /dev/stdout | cmp - "$OUT/wanted"
    "$WFS" cp "$LARGE" tensors/large/q8_0 /dev/null
    [ -z "$(find "$OUT" -name '.*' -type f)" ]
}

@test "cat and cp take several files and patterns" {
    same "$WFS" cat "$SOURCE" 'tensors/[ui]8/raw' == "$WFS" cat "$SOURCE" tensors/i8/raw tensors/u8/raw
    same "$WFS" cat "$SOURCE" ./metadata.json == "$WFS" cat "$SOURCE" /metadata.json
    fails 1 "there is no 'tensors/z" "$WFS" cat "$SOURCE" 'tensors/z*/raw'
    "$WFS" cp "$SOURCE" metadata.json 'tensors/f32/q4_*' "$OUT"
    [ "$(ls "$OUT" | tr '\n' ' ')" = "metadata.json q4_0 q4_1 q4_k " ]
    same cat "$OUT/q4_1" == "$WFS" cat "$SOURCE" tensors/f32/q4_1
    fails 1 "is not a directory, and 2 files are to be copied; name a directory" "$WFS" cp "$SOURCE" metadata.json tensors/f32/raw "$OUT/file"
    [ ! -e "$OUT/file" ]
}

@test "cat --range prints just these bytes" {
    "$WFS" cat "$LARGE" tensors/large/q8_0 >"$OUT/whole"
    same "$WFS" cat --range 1000001:3000000 "$LARGE" tensors/large/q8_0 == eval 'tail -c +1000002 "$OUT/whole" | head -c 3000000'
    same "$WFS" cat --range=35000000: "$LARGE" tensors/large/q8_0 == tail -c +35000001 "$OUT/whole"
    [ "$("$WFS" cat --range 0:1 "$SOURCE" metadata.json metadata.json)" = "{{" ]
    [ -z "$("$WFS" cat --range "$(wc -c <"$OUT/whole"):5" "$LARGE" tensors/large/q8_0)" ]
    fails 1 "tensors/large/q8_0: has 35651584 bytes, and --range begins at 35651585" "$WFS" cat --range 35651585:1 "$LARGE" tensors/large/q8_0
    for range in 1 :1 1:x -1:2 1:-2 1:2:3 99999999999999999999:1; do
        fails 2 "is not OFFSET:LENGTH" "$WFS" cat --range="$range" "$LARGE" tensors/large/q8_0
    done
}

@test "cp writes nothing if one of several files is missing" {
    fails 1 "there is no 'typo.json'" "$WFS" cp "$SOURCE" metadata.json typo.json "$OUT"
    [ -z "$(ls -A "$OUT")" ]
    run --separate-stderr "$WFS" cp "$SOURCE" metadata.json typo.json "$OUT/file"
    [ "$status" -eq 1 ]
    [ ! -e "$OUT/file" ]
    run --separate-stderr "$WFS" cp "$SOURCE" metadata.json tensors "$OUT"
    [ "$status" -eq 1 ]
    [ "$stderr" = "wfs: tensors: is a directory; -r copies what is in it" ]
    [ -z "$(ls -A "$OUT")" ]
}

@test "a missing file's message says why, or suggests another name" {
    need_mount_commands
    local llama=$HERE/../data/gguf/models/llama-tiny
    fails 1 "gguf/model-Q4_0.gguf is left out: tensor 'blk.0.ffn_down.weight': a row of 48" "$WFS" cat -o llama.cpp=b10470 "$llama" ./gguf/model-Q4_0.gguf
    fails 1 "gguf/model-Q4_0.gguf is left out: nothing is quantized, because the model's family is unknown" "$WFS" cp "$LARGE" gguf/model-Q4_0.gguf "$OUT"
    fails 1 "there is no 'metadata.jsn'; did you mean 'metadata.json'?" "$WFS" cat "$llama" metadata.jsn
    fails 1 "there is no 'gguf/model-q6_k.gguf'; did you mean 'gguf/model-Q6_K.gguf'?" "$WFS" cat "$llama" gguf/model-q6_k.gguf
    fails 1 "there is no 'gguf/model-Q2_K.ggu'; did you mean 'gguf/model-Q2_K.gguf'?" "$WFS" cat "$llama" gguf/model-Q2_K.ggu
    fails 1 "'tensors/i8/q4_k': its row length is not a multiple of 256" "$WFS" cat "$SOURCE" tensors/i8/q4_k
    fails 1 "'tensors/f32/iq1_s': it needs an importance matrix: -o imatrix=FILE" "$WFS" cat "$SOURCE" tensors/f32/iq1_s
    fails 1 "'tensors/f32/bf16.npy': numpy has no such type" "$WFS" cat "$SOURCE" tensors/f32/bf16.npy
    fails 1 "'tensors/f32/F16'; did you mean 'tensors/f32/f16'?" "$WFS" cat "$SOURCE" tensors/f32/F16
    for type in Q4_K_M q4_k_m model-Q4_K_M.gguf Q4K q4km; do
        fails 1 "there is no '$type'; did you mean 'gguf/model-Q4_K_M.gguf'?" "$WFS" cp "$llama" "$type" "$OUT"
    done
    fails 1 "there is no 'gguf/split': -o split=SIZE|N" "$WFS" cat "$llama" gguf/split/model-00001-of-00002.gguf
    fails 1 "there is no 'adapter.gguf': the source is not a LoRA adapter" "$WFS" cat "$llama" adapter.gguf
    fails 2 "unknown command 'muont'; did you mean 'mount'?" "$WFS" muont
    fails 2 "help: extra operand 'ls'" "$WFS" help cat ls
    fails 2 "unknown flag --hlp; did you mean '--help'?" "$WFS" --hlp
    fails 2 "unknown flag --verison; did you mean '--version'?" "$WFS" --verison
    fails 2 "unknown flag --nonsense; try 'wfs --help'" "$WFS" --nonsense
    fails 2 "unknown flag -q; flags follow the command: wfs ls -q" "$WFS" -q ls "$llama"
    fails 2 "cp: unknown flag -R; did you mean -r?" "$WFS" cp -R "$llama" hf "$OUT"
    fails 2 "ls: unknown flag -X; try 'wfs ls --help'" "$WFS" ls -X "$llama"
    fails 2 "cat: unknown flag --hepl; did you mean --help?" "$WFS" cat --hepl
    fails 2 "ls: unknown flag --recursve; did you mean --recursive?" "$WFS" ls --recursve "$llama"
    fails 2 "help: unknown topic 'optons'; did you mean 'wfs help options'?" "$WFS" help optons
    fails 2 "help: unknown topic 'inof'; did you mean 'wfs help info'?" "$WFS" help inof
    fails 2 "info: this flag takes no value: --json=x; try" "$WFS" info --json=x "$llama"
    fails 2 "option layout: there is no layout 'vlm' (known: antigravity, trtllm, vllm); did you mean 'vllm'?" \
        "$WFS" ls -o layout=vlm "$llama"
    fails 1 "vllm: unknown parameter 'ttp' (known: tp, " "$WFS" ls -o shards=vllm:ttp=2 "$llama"
    fails 2 "did you mean 'tensor-type'?" "$WFS" ls -o tensor_tpye=a=f32 "$llama"
    fails 2 "'Q4_KM' is not a type to quantize to (known: F32 " "$WFS" ls -o token-embedding-type=Q4_KM "$llama"
    [[ $stderr == *"); did you mean 'Q4_K'?" ]]
    fails 2 "option format: 'safetensor' is not a format (known: ctranslate2, dcp, deepspeed, flax, ggml, gguf, hdf5, huggingface, keras, meta, mistral, nemo, numpy, onnx, orbax, paddle, pipeline, pt2, recipe, safetensors, safetensors-parts, tensorflow, tensorflow-graph, tensorizer, tflite, torch); did you mean 'safetensors'?" \
        "$WFS" ls -o format=safetensor "$llama"
    fails 1 "hf://openai-community/gpt2" "$WFS" ls https://huggingface.co/openai-community/gpt2
    HF_HUB_CACHE=$OUT fails 1 "'hf download org/none' fetches it, hf://org/none reads it from the hub" "$WFS" ls org/none
    [ "$("$WFS" help cat)" = "$("$WFS" cat --help)" ]
    [ "$("$WFS" help)" = "$("$WFS" --help)" ]
}

@test "llama-quantize's other names for its types open the same file, but are not listed" {
    local model=$OUT/sample
    "$PYTHON" "$HERE/../data/make.py" sample "$model"
    for bits in 3 4 5; do
        same "$WFS" cat "$model" "gguf/model-Q${bits}_K.gguf" == "$WFS" cat "$model" "gguf/model-Q${bits}_K_M.gguf"
    done
    run ! grep -q 'K\.gguf$' <<<"$("$WFS" ls "$model" gguf | grep -v "Q[26]_K")"
}

@test "a lone file takes its directory's name if that is a model's, else its own" {
    need jq
    mkdir "$OUT/Downloads"
    for file in model.safetensors tiny.v2.safetensors part-00001-of-00002.safetensors; do
        cp "$SOURCE" "$OUT/Downloads/$file"
        "$WFS" cat "$OUT/Downloads/$file" metadata.json | jq -r .name
    done >"$OUT/names"
    [ "$(tr '\n' ' ' <"$OUT/names")" = "model tiny.v2 part " ]
    [ "$("$WFS" cat "$SOURCE" metadata.json | jq -r .name)" = model ]
    cp -r "$MODEL" "$OUT/a-model"
    [ "$("$WFS" cat "$OUT/a-model/model.safetensors" metadata.json | jq -r .name)" = a-model ]
}

@test "-o q4_0=absmax7 makes the same blocks in tensors/ and gguf/" {
    local model=$OUT/sample up=tensors/model.layers.0.mlp.up_proj.weight/q4_0
    "$PYTHON" "$HERE/../data/make.py" sample "$model"
    for rule in ggml absmax7; do
        "$WFS" cat -o "q4_0=$rule" "$model" gguf/model-Q4_0.gguf >"$OUT/$rule.gguf"
        "$WFS" cat -o "q4_0=$rule" "$model" "$up" >"$OUT/$rule.q4_0"
    done
    run ! cmp -s "$OUT/ggml.q4_0" "$OUT/absmax7.q4_0"
    "$PYTHON" - "$OUT" <<'END'
import sys
read = lambda name: open(f"{sys.argv[1]}/{name}", "rb").read()
for rule, other in (("ggml", "absmax7"), ("absmax7", "ggml")):
    assert read(f"{rule}.q4_0") in read(f"{rule}.gguf") and read(f"{other}.q4_0") not in read(f"{rule}.gguf")
END
}

@test "an unsupported file is named by its format" {
    mkdir "$OUT/lfs" "$OUT/pipeline" "$OUT/pipeline/unet" "$OUT/tflite"
    printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n' >"$OUT/lfs/model.safetensors"
    fails 1 "model.safetensors: a Git LFS pointer" "$WFS" ls "$OUT/lfs/model.safetensors"
    fails 1 "model.safetensors: a Git LFS pointer" "$WFS" ls "$OUT/lfs"
    echo '<!DOCTYPE html><html>' >"$OUT/page.safetensors"
    fails 1 "page.safetensors: an HTML page" "$WFS" ls "$OUT/page.safetensors"
    echo '{}' >"$OUT/pipeline/model_index.json"
    fails 1 "a pipeline (model_index.json) whose models are missing" "$WFS" ls "$OUT/pipeline"
    echo x >"$OUT/tflite/model.tflite"
    fails 1 "model.tflite is a TensorFlow Lite model; name the file" "$WFS" ls "$OUT/tflite"
    fails 1 "model.tflite: not a TensorFlow Lite model" "$WFS" ls "$OUT/tflite/model.tflite"
    echo '{"error":"Repository not found"}' >"$OUT/answer.safetensors"
    fails 1 "answer.safetensors: a text file, not a checkpoint: it starts with '{\"error\":\"Reposi'" "$WFS" ls "$OUT/answer.safetensors"
    for pair in x.tflite:"a TensorFlow Lite model; name the file" saved_model.pb:"the graph of a TensorFlow SavedModel" \
        __0_0.distcp:"part of a distributed torch checkpoint, which wfs reads" x.nemo:"a NeMo archive; name the file" \
        mp_rank_00_model_states.pt:"part of a DeepSpeed checkpoint, which wfs" \
        openvino_model.xml:OpenVINO model.pte:"an ExecuTorch program" \
        model.safetensors.gz:"compressed by gzip; decompress it" \
        model.safetensors.incomplete:"an unfinished download; let it finish"; do
        rm -rf "$OUT/one"
        mkdir "$OUT/one"
        head -c 40 /dev/zero >"$OUT/one/${pair%%:*}"
        fails 1 "no checkpoint that wfs can read in this directory; ${pair%%:*} is ${pair#*:}" "$WFS" ls "$OUT/one"
    done
}

@test "a directory without a checkpoint: the message says what the directory holds" {
    mkdir -p "$OUT/all/a" "$OUT/all/b" "$OUT/all/c" "$OUT/exported/tflite" "$OUT/nothing"
    touch "$OUT/all/a/model.safetensors" "$OUT/all/b/x.gguf" "$OUT/all/c/README.md" "$OUT/exported/tflite/model.tflite"
    fails 1 "no checkpoint that wfs can read in this directory; name one of its directories, or show all with -o library: a, b" "$WFS" ls "$OUT/all"
    fails 1 "in this directory; tflite/model.tflite is a TensorFlow Lite model; name the file" "$WFS" ls "$OUT/exported"
    mkdir -p "$OUT/hub/models--org--name"
    fails 1 "in this directory; it is a hub cache: name a model as ORG/NAME, or show all with -o library" "$WFS" ls "$OUT/hub"
    fails 1 "in this directory; it is empty" "$WFS" ls "$OUT/nothing"
    echo '{}' >"$OUT/nothing/config.json"
    fails 1 "in this directory, only its config.json; 'hf download ORG/NAME'" "$WFS" ls "$OUT/nothing"
    fails 1 "model.safetensors: the file is empty; an interrupted download?" "$WFS" ls "$OUT/all/a"
    fails 1 "/dev/null: neither a file nor a directory" "$WFS" ls /dev/null
    HF_HUB_CACHE=$OUT fails 1 "gpt2: no such file or directory, and no $OUT/models--gpt2 in the hub cache" "$WFS" ls gpt2
}

@test "a directory with one checkpoint of any name opens it, whatever else it holds" {
    local torch=$HERE/../data/torch/views-5.pt
    for name in model.pt best.pth last.ckpt finetuned.bin; do
        mkdir "$OUT/$name"
        cp "$torch" "$OUT/$name/$name"
        head -c 100 /dev/zero >"$OUT/$name/other.bin"
        cp "$torch" "$OUT/$name/optimizer.pt"
        same "$WFS" cat "$OUT/$name" model.safetensors == "$WFS" cat "$torch" model.safetensors
    done
    cp "$torch" "$OUT/model.pt/model.v2.pt"
    "$WFS" ls "$OUT/model.pt" # the usual name wins
    cp "$torch" "$OUT/best.pth/last.pth"
    fails 1 "best.pth and last.pth: without an index, it is unknown which files belong together; name one file" "$WFS" ls "$OUT/best.pth"
    rm "$OUT/last.ckpt/last.ckpt"
    fails 1 "no checkpoint that wfs can read in this directory" "$WFS" ls "$OUT/last.ckpt"
}

@test "cp keeps a dangling link" {
    ln -s nowhere "$OUT/link"
    fails 1 "link: a link that cannot be followed: No such file or directory" "$WFS" cp "$SOURCE" tensors/f32/raw "$OUT/link"
    [ "$(readlink "$OUT/link")" = nowhere ]
    [ ! -e "$OUT/nowhere" ]
    ln -s loop "$OUT/loop"
    fails 1 "Too many levels of symbolic links" "$WFS" cp "$SOURCE" tensors/f32/raw "$OUT/loop"
    [ -L "$OUT/loop" ]
}

@test "cp writes in order from one thread, however many cores compute" {
    need_strace
    for view in raw f32; do
        strace -f -o "$OUT/trace" -e trace=writev,pwritev -e inject=writev,pwritev:delay_exit=2000 \
            "$WFS" cp "$LARGE" "tensors/large/$view" "$OUT/file"
        [ "$(grep -c 'writev.*1048576' "$OUT/trace")" -ge 64 ]
        awk '/writev\(/ && ++n > 1 { exit 1 } /writev/ && !/unfinished/ { n-- }' "$OUT/trace"
    done
}

# A file system that shares blocks, in a file of this test's; skips where there can be none. Sets SHARING.
need_sharing() {
    need_mount_namespace
    command -v mkfs.xfs >/dev/null || skip "no mkfs.xfs"
    SHARING=$BATS_TEST_TMPDIR/sharing
    mkdir "$SHARING"
    truncate -s 400M "$BATS_TEST_TMPDIR/image"
    mkfs.xfs -q "$BATS_TEST_TMPDIR/image"
    mount -o loop "$BATS_TEST_TMPDIR/image" "$SHARING" 2>/dev/null || skip "no loop device, or no XFS in this kernel"
}

# The bytes in use on the file system, once all is written.
used_bytes() {
    sync -f "$SHARING"
    df --output=used -B1 "$SHARING" | tail -n 1
}

@test "cp --reflink shares blocks with the source" {
    need_sharing
    cp "$LARGE" "$SHARING/model.safetensors"
    local before name
    before=$(used_bytes)
    for name in model.safetensors tensors/large/raw; do
        "$WFS" cp --reflink "$SHARING/model.safetensors" "$name" "$SHARING/copy"
        "$WFS" cat "$LARGE" "$name" | cmp - "$SHARING/copy"
        rm "$SHARING/copy"
    done
    "$WFS" cp --reflink "$SHARING/model.safetensors" model.safetensors "$SHARING/copy"
    [ "$(used_bytes)" -lt "$((before + 4000000))" ]
    umount "$SHARING"
}

@test "cp --reflink copies where nothing can be shared, and says so" {
    run --separate-stderr "$WFS" cp --reflink "$LARGE" tensors/large/q8_0 "$OUT/q8_0"
    [ "$status" -eq 0 ]
    [ "$stderr" = "wfs: note: $OUT/q8_0: copied, because none of it is in a source at the same place of a block" ]
    "$WFS" cat "$LARGE" tensors/large/q8_0 | cmp - "$OUT/q8_0"
    if [ -w /dev/shm ] && [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then # which shares no blocks
        local elsewhere
        elsewhere=$(mktemp -d /dev/shm/wfs-test.XXXXXX)
        run --separate-stderr "$WFS" cp --reflink "$LARGE" model.safetensors "$elsewhere/copy"
        cmp "$elsewhere/copy" "$LARGE"
        rm -r "$elsewhere"
        [ "$status" -eq 0 ]
        [[ $stderr == "wfs: note: $elsewhere/copy: copied, because it cannot share blocks with the source: "* ]]
    fi
    "$WFS" cp --reflink "$LARGE" model.gguf "$OUT/shared.gguf" 2>/dev/null
    "$WFS" cp "$LARGE" model.gguf "$OUT/usual.gguf"
    "$WFS" diff "$OUT/shared.gguf" "$OUT/usual.gguf"
    same "$WFS" cp --reflink "$LARGE" metadata.json /dev/stdout == "$WFS" cat "$LARGE" metadata.json
}

@test "cp copies a directory only with -r" {
    fails 1 "is a directory; -r" "$WFS" cp "$SOURCE" tensors "$OUT/x"
    "$WFS" cp -r "$SOURCE" tensors/f32 "$OUT"
    [ "$(ls "$OUT/f32" | wc -l)" -eq "$("$WFS" ls "$SOURCE" tensors/f32 | wc -l)" ]
    same cat "$OUT/f32/raw" == "$WFS" cat "$SOURCE" tensors/f32/raw
    "$WFS" cp -r "$SOURCE" / "$OUT/all"
    same cat "$OUT/all/tensors/%2E%2E/raw" == "$WFS" cat "$SOURCE" tensors/%2E%2E/raw
}

@test "cp of several files shows one total" {
    # A line may be drawn at 100% more than once.
    script -qec "'$WFS' cp -r '$SOURCE' tensors/f32 model.safetensors '$OUT'" /dev/null >"$OUT/lines"
    [ "$(grep -c '100% ' "$OUT/lines")" -eq 1 ]
}

@test "a message about a file of a source names its directory" {
    mkdir "$OUT/one" && head -c 100000 "$MODEL/model.safetensors" >"$OUT/one/model.safetensors"
    for source in "$OUT/one" "$OUT/one/" "$OUT/one/model.safetensors"; do
        for command in info ls "cat:metadata.json" "diff:$MODEL"; do
            IFS=: read -ra words <<<"$command"
            run "$WFS" "${words[0]}" "$source" "${words[@]:1}"
            [[ $output == "wfs: $OUT/one/model.safetensors: truncated: "* ]]
        done
    done
    run "$WFS" diff "$MODEL" "$OUT/one"
    [[ $output == "wfs: $OUT/one/model.safetensors: truncated: "* ]]
    head -c 1000 "$HERE/../data/gguf/quantized.gguf" >"$OUT/one/cut.gguf"
    run "$WFS" verify "$OUT/one/cut.gguf" "$MODEL"
    [[ $output == "wfs: $OUT/one/cut.gguf: "* ]]
    cd "$OUT/one"
    run "$WFS" info model.safetensors
    [[ $output == "wfs: model.safetensors: truncated: "* ]]
}

@test "cp names the place of a file with one slash, however the directory is written" {
    mkdir -p "$OUT/into/metadata.json"
    fails 1 "$OUT/into/metadata.json: Is a directory" "$WFS" cp "$SOURCE" metadata.json "$OUT/into//"
}

@test "cp of several files writes none where there is no room for all" {
    need_root
    local size
    size=$(($(stat -c %s "$LARGE") / 1024 * 3 / 2))
    run "$HERE/namespace" sh -c "mount -t tmpfs -o size=${size}k none '$OUT' && \"\$@\"; ls -A '$OUT'" sh "$WFS" cp -r "$LARGE" tensors/large/f32 tensors/large/raw "$OUT"
    [[ "$output" == *"$OUT: 2 files need "*", and there is room for "*"; nothing was copied" ]]
    # Files that are there make room, one after the other.
    "$HERE/namespace" sh -c "mount -t tmpfs -o size=$((size * 7 / 3))k none '$OUT' && \"\$@\" && \"\$@\"" sh \
        "$WFS" cp -r "$LARGE" tensors/large/raw model.safetensors "$OUT"
}

@test "cp that fails leaves no new file and keeps the old one" {
    echo old >"$OUT/file"
    fails 1 "is not finite" "$WFS" cp "$BATS_FILE_TMPDIR/infinite.safetensors" tensors/infinite/q4_0 "$OUT/file"
    [ "$(cat "$OUT/file")" = old ]
    [ "$(ls -A "$OUT")" = file ]
    fails 1 "No such file or directory" "$WFS" cp "$SOURCE" metadata.json "$OUT/no/such/place"
}

@test "cp to a full disk leaves nothing" {
    need_strace
    run strace -f -o /dev/null -e trace=writev -e inject=writev:error=ENOSPC:when=3+ \
        "$WFS" cp "$LARGE" tensors/large/f32 "$OUT/file"
    [ "$status" -eq 1 ]
    [[ $output == *"No space left on device"* ]]
    run strace -f -o /dev/null -e trace=fallocate -e inject=fallocate:error=ENOSPC \
        "$WFS" cp "$LARGE" tensors/large/f32 "$OUT/file"
    [ "$status" -eq 1 ]
    [[ $output == *"not enough space for its 134217728 bytes"* ]]
    [ -z "$(ls -A "$OUT")" ]
}

@test "cp leaves nothing after a signal, even without unnamed files" {
    need_strace
    need pgrep
    refuse_tmpfile=(-f -o /dev/null -P "$OUT" -e trace=openat -e inject=openat:error=EOPNOTSUPP)
    strace "${refuse_tmpfile[@]}" "$WFS" cp "$LARGE" tensors/large/q8_0 "$OUT/file"
    same cat "$OUT/file" == "$WFS" cat "$LARGE" tensors/large/q8_0
    rm "$OUT/file"
    mkfifo "$BATS_TEST_TMPDIR/fifo"
    strace -f -o /dev/null -P "$OUT" -P "$LARGE" -e trace=openat,pread64 -e inject=openat:error=EOPNOTSUPP \
        -e inject=pread64:delay_enter=300000:when=5+ "$WFS" cp "$LARGE" tensors/large/q8_0 "$OUT/file" 3>&- &
    tracer=$!
    await has_temporary
    [ ! -e "$OUT/file" ]
    kill -TERM "$(pgrep -P "$tracer")"
    status=0
    wait "$tracer" || status=$?
    [ "$status" -eq 143 ]
    [ -z "$(ls -A "$OUT")" ]
}

# nth_call NAME TEXT: among the calls of its thread, which strace counts alone, the number of the one that has the text.
nth_call() {
    local thread
    thread=$(grep "$1(" "$OUT/trace" | grep -F "$2" | cut -d' ' -f1)
    grep "^$thread .*$1(" "$OUT/trace" | grep -nF "$2" | cut -d: -f1
}

# Copies to $OUT/file, without O_TMPFILE, while closing the temporary file fails. A sanitizer closes files of its own, not
# always as many, so the call is counted again until the failure has met the right one.
copy_without_close() {
    local trace=(strace -f -y -o "$OUT/trace" -e "trace=openat,close") copy=("$WFS" cp "$SOURCE" metadata.json "$OUT/file") i
    "${copy[@]}" # what is there is opened, too
    "${trace[@]}" "${copy[@]}" || return 2
    trace+=(-e inject=openat:error=EOPNOTSUPP:when="$(nth_call openat O_TMPFILE)")
    for ((i = 0; i < 20; i++)); do
        "${trace[@]}" "${copy[@]}" || return 2
        "${trace[@]}" -e inject=close:error=EDQUOT:when="$(nth_call close /.file.wfs-)" "${copy[@]}" && continue
        grep -qE '/\.file\.wfs-.*INJECTED' "$OUT/trace" && return 1
    done 2>"$OUT/said"
    return 2
}

@test "cp fails if closing the file fails" {
    need_strace
    run -1 copy_without_close
    [ "$(tail -n 1 "$OUT/said")" = "wfs: $OUT/file: Disk quota exceeded" ]
    rm "$OUT/trace" "$OUT/said"
    [ "$(ls -A "$OUT")" = file ] # of before
    same cat "$OUT/file" == "$WFS" cat "$SOURCE" metadata.json
}

has_temporary() {
    [ -n "$(find "$OUT" -name '.file.wfs-*')" ]
}

@test "cp shows progress on a terminal only" {
    need script
    run --separate-stderr "$WFS" cp "$LARGE" tensors/large/q8_0 "$OUT/file"
    [ -z "$output$stderr" ]
    run script -qec "'$WFS' cp --quiet '$LARGE' tensors/large/f32 '$OUT/file'" /dev/null
    [ -z "$output" ]
    run script -qec "'$WFS' cp '$LARGE' tensors/large/f32 '$OUT/file'" /dev/null
    [[ $output == *"f32"*"100%"*"134 MB of 134 MB"*"/s"* ]]
}

@test "info prints a page about the source" {
    run --separate-stderr "$WFS" info "$MODEL"
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    [ "${lines[0]}" = model ]
    grep -qE '^family      LlamaForCausalLM' <<<"$output"
    grep -qE '^weights     .* parameters in 18 tensors, .*: F32 [0-9]+ %, ' <<<"$output"
    [[ $output != *$'\nSIZE'* && $output != *$'\e'* ]]
    run "$WFS" info --all "$MODEL"
    [[ $output == *"TYPE"*"PARAMETERS"*"F8_E4M3"* ]]
    grep -qE '^F32 +8 ' <<<"$output"
    grep -qE '^131 kB +F32 +\[64, 512\] +f32$' <<<"$output"
    grep -qE '^[0-9]+ +tensors/NAME/q8_0$' <<<"$output"
    grep -qE 'metadata.json$' <<<"$output"
    run "$WFS" info "$LARGE"
    [[ $output == *"33.55 million"* || $output == *"33.6 million"* ]]
}

@test "info makes the model once: it reads the vocabulary once" {
    need_strace
    "$PYTHON" "$BATS_TEST_DIRNAME/../data/make.py" sample "$OUT/sample"
    printf '%100000s' '' >>"$OUT/sample/tokenizer.json" # too large to be kept for the next model
    strace -f -y -o "$OUT/trace" -e trace=read,pread64,preadv "$WFS" info "$OUT/sample" >"$OUT/page"
    grep -q '^tokenizer *BPE' "$OUT/page"
    [ "$(grep -c '/tokenizer.json>' "$OUT/trace")" -eq 1 ]
}

@test "info names the vision encoder and its tensors" {
    need jq
    local model=$OUT/seeing
    mkdir -p "$model"
    echo '{"architectures":["Qwen2_5_VLForConditionalGeneration"],"hidden_size":2,"model_type":"qwen2_5_vl",
           "vision_config":{"depth":1}}' >"$model/config.json"
    python3 - "$model/model.safetensors" <<'EOF'
import json, struct, sys
header = json.dumps({name: {"dtype": "F16", "shape": [2, 2], "data_offsets": [8 * i, 8 * i + 8]}
                     for i, name in enumerate(["visual.merger.mlp.0.weight", "model.norm.weight"])}).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(header)) + header + bytes(16))
EOF
    run --separate-stderr "$WFS" info --all "$model"
    grep -qF 'visual.*: Qwen2.5-VL (vision encoder), 4 parameters in 1 tensor' <<<"$output"
    grep -qF 'mmproj.gguf and gguf/mmproj-* are left out: neither preprocessor_config.json' <<<"$output"
    "$WFS" info --json "$model" | jq -e '.tower == "Qwen2.5-VL (vision encoder)" and .tower_tensors == 1'
    run --separate-stderr "$WFS" info "$MODEL"
    [[ $output != *tower* ]]
}

@test "info fits one screen, however many notes there are, and uses colours on request" {
    need script
    local llama=$HERE/../data/gguf/models/llama-tiny
    for columns in 80 50; do
        run script -qec "stty cols $columns rows 24; TERM=xterm NO_COLOR= '$WFS' info '$llama'" /dev/null
        [ "$status" -eq 0 ]
        [ "${#lines[@]}" -le 24 ]
        [[ $output == $'\e[1mllama-tiny\e[0m'* ]]
        [ "$(tr -d '\r' <<<"$output" | awk -v most="$columns" '!/^next/ && length > most' | wc -l)" -eq 0 ] # a command is not broken
    done
    run script -qec "TERM=xterm NO_COLOR=1 '$WFS' info '$llama'" /dev/null
    [[ $output == llama-tiny* ]]
    [[ $("$WFS" info --color "$llama") == $'\e[1mllama-tiny'* ]]
    [[ $("$WFS" info --color=never "$llama") == llama-tiny* ]]
    fails 2 "--color=blue" "$WFS" info --color=blue "$llama"
}

@test "info ends with the command to try next, and says how large Q4_K_M is" {
    local llama=$HERE/../data/gguf/models/llama-tiny
    "$PYTHON" "$HERE/../data/make.py" demo "$OUT/demo"
    "$WFS" info "$OUT/demo" >"$OUT/page"
    [ "$(tail -n 1 "$OUT/page")" = "next        wfs cp $OUT/demo gguf/model-Q4_K_M.gguf ." ]
    ("$WFS" cp "$OUT/demo" gguf/model-Q4_K_M.gguf "$OUT/copy")
    local size && size=$(grep -oP 'Q4_K_M \K[0-9.]+(?= MB)' "$OUT/page")
    [ "$(stat -c %s "$OUT/copy" | awk '{ printf "%.2f", $1 / 1e6 }')" = "$size" ]
    "$WFS" info -o pure -o name=x "$OUT/demo" | grep -qx "next        wfs cp -o name=x -o pure $OUT/demo gguf/model-Q4_K_M.gguf ."
    cp "$llama/model.safetensors" "$OUT/alone.safetensors"
    "$WFS" info "$OUT/alone.safetensors" | grep -qx "next        wfs mount $OUT/alone.safetensors ~/m"
}

@test "info lists directories for engines with their sizes, or says why there is none" {
    "$WFS" info "$HERE/../data/gguf/models/llama-tiny" >"$OUT/page"
    grep -qE '^engines     compressed-tensors/: FP8_DYNAMIC [0-9.]+ kB, W8A8 [0-9.]+ kB, ' "$OUT/page"
    grep -qE '^ +mlx/: plain 36.9 kB, .*4bit ' "$OUT/page"
    grep -qE '^ +bitsandbytes/: nf4 ' "$OUT/page"
    cp -r "$HERE/../data/gguf/models/llama-tiny" "$OUT/other"
    sed -i 's/"model_type": "llama"/"model_type": "nothing"/' "$OUT/other/config.json"
    "$WFS" info "$OUT/other" | grep -q "mlx/plain/model.safetensors is left out: mlx-lm has no class for the model type 'nothing'"
    echo '{' >"$OUT/other/config.json"
    "$WFS" info "$OUT/other" >"$OUT/page"
    grep -q '^left out    .*/model.safetensors is left out: config.json: line 2: invalid JSON' "$OUT/page"
    grep -q 'mlx/plain/model.safetensors is left out: config.json: line 2: invalid JSON' "$OUT/page"
    run ! grep -q '^engines' "$OUT/page"
    run ! grep 'there is no' "$OUT/page" # gguf/, which is empty, is not for an engine
    mkdir -p "$OUT/other/x/bf16" && echo text >"$OUT/other/x/bf16/notes.txt"
    "$WFS" info "$OUT/other" >"$OUT/page"
    run ! grep 'there is no' "$OUT/page"
    grep -q 'x/ with 1 file' "$OUT/page"
}

# What a terminal of 80 columns gets.
on_terminal() {
    script -qec "stty cols 80 rows 24; TERM=xterm NO_COLOR=1 $*" /dev/null | tr -d '\r'
}

@test "info prints facts first, hints only with --all, and cuts no message" {
    need script
    local llama=$HERE/../data/gguf/models/llama-tiny model=$OUT/gpt-two
    "$PYTHON" "$HERE/../data/make.py" sample "$model"
    on_terminal "'$WFS' info '$model'" >"$OUT/page"
    [ "$(sed -n 2p "$OUT/page" | cut -d ' ' -f 1)" = family ]
    run ! grep -q 'importance' "$OUT/page"
    "$WFS" info --all "$model" | grep -qF 'gguf/: IQ1_S to IQ2_M, IQ3_XXS, IQ3_XS and Q2_K_S need an importance matrix: -o imatrix=FILE'
    on_terminal "'$WFS' info -o llama.cpp=b10470 '$llama'" >"$OUT/page"
    run ! grep -qF ' ...' "$OUT/page"
    tr -s ' \n' ' ' <"$OUT/page" | grep -qF "a row of 48 elements is not a multiple of 32, as Q4_0 needs it "
    [ "$(awk '!/^next/ && length > 80' "$OUT/page" | wc -l)" -eq 0 ]
}

@test "info has no note about the sample of the demo" {
    "$PYTHON" "$HERE/../data/make.py" demo "$OUT/tiny-llama"
    "$WFS" info "$OUT/tiny-llama" >"$OUT/page"
    grep -q '^tokenizer   SPM, 576 tokens' "$OUT/page"
    run ! grep -q '^notes' "$OUT/page"
}

@test "info names an unknown pre-tokenizer and the remedy, and its hash with --all" {
    local model=$OUT/gpt-two
    "$PYTHON" "$HERE/../data/make.py" sample "$model"
    "$WFS" info "$model" >"$OUT/page"
    grep -qF "model.gguf: the converter does not know the pre-tokenizer of gpt-two (" "$OUT/page"
    grep -qF -- "-o override-kv=tokenizer.ggml.pre=str:NAME" "$OUT/page"
    run ! grep -qE '[0-9a-f]{64}' "$OUT/page"
    "$WFS" info --all "$model" | grep -qE "^model.gguf: the converter's hash of this tokenizer is [0-9a-f]{64}\$"
    "$WFS" cat -o override-kv=tokenizer.ggml.pre=str:llama-bpe "$model" model.gguf >"$OUT/named.gguf"
    "$WFS" info --all "$OUT/named.gguf" | grep -qx 'tokenizer.ggml.pre = llama-bpe'
}

@test "info does not list an index that was read as ignored" {
    local model=$OUT/sharded
    mkdir "$model"
    cp "$SOURCE" "$model/model-00001-of-00001.safetensors"
    "$PYTHON" - "$model" <<'END'
import json, struct, sys
data = open(f"{sys.argv[1]}/model-00001-of-00001.safetensors", "rb").read()
header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
names = {name: "model-00001-of-00001.safetensors" for name in header if name != "__metadata__"}
json.dump({"weight_map": names}, open(f"{sys.argv[1]}/model.safetensors.index.json", "w"))
END
    "$WFS" info "$model" >"$OUT/page"
    grep -q '^read        model-00001-of-00001.safetensors' "$OUT/page"
    run ! grep -q '^ignored' "$OUT/page"
    echo x >"$model/optimizer.pt"
    "$WFS" info "$model" | grep -qx 'ignored     optimizer.pt (weights)'
}

# Elements as numpy unpacks them, bytes of all parts: tests/data/packed has both.
@test "info names packings and counts packed weights as weights" {
    need jq
    local packed=$HERE/../data/packed row
    for row in 'gptq-4/GPTQ 4 bit/848' 'fp8-blocks/FP8/1048' 'bnb-nf4/bitsandbytes 4 bit/' 'mlx-8/MLX 8 bit/' \
        'nvfp4-modelopt/NVFP4/' 'mxfp4-compressed/MXFP4/' 'mlx-mxfp4/MLX MXFP4/' 'mlx-mxfp8/MLX MXFP8/' 'mlx-nvfp4/MLX NVFP4/'; do
        IFS=/ read -r name label bytes <<<"$row"
        "$WFS" info --json "$packed/$name" >"$OUT/info.json"
        [ "$(jq -r '.packings[0].name' "$OUT/info.json")" = "$label" ]
        [ "$(jq '.packings[0].parameters' "$OUT/info.json")" -eq "$(($(stat -c %s "$packed/$name/expected.f32") / 4))" ]
        [ -z "$bytes" ] || [ "$(jq '.packings[0].bytes' "$OUT/info.json")" -eq "$bytes" ]
        "$WFS" info "$packed/$name" | grep -qE "^packed      $label: 1 weight of "
    done
    "$WFS" info --json "$packed/gptq-4" | jq -e '.dtypes == [] and .parameters == 1024 and .tensors == 4'
    "$WFS" info --all "$packed/gptq-4" | grep -qE '^GPTQ 4 bit +1 +1024 '
    run ! grep -qE '^I32 ' <("$WFS" info --all "$packed/gptq-4")
}

@test "info names only kinds of files that tensors/ has" {
    local integers=$OUT/integers.safetensors
    "$PYTHON" - "$integers" <<'END'
import json, struct, sys
header = json.dumps({"a": {"dtype": "I64", "shape": [3], "data_offsets": [0, 24]}}).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(header)) + header + bytes(24))
END
    for source in "$integers" "$SOURCE" "$HERE/../data/packed/gptq-4"; do
        line=$("$WFS" info "$source" | grep -oP 'tensors/ with .*?: \K.*')
        for file in $(sed 's/ and [0-9]* more kinds of file//; s/,//g' <<<"$line"); do
            "$WFS" ls "$source" "tensors/*/$file"
        done
    done
}

@test "--json of ls, diff, sha256, info and verify prints one object with version and schema" {
    need jq
    local llama=$OUT/sample
    "$PYTHON" "$HERE/../data/make.py" sample "$llama"
    "$WFS" ls --json -R "$SOURCE" tensors >"$OUT/ls.json"
    "$WFS" sha256 --json "$SOURCE" tensors/f32 >"$OUT/sha256.json"
    "$WFS" info --architectures --json >"$OUT/architectures.json"
    "$WFS" info --json "$llama" >"$OUT/info.json"
    "$WFS" cat "$llama" gguf/model-Q8_0.gguf >"$OUT/q8_0.gguf"
    run -1 --separate-stderr "$WFS" diff --json "$llama" "$OUT/q8_0.gguf"
    printf '%s\n' "$output" >"$OUT/diff.json"
    "$WFS" verify --json "$OUT/q8_0.gguf" "$llama" >"$OUT/verify.json"
    for file in "$OUT"/*.json; do
        jq -e '.schema == 1 and .wfs == $version' --arg version "$("$WFS" --version | cut -d ' ' -f 2)" "$file"
    done
    [ "$(jq '.entries | length' "$OUT/ls.json")" -eq "$(($("$WFS" ls -R "$SOURCE" tensors | grep -vc '^$\|:$')))" ]
    [ "$(jq '.entries[] | select(.path == "tensors/f32/q8_0") | .size' "$OUT/ls.json")" -eq 34816 ]
    jq -e '.entries[] | select(.path == "tensors/f32") | .type == "directory" and .size == null' "$OUT/ls.json"
    [ "$("$WFS" ls --json -d "$SOURCE" tensors | jq -c '[.entries[].path]')" = '["tensors"]' ]
    same jq -r '.files[] | "\(.sha256)  \(.path)"' "$OUT/sha256.json" == "$WFS" sha256 "$SOURCE" tensors/f32
    jq -e 'any(.architectures[]; .gguf == "llama" and (.hugging_face | contains(["LlamaForCausalLM"])))' "$OUT/architectures.json"
    jq -e '.projectors | length > 10' "$OUT/architectures.json"
    run -1 "$WFS" diff -q "$llama" "$OUT/q8_0.gguf"
    [ "$output" = "$(jq -r '.counts | "\(.tensors_differ) of \(.tensors) tensors (\(.values_differ) in their values) and \(.keys_differ) key\(if .keys_differ == 1 then "" else "s" end) differ"' "$OUT/diff.json")" ]
    jq -e '(.tensors | length) == .counts.tensors_differ and (.keys | length) == .counts.keys_differ and .names == "GGUF"' "$OUT/diff.json"
    jq -e '.tensors[0] | .a.dtype == "BF16" and .b.dtype == "Q8_0" and .different > 0' "$OUT/diff.json"
    "$WFS" diff --json "$SOURCE" "$SOURCE" | jq -e '.tensors == [] and .keys == []'
}

@test "sha256 --json says why a file is unreadable" {
    need jq
    run -1 --separate-stderr "$WFS" sha256 --json "$BATS_FILE_TMPDIR/infinite.safetensors" tensors/infinite/q4_0 tensors/infinite/raw
    [[ $stderr == *"not finite"* ]]
    jq -e '.files[0].sha256 == null and (.files[0].failure | contains("not finite")) and .files[1].failure == null' <<<"$output"
}

@test "a tensor name as a path, a missing command and other tools' commands get hints" {
    fails 1 "there is no file 'u8'; the tensor of that name is 'tensors/u8/raw'" "$WFS" cat "$SOURCE" u8
    fails 1 "there is no file 'a/b: c%'; the tensor of that name is 'tensors/a%2Fb: c%25/raw'" "$WFS" cat "$SOURCE" 'a/b: c%'
    fails 1 "the tensor of that name is 'tensors/model.layers.0.mlp.down_proj.weight/f32'" \
        "$WFS" cat "$HERE/../data/packed/gptq-4" model.layers.0.mlp.down_proj.weight
    "$WFS" cat "$SOURCE" 'tensors/a%2Fb: c%25/raw' | wc -c | grep -qx 128
    fails 2 "'$SOURCE' is not a command; did you mean 'wfs mount $SOURCE $OUT/m'?" "$WFS" "$SOURCE" "$OUT/m"
    fails 2 "'Qwen/Qwen2.5-0.5B' is not a command; did you mean 'wfs info Qwen/Qwen2.5-0.5B'?" "$WFS" Qwen/Qwen2.5-0.5B
    fails 2 "'wfs cp SOURCE model.gguf DEST' writes a GGUF" "$WFS" convert "$SOURCE"
    fails 2 "'wfs cp SOURCE gguf/model-Q4_K_M.gguf DEST' writes a quantized GGUF" "$WFS" quantize "$SOURCE"
    local llama=$OUT/sample
    "$PYTHON" "$HERE/../data/make.py" sample "$llama"
    "$WFS" cp "$llama" model.gguf "$OUT/a.gguf"
    "$WFS" cp "$llama" gguf/model-Q4_K_M.gguf "$OUT/b.gguf"
    "$WFS" cp -r "$llama" hf "$OUT/hf"
}

@test "cat refuses to print a binary file on a terminal" {
    need script
    for file in tensors/f32/raw tensors/u8/raw model.safetensors; do
        run script -qec "'$WFS' cat '$SOURCE' $file" /dev/null
        [ "$status" -eq 1 ]
        [[ $output == "wfs: $file: a binary file, which would garble the terminal; redirect it to a file with '>FILE', or print it with --binary"* ]]
    done
    run script -qec "'$WFS' cat --binary '$SOURCE' tensors/scalar/raw" /dev/null
    [ "$status" -eq 0 ]
    run script -qec "'$WFS' cat '$MODEL' config.json metadata.json" /dev/null
    [ "$status" -eq 0 ]
    [[ $output == *LlamaForCausalLM* ]]
    [ "$(script -qec "'$WFS' cat '$SOURCE' tensors/u8/raw >'$OUT/raw'" /dev/null)" = "" ]
    [ "$(stat -c %s "$OUT/raw")" -eq 256 ]
}

@test "a Git LFS pointer is named as such for every kind of file" {
    local llama=$HERE/../data/gguf/models/llama-tiny
    local pointer='version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n'
    for file in config.json tokenizer.model tokenizer.json tokenizer_config.json generation_config.json; do
        rm -rf "$OUT/clone"
        cp -r "$llama" "$OUT/clone"
        chmod -R u+w "$OUT/clone"
        [ -e "$OUT/clone/$file" ] || echo '{}' >"$OUT/clone/$file"
        "$WFS" cat "$OUT/clone" model.gguf >/dev/null
        printf "$pointer" >"$OUT/clone/$file"
        fails 1 "$file: a Git LFS pointer, not the file itself; 'git lfs pull' fetches the file" "$WFS" cat "$OUT/clone" model.gguf
        same "$WFS" cat "$OUT/clone" "$file" == cat "$OUT/clone/$file"
    done
    for file in model.safetensors model-00001-of-00001.safetensors model.safetensors.index.json pytorch_model.bin model.gguf \
        consolidated.00.pth model.npz adapter_model.safetensors; do
        rm -rf "$OUT/clone"
        mkdir "$OUT/clone"
        if [[ $file == consolidated* ]]; then
            make_input meta "$OUT/clone"
        else
            echo '{}' >"$OUT/clone/config.json"
        fi
        printf "$pointer" >"$OUT/clone/$file"
        fails 1 "$file: a Git LFS pointer" "$WFS" ls "$OUT/clone"
    done
}

@test "a message says that /proc is missing" {
    need_mount_namespace
    ! grep -qE '__(asan|tsan)_init' "$WFS" || skip "a sanitizer needs /proc, too"
    fails 1 "model.safetensors: where it is cannot be found out; is /proc mounted?" \
        "$HERE/namespace" sh -c 'umount -l /proc && exec "$@"' sh "$WFS" info "$MODEL"
    fails 1 "model.safetensors: cannot be opened; is /proc mounted?" \
        "$HERE/namespace" sh -c 'umount -l /proc && exec "$@"' sh "$WFS" info "$SOURCE"
}

@test "weights behind a link out of the model are refused with the remedy; -o follow-links follows the link" {
    mkdir "$OUT/store" "$OUT/linked"
    cp "$SOURCE" "$OUT/store/weights"
    echo '{"architectures":["LlamaForCausalLM"]}' >"$OUT/store/config"
    ln -s ../store/weights "$OUT/linked/model.safetensors"
    ln -s ../store/config "$OUT/linked/config.json"
    fails 1 "model.safetensors: a symbolic link to $OUT/store/weights, outside of the model's directory; -o follow-links follows it" \
        "$WFS" ls "$OUT/linked"
    same "$WFS" cat -o follow-links "$OUT/linked" tensors/f32/raw == "$WFS" cat "$SOURCE" tensors/f32/raw
    same "$WFS" cat -o follow-links "$OUT/linked" config.json == cat "$OUT/store/config"
    rm "$OUT/linked/model.safetensors"
    cp "$SOURCE" "$OUT/linked"
    fails 1 "config.json: a symbolic link to $OUT/store/config, outside of the model's directory; -o follow-links follows it" \
        "$WFS" cat "$OUT/linked" config.json
    run -0 "$WFS" ls -o follow_links "$OUT/linked" config.json
}

@test "the message names the tensor of a value that no block can store" {
    local model=$OUT/sample
    "$PYTHON" "$HERE/../data/make.py" sample "$model"
    "$PYTHON" - "$model/model.safetensors" <<'END'
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
length = struct.unpack("<Q", data[:8])[0]
begin = json.loads(data[8:8 + length])["model.layers.1.mlp.up_proj.weight"]["data_offsets"][0]
at = 8 + length + begin + 2000
data[at:at + 2] = b"\xc0\x7f"
open(sys.argv[1], "wb").write(data)
END
    fails_cat() {
        run --separate-stderr bash -c '"$0" cat "$1" "$2" >/dev/null' "$WFS" "$model" "$1"
        [ "$status" -eq 1 ]
        [[ $stderr == "wfs: $1: tensor '$2' has a value that is not finite, which $3 cannot store; F32, F16 and BF16 files store it" ]]
    }
    fails_cat gguf/model-Q8_0.gguf blk.1.ffn_up.weight Q8_0
    fails_cat gguf/model-Q4_0.gguf blk.1.ffn_up.weight Q4_0
    fails_cat tensors/model.layers.1.mlp.up_proj.weight/q4_0 model.layers.1.mlp.up_proj.weight Q4_0
    "$WFS" cat "$model" gguf/model-BF16.gguf >/dev/null
}

@test "info --quantization prints exact sizes, words for losses, and recommends the smallest small loss" {
    need jq
    local llama=$HERE/../data/gguf/models/llama-tiny
    "$WFS" info --quantization --all --json "$llama" >"$OUT/rows"
    while read -r type bytes; do
        [ "$("$WFS" cat "$llama" "gguf/model-$type.gguf" | wc -c)" -eq "$bytes" ]
    done < <(jq -r '.[] | select(.bytes) | "\(.type) \(.bytes)"' "$OUT/rows")
    jq -e '[.[] | select(.bytes)] | all(has("bits_per_weight") and has("relative_error") and has("loss"))' "$OUT/rows"
    "$WFS" info --quantization --all --json -o llama.cpp=b10470 "$llama" | jq -e '[.[] | select(.reason)] | any(.type == "Q4_0")'
    jq -e '[.[] | select(.relative_error) | select(.relative_error < 0.09)] | min_by(.bytes).recommended' "$OUT/rows"
    [ "$(jq '[.[] | select(.recommended)] | length' "$OUT/rows")" -eq 1 ]
    run "$WFS" info --quantization -o llama.cpp=b10470 "$llama"
    [ "$(grep -c ' <- recommended$' <<<"$output")" -eq 1 ]
    grep -qE '^Not made: .*Q4_0' <<<"$output"
    [ "$(awk 'length > 95' <<<"$output" | wc -l)" -eq 0 ]
}

@test "info --quantization --html prints a self-contained page with the same figures" {
    need jq
    local model=$OUT/'<b>&model'
    "$PYTHON" "$HERE/../data/make.py" sample "$model"
    "$WFS" info --quantization --html --all "$model" >"$OUT/page.html"
    "$WFS" info --quantization --json --all "$model" >"$OUT/rows"
    "$PYTHON" - "$OUT/page.html" "$OUT/rows" <<'END'
import html.parser, json, re, sys

class Page(html.parser.HTMLParser):
    tags, texts = [], []
    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
    def handle_data(self, data):
        self.texts.append(data)

source = open(sys.argv[1], encoding="utf-8").read()
page = Page()
page.feed(source)
page.close()
assert "<b>&model" in page.texts, page.texts[:5]
tags = [tag for tag, _ in page.tags]
assert "b" not in tags and "script" not in tags
assert not any(name in attributes for _, attributes in page.tags for name in ("href", "src"))
assert "url(" not in source and "@import" not in source
assert tags.count("svg") > 10 and tags.count("svg") == source.count("</svg>")
rows = [row for row in json.load(open(sys.argv[2])) if "bytes" in row]
assert tags.count("circle") == len(rows)
text = "".join(page.texts)
for row in rows:
    assert re.search(rf"{row['type']}: [0-9.]+ [kM]B, {100 * row['relative_error']:.3g} %", text), row
# 9 kinds of matrices, of the normal weights that make.py has put there.
sigmas = [float(value) for value in re.findall(r"\u03c3 ([0-9.e-]+) to", text)]
assert len(sigmas) == 9 and all(abs(sigma - 0.02) < 0.001 for sigma in sigmas), sigmas
END
    fails 2 "--html needs --quantization" "$WFS" info --html "$model"
}

@test "info --json has the facts of the page, and every file" {
    need jq
    local llama=$HERE/../data/gguf/models/llama-tiny
    "$WFS" info --json "$llama" >"$OUT/info.json"
    [ "$(jq -c '[.name, .architecture, .gguf, .tokenizer, .tokens, .layers, .context_length, .tensors, .parameters]' "$OUT/info.json")" = \
        '["llama-tiny","LlamaForCausalLM","llama","SPM",60,2,64,20,17440]' ]
    [ "$(jq -c .dtypes "$OUT/info.json")" = '[{"dtype":"F16","tensors":20,"parameters":17440,"bytes":34880}]' ]
    diff <(jq -r '.files[].path' "$OUT/info.json" | sort) <("$WFS" sha256 "$llama" | cut -c 67- | grep -v ^tensors/ | sort)
    [ "$(jq '.files[] | select(.path == "gguf/model-F32.gguf") | .size' "$OUT/info.json")" -eq "$("$WFS" cat "$llama" gguf/model-F32.gguf | wc -c)" ]
    jq -e '.references["llama.cpp"] == "b11549"' "$OUT/info.json"
    "$WFS" info --json -o llama.cpp=b10470 "$llama" >"$OUT/info.json"
    jq -e '.references["llama.cpp"] == "b10470"' "$OUT/info.json"
    jq -r '.notes[]' "$OUT/info.json" | grep -qF 'gguf/model-Q4_0.gguf is left out'
}

@test "a failed write to standard output is an error" {
    [ -w /dev/full ] || skip "there is no /dev/full"
    for command in "ls $SOURCE" "cat $SOURCE metadata.json" "info $SOURCE" --help "help ls" --version; do
        run --separate-stderr bash -c "'$WFS' $command >/dev/full"
        [ "$status" -eq 1 ]
        [[ $stderr == *"No space left on device"* ]]
        run --separate-stderr bash -c "'$WFS' $command >&-"
        [ "$status" -eq 1 ]
        [[ $stderr == *"Bad file descriptor"* ]]
    done
}

@test "--help and --version print their texts" {
    need_mount_commands
    [[ $("$WFS" --version) =~ ^wfs\ [0-9]+\.[0-9]+\.[0-9]+\ \(build\ [0-9a-f]{16}(\;\ git\ [^ ]+)?\;\ llama\.cpp\ b[0-9]+,\ .*\)$ ]]
    run --separate-stderr "$WFS" --help
    [ "$status" -eq 0 ]
    [ -z "$stderr" ]
    for command in mount umount exec ls cat cp info sha256 diff verify; do
        grep -qE "^  $command +[A-Z]" <<<"$output"
        help=$("$WFS" "$command" --help)
        grep -qF "Usage: wfs $command" <<<"$help"
        grep -qE "^  wfs $command .*" <<<"$help" # an example
        [ "$command" = ls ] || [ "$help" = "$("$WFS" "$command" -h)" ]
    done
    for option in format name allow_trailing q4_0 tensor-type token-embedding-type output-tensor-type pure leave-output-tensor \
        allow_other uid gid umask nonempty no_readahead; do
        "$WFS" help options | grep -qE "^  $option(=[A-Z=]+)?( |$)"
    done
    [ "$(wc -l <<<"$output")" -le 40 ]
    for source in hf:// https:// s3:// ORG/NAME recipe; do
        grep -qF "$source" <<<"$output"
    done
    "$WFS" mount --help | grep -qE '^  allow_other\b'
    "$WFS" cat --help | grep -qE '^  imatrix\b'
    run ! grep -qE '^  (allow_other|nonempty|uid|pure)\b' <<<"$("$WFS" cat --help)"
    [ "$("$WFS" cat --help | grep -n '^Examples' | cut -d : -f 1)" -lt "$("$WFS" cat --help | grep -n '^Flags' | cut -d : -f 1)" ]
    [ "$({ for command in '' mount exec cat cp info verify; do "$WFS" $command --help; done; "$WFS" help options; } | awk 'length > 80' | wc -l)" -eq 0 ]
}

@test "--help and progress fit the terminal" {
    need script
    for columns in 120 50; do
        run script -qec "stty cols $columns; PAGER=cat '$WFS' mount --help" /dev/null
        [ "$(tr -d '\r' <<<"$output" | grep -vE '^(  wfs |  [a-z-]+=|Usage|Options)' | awk -v most="$columns" '!/^next/ && length > most' | wc -l)" -eq 0 ] # a command is not broken
        tr -d '\r' <<<"$output" | awk -v least="$((columns - 20))" 'length > least' | grep -q .
    done
    for columns in 100 60 30; do
        run script -qec "stty cols $columns; '$WFS' cp '$LARGE' tensors/large/f32 '$OUT/file'" /dev/null
        [[ $output == *"100%"*"134 MB of 134 MB"* ]]
        [ "$(tr '\r' '\n' <<<"$output" | sed 's/\x1b\[K//' | awk -v most="$columns" 'length >= most' | wc -l)" -eq 0 ]
    done
}

# clean TEXT: nothing in it that a terminal would obey but the ends of lines.
clean() {
    ! LC_ALL=C grep -qP '[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xaa-\xae]|\xe2\x81[\xa6-\xa9]' <<<"$1"
}

@test "names from config.json, files and directories are escaped on a terminal" {
    local model=$OUT/model odd=$'o\e]0;x\ad\u009b31m\u202e'
    mkdir "$model" "$model/$odd"
    cp "$SOURCE" "$model/model.safetensors"
    printf '{"architectures":["Llama\\u001b[31m\\u009b31m\\u202e\\u2028x"]}' >"$model/config.json"
    echo hello >"$model/$odd.txt"
    echo hello >"$model/$odd/$odd.json"
    ln -s "/$odd" "$model/a$odd"
    for arguments in "info" "info --all" "info --json" "ls" "ls -R" "ls -lR" "sha256"; do
        run script -qec "NO_COLOR=1 $(printf '%q ' "$WFS" $arguments "$model") 2>/dev/null" /dev/null # where a bar is
        echo "$output"
        [ "$status" -eq 0 ]
        clean "$output"
        grep -qE '\\(x|u00)1b' <<<"$output"
    done
    run "$WFS" ls "$model" "no$odd"
    [ "$status" -eq 1 ]
    clean "$output"
    run "$WFS" "$odd"
    [ "$status" -eq 2 ]
    clean "$output"
    "$WFS" ls "$model" | grep -qF "$odd.txt"
    (cd "$model" && "$WFS" sha256 . "$odd.txt" | sha256sum --check --strict)
}

@test "info lists the parts of a vision model" {
    need python3
    mkdir "$OUT/sees"
    python3 - "$OUT/sees" <<'END'
import json, pathlib, struct, sys
folder = pathlib.Path(sys.argv[1])
names = ["model.visual.a.weight", "model.language_model.layers.0.a.weight", "model.visual.b.weight", "lm_head.weight"]
header = json.dumps({n: {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]} for i, n in enumerate(names)}).encode()
(folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(len(names)))
(folder / "config.json").write_text('{"architectures": ["NobodyForConditionalGeneration"], "vision_config": {}}')
END
    "$WFS" info "$OUT/sees" | grep -qx 'parts       tensors of lm_head 1, model.language_model 1, model.visual 2'
    [ "$("$WFS" info --json "$OUT/sees" | jq -r .parts)" = 'tensors of lm_head 1, model.language_model 1, model.visual 2' ]
}

@test "info: a header of 400,000 tensors takes less than 600 bytes of memory a tensor" {
    need python3
    ! grep -qE '__(asan|tsan)_init' "$WFS" || skip "a sanitizer takes memory of its own for every block"
    python3 - "$WFS" "$OUT/many.safetensors" <<'END'
import resource, struct, subprocess, sys
wfs, path = sys.argv[1:]
n_tensors = 400_000
entry = '"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
header = ("{" + ",".join(entry % i for i in range(n_tensors)) + "}").encode()
with open(path, "wb") as file:
    file.write(struct.pack("<Q", len(header)) + header)
subprocess.run([wfs, "info", path], check=True, stdout=subprocess.DEVNULL)
kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(kib * 1024 // n_tensors, "bytes a tensor")
sys.exit(kib * 1024 >= 600 * n_tensors)
END
}

@test "long help on a terminal goes through the pager" {
    command -v script >/dev/null || skip "there is no script(1)"
    run script -qec "PAGER='sed s/^/paged:/' '$WFS' help options" /dev/null
    [[ "$output" == *"paged:How the source is read:"* ]]
    run script -qec "PAGER=absent '$WFS' ls --help" /dev/null
    [ "$status" -eq 0 ]
    [[ "$output" == *"Usage: wfs ls"* ]]
    [[ "$("$WFS" ls --help)" != *paged:* ]]
}
