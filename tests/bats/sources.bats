# Checkpoints of other frameworks: the tensors that their own libraries write, and what is wrong with broken files.

load lib

setup_file() {
    load lib
    "$PYTHON" "$HERE/sources.py" make "$BATS_FILE_TMPDIR"
}

setup() {
    need_numpy
}

@test "programs of torch.export" {
    "$PYTHON" "$HERE/sources.py" check "$WFS" "$BATS_FILE_TMPDIR" pt2
}

@test "Paddle: static models, arrays in slices, nested dictionaries" {
    "$PYTHON" "$HERE/sources.py" check "$WFS" "$BATS_FILE_TMPDIR" paddle
}

@test "ggml before GGUF: whisper.cpp and LLaMA" {
    "$PYTHON" "$HERE/sources.py" check "$WFS" "$BATS_FILE_TMPDIR" ggml
}

@test "ggml before GGUF: hyperparameters are metadata; quantized blocks of older versions have no values" {
    need jq
    "$WFS" cat "$BATS_FILE_TMPDIR/ggml/older.bin" metadata.json >"$BATS_TEST_TMPDIR/metadata.json"
    [ "$(jq -r '.metadata | .model, .n_audio_ctx, .ftype' "$BATS_TEST_TMPDIR/metadata.json" | paste -sd ' ')" = "whisper 1500 1002" ]
    [ "$(jq -r '.tensors[0].refused' "$BATS_TEST_TMPDIR/metadata.json")" = "its blocks are of a version before GGUF" ]
}

@test "TensorFlow: variables in one data file and in two" {
    "$PYTHON" "$HERE/sources.py" check "$WFS" "$BATS_FILE_TMPDIR" tensorflow
    "$WFS" ls "$BATS_FILE_TMPDIR/tensorflow/unread" tensors | grep -qx w
    fails 1 "the constants of the graph cannot be read (saved_model.pb: " "$WFS" cat "$BATS_FILE_TMPDIR/tensorflow/unread" model.safetensors
}

@test "CTranslate2" {
    "$PYTHON" "$HERE/sources.py" check "$WFS" "$BATS_FILE_TMPDIR" ctranslate2
    # float(code) * (1 / scale), as CTranslate2 dequantizes
    [ "$("$WFS" cat "$BATS_FILE_TMPDIR/ctranslate2/aliases.bin" tensors/f%2Fweight/f32 | od -An -tx4 | xargs)" = "3f000000 bf800000 42295556 c2295556" ]
    "$WFS" cat "$BATS_FILE_TMPDIR/ctranslate2/aliases.bin" tensors/f%2Fweight/f32 | cmp - <("$WFS" cat "$BATS_FILE_TMPDIR/ctranslate2/aliases.bin" tensors/p%2Fweight/f32)
}

@test "a Whisper model of CTranslate2 goes back to transformers' names, plain and from int8" {
    local data=$HERE/../data/ctranslate2 copy=$BATS_TEST_TMPDIR/copy name
    for name in whisper whisper-int8; do
        "$WFS" cat "$data/$name" hf/model.safetensors | cmp - "$data/$name.safetensors"
    done
    "$WFS" cat "$data/whisper" hf/config.json >"$BATS_TEST_TMPDIR/config.json"
    jq -e '.d_model == 8 and .encoder_layers == 2 and .decoder_layers == 1 and .encoder_attention_heads == 2 and .decoder_attention_heads == 4
        and .vocab_size == 20 and .num_mel_bins == 4 and .max_source_positions == 6 and .max_target_positions == 5 and .encoder_ffn_dim == 12
        and .decoder_ffn_dim == 16 and .suppress_tokens == [4, 7] and .begin_suppress_tokens == [9] and .pad_token_id == null' "$BATS_TEST_TMPDIR/config.json"
    "$WFS" info "$data/whisper" | grep -qF "12 of its 67 variables"
    cp -r "$data/whisper" "$copy"
    LC_ALL=C sed -i 's,decoder/num_heads,decoder/num_headz,' "$copy/model.bin"
    "$WFS" info "$copy" | grep -qF "variables keep CTranslate2's names: there is no number 'decoder/num_heads'"
    "$WFS" ls "$copy" tensors | grep -qx 'encoder%2Fconv1%2Fweight'
    cp "$data/whisper/model.bin" "$copy"
    rm "$copy/config.json"
    "$WFS" ls "$copy/model.bin" tensors | grep -qx 'encoder%2Fconv1%2Fweight'
}

@test "a Whisper model becomes what CTranslate2's converter writes, for faster-whisper" {
    local data=$HERE/../data/ctranslate2 copy=$BATS_TEST_TMPDIR/copy name
    for name in source source-half; do
        "$WFS" cp -r "$data/$name" ctranslate2 "$BATS_TEST_TMPDIR/$name"
        (cd "$BATS_TEST_TMPDIR/$name" && sha256sum --quiet -c "$data/$name.sha256")
        [ "$(cd "$BATS_TEST_TMPDIR/$name" && find . -type f | wc -l)" -eq "$(wc -l <"$data/$name.sha256")" ]
    done
    [ "$("$WFS" cat --range 100:200 "$data/source" ctranslate2/int8/model.bin | sha256sum)" = \
        "$(tail -c +101 "$BATS_TEST_TMPDIR/source/int8/model.bin" | head -c 200 | sha256sum)" ]
    "$WFS" info "$data/source" | grep -q 'ctranslate2/: float16 [0-9.]* kB'
    cp -r "$data/source" "$copy"
    rm "$copy/generation_config.json"
    fails 1 "generation_config.json is missing" "$WFS" cat "$copy" ctranslate2/int8/config.json
    jq '.vocab_size = 2000000' "$data/source/config.json" >"$copy/config.json"
    fails 1 "vocab_size is 2000000, and model.decoder.embed_tokens.weight does not have as many rows" "$WFS" cat "$copy" ctranslate2/int8/vocabulary.json
    jq '.tie_word_embeddings = false' "$data/source/config.json" >"$copy/config.json"
    fails 1 "ctranslate2/int8/model.bin is left out: config.json: tie_word_embeddings is false" "$WFS" cp -r "$copy" ctranslate2/int8 "$BATS_TEST_TMPDIR/none"
    [ ! -e "$BATS_TEST_TMPDIR/none" ]
}

@test "tensorizer" {
    "$PYTHON" "$HERE/sources.py" check "$WFS" "$BATS_FILE_TMPDIR" tensorizer
}

@test "pickled arrays larger than memory" {
    "$PYTHON" "$HERE/sources.py" large-pickle "$BATS_TEST_TMPDIR/large.pdparams"
    [ "$(stat -c %s "$BATS_TEST_TMPDIR/large.pdparams")" -gt 6000000000 ]
    "$WFS" ls --long "$BATS_TEST_TMPDIR/large.pdparams" tensors/large | grep -q ' 6000000000 .*raw$'
    [ "$("$WFS" cat "$BATS_TEST_TMPDIR/large.pdparams" tensors/small/raw | od -An -tf4 | xargs)" = "1 2 3" ]
    "$WFS" cat "$BATS_TEST_TMPDIR/large.pdparams" metadata.json | grep -q '"length": *70000'
}

# step_of NAME: what info says of a directory of that name.
step_of() {
    mkdir "$BATS_TEST_TMPDIR/$1"
    cp "$BATS_FILE_TMPDIR/paddle/sliced.pdparams" "$BATS_TEST_TMPDIR/$1/model_state.pdparams"
    "$WFS" info "$BATS_TEST_TMPDIR/$1" | sed -n 's/^step  *//p'
}

@test "info names the step of training" {
    [ "$(step_of iter_0000010)" = "10 of the training" ]
    [ "$(step_of global_step7)" = "7 of the training" ]
    [ "$(step_of step-1200)" = "1200 of the training" ]
    [ "$(step_of checkpoint-0)" = "0 of the training" ]
    [ "$(step_of step-x)" = "" ]
    [ "$(step_of other-10)" = "" ]
}

# has_only_tensors SOURCE: nothing is made of all weights, and the reason is told.
has_only_tensors() {
    [ "$("$WFS" ls "$1" | paste -sd ' ')" = "metadata.json tensors" ]
    for file in model.safetensors model.gguf hf compressed-tensors mlx; do
        fails 1 "there is no '$file': $2; -o partial makes it of the tensors that are there" "$WFS" cat "$1" "$file"
    done
    "$WFS" info "$1" | grep -qF "$2; -o partial makes files of the tensors that are there"
}

@test "a part of a model is not shown as the whole, but with -o partial" {
    local dir=$BATS_TEST_TMPDIR/model whole='only one of 2 shards; name the directory for all tensors'
    mkdir "$dir"
    "$PYTHON" "$HERE/sources.py" shards "$dir"
    "$WFS" ls "$dir" | grep -qx model.safetensors
    has_only_tensors "$dir/model-00001-of-00002.safetensors" "model-00001-of-00002.safetensors: $whole"
    "$WFS" cat -o partial "$dir/model-00001-of-00002.safetensors" model.safetensors | cmp - "$dir/model-00001-of-00002.safetensors"
    "$WFS" ls -o partial "$dir/model-00001-of-00002.safetensors" | grep -qx model.gguf
    sed -i 's/"weight_map": {/&"missing": "model-00001-of-00002.safetensors", /' "$dir/model.safetensors.index.json"
    has_only_tensors "$dir" "model.safetensors.index.json: tensor 'missing' should be in model-00001-of-00002.safetensors, but is in no shard"
}

@test "one process's parts of tensors are refused" {
    local dir=$BATS_TEST_TMPDIR/one name=shard-00001-model-00001-of-00001.safetensors
    mkdir "$dir"
    "$PYTHON" "$HERE/sources.py" part "$dir/$name"
    fails 1 "parts of tensors, which one of several processes saved (DCP_SHARDING_INFO)" "$WFS" ls "$dir/$name"
    has_only_tensors "$dir" "the parts of tensors that one process saved; nothing tells whether there were more"
    "$WFS" ls -o partial "$dir" tensors | grep -qx w
}

@test "the parts of tensors that several processes saved are joined" {
    local dir=$BATS_TEST_TMPDIR
    "$PYTHON" "$HERE/sources.py" parts "$dir"
    [ "$("$WFS" cat "$dir/whole" tensors/a/raw | od -An -tf4 -v | xargs)" = "$(seq -s ' ' 0 47)" ]
    [ "$("$WFS" cat "$dir/whole" tensors/b/raw | od -An -tf4 -v | xargs)" = "$(seq -s ' ' 0 34)" ]
    [ "$("$WFS" cat "$dir/whole" tensors/c/raw | od -An -tf4 -v | xargs)" = "0 1 2 3" ]
    [ "$("$WFS" cat "$dir/whole" tensors/s/raw | od -An -tf4 -v | xargs)" = "5" ]
    "$WFS" cat "$dir/whole" model.safetensors | head -c 500 | grep -qv DCP_
    "$WFS" info "$dir/whole" | grep -q 'the parts of tensors that 3 processes saved are joined; nothing tells whether there were more'
    fails 1 "the files of rank 2 are missing (shard-00002-...)" "$WFS" ls "$dir/missing"
    fails 1 "tensor 'a': its pieces leave a gap or overlap" "$WFS" ls "$dir/moved"
}

@test "several arrays in one .npy, as Equinox writes them" {
    "$PYTHON" "$HERE/sources.py" arrays "$BATS_TEST_TMPDIR/model.eqx"
    fails 1 "several arrays without names, as Equinox (.eqx) writes them" "$WFS" ls "$BATS_TEST_TMPDIR/model.eqx"
    fails 1 "several arrays without names, as Equinox (.eqx) writes them" "$WFS" ls -o allow_trailing "$BATS_TEST_TMPDIR/model.eqx"
    [ "$("$WFS" cat -o partial "$BATS_TEST_TMPDIR/model.eqx" tensors/model.eqx/raw | od -An -tf4 | xargs)" = "0 1 2" ]
}

@test "plain pickles with tensors of torch and arrays of JAX" {
    "$PYTHON" "$HERE/sources.py" check "$WFS" "$BATS_FILE_TMPDIR" pickles
}

@test "a model whose numbers cannot all be read is a part, one with texts is whole" {
    local dir=$BATS_TEST_TMPDIR
    "$PYTHON" "$HERE/sources.py" unreadable "$dir"
    has_only_tensors "$dir/records.npz" "tensor 'odd' cannot be read (structured elements)"
    has_only_tensors "$dir/untyped.npz" "tensor 'odd' cannot be read (elements without a type)"
    for name in records untyped; do
        [ "$("$WFS" cat "$dir/$name.npz" tensors/w/raw | od -An -tf4 | xargs)" = "0 1 2" ]
        [ "$("$WFS" cat -o partial "$dir/$name.npz" model.safetensors | tail -c 12 | od -An -tf4 | xargs)" = "0 1 2" ]
    done
    for name in texts objects dates; do
        "$WFS" ls "$dir/$name.npz" | grep -qx model.safetensors
    done
    [ "$("$WFS" info "$dir/records.npz" | grep -c 'plain container\|left out')" = 0 ] # notes on files that are not there
    "$PYTHON" "$HERE/sources.py" odd "$dir/odd.pkl"
    [ "$("$WFS" ls "$dir/odd.pkl" | paste -sd ' ')" = "metadata.json tensors" ]
    "$WFS" info "$dir/odd.pkl" | grep -q "tensor 'short' cannot be read (its nested storage cannot be read: .*), nor can 5 other tensors; -o partial"
    "$PYTHON" "$HERE/sources.py" odd "$dir/odd.pkl" optimizer
    "$WFS" ls "$dir/odd.pkl" | grep -qx model.safetensors
}

@test "a tensor that cannot be shown is refused alone" {
    need jq
    "$PYTHON" "$HERE/sources.py" odd "$BATS_TEST_TMPDIR/odd.pkl"
    [ "$("$WFS" cat "$BATS_TEST_TMPDIR/odd.pkl" tensors/x/raw | od -An -tf4 | xargs)" = "0 1 2 3 4 5" ]
    "$WFS" cat "$BATS_TEST_TMPDIR/odd.pkl" metadata.json | jq -r '.tensors[] | "\(.name): \(.refused)"' >"$BATS_TEST_TMPDIR/refused"
    cat "$BATS_TEST_TMPDIR/refused"
    grep -qx 'jagged: a tensor subclass that wfs does not know' "$BATS_TEST_TMPDIR/refused"
    grep -qx 'q: quantized tensors are not supported' "$BATS_TEST_TMPDIR/refused"
    grep -qx 'x: null' "$BATS_TEST_TMPDIR/refused"
    for name in short count text empty; do
        grep -q "^$name: its nested storage cannot be read: " "$BATS_TEST_TMPDIR/refused"
    done
}

@test "what other programs write is called by its name" {
    local dir=$BATS_TEST_TMPDIR
    "$PYTHON" "$HERE/sources.py" others "$dir"
    for name in blla.mlmodel blla.bin; do
        fails 1 "$name: Core ML, which wfs does not read" "$WFS" info "$dir/$name"
    done
    mkdir "$dir/m.mlpackage"
    fails 1 "m.mlpackage: Core ML, which wfs does not read" "$WFS" info "$dir/m.mlpackage"
    fails 1 "m.mlpackage/: Core ML, which wfs does not read" "$WFS" info "$dir/m.mlpackage/"
    for name in saved_model.pb graph; do
        fails 1 "$name: the graph of a TensorFlow SavedModel; name its directory, whose variables wfs reads" "$WFS" info "$dir/$name"
    done
    [ "$("$WFS" cat "$dir/model" tensors/w/raw | od -An -tf4 | xargs)" = "0 1 2" ] # ONNX without the ending
    fails 1 "truncated" "$WFS" info "$dir/cut"
    fails 1 "yolo.cfg is the layers of a Darknet model" "$WFS" info "$dir/darknet"
    fails 1 "laid out neither like whisper.cpp's models" "$WFS" info "$dir/bark.bin"
    fails 1 "package.pt: a torch.package" "$WFS" info "$dir/package.pt"
    fails 1 "m.gguf.part1of2 is one of several parts of a file; join them with cat, in their order" "$WFS" info "$dir/parts"
}

@test "no files of a model are made of a torch archive without tensors" {
    "$PYTHON" "$HERE/sources.py" no-tensors "$BATS_TEST_TMPDIR/none.pt"
    [ "$("$WFS" ls "$BATS_TEST_TMPDIR/none.pt" | paste -sd ' ')" = "metadata.json tensors" ]
    "$WFS" cat "$BATS_TEST_TMPDIR/none.pt" metadata.json | grep -q '"lr": *1'
    "$WFS" info "$BATS_TEST_TMPDIR/none.pt" | grep -q '^notes       no files of a model: the source contains no tensors'
    fails 1 "there is no 'model.gguf': the source contains no tensors" "$WFS" cat "$BATS_TEST_TMPDIR/none.pt" model.gguf
}
