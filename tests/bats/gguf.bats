# GGUF files as sources: their tensors and keys, themselves, in parts and put together, with other keys, and cut.

load lib

setup_file() {
    load lib
    make_input gguf "$BATS_FILE_TMPDIR/model.gguf"
    mkdir "$BATS_FILE_TMPDIR/q"
    [ ! -e "$BATS_FILE_TMPDIR/model.gguf" ] || mv "$BATS_FILE_TMPDIR/model.gguf" "$BATS_FILE_TMPDIR/q/"
}

setup() {
    need_fuse
    need_numpy
    SOURCE=$BATS_FILE_TMPDIR/q/model.gguf
    MNT=$BATS_TEST_TMPDIR/mnt
}

@test "a GGUF shows its tensors as blocks and as numbers, and model.gguf is the file" {
    need jq
    serve "$SOURCE" "$MNT"
    [ "$(ls "$MNT/tensors" | sort | tr '\n' ' ')" = "blk.0.ffn_gate_exps.weight blk.0.ffn_up.bias blk.0.ffn_up.weight token_embd.weight " ]
    cmp "$MNT/model.gguf" "$SOURCE"
    cmp "$MNT/tensors/token_embd.weight/f32" "$BATS_FILE_TMPDIR/model.gguf.f32"
    [ "$(stat -c %s "$MNT/tensors/token_embd.weight/raw")" -eq 2176 ]
    [ "$(stat -c %s "$MNT/tensors/blk.0.ffn_gate_exps.weight/raw")" -eq 112 ]
    [ "$(jq -c .shape "$MNT/tensors/token_embd.weight/metadata.json")" = "[32,64]" ]
    unmount "$MNT"
    server_is_quiet
}

@test "metadata.json gives keys with types and long arrays with lengths; info --all prints them in full" {
    need jq
    [ "$("$WFS" cat "$SOURCE" metadata.json | jq -c .metadata)" = '{"general.architecture":"llama","general.file_type":7,"llama.context_length":4096,"llama.rope.freq_base":0.1,"flag":true,"numbers":[-1,0,7],"tokenizer.ggml.tokens":{"type":"string","length":1000}}' ]
    run "$WFS" info "$SOURCE"
    [ "$status" -eq 0 ]
    [[ $output == *"family      llama"* ]]
    [[ $output == *"context 4096"* ]]
    [[ $output == *"file type Q8_0"* ]]
    [[ $output != *token999* ]]
    run "$WFS" info --all "$SOURCE"
    [ "$status" -eq 0 ]
    [[ $output == *"llama.context_length = 4096"* ]]
    [[ $output == *'"token999"]'* ]]
    "$WFS" info --all "$HERE/../fuzz/corpus/gguf/nul-texts" | grep -xF 's = a\x00b'
}

@test "names=hf and names=gguf show tensors/ as in model.safetensors or model.gguf, reordered blocks included" {
    need jq
    local llama=$HERE/../data/gguf/models/llama-tiny file=$BATS_TEST_TMPDIR/model.gguf name
    "$WFS" cp "$llama" gguf/model-F32.gguf "$file"
    [ "$("$WFS" ls -o names=hf "$file" tensors | sort)" = "$("$WFS" ls "$llama" tensors | sort)" ]
    [ "$("$WFS" ls -o names=gguf "$llama" tensors)" = "$("$WFS" ls "$file" tensors)" ]
    [ "$("$WFS" ls -o names=hf "$llama" tensors | sort)" = "$("$WFS" ls "$llama" tensors | sort)" ]
    for name in $("$WFS" ls "$llama" tensors); do
        same "$WFS" cat -o names=hf "$file" "tensors/$name/f32.npy" == "$WFS" cat "$llama" "tensors/$name/f32.npy"
    done
    for name in $("$WFS" ls "$file" tensors); do
        same "$WFS" cat -o names=gguf "$llama" "tensors/$name/f32.npy" == "$WFS" cat "$file" "tensors/$name/f32.npy"
    done
    "$WFS" cp "$llama" gguf/converter/model-q8_0.gguf "$file"
    name=model.layers.0.self_attn.q_proj.weight
    [ "$("$WFS" cat -o names=hf "$file" "tensors/$name/metadata.json" | jq -r .dtype)" = Q8_0 ]
    same "$WFS" cat -o names=hf "$file" "tensors/$name/raw" == "$WFS" cat "$llama" "tensors/$name/q8_0"
    name=model.layers.0.mlp.up_proj.weight
    [ "$("$WFS" cat -o names=hf "$file" "tensors/$name/metadata.json" | jq -c '[.source, .offset]')" = \
        "$("$WFS" cat "$file" tensors/blk.0.ffn_up.weight/metadata.json | jq -c '[.source, .offset]')" ]
    run -2 "$WFS" ls -o names=other "$file"
    [[ $output == *"option names: 'other' is neither hf nor gguf"* ]]
}

@test "a quantized GGUF is quantized again only with -o requantize" {
    "$WFS" info "$SOURCE" | grep -F 'gguf/: the source is already quantized; -o requantize quantizes it again'
    fails 1 "gguf/model-Q4_0.gguf is left out: the source is already quantized" "$WFS" cat "$SOURCE" gguf/model-Q4_0.gguf
    "$WFS" cat -o requantize -o pure "$SOURCE" gguf/model-Q4_0.gguf | head -c 4 | grep -q GGUF
}

@test "a missing file of a GGUF: the message names the equivalent, or says why that is missing too" {
    local llama=$BATS_TEST_TMPDIR/llama.gguf why
    "$WFS" cp "$HERE/../data/gguf/models/llama-tiny" model.gguf "$llama"
    for file in config.json tokenizer.json; do
        fails 1 "there is no '$file': it is made from the GGUF's keys, as hf/$file" "$WFS" cat "$llama" $file
    done
    fails 1 "there is no 'hf/confg.json'; did you mean 'hf/config.json'?" "$WFS" cat "$llama" hf/confg.json
    why="hf/config.json is left out: the key llama.block_count is missing"
    fails 1 "$why" "$WFS" cat "$SOURCE" hf/config.json
    fails 1 "there is no 'config.json': $why" "$WFS" cat "$SOURCE" config.json
    for file in hf/tokenizer.json tokenizer.json hf/tokenizer_config.json; do
        fails 1 "there is no '$file': the GGUF has no tokenizer" "$WFS" cat "$SOURCE" $file
    done
    fails 1 "hf/generation_config.json is left out: it is made only for text generation models of a known family" "$WFS" cat "$SOURCE" hf/generation_config.json
}

@test "hf/ of a GGUF converts back to the same GGUF: single files, shards, experts, Mistral" {
    need jq
    local name size out=$BATS_TEST_TMPDIR
    for name in llama-tiny mixtral-tiny gemma-tiny; do
        for size in 5GB 24KB; do
            rm -rf "$out/hf" "$out/checkpoint"
            "$WFS" cp -r -o "shard-size=$size" "$HERE/../data/gguf/models/$name" hf "$out/checkpoint"
            "$WFS" cp "$out/checkpoint" model.gguf "$out/checkpoint.gguf"
            "$WFS" cp -r "$out/checkpoint.gguf" hf "$out/hf"
            "$WFS" cp -o "name=checkpoint" "$out/hf" model.gguf "$out/again.gguf"
            cmp "$out/checkpoint.gguf" "$out/again.gguf"
            [ "$name $size" != "mixtral-tiny 24KB" ] || [ -e "$out/hf/model.safetensors.index.json" ]
            [ "$size" != 5GB ] || [ -e "$out/hf/model.safetensors" ]
        done
    done
    rm -rf "$out/hf" "$out/checkpoint" "$out/again.gguf"
    cp -r "$HERE/../data/gguf/models/llama-tiny" "$out/checkpoint"
    jq '.model_type = "mistral" | .architectures = ["MistralForCausalLM"] | del(.head_dim)' \
        "$HERE/../data/gguf/models/llama-tiny/config.json" >"$out/config.json"
    mv "$out/config.json" "$out/checkpoint/config.json"
    "$WFS" cp "$out/checkpoint" model.gguf "$out/checkpoint.gguf"
    "$WFS" cp -r "$out/checkpoint.gguf" hf "$out/hf"
    "$WFS" cp "$out/hf" model.gguf "$out/again.gguf"
    cmp "$out/checkpoint.gguf" "$out/again.gguf"
    "$WFS" cp "$out/checkpoint" gguf/model-Q4_K_M.gguf "$out/quantized.gguf"
    [ "$("$WFS" ls "$out/quantized.gguf" hf | grep -c safetensors)" -eq 1 ]
}

@test "hf/ of a GGUF has named chat templates, and notes an unknown tokenizer" {
    local file=$BATS_TEST_TMPDIR/model.gguf
    "$WFS" cp -o "override-kv=tokenizer.chat_template.tool_use=str:{{ tools }}" \
        -o "override-kv=tokenizer.chat_template.a/b=str:no" "$HERE/../data/gguf/models/llama-tiny" model.gguf "$file"
    [ "$("$WFS" cat "$file" hf/additional_chat_templates/tool_use.jinja)" = "{{ tools }}" ]
    [ "$("$WFS" ls "$file" hf/additional_chat_templates)" = tool_use.jinja ]
    "$WFS" cp -o "override-kv=tokenizer.ggml.model=str:rwkv" "$HERE/../data/gguf/models/llama-tiny" model.gguf "$file.2"
    "$WFS" info "$file.2" | tr -s ' \n' ' ' | grep -F "wfs makes no tokenizer files from a vocabulary of type 'rwkv'"
    [[ $("$WFS" ls "$file.2" hf) != *"tokenizer.json"* ]]
}

@test "hf/ of a GGUF with missing, mistyped or absurd keys: one line names the key, and other files work" {
    local seeds=$HERE/../fuzz/corpus/gguf file=$BATS_TEST_TMPDIR/model.gguf reason
    while IFS=: read -r seed reason; do
        cp "$seeds/hf-llama-$seed" "$file"
        [ "$("$WFS" info "$file" | tr -s ' \n' ' ' | grep -oF "GGUF names and shapes: $reason" | wc -l)" -eq 1 ]
        [[ $("$WFS" ls "$file") == *model.safetensors*tensors* ]]
        [ "$("$WFS" sha256 "$file" model.gguf | cut -c-64)" = "$(sha256sum "$file" | cut -c-64)" ]
    done <<'END'
no-keys:the key llama.block_count is missing
layers-2-31:the key llama.block_count is not a number up to 16777216
heads-text:the key llama.attention.head_count is not a number up to 16777216
heads-0:tensor 'blk.0.attn_q.weight': '(head half pair) ... -> (head pair half) ...' needs the size of head
END
}

# The type of most matrices of model.safetensors, by its header.
written_type() {
    "$WFS" cat "$@" model.safetensors | strings -n 100 | head -1 | grep -o '"dtype":"[A-Z0-9]*","shape":.[0-9]*,' | cut -d'"' -f4 |
        sort | uniq -c | sort -n | tail -1 | sed 's/.* //'
}

@test "metadata.json says which dtype model.safetensors has, and why" {
    need jq strings
    local llama=$HERE/../data/gguf/models/llama-tiny file=$BATS_TEST_TMPDIR/model.gguf
    [ "$("$WFS" cat "$llama" metadata.json | jq -c .safetensors)" = '{"dtype":null,"reason":"each tensor has its stored type"}' ]
    "$WFS" cp "$llama" gguf/converter/model-q8_0.gguf "$file"
    [ "$("$WFS" cat "$file" metadata.json | jq -r .safetensors.dtype)" = BF16 ]
    [ "$(written_type "$file")" = BF16 ]
    "$WFS" cat "$file" metadata.json | jq -r .safetensors.reason | grep -q 'rounded to BF16; -o dtype=f32 shows them exactly'
    [ "$("$WFS" cat -o dtype=f32 "$file" metadata.json | jq -c .safetensors)" = '{"dtype":"F32","reason":"-o dtype= asks for it"}' ]
    [ "$(written_type -o dtype=f32 "$file")" = F32 ]
    "$WFS" cp "$llama" model.gguf "$file"
    [ "$("$WFS" cat "$file" metadata.json | jq -r .safetensors.dtype)" = "$(written_type "$file")" ]
}

@test "gguf/ is left out, with the reason, for architectures that llama-quantize does not know" {
    local file=$BATS_TEST_TMPDIR/model.gguf
    "$WFS" cp -o override-kv=general.architecture=str:other "$HERE/../data/gguf/models/llama-tiny" model.gguf "$file"
    run -1 "$WFS" cat "$file" gguf/model-Q4_0.gguf
    [[ $output == *"gguf/model-Q4_0.gguf is left out: nothing is quantized: llama-quantize of llama.cpp b"*" does not know the architecture 'other'" ]]
    [ -z "$("$WFS" ls "$file" gguf)" ]
    "$WFS" cat "$file" model.gguf | cmp - "$file"
    run -1 "$WFS" cat -o override-kv=general.architecture=str:another,requantize "$SOURCE" gguf/model-Q4_0.gguf
    [[ $output == *"gguf/model-Q4_0.gguf is left out: nothing is quantized: llama-quantize of llama.cpp b"*" does not know the architecture 'another'" ]]

    "$WFS" cp -o override-kv=general.architecture=str:glm5-next "$HERE/../data/gguf/models/llama-tiny" model.gguf "$file"
    run -1 "$WFS" cat -o llama.cpp=b11269 "$file" gguf/model-Q4_0.gguf
    [[ $output == *"llama-quantize of llama.cpp b11269 does not know the architecture 'glm5-next'" ]]
    "$WFS" cat "$file" gguf/model-Q4_0.gguf >/dev/null
}

@test "blocks in the other byte order are shown raw, and one line says why nothing is made of them" {
    local file=$HERE/../fuzz/corpus/gguf/v3-big-endian-blocks
    run -0 "$WFS" info "$file"
    [[ $output == *"family      llama, 1 layers"* ]]
    [[ $output == *"tensor 'output.weight': byte-swapped Q8_0 blocks cannot be written"* ]]
    same "$WFS" cat "$file" tensors/output.weight/raw == eval 'tail -c 64 "$file" | head -c 34'
    same "$WFS" cat "$file" model.gguf == cat "$file"
    run -1 "$WFS" cat -o requantize "$file" gguf/model-Q4_0.gguf
    [[ $output == *"byte-swapped Q8_0 blocks cannot be written" ]]
    run -1 "$WFS" cat -o override-kv=a=int:1 "$file" model.gguf
    [[ $output == *"byte-swapped Q8_0 blocks cannot be written" ]]
}

@test "an importance matrix: files that need one say so, its keys are written, other files are refused" {
    local matrix=$HERE/../data/gguf/imatrix.gguf text=$BATS_TEST_TMPDIR/text
    "$WFS" info --all -o requantize "$SOURCE" | grep -F 'need an importance matrix: -o imatrix=FILE'
    "$WFS" info --all -o requantize,tensor-type=.*=f16,imatrix="$matrix" "$SOURCE" >"$BATS_TEST_TMPDIR/page"
    run ! grep -F 'need an importance matrix' "$BATS_TEST_TMPDIR/page"
    "$WFS" cat -o requantize,imatrix="$matrix" "$SOURCE" gguf/model-Q8_0.gguf | grep -a -F quantize.imatrix.entries_count
    "$WFS" info -o requantize,imatrix="$matrix" --all "$SOURCE" | grep -F 'has no counts for 1 matrices or experts'
    run ! "$WFS" cat -o requantize,imatrix="$matrix",include-weights=none "$SOURCE" gguf/model-IQ2_M.gguf
    "$WFS" info -o requantize,imatrix="$matrix" --all "$SOURCE" | grep -F 'has no data for any quantized tensor'
    run -1 "$WFS" cat -o imatrix="$matrix" "$HERE/../data/gguf/models/llama-tiny" gguf/model-Q4_K_M.gguf
    [[ $output == *"gguf/model-Q4_K_M.gguf is left out: $matrix has 4 values for tensor"* ]]
    run -1 "$WFS" cat -o split=2,override-kv=general.alignment=str:x "$SOURCE" gguf/split/model-00001-of-00002.gguf
    [[ $output == *"gguf/split/model-00001-of-00002.gguf is left out: general.alignment is string, not u32" ]]
    run ! "$WFS" cat -o imatrix="$matrix",include-weights=a,exclude-weights=b "$SOURCE" metadata.json
    [[ $output == *"option exclude-weights: cannot be combined with include-weights"* ]]
    echo "this is not an importance matrix" >"$text"
    run -1 "$WFS" cat -o imatrix="$text" "$SOURCE" metadata.json
    [[ $output == *"not an importance matrix"* ]]
    run -2 "$WFS" diff -o imatrix="$text" "$SOURCE" "$SOURCE"
}

@test "prune-layers removes layers from quantized files and corrects their count" {
    "$WFS" info -o requantize,prune-layers=1,7,imatrix="$HERE/../data/gguf/imatrix.gguf" "$SOURCE" | grep -F 'prune-layers: each layer has'
    "$WFS" cat -o requantize,prune-layers=0 "$SOURCE" gguf/model-Q8_0.gguf >"$BATS_TEST_TMPDIR/pruned.gguf"
    run "$WFS" ls "$BATS_TEST_TMPDIR/pruned.gguf" tensors
    [[ $output != *blk.* ]]
    run -2 "$WFS" ls -o prune-layers=one "$SOURCE"
    [[ $output == *"option prune-layers: 'one' is not a list of layer numbers separated by commas"* ]]
}

@test "info --quantization prints a row or the reason for each type, and recommends one" {
    local matrix=$HERE/../data/gguf/imatrix.gguf
    "$WFS" info --quantization -o requantize "$SOURCE" >"$BATS_TEST_TMPDIR/page"
    grep -E '^[A-Z0-9_]+ +[0-9.]+ .* \*( <- recommended)?$' "$BATS_TEST_TMPDIR/page"
    grep -F '* no file as small has less error: take the largest of these that fits' "$BATS_TEST_TMPDIR/page"
    run ! grep -F 'by the importance' "$BATS_TEST_TMPDIR/page"
    "$WFS" info --quantization -o requantize,imatrix="$matrix",include-weights=attn_v "$SOURCE" | grep -F 'by the importance of its column'
}

@test "a GGUF can be split, and splits joined" {
    mkdir "$BATS_TEST_TMPDIR/parts"
    serve -o split=3 "$SOURCE" "$MNT"
    cp "$MNT"/gguf/split/model-0000?-of-00002.gguf "$BATS_TEST_TMPDIR/parts"
    unmount "$MNT"
    serve "$BATS_TEST_TMPDIR/parts" "$MNT"
    cmp "$MNT/tensors/token_embd.weight/f32" "$BATS_FILE_TMPDIR/model.gguf.f32"
    cp "$MNT/model.gguf" "$BATS_TEST_TMPDIR/merged.gguf"
    unmount "$MNT"
    for part in 1 2; do
        "$WFS" cat -o split=3 "$BATS_TEST_TMPDIR/merged.gguf" "gguf/split/model-0000$part-of-00002.gguf" |
            cmp - "$BATS_TEST_TMPDIR/parts/model-0000$part-of-00002.gguf"
    done
    rm "$BATS_TEST_TMPDIR/parts/model-00002-of-00002.gguf"
    run -1 "$WFS" ls "$BATS_TEST_TMPDIR/parts"
    [ "$output" = "wfs: model-00002-of-00002.gguf is missing: split 2 of 2" ]
}

@test "keep-split keeps the source's splits and its order of tensors" {
    mkdir "$BATS_TEST_TMPDIR/parts" "$BATS_TEST_TMPDIR/kept"
    "$WFS" cp -o split=1 "$SOURCE" gguf/split/model-00001-of-00004.gguf "$BATS_TEST_TMPDIR/parts"
    for i in 2 3 4; do "$WFS" cp -o split=1 "$SOURCE" "gguf/split/model-0000$i-of-00004.gguf" "$BATS_TEST_TMPDIR/parts"; done
    for i in 1 2 3 4; do
        "$WFS" cp -o keep-split,requantize "$BATS_TEST_TMPDIR/parts" "gguf/split/model-Q5_0-0000$i-of-00004.gguf" "$BATS_TEST_TMPDIR/kept"
    done
    "$WFS" cp -o requantize "$SOURCE" gguf/model-Q5_0.gguf "$BATS_TEST_TMPDIR"
    for name in token_embd.weight blk.0.ffn_up.weight blk.0.ffn_gate_exps.weight; do
        same "$WFS" cat "$BATS_TEST_TMPDIR/kept" "tensors/$name/raw" == "$WFS" cat "$BATS_TEST_TMPDIR/model-Q5_0.gguf" "tensors/$name/raw"
    done
    [ "$("$WFS" ls "$BATS_TEST_TMPDIR/kept" tensors | wc -l)" -eq 4 ]
    "$WFS" info -o keep-split "$SOURCE" | grep -F 'keep-split: the source is not a split GGUF'
    mkdir "$BATS_TEST_TMPDIR/later"
    make_input parts "$BATS_TEST_TMPDIR/later"
    [ "$("$WFS" ls -o keep-split "$BATS_TEST_TMPDIR/later" gguf/split | grep -c 'model-Q8_0-0000[123]-of-00003.gguf')" -eq 3 ]
    "$WFS" cp -o keep-split "$BATS_TEST_TMPDIR/later" 'gguf/split/model-Q8_0-*' "$BATS_TEST_TMPDIR"
    [ "$("$WFS" ls "$BATS_TEST_TMPDIR/model-Q8_0-00001-of-00003.gguf" tensors | xargs)" = "blk.1.ffn_up.weight blk.2.ffn_up.weight" ]
}

@test "overridden keys move to the end; a chat template keeps its place" {
    need jq
    echo '{{ x }}' >"$BATS_TEST_TMPDIR/template"
    "$WFS" cat -o override-kv=llama.context_length=int:8192 -o override-kv=new=str:a -o "chat-template=$BATS_TEST_TMPDIR/template" \
        "$SOURCE" model.gguf >"$BATS_TEST_TMPDIR/edited.gguf"
    [ "$("$WFS" cat "$BATS_TEST_TMPDIR/edited.gguf" metadata.json | jq -c '.metadata | to_entries[-3:] | map([.key, .value])')" = \
        '[["tokenizer.chat_template","{{ x }}\n"],["llama.context_length",8192],["new","a"]]' ]
    for tensor in token_embd.weight blk.0.ffn_gate_exps.weight; do
        same "$WFS" cat "$SOURCE" "tensors/$tensor/raw" == "$WFS" cat "$BATS_TEST_TMPDIR/edited.gguf" "tensors/$tensor/raw"
    done
    for alignment in 0 3; do
        fails 1 "model.gguf is left out: general.alignment is $alignment, not a power of two" \
            "$WFS" cat -o override-kv=general.alignment=int:$alignment "$HERE/../data/gguf/models/llama-tiny" model.gguf
    done
    run -2 "$WFS" ls -o override-kv=a=u32:1 "$SOURCE"
    [[ $output == *"'a=u32:1' is not KEY=TYPE:VALUE"* ]]
}

@test "a GGUF truncated while mounted: reads fail, and the server survives" {
    cp "$SOURCE" "$BATS_TEST_TMPDIR/cut.gguf"
    serve "$BATS_TEST_TMPDIR/cut.gguf" "$MNT"
    truncate -s 9000 "$BATS_TEST_TMPDIR/cut.gguf"
    for file in model.gguf model.safetensors tensors/blk.0.ffn_up.weight/f32; do
        await unreadable "$MNT/$file"
    done
    ls -lR "$MNT" >/dev/null
    unmount "$MNT"
    grep "cut.gguf: changed since it was mounted" "$SERVER_LOG"
}

# transformers 5.24 renames ".mlp." of all layers of Kimi Linear, also of those without experts.
@test "layers of Kimi Linear without experts have either name" {
    local name
    for name in mlp block_sparse_moe; do
        "$PYTHON" - "$BATS_TEST_TMPDIR/$name/kimi" "$name" <<'PY'
import json, os, struct, sys
path, name = sys.argv[1:]
os.makedirs(path)
config = {"architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear", "num_hidden_layers": 1, "vocab_size": 2, "hidden_size": 4,
          "intermediate_size": 4, "moe_intermediate_size": 4, "num_attention_heads": 2, "num_key_value_heads": 2, "num_experts": 2,
          "num_experts_per_token": 1, "num_shared_experts": 1, "routed_scaling_factor": 1.0, "first_k_dense_replace": 1, "max_position_embeddings": 8, "rms_norm_eps": 1e-6,
          "kv_lora_rank": 4, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "v_head_dim": 4,
          "linear_attn_config": {"full_attn_layers": [], "head_dim": 4, "short_conv_kernel_size": 4}}
json.dump(config, open(path + "/config.json", "w"))
json.dump({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "pre_tokenizer": {"type": "ByteLevel"}}, open(path + "/tokenizer.json", "w"))
header = {f"model.layers.0.{name}.{part}_proj.weight": {"dtype": "F32", "shape": [4, 4], "data_offsets": [64 * i, 64 * i + 64]}
          for i, part in enumerate(("down", "gate", "up"))}
header = json.dumps(header).encode()
open(path + "/model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + struct.pack("<48f", *range(48)))
PY
        "$WFS" cat "$BATS_TEST_TMPDIR/$name/kimi" model.gguf >"$BATS_TEST_TMPDIR/$name.gguf"
    done
    "$WFS" cat "$BATS_TEST_TMPDIR/mlp.gguf" metadata.json | jq -r '.tensors[].name' | grep -qx 'blk.0.ffn_down.weight'
    cmp "$BATS_TEST_TMPDIR/mlp.gguf" "$BATS_TEST_TMPDIR/block_sparse_moe.gguf"
}

@test "a model of an unknown class is told the known class that it fits" {
    local model="$BATS_TEST_TMPDIR/llama-tiny" hint="its tensors and keys are those of LlamaForCausalLM or MistralForCausalLM: -o architecture=LlamaForCausalLM"
    cp -r "$HERE/../data/gguf/models/llama-tiny" "$model"
    sed -i 's/LlamaForCausalLM/NobodyForCausalLM/' "$model/config.json"
    "$WFS" info --json "$model" | jq -r '.notes[]' | grep -qxF "model.gguf: the architecture NobodyForCausalLM is unknown, so it is a plain container, which llama.cpp cannot run; $hint"
    "$WFS" info "$model" | tr -s ' \n' ' ' | grep -qF "$hint"
    sed -i 's/"architectures"/"former_architectures"/' "$model/config.json"
    run -0 "$WFS" info --json "$model" # a key that Llama does not have
    [[ $output != *"tensors and keys"* ]]
    sed -i 's/"former_architectures"/"_architectures"/' "$model/config.json"
    "$WFS" info --json "$model" | jq -r '.notes[]' | grep -qxF "model.gguf: config.json names no architecture, so it is a plain container, which llama.cpp cannot run; $hint"
}

@test "architecture treats a model as one of a class that wfs knows" {
    local model="$BATS_TEST_TMPDIR/llama-tiny"
    cp -r "$HERE/../data/gguf/models/llama-tiny" "$model"
    sed -i 's/LlamaForCausalLM/NobodyForCausalLM/' "$model/config.json"
    "$WFS" cat "$HERE/../data/gguf/models/llama-tiny" model.gguf >"$BATS_TEST_TMPDIR/expected.gguf"
    "$WFS" cat -o architecture=LlamaForCausalLM "$model" model.gguf | cmp - "$BATS_TEST_TMPDIR/expected.gguf"
    "$WFS" info -o architecture=LlamaForCausalLM "$model" |
        grep -F "config.json names NobodyForCausalLM; -o architecture treats the model as a LlamaForCausalLM"
    tr -d '\n' <"$HERE/../data/gguf/models/llama-tiny/config.json" | sed 's/"architectures": *\[[^]]*\],//' >"$model/config.json"
    run ! grep architectures "$model/config.json"
    "$WFS" cat -o architecture=LlamaForCausalLM "$model" model.gguf | cmp - "$BATS_TEST_TMPDIR/expected.gguf"
    fails 1 "option architecture: NobodyForCausalLM is not a class that wfs knows" "$WFS" ls -o architecture=NobodyForCausalLM "$model"
}
