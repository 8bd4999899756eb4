# Directories for engines: compressed-tensors/ and bitsandbytes/.

load lib

setup_file() {
    load lib
    "$PYTHON" "$HERE/engines.py" make "$BATS_FILE_TMPDIR/model"
}

setup() {
    need_numpy
    MODEL=$BATS_FILE_TMPDIR/model
    OUT=$BATS_TEST_TMPDIR/out
}

@test "the parts of a weight are what the formats' arithmetic gives" {
    local scheme
    mkdir "$OUT"
    for scheme in FP8_DYNAMIC W8A8 W4A16 MXFP4A16 NVFP4A16; do
        "$WFS" cat "$MODEL" "compressed-tensors/$scheme/model.safetensors" >"$OUT/$scheme.safetensors"
        "$PYTHON" "$HERE/engines.py" check "$scheme" "$MODEL/model.safetensors" "$OUT/$scheme.safetensors"
    done
}

@test "a mount of the directory has the model's values again, within the format's error" {
    local scheme file
    for scheme in FP8_DYNAMIC W8A8 W8A16 W4A16 W4A16_ASYM NVFP4A16 MXFP4A16 MXFP8 W3A16; do
        mkdir -p "$OUT/$scheme"
        for file in config.json model.safetensors; do
            "$WFS" cat "$MODEL" "compressed-tensors/$scheme/$file" >"$OUT/$scheme/$file"
        done
        "$WFS" cat "$OUT/$scheme" tensors/model.layers.0.mlp.up_proj.weight/f32 >"$OUT/f32"
        "$PYTHON" "$HERE/engines.py" near "$scheme" "$MODEL/model.safetensors" "$OUT/f32"
    done
}

@test "common schemes are listed, the others are found by name" {
    [ "$("$WFS" ls "$MODEL" compressed-tensors | sort | tr '\n' ' ')" = "FP8_BLOCK FP8_DYNAMIC MXFP4A16 NVFP4A16 W4A16 W8A16 W8A8 " ]
    "$WFS" ls "$MODEL" compressed-tensors/W3A16 | grep -qx model.safetensors
    "$WFS" cat "$MODEL" compressed-tensors/W3A16/config.json | jq -e '.quantization_config.config_groups.W3A16.weights.num_bits == 3'
    fails 1 "there is no 'compressed-tensors/W1A16" "$WFS" cat "$MODEL" compressed-tensors/W1A16/config.json
}

@test "the other files are the source's, and the index is complete" {
    diff <("$WFS" cat "$MODEL" compressed-tensors/W4A16/README.md) "$MODEL/README.md"
    "$WFS" cat "$MODEL" compressed-tensors/W4A16/model.safetensors >"$BATS_TEST_TMPDIR/w"
    "$WFS" cat "$MODEL" compressed-tensors/W4A16/model.safetensors.index.json >"$BATS_TEST_TMPDIR/index"
    "$PYTHON" - "$BATS_TEST_TMPDIR/w" "$BATS_TEST_TMPDIR/index" <<'END'
import json, struct, sys
content = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", content[:8])[0]
header = json.loads(content[8:8 + length])
index = json.load(open(sys.argv[2]))
assert "__metadata__" not in header
assert set(index["weight_map"]) == set(header) and set(index["weight_map"].values()) == {"model.safetensors"}
assert index["metadata"]["total_size"] == len(content) - 8 - length
END
}

@test "a model that a scheme does not fit has no weights there, and the reason is said" {
    "$PYTHON" "$HERE/engines.py" make-odd "$BATS_TEST_TMPDIR/odd"
    fails 1 "its 96 columns are not a multiple of 128" \
        "$WFS" cat "$BATS_TEST_TMPDIR/odd" compressed-tensors/W4A16/model.safetensors
    run -1 grep -x model.safetensors <("$WFS" ls "$BATS_TEST_TMPDIR/odd" compressed-tensors/W4A16)
    "$WFS" ls "$BATS_TEST_TMPDIR/odd" compressed-tensors/FP8_DYNAMIC | grep -qx model.safetensors
}

@test "a GGUF and a sharded model have the directories, too" {
    "$WFS" cat "$HERE/../data/gguf/models/llama-tiny" model.gguf >"$BATS_TEST_TMPDIR/model.gguf"
    "$WFS" ls "$BATS_TEST_TMPDIR/model.gguf" compressed-tensors/FP8_DYNAMIC | grep -qx model.safetensors
    "$PYTHON" "$HERE/engines.py" make-shards "$BATS_TEST_TMPDIR/shards"
    [ "$("$WFS" ls "$BATS_TEST_TMPDIR/shards" compressed-tensors/FP8_DYNAMIC | grep safetensors | tr '\n' ' ')" = \
        "model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json " ]
    # fused weights share a scale, and the file of the first of them
    "$WFS" cat "$BATS_TEST_TMPDIR/shards" compressed-tensors/NVFP4A16/model.safetensors.index.json |
        jq -e '.weight_map["model.layers.0.mlp.up_proj.weight_packed"] == "model-00001-of-00002.safetensors"'
    "$WFS" cat "$BATS_TEST_TMPDIR/shards" compressed-tensors/W4A16/model.safetensors.index.json |
        jq -e '.weight_map["model.layers.0.mlp.up_proj.weight_packed"] == "model-00002-of-00002.safetensors"'
}

@test "oneshot/ has the same codes in one file, and a recipe" {
    local scheme directory=compressed-tensors/oneshot
    mkdir "$OUT"
    for scheme in W8A8 W4A16 NVFP4A16; do
        "$WFS" cat "$MODEL" "$directory/$scheme/model.safetensors" >"$OUT/$scheme.safetensors"
        "$PYTHON" "$HERE/engines.py" check "$scheme" "$MODEL/model.safetensors" "$OUT/$scheme.safetensors"
    done
    "$WFS" cat "$MODEL" "$directory/FP8_DYNAMIC/model.safetensors" >"$OUT/fp8"
    "$PYTHON" "$HERE/engines.py" check-zeros "$OUT/fp8"
    "$WFS" cat "$MODEL" "$directory/W4A16/config.json" |
        jq -e '.quantization_config | .ignore == ["lm_head"] and .config_groups.group_0.weights.observer == "memoryless_minmax"'
    "$WFS" cat "$MODEL" "$directory/W4A16/generation_config.json" | jq -e '.transformers_version == "5.17.0"'
    [ "$("$WFS" cat "$MODEL" "$directory/W4A16/recipe.yaml" | sed -n '4,6p' | tr -s ' \n' ' ')" = \
        " targets: [Linear] ignore: [lm_head] scheme: W4A16 " ]
    run -1 grep -x model.safetensors.index.json <("$WFS" ls "$MODEL" "$directory/W4A16")
    cp -r "$MODEL" "$OUT/experts"
    echo '{"model_type": "jamba", "num_experts": 4, "torch_dtype": "bfloat16"}' >"$OUT/experts/config.json"
    fails 1 "oneshot() is not supported for the experts of 'jamba'" "$WFS" cat "$OUT/experts" "$directory/W4A16/model.safetensors"
    echo '{"model_type": "nothing", "torch_dtype": "bfloat16"}' >"$OUT/experts/config.json"
    fails 1 "oneshot() is not supported for the model type 'nothing'" "$WFS" cat "$OUT/experts" "$directory/W4A16/model.safetensors"
}

@test "ignore= names the modules that stay as they are" {
    local directory ignore=(-o 'ignore=re:.*\.mlp\.' -o ignore=lm_head)
    for directory in compressed-tensors compressed-tensors/oneshot; do
        "$WFS" cat "${ignore[@]}" "$MODEL" "$directory/W8A8/model.safetensors" >"$BATS_TEST_TMPDIR/w"
        "$PYTHON" "$HERE/engines.py" names "$BATS_TEST_TMPDIR/w" >"$BATS_TEST_TMPDIR/names"
        grep -qx model.layers.0.self_attn.q_proj.weight_scale "$BATS_TEST_TMPDIR/names"
        run -1 grep 'mlp.*weight_scale' "$BATS_TEST_TMPDIR/names"
    done
    "$WFS" cat "${ignore[@]}" "$MODEL" compressed-tensors/W8A8/config.json |
        jq -e '.quantization_config.ignore == ["re:.*\\.mlp\\.", "lm_head"]'
    "$WFS" cat "${ignore[@]}" "$MODEL" compressed-tensors/oneshot/W8A8/config.json |
        jq -e '.quantization_config.ignore == ["model.layers.0.mlp.gate_proj", "model.layers.0.mlp.up_proj", "model.layers.0.mlp.down_proj", "lm_head"]'
    fails 2 "ignore: '(': at 1: " "$WFS" ls -o 'ignore=re:(' "$MODEL"
    fails 2 "a pattern has no blanks" "$WFS" ls -o 'ignore=a b' "$MODEL"
}

@test "bitsandbytes/ has every linear weight but the head's, as the package quantizes it" {
    local type
    mkdir "$OUT"
    [ "$("$WFS" ls "$MODEL" bitsandbytes | sort | tr '\n' ' ')" = "fp4 int8 nf4 " ]
    for type in nf4 fp4 int8; do
        "$WFS" cat "$MODEL" "bitsandbytes/$type/model.safetensors" >"$OUT/$type.safetensors"
        "$PYTHON" "$HERE/engines.py" check-bnb "$type" "$MODEL/model.safetensors" "$OUT/$type.safetensors"
    done
    "$WFS" cat "$MODEL" bitsandbytes/nf4/config.json |
        jq -e '.quantization_config.bnb_4bit_quant_type == "nf4" and .dtype == "bfloat16" and (has("torch_dtype") | not)'
    "$WFS" cat "$MODEL" bitsandbytes/nf4/generation_config.json | jq -e ._from_model_config
    "$WFS" cat "$MODEL" bitsandbytes/nf4-double/config.json | jq -e '.quantization_config.bnb_4bit_use_double_quant'
    "$WFS" cat "$MODEL" bitsandbytes/nf4-double/model.safetensors | grep -aqE '"nested_offset": 0\.[0-9]+} '
    diff <("$WFS" cat "$MODEL" bitsandbytes/nf4/README.md) "$MODEL/README.md"
    cp -r "$MODEL" "$OUT/undecided"
    echo '{"torch_dtype": "float64"}' >"$OUT/undecided/config.json"
    fails 1 "config.json names no dtype of bfloat16, float16 or float32" "$WFS" cat "$OUT/undecided" bitsandbytes/nf4/model.safetensors
}

@test "bitsandbytes/ is in shards beyond the size that save_pretrained() allows, and its index is complete" {
    local file
    mkdir "$OUT"
    [ "$("$WFS" ls -o shard-size=40KB "$MODEL" bitsandbytes/nf4 | grep -c safetensors)" = 3 ]
    for file in model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json; do
        "$WFS" cat -o shard-size=40KB "$MODEL" "bitsandbytes/nf4/$file" >"$OUT/$file"
    done
    "$WFS" cat "$MODEL" bitsandbytes/nf4/model.safetensors >"$OUT/model.safetensors"
    "$PYTHON" "$HERE/engines.py" check-shards "$OUT" 40000
}

@test "modelopt/W4A16_NVFP4 is what ModelOpt exports, and is read with its own values" {
    local data=$HERE/../data/modelopt model file
    for model in llama deepseek_v2 llama4; do
        mkdir -p "$OUT/$model"
        for file in model.safetensors hf_quant_config.json config.json; do
            "$WFS" cat "$data/$model/model" "modelopt/W4A16_NVFP4/$file" >"$OUT/$model/$file"
        done
        cmp "$OUT/$model/model.safetensors" "$data/$model/exported/model.safetensors"
        cmp "$OUT/$model/hf_quant_config.json" "$data/$model/exported/hf_quant_config.json"
        diff <(jq -S . "$OUT/$model/config.json") <(jq -S . "$data/$model/exported/config.json")
    done
    for name in mlp.up_proj self_attn.k_proj; do
        "$WFS" cat "$OUT/llama" "tensors/model.layers.0.$name.weight/f32" >"$BATS_TEST_TMPDIR/f32"
        "$PYTHON" "$HERE/engines.py" check-modelopt "$data/llama/exported/model.safetensors" "model.layers.0.$name" "$BATS_TEST_TMPDIR/f32"
    done
    cp -r "$data/deepseek_v2/model" "$OUT/mtp"
    jq '.num_hidden_layers = 1' "$data/deepseek_v2/model/config.json" >"$OUT/mtp/config.json" # the second layer is one of prediction
    "$WFS" cat "$OUT/mtp" modelopt/W4A16_NVFP4/hf_quant_config.json |
        jq -e '.quantization.exclude_modules == ["lm_head", "model.embed_tokens", "model.layers.1*"]'
    fails 1 "'model.layers.0.feed_forward.experts.down_proj': its experts have inputs before outputs" \
        "$WFS" cat "$data/llama4/model" fp8/block/model.safetensors
    "$WFS" info "$data/llama4/model" |
        grep -F "compressed-tensors/: 'model.layers.0.feed_forward.experts.down_proj' has inputs before outputs, and model_free_ptq takes"
    "$WFS" cat -o 'ignore=re:.*(feed_forward|lm_head)' "$data/llama4/model" modelopt/W4A16_NVFP4/hf_quant_config.json |
        jq -e '.quantization.exclude_modules == ["lm_head", "model.layers.0.feed_forward*"]'
}
