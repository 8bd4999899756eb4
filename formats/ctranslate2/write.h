/* Writing CTranslate2's model.bin, as its converters do: the format of read.c in version 6.
 *
 * An artifact's metadata is "specification" and "revision", texts as the reader has them, and then a text for each
 * alias, whose key is its name, and which names a tensor. Tensors and aliases are written in their order, which is that
 * of their names. Fails if a tensor has a type that CTranslate2 lacks, or 4 GiB or more.
 *
 * Source: CTranslate2, python/ctranslate2/specs/model_spec.py, _serialize(). */
#pragma once

#include "formats/artifact.h"

extern const struct container ctranslate2_container;
