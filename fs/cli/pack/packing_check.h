/* Reading back what was written. */
#pragma once

#include "sources/archive/pack.h"

/* Decodes every tensor of a new pack, several at once, and compares its SHA-256. Errors name `archive`. */
bool packing_check(struct pack *pack, const char *archive, struct error *error);

/* Reports whether the bytes of a blob have that SHA-256. */
bool packing_check_blob(const struct source *blob, const struct digest *digest);
