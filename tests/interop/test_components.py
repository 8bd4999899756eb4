"""Pipelines against diffusers and transformers: what save_pretrained() writes is opened from a mount of the root, and from each component's
hf/, with the same weights."""
import gc
import pathlib
import tempfile

import interop

try:
    import diffusers
    import torch
    import tiny_pipeline
except ImportError as error:
    interop.skip(str(error))


def same(wanted, model, what):
    state, found = wanted.state_dict(), model.state_dict()
    interop.check(state.keys() == found.keys() and all(torch.equal(state[name], found[name]) for name in state), what)


def open_pipeline(mountpoint, components):
    shown = diffusers.StableDiffusionPipeline.from_pretrained(mountpoint, tokenizer=None, safety_checker=None)
    for name, wanted in components.items():
        same(wanted, getattr(shown, name), f"{name}, of the pipeline")
        same(wanted, type(wanted).from_pretrained(mountpoint / name / "hf"), f"{name}/hf")


with tempfile.TemporaryDirectory() as directory:
    root = pathlib.Path(directory) / "pipeline"
    made = tiny_pipeline.make(root)
    with interop.mounted(root) as mountpoint:
        open_pipeline(mountpoint, made)
        gc.collect()  # what is opened keeps its files mapped
interop.done()
