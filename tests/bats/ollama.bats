# Ollama's store as a source: ollama://NAME, and a library of all its models.

load lib

setup_file() {
    load lib
    "$WFS" cat "$HERE/../data/gguf/models/llama-tiny" model.gguf >"$BATS_FILE_TMPDIR/tiny.gguf"
    "$PYTHON" "$HERE/ollama.py" "$BATS_FILE_TMPDIR" "$BATS_FILE_TMPDIR/tiny.gguf"
}

setup() {
    need_numpy
    export OLLAMA_MODELS=$BATS_FILE_TMPDIR/models
}

@test "a model of the store is its GGUF, with its texts beside it" {
    same "$WFS" cat ollama://tiny model.gguf == cat "$BATS_FILE_TMPDIR/tiny.gguf"
    same "$WFS" cat ollama://hf.co/someone/Tiny.GGUF:F16 model.gguf == cat "$BATS_FILE_TMPDIR/tiny.gguf"
    [[ $("$WFS" cat ollama://tiny:latest template) == "{{ .Prompt }}" ]]
    [[ $("$WFS" cat ollama://tiny params) == '{"stop":["x"]}' ]]
    [[ $("$WFS" cat ollama://tiny LICENSE) == Free. ]]
    [[ $("$WFS" cat ollama://tiny system) == "Be terse." ]]
    same "$WFS" cat "ollama://$OLLAMA_MODELS/manifests/registry.ollama.ai/library/tiny/latest" model.gguf == cat "$BATS_FILE_TMPDIR/tiny.gguf"
}

@test "projectors, adapters and drafts of the store are files beside the model" {
    same "$WFS" cat ollama://tuned:v2 model.gguf == cat "$BATS_FILE_TMPDIR/tiny.gguf"
    [[ $("$WFS" cat ollama://tuned:v2 mmproj.gguf) == "GGUF projector" ]]
    [[ $("$WFS" cat ollama://tuned:v2 adapter.gguf) == "GGUF adapter" ]]
    [[ $("$WFS" cat ollama://tuned:v2 draft.gguf) == "GGUF draft" ]]
}

@test "blobs of single tensors have the values that their kinds mean" {
    local kind
    for kind in int4 int8 mxfp4 mxfp8 nvfp4; do
        same "$WFS" cat ollama://packed "tensors/model.$kind.weight/f32" == cat "$BATS_FILE_TMPDIR/model.$kind.weight.f32"
    done
}

@test "stacks of experts are a matrix for each expert" {
    same "$WFS" cat ollama://packed tensors/model.experts.1.up_proj.weight/f32 == cat "$BATS_FILE_TMPDIR/up.f32"
    same "$WFS" cat ollama://packed tensors/model.experts.1.down_proj.weight/f32 == cat "$BATS_FILE_TMPDIR/down.f32"
}

@test "side files of the store may lie in folders, below the model alone" {
    [[ $("$WFS" cat ollama://packed 1_Pooling/config.json) == '{"word_embedding_dimension": 4}' ]]
    [[ $("$WFS" cat ollama://packed a/b/c.txt) == a ]]
    [[ $("$WFS" ls ollama://packed a) == b ]]
    run ! grep -qx '[xyz]' <("$WFS" ls ollama://packed)
}

@test "broken models of the store are refused in a line each" {
    run "$WFS" ls ollama://unfinished
    ((status == 1 && ${#lines[@]} == 1))
    [[ $output == *"Ollama has not pulled all of it: blobs/sha256-00"*"run ollama pull"* ]]
    run "$WFS" ls ollama://gone
    ((status == 1 && ${#lines[@]} == 1))
    [[ $output == *"the store lacks blobs/sha256-11"* ]]
    run "$WFS" ls ollama://escapes
    ((status == 1 && ${#lines[@]} == 1))
    [[ $output == *"a layer without a SHA-256 or a size"* ]]
    run "$WFS" ls ollama://longer
    ((status == 1 && ${#lines[@]} == 1))
    [[ $output == *"bytes, but the manifest says"* ]]
    run "$WFS" cat ollama://odd tensors/model.odd.weight/f32
    ((status == 1))
    [[ $output == *"its blob states groups of 32"* ]]
    run "$WFS" ls ollama://absent
    [[ $output == *"has no such model; run ollama pull"* ]]
    OLLAMA_MODELS=$BATS_TEST_TMPDIR/nowhere run "$WFS" ls ollama://tiny
    ((status == 1 && ${#lines[@]} == 1))
    [[ $output == *"Ollama has no models in $BATS_TEST_TMPDIR/nowhere; name their directory in OLLAMA_MODELS" ]]
    run "$WFS" ls ollama://a/b/c/d
    [[ $output == *"not ollama://NAME[:TAG]"* ]]
    run "$WFS" ls ollama://../x
    [[ $output == *"not ollama://NAME[:TAG]"* ]]
}

@test "a store is a library, whose broken models harm no others" {
    same "$WFS" cat -o library "$OLLAMA_MODELS" models/library/tiny/tiny.gguf == cat "$BATS_FILE_TMPDIR/tiny.gguf"
    same "$WFS" cat -o library "$OLLAMA_MODELS" models/someone/Tiny.GGUF-F16/Tiny.GGUF-F16.gguf == cat "$BATS_FILE_TMPDIR/tiny.gguf"
    run --separate-stderr "$WFS" ls -o library "$OLLAMA_MODELS" ollama/manifests/registry.ollama.ai/library
    [[ $output == *tiny* && $output != *unfinished* ]]
    [[ $stderr != *note:* ]] # the texts' digests go to no cache
    run "$WFS" ls -o library "$OLLAMA_MODELS" models/library/escapes
    [[ $output == *escapes/latest:*"a layer without"* && $output != *escapes/latest:*escapes/latest:* ]]
}
