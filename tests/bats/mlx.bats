# Directories for MLX: mlx/.

load lib

setup_file() {
    load lib
    "$PYTHON" "$HERE/mlx.py" make "$BATS_FILE_TMPDIR/model"
    "$PYTHON" "$HERE/mlx.py" make-experts "$BATS_FILE_TMPDIR/experts"
    "$PYTHON" "$HERE/mlx.py" make-gptq "$BATS_FILE_TMPDIR/gptq"
    "$PYTHON" "$HERE/mlx.py" make-asymmetric "$BATS_FILE_TMPDIR/asymmetric"
    "$PYTHON" "$HERE/mlx.py" make-int8 "$BATS_FILE_TMPDIR/int8"
}

setup() {
    need_numpy
    MODEL=$BATS_FILE_TMPDIR/model
    EXPERTS=$BATS_FILE_TMPDIR/experts
    OUT=$BATS_TEST_TMPDIR/out
}

@test "codes, scales and biases are what mlx's arithmetic gives" {
    local bits
    for bits in 2 3 4 5 6 8; do
        "$WFS" cat "$MODEL" "mlx/${bits}bit/model.safetensors" >"$OUT"
        "$PYTHON" "$HERE/mlx.py" check "$bits" "$MODEL/model.safetensors" "$OUT"
    done
}

@test "a file is laid out as mlx does, and its index is complete" {
    "$WFS" cat "$MODEL" mlx/4bit/model.safetensors >"$OUT"
    "$WFS" cat "$MODEL" mlx/4bit/model.safetensors.index.json >"$OUT.index"
    "$PYTHON" "$HERE/mlx.py" shape "$OUT" "$OUT.index"
}

@test "common variants are listed, the others are found by name" {
    [ "$("$WFS" ls "$MODEL" mlx | sort | tr '\n' ' ')" = "4bit 6bit 8bit bf16 mxfp4 nvfp4 plain " ]
    "$WFS" ls "$MODEL" mlx/3bit-g32-f16 | grep -qx model.safetensors
    "$WFS" ls "$MODEL" mlx/mxfp8 | grep -qx model.safetensors
    "$WFS" cat "$MODEL" mlx/mixed_3_6/config.json | jq -e '.quantization["lm_head"] == {"group_size": null, "bits": 6, "mode": "affine"}'
    "$WFS" cat "$MODEL" mlx/mixed_3_4-g32/config.json | jq -e '.quantization["model.layers.0.mlp.up_proj"].group_size == 32'
    fails 1 "there is no 'mlx/7bit" "$WFS" cat "$MODEL" mlx/7bit/config.json
}

@test "a quantized source has repacked/ with its codes" {
    local source
    mkdir "$OUT"
    for source in gptq asymmetric; do
        "$WFS" ls "$BATS_FILE_TMPDIR/$source" mlx | grep -qx repacked
        "$WFS" cat "$BATS_FILE_TMPDIR/$source" mlx/repacked/config.json |
            jq -e '.quantization == {"group_size": 64, "bits": 4, "mode": "affine"}'
        "$WFS" cat "$BATS_FILE_TMPDIR/$source" mlx/repacked/model.safetensors >"$OUT/made"
        "$PYTHON" "$HERE/mlx.py" check-repacked "$BATS_FILE_TMPDIR/$source/model.safetensors" "$OUT/made"
    done
}

@test "repacked/ has a reason where no weight has codes for MLX" {
    local reason="MLX cannot hold any weight with its codes"
    fails 1 "$reason: none is quantized" "$WFS" cat "$MODEL" mlx/repacked/config.json
    fails 1 "$reason: its codes are not in groups like those of MLX" "$WFS" cat "$BATS_FILE_TMPDIR/int8" mlx/repacked/config.json
}

@test "config.json is sorted at the top, with the parameters twice, and the card is the tool's" {
    "$WFS" cat "$MODEL" mlx/4bit/config.json >"$OUT"
    echo >>"$OUT" # the file does not end with one
    diff "$OUT" - <<'END'
{
    "architectures": [
        "LlamaForCausalLM"
    ],
    "eos_token_id": [
        2,
        7
    ],
    "model_type": "llama",
    "num_hidden_layers": 2,
    "quantization": {
        "group_size": 64,
        "bits": 4,
        "mode": "affine"
    },
    "quantization_config": {
        "group_size": 64,
        "bits": 4,
        "mode": "affine"
    },
    "rope_scaling": {
        "z": 1e-05,
        "a": 2.5
    },
    "tie_word_embeddings": false,
    "torch_dtype": "bfloat16"
}
END
    [ "$("$WFS" cat "$MODEL" mlx/4bit/README.md | tr '\n' ' ')" = "--- language: en library_name: mlx pipeline_tag: text-generation tags: - mlx --- " ]
    [ "$("$WFS" cat "$MODEL" mlx/plain/chat_template.jinja)" = "{{ messages }}" ]
    diff <("$WFS" cat "$MODEL" mlx/plain/tokenizer_config.json) "$MODEL/tokenizer_config.json"
}

@test "config.json has what a class changes while it reads it" {
    cp -r "$MODEL" "$BATS_TEST_TMPDIR/model"
    jq '{model_type: "llava", text_config: {num_hidden_layers: 2, z: 1}, tie_word_embeddings: false}' "$MODEL/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    "$WFS" cat "$BATS_TEST_TMPDIR/model" mlx/plain/config.json | jq -e '.text_config == {num_hidden_layers: 2, z: 1, tie_word_embeddings: false}'
    "$WFS" cat "$BATS_TEST_TMPDIR/model" mlx/plain/model.safetensors.index.json | jq -e '.weight_map | has("language_model.model.norm.weight")'
    jq '{model_type: "gemma3", vocab_size: 16, text_config: {vocab_size: 5, num_hidden_layers: 2}}' "$MODEL/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    [ "$("$WFS" cat "$BATS_TEST_TMPDIR/model" mlx/plain/config.json | jq -c .text_config)" = \
        '{"vocab_size":16,"num_hidden_layers":2,"num_attention_heads":8,"num_key_value_heads":4}' ]
}

@test "experts are stacked, and a router has bits of its own" {
    "$WFS" cat "$EXPERTS" mlx/plain/model.safetensors >"$OUT"
    "$PYTHON" "$HERE/mlx.py" experts "$EXPERTS/model.safetensors" "$OUT"
    "$WFS" cat "$EXPERTS" mlx/mxfp4/config.json |
        jq -e '.quantization == {"group_size": 32, "bits": 4, "mode": "mxfp4", "model.layers.0.mlp.gate": {"group_size": 64, "bits": 8}}'
}

@test "what mlx-lm refuses has no weights, and the reason is said" {
    cp -r "$MODEL" "$BATS_TEST_TMPDIR/model"
    jq '.model_type = "nothing"' "$MODEL/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    fails 1 "mlx-lm has no class for the model type 'nothing'" "$WFS" cat "$BATS_TEST_TMPDIR/model" mlx/4bit/model.safetensors
    jq '.model_type = "afm7"' "$MODEL/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    fails 1 "mlx-lm's class for the model type 'afm7' has layers in two lists, and mlx-lm itself fails to quantize it" "$WFS" cat "$BATS_TEST_TMPDIR/model" mlx/4bit/model.safetensors
    cp "$HERE/../data/gguf/models/llama-tiny/tokenizer.model" "$BATS_TEST_TMPDIR/model"
    fails 1 "mlx/4bit/model.safetensors is left out: mlx-lm's class for the model type 'afm7'" "$WFS" cp -r "$BATS_TEST_TMPDIR/model" mlx/4bit "$BATS_TEST_TMPDIR/copy"
    [ ! -e "$BATS_TEST_TMPDIR/copy" ]
    fails 1 "mlx/4bit/model.safetensors is left out: mlx-lm's class for the model type 'afm7'" "$WFS" cat "$BATS_TEST_TMPDIR/model" mlx/4bit.tar
    fails 1 "mlx/plain/model.safetensors is left out" "$WFS" cat "$BATS_TEST_TMPDIR/model" mlx.tar
    "$WFS" cp -r "$BATS_TEST_TMPDIR/model" / "$BATS_TEST_TMPDIR/all" # what there is
    rm "$BATS_TEST_TMPDIR/model/tokenizer.model"
    jq '.model_type = "kimi_vl"' "$MODEL/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    fails 1 "'kimi_vl' loads no checkpoint of its makers, because it does not split kv_b_proj" "$WFS" cat "$BATS_TEST_TMPDIR/model" mlx/plain/config.json
    jq '.model_type = "muse_spark"' "$MODEL/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    fails 1 "'muse_spark' computes the weights of its gates by a sigmoid" "$WFS" cat "$BATS_TEST_TMPDIR/model" mlx/plain/model.safetensors
    jq '.model_type = "iquestcoder"' "$MODEL/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    same "$WFS" cat "$BATS_TEST_TMPDIR/model" mlx/4bit/model.safetensors == "$WFS" cat "$MODEL" mlx/4bit/model.safetensors
    jq '.num_hidden_layers = 1' "$MODEL/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    fails 1 "no place for the tensor 'model.layers.1." "$WFS" cat "$BATS_TEST_TMPDIR/model" mlx/4bit/model.safetensors
    jq '.num_hidden_layers = 1000000' "$MODEL/config.json" >"$BATS_TEST_TMPDIR/model/config.json"
    fails 1 "layer 2 of 1000000 has no tensors" "$WFS" cat "$BATS_TEST_TMPDIR/model" mlx/4bit/model.safetensors
}

@test "a GGUF has the same directory" {
    "$WFS" cat "$HERE/../data/gguf/models/llama-tiny" model.gguf >"$BATS_TEST_TMPDIR/model.gguf"
    "$WFS" ls "$BATS_TEST_TMPDIR/model.gguf" mlx/plain | grep -qx model.safetensors
}

# has_only_tensors SOURCE REASON: nothing is made of all weights, whatever the user accepts, and the reason is told.
has_only_tensors() {
    local option file
    for option in name=x partial; do
        [ "$("$WFS" ls -o "$option" "$1" | paste -sd ' ')" = "metadata.json tensors config.json" ]
        for file in model.safetensors model.gguf hf compressed-tensors mlx; do
            fails 1 "there is no '$file': $2" "$WFS" cat -o "$option" "$1" "$file"
            [[ $stderr != *"-o partial"* ]]
        done
    done
    "$WFS" info "$1" | grep -qF "$2"
    "$PYTHON" "$HERE/mlx.py" stored "$1/model.safetensors" <("$WFS" ls "$1" tensors)
}

@test "what mlx-lm wrote and wfs cannot turn back is not shown as the model" {
    local dir=$BATS_TEST_TMPDIR/of kimi='wfs does not undo what mlx-lm changes in the weights of this class'
    "$PYTHON" "$HERE/mlx.py" make-of-mlx "$dir"
    has_only_tensors "$dir/falcon" "mlx-lm multiplied the weights by the multipliers of config.json"
    has_only_tensors "$dir/kimi" "$kimi"
    has_only_tensors "$dir/no-heads" "$kimi"
    has_only_tensors "$dir/halves" "tensor 'model.layers.0.block_sparse_moe.switch_mlp.gate_proj.weight': mlx-lm quantized the weight in another shape, and it cannot be dequantized"
    "$WFS" cat "$dir/bailing" model.safetensors >"$OUT"
    "$PYTHON" "$HERE/mlx.py" convolutions "$OUT"
}
