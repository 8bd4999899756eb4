/* Model families: what the converter knows of each architecture, as tables.
 *
 * A family is one file in this folder exporting `const struct arch x_arch`, and a row in archs.c. Its rows are data that can be
 * read in both directions: the name map and the layouts turn Hugging Face tensors into GGUF's and back. What needs code is a
 * named hook in the family's own file; adding a family never edits another's. */
#pragma once

#include "formats/gguf/model.h"
#include "formats/gguf/vocab.h"
