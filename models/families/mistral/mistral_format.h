/* Shared by the families of Mistral's own format. */
#pragma once

#include "models/families/shared.h"

extern const struct key_row mistral_format_keys[]; /* YaRN, and attention scaled by position: after all others */
