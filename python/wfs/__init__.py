"""wfs: any model checkpoint as files and tensors.

    import wfs

    model = wfs.open("Qwen/Qwen2.5-0.5B", lora="adapter")
    model.tensors["model.norm.weight"].numpy("f32")
    model.open("gguf/model-Q4_K_M.gguf").read(4)

docs/python.md is the manual.
"""
from __future__ import annotations

from typing import Any, Callable, Optional

from ._library import WfsError, lib, version as _version
from ._model import FileInfo, Files, Model, PathLike, RawFile, architectures, compare, compare_attestation, diff
from ._safe_open import safe_open
from ._tensors import Tensor, Tensors

__all__ = ["FileInfo", "Files", "Model", "RawFile", "Tensor", "Tensors", "WfsError", "allow", "architectures", "compare", "compare_attestation", "diff", "open", "program", "safe_open"]
__version__ = _version()


def open(source: PathLike, *, threads: int = 0, log: Optional[Callable[[str], None]] = None, **options: Any) -> Model:
    """Opens a model.

    source    a file, a directory, ORG/NAME of the local hub cache, or a URL: hf://, https://, s3://
    threads   threads that help with reads; 0: one for each core, shared by all models
    log       takes messages that belong to no failure; None: logging.getLogger("wfs").warning
    options   those of `wfs`, as keywords: lora="adapter", dtype="f16", follow_links=True; a list repeats an option
    """
    return Model(source, threads, log, **options)


def allow(*, sigbus: bool = False, descriptors: bool = False, allocator: bool = False) -> None:
    """Allows changes to the whole process, which wfs otherwise leaves as it is. Call it before opening a model.

    sigbus        handle SIGBUS, so that columns of mapped matrices are read faster
    descriptors   raise the limit of open files when a model has more files
    allocator     return memory to the system after large plans
    """
    lib.wfs_allow(sigbus | descriptors << 1 | allocator << 2)


def program() -> str:
    """The path of the `wfs` program that came with this package."""
    from .__main__ import find_program
    return find_program()
