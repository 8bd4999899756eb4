# Whisper models as files of whisper.cpp: from a Hugging Face directory, OpenAI's .pt, and such a file.

load lib

setup_file() {
    load lib
    "$PYTHON" "$HERE/whisper.py" "$BATS_FILE_TMPDIR"
}

setup() {
    need_numpy
    cd "$BATS_FILE_TMPDIR" || return
}

@test "whisper.cpp: a Hugging Face directory and OpenAI's file of the same model" {
    [ "$("$WFS" ls hf ggml | tr '\n' ' ')" = "ggml-model-q8_0.bin ggml-model-q5_1.bin ggml-model-q5_0.bin ggml-model-q4_1.bin ggml-model-q4_0.bin " ]
    "$WFS" cat hf ggml-model.bin >f16.bin
    "$WFS" cat hf ggml-model-f32.bin >f32.bin
    cmp f16.bin expected.bin
    cmp f32.bin expected-f32.bin
    "$WFS" cat -o whisper=checkout openai.pt ggml-model.bin | cmp - expected-openai.bin
    "$WFS" info hf | grep -q "^files .*ggml-model.bin [0-9.]* kB, ggml-model-f32.bin"
    diff <("$WFS" cat -o whisper=checkout openai.pt gpt2.tiktoken) checkout/whisper/assets/gpt2.tiktoken
}

@test "whisper.cpp: its file as a source is shown as it is, and quantized" {
    cp expected.bin source.bin
    "$WFS" cat source.bin ggml-model.bin | cmp - expected.bin
    same "$WFS" cat source.bin ggml/ggml-model-q5_1.bin == "$WFS" cat hf ggml/ggml-model-q5_1.bin
    run ! "$WFS" ls source.bin ggml-model-f32.bin
    "$WFS" cat hf ggml/ggml-model-q4_0.bin >q4_0.bin
    [ "$("$WFS" ls q4_0.bin ggml)" = ggml-model-q4_0.bin ]
    "$WFS" cat q4_0.bin ggml/ggml-model-q4_0.bin | cmp - q4_0.bin
}

@test "whisper.cpp: what is missing is named" {
    fails 1 "its tokens are in gpt2.tiktoken, which is missing: -o whisper=DIR names the directory" "$WFS" cat openai.pt ggml-model.bin
    fails 1 "option whisper: hf/config.json: " "$WFS" ls -o whisper=hf/config.json openai.pt
    mkdir -p empty
    fails 1 "option whisper: empty: has none of multilingual.tiktoken, gpt2.tiktoken and vocab.json" "$WFS" ls -o whisper=empty openai.pt
    fails 1 "only Whisper models become files of whisper.cpp" "$WFS" cat "$HERE/../data/gguf/models/llama-tiny" ggml-model.bin
    mkdir -p lacking
    cp hf/config.json hf/model.safetensors lacking/
    fails 1 "vocab.json is missing" "$WFS" cat lacking ggml-model.bin
    cp hf/vocab.json lacking/
    "$WFS" cat lacking ggml-model.bin | cmp - expected.bin
    "$WFS" info lacking | grep -q "ggml-model.bin, ggml/: added_tokens.json is missing"
}

@test "ctranslate2/ without a tokenizer says so" {
    "$WFS" ls -R -l "$HERE/../data/ctranslate2/whisper-int8"
    fails 1 "tokenizer.json is missing, which the vocabulary is made from" "$WFS" cat "$HERE/../data/ctranslate2/whisper-int8" ctranslate2/float16/vocabulary.json
}
