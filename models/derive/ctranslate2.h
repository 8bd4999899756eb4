/* How CTranslate2 names the modules of a Whisper model, where transformers has others, for both ways.
 *
 * Source: CTranslate2, python/ctranslate2/converters/transformers.py, WhisperLoader and BartLoader. */
#pragma once

enum { CTRANSLATE2_STACKED = 3 };

/* A module there, and the modules here that are stacked in it. */
struct ctranslate2_module {
    const char *there, *here[CTRANSLATE2_STACKED];
    const char *side; /* the only one that has it, "encoder" or "decoder"; NULL: both have it */
};

/* The modules of a layer, and those beside the layers; each ends with one without a name. */
extern const struct ctranslate2_module ctranslate2_of_layers[], ctranslate2_of_sides[];
