/* Files and folders on web servers: https://HOST/FOLDER/ and https://HOST/FOLDER/FILE.
 *
 * The names in a folder come from the server's list or, without a list, from the table of names that models use. wfs
 * then requests the beginning of each file, all at once: the answer gives its size and validator. The store keeps the
 * result: the next requests are conditional, and offline there are none. */
#include "base/encodings.h"
#include "base/text.h"
#include "base/text_index.h"
#include "remote/http.h"
#include "remote/libcurl.h"
#include "remote/options.h"
#include "sources/listing.h"
#include "sources/site.h"
#include "text/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    MAX_FOLDERS = 64, /* listed on each level */
    MAX_DEPTH = 3,
    MAX_CONTACTS = 64, /* first requests at once: each has an answer in memory, and up to SITE_FIRST bytes */
};

/* Names the shards of a model in a folder without a list. */
static const char index_name[] = "model.safetensors.index.json";

/* Names to try in a folder without a list. */
static const char *const known_names[] = {
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "adapter_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "adapter_model.safetensors",
    "adapters.safetensors",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "preprocessor_config.json",
    "chat_template.jinja",
    "README.md",
};

struct web_name {
    const char *path;
    bool is_guessed; /* not in a list */
    /* the file's state when last seen; an etag of NULL: none */
    const char *etag;
    uint64_t size;
    int64_t modified;
};

struct web {
    struct arena *arena; /* the site's */
    struct site *site;
    struct uri folder;
    const char *file;       /* named by the user; NULL: the folder */
    const char *memo;       /* the name of the stored result */
    struct web_name *names; /* each path once */
    size_t n_names;
    struct text_index places; /* of the names, by path */
    struct error *error;
};

/* Adds a name, unless there is one with this path. */
static void add_name(struct web *web, const char *path, bool is_guessed)
{
    if (!text_index_add(&web->places, path, strlen(path), web->n_names))
        return;
    web->names = memory_grow(web->names, web->n_names, sizeof *web->names);
    web->names[web->n_names++] = (struct web_name){.path = path, .is_guessed = is_guessed};
}

/* Reports a model's page on the hub, with an error that tells where its files are. */
static bool is_page_of_hub(const struct web *web, const struct uri *uri)
{
    const char *id = uri->path + 1, *slash = strchr(id, '/');
    const char *rest = slash != NULL ? slash + 1 + strcspn(slash + 1, "/") : "/";
    bool is_page =
        strcmp(uri->origin, "https://huggingface.co:443") == 0 && (*rest == '\0' || text_starts_with(rest, "/tree/"));
    if (is_page)
        error_set(web->error, "the page of a model; its files are at hf://%.*s", (int)(rest - id), id);
    return is_page;
}

static bool parse_uri(struct web *web, const char *text)
{
    struct uri uri;
    if (!uri_parse(text, web->arena, &uri, web->error))
        return false;
    if (!uri_is_private(&uri))
        return error_set(web->error, "http:// lets others read and change the model on its way; use https://");
    if (is_page_of_hub(web, &uri))
        return false;
    const char *name = strrchr(uri.path, '/') + 1;
    web->folder = uri_parent(&uri, web->arena);
    web->file = *name != '\0' ? percent_decode_name(name, strlen(name), web->arena) : NULL;
    if (*name != '\0' && web->file == NULL)
        return error_set(web->error, "the URL names no file");
    char hash[SHA256_HEX + 1];
    const char *whole = arena_printf(web->arena, "%s%s", uri.origin, uri.text);
    sha256_hex(whole, strlen(whole), hash);
    web->memo = arena_printf(web->arena, "web-%s", hash);
    return true;
}

/* Returns the last component of the folder's path, or the host. */
static const char *model_of(const struct web *web)
{
    const char *path = web->folder.path;
    size_t end = strlen(path) - 1, start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    const char *name = percent_decode_name(path + start, end - start, web->arena);
    const char *host = strstr(web->folder.origin, "://") + 3;
    return name != NULL ? name : arena_strndup(web->arena, host, strcspn(host, ":"));
}

/* Takes the stored state of a file; adds its name if the caller permits it. */

struct recalling {
    struct web *web;
    bool may_add;
};

static void take_known(void *context, const struct site_memory *memory)
{
    struct recalling *recalling = context;
    struct web *web = recalling->web;
    size_t place;
    if (recalling->may_add)
        add_name(web, memory->path, false);
    if (!text_index_find(&web->places, memory->path, strlen(memory->path), &place))
        return;
    web->names[place].etag = memory->etag;
    web->names[place].size = memory->size;
    web->names[place].modified = memory->modified;
}

static bool recall(struct web *web, bool may_add)
{
    return site_recall(web->memo, web->arena, take_known, &(struct recalling){web, may_add});
}

/* Listing folders, one level of the tree at a time. */

static struct exchange page_of(const struct uri *uri)
{
    return (struct exchange){.request = {.uri = *uri, .is_urgent = true, .question = {.size = SIZE_UNKNOWN}},
                             .limit = LISTING_BYTES};
}

struct level {
    const char *paths[MAX_FOLDERS];
    size_t count;
};

static bool is_known_name(const char *path)
{
    for (size_t i = 0; i < sizeof known_names / sizeof *known_names; i++)
        if (strcmp(path, known_names[i]) == 0)
            return true;
    return false;
}

/* Reports whether to request a file: beside a file that the user named, only files with names that models use. */
static bool belongs(const struct web *web, const char *path)
{
    return web->file == NULL || strcmp(path, web->file) == 0 || is_known_name(path);
}

/* Adds the names in a list: files to the site's names, and folders to the next level. Fails if there are too many
 * files. */
static bool add_listing(struct web *web, const char *folder, const struct listing *listing, struct level *next)
{
    for (size_t i = 0; i < listing->count; i++) {
        const char *path = arena_printf(web->arena, "%s%s", folder, listing->names[i]);
        bool is_folder = text_ends_with(path, "/");
        if (is_folder && web->file == NULL && next->count < MAX_FOLDERS && listing->names[i][0] != '.')
            next->paths[next->count++] = path;
        else if (!is_folder && belongs(web, path))
            add_name(web, path, false);
    }
    return (!listing->is_too_long && web->n_names <= SITE_FILES) ||
           error_set(web->error, "more than %d files; name a folder of fewer files", SITE_FILES);
}

/* Lists the folders of a level. *ret_is_listed tells whether the first has a list. */
static bool list_level(struct web *web, const struct level *level, struct level *next, bool *ret_is_listed)
{
    struct exchange pages[MAX_FOLDERS];
    for (size_t i = 0; i < level->count; i++) {
        const struct uri uri = uri_below(&web->folder, level->paths[i], web->arena);
        pages[i] = page_of(&uri);
    }
    if (!exchange_all(pages, level->count, web->arena, web->error))
        return false;
    for (size_t i = 0; i < level->count; i++) {
        struct listing listing;
        const struct uri uri = uri_below(&web->folder, level->paths[i], web->arena);
        bool is_listed =
            pages[i].verdict == VERDICT_TAKE && listing_parse((const char *)pages[i].bytes, pages[i].length,
                                                              pages[i].answer.type, &uri, web->arena, &listing);
        if (is_listed && !add_listing(web, level->paths[i], &listing, next))
            return false;
        if (i == 0)
            *ret_is_listed = is_listed;
        if (pages[i].answer.status == 0) { /* the server cannot be reached */
            *web->error = pages[i].error;
            return false;
        }
    }
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds the files that an index maps tensors to, each once. */
static void add_indexed(struct web *web, const struct json *weight_map)
{
    const char **files = NULL;
    size_t count = 0;
    struct json_member member = {0};
    while (json_next_member(weight_map, &member)) {
        const char *file = json_string(member.value, NULL);
        if (file == NULL || (count > 0 && strcmp(file, files[count - 1]) == 0))
            continue;
        files = memory_grow(files, count, sizeof *files);
        files[count++] = file;
    }
    if (count > 0)
        qsort(files, count, sizeof *files, compare_names);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || strcmp(files[i], files[i - 1]) != 0)
            add_name(web, arena_strdup(web->arena, files[i]), false);
    free(files);
}

/* Adds the shards that the index of a folder without a list names; if there is no index, none. */
static bool add_shards(struct web *web)
{
    const struct uri uri = uri_below(&web->folder, index_name, web->arena);
    struct exchange exchange = page_of(&uri);
    struct error unused;
    if (!exchange_all(&exchange, 1, web->arena, web->error))
        return false;
    struct json_document *document =
        exchange.verdict == VERDICT_TAKE ? json_parse((const char *)exchange.bytes, exchange.length, &unused) : NULL;
    if (document != NULL) {
        add_name(web, index_name, true);
        add_indexed(web, json_get(json_root(document), "weight_map"));
    }
    json_free(document);
    return web->n_names <= SITE_FILES || error_set(web->error, "its index names more than %d files", SITE_FILES);
}

static bool list_names(struct web *web)
{
    struct level levels[2] = {{.paths = {""}, .count = 1}};
    bool is_listed = false, unused;
    for (int depth = 0; depth < MAX_DEPTH && levels[depth % 2].count > 0; depth++) {
        levels[(depth + 1) % 2].count = 0;
        if (!list_level(web, &levels[depth % 2], &levels[(depth + 1) % 2], depth == 0 ? &is_listed : &unused))
            return false;
    }
    bool may_guess = !is_listed && (web->file == NULL || !text_ends_with(web->file, ".gguf"));
    for (size_t i = 0; may_guess && i < sizeof known_names / sizeof *known_names; i++)
        add_name(web, known_names[i], true);
    if (may_guess && web->file == NULL && !add_shards(web))
        return false;
    if (web->file != NULL)
        add_name(web, web->file, false);
    return true;
}

/* The first request for each file. */

static struct exchange contact_with(const struct web *web, const struct web_name *name, struct arena *arena)
{
    struct exchange contact = {.limit = ANSWER_WHOLE_LIMIT};
    contact.request.uri = uri_below(&web->folder, name->path, arena);
    contact.request.is_urgent = true;
    contact.request.question = (struct question){
        .is_range = true,
        .is_conditional = name->etag != NULL,
        .length = site_is_read_first(name->path) ? SITE_FIRST : 1,
        .size = SIZE_UNKNOWN,
    };
    if (name->etag != NULL)
        contact.request.condition = arena_printf(arena, "If-None-Match: %s", name->etag);
    return contact;
}

/* Returns a key that identifies a file's bytes. Without a validator nothing does, so the key is unique. */
static const char *key_of(const struct web *web, const struct uri *uri, const char *etag, uint64_t size,
                          int64_t modified)
{
    char hash[SHA256_HEX + 1];
    uint64_t only = 0;
    if (*etag == '\0' && modified == 0 && getentropy(&only, sizeof only) != 0)
        only = (uint64_t)(uintptr_t)web;
    const char *all = arena_printf(web->arena, "%s\n%s\n%s\n%s\n%" PRIu64 "\n%" PRId64 "\n%" PRIu64, uri->origin,
                                   uri->path, uri->query, etag, size, modified, only);
    sha256_hex(all, strlen(all), hash);
    return arena_printf(web->arena, "url-%s", hash);
}

static void add_file(struct web *web, const struct web_name *name, const struct uri *uri, const char *etag,
                     uint64_t size, int64_t modified)
{
    const struct site_file file = {
        .path = name->path,
        .origin = {.uri = *uri, .key = key_of(web, uri, etag, size, modified), .name = uri->shown, .size = size},
        .modified.tv_sec = modified,
    };
    if (site_add(web->site, &file) && *etag != '\0')
        web->site->files[web->site->count - 1].origin.etag = arena_strdup(web->arena, etag);
}

/* Stores the complete granules among the first bytes of the file that was added last. */
static void keep_first(const struct web *web, const unsigned char *bytes, size_t length)
{
    const struct object_origin *origin = &web->site->files[web->site->count - 1].origin;
    struct store_object *object = store_open(origin->key, NULL, origin->size, origin->name);
    for (size_t at = 0, n = 0; at < origin->size; at += n) {
        n = store_granule_length(object, at / STORE_GRANULE);
        if (n > length - at)
            break;
        store_write(object, at / STORE_GRANULE, bytes + at);
    }
    store_close(object);
}

static void take_contact(struct web *web, const struct web_name *name, const struct exchange *contact)
{
    const struct uri below = uri_below(&web->folder, name->path, web->arena), *uri = &below;
    const struct answer *answer = &contact->answer;
    size_t before = web->site->count;
    if (contact->verdict == VERDICT_SAME) {
        add_file(web, name, uri, name->etag, name->size, name->modified);
        return;
    }
    uint64_t size = contact->verdict == VERDICT_TAKE ? answer->total : contact->length;
    add_file(web, name, uri, answer->etag, contact->verdict == VERDICT_EMPTY ? 0 : size, answer->modified);
    if (web->site->count > before)
        keep_first(web, contact->bytes, contact->length);
}

/* Reports whether a file may be left out: the user did not name it, and the server lists it, or might have it, but does
 * not serve it. */
static bool may_lack(const struct web *web, const struct web_name *name, int status)
{
    bool is_named = web->file != NULL && strcmp(name->path, web->file) == 0;
    return !is_named && (name->is_guessed ? status >= 300 && status < 500 : status == 403 || status == 404);
}

/* Takes the error of an exchange; its code tells what is not there from what cannot be had. */
static void take_error(const struct web *web, const struct exchange *exchange)
{
    enum { NOT_FOUND = 404 };
    *web->error = exchange->error;
    if (exchange->answer.status == NOT_FOUND)
        error_set_code(web->error, ENOENT);
}

/* Makes the first requests for `count` names at once; their answers go to the arena. */
static bool contact_some(struct web *web, const struct web_name *names, size_t count, struct arena *arena)
{
    struct exchange *contacts = arena_array(arena, count, sizeof *contacts);
    for (size_t i = 0; i < count; i++)
        contacts[i] = contact_with(web, &names[i], arena);
    if (!exchange_all(contacts, count, arena, web->error))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (contacts[i].verdict < VERDICT_REDIRECT && text_ends_with(contacts[i].uri.path, "/"))
            return error_set(web->error, "a folder; write its URL with a '/' at its end");
        if (contacts[i].verdict < VERDICT_REDIRECT)
            take_contact(web, &names[i], &contacts[i]);
        else if (!may_lack(web, &names[i], contacts[i].answer.status)) {
            take_error(web, &contacts[i]);
            return error_prefix(web->error, "%s", names[i].path);
        }
    }
    return true;
}

static bool contact_files(struct web *web)
{
    bool good = true;
    for (size_t first = 0; good && first < web->n_names; first += MAX_CONTACTS) {
        size_t left = web->n_names - first;
        struct arena *arena = arena_new();
        good = contact_some(web, web->names + first, left < MAX_CONTACTS ? left : MAX_CONTACTS, arena);
        arena_free(arena);
    }
    if (good)
        site_remember(web->site, web->memo);
    return good;
}

static bool add_known(struct web *web)
{
    if (!recall(web, true) || web->n_names == 0)
        return error_set(web->error, "offline, and not in the cache; open it once without -o offline");
    for (size_t i = 0; i < web->n_names; i++) {
        const struct web_name *name = &web->names[i];
        const struct uri uri = uri_below(&web->folder, name->path, web->arena);
        add_file(web, name, &uri, name->etag, name->size, name->modified);
    }
    return true;
}

static bool find_files(struct web *web)
{
    if (remote_options().offline)
        return add_known(web);
    if (!list_names(web))
        return false;
    if (!recall(web, false))
        for (size_t i = 0; i < web->n_names; i++)
            web->names[i].etag = NULL;
    return contact_files(web);
}

static struct location *web_open(const char *text, enum location_links links, const char **ret_file,
                                 struct error *error)
{
    struct arena *arena = arena_new();
    const char *shown = location_shown(text, arena);
    struct site *site = site_new(shown);
    struct web web = {.arena = site->arena, .site = site, .error = error};
    struct location *location = NULL;
    if (libcurl_load(error) && parse_uri(&web, text) && find_files(&web)) {
        site->name = model_of(&web);
        location = site_location(site, web.file != NULL ? web.file : "", ret_file, error);
    } else {
        error_prefix(error, "%s", shown);
        site_free(site);
    }
    free(web.names);
    text_index_free(&web.places);
    arena_free(arena);
    return location;
}

const struct location_scheme https_scheme = {.prefix = "https://", .open = web_open};
const struct location_scheme http_scheme = {.prefix = "http://", .open = web_open};

void location_load_library(void)
{
    struct error unused;
    libcurl_load(&unused);
}
