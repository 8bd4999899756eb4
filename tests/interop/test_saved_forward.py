"""Models whose config.json transformers 5 wrote: model.gguf is that of the same model as transformers 4 saves it, and llama.cpp computes the logits of
transformers with it. The families are those whose keys transformers 5 moves: into rope_parameters, for each kind of layer where there are several."""
import json
import pathlib
import tempfile

import interop

try:
    import llama_cpp
    import tiny_models
    import torch
except ImportError as error:
    interop.skip(str(error))

NAMES = ("GPTNeoXForCausalLM", "LlamaForCausalLM", "Qwen3ForCausalLM", "Gemma3ForCausalLM", "Glm4ForCausalLM", "StableLmForCausalLM", "MixtralForCausalLM")
TOKENS = 14
TOLERANCE = 2e-3  # of the largest logit; llama.cpp computes with other kernels


def move(config):
    """The configuration as save_pretrained() of transformers 5.24 writes it."""
    config = dict(config)
    scaling = config.pop("rope_scaling", None) or {"rope_type": "default"}
    share = config.pop("rotary_pct", config.pop("partial_rotary_factor", None))
    theta = config.pop("rope_theta", config.pop("rotary_emb_base", None))
    whole = {**scaling, "rope_theta": theta, **({} if share is None else {"partial_rotary_factor": share})}
    local = config.pop("rope_local_base_freq", None)
    config["rope_parameters"] = whole if local is None else {
        "full_attention": whole, "sliding_attention": {"rope_type": "default", "rope_theta": local}}  # fmt: skip
    return config


def logits_of(path, ids):
    model = llama_cpp.Llama(str(path), n_ctx=2 * TOKENS, logits_all=True, verbose=False, n_threads=1)
    model.eval(ids)
    return torch.tensor(model.scores[: len(ids)])


def check(case, files, folder):
    folder.mkdir()
    wanted = tiny_models.make(case, folder, files)[0, :TOKENS]
    before = interop.cat(folder, "gguf/model-F32.gguf")
    path = folder / "config.json"
    path.write_text(json.dumps(move(json.loads(path.read_text()))))
    made = folder.parent / "model.gguf"
    made.write_bytes(interop.cat(folder, "gguf/model-F32.gguf"))
    interop.check(made.read_bytes() == before, f"{case.title}: another file than before the keys moved")
    ids = [i * 13 % (tiny_models.VOCABULARY - 30) + 7 for i in range(TOKENS)]  # as tiny_models.compute() has them
    found = logits_of(made, ids)[:, : wanted.shape[1]]
    off = ((found - wanted).abs().max() / wanted.abs().max()).item()
    interop.check(off < TOLERANCE, f"{case.title}: logits are off by {off:.2g} of the largest")


def main():
    files = tiny_models.tokenizer_files()
    cases = {case.name: case for case in reversed(tiny_models.CASES) if case.name in NAMES}
    interop.check(len(cases) == len(NAMES), f"{len(cases)} families")
    for case in cases.values():
        with tempfile.TemporaryDirectory() as scratch:
            check(case, files, pathlib.Path(scratch) / "model")


main()
interop.done()
