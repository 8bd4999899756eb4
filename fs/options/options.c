#include "fs/options/options.h"

#include "base/text.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Words of mount(8), fstab and FUSE without effect: a mount is read-only, has no devices, links and set-user-ID
 * programs, checks permissions, and keeps no access times. */
/* clang-format off */
static const char *const ignored_words[] = {
    "defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group", "nofail", "_netdev", "silent", "loud",
    "ro", "nodev", "nosuid", "exec", "default_permissions", "nosymfollow", "sync", "async", "dirsync",
    "atime", "noatime", "relatime", "norelatime", "strictatime", "diratime", "nodiratime", "lazytime", "nolazytime",
    NULL,
};
/* clang-format on */

/* Words that ask for an impossible mount. mount(8) and mount.fuse3 add some that the user did not write. */
static const struct refused_word {
    const char *word, *reason;
    bool is_never_added; /* by mount(8) itself: the user gave it */
} refused_words[] = {
    {"remount", "the options of a mount do not change; 'wfs mount --replace' mounts it anew", .is_never_added = true},
    {"rw", "a mount is read-only; allow_rdwr lets programs open its files for reading and writing"},
    {"suid", "mounts do not support set-user-ID programs"},
    {"dev", "mounts do not support devices"},
};

static bool is_ignored(const char *word)
{
    if (strncasecmp(word, "x-", 2) == 0 || text_starts_with(word, "comment="))
        return true;
    for (const char *const *ignored = ignored_words; *ignored != NULL; ignored++)
        if (strcmp(word, *ignored) == 0)
            return true;
    return false;
}

/* Returns the row of a word that asks for an impossible mount; NULL for all other words. */
static const struct refused_word *refused_word(const char *word)
{
    for (size_t i = 0; i < sizeof refused_words / sizeof *refused_words; i++)
        if (strcmp(word, refused_words[i].word) == 0)
            return &refused_words[i];
    return NULL;
}

void options_init(struct options *options)
{
    *options = (struct options){.arena = arena_new()};
    options->mount.uid = getuid();
    options->mount.gid = (gid_t)NO_GROUP;
}

void options_free(struct options *options)
{
    arena_free(options->arena);
}

static bool same_name(const char *row, const char *word, size_t length)
{
    if (strlen(row) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (row[i] != word[i] && !(strchr("-_", row[i]) != NULL && strchr("-_", word[i]) != NULL))
            return false;
    return true;
}

const struct option_row *option_find(const char *name)
{
    for (const struct option_row *row = option_rows; row->name != NULL; row++)
        if (same_name(row->name, name, strlen(name)))
            return row;
    return NULL;
}

static bool unknown_option(const char *name, struct error *error)
{
    struct text_guess guess = {.typed = name};
    char question[TEXT_QUESTION];
    for (const struct option_row *row = option_rows; row->name != NULL; row++)
        text_guess_try(&guess, row->name);
    return error_set(error, "unknown option '%s'%s", name,
                     guess.best != NULL ? text_guess_question(&guess, question) : "; wfs mount --help lists them");
}

bool option_is_for_opening(const struct option_row *row)
{
    size_t open = offsetof(struct options, open), recipe = offsetof(struct options, recipe);
    return (row->field >= open && row->field < open + sizeof(struct open_options)) ||
           (row->field >= recipe && row->field < recipe + sizeof(struct recipe_options));
}

static bool is_for_other_commands(const struct option_row *row, struct error *error)
{
    struct buffer names = {0};
    for (const struct option_row *other = option_rows; other->name != NULL; other++)
        if (option_is_for_opening(other))
            buffer_printf(&names, "%s%s", names.length != 0 ? ", " : "", other->name);
    error_set(error, "option %s has no effect on this command; it takes %.*s", row->name, (int)names.length,
              (const char *)names.bytes);
    buffer_free(&names);
    return false;
}

/* Reports whether parsing an option's value reads a file. */
static bool is_delayed(const struct option_row *row)
{
    return row->reads_file || row->finds_in != NULL;
}

static bool take_value(struct options *options, const struct option_row *row, const char *value, struct error *error)
{
    if (row->parse((char *)options + row->field, value, options->arena, error))
        return true;
    options->has_bad_file = row->reads_file;
    return error_prefix(error, "option %s", row->name);
}

static bool set_word(struct options *options, const char *word, struct error *error)
{
    size_t length = strcspn(word, "=");
    const char *value = word[length] == '=' ? word + length + 1 : NULL;
    const struct refused_word *refused = refused_word(word);
    if (is_ignored(word) || (refused != NULL && options->for_helper && !refused->is_never_added))
        return true;
    if (refused != NULL)
        return error_set(error, "option %s: %s", word, refused->reason);
    const char *name = arena_strndup(options->arena, word, length);
    const struct option_row *row = option_find(name);
    if (row == NULL)
        return unknown_option(name, error);
    if (options->only_opening && !option_is_for_opening(row))
        return is_for_other_commands(row, error);
    if (options->for_library && row->group == MOUNT_OPTION)
        return error_set(error, "option %s has an effect only on a mount", row->name);
    if (row->argument == NULL && value != NULL)
        return error_set(error, "option %s takes no value", row->name);
    if (row->argument != NULL && (value == NULL || *value == '\0'))
        return error_set(error, "option %s needs a value: %s", row->name, row->argument);
    if (!(options->delays_files && is_delayed(row)) && !take_value(options, row, value, error))
        return false;
    if (row->group != MOUNT_OPTION && !row->is_transport)
        request_add(options, row, value);
    return true;
}

bool options_read_files(struct options *options, struct error *error)
{
    for (size_t i = 0; options->delays_files && i < options->asked.count; i++) {
        const struct asked_option *asked = &options->asked.items[i];
        if (is_delayed(asked->row) && !take_value(options, asked->row, asked->value, error))
            return false;
    }
    if (options->delays_files)
        request_finish(options);
    options->delays_files = false;
    return true;
}

/* Reports whether the comma after the first `length` bytes of a word, and before `after`, belongs to the word. */
static bool takes_comma(const char *word, size_t length, const char *after)
{
    size_t name = strcspn(word, "=");
    for (const struct option_row *row = option_rows; row->name != NULL; row++) {
        if (row->commas == COMMAS_END || name >= length || !same_name(row->name, word, name))
            continue;
        if (row->commas == COMMAS_AFTER_COLON)
            return memchr(word, ':', length) != NULL;
        if (row->commas == COMMAS_IN_QUOTES)
            return word[name + 1] == '"' && memchr(word + name + 2, '"', length - name - 2) == NULL;
        return *after >= '0' && *after <= '9';
    }
    return false;
}

bool options_parse(struct options *options, const char *words, struct error *error)
{
    char *word = arena_alloc(options->arena, strlen(words) + 1), *end = word;
    for (const char *from = words;; from++) {
        if (*from == '\\' && from[1] == ',') {
            *end++ = *++from;
        } else if (*from == ',' && takes_comma(word, (size_t)(end - word), from + 1)) {
            *end++ = *from;
        } else if (*from != ',' && *from != '\0') {
            *end++ = *from;
        } else {
            *end++ = '\0';
            if (*word != '\0' && !set_word(options, word, error))
                return false;
            word = end;
            if (*from == '\0') {
                if (!options->delays_files)
                    request_finish(options);
                return true;
            }
        }
    }
}

bool options_parse_list(struct options *options, const char *const *words, struct error *error)
{
    for (; words != NULL && *words != NULL; words++)
        if (!set_word(options, arena_strdup(options->arena, *words), error))
            return false;
    request_finish(options);
    return true;
}
