#!/usr/bin/env python3
"""generate.py DIRECTORY PROMPT: what transformers makes of a prompt, of any directory that from_pretrained() opens."""
import sys

from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
tokens = model.generate(**tokenizer(sys.argv[2], return_tensors="pt"), max_new_tokens=24, do_sample=False)
print(tokenizer.decode(tokens[0], skip_special_tokens=True))
