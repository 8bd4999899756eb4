"""mlx/repacked/ has the codes of a quantized source: mlx_lm loads it, and what MLX dequantizes in F32 of each module equals the source's values, which
numpy computes from the packed numbers, and MLX itself from GGUFs. (Zeros are compared as numbers: MLX has no negative ones in groups with a bias.)"""
import json
import pathlib
import struct
import tempfile

import numpy as np
from interop import check, done, skip, wfs

try:
    import mlx.core as mx
    import mlx.nn as nn
    from mlx.utils import tree_flatten
    from mlx_lm.models.switch_layers import QuantizedSwitchLinear
    from mlx_lm.utils import load_model
except ImportError as error:
    skip(str(error))

HIDDEN, INNER, HEADS, KV_HEADS, VOCABULARY, EXPERTS = 256, 384, 4, 2, 64, 3
CONFIG = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=HIDDEN, num_hidden_layers=2, intermediate_size=INNER,
              num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, rms_norm_eps=1e-5, vocab_size=VOCABULARY, head_dim=HIDDEN // HEADS,
              max_position_embeddings=128, rope_theta=10000.0, tie_word_embeddings=False, torch_dtype="float16")  # fmt: skip
MOE = dict(CONFIG, architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", num_experts=EXPERTS, num_experts_per_tok=2, moe_intermediate_size=128,
           decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True)  # fmt: skip
KV = HIDDEN // HEADS * KV_HEADS
LINEAR = {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (KV, HIDDEN), "self_attn.v_proj": (KV, HIDDEN), "self_attn.o_proj": (HIDDEN, HIDDEN)}
DENSE = {**LINEAR, "mlp.gate_proj": (INNER, HIDDEN), "mlp.up_proj": (INNER, HIDDEN), "mlp.down_proj": (HIDDEN, INNER)}
SPARSE = {**LINEAR, **{f"mlp.experts.{e}.{name}": shape for e in range(EXPERTS)
                       for name, shape in dict(gate_proj=(128, HIDDEN), up_proj=(128, HIDDEN), down_proj=(HIDDEN, 128)).items()}}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], "f4")
random = np.random.default_rng(60)


def words(codes, bits, order=None):
    """Codes along the last axis as words of 32 bits, the first in the lowest."""
    per = 32 // bits
    parts = codes.reshape(*codes.shape[:-1], -1, per).astype("u4")
    return np.bitwise_or.reduce(parts << (np.arange(per, dtype="u4") if order is None else np.array(order, "u4")) * np.uint32(bits), -1).view("i4")


def spread(numbers, columns):
    return np.repeat(numbers, columns // numbers.shape[-1], -1).astype("f4")


def scales(rows, groups, dtype="f2"):
    return (random.standard_normal((rows, groups)) * 0.01).astype(dtype)


def as_bf16(values):
    return (values.astype("f4").view("u4") >> 16).astype("u2")


def from_bf16(stored):
    return (stored.astype("u4") << 16).view("f4")


def gptq(bits, group, zeros_at=None, order=None):
    """GPTQ of the second version: zero points are stored as they are."""
    def make(base, rows, columns):
        codes, s = random.integers(0, 2**bits, (rows, columns)), scales(rows, columns // group)
        zeros = random.integers(0, 2**bits, s.shape) if zeros_at is None else np.full(s.shape, zeros_at)
        parts = {base + ".qweight": words(codes, bits).T, base + ".scales": s.T, base + ".qzeros": words(zeros.T, bits)}
        groups = np.arange(columns) // group
        if order is not None:
            groups = groups if order == "in order" else random.permutation(groups)
            parts[base + ".g_idx"] = groups.astype("i4")
        return parts, (codes - zeros[:, groups]).astype("f4") * s.astype("f4")[:, groups]
    return make


def awq(zeros_at=None):
    def make(base, rows, columns, group=64, order=(0, 4, 1, 5, 2, 6, 3, 7)):
        codes, s = random.integers(0, 16, (rows, columns)), scales(rows, columns // group)
        zeros = random.integers(0, 16, s.shape) if zeros_at is None else np.full(s.shape, zeros_at)
        parts = {base + ".qweight": words(codes.T, 4, order), base + ".scales": s.T, base + ".qzeros": words(zeros.T, 4, order)}
        return parts, (codes - spread(zeros, columns)).astype("f4") * spread(s, columns)
    return make


def compressed(group, with_zeros):
    """compressed-tensors: scales in BF16."""
    def make(base, rows, columns):
        codes, stored = random.integers(0, 16, (rows, columns)), as_bf16(scales(rows, columns // group, "f4"))
        zeros = random.integers(0, 16, stored.shape) if with_zeros else np.full(stored.shape, 8)
        parts = {base + ".weight_packed": words(codes, 4), base + ".weight_scale": stored, base + ".weight_shape": np.array([rows, columns], "i8")}
        if with_zeros:
            parts[base + ".weight_zero_point"] = words(zeros.T, 4).T
        return parts, (codes - spread(zeros, columns)).astype("f4") * spread(from_bf16(stored), columns)
    return make


def int8(base, rows, columns):
    """Rows with a scale each, which are no groups."""
    codes, stored = random.integers(-127, 128, (rows, columns)).astype("i1"), as_bf16(scales(rows, 1, "f4"))
    return {base + ".weight": ("I8", codes), base + ".weight_scale": stored}, codes.astype("f4") * from_bf16(stored)


def nibbles(rows, columns):
    codes = random.integers(0, 16, (rows, columns))
    return codes, (codes[:, ::2] | codes[:, 1::2] << 4).astype("u1")


def mxfp4(base, rows, columns):
    codes, packed = nibbles(rows, columns)
    exponents = random.integers(100, 130, (rows, columns // 32)).astype("u1")
    return ({base + ".weight_packed": packed, base + ".weight_scale": exponents},
            E2M1[codes] * np.exp2(spread(exponents, columns) - 127))


def nvfp4(factor):
    def make(base, rows, columns):
        codes, packed = nibbles(rows, columns)
        bytes_ = random.integers(8, 64, (rows, columns // 16)).astype("u1")  # so that a factor of 4 or 1/2 leaves them normal
        values = (1 + (bytes_ & 7) / 8) * np.exp2((bytes_ >> 3) - 7.0)
        f = np.float32(factor(base) if callable(factor) else factor)
        return ({base + ".weight": packed, base + ".weight_scale": ("F8_E4M3", bytes_), base + ".weight_scale_2": np.array(f)},
                E2M1[codes] * (spread(values, columns) * f))
    return make


def as_amax(base):
    """Another largest magnitude for each weight: ModelOpt's factor is it over the largest product of E2M1 and E4M3."""
    return np.float32(0.5 + sum(base.encode()) % 97 / 100)


def is_factor(factor):
    near = np.float32(factor) * np.float32(2688)
    return any(g / np.float32(2688) == factor for g in (near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(9e9))))


NAMES = {"f2": "F16", "f4": "F32", "i4": "I32", "i8": "I64", "u1": "U8", "u2": "BF16"}


def save(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        dtype, values = values if isinstance(values, tuple) else (NAMES[values.dtype.str[1:]], values)
        raw = np.ascontiguousarray(values).tobytes()
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def checkpoint(folder, make, quantization, config=CONFIG):
    """Writes a model whose linear layers are packed; returns the values of all tensors."""
    tensors, values = {}, {}
    plain = {"model.embed_tokens": (VOCABULARY, HIDDEN), "lm_head": (VOCABULARY, HIDDEN), "model.norm": (HIDDEN,)}
    for layer in range(config["num_hidden_layers"]):
        before = f"model.layers.{layer}."
        plain.update({before + "input_layernorm": (HIDDEN,), before + "post_attention_layernorm": (HIDDEN,)})
        if config is MOE:
            plain.update({before + "mlp.gate": (EXPERTS, HIDDEN), before + "self_attn.q_norm": (HIDDEN // HEADS,),
                          before + "self_attn.k_norm": (HIDDEN // HEADS,)})
        for name, shape in (SPARSE if config is MOE else DENSE).items():
            parts, values[before + name + ".weight"] = make(before + name, *shape) if make else ({}, random.standard_normal(shape, "f4"))
            tensors.update(parts or {before + name + ".weight": values[before + name + ".weight"]})
    for name, shape in plain.items():
        values[name + ".weight"] = random.standard_normal(shape).astype("f2")
        tensors[name + ".weight"] = values[name + ".weight"]
    folder.mkdir()
    save(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(dict(config, **({"quantization_config": quantization} if quantization else {}))))
    return values


def load(case, source, directory):
    made = directory / "repacked"
    copied = wfs("cp", "-r", source, "mlx/repacked", made)
    if not check(copied.returncode == 0 and (made / "config.json").exists(), f"{case}: {copied.stderr.decode().strip() or 'no config.json'}"):
        return {}, {}
    whole = (made / "model.safetensors").read_bytes()
    for _ in range(4):  # any range is the same part of the file
        offset, length = int(random.integers(len(whole))), int(random.integers(1, 5000))
        part = wfs("cat", "--range", f"{offset}:{length}", source, "mlx/repacked/model.safetensors")
        check(part.stdout == whole[offset:offset + length], f"{case}: {length} bytes from {offset} on: {part.stderr.decode().strip() or 'other bytes'}")
    model, config = load_model(made)
    return dict(model.named_modules()), config["quantization"]


def values_of(module):
    """What MLX computes in F32."""
    if not isinstance(module, (nn.QuantizedLinear, nn.QuantizedEmbedding, QuantizedSwitchLinear)):
        return np.array(module.weight.astype(mx.float32))
    as_f32 = [part.astype(mx.float32) if module.mode == "affine" else part for part in (module.scales, module.biases) if part is not None]
    factor = getattr(module, "global_scale", None)
    options = dict(group_size=module.group_size, bits=module.bits, mode=module.mode, dtype=mx.float32)
    if factor is not None:
        return np.stack([np.array(mx.dequantize(module.weight[e], module.scales[e], global_scale=factor[e], **options)) for e in range(len(factor))])
    return np.array(mx.dequantize(module.weight, *as_f32, **options))


def compare(case, modules, values, kept):
    """`kept`: the parameters of each packed linear module, or None where the weights are whole."""
    stacked = {}
    for name, expected in values.items():
        module, _, _ = name.removesuffix(".weight").partition(".experts.")
        if ".experts." in name:
            _, _, rest = name.partition(".experts.")
            stacked.setdefault(module + ".switch_mlp." + rest.split(".")[1], []).append(expected)
        else:
            stacked[module] = expected
    for name, expected in stacked.items():
        module, expected = modules.get(name), np.stack(expected) if isinstance(expected, list) else expected
        if not check(module is not None, f"{case}: no module {name}"):
            continue
        found = values_of(module)
        check(np.array_equal(found, expected.astype("f4")), f"{case}: {name}: {np.count_nonzero(found != expected)} of {found.size} values differ")
        if name.endswith("_proj"):
            may_be_whole = case.startswith("NVFP4, factors of ModelOpt") and "switch_mlp" not in name  # mlx-lm has factors of experts alone
            form = (module.mode, module.bits, module.group_size) if hasattr(module, "bits") else None
            check(form == (None if may_be_whole else kept), f"{case}: {name} is {form}, not {kept}")


def types(module):
    return [str(part.dtype).removeprefix("mlx.core.") for part in (module.scales, module.biases) if part is not None]


GPTQ = dict(quant_method="gptq", bits=4, group_size=64, desc_act=False, checkpoint_format="gptq_v2")
AWQ = dict(quant_method="awq", bits=4, group_size=64, version="gemm", zero_point=True)
MODELOPT = dict(quant_method="modelopt", quant_algo="NVFP4")


def of_compressed(fmt, **weights):
    weights = dict(dict(num_bits=4, type="int", strategy="group", symmetric=True), **weights)
    return dict(quant_method="compressed-tensors", format=fmt, config_groups={"group_0": {"targets": ["Linear"], "weights": weights}})


PACKED = {
    "GPTQ, symmetric": (gptq(4, 64, 8), dict(GPTQ, sym=True), ("affine", 4, 64), ["float16", "float16"]),
    "GPTQ, symmetric only by name": (gptq(4, 64), dict(GPTQ, sym=True), ("affine", 4, 64), ["float16", "float32"]),
    "GPTQ, asymmetric": (gptq(4, 128), dict(GPTQ, sym=False, group_size=128), ("affine", 4, 128), ["float16", "float32"]),
    "GPTQ, in order": (gptq(8, 32, order="in order"), dict(GPTQ, sym=False, bits=8, group_size=32), ("affine", 8, 32), ["float16", "float32"]),
    "GPTQ, in another order": (gptq(4, 64, 8, "random"), dict(GPTQ, sym=True, desc_act=True), None, None),
    "AWQ": (awq(), AWQ, ("affine", 4, 64), ["float16", "float32"]),
    "AWQ, symmetric": (awq(8), dict(AWQ, zero_point=False), ("affine", 4, 64), ["float16", "float16"]),
    "compressed-tensors": (compressed(128, False), of_compressed("pack-quantized", group_size=128), ("affine", 4, 128), ["bfloat16", "bfloat16"]),
    "compressed-tensors, asymmetric": (compressed(32, True), of_compressed("pack-quantized", group_size=32, symmetric=False), ("affine", 4, 32),
                                       ["bfloat16", "float32"]),
    "MXFP4": (mxfp4, of_compressed("mxfp4-pack-quantized", type="float", group_size=32), ("mxfp4", 4, 32), ["uint8"]),
    "INT8 of compressed-tensors": (int8, of_compressed("int-quantized", num_bits=8, strategy="channel"), None, None),
    "NVFP4, factor 1": (nvfp4(1), MODELOPT, ("nvfp4", 4, 16), ["uint8"]),
    "NVFP4, factor 4": (nvfp4(4), MODELOPT, ("nvfp4", 4, 16), ["uint8"]),
    "NVFP4, factors of ModelOpt": (nvfp4(lambda base: np.float32(as_amax(base) / np.float32(2688))), MODELOPT, ("nvfp4", 4, 16), None),
    "NVFP4, factors that MLX lacks": (nvfp4(next(f for f in np.linspace(1, 2, 100, dtype="f4") if not is_factor(f))), MODELOPT, None, None),
}  # fmt: skip


def packed():
    for case, (make, quantization, kept, wanted) in PACKED.items():
        for config in (CONFIG, MOE):
            with tempfile.TemporaryDirectory() as directory:
                source = pathlib.Path(directory) / "model"
                name = f"{case}, {config['model_type']}"
                values = checkpoint(source, make, quantization, config)
                if kept is None or (wanted is None and config is CONFIG):  # nothing is kept: there is no such directory, for a reason
                    shown = wfs("cat", source, "mlx/repacked/config.json")
                    check(shown.returncode == 1 and b"MLX cannot hold any weight" in shown.stderr, f"{name}: {shown.stderr.decode().strip()}")
                    continue
                modules, _ = load(name, source, pathlib.Path(directory))
                if modules:
                    compare(name, modules, values, kept)
                    found = wanted and types(modules["model.layers.0.self_attn.q_proj"])
                    check(found == wanted, f"{name}: {found}, not {wanted}")


GGUF_NAMES = {"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
              "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}


def from_pairs(values, n_heads):
    """Rows that the converter has put in pairs for its rotary embedding, back in halves."""
    rows, *rest = values.shape
    return values.reshape(n_heads, rows // n_heads // 2, 2, *rest).swapaxes(1, 2).reshape(values.shape)


def gguf_of(path):
    """A Llama in F32 with the converter's names, and what the keys of its configuration are."""
    numbers = dict(block_count=2, context_length=128, embedding_length=HIDDEN, feed_forward_length=INNER, vocab_size=VOCABULARY)
    numbers.update({"attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS, "rope.dimension_count": HIDDEN // HEADS})
    keys = {"general.architecture": "llama", "llama.attention.layer_norm_rms_epsilon": mx.array(1e-5, mx.float32)}
    keys.update({f"llama.{key}": mx.array(number, mx.uint32) for key, number in numbers.items()})
    shapes = {"token_embd": (VOCABULARY, HIDDEN), "output": (VOCABULARY, HIDDEN), "output_norm": (HIDDEN,)}
    for layer in range(2):
        shapes.update({f"blk.{layer}.{part}": DENSE[name] for part, name in GGUF_NAMES.items()})
        shapes.update({f"blk.{layer}.{part}": (HIDDEN,) for part in ("attn_norm", "ffn_norm")})
    mx.save_gguf(str(path), {f"{name}.weight": mx.array(random.standard_normal(shape).astype("f4")) for name, shape in shapes.items()}, keys)


def ggufs():
    """MLX reads GGUFs of some types itself: as the same groups, with rows in the converter's order."""
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        gguf_of(directory / "model.gguf")
        for mix, kept in dict(Q4_0=("affine", 4, 32), Q4_1=("affine", 4, 32), Q8_0=("affine", 8, 32)).items():
            gguf = directory / f"{mix}.gguf"
            made = wfs("cp", directory / "model.gguf", f"gguf/model-{mix}.gguf", gguf)
            if not check(made.returncode == 0, f"{mix}: {made.stderr.decode().strip()}"):
                continue
            loaded, values = mx.load(str(gguf)), {}
            for base in [name.removesuffix(".scales") for name in loaded if name.startswith("blk.") and name.endswith(".scales")]:
                _, layer, part = base.split(".")
                numbers = [loaded[base + end].astype(mx.float32) for end in (".scales", ".biases")]
                found = np.array(mx.dequantize(loaded[base + ".weight"], *numbers, group_size=32, bits=kept[1]))
                found = from_pairs(found, HEADS if part == "attn_q" else KV_HEADS) if part in ("attn_q", "attn_k") else found
                values[f"model.layers.{layer}.{GGUF_NAMES[part]}.weight"] = found
            check(len(values) == 2 * len(DENSE), f"{mix}: MLX reads {len(values)} quantized weights")
            (directory / mix).mkdir()
            modules, _ = load(mix, gguf, directory / mix)
            if modules:
                compare(mix, modules, values, kept)
                check(types(modules["model.layers.0.mlp.up_proj"]) == ["float16", "float16"], f"{mix}: the types of scales and biases")


def back_of_gpt_oss(made, tensors):
    """A gpt-oss of mlx-lm as a source: transformers' names, and weights as transformers dequantizes them."""
    expected = {name: values.view("<u2") for name, values in tensors.items() if not name.endswith(("_blocks", "_scales"))}
    for name in [name.removesuffix("_blocks") for name in tensors if name.endswith("_blocks")]:
        blocks, exponents = tensors[name + "_blocks"], tensors[name + "_scales"]
        codes = np.stack([blocks & 15, blocks >> 4], -1).reshape(*exponents.shape, 32)
        values = (E2M1[codes] * np.exp2(exponents.astype("f4") - 127)[..., None]).astype("f4")
        expected[name] = as_bf16(values.reshape(*exponents.shape[:2], -1).swapaxes(1, 2).copy())
    back = wfs("cat", made, "model.safetensors")
    if not check(back.returncode == 0, f"gpt-oss back: {back.stderr.decode().strip()}"):
        return
    size = struct.unpack("<Q", back.stdout[:8])[0]
    header = json.loads(back.stdout[8:8 + size])
    found = {name: (entry["shape"], back.stdout[8 + size:][slice(*entry["data_offsets"])]) for name, entry in header.items() if name != "__metadata__"}
    check(found.keys() == expected.keys(), f"gpt-oss back: {sorted(found.keys() ^ expected.keys())[:4]}")
    differ = [name for name in found.keys() & expected.keys() if found[name] != (list(expected[name].shape), expected[name].tobytes())]
    check(not differ, f"gpt-oss back: other values: {differ[:4]}")


def gpt_oss():
    """mlx_lm.convert itself keeps gpt-oss's MXFP4: mlx/repacked/ has the same tensors."""
    config = dict(architectures=["GptOssForCausalLM"], model_type="gpt_oss", hidden_size=128, intermediate_size=64, num_hidden_layers=2, head_dim=32,
                  num_attention_heads=4, num_key_value_heads=2, num_local_experts=EXPERTS, num_experts_per_tok=2, vocab_size=VOCABULARY, sliding_window=16,
                  rms_norm_eps=1e-5, rope_theta=150000, layer_types=["sliding_attention", "full_attention"], torch_dtype="bfloat16", rope_scaling=None,
                  tie_word_embeddings=False, quantization_config=dict(quant_method="mxfp4", modules_to_not_convert=["lm_head"]))  # fmt: skip
    shapes = {"model.embed_tokens.weight": (VOCABULARY, 128), "lm_head.weight": (VOCABULARY, 128), "model.norm.weight": (128,)}
    tensors = {}
    for layer in range(2):
        before = f"model.layers.{layer}."
        for part, rows in dict(q=128, k=64, v=64, o=128).items():
            shapes.update({f"{before}self_attn.{part}_proj.weight": (rows, 128), f"{before}self_attn.{part}_proj.bias": (rows,)})
        shapes.update({before + "self_attn.sinks": (4,), before + "mlp.router.weight": (EXPERTS, 128), before + "mlp.router.bias": (EXPERTS,),
                       before + "input_layernorm.weight": (128,), before + "post_attention_layernorm.weight": (128,),
                       before + "mlp.experts.gate_up_proj_bias": (EXPERTS, 128), before + "mlp.experts.down_proj_bias": (EXPERTS, 128)})  # fmt: skip
        for name, rows, columns in (("gate_up_proj", 128, 128), ("down_proj", 128, 64)):
            tensors[f"{before}mlp.experts.{name}_blocks"] = random.integers(0, 256, (EXPERTS, rows, columns // 32, 16)).astype("u1")
            tensors[f"{before}mlp.experts.{name}_scales"] = random.integers(100, 130, (EXPERTS, rows, columns // 32)).astype("u1")
    tensors.update({name: as_bf16(random.standard_normal(shape).astype("f4")) for name, shape in shapes.items()})
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        (directory / "model").mkdir()
        save(directory / "model" / "model.safetensors", tensors)
        (directory / "model" / "config.json").write_text(json.dumps(config))
        model, _ = load_model(directory / "model")
        expected = {name: np.array(values.view(mx.uint8)) for name, values in tree_flatten(model.parameters())}
        modules, _ = load("gpt-oss", directory / "model", directory)
        found = {name: np.array(values.view(mx.uint8)) for name, values in mx.load(str(directory / "repacked" / "model.safetensors")).items()}
        check(bool(modules) and found.keys() == expected.keys(), f"gpt-oss: {sorted(found.keys() ^ expected.keys())[:4]}")
        differ = [name for name in found.keys() & expected.keys() if not np.array_equal(found[name], expected[name])]
        check(not differ, f"gpt-oss: other bytes: {differ[:4]}")
        back_of_gpt_oss(directory / "repacked", tensors)
        plain = wfs("cp", "-r", directory / "model", "mlx/plain", directory / "plain")
        check(plain.returncode == 0, f"gpt-oss, plain: {plain.stderr.decode().strip()}")
        dense, _ = load_model(directory / "plain")
        dense = dict(dense.named_modules())
        for name in [name for name in modules if name.endswith(("experts.gate_proj", "experts.up_proj", "experts.down_proj"))]:
            rounded = mx.array(values_of(modules[name])).astype(mx.bfloat16).astype(mx.float32)
            check(np.array_equal(values_of(dense[name]), np.array(rounded)), f"gpt-oss, plain: {name}")


packed()
ggufs()
gpt_oss()
done()
