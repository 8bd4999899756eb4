#include "fs/http/s3.h"

#include "base/encodings.h"
#include "base/text.h"
#include "fs/http/file_answer.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KEYS = 1000 };

struct listing {
    struct arena *arena;
    struct buffer *out;
    const char *bucket, *prefix, *delimiter; /* "" if not given */
    const char *after;                       /* keys and common prefixes up to this one are on earlier pages */
    size_t most, n_put;
    bool is_second; /* version 2 */
    bool is_url;    /* keys are percent-encoded */
    bool is_full;   /* there are more than `most` */
    struct buffer contents, prefixes;
    const char *last; /* that was put */
};

/* Puts a key, or a prefix of keys. */
static void put_key(const struct listing *listing, struct buffer *out, const char *element, const char *key)
{
    s3_put(out, element, listing->is_url ? percent_encode(key, "/", listing->arena) : key);
}

/* Reports whether there is room for one more key; without room, the listing is full. */
static bool takes(struct listing *listing, const char *key)
{
    listing->is_full = listing->n_put == listing->most;
    if (listing->is_full)
        return false;
    listing->n_put++;
    listing->last = key;
    return true;
}

/* Returns the part of a key up to the first delimiter after the prefix; NULL if there is none. */
static const char *common_prefix(const struct listing *listing, const char *key)
{
    if (*listing->delimiter == '\0' || !text_starts_with(key, listing->prefix))
        return NULL;
    const char *end = strstr(key + strlen(listing->prefix), listing->delimiter);
    return end != NULL ? arena_strndup(listing->arena, key, (size_t)(end - key) + strlen(listing->delimiter)) : NULL;
}

static void put_prefix(struct listing *listing, const char *prefix)
{
    if (strcmp(prefix, listing->after) <= 0 || (listing->last != NULL && strcmp(prefix, listing->last) == 0) ||
        !takes(listing, prefix))
        return;
    buffer_append_text(&listing->prefixes, "<CommonPrefixes>");
    put_key(listing, &listing->prefixes, "Prefix", prefix);
    buffer_append_text(&listing->prefixes, "</CommonPrefixes>");
}

static void put_object(struct listing *listing, const struct repository *repository, const struct repository_file *file,
                       const char *key)
{
    uint64_t size;
    char etag[ETAG_TEXT];
    struct node_attributes attributes;
    struct buffer *out = &listing->contents;
    if (strcmp(key, listing->after) <= 0 || !repository_plan(repository, file->node, &size, etag) ||
        !tree_attributes(repository->tree, file->node, &attributes) || !takes(listing, key))
        return;
    buffer_append_text(out, "<Contents>");
    put_key(listing, out, "Key", key);
    s3_put_time(out, "LastModified", attributes.mtime.tv_sec);
    s3_put(out, "ETag", file_etag(etag, S3_TAG_ENDING, listing->arena));
    s3_put_number(out, "Size", size);
    s3_put(out, "StorageClass", "STANDARD");
    buffer_append_text(out, "</Contents>");
}

/* Puts the keys of a model, "NAME/FILE"; with a delimiter in `name`, "NAME/", they need not be known. */
static void put_model(struct listing *listing, const struct repository *repository, const char *name)
{
    const char *common = common_prefix(listing, name);
    if (common != NULL) {
        if (!repository_is_empty(repository))
            put_prefix(listing, common);
        return;
    }
    struct repository_files files = repository_files(repository);
    for (size_t i = 0; i < files.count && !listing->is_full; i++) {
        const char *key = arena_printf(listing->arena, "%s%s", name, files.items[i].name);
        if (!text_starts_with(key, listing->prefix))
            continue;
        const char *of_file = common_prefix(listing, key);
        if (of_file != NULL)
            put_prefix(listing, of_file);
        else
            put_object(listing, repository, &files.items[i], key);
    }
}

/* A model of the bucket and its part of a key, "NAME/". */
struct model {
    const struct repository *repository;
    const char *name;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct model *)a)->name, ((const struct model *)b)->name);
}

/* Puts the models in the order of their keys: "NAME-GGUF/" comes before "NAME/". */
static void put_models(struct listing *listing, const struct repositories *repositories)
{
    size_t length = strlen(listing->bucket), count = 0;
    struct model *models = arena_array(listing->arena, repositories->count, sizeof *models);
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *repository = &repositories->items[i];
        if (strncmp(repository->id, listing->bucket, length) != 0 || repository->id[length] != '/')
            continue;
        const char *name = arena_printf(listing->arena, "%s/", repository->id + length + 1);
        bool is_named = text_starts_with(listing->prefix, name);
        if (is_named || (repository->is_listed && text_starts_with(name, listing->prefix)))
            models[count++] = (struct model){repository, name};
    }
    qsort(models, count, sizeof *models, by_name);
    for (size_t i = 0; i < count && !listing->is_full; i++)
        put_model(listing, models[i].repository, models[i].name);
}

/* A token is the last key of a page: clients only pass it on. */
static const char *key_of_token(const char *token, struct arena *arena)
{
    size_t length;
    const char *key = base64_decode(arena, token, strlen(token), &length);
    return key != NULL && memchr(key, '\0', length) == NULL ? arena_strndup(arena, key, length) : NULL;
}

static const char *value_or_empty(const struct query *query, const char *name)
{
    const char *value = query_value(query, name);
    return value != NULL ? value : "";
}

/* Reads the parameters; returns what is wrong with one, or NULL. */
static const char *read_parameters(struct listing *listing, const struct query *query)
{
    const char *most = query_value(query, "max-keys"), *version = query_value(query, "list-type"),
               *encoding = query_value(query, "encoding-type"), *token = query_value(query, "continuation-token");
    listing->is_second = version != NULL && strcmp(version, "2") == 0;
    listing->is_url = encoding != NULL && strcmp(encoding, "url") == 0;
    listing->prefix = value_or_empty(query, "prefix");
    listing->delimiter = value_or_empty(query, "delimiter");
    listing->after = value_or_empty(query, listing->is_second ? "start-after" : "marker");
    listing->most = MOST_KEYS;
    if (most != NULL && (*most == '\0' || most[strspn(most, "0123456789")] != '\0'))
        return "max-keys is not a number";
    if (most != NULL && strtoull(most, NULL, 10) < MOST_KEYS)
        listing->most = (size_t)strtoull(most, NULL, 10);
    if (version != NULL && !listing->is_second)
        return "list-type is not 2";
    if (encoding != NULL && !listing->is_url)
        return "encoding-type is not url";
    if (listing->is_second && token != NULL && (listing->after = key_of_token(token, listing->arena)) == NULL)
        return "continuation-token is not of an earlier page";
    return NULL;
}

static void put_parameters(const struct listing *listing, const struct query *query)
{
    struct buffer *out = listing->out;
    const char *token = query_value(query, "continuation-token"), *start = query_value(query, "start-after");
    s3_put(out, "Name", listing->bucket);
    put_key(listing, out, "Prefix", listing->prefix);
    if (*listing->delimiter != '\0')
        put_key(listing, out, "Delimiter", listing->delimiter);
    s3_put_number(out, "MaxKeys", listing->most);
    if (listing->is_url)
        s3_put(out, "EncodingType", "url");
    if (!listing->is_second)
        put_key(listing, out, "Marker", listing->after);
    if (listing->is_second && token != NULL)
        s3_put(out, "ContinuationToken", token);
    if (listing->is_second && start != NULL)
        put_key(listing, out, "StartAfter", start);
}

/* Puts what the next page begins after. */
static void put_end(const struct listing *listing)
{
    struct buffer *out = listing->out;
    bool has_more = listing->is_full && listing->last != NULL; /* with max-keys=0, no page follows */
    if (listing->is_second)
        s3_put_number(out, "KeyCount", listing->n_put);
    s3_put(out, "IsTruncated", has_more ? "true" : "false");
    if (has_more && listing->is_second)
        s3_put(out, "NextContinuationToken", base64_encode(listing->arena, listing->last, strlen(listing->last)));
    else if (has_more)
        put_key(listing, out, "NextMarker", listing->last);
}

void s3_list(const struct repositories *repositories, const struct query *query, const char *bucket,
             struct answer *answer)
{
    struct listing listing = {.arena = answer->arena, .bucket = bucket};
    const char *wrong = read_parameters(&listing, query);
    if (wrong != NULL) {
        s3_fail(answer, 400, "InvalidArgument", "%s", wrong);
        return;
    }
    listing.out = s3_begin(answer, "ListBucketResult");
    put_models(&listing, repositories);
    put_parameters(&listing, query);
    put_end(&listing);
    buffer_append(listing.out, listing.contents.bytes, listing.contents.length);
    buffer_append(listing.out, listing.prefixes.bytes, listing.prefixes.length);
    buffer_append_text(listing.out, "</ListBucketResult>\n");
    buffer_free(&listing.contents);
    buffer_free(&listing.prefixes);
}
