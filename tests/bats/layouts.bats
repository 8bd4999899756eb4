# Layouts: what -o layout= and shards= show, and wfs layout check. Needs neither root nor /dev/fuse.

load lib

layouts() {
    "$PYTHON" "$HERE/layouts.py" "$@"
}

setup_file() {
    load lib
    "$PYTHON" "$HERE/layouts.py" make "$BATS_FILE_TMPDIR/model"
    "$PYTHON" "$HERE/layouts.py" make "$BATS_FILE_TMPDIR/tied" tied
}

setup() {
    need_numpy
    MODEL=$BATS_FILE_TMPDIR/model
    OUT=$BATS_TEST_TMPDIR/out
    OWN=$BATS_TEST_TMPDIR/own.json
}

# Copies what a layout makes of a model to $OUT.
copy_layout() {
    "$WFS" cp -r -o "layout=$2" "$1" "layouts/$3" "$OUT"
}

own_layout() {
    cat >"$OWN" <<'JSON'
{
    "parameters": {"tp": 1},
    "axes": {"tp": {"size": "tp", "part": "rank"}, "padding": "ceil(rows, tp) * tp - rows"},
    "files": {"name": "part-{rank}.safetensors", "for": {"rank": "tp"}},
    "refuse": [{"when": "head % tp != 0", "because": "{tp} does not divide {head} heads"}],
    "documents": [{"name": "info.json", "members": [
        {"set": {"layers": "=layers", "kind": "=config.model_type", "tied": true, "halves": ["=tp"]}},
        {"when": "has('lm_head.weight')", "set": {"tied": "=config.tie_word_embeddings"}},
        {"when": "tp > 9", "set": {"many": true}}]}],
    "tensors": [
        {"to": "embedding", "from": "model.embed_tokens.weight", "axes": ["row c -> (row + padding) c", "(tp row) c -> row c"]},
        {"to": "block{layer + 1}.qk",
         "from": ["model.layers.{layer}.self_attn.q_proj.weight", "model.layers.{layer}.self_attn.k_proj.weight"],
         "axes": "(tp q) c, (tp k) c -> (q + k) c"},
        {"to": "all_down", "from": "model.layers.{layer}.mlp.down_proj.weight", "axes": "layer row (tp column) -> layer row column"},
        {"to": "one", "from": "model.norm.weight", "constant": 1},
        {"to": "never", "from": "model.norm.{kind}", "each": {"kind": ["bias", "scale"]}, "optional": true}
    ]
}
JSON
}

@test "antigravity has the right names, dtypes, bytes and manifest" {
    copy_layout "$MODEL" antigravity antigravity
    layouts antigravity "$MODEL" "$OUT"
}

@test "antigravity quantizes the embedding for a tied head" {
    copy_layout "$BATS_FILE_TMPDIR/tied" antigravity antigravity
    layouts antigravity "$BATS_FILE_TMPDIR/tied" "$OUT"
}

@test "a layout of your own can divide, join, stack and pad, repeat names, and write a document" {
    own_layout
    copy_layout "$MODEL" "$OWN:tp=2" own
    layouts own "$MODEL" "$OUT"
}

@test "several layouts work at once, with other options between them" {
    own_layout
    [ "$("$WFS" ls -o layout=antigravity -o "dtype=f16,layout=$OWN:tp=4" "$MODEL" layouts | sort | xargs)" = "antigravity own" ]
}

@test "wfs layout check prints each tensor with its sources and row, and unused tensors" {
    own_layout
    run -0 "$WFS" layout check "$OWN:tp=2" "$MODEL"
    [[ $output == *"block1.qk BF16 [48, 64] <- model.layers.0.self_attn.q_proj.weight, model.layers.0.self_attn.k_proj.weight  (tensors[1])"* ]]
    [[ $output == *"not used:"*"model.layers.0.self_attn.o_proj.weight"* ]]
    run -1 "$WFS" layout check -o "lora=$OUT" "$OWN:tp=2" "$MODEL"
    [[ $output == "wfs: option lora: "* ]]
}

# refused PLACE-AND-REASON COMMAND...: edits own.json by sed, and is refused in one line.
refused() {
    own_layout
    sed -i "$2" "$OWN"
    run -1 "$WFS" layout check "$OWN:tp=2" "$MODEL"
    [ "$output" = "wfs: $OWN:$1" ] || { echo "$output"; return 1; }
}

@test "an invalid or unfitting layout file gets one line with the place" {
    refused "14: tensors[1].axes: '(tp q c, (tp k) c -> (q + k) c': column 8: expected a name, 1, ... or (" 's/(tp q) c/(tp q c/'
    refused "15: tensors[2].form: unknown" 's/"all_down", "from"/"all_down", "form"/'
    refused "11: tensors[0]: the model has no tensor 'model.embed_token.weight'" 's/model.embed_tokens/model.embed_token/'
    refused "3: axes.padding: 'ceil(rows, tp * tp - rows': column 26: expected , or )" 's/ceil(rows, tp)/ceil(rows, tp/'
    refused "11: tensors[0]: 'ceil(row, tp) * tp - rows': column 6: unknown name 'row'" 's/ceil(rows/ceil(row/'
    refused "17: tensors[4].optional: not true or false" 's/"optional": true/"optional": 1/'
    refused "16: tensors[3]: tensors[2] makes the tensor 'all_down', too" 's/"to": "one"/"to": "all_down"/'
    refused "6: documents[0]: kind: 'quantization('FP8_PER_CHANNEL_PER_TOKEN')': column 1: none of 5 matrices is packed as FP8_PER_CHANNEL_PER_TOKEN" \
        "s/=config.model_type/=quantization('FP8_PER_CHANNEL_PER_TOKEN')/"
    refused "4: files: two files have the name 'same'" 's/part-{rank}.safetensors/same/'
    echo '[]' >"$OWN"
    run -1 "$WFS" layout check "$OWN" "$MODEL"
    [ "$output" = "wfs: $OWN:1: not an object" ]
    own_layout
    sed -i '14s/}/]/' "$OWN"
    run -1 "$WFS" layout check "$OWN" "$MODEL"
    [[ $output == "wfs: $OWN: line 14: invalid JSON at offset "* ]]
    own_layout
    run -1 "$WFS" layout check "$OWN:tq=2" "$MODEL"
    [[ $output == "wfs: own: unknown parameter 'tq' (known: "*"); did you mean 'tp'?" ]]
}

@test "a layout that would take hours is refused in one line, with rows and without" {
    for rows in '{"from": "a", "optional": true}' ''; do
        echo '{"files": {"name": "{r}", "for": {"r": "4096"}}, "tensors": [{"for": {"x": "1000000"}, "tensors": ['"$rows"']}]}' >"$OWN"
        run -1 "$WFS" layout check "$OWN" "$MODEL"
        [[ $output =~ ^"wfs: $OWN:1: tensors[0]"(".tensors[0]")?": too many rows, tensors and repetitions of blocks"$ ]]
    done
}

@test "a parameter that the layout refuses gets one line and no tree" {
    own_layout
    run -1 "$WFS" ls -o "layout=$OWN:tp=3" "$MODEL"
    [ "$output" = "wfs: layout own: 3 does not divide 4 heads" ]
    run -2 "$WFS" ls -o layout=nothing "$MODEL"
    [[ $output == *"there is no layout 'nothing'"* ]]
}

@test "ranks of TensorRT-LLM and vLLM join to the model: random shapes, tp and pp" {
    for seed in 1 2 3 4 5 6 7 8; do
        layouts ranks "$WFS" "$BATS_TEST_TMPDIR" "$seed"
    done
}

@test "experts of the ranks of TensorRT-LLM and vLLM join to the model's: random counts, tp and moe-ep" {
    for seed in 1 2 3 4 5 6; do
        layouts experts "$WFS" "$BATS_TEST_TMPDIR" "$seed"
    done
}

@test "ranks and layouts of Meta's .pth, GGUF, FP8 and GPTQ equal those of the same values in safetensors" {
    "$PYTHON" "$HERE/layout_sources.py" "$WFS" "$BATS_TEST_TMPDIR"
}

@test "a model without the tensors of an engine is refused in one line" {
    layouts missing "$WFS" "$BATS_TEST_TMPDIR"
}

@test "TensorRT-LLM: a keymap renames the parameters of a model" {
    "$WFS" cp -r -o shards=trtllm:tp=2 "$MODEL" layouts/trtllm "$OUT"
    mkdir "$BATS_TEST_TMPDIR/other"
    cp "$MODEL/config.json" "$BATS_TEST_TMPDIR/other"
    layouts rename "$MODEL" "$BATS_TEST_TMPDIR/other"
    echo '{"transformer": "net", "layers": "h", "attention": "attn", "qkv": ["q", "k", "v"], "fc": "in"}' >"$OUT.json"
    "$WFS" cp -r -o "shards=trtllm:tp=2,keymap=$OUT.json" "$BATS_TEST_TMPDIR/other" layouts/trtllm "$OUT.2"
    diff -r "$OUT" "$OUT.2"
}

@test "TensorRT-LLM: random dictionaries give the names of its loader, by both rules" {
    # shellcheck disable=SC2046
    "$PYTHON" "$HERE/layout_keys.py" "$WFS" "$BATS_TEST_TMPDIR" $(seq 1 16)
}

@test "ranks handle Falcon's key heads, packed q, k and v, padding, shared experts and names below language_model" {
    for what in falcon phi filled vocabulary transposed shared below; do
        layouts "$what" "$WFS" "$BATS_TEST_TMPDIR"
    done
}

@test "TensorRT-LLM has Phi-3's tables of long factors" {
    layouts long_rope "$WFS" "$BATS_TEST_TMPDIR"
}

@test "vLLM's ranks have transformers' names for GPT-NeoX and StarCoder2, and Falcon's own" {
    for what in neox starcoder falcon_shards; do
        layouts "$what" "$WFS" "$BATS_TEST_TMPDIR"
    done
}

@test "examples/layouts/experts.json lays each expert's matrices one after another" {
    local model=$HERE/../data/gguf/models/mixtral-tiny
    copy_layout "$model" "$HERE/../../examples/layouts/experts.json" experts
    layouts contiguous "$model" "$OUT"
    run -1 "$WFS" ls -o "layout=$HERE/../../examples/layouts/experts.json" "$MODEL"
    [ "$output" = "wfs: layout experts: the model has no experts" ]
}

@test "ranks of a torch checkpoint equal those of the same weights in safetensors" {
    layouts torch "$WFS" "$MODEL" "$BATS_TEST_TMPDIR"
}

@test "ranks of 1.2 billion parameters have the right sizes, from a sparse file" {
    layouts sizes "$WFS" "$BATS_TEST_TMPDIR"
}

@test "the layouts of TensorRT-LLM and vLLM refuse in one line what the engines refuse" {
    run -1 "$WFS" ls -o shards=trtllm:tp=3 "$MODEL"
    [ "$output" = "wfs: layout trtllm: num_attention_heads must be divisible by tp: 4 heads, tp=3" ]
    run -1 "$WFS" ls -o shards=vllm:tp=8 "$MODEL"
    [ "$output" = "wfs: layout vllm: the number of attention heads must be divisible by tp: 4 heads, tp=8" ]
    run -1 "$WFS" ls -o shards=trtllm:pp=9 "$MODEL"
    [ "$output" = "wfs: layout trtllm: pp=9 exceeds the 3 layers" ]
    run -1 "$WFS" ls -o shards=trtllm:dtype=int8 "$MODEL"
    [ "$output" = "wfs: layout trtllm: dtype=int8 is none of float16, bfloat16, float32" ]
    run -1 "$WFS" ls -o shards=trtllm:release=2 "$MODEL"
    [ "$output" = "wfs: layout trtllm: release=2 is neither 1.2 nor 0.17" ]
    printf '{"dense": "o",\n"qkv": 3}' >"$OUT.json"
    run -1 "$WFS" ls -o "shards=trtllm:keymap=$OUT.json" "$MODEL"
    [ "$output" = "wfs: $OUT.json:2: 'qkv' is neither a text nor a list of texts" ]
    sed 's/"keymap": ""/"keymap": [{}]/' "$HERE/../../models/layouts/trtllm.json" >"$OUT.json"
    run -1 "$WFS" ls -o "shards=$OUT.json" "$MODEL"
    [ "$output" = "wfs: layout out: keymap: not the name of a file" ]
}
