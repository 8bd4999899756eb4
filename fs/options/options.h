/* The options after -o: the same words for all commands and for the library, so that all show the same tree.
 *
 * One table has the name, argument, help and field of each option; parsing, --help, the man page and the shell
 * completions all use it. A new option takes a row in option_rows.c. */
#pragma once

#include "base/buffer.h"
#include "formats/checkpoint.h"
#include "fs/mount/session_options.h"
#include "fs/tree/content_options.h"
#include "fs/tree/tree.h"
#include "models/derive/derive.h"

#include <sys/types.h>

struct mount_options {
    struct session_options session; /* its source may be NULL: the checkpoint's path */
    bool nonempty;
    struct only only; /* what is listed */
    const char *log;  /* path, or NULL */
    uid_t uid;
    gid_t gid;    /* or NO_GROUP */
    mode_t umask; /* bits that files and directories lack */
};

struct option_row;

/* The options that may change bytes, as they were given (request.c). */
struct asked_options {
    const struct asked_option {
        const struct option_row *row;
        const char *value; /* NULL: none */
    } * items;
    size_t count;
};

struct options {
    struct arena *arena; /* holds the texts */
    struct asked_options asked;
    bool has_bad_file; /* parsing failed because of a file: bad input, not misuse */
    struct open_options open;
    struct recipe_options recipe;
    struct content_options content;
    struct lora_requests loras;
    bool library;             /* the source is a directory of models */
    const char *architecture; /* the class to treat the source as; NULL: its own */
    const char *whisper;      /* path of the tokens of OpenAI's Whisper models; NULL: none */
    bool for_helper;          /* the words come from mount(8), which adds its own */
    bool for_library;         /* options for mounts are errors */
    bool only_opening;        /* options that are not for opening a source are errors */
    bool delays_files;        /* files that options name are read by options_read_files() */
    struct mount_options mount;
};

/* The commas that belong to a value. */
enum commas {
    COMMAS_END,           /* none */
    COMMAS_AFTER_COLON,   /* all up to the end of the -o, once the value has a ':' */
    COMMAS_BEFORE_DIGITS, /* those before a digit */
    COMMAS_IN_QUOTES,     /* those inside "..." */
};

/* What an option changes, in the order in which help lists options. */
enum option_group {
    SOURCE_OPTION,    /* how a source is read */
    MERGE_OPTION,     /* which weights are merged */
    GGUF_OPTION,      /* all GGUF files */
    QUANTIZED_OPTION, /* quantized types and files */
    ENGINE_OPTION,    /* model.safetensors and the directories of engines */
    LIBRARY_OPTION,   /* what is listed */
    STORE_OPTION,     /* what is fetched and kept */
    MOUNT_OPTION,     /* mounts only */
    N_OPTION_GROUPS,
};

struct option_row {
    const char *name;     /* a user may write '-' for '_' and the other way round */
    const char *argument; /* the value after '='; NULL: none may follow */
    const char *help;
    enum option_group group;
    /* Fills in the field. The error states what is wrong with the value; the caller adds the option's name. Results
     * live in the arena, as `value` does. */
    bool (*parse)(void *field, const char *value, struct arena *arena, struct error *error);
    size_t field; /* its offset in struct options */
    enum commas commas;
    bool is_common;                                      /* in the help of each command that takes it */
    bool is_transport;                                   /* affects how bytes are fetched or kept, but changes none */
    bool reads_file;                                     /* that the value names; a failure is bad input, not misuse */
    const char *const *(*finds_in)(struct arena *arena); /* the directories of files that the value names by a name of
                                                            wfs's own, such as a layout's; NULL: it names none */
    bool names_input;                                    /* the value names files that bytes are computed from */
    const char *words;                                   /* all values, separated by spaces; NULL: see `values` */
    void (*values)(struct buffer *words); /* appends all values, separated by spaces; NULL: too many to list */
};

/* Ends with a row without a name. */
extern const struct option_row option_rows[];

/* Reports whether the option affects how a source is opened, not only how it is shown. */
bool option_is_for_opening(const struct option_row *row);

/* Returns the row of an option as a user may write it, or NULL. */
const struct option_row *option_find(const char *name);

/* Sets the defaults: files belong to this user. */
void options_init(struct options *options);
void options_free(struct options *options);

/* Parses the argument of one -o, "word,word=value,...", where "\," is a comma in a value. An unknown word is an error
 * that names it. Ignores words of mount(8) without an effect here (ro, defaults, noauto, _netdev, x-...), and refuses
 * words that ask for an impossible mount (rw, remount). A helper of mount(8) ignores those that mount(8) adds (rw). */
bool options_parse(struct options *options, const char *words, struct error *error);

/* Reads the files that options named, if `delays_files` was set while they were parsed, so that a process can first
 * give its rights away. */
bool options_read_files(struct options *options, struct error *error);

/* Like options_parse(), for a list of words, NULL at its end, in which commas have no meaning: "name=a,b". The list may
 * be NULL. */
bool options_parse_list(struct options *options, const char *const *words, struct error *error);

/* The options of a request as one text, equal for equal requests (fs/tree/identity.h).
 *
 * Each option that affects how a source is opened or shown is a line, in the order of the table; repeated options keep
 * their order, which counts. The files that an option names follow its line, with sizes and times. Options for mounts
 * and for fetching change no bytes, and are left out. */

/* Adds an option that has been parsed; `value` must live as long as the options. */
void request_add(struct options *options, const struct option_row *row, const char *value);

/* Sets options->content.file_request from the options added so far. */
void request_finish(struct options *options);

/* Opens the single files that options name, such as an importance matrix; folders are left out. The sources are closed
 * with the arena. */
struct source *const *request_open_files(const struct options *options, struct arena *arena, size_t *ret_count);
