#!/usr/bin/env python3
"""llama.py MODEL.gguf PROMPT: what llama.cpp makes of a prompt. The model is mapped, as a file on disk would be."""
import sys

from llama_cpp import Llama

llama = Llama(model_path=sys.argv[1], use_mmap=True, verbose=False)
print(llama(sys.argv[2], max_tokens=24, temperature=0.0)["choices"][0]["text"])
