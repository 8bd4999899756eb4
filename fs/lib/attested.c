#include "fs/lib/attestation.h"

#include "fs/lib/lib.h"

#include <string.h>

/* Reports whether the user has given the option. */
static bool is_given(const struct options *options, const struct option_row *row)
{
    for (size_t i = 0; i < options->asked.count; i++)
        if (options->asked.items[i].row == row)
            return true;
    return false;
}

/* Applies an option of the statement. A statement may come from anyone: what would open files must come from the user.
 */
static bool apply(struct options *options, const struct options *given, const char *text, struct error *error)
{
    size_t length = strcspn(text, "=");
    char *words = arena_alloc(options->arena, 2 * strlen(text) + 1), *end = words;
    const struct option_row *row = option_find(arena_strndup(options->arena, text, length));
    if (row == NULL || row->group == MOUNT_OPTION || row->is_transport)
        return error_set(error, "unknown option '%s'", text);
    if (is_given(given, row))
        return true;
    if (row->names_input || strcmp(row->name, "follow-links") == 0)
        return error_set(error, "it was made with -o %s; give this option with your own file", text);
    for (; *text != '\0'; text++) {
        if (*text == ',')
            *end++ = '\\';
        *end++ = *text;
    }
    *end = '\0';
    return options_parse(options, words, error);
}

/* Returns the user's options with those of the statement; its model's name counts unless the user gives one. */
static struct options *with_options(const struct options *given, const struct attestation *stated, struct error *error)
{
    struct options *options = arena_copy(given->arena, given, sizeof *options);
    for (size_t i = 0; i < stated->n_options; i++)
        if (!apply(options, given, stated->options[i], error))
            return NULL;
    if (options->content.request.references.llama_cpp == 0 && stated->llama_cpp != NULL &&
        !apply(options, given, arena_printf(given->arena, "llama.cpp=%s", stated->llama_cpp), error))
        return NULL;
    if (options->open.name == NULL)
        options->open.name = stated->model;
    return options;
}

/* Makes the statement again. A path that does not exist any more is a subject that is missing. */
static bool make_again(const struct attestation *stated, struct tree *tree, const struct options *options,
                       struct arena *arena, struct attestation *ret_made, struct error *error)
{
    struct found_list files = {0};
    struct error unused;
    for (size_t i = 0; i < stated->n_subjects; i++) {
        struct node_attributes attributes;
        if (tree_walk(tree, stated->subjects[i].name, &attributes, &unused) && !attributes.directory)
            found_add(&files, stated->subjects[i].name, &attributes);
    }
    bool made = attestation_make(tree, &files, options, arena, ret_made, error);
    found_free(&files);
    return made;
}

bool attested_read(const char *path, const struct options *options, struct attested *ret_attested, struct error *error)
{
    struct attested attested = {.path = path, .arena = arena_new()};
    if (attestation_read(path, attested.arena, &attested.stated, error)) {
        attested.options = with_options(options, &attested.stated, error);
        if (attested.options != NULL) {
            *ret_attested = attested;
            return true;
        }
        error_prefix(error, "%s", path);
    }
    arena_free(attested.arena);
    return false;
}

bool attested_make(struct attested *attested, struct tree *tree, struct error *error)
{
    return make_again(&attested->stated, tree, attested->options, attested->arena, &attested->made, error);
}

void attested_free(struct attested *attested)
{
    arena_free(attested->arena);
}

struct kind {
    const char *name; /* "subject" or "material" */
    attested_line *take;
    void *context;
};

static void take_difference(void *context, const struct attested_file *stated, const struct attested_file *made)
{
    const struct kind *kind = context;
    kind->take(kind->context, kind->name, stated, made);
}

size_t attested_differences(const struct attested *attested, attested_line *take, void *context)
{
    const struct attestation *stated = &attested->stated, *made = &attested->made;
    struct kind subjects = {"subject", take, context}, materials = {"material", take, context};
    return attestation_compare(stated->subjects, stated->n_subjects, made->subjects, made->n_subjects, take_difference,
                               &subjects) +
           attestation_compare(stated->materials, stated->n_materials, made->materials, made->n_materials,
                               take_difference, &materials);
}

static void put_difference(void *context, const char *kind, const struct attested_file *stated,
                           const struct attested_file *made)
{
    json_put_template(context, "\n{'kind': %s, 'name': %s, 'stated': %s, 'sha256': %s}", kind,
                      stated != NULL ? stated->name : made->name, stated != NULL ? stated->sha256 : NULL,
                      made != NULL ? made->sha256 : NULL);
}

size_t attested_put(struct json_writer *writer, const struct attested *attested)
{
    const struct attestation *stated = &attested->stated;
    json_put_template(writer, "'attestation': %s, 'version': %s, 'subjects': %u, 'materials': %u, \n'differences': [",
                      attested->path, stated->version, (uint64_t)stated->n_subjects, (uint64_t)stated->n_materials);
    size_t n_different = attested_differences(attested, put_difference, writer);
    json_put_template(writer, "], \n'identical': %b", n_different == 0);
    return n_different;
}
