"""Random dictionaries of names against a model of TensorRT-LLM's ModelWeightsLoader: layout_keys.py WFS DIRECTORY SEED...

Of each a checkpoint is made with the names that the loader would look for; wfs layout check must find every parameter in its place."""
import json
import pathlib
import random
import subprocess
import sys

import layouts

STANDARD = {"transformer": "model", "vocab_embedding": "embed_tokens", "layers": "layers", "lm_head": "lm_head", "ln_f": "norm",
            "attention": "self_attn", "qkv": ["q_proj", "k_proj", "v_proj"], "dense": "o_proj", "gate": "up_proj", "proj": "down_proj",
            "fc": "gate_proj", "input_layernorm": "input_layernorm", "post_layernorm": "post_attention_layernorm"}
LAYER = {"input_layernorm": [[16]], "post_layernorm": [[16]], "attention.dense": [[16, 16]], "mlp.fc": [[24, 16]], "mlp.gate": [[24, 16]],
         "mlp.proj": [[16, 24]], "attention.qkv": [[16, 16], [8, 16], [8, 16]]}


def multiplied(names, value):
    texts = value if isinstance(value, list) else [value]
    return [(name, texts[i % len(texts)]) for i, name in enumerate(name for name in names for _ in texts)]


def tidy(name):
    return ".".join(section for section in name.split(".") if section)


def by_substrings(name, keys):
    names = [name]
    for key, value in keys.items():
        if f".{key}." in f".{name}.":
            names = [other.replace(key, text) for other, text in multiplied(names, value)]
    return [tidy(other) for other in names]


def by_sections(name, keys):
    names = [""]
    for section in name.split("."):
        names = [f"{other}.{text}" for other, text in multiplied(names, keys.get(section, section))]
    return [tidy(other) for other in names]


def dictionary(choose, rules, layers, pp):
    def word():
        text = "".join(choose.choice("abcdefgh") for _ in range(choose.randint(1, 5)))
        return text + choose.choice(["", "." + text, "_" + text])

    keys = {key: [f"{word()}{i}" for i in range(3)] if key == "qkv" else word() for key in choose.sample(list(STANDARD), choose.randint(0, 9))}
    if choose.random() < 0.3:
        keys["transformer"] = ""
    if choose.random() < 0.3:
        keys["weight"] = choose.choice(["w", "kernel", "weight.x"])
    if rules == "substrings" and choose.random() < 0.5:
        keys["mlp." + choose.choice(["fc", "gate", "proj"])] = "ff." + word()
    if rules == "substrings" and pp == 1 and choose.random() < 0.3:
        keys[f"layers.{choose.randrange(layers)}"] = f"blocks.{choose.randint(10, 20)}"
    shuffled = list(keys.items())
    choose.shuffle(shuffled)
    return dict(shuffled)


def checked(wfs, source, options, layers_of_rank):
    """The sources of every parameter, with the numbers that layers have in the whole model."""
    out = subprocess.run([wfs, "layout", "check", f"trtllm:{options}", source], check=True, capture_output=True, text=True).stdout
    found, stage = {}, -1
    assert "not used:" not in out, out
    for line in out.splitlines():
        stage += line.startswith("rank")
        if " <- " in line:
            sections = line.split()[0].split(".")
            if sections[1] == "layers":
                sections[2] = str(int(sections[2]) + stage * layers_of_rank)
            found[".".join(sections)] = line.split(" <- ")[1].rsplit("  (", 1)[0].split(", ")
    return found


def try_seed(wfs, folder, seed):
    choose = random.Random(seed)
    layers = choose.randint(1, 3)
    pp, rules = choose.choice([1, layers]), choose.choice(["substrings", "sections"])
    keys = dictionary(choose, rules, layers, pp)
    translate = by_substrings if rules == "substrings" else by_sections
    parameters = {"transformer.vocab_embedding": [[40, 16]], "transformer.ln_f": [[16]], "lm_head": [[40, 16]]}
    for i in range(layers):
        parameters |= {f"transformer.layers.{i}.{name}": shapes for name, shapes in LAYER.items()}
    wanted = {name + ".weight": translate(name + ".weight", {**STANDARD, **keys}) for name in parameters}
    stored = {name: shape for parameter, names in wanted.items() for name, shape in zip(names, parameters[parameter[:-7]], strict=True)}
    if len(stored) < sum(map(len, wanted.values())) or "" in stored:
        return  # two parameters are one tensor
    layouts.write_model(folder / "model", stored, {
        **layouts.LLAMA, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": layers, "vocab_size": 40, "tie_word_embeddings": False})
    (folder / "keys.json").write_text(json.dumps(keys))
    found = checked(wfs, folder / "model", f"tp=1,pp={pp},keymap={folder / 'keys.json'},keymap-rules={rules}", layers // pp)
    assert found == wanted, (seed, rules, keys, {name: (found.get(name), names) for name, names in wanted.items() if found.get(name) != names})


if __name__ == "__main__":
    for seed in sys.argv[3:]:
        try_seed(sys.argv[1], pathlib.Path(sys.argv[2]), int(seed))
