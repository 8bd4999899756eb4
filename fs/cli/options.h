/* Options of the -o kind: the same words for mount, ls, cat, cp, info and exec, so that all show the same tree.
 *
 * One table says name, argument, help and which field an option fills; parsing, --help, the man page and the shell
 * completions all come from it. To add one: a row in options.c, which names the field that it fills. */
#pragma once

#include "base/buffer.h"
#include "formats/checkpoint.h"
#include "fs/mount/session_options.h"
#include "fs/tree/content_options.h"
#include "fs/tree/tree.h"
#include "models/derive/merge.h"

#include <sys/types.h>

struct mount_options {
    struct session_options session; /* its source may be NULL: that of the checkpoint */
    bool nonempty;
    const char *log; /* path, or NULL */
    uid_t uid;
    gid_t gid;    /* or NO_GROUP */
    mode_t umask; /* taken from the modes of files and directories */
};

struct option_row;

/* The options that change bytes, as they were given: request.h. */
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
    bool has_bad_file; /* what could not be parsed is in a file: bad input rather than misuse */
    struct open_options open;
    struct content_options content;
    struct lora_requests loras;
    bool for_helper;   /* mount(8) hands the words on, and its own with them */
    bool only_opening; /* other options than those that say how a source is opened are errors */
    struct mount_options mount;
};

/* Which commas belong to a value. */
enum commas {
    COMMAS_END,         /* none */
    COMMAS_AFTER_COLON, /* all, to the end of the -o, where it has a ':' */
    COMMAS_BEFORE_DIGITS,
};

struct option_row {
    const char *name;     /* a user may write '-' for '_' and the other way round */
    const char *argument; /* what comes after '='; NULL: nothing may */
    const char *help;
    bool for_mounts; /* accepted everywhere, but means something only for what is mounted */
    /* Fills the field; the error says what is wrong with the value, and gets the option's name before it. What it makes
     * is in the arena, where `value` is, too. */
    bool (*parse)(void *field, const char *value, struct arena *arena, struct error *error);
    size_t field; /* its place in struct options */
    enum commas commas;
    bool is_transport; /* it says how bytes are fetched, and changes none */
    bool reads_file;
    bool names_input;                     /* the value is of files that bytes are made from */
    const char *words;                    /* all values, separated by spaces; NULL: see `values` */
    void (*values)(struct buffer *words); /* appends all values, separated by spaces; NULL: too many to list */
};

/* Ended by a row without a name. */
extern const struct option_row option_rows[];

/* Reports whether the option affects how a source is opened, not only how it is shown. */
bool option_is_for_opening(const struct option_row *row);

/* The row of an option as it may be typed, or NULL. */
const struct option_row *option_find(const char *name);

/* The defaults: owned by the user who runs us. */
void options_init(struct options *options);
void options_free(struct options *options);

/* Parses the argument of one -o, "word,word=value,...": a comma in a value is written "\,". A word that is not an
 * option is an error that names it. Words of mount(8) that change nothing here (ro, defaults, noauto, _netdev, x-...)
 * are ignored, those that cannot be had (rw) refused, but for a helper of mount(8). */
bool options_parse(struct options *options, const char *words, struct error *error);
