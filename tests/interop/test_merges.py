"""What wfs makes of the golden recipes is what mergekit wrote: tensors by the golden set's own comparison, and keys of config.json."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from interop import WFS, check, done, golden_checkpoints, wfs

# Recipes that are refused, with a word of the reason: what mergekit computes depends on the processor.
REFUSED = {"arcee-fusion": "arcee_fusion cannot be computed", "karcher": "karcher in float32 cannot be computed"}
CHANGED = ("dtype", "num_hidden_layers", "vocab_size")


def options_of(words):
    """wfs' options for mergekit's: ["--random-seed", "42"]."""
    names = {"--random-seed": "seed", "--lora-merge-dtype": "lora-merge-dtype"}
    return [word for flag, name in names.items() if flag in words for word in ("-o", f"{name}={words[words.index(flag) + 1]}")]


def compare(recipe, expected, checker, scratch):
    options = options_of(expected["options"])
    with open(scratch / "model.safetensors", "wb") as out:
        made = subprocess.run([WFS, "cat", *options, recipe, "model.safetensors"], stdout=out, stderr=subprocess.PIPE)
    if recipe.stem in REFUSED:
        check(made.returncode == 1 and REFUSED[recipe.stem] in made.stderr.decode(), f"{recipe.stem}: {made.stderr.decode()}")
        return None
    if not check(made.returncode == 0, f"{recipe.stem}: {made.stderr.decode()}"):
        return None
    compared = subprocess.run([sys.executable, checker, recipe.parent, recipe.stem, scratch / "model.safetensors"], capture_output=True, text=True)
    check(compared.returncode == 0, f"{recipe.stem}:\n{compared.stdout}{compared.stderr}")
    config = json.loads(wfs("cat", *options, recipe, "config.json").stdout)
    for key in CHANGED:
        check(config.get(key) == expected["config.json"].get(key), f"{recipe.stem}: {key} is {config.get(key)}")
    (scratch / "config.json").write_text(json.dumps(config))
    differing = wfs("diff", "-q", *options, recipe, scratch)
    check(differing.returncode == 0, f"{recipe.stem}: {differing.stdout.decode()}{differing.stderr.decode()}")
    return compared.stdout.splitlines()[-1]


def main():
    if not os.environ.get("WFS_GOLDEN"):
        print("no golden recipes: WFS_GOLDEN is not set")
        sys.exit(0)
    models, checker = golden_checkpoints("merges")
    expected_folder = pathlib.Path(checker).parent / "expected-merges"
    checker = pathlib.Path(checker).parent / "check-merges"
    folder = next(iter(models.values())).parent
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(expected_folder.glob("*.json")):
            outcome = compare(folder / f"{path.stem}.yaml", json.loads(path.read_text()), checker, pathlib.Path(scratch))
            if outcome is not None:
                print(f"{path.stem}: {outcome}")
    done()


if __name__ == "__main__":
    main()
