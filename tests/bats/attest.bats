# Statements about virtual files: attest, and verify --attestation. Needs neither root nor /dev/fuse.

load lib

setup() {
    need_numpy
    need jq
    LLAMA=$HERE/../data/gguf/models/llama-tiny
    OUT=$BATS_TEST_TMPDIR/out
    mkdir "$OUT"
    cp -r "$LLAMA" "$OUT/llama-tiny"
}

# attested STATUS ARGUMENT...: verify --attestation with the statement of this test.
attested() {
    run --separate-stderr "$WFS" verify --attestation "$OUT/statement" "${@:2}"
    echo "status $status: $output $stderr"
    [ "$status" -eq "$1" ]
}

@test "attest states the digests of virtual files and of all they are made from" {
    "$WFS" attest "$LLAMA" gguf/model-Q4_K_M.gguf model.gguf >"$OUT/statement"
    [ "$(jq -r ._type,.predicateType "$OUT/statement" | xargs)" = "https://in-toto.io/Statement/v1 https://slsa.dev/provenance/v1" ]
    same jq -r '.subject[] | "\(.digest.sha256)  \(.name)"' "$OUT/statement" == "$WFS" sha256 "$LLAMA" gguf/model-Q4_K_M.gguf model.gguf
    diff <(jq -r '.predicate.buildDefinition.resolvedDependencies[] | "\(.digest.sha256)  \(.name)"' "$OUT/statement") \
        <(cd "$LLAMA" && sha256sum config.json model.safetensors tokenizer.model)
    [ "$(jq -c .predicate.runDetails.builder.version "$OUT/statement")" = "{\"wfs\":\"$("$WFS" --version | cut -d' ' -f2)\"}" ]
}

@test "attest states the build of wfs and of the tools, and verify follows them" {
    "$WFS" attest -o llama.cpp=b10470 "$LLAMA" model.gguf >"$OUT/statement"
    jq -e '.predicate.buildDefinition.internalParameters | .references["llama.cpp"] == "b10470" and (.build | test("^[0-9a-f]{16}$"))' "$OUT/statement"
    [ "$("$WFS" --version | cut -d ' ' -f 4)" = "$(jq -r .predicate.buildDefinition.internalParameters.build "$OUT/statement");" ]
    # without the option, the reference of the statement counts: here of a key that only older builds lack
    cp -r "$LLAMA" "$OUT/penalty"
    echo '{"repetition_penalty": 1.5}' >"$OUT/penalty/generation_config.json"
    "$WFS" attest -o llama.cpp=b10470 "$OUT/penalty" model.gguf | jq '.predicate.buildDefinition.externalParameters.options = []' >"$OUT/statement"
    attested 0 "$OUT/penalty"
    attested 1 -o llama.cpp=b11549 "$OUT/penalty"
    sed -i 's/b10470/b99999/' "$OUT/statement"
    attested 2 "$OUT/penalty"
    [[ $stderr == *"the build 'b99999' is unknown; known are b10470-b10472, "* ]]
}

@test "attest gives the same bytes elsewhere, later and for another order, and no absolute path" {
    "$WFS" attest "$LLAMA" gguf/model-Q4_K_M.gguf config.json >"$OUT/statement"
    touch "$OUT/llama-tiny"/*
    (cd "$OUT" && "$WFS" attest llama-tiny config.json ./gguf/model-Q4_K_M.gguf config.json) | cmp - "$OUT/statement"
    run ! grep -qF "$(dirname "$(realpath "$LLAMA")")" "$OUT/statement"
    run ! "$WFS" attest -o name=a "$LLAMA" no/such
    [ "$status" -eq 1 ]
}

@test "verify --attestation makes the statement again, and names what differs" {
    "$WFS" attest -o name=Other,tensor-type=attn_v=q8_0 "$LLAMA" gguf/model-Q4_K_M.gguf config.json >"$OUT/statement"
    attested 0 "$LLAMA"
    [ "$output" = "$OUT/statement: 2 subjects and 3 materials are as stated" ]
    mv "$OUT/llama-tiny" "$OUT/renamed"
    attested 0 "$OUT/renamed"
    attested 1 -o name=Another "$OUT/renamed"
    [[ ${lines[0]} == "subject gguf/model-Q4_K_M.gguf: "*" instead of "* && ${lines[1]} == *": 1 file is not as stated" ]]
    printf ' ' >>"$OUT/renamed/config.json"
    attested 1 "$OUT/renamed"
    [[ ${lines[0]} == "subject config.json: "* && ${lines[1]} == "material config.json: "* && ${#lines[@]} -eq 3 ]]
    rm "$OUT/renamed/config.json"
    attested 1 "$OUT/renamed"
    [[ ${lines[0]} == "subject config.json: missing" && ${lines[1]} == "subject gguf/model-Q4_K_M.gguf: missing" ]]
    run -1 "$WFS" verify --json --attestation "$OUT/statement" "$OUT/renamed"
    jq -e '.identical == false and .differences[0] == {kind: "subject", name: "config.json", stated: .differences[0].stated, sha256: null}' <<<"$output"
}

@test "the files of options are materials, and verify takes them from the user alone" {
    make_input imatrix "$OUT/private.gguf"
    "$WFS" attest -o "imatrix=$OUT/private.gguf" "$LLAMA" gguf/model-IQ3_S.gguf >"$OUT/statement"
    jq -e --arg sum "$(sha256sum <"$OUT/private.gguf" | cut -d' ' -f1)" \
        '.predicate.buildDefinition | .externalParameters.options == ["imatrix=private.gguf"] and
         any(.resolvedDependencies[]; .name == "private.gguf" and .digest.sha256 == $sum)' "$OUT/statement"
    attested 2 "$LLAMA"
    [[ $stderr == *"it was made with -o imatrix=private.gguf; give this option with your own file" ]]
    attested 0 -o "imatrix=$OUT/private.gguf" "$LLAMA"
    jq -c '.predicate.buildDefinition.externalParameters.options = ["follow-links"]' "$OUT/statement" >"$OUT/hostile"
    cp "$OUT/hostile" "$OUT/statement"
    attested 2 "$LLAMA"
    jq -c '.predicate.buildDefinition.externalParameters.options = ["cache=/tmp/x"]' "$OUT/hostile" >"$OUT/statement"
    attested 2 "$LLAMA"
}

@test "merged adapters and their configurations are materials" {
    "$PYTHON" "$HERE/lora.py" "$OUT/lora"
    "$WFS" attest -o "lora=$OUT/lora/sql-lora:0.5" "$OUT/lora/base" model.safetensors >"$OUT/statement"
    [ "$(jq -r '.predicate.buildDefinition.resolvedDependencies[].name' "$OUT/statement" | xargs)" = \
        "adapter_config.json adapter_model.safetensors config.json model.safetensors" ]
    attested 2 "$OUT/lora/base"
    attested 0 -o "lora=$OUT/lora/sql-lora:0.5" "$OUT/lora/base"
    attested 1 -o "lora=$OUT/lora/sql-lora:1" "$OUT/lora/base"
}

@test "verify --attestation refuses what is no statement of wfs" {
    local edit
    "$WFS" attest "$LLAMA" model.gguf >"$OUT/good"
    for edit in '[]' '{}' '._type = 1' '.predicateType = "x"' '.subject = {}' '.subject[0].digest.sha256 = "0"' '.subject[0].name = 1' \
        'del(.predicate.runDetails)' '.predicate.buildDefinition = null' '.subject[0].name = "a\u0000b"' \
        '.predicate.buildDefinition.externalParameters.options = [1]'; do
        jq -c "$edit" "$OUT/good" >"$OUT/statement"
        attested 2 "$LLAMA"
        [[ $stderr == "wfs: $OUT/statement: "* ]]
    done
    printf '{' >"$OUT/statement"
    attested 2 "$LLAMA"
    attested 2 "$LLAMA" "$LLAMA"
    cp "$OUT/good" "$OUT/statement"
    attested 2 "$OUT/none"
}
