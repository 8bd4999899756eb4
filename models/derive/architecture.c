/* Treats a checkpoint as one of another class: config.json as if its `architectures` named that class, for a model of a
 * known architecture that was saved under a new name. */
#include "formats/documents.h"
#include "models/derive/derive.h"
#include "models/families/families.h"
#include "text/json_write.h"

#include <string.h>

/* Reports whether a family or a projector has the class. */
static bool is_known(const char *class_name)
{
    for (const struct family *const *family = families; *family != NULL; family++)
        for (const struct family_name *hf = (*family)->hf; hf->name != NULL; hf++)
            if (strcmp(hf->name, class_name) == 0)
                return true;
    return false;
}

static void put_class(struct json_writer *writer, const char *class_name)
{
    json_begin_array(writer, "architectures");
    json_put_text(writer, NULL, class_name);
    json_end(writer);
}

/* Replaces the outermost list of classes; config.json of a part keeps its own. */
static bool replace(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth)
{
    bool is_list = depth == 1 && strcmp(member->key, "architectures") == 0;
    if (is_list)
        put_class(writer, *(const char *const *)context);
    return is_list;
}

/* Writes config.json with the class; without a list of classes, at its end. */
static bool write_config(const struct json *config, const char *class_name, struct buffer *out, struct error *error)
{
    struct json_writer writer = {.out = out, .letters = JSON_ASCII};
    struct buffer more = {0};
    if (json_get(config, "architectures") != NULL) {
        json_put_edited(&writer, config, replace, &class_name);
        return true;
    }
    struct json_writer alone = {.out = &more, .letters = JSON_ASCII};
    json_begin_object(&alone, NULL);
    put_class(&alone, class_name);
    json_end(&alone);
    struct json_document *document = json_parse((const char *)more.bytes, more.length, error);
    if (document != NULL)
        json_put_sorted(&writer, config, json_root(document));
    json_free(document);
    buffer_free(&more);
    return document != NULL;
}

static bool apply(const struct checkpoint *from, const struct derive_options *options, struct checkpoint **ret_derived,
                  struct error *error)
{
    struct document *config;
    struct buffer text = {0};
    const char *class_name = options->architecture;
    if (class_name == NULL)
        return true;
    if (!is_known(class_name))
        return error_set(error, "%s is not a class that wfs knows; wfs info --architectures lists families",
                         class_name);
    if (!document_open(from, "config.json", &config, error))
        return false;
    if (config == NULL)
        return error_set(error, "%s has no config.json, which names the class", from->path);
    const char *own = json_string(json_first(json_get(document_root(config), "architectures")), NULL);
    *ret_derived = checkpoint_derive(from);
    if (own == NULL || strcmp(own, class_name) != 0)
        checkpoint_note(*ret_derived, SUBJECT_GGUF,
                        "config.json names %s; -o architecture treats the model as a %s, which may compute otherwise",
                        own != NULL ? own : "no class", class_name);
    bool is_written = write_config(document_root(config), class_name, &text, error);
    if (is_written)
        checkpoint_change_side_file(*ret_derived, "config.json", (const char *)text.bytes, text.length);
    buffer_free(&text);
    document_close(config);
    return is_written;
}

const struct derivation architecture_derivation = {.option = "architecture", .apply = apply};
