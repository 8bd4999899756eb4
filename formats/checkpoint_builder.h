/* Checkpoints under construction: for readers of formats and derivations (models/derive/). All other code holds
 * finished checkpoints, which are const. */
#pragma once

#include "formats/checkpoint.h"

/* Makes an empty checkpoint, with its arena and an empty tensor set. */
struct checkpoint *checkpoint_new(const char *path);

/* Makes a checkpoint equal to `origin`, for the caller to change before other code sees it. Takes the origin, keeps it
 * as BASE_ORIGIN, and shares with it all that does not change: tensors, sources, values, notes, components. Parsed
 * documents (documents.h) and objects of checkpoint_once() are not shared. */
struct checkpoint *checkpoint_derive(const struct checkpoint *origin);

/* Seals the tensor set, which cannot change after that; sealing again does nothing. Fails on a duplicate name. */
bool checkpoint_seal(struct checkpoint *checkpoint, struct error *error);

/* Records that tensors of the model are missing: adds a note with the reason, and unless the user accepts a part,
 * checkpoint.incomplete, so that no file is made of all weights. The first reason stays. */
void checkpoint_lacks(struct checkpoint *checkpoint, const struct open_options *options, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Records that the tensors are known not to be those of the model: adds a note with the reason, and sets
 * checkpoint.incomplete, even if the user accepts a part. */
void checkpoint_withhold(struct checkpoint *checkpoint, const char *reason);

/* Takes another checkpoint, which is closed after this one. */
void checkpoint_keep(struct checkpoint *checkpoint, enum base_role role, const struct checkpoint *other);

/* Like checkpoint_keep(), for a checkpoint whose tensors this one uses: its files become guides of this one, which is
 * incomplete if the other is. */
void checkpoint_use(struct checkpoint *checkpoint, enum base_role role, const struct checkpoint *other);

/* Like checkpoint_use(), but the other's weights files become weights files of this one, each file once. */
void checkpoint_join(struct checkpoint *checkpoint, enum base_role role, const struct checkpoint *other);

/* List a source or a side file of a kept checkpoint as a guide, or as a side file of this one, too: in place of its own
 * side file of that name. */
void checkpoint_share_guide(struct checkpoint *checkpoint, struct source *source);
void checkpoint_share_side_file(struct checkpoint *checkpoint, const struct side_file *file);

void checkpoint_add_source(struct checkpoint *checkpoint, struct source *source); /* takes the source */

/* Takes the source of a small file that determines the tensors or side files, but is neither. */
void checkpoint_add_guide(struct checkpoint *checkpoint, struct source *source);

/* Adds a text to the metadata. If the key is present, its first value stays; a different value is recorded in
 * `differing`. */
void checkpoint_add_metadata(struct checkpoint *checkpoint, const char *key, const char *value);

void checkpoint_add_side_file(struct checkpoint *checkpoint, const char *name, struct source *source); /* takes it */
void checkpoint_hide_file(struct checkpoint *checkpoint, const char *name, const char *reason);

/* Adds a side file that is not shown (side_file.hidden). Takes the source. `reason` is not copied. */
void checkpoint_add_hidden_side_file(struct checkpoint *checkpoint, const char *name, struct source *source,
                                     const char *reason);

/* Removes a side file, which must exist, and lists its name as hidden. `reason` is not copied. */
void checkpoint_hide_side_file(struct checkpoint *checkpoint, const char *name, const char *reason);

/* Replaces the contents of a side file, which must exist, by a text; the file that the text was made from becomes a
 * guide. */
void checkpoint_change_side_file(struct checkpoint *checkpoint, const char *name, const char *text, size_t length);
