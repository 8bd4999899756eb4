#!/usr/bin/env python3
"""Makes tests/data/gguf/names.tsv: names of models, and what gguf-py takes them apart into.

    python3 tests/data/make_names.py > tests/data/gguf/names.tsv

Needs gguf from PyPI (made with 0.19.0). Columns: id, number of parameters, then full name, organization, basename, finetune,
version, size label (\\N for None), and the title of the full name.
"""
import itertools
import random

from gguf import Metadata

REAL = """
meta-llama/Llama-2-7b-chat-hf Llama-2-7b-hf Llama-3.2-1B-Instruct Meta-Llama-3.1-405B-Instruct-FP8 Mistral-7B-Instruct-v0.3 Mistral-7B-v0.1
Mixtral-8x7B-Instruct-v0.1 Mixtral-8x22B-v0.1 Mistral-Nemo-Base-2407 Mistral-Small-24B-Instruct-2501 Qwen2.5-1.5B-Instruct Qwen2.5-7B-Instruct-1M
Qwen3-0.6B Qwen3-30B-A3B Qwen3-235B-A22B-Instruct-2507 Qwen2-57B-A14B gemma-2-2b-it gemma-3-1b-it gemma-2b gpt2 gpt2-medium gpt2-large gpt2-xl
openai/gpt-oss-20b bge-small-en-v1.5 bge-m3 Phi-3-mini-4k-instruct Phi-3-medium-128k-instruct Phi-3.5-MoE-instruct phi-2 phi-4 DeepSeek-V3
DeepSeek-V3-0324 DeepSeek-R1-Distill-Qwen-1.5B deepseek-coder-6.7b-instruct bloom-7b1 bloom-560m bloomz-7b1-mt falcon-40b falcon-rw-1b
EleutherAI/pythia-160m-deduped gpt-neox-20b mpt-7b-8k-chat stablelm-2-1_6b stablelm-2-zephyr-1_6b starcoder2-3b OLMo-7B-0724-hf OLMo-2-1124-7B
OLMoE-1B-7B-0924 granite-3.0-1b-a400m-base c4ai-command-r-v01 mamba-130m-hf t5-small flan-t5-xxl nomic-embed-text-v1.5 roberta-large
TinyLlama-1.1B-Chat-v1.0 TinyLlama-1.1B-intermediate-step-1431k-3T Yi-1.5-9B-Chat-16K Nous-Hermes-2-Mixtral-8x7B-DPO SmolLM2-135M-Instruct
NousResearch/Hermes-3-Llama-3.1-8B Llama-3-Instruct-8B-SimPO-v0.2 Kimi-K2-Instruct WizardCoder-Python-34B-V1.0 Llama-3.2-11B-Vision-Instruct
""".split()

ODD = ["", "-", "--", "a--b", "-a-", "a", "7B", "v1", "x-7B", "7B-x", "x-7b-7B", "x-7B-7B", "x-small-7B", "x-small", "x-Small-large", "x-xl", "x-xxl",
       "x-xxxl", "x-1.5.2B", "x-1_5B", "x-1_5_2B", "x-a3b", "x-A3.5B", "x-8x7b1", "x-7b12", "x-7b1", "x-7.5b1", "x-3k", "x-4k-7b", "x-128K", "x-0B", "x-.5B",
       "x-1e9B", "x-v1", "x-V1.2.3", "x-v1.", "x-iter3", "x-iter", "x-v-7B", "x-1.0", "1.0-x", "1.0", "2-3-4", "x-2-3", "x-2-y-3", "x-q4", "x-Q4_0", "x-Q4_K_M",
       "x-iq2_x", "x-q42", "x-f16", "x-BF16", "x-fp8", "x-bfp32", "x-chat", "chat-x", "x-Instruct-lora", "lora", "x-vision-7B-chat", "x y-7B", " x", "a/b", "/x", "a/",
       "./x-7B", "../x", "a/b/c-7B", "x_y-z_w", "x.y-7B", "$x-7B", "x-$", "it's-so", "a1b2c3", "ABC-def", "abcDef", "v1x-y", "1st-place", "x-7B-", "x-9" + 40 * "9" + "B",
       "straße-7B", "ärger-über", "Ärger", "привет-мир-7b", "模型-7B-聊天", "x-７B", "x-٣B", "x-7\u212a", "x-7\u212a1", "\u017fmall-\u017fmall", "\u0131nstruct-\u0131nstruct",
       "x-LORA\u0301", "ªb-º", "ⅷ-ⓐ", "ǆ-ǅ-Ǆ", "ΣΊΣΥΦΟΣ-ς", "e\u0301a-x", "x\u00a0y-7B", "a\u2003b", "😀-7B", "x-😀", "x-v１.２", "１-x"]

WORDS = ["Llama", "llama", "qwen2.5", "3", "3.1", "v0.3", "V2", "iter4", "7b", "7B", "1.5B", "1_6b", "70B", "8x7B", "A3B", "a22b", "405M", "560m", "7b1", "128k",
         "1M", "3T", "small", "mini", "Medium", "xl", "XXL", "chat", "Instruct", "vision", "LoRA", "hf", "it", "base", "Q8_0", "q4_k_m", "f16", "BF16", "2407", "dpo",
         "é", "", "x_y"]
SIZES = [0, 23068672, 135_000_000, 1_235_814_400, 6_738_415_616, 46_702_792_704, 671_026_419_200]


def cell(text):
    return r"\N" if text is None else text


def main():
    choose = random.Random(4)
    rows = [(name, size) for name in REAL for size in (0, 23068672, 6_738_415_616)] + list(itertools.product(ODD, (0, 6_738_415_616)))
    rows += [("-".join(choose.choice(WORDS) for _ in range(choose.randint(1, 6))), choose.choice(SIZES)) for _ in range(300)]
    # On both sides of the line between a size and a context length.
    rows += [("x-8K", n) for n in (1000, 4266, 4267, 4268, 63999, 64000, 64001)]
    # Of adapters the number is negative, and a model is not smaller than an eighth of it.
    rows += [(name, size) for name in REAL for size in (-23068672, -6_738_415_616)] + [(name, -1000) for name in ODD]
    rows += [("-".join(choose.choice(WORDS) for _ in range(choose.randint(1, 6))), -choose.choice(SIZES)) for _ in range(200)]
    rows += [("x-8K-lora", -n) for n in (63999, 64000, 64007, 64008, 64009)]
    for name, size in rows:
        parts = Metadata.get_model_id_components(name, size)
        full, organization, basename, finetune, version, label = parts
        print("\t".join([name, str(size), *map(cell, (full, organization, basename, finetune, version, label)), Metadata.id_to_title(full)]))


main()
