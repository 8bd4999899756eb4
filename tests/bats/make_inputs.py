"""Inputs for the tests of this folder: make_inputs.py WHAT PATH.

    dtypes FILE         a safetensors file with a tensor of every kind that views differ in
    infinite FILE       a tensor with an infinite weight in its second half
    many FILE COUNT     a file of that many small tensors
    patch FILE OFFSET LENGTH HOW  Q8_0 blocks in a file: rounded otherwise (nudge), or of other weights (reverse)
    contracted DIRECTORY a Llama of one layer, whose o_proj begins with the weights of tests/data/contracted
    contract FILE OFFSET TYPE HOW  there, the blocks that ggml makes of them on ARM, in the tensor at OFFSET (own), and one
                        byte changed after them (altered); prints how many
    error FILE OFFSET LENGTH F32  the RMS of the differences of such blocks from the values in a file
    large FILE          one BF16 tensor of 64 MiB
    meta DIRECTORY      a Llama of one layer in Meta's names, with params.json
    endless DIRECTORY   a Llama whose tokenizer would split a text for ever, and another one that would write one for ever
    nvfp4 DIRECTORY     a Llama whose projections are in NVFP4, as ModelOpt packs them
    wordy DIRECTORY     a Llama with half a million words in its tokenizer.json that nobody asks for
    padded DIRECTORY    a Llama with 8000 tokens, most of them padding
    seeing DIRECTORY    a Qwen2-VL, with a tower of one block
    differing DIRECTORY a.safetensors, b.safetensors, and what numpy says of the tensors that differ
    gguf FILE           a GGUF of a few types, and beside it FILE.f32 with what numpy makes of its Q8_0 tensor
    parts DIRECTORY     a GGUF in three parts, the first of which has only keys
    imatrix FILE        an importance matrix for the two layers of data/gguf/models/llama-tiny
"""
import json
import pathlib
import struct
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "data"))
import make  # noqa: E402

random = numpy.random.default_rng(7)


def normal(*shape):
    return random.standard_normal(shape, dtype=numpy.float32)


def dtypes(path):
    words = random.integers(0, 1 << 16, (6, 255), dtype=numpy.uint16)
    tensors = {
        "f64": ("F64", [5, 7], normal(5, 7).astype("<f8").tobytes()),
        "f32": ("F32", [64, 512], normal(64, 512).tobytes()),
        "f16": ("F16", [33, 96], normal(33, 96).astype("<f2").tobytes()),
        "bf16": ("BF16", [16, 256], make.bf16(normal(16, 256))),
        "any.bf16": ("BF16", [6, 255], words.tobytes()),
        "any.f8": ("F8_E4M3", [16, 16], bytes(range(256))),
        "i64": ("I64", [9], random.integers(-(1 << 62), 1 << 62, 9).tobytes()),
        "u8": ("U8", [256], bytes(range(256))),
        "i8": ("I8", [32, 8], random.integers(-128, 128, (32, 8), dtype=numpy.int8).tobytes()),
        "bool": ("BOOL", [5], bytes([0, 1, 1, 0, 1])),
        "c64": ("C64", [4], normal(8).tobytes()),
        "scalar": ("F32", [], normal(1).tobytes()),
        "empty": ("F32", [0, 32], b""),
        "a/b: c%": ("F32", [32], normal(32).tobytes()),
        "..": ("F32", [2], normal(2).tobytes()),
        "": ("F32", [2], normal(2).tobytes()),
        "nul\0name": ("F32", [2], normal(2).tobytes()),
        "n" * 300: ("F32", [2], normal(2).tobytes()),
    }
    pathlib.Path(path).write_bytes(make.safetensors(tensors, {"format": "pt"}))


def infinite(path):
    values = normal(64, 64)
    values[40, 3] = numpy.inf
    pathlib.Path(path).write_bytes(make.safetensors({"infinite": ("F32", [64, 64], values.tobytes())}))


def many(path, count):
    zeros = bytes(8)
    names = (f"model.layers.{i // 64}.experts.{i % 64}.weight" for i in range(int(count)))
    pathlib.Path(path).write_bytes(make.safetensors({name: ("BF16", [2, 2], zeros) for name in names}))


def experts(path):
    stacked, bias = normal(3, 4, 256), normal(3, 4)
    tensors = {
        "l.0.experts.gate_up_proj": ("F32", [3, 4, 256], stacked.tobytes()),
        "l.0.experts.gate_up_proj_bias": ("F32", [3, 4], bias.tobytes()),
        "l.1.experts.down_proj": ("BF16", [3, 4, 256], make.bf16(stacked)),
        "plain": ("F32", [3, 4, 256], stacked.tobytes()),
    }
    pathlib.Path(path).write_bytes(make.safetensors(tensors))


def large(path):
    values = make.bf16(normal(8192, 128))
    pathlib.Path(path).write_bytes(make.safetensors({"large": ("BF16", [8192, 4096], values * 32)}))


def differing(path):
    directory = pathlib.Path(path)
    a, b = normal(700, 512), normal(700, 512)
    changed = a.copy()
    changed[::7, 3] += numpy.float32(0.5)
    nan = a.copy()
    nan[5, 5] = numpy.nan
    same = {"same": ("F32", [700, 512], b.tobytes()), "nan": ("F32", [700, 512], nan.tobytes())}
    words = numpy.frombuffer(make.bf16(a), dtype=numpy.uint16)
    rounded = (words.astype(numpy.uint32) << 16).view(numpy.float32).reshape(a.shape)
    ours = same | {
        "changed": ("F32", [700, 512], a.tobytes()),
        "rounded": ("F32", [700, 512], a.tobytes()),
        "exact": ("F32", [700, 512], rounded.tobytes()),
        "shape": ("F32", [512, 700], a.tobytes()),
        "gone": ("F32", [2], a[0, :2].tobytes()),
        "ids": ("I64", [4], numpy.arange(4).tobytes()),
    }
    theirs = same | {
        "changed": ("F32", [700, 512], changed.tobytes()),
        "rounded": ("BF16", [700, 512], words.tobytes()),
        "exact": ("BF16", [700, 512], words.tobytes()),
        "shape": ("F32", [700, 512], a.tobytes()),
        "new": ("F32", [2], a[0, :2].tobytes()),
        "ids": ("I64", [4], numpy.arange(4).tobytes()),
    }
    (directory / "a.safetensors").write_bytes(make.safetensors(ours, {"format": "pt", "epoch": "1"}))
    (directory / "b.safetensors").write_bytes(make.safetensors(theirs, {"format": "pt", "epoch": "2"}))
    lines = []
    for name, other in ("changed", changed), ("rounded", rounded):
        difference = numpy.abs(other.astype(float) - a.astype(float))
        rms, base = numpy.sqrt(numpy.mean(difference**2)), numpy.sqrt(numpy.mean(a.astype(float) ** 2))
        types = "F32 in A, BF16 in B; " if name == "rounded" else ""
        lines.append(f"tensor {name}: {types}{numpy.count_nonzero(difference)} of {a.size} values differ, by "
                     f"{difference.max():.3g} at most, RMS {rms:.3g} ({rms / base:.3g} of A's)")
    lines += [
        "tensor exact: F32 in A, BF16 in B; the values are equal",
        "tensor shape: shape [512, 700] in A, [700, 512] in B",
        "tensor gone: only in A",
        "tensor new: only in B",
        "key epoch: 1 (string) in A, 2 (string) in B",
        "6 of 9 tensors (2 in their values) and 1 key differ",
    ]
    (directory / "differences").write_text("\n".join(lines) + "\n")


def patch(path, offset, length, how):
    with open(path, "r+b") as file:
        file.seek(int(offset))
        blocks = numpy.frombuffer(file.read(int(length)), dtype="u1").reshape(-1, 34).copy()
        quants = blocks[:, 2:].view("i1")
        if how == "nudge":
            quants[:, 5] -= numpy.sign(quants[:, 5])
        else:
            quants[:] = quants[::-1, ::-1].copy()
        file.seek(int(offset))
        file.write(blocks.tobytes())


CONTRACTED = {"q4_k": (0, 256, 144), "q6_k": (1024, 256, 210), "q4_0": (2048, 32, 18)}  # first value, elements and bytes of a block


def contracted_data(name, suffix):
    return (pathlib.Path(make.__file__).parent / "contracted" / f"{name}.{suffix}").read_bytes()


def wide(directory, columns=512):
    """A model of one layer, of which Q4_K_M takes 1.2 MB."""
    path = pathlib.Path(directory)
    stored = {name: ("F16", list(value.shape), value.tobytes()) for name, value in make_llama(path, columns).items()}
    (path / "model.safetensors").write_bytes(make.safetensors(stored, {"format": "pt"}))


def make_llama(path, columns):
    """Writes the small files of a model of one layer with square matrices, and returns its tensors."""
    llama = pathlib.Path(make.__file__).parent / "gguf" / "models" / "llama-tiny"
    config = json.loads((llama / "config.json").read_text())
    config.update(hidden_size=columns, intermediate_size=columns, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=4)
    path.mkdir()
    (path / "config.json").write_text(json.dumps(config))
    (path / "tokenizer.model").write_bytes((llama / "tokenizer.model").read_bytes())
    square = {f"model.layers.0.{name}.weight": (columns, columns) for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
              "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")}
    norms = {name: (columns,) for name in ("model.norm.weight", "model.layers.0.input_layernorm.weight",
                                       "model.layers.0.post_attention_layernorm.weight")}
    words = {name: (config["vocab_size"], columns) for name in ("model.embed_tokens.weight", "lm_head.weight")}
    return {name: normal(*shape).astype("<f2") for name, shape in {**words, **square, **norms}.items()}


def contracted(directory):
    path = pathlib.Path(directory)
    tensors = make_llama(path, 256)
    values = tensors["model.layers.0.self_attn.o_proj.weight"].reshape(-1)
    for name, (first, _, _) in CONTRACTED.items():
        known = numpy.frombuffer(contracted_data(name, "f16"), "<f2")
        values[first : first + len(known)] = known
    stored = {name: ("F16", list(value.shape), value.tobytes()) for name, value in tensors.items()}
    (path / "model.safetensors").write_bytes(make.safetensors(stored, {"format": "pt"}))


def change(path, offset, length, place, how):
    """One block's scale or code: the F16 at a place is halved or 1.7 times as large, or a byte of codes one more."""
    with open(path, "r+b") as file:
        file.seek(int(offset) + int(length) // 2 + int(place))
        number = file.read(2)
        file.seek(-2, 1)
        if how == "code":
            file.write(bytes([number[0] ^ 1]))
        else:
            file.write((numpy.frombuffer(number, "<f2") * numpy.float16({"half": 0.5, "more": 1.7}[how])).astype("<f2").tobytes())


def contract(path, offset, name, how):
    first, elements, size = CONTRACTED[name]
    blocks = contracted_data(name, "blocks")
    with open(path, "r+b") as file:
        file.seek(int(offset) + first // elements * size)
        file.write(blocks)
        if how == "altered":
            byte = file.read(1)[0]
            file.seek(-1, 1)
            file.write(bytes([byte ^ 0x10]))
    print(len(blocks) // size)


def error(path, offset, length, wanted):
    data = pathlib.Path(path).read_bytes()[int(offset) : int(offset) + int(length)]
    blocks = numpy.frombuffer(data, dtype="u1").reshape(-1, 34)
    values = blocks[:, :2].copy().view("<f2").astype(float) * blocks[:, 2:].view("i1")
    print(f"{numpy.sqrt(numpy.mean((values.ravel() - numpy.fromfile(wanted, '<f4')) ** 2)):.6g}")


def gguf(path):
    def text(value):
        return struct.pack("<Q", len(value)) + value

    def padded(data):
        return data + bytes(-len(data) % 32)

    scales, quants = normal(64).astype("<f2"), random.integers(-127, 128, (64, 32), dtype=numpy.int8)
    blocks = b"".join(scale.tobytes() + quant.tobytes() for scale, quant in zip(scales, quants))
    tokens = b"".join(text(b"token%d" % i) for i in range(1000))
    keys = [
        (b"general.architecture", 8, text(b"llama")),
        (b"general.file_type", 4, struct.pack("<I", 7)),
        (b"llama.context_length", 4, struct.pack("<I", 4096)),
        (b"llama.rope.freq_base", 6, struct.pack("<f", 0.1)),
        (b"flag", 7, b"\1"),
        (b"numbers", 9, struct.pack("<IQ3h", 3, 3, -1, 0, 7)),
        (b"tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 1000) + tokens),
    ]
    tensors = [
        (b"token_embd.weight", (64, 32), 8, blocks),
        (b"blk.0.ffn_up.weight", (32, 3), 0, normal(3, 32).tobytes()),
        (b"blk.0.ffn_up.bias", (3,), 1, normal(3).astype("<f2").tobytes()),
        (b"blk.0.ffn_gate_exps.weight", (256, 2, 1), 29, bytes(range(112))),
    ]
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    header += b"".join(text(key) + struct.pack("<I", type) + value for key, type, value in keys)
    offset = 0
    for name, dimensions, type, data in tensors:
        header += text(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, type, offset)
        offset += len(padded(data))
    pathlib.Path(path).write_bytes(padded(header) + b"".join(padded(data) for *_, data in tensors))
    values = scales.astype("<f4")[:, None] * quants.astype("<f4")
    pathlib.Path(path + ".f32").write_bytes(values.tobytes())


def parts(directory):
    def text(value):
        return struct.pack("<Q", len(value)) + value

    count = 3
    for number in range(count):
        keys = [text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")] if number == 0 else []
        keys.append(text(b"split.no") + struct.pack("<IH", 2, number))
        keys.append(text(b"split.count") + struct.pack("<IH", 2, count))
        keys.append(text(b"split.tensors.count") + struct.pack("<Ii", 5, count - 1))
        header = b"GGUF" + struct.pack("<IQQ", 3, number > 0, len(keys)) + b"".join(keys)
        data = b""
        if number > 0:
            header += text(b"blk.%d.ffn_up.weight" % number) + struct.pack("<IQQIQ", 2, 64, 2, 0, 0)
            data = normal(2, 64).tobytes()
        header += bytes(-len(header) % 32)
        (pathlib.Path(directory) / f"model-{number + 1:05}-of-{count:05}.gguf").write_bytes(header + data)


def imatrix(path, n_columns=None):
    def text(value):
        return struct.pack("<Q", len(value)) + value

    keys = text(b"general.type") + struct.pack("<I", 8) + text(b"imatrix")
    keys += text(b"imatrix.datasets") + struct.pack("<IIQ", 9, 8, 1) + text(b"some.txt")
    keys += text(b"imatrix.chunk_count") + struct.pack("<II", 4, 5) + text(b"imatrix.chunk_size") + struct.pack("<II", 4, 512)
    columns = {"attn_q": 32, "attn_k": 32, "attn_v": 32, "attn_output": 32, "ffn_gate": 32, "ffn_up": 32, "ffn_down": 48}
    if n_columns is not None:
        columns = dict.fromkeys(columns, int(n_columns))
    infos = data = b""
    for name, n_columns in ((f"blk.{layer}.{name}.weight", n) for layer in range(2) for name, n in columns.items()):
        for part, values in ("in_sum2", normal(n_columns) ** 2 * 100), ("counts", numpy.array([100])):
            infos += text(f"{name}.{part}".encode()) + struct.pack("<IQIQ", 1, len(values), 0, len(data))
            data += values.astype("<f4").tobytes()
            data += bytes(-len(data) % 32)
    header = b"GGUF" + struct.pack("<IQQ", 3, 4 * len(columns), 4) + keys + infos
    pathlib.Path(path).write_bytes(header + bytes(-len(header) % 32) + data)


def meta(directory):
    shapes = {"tok_embeddings.weight": [64, 32], "norm.weight": [32], "output.weight": [64, 32]}
    shapes |= {f"layers.0.attention.w{part}.weight": [32, 32] for part in "qkvo"}
    shapes |= {f"layers.0.feed_forward.w{part}.weight": [64, 32] for part in "13"}
    shapes |= {"layers.0.feed_forward.w2.weight": [32, 64]}
    shapes |= {f"layers.0.{norm}_norm.weight": [32] for norm in ("attention", "ffn")}
    weights = {name: ("F32", shape, normal(*shape).tobytes()) for name, shape in shapes.items()}
    (pathlib.Path(directory) / "consolidated.00.pth").write_bytes(make.safetensors(weights))
    params = {"dim": 32, "n_layers": 1, "n_heads": 2, "multiple_of": 32, "norm_eps": 1e-05, "vocab_size": 64}
    (pathlib.Path(directory) / "params.json").write_text(json.dumps(params))


def endless(directory):
    text = {"Sequence": {"id": "A", "type_id": 0}}
    backtracking = {"type": "Split", "pattern": {"Regex": "(?<=a)(.*?){1,200}b$"}, "behavior": "Isolated", "invert": False}
    doubling = {"type": "TemplateProcessing", "single": [text, text]}
    hostile = {
        "split": ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [backtracking] * 20000}),
        "write": ("post_processor", {"type": "Sequence", "processors": [doubling] * 40}),
    }
    for name, (key, value) in hostile.items():
        path = pathlib.Path(directory) / name
        make.make_sample(path)
        tokenizer = json.loads((path / "tokenizer.json").read_text())
        tokenizer[key] = value
        (path / "tokenizer.json").write_text(json.dumps(tokenizer))


def seeing(directory):
    path = pathlib.Path(directory)
    make.make_sample(path)
    config = json.loads((path / "config.json").read_text())
    hidden = config["hidden_size"]
    config |= {"architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl"}
    config["rope_scaling"] = {"type": "mrope", "mrope_section": [4, 6, 6]}
    config["vision_config"] = {"depth": 1, "embed_dim": 32, "hidden_size": hidden, "num_heads": 4, "patch_size": 14}
    (path / "config.json").write_text(json.dumps(config))
    (path / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0.5] * 3, "image_std": [0.5] * 3}))
    both = {"blocks.0.attn.qkv": [96, 32], "blocks.0.attn.proj": [32, 32], "blocks.0.norm1": [32], "blocks.0.norm2": [32]}
    both |= {"blocks.0.mlp.fc1": [128, 32], "blocks.0.mlp.fc2": [32, 128], "merger.ln_q": [32]}
    both |= {"merger.mlp.0": [128, 128], "merger.mlp.2": [hidden, 128]}
    shapes = {f"visual.{name}.weight": shape for name, shape in both.items()} | {"visual.patch_embed.proj.weight": [32, 3, 2, 14, 14]}
    shapes |= {f"visual.{name}.bias": shape[:1] for name, shape in both.items()}
    tower = {name: ("F32", shape, normal(*shape).tobytes()) for name, shape in shapes.items()}
    (path / "model.safetensors").write_bytes(make.safetensors(make.sample_weights() | tower))


def nvfp4(directory):
    path = pathlib.Path(directory)
    make.make_sample(path)
    config = json.loads((path / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
    (path / "config.json").write_text(json.dumps(config))
    weights = {}
    for name, tensor in make.sample_weights().items():
        if not name.endswith("_proj.weight"):
            weights[name] = tensor
            continue
        rows, columns = tensor[1]
        codes = random.integers(0, 256, rows * columns // 2, dtype=numpy.uint8)
        scales = random.integers(0x30, 0x40, rows * columns // 16, dtype=numpy.uint8)
        weights[name] = ("U8", [rows, columns // 2], codes.tobytes())
        weights[name + "_scale"] = ("F8_E4M3", [rows, columns // 16], scales.tobytes())
        weights[name + "_scale_2"] = ("F32", [], struct.pack("<f", 0.01))
    (path / "model.safetensors").write_bytes(make.safetensors(weights))


def wordy(directory):
    path = pathlib.Path(directory)
    make.make_sample(path)
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    tokenizer["words"] = [f"word{number}" for number in range(500000)]
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))


def padded(directory):
    path = pathlib.Path(directory)
    make.make_sample(path)
    config = json.loads((path / "config.json").read_text()) | {"vocab_size": 8000}
    (path / "config.json").write_text(json.dumps(config))
    rows = make.bf16(normal(8000, config["hidden_size"]))
    embedding = ("BF16", [8000, config["hidden_size"]], rows)
    weights = make.sample_weights() | {"model.embed_tokens.weight": embedding, "lm_head.weight": embedding}
    (path / "model.safetensors").write_bytes(make.safetensors(weights, {"format": "pt"}))


def pipeline(directory):
    path = pathlib.Path(directory)
    parts = {"text_encoder": ("transformers", "CLIPTextModel"), "unet": ("diffusers", "UNet2DConditionModel")}
    parts |= {"vae": ("diffusers", "AutoencoderKL"), "scheduler": ("diffusers", "PNDMScheduler")}
    for part in parts:
        (path / part).mkdir(parents=True)
    index = {"_class_name": "StableDiffusionPipeline", "safety_checker": [None, None], "requires_safety_checker": False}
    (path / "model_index.json").write_text(json.dumps(index | parts))
    (path / "scheduler" / "scheduler_config.json").write_text("{}")
    unet = {"conv_in.weight": ("F32", [32, 4, 3, 3], normal(32, 4, 3, 3).tobytes()), "conv_in.bias": ("F32", [32], normal(32).tobytes())}
    (path / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(make.safetensors(unet))
    text = {"text_model.embeddings.token_embedding.weight": ("F32", [64, 32], normal(64, 32).tobytes())}
    (path / "text_encoder" / "model.safetensors").write_bytes(make.safetensors(text))
    (path / "text_encoder" / "config.json").write_text(json.dumps({"architectures": ["CLIPTextModel"]}))
    for part in ("unet", "vae"):
        (path / part / "config.json").write_text(json.dumps({"_class_name": parts[part][1]}))
    torch = pathlib.Path(__file__).resolve().parent.parent / "data" / "torch" / "views-5.pt"
    (path / "vae" / "diffusion_pytorch_model.bin").write_bytes(torch.read_bytes())


def modules(directory):
    path = pathlib.Path(directory)
    make.make_sample(path)
    listed = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense"), ("3_Normalize", "Normalize")]
    entries = [{"idx": i, "name": str(i), "path": part, "type": f"sentence_transformers.models.{kind}"}
               for i, (part, kind) in enumerate(listed)]
    (path / "modules.json").write_text(json.dumps(entries))
    for part, config in ("1_Pooling", {"pooling_mode_mean_tokens": True}), ("2_Dense", {"in_features": 64, "out_features": 32}):
        (path / part).mkdir()
        (path / part / "config.json").write_text(json.dumps(config))
    dense = {"linear.weight": ("F32", [32, 64], normal(32, 64).tobytes()), "linear.bias": ("F32", [32], normal(32).tobytes())}
    (path / "2_Dense" / "model.safetensors").write_bytes(make.safetensors(dense, {"format": "pt"}))


globals()[sys.argv[1]](*sys.argv[2:])
