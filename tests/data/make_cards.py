#!/usr/bin/env python3
"""Makes tests/data/gguf/cards.json: model cards and configurations, and the general.* keys that gguf-py makes of them.

    python3 tests/data/make_cards.py > tests/data/gguf/cards.json

Needs gguf and PyYAML from PyPI (made with 0.19.0 and 6.0.3). "hex" is type and value as they stand in a GGUF; it is absent where
gguf-py ends with an exception.
"""
import json
import logging
import pathlib
import sys
import tempfile

import gguf

PARAMETERS = 6_738_415_616

# What stands between the fences, one fact each.
CARDS = [
    "license: llama2\nlanguage:\n- en\n- de\npipeline_tag: text-generation\ntags:\n- facebook\n- llama-2\n",
    "license: apache-2.0\nbase_model: mistralai/Mistral-7B-v0.3\nextra_gated_description: yes\n",
    "license: [mit, apache-2.0]\nlicense_name: x\nlicense_link: https://example.org/L\n",
    "license:\n- mit\n",
    "license: no\n", "license: 0\n", "license: ''\n", "license: []\n", "license: ~\n", "license:\n", "license: null\n", "license: 'no'\n",
    "name: A\nmodel_name: B\nauthor: C\nmodel_creator: D\nmodel_type: E\n",
    "name: ~\nmodel_name: B\nmodel_author: C\nmodel_creator: D\nmodel_basename: x\nmodel_type: E\n",
    "model_type: mistral\nmodel_creator: Mistral AI_\nmodel_name: Mistral 7B Instruct v0.2\nquantized_by: TheBloke\nprompt_template: '<s>[INST] {prompt} [/INST]\n\n  '\n",
    "name: ''\nversion: ''\n", "name: no\n", "version: v2\norganization: o\nfinetune: f\nbasename: b\nsize_label: 1B\ndescription: |\n  two\n  lines\n",
    "url: u\ndoi: d\nuuid: i\nrepo_url: r\n", "model_url: u\nmodel_doi: d\nmodel_uuid: i\nmodel_repo_url: r\nmodel_version: 'v'\nmodel_organization: o\nmodel_finetune: f\nmodel_size_label: s\nmodel_description: x\n",
    "tags: one\n", "tags: []\npipeline_tag: p\n", "tags: [a, b]\nlanguages: [x]\nlanguage: y\n", "tags: ~\n", "tags: {a: b}\npipeline_tag: p\n", "tags: 5\npipeline_tag: p\n",
    "tags: [1, 2]\n", "tags: [0x10, 0b11, 017, 1_000, 1:30, -7, +3]\n", "tags: [1.5, .5, 1.0e+3]\n", "tags: [1.5, .inf, -.inf, 1_0.5, 1:30.5]\n", "tags: [yes, no, on, Off, TRUE]\n",
    "tags: [08, 0o7, y, n, 1e5, 1., '1', \"2\", 2024-1-5]\n", "language:\n- no\n- en\n", "language:\n-  no\n", "language: no\n", "language: [no]\n", "language: 'no'\n",
    "tags:\n\t- a\n", "tags: ['']\n", "tags: [!!str 5x, a]\n",
    "base_model: ~\n", "base_model: []\n", "base_model: {name: x}\n", "base_model: 5\n", "base_models: [a/b]\nbase_model: ~\n", "base_model_sources: [a/b-7B-v1.5, c]\n",
    "base_model: meta-llama/Llama-2-7b-hf\n", "base_model: some name\n", "base_model: ''\n", "base_model: org/\n", "base_model: /name\n", "base_model: ./name-v2\n", "base_model: a/b/c\n",
    "base_model: https://huggingface.co/a/b-v3\n", "base_model: http://huggingface.co/a/b-v3\n", "base_model: https://huggingface.co/a/b/\n", "base_model: https://huggingface.co/a\n",
    "base_model: https://huggingface.co/datasets/a/b\n", "base_model: https://github.com/a/b\n", "base_model: ssh://git@x/y\n", "base_model: HTTPS://x/y\n",
    "base_model:\n- {name: N, author: A, version: V, organization: O, description: D, url: U, doi: I, uuid: X, repo_url: R, other: Z}\n- {name: ~, url: ''}\n- {}\n- 5\n- ~\n- a/b\n",
    "datasets: foo/bar-v1\n", "datasets:\n- a/b\n- https://huggingface.co/datasets/c/d\n- https://huggingface.co/c/d\n- {name: N, repo_url: R}\n- ssh://x\n", "dataset: x\n", "dataset_sources: [x]\n", "dataset: ~\ndatasets: [y-v2]\n",
    "a: &x {license: mit, name: M}\n<<: *x\nname: N\n", "a: &x {license: mit}\nb: &y {license: bsd, name: Q}\n<<: [*x, *y]\n", "a: &x [p, q]\ntags: *x\nlanguage: *x\n",
    "<<: {license: mit}\nlicense: ~\n", "base_model:\n- &b {name: N}\n- {<<: *b, url: U}\n",
    "license: a\nlicense: b\n", "'license': mit\n", "\"name\": \"a\\u00e9\\n\"\n", "name: é – ü\n", "name: >-\n  folded\n  text\nauthor: |+\n  kept\n\n", "name: a # comment\n", "name: a#b\n",
    "# only a comment\n", "", "just text\n", "- a\n- b\n", "{license: mit, tags: [x, y]}\n", "license: mit\n...\n", "version: v1.0\nyes: no\n5: 6\n",
    "license: mit\n# - no\nlanguage:\n  - no\n", "name: tab\there\n", "name: \"- no\n  x\"\n",
    # What ends gguf-py.
    "version: 1.0\n", "version: 2024-01-31\n", "name: 7\n", "name: yes\n", "name: [a, b]\n", "name: {a: b}\n", "license: {a: b}\n", "license: [mit, 5]\n", "tags: [2024, x]\n", "language: [en, no]\n",
    "tags: [a, {b: c}]\n", "tags: [~]\n", "tags: [2024-01-31]\n", "tags: [3000000000]\n", "name: 'unclosed\n", "a: b: c\n", "license: mit\n--- second\n", "license: *x\n", "base_model: [{name: 5}]\n", "x: !!python/name:os.system\nlicense: mit\n",
    "name: \x07\n",
]
# Whole files.
READMES = ["", "# Title\n", "---\nlicense: mit\n", "---\r\nlicense: mit\r\n---\r\nx\r\n", "---\rlicense: mit\r---\r", "\ufeff---\nlicense: mit\n---\n", "--- \nlicense: mit\n---\n", "\n---\nlicense: mit\n---\n",
           "---\nlicense: mit\n--- \ntags: [a]\n---\n", "---\nlicense: mit\u2028tags: [a]\n---\n", "---\nlicense: mit\n----\n---\n", "---\n---\nlicense: mit\n---\n", "---"]
CONFIGS = ['{}', '{"_name_or_path": "meta-llama/Llama-2-7b-hf"}', '{"_name_or_path": ""}', '{"_name_or_path": null}', '{"_name_or_path": "/home/me/model"}', '{"_name_or_path": "./out-7B"}', '{"_name_or_path": "a/b/c"}', '{"_name_or_path": 5}',
           '{"_name_or_path": "a model"}', '{"_name_or_path": "org/x-small-v2"}']
GENERATIONS = ['{"bos_token_id": 1, "do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": 20, "max_length": 4096, "repetition_penalty": 1.1}', '{"temperature": null, "top_k": null}', '{"temperature": 1, "top_k": true, "top_p": false}', '{}',
               '{"sequence": "a;b", "min_p": 0.1, "xtc_probability": 0.2, "xtc_threshold": 0.3, "penalty_last_n": 64, "penalty_repeat": 1.1, "mirostat": 2, "mirostat_tau": 5, "mirostat_eta": 0.1}', '{"top_k": 2147483647, "penalty_last_n": -1}',
               '{"sequence": ""}', '{"temperature": 1e-50}', 'not json', '{"top_k": 50.0}', '{"top_k": 2147483648}', '{"top_p": "0.9"}', '{"top_p": 1e39}', '{"sequence": 5}', '[]']
NAMES = ["Llama-2-7b-chat-hf", "model", "gpt2", "x y", "Ünï-7B"]


def keys(case):
    """What convert_hf_to_gguf.py's prepare_metadata() does."""
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top) / case["name"]
        folder.mkdir()
        for member, file in (("readme", "README.md"), ("config", "config.json"), ("generation", "generation_config.json")):
            if member in case:
                (folder / file).write_bytes(case[member].encode())
        metadata = gguf.Metadata.load(None, folder, None, PARAMETERS)
        if metadata.size_label is None:
            metadata.size_label = gguf.size_label(PARAMETERS, PARAMETERS, 0, 0)
        writer = gguf.GGUFWriter(None, "x")
        metadata.set_gguf_meta_model(writer)
        packed = [[k, writer._pack_val(v.value, v.type, add_vtype=True).hex()] for k, v in writer.kv_data[0].items()]
        return packed[1:]  # without general.architecture


def main():
    logging.disable(logging.CRITICAL)
    cases = [{"name": "m", "readme": f"---\n{card}---\n"} for card in CARDS] + [{"name": "m", "readme": readme} for readme in READMES]
    cases += [{"name": "dir-13b-v1", "config": config} for config in CONFIGS] + [{"name": "m", "generation": text} for text in GENERATIONS]
    cases += [{"name": name} for name in NAMES]
    cases += [{"name": "Llama-2-7b-chat-hf", "readme": f"---\n{CARDS[0]}---\n", "config": CONFIGS[1], "generation": GENERATIONS[0]}]
    for case in cases:
        try:
            case["hex"] = keys(case)
        except Exception as error:
            print(repr(case), "->", repr(error)[:100], file=sys.stderr)
    print("[" + ",\n".join(json.dumps(case) for case in cases) + "]")


main()
