/* What the families of Mistral's own format share. */
#pragma once

#include "models/families/family.h"

extern const struct key_row mistral_format_keys[]; /* yarn, and attention scaled by position: after the others */
