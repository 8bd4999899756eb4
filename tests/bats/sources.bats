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
