/* CACHEDIR.TAG, by which backup programs know directories that can be made again: tar --exclude-caches, restic
 * --exclude-caches, borg --exclude-caches and others then skip the whole mount. A library has it always, the mount of a
 * model where it is asked for: a backup of that mount may be wanted. */
#pragma once

#include "fs/tree/tree.h"

void cache_tag_add(struct tree *tree);
