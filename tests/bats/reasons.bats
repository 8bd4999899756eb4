# Why a path is missing: every kind of answer, by the source and the path that somebody asked for.

load lib

DATA=$HERE/../data

# answers SOURCE [OPTION...]: reads lines of "PATH|ANSWER" and compares what `wfs cat SOURCE PATH` says.
answers() {
    local source=$1 path answer
    while IFS='|' read -r path answer; do
        run -1 --separate-stderr "$WFS" cat "${@:2}" "$source" "$path"
        [ "$stderr" = "wfs: $answer" ] || { printf '%s\nis not\nwfs: %s\n' "$stderr" "$answer" >&2; return 1; }
    done
}

@test "every missing file of a known family has its reason" {
    answers "$DATA/gguf/models/llama-tiny" -o llama.cpp=b10470 <<'END'
gguf/model-Q4_0.gguf|gguf/model-Q4_0.gguf is left out: tensor 'blk.0.ffn_down.weight': a row of 48 elements is not a multiple of 32, as Q4_0 needs it
END
    answers "$DATA/gguf/models/llama-tiny" <<'END'
gguf/split|there is no 'gguf/split': -o split=SIZE|N shows GGUF files in shards
adapter.gguf|there is no 'adapter.gguf': the source is not a LoRA adapter
mmproj.gguf|there is no 'mmproj.gguf': this is not a vision or audio model that wfs knows
layouts|there is no 'layouts': -o layout=NAME or -o shards=ENGINE asks for one
model.ggu|there is no 'model.ggu'; did you mean 'model.gguf'?
model.norm.weight|there is no file 'model.norm.weight'; the tensor of that name is 'tensors/model.norm.weight/raw'
END
}

@test "every missing file of a LoRA adapter has its reason" {
    need_numpy
    "$PYTHON" "$HERE/lora.py" "$BATS_TEST_TMPDIR"
    answers "$BATS_TEST_TMPDIR/sql-lora" <<'END'
model.gguf|there is no 'model.gguf': the source is a LoRA adapter, which becomes adapter.gguf
gguf/model-Q4_0.gguf|there is no 'gguf/model-Q4_0.gguf': the source is a LoRA adapter, and adapters are not quantized; -o lora= merges it with its base
gguf/model-IQ2_XS.gguf|there is no 'gguf/model-IQ2_XS.gguf': the source is a LoRA adapter, and adapters are not quantized; -o lora= merges it with its base
END
}

@test "every missing file of a tensor has its reason" {
    answers "$DATA/safetensors/dtypes.safetensors" <<'END'
tensors/y.C64/f32|there is no 'tensors/y.C64/f32': its values have no F32 form
tensors/x.F16/q4_0|there is no 'tensors/x.F16/q4_0': its row length is not a multiple of 32
tensors/x.F16/q4_k|there is no 'tensors/x.F16/q4_k': its row length is not a multiple of 256
tensors/x.F16/bf16.npy|there is no 'tensors/x.F16/bf16.npy': numpy has no such type
tensors/x.F16/iq2_xs|there is no 'tensors/x.F16/iq2_xs': it needs an importance matrix: -o imatrix=FILE
END
    answers "$DATA/packed/gptq-3" <<'END'
tensors/model.layers.0.mlp.down_proj.weight/raw|there is no 'tensors/model.layers.0.mlp.down_proj.weight/raw': the weight is packed: no tensor is stored under its name
END
}

@test "every missing file of a plain container has its reason" {
    cp "$DATA/gguf/models/llama-tiny/model.safetensors" "$BATS_TEST_TMPDIR/plain.safetensors"
    answers "$BATS_TEST_TMPDIR/plain.safetensors" <<'END'
gguf/model-Q4_0.gguf|gguf/model-Q4_0.gguf is left out: nothing is quantized, because the model's family is unknown
END
}

@test "every file missing for want of a tokenizer has its reason" {
    cp -r "$DATA/gguf/models/llama-tiny" "$BATS_TEST_TMPDIR/model"
    rm "$BATS_TEST_TMPDIR/model/tokenizer.model"
    run -1 --separate-stderr "$WFS" cat "$BATS_TEST_TMPDIR/model" model.gguf
    local reason=${stderr#wfs: model.gguf is left out: }
    [ "$reason" != "$stderr" ]
    # All files share the reason, and one note says it.
    answers "$BATS_TEST_TMPDIR/model" <<END
gguf/model-F16.gguf|gguf/model-F16.gguf is left out: $reason
gguf/model-Q8_0.gguf|gguf/model-Q8_0.gguf is left out: $reason
gguf/converter/model-q8_0.gguf|gguf/converter/model-q8_0.gguf is left out: $reason
END
    [ "$("$WFS" info --json "$BATS_TEST_TMPDIR/model" | jq -r '.notes[]' | grep -cF "$reason")" -eq 1 ]
    "$WFS" info --json "$BATS_TEST_TMPDIR/model" | jq -r '.notes[]' | grep -qxF "model.gguf and gguf/ are left out: $reason"
}

@test "every missing file of a GGUF without a model's metadata has its reason" {
    make_input gguf "$BATS_TEST_TMPDIR/model.gguf"
    answers "$BATS_TEST_TMPDIR/model.gguf" <<'END'
hf/config.json|hf/config.json is left out: the key llama.block_count is missing
config.json|there is no 'config.json': hf/config.json is left out: the key llama.block_count is missing
hf/tokenizer.json|there is no 'hf/tokenizer.json': the GGUF has no tokenizer
hf/generation_config.json|hf/generation_config.json is left out: it is made only for text generation models of a known family
gguf/model-Q4_0.gguf|gguf/model-Q4_0.gguf is left out: the source is already quantized; -o requantize quantizes it again
END
}

@test "every missing file of a GGUF without scores has its reason" {
    "$WFS" cp "$DATA/gguf/models/llama-tiny" model.gguf "$BATS_TEST_TMPDIR/model.gguf"
    LC_ALL=C sed -i 's/tokenizer\.ggml\.scores/tokenizer.ggml.others/' "$BATS_TEST_TMPDIR/model.gguf"
    answers "$BATS_TEST_TMPDIR/model.gguf" <<'END'
hf/tokenizer.model|there is no 'hf/tokenizer.model': the GGUF has no scores of its tokens
tokenizer.model|there is no 'tokenizer.model': the GGUF has no scores of its tokens
hf/spiece.model|there is no 'hf/spiece.model'
tokenizer.json|there is no 'tokenizer.json': it is made from the GGUF's keys, as hf/tokenizer.json
END
    "$WFS" info --json "$BATS_TEST_TMPDIR/model.gguf" | jq -r '.notes[]' | grep -xF "hf/: tokenizer.model is left out: the GGUF has no scores of its tokens"
}

@test "every missing file of packed weights without exact blocks has its reason" {
    run -1 --separate-stderr "$WFS" cat "$DATA/packed/gptq-3" gguf/model-repacked.gguf
    [[ $stderr == "wfs: gguf/model-repacked.gguf is left out: "?* ]]
    run "$WFS" info --json "$DATA/packed/gptq-3"
    [[ $output != *model-repacked.gguf* ]]
}

@test "weights that need too many shards have their reason" {
    need_numpy
    make_input many "$BATS_TEST_TMPDIR/many.safetensors" 10000
    run -1 --separate-stderr "$WFS" cat -o shard-size=1 "$BATS_TEST_TMPDIR/many.safetensors" hf/model.safetensors
    [ "$stderr" = "wfs: there is no 'hf/model.safetensors': 10000 shards of at most 1 bytes are more than 9999" ]
    "$WFS" info --json -o shard-size=1 "$BATS_TEST_TMPDIR/many.safetensors" | jq -r '.notes[]' |
        grep -xF "hf/: the weights are left out: 10000 shards of at most 1 bytes are more than 9999"
    mkdir "$BATS_TEST_TMPDIR/model"
    mv "$BATS_TEST_TMPDIR/many.safetensors" "$BATS_TEST_TMPDIR/model/model.safetensors"
    echo '{"model_type": "llama"}' >"$BATS_TEST_TMPDIR/model/config.json"
    run -1 --separate-stderr "$WFS" cat -o shard-size=1 "$BATS_TEST_TMPDIR/model" bitsandbytes/nf4/model.safetensors
    [ "$stderr" = "wfs: bitsandbytes/nf4/model.safetensors is left out: 40000 shards of at most 1 bytes are more than 9999" ]
}

@test "what wfs hides, leaves out or ignores has a note" {
    local model=$BATS_TEST_TMPDIR/model
    cp -r "$DATA/gguf/models/llama-tiny" "$model"
    echo '{}' >"$model/metadata.json"
    printf -- '---\nlicense:\n  name: mit\n---\n' >"$model/README.md"
    "$WFS" info --json "$model" | jq -r '.notes[]' >"$model.notes"
    grep -xF "metadata.json is hidden by the virtual file of that name" "$model.notes"
    grep -xF "README.md: license is left out: a mapping, expected text" "$model.notes"
    "$PYTHON" -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    archive.writestr("a.npy", b"\x93NUMPY\1\0v\0" + b"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (2,)}".ljust(117) + b"\n" + bytes(8))
    archive.writestr("no-array", "x")' "$BATS_TEST_TMPDIR/arrays.npz"
    "$WFS" info --json "$BATS_TEST_TMPDIR/arrays.npz" | jq -r '.notes[]' | grep -xF "arrays.npz: no-array is not an array and is not shown"
}
