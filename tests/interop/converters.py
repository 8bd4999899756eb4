"""Runs the converters of llama.cpp's builds, each in a child of one process that has imported what they share: starting Python, torch and
transformers anew takes longer than all else.

    from converters import convert
    failure = convert(FOLDER, MODEL, "--outfile", OUT)

As a program, reads lines of JSON, each a list of such arguments, and answers each with a line: null, or the failure.
"""
import contextlib
import json
import os
import pathlib
import runpy
import sys
import tempfile

PRE = "CONVERTERS_PRE_TOKENIZER"  # the name that converters give to all tokenizers: for those that no real model has

WITHOUT_VOCABULARY = "CONVERTERS_WITHOUT_VOCABULARY"  # set: files have no keys of a tokenizer


def leave_out_vocabulary():
    from conversion.base import TextModel

    prepare_metadata = TextModel.prepare_metadata

    def prepare_without(self, *words, **named):
        self.set_vocab = lambda: None
        return prepare_metadata(self, *words, **named)

    TextModel.prepare_metadata = prepare_without


def prepare():
    """Imports what all builds import from other packages. Returns the reason if that fails."""
    try:
        import numpy  # noqa: F401
        import sentencepiece  # noqa: F401
        import torch
        from transformers import AutoConfig, AutoTokenizer  # noqa: F401
    except ImportError as error:
        return str(error)
    torch.set_num_threads(1)  # threads do not survive fork()
    return None


def run(folder, script, arguments, before):
    sys.path[:0] = [str(folder / "gguf-py"), str(folder)]
    sys.argv = [script, *arguments]
    if PRE in os.environ:
        from conversion.base import TextModel

        TextModel.get_vocab_base_pre = lambda self, tokenizer: os.environ[PRE]
    if WITHOUT_VOCABULARY in os.environ:
        leave_out_vocabulary()
    if before is not None:
        before()
    runpy.run_path(str(folder / script), run_name="__main__")


def child(folder, script, arguments, before, messages):
    os.dup2(messages.fileno(), 1)
    os.dup2(messages.fileno(), 2)
    status = 1
    try:
        run(folder, script, arguments, before)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else end.code is not None
    except BaseException as error:  # noqa: BLE001, which the parent reports
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(status)


def convert(folder, *arguments, script="convert_hf_to_gguf.py", before=None):
    """Runs the script of a build with arguments, after before(), which can change its modules. Returns None, or the last line of its messages."""
    with tempfile.TemporaryFile("w+") as messages:
        process = os.fork()
        if process == 0:
            child(pathlib.Path(folder), script, [str(argument) for argument in arguments], before, messages)
        _, status = os.waitpid(process, 0)
        if status == 0:
            return None
        messages.seek(0)
        return (messages.read().strip().splitlines() or ["no message"])[-1]


def main():
    reason = prepare()
    if reason is not None:
        sys.exit(reason)
    for line in sys.stdin:
        print(json.dumps(convert(*json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
