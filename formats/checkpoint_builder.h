/* Checkpoints while they are made: by the readers of formats, and by derivations (models/derive/). Everybody else holds
 * a finished checkpoint, which is const. */
#pragma once

#include "formats/checkpoint.h"

/* An empty checkpoint, with its arena and an empty set of tensors. */
struct checkpoint *checkpoint_new(const char *path);

/* A checkpoint that is like `origin` in everything, to be changed before others see it. It takes the origin, keeps it
 * as BASE_ORIGIN, and shares with it what is not changed: tensors, sources, values, notes, components. What is parsed
 * and made once (documents.h, checkpoint_once()) is its own. */
struct checkpoint *checkpoint_derive(const struct checkpoint *origin);

/* Seals the tensors, which nobody can change after that; once they are sealed, does nothing. */
bool checkpoint_seal(struct checkpoint *checkpoint, struct error *error);

/* Takes another checkpoint, and closes it after this one. */
void checkpoint_keep(struct checkpoint *checkpoint, enum base_role role, const struct checkpoint *other);

/* Takes another checkpoint, like checkpoint_keep(), of whose tensors those here are made: its files are guides here. */
void checkpoint_use(struct checkpoint *checkpoint, enum base_role role, const struct checkpoint *other);

void checkpoint_add_source(struct checkpoint *checkpoint, struct source *source); /* takes the source */

/* Takes the source of a small file that the tensors or the side files were made by, other than weights and side files.
 */
void checkpoint_add_guide(struct checkpoint *checkpoint, struct source *source);

/* Adds a text to the metadata; of a key that is there already the first value stays. */
void checkpoint_add_metadata(struct checkpoint *checkpoint, const char *key, const char *value);

void checkpoint_add_side_file(struct checkpoint *checkpoint, const char *name, struct source *source); /* takes it */
void checkpoint_hide_file(struct checkpoint *checkpoint, const char *name, const char *reason);

/* Adds a side file that is not shown. Takes the source. */
void checkpoint_add_hidden_side_file(struct checkpoint *checkpoint, const char *name, struct source *source,
                                     const char *reason);

/* Removes a side file, and lists its name as hidden. */
void checkpoint_hide_side_file(struct checkpoint *checkpoint, const char *name, const char *reason);

/* Gives a side file another text; the file that the text was made of becomes a guide. */
void checkpoint_change_side_file(struct checkpoint *checkpoint, const char *name, const char *text, size_t length);
