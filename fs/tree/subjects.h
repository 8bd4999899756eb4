/* The paths that notes are about: models/ and formats/ know the subject, the tree knows its files. */
#pragma once

#include "base/arena.h"
#include "formats/checkpoint.h"

/* Returns the prefix of notes on this subject: "model.gguf: "; "" for the source. */
const char *subject_paths(enum subject subject);

/* Returns a note as a line in the arena: "model.gguf: no config.json". */
const char *note_line(struct note note, struct arena *arena);
