#include "fs/http/viewer.h"

#include "base/text.h"
#include "formats/gguf/kv.h"
#include "fs/http/answer.h"
#include "fs/http/html.h"
#include "fs/http/protocols.h"
#include "fs/http/query.h"
#include "fs/tree/name.h"
#include "text/json_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TENSORS_OF_PAGE = 500, MOST_DOCUMENT = 64 * 1024, MOST_ELEMENTS = 8, ENGINES_MS = 50 };

/* Returns a repository of the model, whichever of its names was given: the one that is its own, if there is one. */
static const struct repository *find(const struct repositories *repositories, const char *id)
{
    const struct repository *found = repository_find(repositories, id), *own;
    for (size_t i = 0; found == NULL && i < repositories->count; i++)
        if (strcmp(repositories->items[i].base, id) == 0)
            found = &repositories->items[i];
    own = found != NULL ? repository_find(repositories, found->base) : NULL;
    return own != NULL ? own : found;
}

static void put_files(struct buffer *out, const struct repository *repository, const char *root)
{
    struct repository_files files = repository_files(repository);
    buffer_append_text(out, "<table>\n");
    for (size_t i = 0; i < files.count; i++) {
        uint64_t size;
        char etag[ETAG_TEXT];
        if (!repository_plan(repository, files.items[i].node, &size, etag))
            continue;
        buffer_printf(out, "<tr><td><a href=\"%s", root);
        html_put_path(out, repository->id);
        buffer_append_text(out, "/");
        html_put_path(out, files.items[i].name);
        buffer_append_text(out, "\">");
        html_put_text(out, files.items[i].name);
        buffer_append_text(out, "</a></td><td class=\"n\">");
        html_put_size(out, size);
        buffer_append_text(out, "</td></tr>\n");
    }
    buffer_append_text(out, "</table>\n");
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Adds up the sizes of all files of a directory, which are planned until a time. Returns false if one is not known by
 * then: the next page knows more. */
static bool find_size(const struct repository *repository, int64_t until, uint64_t *ret_size)
{
    char etag[ETAG_TEXT];
    *ret_size = 0;
    if (now() >= until)
        return false;
    struct repository_files files = repository_files(repository);
    for (size_t i = 0; i < files.count; i++) {
        uint64_t size = 0;
        bool there = now() < until ? repository_plan(repository, files.items[i].node, &size, etag)
                                   : repository_peek(repository, files.items[i].node, &size);
        if (there && size == 0)
            return false;
        *ret_size += there ? size : 0;
    }
    return *ret_size > 0;
}

/* Puts the size of a directory where there was time to find it. */
static void put_size(struct buffer *out, const struct repository *repository, int64_t until)
{
    uint64_t size;
    if (!find_size(repository, until, &size))
        return;
    buffer_append_text(out, "<p>");
    html_put_size(out, size);
    buffer_append_text(out, "</p>\n");
}

static void put_repository(struct buffer *out, const struct repository *repository, const struct http_request *request,
                           const char *root, struct arena *arena)
{
    buffer_printf(out, "<h3><a href=\"%s", root);
    html_put_path(out, repository->id);
    buffer_append_text(out, "/\">");
    html_put_text(out, repository->id);
    buffer_append_text(out, "</a></h3>\n");
    page_put_commands(out, repository, request->origin, arena);
}

/* Files of directories for engines are listed on their own pages, since there are many. */
static void put_repositories(struct buffer *out, const struct repositories *repositories,
                             const struct repository *model, const struct http_request *request, const char *root,
                             struct arena *arena)
{
    buffer_append_text(out, "<h2 id=\"files\">Files</h2>\n");
    bool for_engines = false;
    int64_t until = now() + ENGINES_MS;
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *repository = &repositories->items[i];
        if (repository->tree != model->tree || !repository->is_listed || repository_is_empty(repository))
            continue;
        if (repository->is_of_engine && !for_engines)
            buffer_append_text(out, "<details><summary>Directories for engines</summary>\n");
        for_engines = for_engines || repository->is_of_engine;
        put_repository(out, repository, request, root, arena);
        if (repository->is_of_engine)
            put_size(out, repository, until);
        else
            put_files(out, repository, root);
    }
    buffer_append_text(out, for_engines ? "</details>\n" : "");
}

void viewer_put_tensor_link(struct buffer *out, const struct shown_tensors *shown, size_t index)
{
    struct tensor room;
    const struct tensor *tensor = shown_tensors_at(shown, index, &room);
    char name[NAME_MAX_BYTES + 1];
    buffer_append_text(out, "<a href=\"?tensor=");
    if (name_escape(tensor->name, tensor->name_length, name))
        html_put_path(out, name);
    else
        buffer_printf(out, "/%zu", index); /* no escaped name has a slash */
    buffer_append_text(out, "\">");
    html_put_text_n(out, tensor->name, tensor->name_length);
    buffer_append_text(out, "</a>");
}

static void put_tensor(struct buffer *out, const struct shown_tensors *shown, size_t index)
{
    struct tensor room;
    const struct tensor *tensor = shown_tensors_at(shown, index, &room);
    uint64_t bytes = dtype_bytes(tensor->dtype, tensor_elements(tensor));
    buffer_append_text(out, "<tr><td>");
    viewer_put_tensor_link(out, shown, index);
    buffer_append_text(out, "</td><td>");
    for (unsigned i = 0; i < tensor->rank; i++)
        buffer_printf(out, "%s%" PRIu64, i == 0 ? "" : " &times; ", tensor->shape[i]);
    buffer_printf(out, "</td><td>%s</td><td class=\"n\" data-n=\"%" PRIu64 "\">", tensor->dtype->name, bytes);
    html_put_size(out, bytes);
    buffer_append_text(out, "</td></tr>\n");
}

void viewer_put_filter(struct buffer *out, const char *page, const char *text)
{
    buffer_append_text(out, "<form>");
    if (page != NULL)
        buffer_printf(out, "<input type=\"hidden\" name=\"%s\">", page);
    buffer_append_text(out, "<label>Names with <input name=\"q\" value=\"");
    html_put_text(out, text);
    buffer_append_text(out, "\"></label> <button>Filter</button></form>\n");
}

void viewer_put_next(struct buffer *out, const char *page, const char *text, const struct viewer_page *rows)
{
    if (rows->n_found <= rows->first || rows->n_found - rows->first <= rows->most)
        return;
    buffer_printf(out, "<p><a href=\"?%s%sq=", page != NULL ? page : "", page != NULL ? "&amp;" : "");
    html_put_path(out, text);
    buffer_printf(out, "&amp;from=%" PRIu64 "\">the next %" PRIu64 " of %" PRIu64 "</a></p>\n",
                  rows->first + rows->most, rows->most, rows->n_found);
}

static bool has_text(const struct tensor *tensor, const char *text)
{
    return memmem(tensor->name, tensor->name_length, text, strlen(text)) != NULL;
}

/* Puts the tensors whose names have `text`, a page of them, from the first-th on. */
static void put_tensors(struct buffer *out, const struct shown_tensors *shown, const char *text, uint64_t first)
{
    uint64_t n_found = 0;
    buffer_printf(out, "<h2 id=\"tensors\">Tensors: %zu</h2>\n", shown_tensors_count(shown));
    viewer_put_filter(out, NULL, text);
    buffer_append_text(out, "<table class=\"sort\"><tr><th>name</th><th>shape</th><th>type</th><th "
                            "class=\"n\">size</th></tr>\n");
    for (size_t i = 0; i < shown_tensors_count(shown); i++) {
        struct tensor room;
        if (!has_text(shown_tensors_at(shown, i, &room), text))
            continue;
        if (n_found >= first && n_found - first < TENSORS_OF_PAGE)
            put_tensor(out, shown, i);
        n_found++;
    }
    buffer_append_text(out, "</table>\n");
    viewer_put_next(out, NULL, text, &(struct viewer_page){first, TENSORS_OF_PAGE, n_found});
}

static void put_document(struct buffer *out, const struct checkpoint *checkpoint, const char *name)
{
    const struct side_file *file = checkpoint_side_file(checkpoint, name);
    struct error error;
    size_t length;
    if (file == NULL || file->hidden)
        return;
    char *text = source_read_text(file->source, MOST_DOCUMENT, &length, &error);
    buffer_append_text(out, "<details><summary>");
    html_put_text(out, name);
    buffer_append_text(out, "</summary>");
    if (text != NULL)
        html_put_lines(out, text, length);
    else
        html_put_text(out, error.message);
    buffer_append_text(out, "</details>\n");
    free(text);
}

static void put_keys(struct buffer *out, const struct checkpoint *checkpoint)
{
    const struct gguf_kvs *keys = &checkpoint->metadata;
    buffer_printf(out, "<details><summary>Keys of the source's metadata: %zu</summary><table>\n", keys->n_kvs);
    for (size_t i = 0; i < keys->n_kvs; i++) {
        struct buffer value = {0};
        struct json_writer writer = {.out = &value, .letters = JSON_UTF8, .compact = true};
        gguf_put_json(&writer, NULL, &keys->kvs[i], MOST_ELEMENTS);
        buffer_append_text(out, "<tr><td>");
        html_put_text(out, keys->kvs[i].key);
        buffer_append_text(out, "</td><td>");
        html_put_text_n(out, (const char *)value.bytes, value.length < MOST_DOCUMENT ? value.length : MOST_DOCUMENT);
        buffer_append_text(out, "</td></tr>\n");
        buffer_free(&value);
    }
    buffer_append_text(out, "</table></details>\n");
}

static void put_tokenizer_link(struct buffer *out, const struct repository *model)
{
    const struct gguf_kvs *keys = viewer_tokenizer(model);
    enum gguf_type type;
    uint64_t n_tokens;
    if (keys != NULL && gguf_array_outline(gguf_kvs_find(keys, "tokenizer.ggml.tokens"), &type, &n_tokens))
        buffer_printf(out, "<p><a href=\"?tokenizer\">The tokenizer</a> has %" PRIu64 " tokens.</p>\n", n_tokens);
}

static void put_configuration(struct buffer *out, const struct repository *model)
{
    const struct checkpoint *checkpoint = tree_checkpoint(model->tree);
    static const char *const documents[] = {"config.json", "generation_config.json", "tokenizer_config.json",
                                            "special_tokens_map.json", "model_index.json"};
    buffer_append_text(out, "<h2 id=\"configuration\">Configuration and tokenizer</h2>\n");
    put_tokenizer_link(out, model);
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++)
        put_document(out, checkpoint, documents[i]);
    if (checkpoint->metadata.n_kvs > 0)
        put_keys(out, checkpoint);
}

static void put_comparisons(struct buffer *out, const struct repositories *repositories, const struct repository *model)
{
    buffer_append_text(out, "<h2 id=\"compare\">Compare</h2>\n<ul>\n");
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *other = &repositories->items[i];
        if (other->tree == model->tree || !other->is_listed || (i > 0 && other[-1].tree == other->tree))
            continue;
        buffer_append_text(out, "<li><a href=\"?diff=");
        html_put_path(out, other->base);
        buffer_append_text(out, "\">with ");
        html_put_text(out, other->base);
        buffer_append_text(out, "</a></li>\n");
    }
    buffer_append_text(out, "</ul>\n");
}

static const char *text_in(const struct query *query, const char *name)
{
    const char *value = query_value(query, name);
    return value != NULL ? value : "";
}

static uint64_t number_in(const struct query *query, const char *name)
{
    return strtoull(text_in(query, name), NULL, 10);
}

static void answer_model(const struct repositories *repositories, const struct repository *model,
                         const struct http_request *request, const struct query *query, const char *root,
                         struct answer *answer)
{
    const struct checkpoint *checkpoint = tree_checkpoint(model->tree);
    struct buffer *out = html_begin(answer, model->base);
    buffer_printf(out,
                  "<p><a href=\"%s\">all models</a> &middot; <a href=\"#files\">files</a> &middot; <a "
                  "href=\"#tensors\">tensors</a> &middot; <a href=\"#configuration\">configuration</a> &middot; "
                  "<a href=\"#compare\">compare</a></p>\n<p>Format ",
                  root);
    html_put_text(out, checkpoint->format);
    buffer_printf(out, ", %.4g million parameters, ", (double)shown_tensors_parameters(checkpoint) / 1e6);
    html_put_size(out, checkpoint_bytes(checkpoint));
    buffer_append_text(out, ".</p>\n");
    put_repositories(out, repositories, model, request, root, answer->arena);
    put_tensors(out, tree_shown(model->tree), text_in(query, "q"), number_in(query, "from"));
    put_configuration(out, model);
    put_comparisons(out, repositories, model);
    html_end(out);
}

/* Parses a query as browsers encode forms: a '+' is a blank. */
static struct query parse_form(const char *text, struct arena *arena)
{
    struct buffer encoded = {0};
    for (; *text != '\0'; text++)
        buffer_append(&encoded, *text == '+' ? "%20" : text, *text == '+' ? 3 : 1);
    const char *copy = encoded.length > 0 ? arena_strndup(arena, (const char *)encoded.bytes, encoded.length) : "";
    buffer_free(&encoded);
    return query_parse(copy, arena);
}

static bool find_tensor(const struct shown_tensors *shown, const char *name, size_t *ret_index)
{
    char raw[NAME_MAX_BYTES + 1];
    size_t length;
    if (*name == '/') {
        *ret_index = (size_t)strtoull(name + 1, NULL, 10);
        return *ret_index < shown_tensors_count(shown);
    }
    return strlen(name) <= NAME_MAX_BYTES && name_unescape(name, raw, &length) &&
           shown_tensors_find(shown, raw, length, ret_index);
}

void viewer_answer(const struct served *served, const struct http_request *request, const struct route *route,
                   struct answer *answer)
{
    const struct repository *model = find(served->repositories, route->repository), *other;
    struct query query = parse_form(request->query, answer->arena);
    const char *tensor = query_value(&query, "tensor"), *diff = query_value(&query, "diff");
    size_t index;
    if (model == NULL || *route->path != '\0') {
        answer_fail(answer, 404, "RepoNotFound", "there is no model '%s' here", route->repository);
    } else if (tensor != NULL && find_tensor(tree_shown(model->tree), tensor, &index)) {
        viewer_answer_tensor(model, index, number_in(&query, "matrix"), answer);
    } else if (tensor != NULL) {
        answer_fail(answer, 404, "EntryNotFound", "%s has no tensor '%s'", model->base, tensor);
    } else if (query_value(&query, "tokenizer") != NULL) {
        viewer_answer_tokenizer(model, text_in(&query, "q"), number_in(&query, "from"), answer);
    } else if (diff == NULL) {
        answer_model(served->repositories, model, request, &query, route->is_directory ? "../../../" : "../../",
                     answer);
    } else if ((other = find(served->repositories, diff)) != NULL) {
        viewer_answer_diff(model, other, answer);
    } else {
        answer_fail(answer, 404, "RepoNotFound", "there is no model '%s' here to compare with", diff);
    }
}
