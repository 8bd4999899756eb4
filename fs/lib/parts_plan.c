#include "fs/lib/parts_plan.h"

#include "fs/lib/source_digest.h"
#include "text/json_write.h"

#include <errno.h>
#include <string.h>

/* Must change whenever plans or markers are written or cut otherwise. */
enum { FORMAT = 1 };

/* Ends a line of JSON with its SHA-256, which *ret_hash becomes. */
static void seal(struct buffer *out, size_t begin, char ret_hash[SHA256_HEX + 1])
{
    sha256_hex(out->bytes + begin, out->length - begin, ret_hash);
    buffer_printf(out, "\n%s\n", ret_hash);
}

/* Parses a sealed line; NULL if it is not whole. */
static struct json_document *open_sealed(const struct buffer *text, char ret_hash[SHA256_HEX + 1])
{
    enum { END = SHA256_HEX + 2 }; /* the hash between two newlines */
    struct error unsaid;
    if (text->length < END)
        return NULL;
    const size_t length = text->length - END;
    const char *line = (const char *)text->bytes;
    sha256_hex(line, length, ret_hash);
    bool is_whole = line[length] == '\n' && memcmp(line + length + 1, ret_hash, SHA256_HEX) == 0;
    return is_whole ? json_parse(line, length, &unsaid) : NULL;
}

void parts_plan_write(struct parts_plan *plan, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8, .compact = true};
    size_t begin = out->length;
    json_begin_object(&writer, NULL);
    json_put_number(&writer, "format", FORMAT);
    json_put_text(&writer, "wfs", plan->wfs);
    json_put_text(&writer, "path", plan->path);
    json_put_text(&writer, "model", plan->model);
    json_put_text(&writer, "options", plan->options);
    json_put_text(&writer, "layout", plan->layout);
    json_put_text(&writer, "stamp", plan->stamp);
    json_put_text(&writer, "source", plan->source);
    json_put_number(&writer, "bytes", plan->bytes);
    json_put_number(&writer, "header bytes", plan->header_bytes);
    json_put_text(&writer, "header", plan->header);
    json_put_text(&writer, "table", plan->table);
    json_begin_array(&writer, "ends");
    for (size_t i = 0; i < plan->n_parts; i++)
        json_put_number(&writer, NULL, plan->ends[i]);
    json_end(&writer);
    json_end(&writer);
    seal(out, begin, plan->hash);
}

static const char *text_of(const struct json *root, const char *key, struct arena *arena)
{
    const char *text = json_string(json_get(root, key), NULL);
    return arena_strdup(arena, text != NULL ? text : "");
}

static void hash_of(const struct json *root, const char *key, char hash[SHA256_HEX + 1])
{
    const char *text = json_string(json_get(root, key), NULL);
    bool is_hash = text != NULL && strlen(text) == SHA256_HEX;
    memcpy(hash, is_hash ? text : "", is_hash ? SHA256_HEX + 1 : 1);
}

/* Reads the ends of parts, which must rise up to the size of the files. */
static bool read_ends(const struct json *root, struct arena *arena, struct parts_plan *plan)
{
    const struct json *list = json_get(root, "ends");
    uint64_t *ends = arena_array(arena, json_count(list), sizeof *ends), before = 0;
    plan->ends = ends;
    plan->n_parts = 0;
    for (const struct json *end = json_first(list); end != NULL; end = json_next(end)) {
        if (!json_u64(end, &ends[plan->n_parts]) || ends[plan->n_parts] < before)
            return false;
        before = ends[plan->n_parts++];
    }
    return plan->n_parts > 0 && before == plan->bytes;
}

bool parts_plan_read(const struct buffer *text, struct arena *arena, struct parts_plan *ret_plan, struct error *error)
{
    struct parts_plan plan = {.n_parts = 0};
    uint64_t format = 0;
    struct json_document *document = open_sealed(text, plan.hash);
    const struct json *root = document != NULL ? json_root(document) : NULL;
    plan.wfs = text_of(root, "wfs", arena);
    plan.path = text_of(root, "path", arena);
    plan.model = text_of(root, "model", arena);
    plan.options = text_of(root, "options", arena);
    hash_of(root, "layout", plan.layout);
    hash_of(root, "stamp", plan.stamp);
    hash_of(root, "source", plan.source);
    hash_of(root, "header", plan.header);
    hash_of(root, "table", plan.table);
    json_u64(json_get(root, "header bytes"), &plan.header_bytes);
    bool is_plan = json_u64(json_get(root, "format"), &format) && json_u64(json_get(root, "bytes"), &plan.bytes) &&
                   (format != FORMAT || read_ends(root, arena, &plan));
    json_free(document);
    *ret_plan = plan;
    if (is_plan && format == FORMAT)
        return true;
    error_set(error, is_plan ? "was written by another version of wfs (%s)" : "is not a whole plan%s",
              is_plan ? plan.wfs : "");
    return error_set_code(error, EINVAL);
}

static bool differ(struct error *error, const char *what, const char *found, const char *own)
{
    error_set(error, "was begun %s %s, not %s", what, found, own);
    return error_set_code(error, EINVAL);
}

/* Returns options as they are written, or "no options". */
static const char *shown_options(const char *options, struct arena *arena)
{
    return *options != '\0' ? arena_printf(arena, "-o %s", options) : "no options";
}

static bool sources_agree(const struct parts_plan *found, struct parts_plan *own, struct source *const *sources,
                          size_t n_sources, struct error *error)
{
    if (strcmp(found->stamp, own->stamp) == 0) {
        memcpy(own->source, found->source, sizeof own->source);
        return true;
    }
    source_digest(sources, n_sources, own->source);
    if (strcmp(found->source, own->source) == 0)
        return true;
    error_set(error, "was begun from another source, or the source has changed since: a name, size or content differs");
    return error_set_code(error, EINVAL);
}

bool parts_plan_agrees(const struct parts_plan *found, struct parts_plan *own, struct source *const *sources,
                       size_t n_sources, struct error *error)
{
    struct arena *arena = arena_new();
    bool agrees = true;
    if (found->n_parts != own->n_parts)
        agrees = differ(error, "in", arena_printf(arena, "%zu parts", found->n_parts),
                        arena_printf(arena, "%zu", own->n_parts));
    else if (strcmp(found->path, own->path) != 0)
        agrees = differ(error, "of", found->path, own->path);
    else if (strcmp(found->wfs, own->wfs) != 0)
        agrees = differ(error, "by", found->wfs, own->wfs);
    else if (strcmp(found->options, own->options) != 0)
        agrees = differ(error, "with", shown_options(found->options, arena), shown_options(own->options, arena));
    else if (strcmp(found->model, own->model) != 0)
        agrees = differ(error, "from the model", found->model, own->model);
    else if (!sources_agree(found, own, sources, n_sources, error))
        agrees = false;
    else if (strcmp(found->layout, own->layout) != 0 || found->bytes != own->bytes)
        agrees = differ(error, "for files of", arena_printf(arena, "%llu bytes", (unsigned long long)found->bytes),
                        arena_printf(arena, "%llu bytes or of these names", (unsigned long long)own->bytes));
    arena_free(arena);
    return agrees;
}

void parts_marker_write(const struct parts_marker *marker, struct buffer *out)
{
    struct json_writer writer = {.out = out, .letters = JSON_UTF8, .compact = true};
    char unused[SHA256_HEX + 1];
    size_t begin = out->length;
    json_begin_object(&writer, NULL);
    json_put_text(&writer, "plan", marker->plan);
    json_put_number(&writer, "from", marker->from);
    json_put_number(&writer, "to", marker->to);
    json_put_text(&writer, "checksum", marker->checksum);
    json_end(&writer);
    seal(out, begin, unused);
}

bool parts_marker_read(const struct buffer *text, struct parts_marker *ret_marker)
{
    char unused[SHA256_HEX + 1];
    struct json_document *document = open_sealed(text, unused);
    const struct json *root = document != NULL ? json_root(document) : NULL;
    hash_of(root, "plan", ret_marker->plan);
    hash_of(root, "checksum", ret_marker->checksum);
    bool is_marker = json_u64(json_get(root, "from"), &ret_marker->from) &&
                     json_u64(json_get(root, "to"), &ret_marker->to) && ret_marker->plan[0] != '\0';
    json_free(document);
    return is_marker;
}
