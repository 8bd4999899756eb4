"""mlx-lm loads mlx/VARIANT/ from a mount and generates from it: tokens and logits equal those of the directory that mlx_lm.convert writes."""
import contextlib
import io
import json
import pathlib
import tempfile

from interop import check, done, mounted, skip

try:
    import mlx.core as mx
    import mlx_lm
    import mlx_lm.convert
    import mlx_lm.models.gemma2
    import mlx_lm.models.llama
    import mlx_lm.models.qwen3
    import tokenizers
    from mlx.utils import tree_flatten
    from mlx_lm.generate import generate_step
except ImportError as error:
    skip(str(error))

WORDS = ["<s>", "</s>", *(f"w{i}" for i in range(254))]
SMALL = dict(hidden_size=128, num_hidden_layers=2, intermediate_size=256, num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5, head_dim=32,
             vocab_size=len(WORDS), max_position_embeddings=128, rope_theta=10000.0, tie_word_embeddings=False, torch_dtype="bfloat16", eos_token_id=1)
MODELS = {
    "llama": dict(SMALL, architectures=["LlamaForCausalLM"]),
    "qwen3": dict(SMALL, architectures=["Qwen3ForCausalLM"], tie_word_embeddings=True),
    "gemma2": dict(SMALL, architectures=["Gemma2ForCausalLM"], tie_word_embeddings=True, attn_logit_softcapping=50.0, final_logit_softcapping=30.0,
                   query_pre_attn_scalar=32),
}  # fmt: skip
VARIANTS = {
    "bf16": dict(dtype="bfloat16"),
    "4bit": dict(quantize=True),
    "8bit": dict(quantize=True, q_bits=8),
    "mxfp4": dict(quantize=True, q_mode="mxfp4"),
    "nvfp4": dict(quantize=True, q_mode="nvfp4"),
    "mixed_3_6": dict(quantize=True, quant_predicate="mixed_3_6"),
}
N_TOKENS, PROMPT = 6, "w3 w1 w4 w1 w5 w9 w2 w6"


def make(kind, config, folder):
    module = getattr(mlx_lm.models, kind)
    config = dict(config, model_type=kind)
    model = module.Model(module.ModelArgs.from_dict(config))
    mx.random.seed(3)
    weights = {name: (mx.random.normal(value.shape) * 0.08).astype(mx.bfloat16) for name, value in tree_flatten(model.parameters())}
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<s>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}))


def generate(path):
    """The tokens that follow the prompt, and the logits of each step."""
    model, tokenizer = mlx_lm.load(str(path))
    prompt = mx.array(tokenizer.encode(PROMPT))
    steps = list(generate_step(prompt, model, max_tokens=N_TOKENS))
    text = mlx_lm.generate(model, tokenizer, PROMPT, max_tokens=N_TOKENS)
    return [int(token) for token, _ in steps], mx.stack([logits.astype(mx.float32) for _, logits in steps]), text


for kind, config in MODELS.items():
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / kind
        make(kind, config, source)
        with mounted(source) as point:
            plain = generate(source)
            for variant, options in VARIANTS.items():
                written = pathlib.Path(scratch) / variant
                with contextlib.redirect_stdout(io.StringIO()):
                    mlx_lm.convert(str(source), str(written), **options)
                wanted, found = generate(written), generate(point / "mlx" / variant)
                check(found[0] == wanted[0] and mx.array_equal(found[1], wanted[1]), f"{kind} {variant}: other logits")
                check(len(wanted[2]) > 0 and found[2] == wanted[2], f"{kind} {variant}: {found[2]!r}, not {wanted[2]!r}")
                if variant in ("bf16", "8bit"):  # so that what is compared is the model
                    check(mx.abs(found[1][0] - plain[1][0]).max() < 0.5, f"{kind} {variant}: far from the source's logits")
done()
