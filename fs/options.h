/* Mount options: the -o words, the same for mount, ls, cat, cp, info and exec.
 *
 * One table says name, argument, help and what the option sets; parsing, --help, the man page and the shell completions all
 * come from it. */
#pragma once

#include "formats/checkpoint.h"
#include "fs/tree.h"

#include <sys/types.h>

struct options {
    struct arena *arena; /* holds the texts */
    struct open_options open;
    struct tree_options tree;

    /* Only for mounts. */
    bool foreground, replace, allow_other, verbose;
    uid_t uid;
    gid_t gid;
    mode_t umask; /* default 0222: all files 0444, directories 0555 */
};

void options_init(struct options *options);
void options_free(struct options *options);

/* Parses one -o argument, "word,word=value,...": a comma in a value is written "\,". Unknown words are an error that names
 * them; what fstab and mount(8) pass along (ro, defaults, noauto, user, nofail, _netdev, x-...) is ignored. */
bool options_parse(struct options *options, const char *words, struct error *error);

/* Checks what can only be checked when all are known. */
bool options_check(const struct options *options, struct error *error);
