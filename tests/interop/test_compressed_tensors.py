"""transformers and compressed-tensors open compressed-tensors/SCHEME/ in a mount: the weights that they decompress are near the source's, and those
that wfs reads in the directory itself."""
import gc
import os
import pathlib
import tempfile

os.environ["CUDA_VISIBLE_DEVICES"] = ""

from interop import cat, check, done, mounted, skip  # noqa: E402

try:
    import compressed_tensors  # noqa: F401
    import numpy
    import torch
    import transformers
    from transformers.utils.quantization_config import CompressedTensorsConfig
except ImportError as error:
    skip(str(error))

# By scheme, how far a weight may be from the source's, as a share of the largest of its row. compressed-tensors does not decompress MXFP4.
SCHEMES = {
    "FP8_DYNAMIC": 2**-4, "FP8_BLOCK": 2**-4, "W8A8": 0.01, "W8A16": 0.01, "W4A16": 0.075, "W4A16_ASYM": 0.14, "NVFP4A16": 0.18,
    "oneshot/FP8_DYNAMIC": 2**-4, "oneshot/W4A16": 0.075,
}  # fmt: skip
# Weights have several blocks of FP8 each way: of one across, compressed-tensors takes the scales for those of rows.
SMALL = dict(hidden_size=256, intermediate_size=384, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=64, vocab_size=64,
             max_position_embeddings=64, tie_word_embeddings=False, dtype="bfloat16")  # fmt: skip


def make(folder):
    torch.manual_seed(7)
    config = transformers.LlamaConfig(**SMALL)
    model = transformers.LlamaForCausalLM(config).bfloat16()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.1)
    model.save_pretrained(folder)
    return model.state_dict()


def open_in(folder):
    """Returns the decompressed weights, and the logits, of copies: a model maps its files, which keeps a mount busy."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto", quantization_config=CompressedTensorsConfig(run_compressed=False))
    with torch.no_grad():
        logits = model(torch.arange(2, 12)[None]).logits
    return {name: weight.detach().clone() for name, weight in model.state_dict().items()}, logits.clone()


def compare(source, weights, point, scheme, share):
    directory = point / "compressed-tensors" / scheme
    found, logits = open_in(directory)
    check(bool(torch.isfinite(logits).all()), f"{scheme}: logits that are not finite")
    for name, wanted in weights.items():
        near = (found[name].float() - wanted.float()).abs().amax(-1) <= share * wanted.float().abs().amax(-1)
        check(bool(near.all()), f"{scheme}: {name} is not near the source's")
    for name in (name for name, weight in weights.items() if ".layers." in name and weight.dim() == 2):
        ours = numpy.frombuffer(cat(directory, f"tensors/{name}/f32"), "<f4").reshape(weights[name].shape)
        check(torch.equal(torch.from_numpy(ours.copy()).bfloat16(), found[name].bfloat16()), f"{scheme}: {name} is read otherwise")


def main():
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "llama"
        weights = make(source)
        with mounted(source) as point:
            for scheme, share in SCHEMES.items():
                compare(source, weights, point, scheme, share)
            gc.collect()
    done()


main()
