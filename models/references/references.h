/* References: the released builds of other tools that files agree with, to the byte.
 *
 * A user chooses a build with an option such as llama.cpp=b10470; the choice is part of a request, and travels as an
 * argument. What changed between builds is a table of rules (changes.c). Code that depends on a rule asks follows().
 *
 * A rule was found by looking at some builds: it is absent from one build and present in a later one. A build between
 * these two is unknown, and is refused. To move a reference, see scripts/upstream. */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>

/* The rules of llama.cpp that changed. Each has a row in changes.c, in this order. */
enum upstream_change {
    CHANGE_NONE, /* for rows of tables that hold for every build */
    REPETITION_PENALTY,
    NEMOTRON_LAYER_TYPES,
    ROWS_BECOME_F16,
    RECURRENT_LAYERS,
    FIRST_POST_PROCESSOR,
    WEIGHTS_ONLY_NVFP4,
    CLASSIFIER_POOLING,
    RESIZE_ALGORITHM,
    PLAMO_YARN,
    PLAMO_ADDS,
    PLAMO_MODELS,
    POOLING_OF_EMBEDDING_CONFIG,
    NAMED_LAYER_EMBEDDING,
    CLASSIFIER_ACTIVATION,
    ROUTER_SCORE_FUNC,
    LING_SHARED_EXPERTS,
    GEMMA4_WITHOUT_EXPERTS,
    NOMIC_ACTIVATION,
    HUNYUAN_DRAFTS,
    MIMO_MXFP4,
    MIMO_SCALES,
    MIXED_NVFP4,
    LORA_OF_DELTA_NET,
    DFLASH_KEYS,
    DFLASH_CAUSAL,
    DFLASH_ALL_WINDOWS,
    DFLASH_ROTARY,
    MASK_EMBEDDING,
    MTP_OF_GLM45,
    MTP_OF_MIMO,
    TTS_WIDE_FEED_FORWARD,
    /* the classes and pre-tokenizers that appeared by a build: family.since, pre_hash.since */
    CLASSES_10531,
    CLASSES_10593,
    CLASSES_10662,
    CLASSES_10773,
    CLASSES_10816,
    CLASSES_10830,
    CLASSES_11028,
    CLASSES_11076,
    CLASSES_11138,
    CLASSES_11173,
    CLASSES_11292,
    CLASSES_11368,
    CLASSES_11382,
    CLASSES_11549,
    N_CHANGES
};

/* The options of a request for llama.cpp's converter; zeroed: none. */
struct converter_options {
    bool without_mtp;   /* --no-mtp, for classes that have it */
    bool fuses_qkv;     /* --fuse-qkv */
    bool fuses_gate_up; /* --fuse-gate-up-exps */
    bool fp8_as_q8;     /* --fp8-as-q8 */
    bool dense_modules; /* --sentence-transformers-dense-modules */
};

/* The builds of a request, and where it asks for something else than what these write by default; zeroed, or as a NULL
 * pointer: the newest of each tool, to the byte. */
struct references {
    unsigned llama_cpp; /* 10470: b10470 */
    /* a tokenizer that splits text as transformers does, where the converter writes one that does not */
    bool exact_tokenizer;
    struct converter_options converter;
};

struct change_row {
    const char *name;
    unsigned absent, since; /* the last build looked at without the rule, and the first one with it */
    const char *seen;       /* for users: what a build with the rule does */
};

extern const struct change_row change_rows[N_CHANGES];

/* Reports whether files follow the rule of a change. True for CHANGE_NONE. */
bool follows(const struct references *references, enum upstream_change change);

/* Like follows(), for a model that the converter refused before the change: then the error says so. */
bool follows_or_refuse(const struct references *references, enum upstream_change change, struct error *error);

/* A tool, and the version that files agree with. */
struct reference_tool {
    const char *name;    /* "llama.cpp" */
    const char *version; /* "b11549": the newest known */
    const char *what;    /* for users: what follows it */
    /* the paths of the files that follow it, separated by spaces, a directory with a '/' at its end; NULL: none */
    const char *paths;
};

/* Ends with a row without a name. The first is llama.cpp. */
extern const struct reference_tool reference_tools[];

/* Builds of llama.cpp, from `first` to `last`, between which no rule changes. */
struct build_range {
    unsigned first, last;
};

enum { MOST_BUILD_RANGES = 2 * N_CHANGES };

/* Fills in the ranges of known builds, oldest first. Two neighbouring ranges with all builds between them known differ
 * in a rule. Returns their number. */
size_t known_builds(struct build_range ranges[MOST_BUILD_RANGES]);

/* Parses a build of llama.cpp, such as "b10470". Fails if the build is unknown, with an error that lists the known
 * ones. */
bool reference_parse(const char *text, struct references *ret_references, struct error *error);

/* Returns the tool that a virtual file follows, by its path in the tree: "gguf/model-F16.gguf"; NULL: none. For the
 * GGUF files of a diffusion model, `is_diffusion` is true. */
const struct reference_tool *reference_of_path(const char *path, bool is_diffusion);

/* Returns the version that a tool has in a request, with static or the arena's memory: "b11549". */
const char *reference_version(const struct reference_tool *tool, const struct references *references,
                              struct arena *arena);

/* Returns the chosen build of llama.cpp; never 0. */
unsigned reference_build(const struct references *references);
