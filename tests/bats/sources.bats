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
