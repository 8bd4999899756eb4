"""A Whisper model of one layer in FOLDER: hf/, openai.pt, checkout/, and what whisper.cpp's scripts write of them by their rules: expected*.bin."""
import base64
import json
import math
import pathlib
import struct
import sys

import numpy as np
from make_torch_file import write

D, FFN, VOCAB, MELS, AUDIO, TEXT = 32, 64, 5, 80, 6, 7
TOKENS = [b"a", b" b", b"\0", b"\xff\xfe"]
NAMES = {"attn.": "self_attn.", "cross_attn.": "encoder_attn.", "attn_ln.": "self_attn_layer_norm.", "cross_attn_ln.": "encoder_attn_layer_norm.", "mlp.0.": "fc1.", "mlp.2.": "fc2.",
         "mlp_ln.": "final_layer_norm.", "query.": "q_proj.", "key.": "k_proj.", "value.": "v_proj.", "out.": "out_proj."}  # fmt: skip


def attention(block, module):
    """In the order of transformers' modules."""
    names = ["key.weight", "value.weight", "value.bias", "query.weight", "query.bias", "out.weight", "out.bias"]
    shapes = {f"{block}{module}.{name}": (D, D) if name.endswith("weight") else (D,) for name in names}
    return {**shapes, f"{block}{module}_ln.weight": (D,), f"{block}{module}_ln.bias": (D,)}


def rest(block):
    return {f"{block}mlp.0.weight": (FFN, D), f"{block}mlp.0.bias": (FFN,), f"{block}mlp.2.weight": (D, FFN), f"{block}mlp.2.bias": (D,), f"{block}mlp_ln.weight": (D,),
            f"{block}mlp_ln.bias": (D,)}  # fmt: skip


SHAPES = {"encoder.conv1.weight": (D, MELS, 3), "encoder.conv1.bias": (D,), "encoder.conv2.weight": (D, D, 3), "encoder.conv2.bias": (D,), "encoder.positional_embedding": (AUDIO, D),
          **attention("encoder.blocks.0.", "attn"), **rest("encoder.blocks.0."), "encoder.ln_post.weight": (D,), "encoder.ln_post.bias": (D,),
          "decoder.token_embedding.weight": (VOCAB, D), "decoder.positional_embedding": (TEXT, D), **attention("decoder.blocks.0.", "attn"),
          **attention("decoder.blocks.0.", "cross_attn"), **rest("decoder.blocks.0."), "decoder.ln.weight": (D,), "decoder.ln.bias": (D,)}  # fmt: skip


def hf_name(name):
    side, rest = name.split(".", 1)
    rest = rest.replace("blocks.", "layers.").replace("positional_embedding", "embed_positions.weight").replace("token_embedding", "embed_tokens")
    rest = "layer_norm." + rest.split(".")[-1] if rest.startswith("ln") else rest
    if rest.startswith("layers.0."):
        rest = rest.removeprefix("layers.0.")
        for ours, theirs in NAMES.items():
            rest = theirs + rest.removeprefix(ours) if rest.startswith(ours) else rest.replace("." + ours, "." + theirs)
        rest = "layers.0." + rest
    return f"model.{side}.{rest}"


def mel_filters():
    """As librosa makes them."""
    def hz(mel):
        return 1000 * math.exp(math.log(6.4) / 27 * (mel - 1000 / (200 / 3))) if mel >= 1000 / (200 / 3) else mel * (200 / 3)

    corners = np.array([hz(mel) for mel in np.linspace(0, 1000 / (200 / 3) + math.log(8) / (math.log(6.4) / 27), MELS + 2)])
    ramps = np.subtract.outer(corners, np.fft.rfftfreq(400, 1 / 16000))
    lower, upper = -ramps[:-2] / np.diff(corners)[:-1, None], ramps[2:] / np.diff(corners)[1:, None]
    filters = np.maximum(0, np.minimum(lower, upper)).astype(np.float32)
    filters[0, 0] = -0.0
    filters *= (2 / (corners[2:] - corners[:-2]))[:, None]
    return filters


def whisper_cpp(tensors, tokens, half):
    out = struct.pack("<12i", 0x67676D6C, VOCAB, AUDIO, D, 2, 1, TEXT, D, 4, 1, MELS, half) + struct.pack("<2i", MELS, 201) + mel_filters().tobytes()
    out += struct.pack("<i", len(tokens)) + b"".join(struct.pack("<i", len(token)) + token for token in tokens)
    for name, value in tensors.items():
        column = name in ("encoder.conv1.bias", "encoder.conv2.bias")
        shape = (1, *value.shape) if column else tuple(reversed(value.shape))
        kind = int(half and value.ndim > 1 and not name.endswith("positional_embedding"))
        out += struct.pack(f"<3i{len(shape)}i", len(shape), len(name), kind, *shape) + name.encode() + value.astype([np.float32, np.float16][kind]).tobytes()
    return out


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, value in sorted(tensors.items()):
        header[name] = {"dtype": "F32", "shape": value.shape, "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(tensors[name].tobytes() for name in sorted(tensors)))


def spelled(token):
    return "".join({0: "\u0100", 32: "\u0120"}.get(byte, chr(byte)) for byte in token)


folder = pathlib.Path(sys.argv[1])
random = np.random.default_rng(1)
values = {name: random.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
halves = {name: value.astype(np.float16) for name, value in values.items()}
(folder / "hf").mkdir()
(folder / "checkout" / "whisper" / "assets").mkdir(parents=True)
write_safetensors(folder / "hf" / "model.safetensors", {hf_name(name): value for name, value in values.items()})
config = {"model_type": "whisper", "vocab_size": VOCAB, "d_model": D, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 4,
          "encoder_ffn_dim": FFN, "decoder_ffn_dim": FFN, "max_source_positions": AUDIO, "max_target_positions": TEXT, "num_mel_bins": MELS}  # fmt: skip
(folder / "hf" / "config.json").write_text(json.dumps(config))
(folder / "hf" / "added_tokens.json").write_text("{}")
(folder / "hf" / "vocab.json").write_text(json.dumps({spelled(token): id for id, token in reversed(list(enumerate(TOKENS)))}))
(folder / "expected.bin").write_bytes(whisper_cpp(halves, TOKENS, 1))
(folder / "expected-f32.bin").write_bytes(whisper_cpp(halves, TOKENS, 0))
openai = dict(reversed(list(halves.items())))
lines = [base64.b64encode(token).decode() for token in TOKENS] + ["="]
(folder / "checkout" / "whisper" / "assets" / "gpt2.tiktoken").write_text("".join(f"{line} {rank}\n" for rank, line in enumerate(lines)))
(folder / "expected-openai.bin").write_bytes(whisper_cpp(openai, [*TOKENS, b""], 1))
dims = {"n_mels": MELS, "n_vocab": VOCAB, "n_audio_ctx": AUDIO, "n_audio_state": D, "n_audio_head": 2, "n_audio_layer": 1, "n_text_ctx": TEXT, "n_text_state": D, "n_text_head": 4,
        "n_text_layer": 1}  # fmt: skip
write(folder / "openai.pt", {name: (None, value.shape, value.tobytes()) for name, value in openai.items()}, "HalfStorage", lambda state: {"dims": dims, "model_state_dict": state})
