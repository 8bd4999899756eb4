/* Models on the Hugging Face hub: hf://[models/]ORG/NAME[@REVISION][/PATH].
 *
 * One request lists all files of a revision with their sizes and hashes, and names its commit: every file is read from
 * that commit. Files in the Python clients' cache are read there. The store keeps the list of a commit, and of a
 * revision for offline use.
 *
 * Source: huggingface_hub's HfApi.model_info, list_repo_tree and file_download; HfFileSystem.resolve_path. */
#include "base/buffer.h"
#include "base/encodings.h"
#include "base/text.h"
#include "remote/credentials.h"
#include "remote/http.h"
#include "remote/libcurl.h"
#include "remote/options.h"
#include "sources/paths.h"
#include "sources/site.h"
#include "text/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TREE_LIMIT = 256 << 20, /* bytes of all pages */
    LIST_LIMIT = 64 << 20,  /* bytes */
    COMPLETE_NAMES = 1000,  /* a revision's list may be cut at so many names */
    TREE_PAGES = 1 + SITE_FILES / 1000,
    COMMIT_DIGITS = 40,
    MAX_ID = 96, /* the hub's own limit for a repository's name */
};

struct hub {
    struct arena *arena; /* the site's */
    struct site *site;
    const char *id, *revision, *path; /* ORG/NAME; REVISION or "main"; PATH or "" */
    const char *shown;                /* hf://ORG/NAME */
    struct uri endpoint;
    const struct http_credential *credential; /* NULL: no token */
    const char *token_from;
    const char *commit;
    struct timespec modified;
    struct error *error;
};

static bool is_id_character(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr("._-", c) != NULL);
}

/* Accepts ORG/NAME, and the NAME of an early model without an owner. */
static bool is_id(const char *id)
{
    size_t n_slashes = 0;
    bool begins = true;
    for (const char *c = id; *c != '\0'; begins = *c == '/', c++) {
        n_slashes += *c == '/';
        if (*c == '/' ? begins : !is_id_character(*c) || (begins && *c == '.'))
            return false;
    }
    return !begins && n_slashes <= 1 && strlen(id) <= MAX_ID;
}

/* Returns the length of REVISION in "REVISION/PATH": only refs/pr/N and refs/convert/X contain slashes. */
static size_t revision_length(const char *text)
{
    static const char *const special[] = {"refs/pr/", "refs/convert/"};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (text_starts_with(text, special[i]))
            return strlen(special[i]) + strcspn(text + strlen(special[i]), "/");
    return strcspn(text, "/");
}

static bool is_good_revision(const char *revision)
{
    for (const char *c = revision; *c != '\0'; c++)
        if (!is_id_character(*c) && *c != '/' && *c != '+')
            return false;
    return *revision != '\0' && strstr(revision, "..") == NULL;
}

static bool parse_name(struct hub *hub, const char *text)
{
    static const char *const others[] = {"datasets/", "spaces/", "buckets/"};
    const char *name = text_starts_with(text, "hf://models/") ? text + strlen("hf://models/") : text + strlen("hf://");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (text_starts_with(name, others[i]))
            return error_set(hub->error, "%s: wfs reads models, not %.*s", text, (int)strlen(others[i]) - 1, others[i]);
    size_t organization = strcspn(name, "/@");
    size_t length =
        name[organization] == '/' ? organization + 1 + strcspn(name + organization + 1, "/@") : organization;
    const char *rest = name + length;
    hub->id = arena_strndup(hub->arena, name, length);
    hub->revision = "main";
    if (*rest == '@') {
        size_t n = revision_length(rest + 1);
        hub->revision = arena_strndup(hub->arena, rest + 1, n);
        rest += 1 + n;
    }
    size_t n_path = strlen(rest);
    while (n_path > 0 && rest[n_path - 1] == '/')
        n_path--;
    hub->path = n_path > 0 ? arena_strndup(hub->arena, rest + 1, n_path - 1) : "";
    hub->shown = arena_printf(hub->arena, "hf://%s", hub->id);
    if (!is_id(hub->id))
        return error_set(hub->error, "%s: not hf://ORG/NAME[@REVISION][/PATH]", text);
    return is_good_revision(hub->revision) || error_set(hub->error, "%s: no revision '%s'", hub->shown, hub->revision);
}

static bool find_hub(struct hub *hub)
{
    if (!libcurl_load(hub->error))
        return error_prefix(hub->error, "%s", hub->shown);
    if (!uri_parse(hub_endpoint(hub->arena), hub->arena, &hub->endpoint, hub->error))
        return error_prefix(hub->error, "HF_ENDPOINT");
    const char *header = hub_authorization(hub->arena, &hub->token_from);
    if (header != NULL) {
        struct http_credential *credential = arena_alloc(hub->arena, sizeof *credential);
        *credential = (struct http_credential){.origin = hub->endpoint.origin, .header = header};
        hub->credential = credential;
    }
    return true;
}

/* Returns the URL of `path`, which is encoded, below the endpoint, which may have a path itself. */
static struct uri endpoint_uri(const struct hub *hub, const char *path)
{
    struct uri uri = hub->endpoint;
    struct error unused;
    const char *text = arena_printf(hub->arena, "%s/%s", hub_endpoint(hub->arena), path);
    uri_parse(text, hub->arena, &uri, &unused);
    return uri;
}

/* Errors: the hub's answers in words that the user can act on. */

/* Explains a refusal for a gated model or one of its files. */
static void explain_gate(const char *shown, const struct answer *answer, struct error *error)
{
    if (strcmp(answer->error_code, "GatedRepo") != 0)
        return;
    if (answer->status == 401)
        error_set(error, "%s: gated: accept its terms on its page, then set HF_TOKEN or run \"hf auth login\"", shown);
    else
        error_set(error, "%s: gated, and this token's account has no access yet: ask for it on the model's page",
                  shown);
}

static bool explain(const struct hub *hub, const struct exchange *exchange)
{
    const struct answer *answer = &exchange->answer;
    const bool has_token = hub->credential != NULL;
    error_set(hub->error, "%s: %s", hub->shown, exchange->error.message);
    if (strstr(answer->error_message, "Invalid credentials") != NULL && has_token)
        error_set(hub->error, "the token in %s is not valid", hub->token_from);
    else if (strcmp(answer->error_code, "RevisionNotFound") == 0)
        error_set(hub->error, "%s: no revision '%s'", hub->shown, hub->revision);
    else if (answer->status == 401 || answer->status == 404)
        error_set(hub->error, "%s: there is no such model, or it is private and %s", hub->shown,
                  has_token ? "this token may not see it" : "HF_TOKEN is missing");
    else if (answer->status == 429)
        error_set(hub->error, "%s: rate limit of the hub reached; it resets in %u s%s", hub->shown, answer->pause,
                  has_token ? "" : "; a token has a higher one");
    explain_gate(hub->shown, answer, hub->error);
    return false;
}

static bool get(const struct hub *hub, const struct uri *uri, struct exchange *ret_exchange)
{
    *ret_exchange = (struct exchange){
        .request = {.uri = *uri, .credential = hub->credential, .is_urgent = true, .question = {.size = SIZE_UNKNOWN}},
        .limit = LIST_LIMIT};
    if (!exchange_all(ret_exchange, 1, hub->arena, hub->error))
        return error_prefix(hub->error, "%s", hub->shown);
    return ret_exchange->verdict == VERDICT_TAKE || explain(hub, ret_exchange);
}

static bool is_hash(const char *text, size_t n_digits)
{
    return text != NULL && strlen(text) == n_digits && strspn(text, "0123456789abcdef") == n_digits;
}

/* Returns a file's key in the store. What the hub states is true of this hub's repository alone. */
static const char *key_of(const struct hub *hub, const char *path, const char *version)
{
    char hash[SHA256_HEX + 1];
    const char *all = arena_printf(hub->arena, "%s\n%s\n%s\n%s", hub->endpoint.text, hub->id, version, path);
    sha256_hex(all, strlen(all), hash);
    return arena_printf(hub->arena, "url-%s", hash);
}

/* Adds a file of the list. `sha256` and `blob`, its git hash, may be NULL. */
static void add_file(struct hub *hub, const char *path, uint64_t size, const char *sha256, const char *blob)
{
    struct arena *arena = hub->arena;
    struct site_file file = {.path = arena_strdup(arena, path), .modified = hub->modified};
    const char *encoded = percent_encode(path, "/", arena);
    file.origin.uri = endpoint_uri(hub, arena_printf(arena, "%s/resolve/%s/%s", hub->id, hub->commit, encoded));
    file.origin.credential = hub->credential;
    file.origin.size = size;
    file.origin.name = arena_printf(arena, "%s/%s", hub->shown, path);
    file.origin.explain = explain_gate;
    file.origin.who = hub->shown;
    if (is_hash(sha256, SHA256_HEX))
        file.origin.sha256 = file.blob = arena_strdup(arena, sha256);
    else if (is_hash(blob, COMMIT_DIGITS))
        file.blob = arena_strdup(arena, blob);
    file.origin.key = key_of(hub, path, file.blob != NULL ? file.blob : hub->commit);
    file.copy = file.blob != NULL ? hub_cache_blob(arena, hub->id, file.blob) : NULL;
    site_add(hub->site, &file);
}

/* Reports whether the list is too long already, whatever follows. */
static bool is_full(const struct hub *hub)
{
    return hub->site->count > SITE_FILES;
}

/* Adds the "siblings" of a model; false if an entry is malformed. */
static bool add_siblings(struct hub *hub, const struct json *siblings)
{
    for (const struct json *one = json_first(siblings); one != NULL && !is_full(hub); one = json_next(one)) {
        const char *path = json_string(json_get(one, "rfilename"), NULL);
        const struct json *lfs = json_get(one, "lfs");
        uint64_t size;
        if (path == NULL || !(json_u64(json_get(lfs, "size"), &size) || json_u64(json_get(one, "size"), &size)))
            return false;
        add_file(hub, path, size, json_string(json_get(lfs, "sha256"), NULL),
                 json_string(json_get(one, "blobId"), NULL));
    }
    return true;
}

/* Adds the files of a page of the tree; false if an entry is malformed. */
static bool add_tree(struct hub *hub, const struct json *entries)
{
    for (const struct json *one = json_first(entries); one != NULL && !is_full(hub); one = json_next(one)) {
        const char *path = json_string(json_get(one, "path"), NULL);
        const struct json *lfs = json_get(one, "lfs");
        uint64_t size;
        if (!json_string_is(json_get(one, "type"), "file"))
            continue;
        if (path == NULL || !json_u64(json_get(one, "size"), &size))
            return false;
        add_file(hub, path, size, json_string(json_get(lfs, "oid"), NULL), json_string(json_get(one, "oid"), NULL));
    }
    return true;
}

static bool check_count(const struct hub *hub, size_t count)
{
    return count <= SITE_FILES ||
           error_set(hub->error, "%s: more than %d files; name a folder of fewer files", hub->shown, SITE_FILES);
}

/* Takes the pages of a tree, which are elements of an array. */
static bool take_tree(struct hub *hub, const char *text, size_t length)
{
    struct json_document *document = json_parse(text, length, hub->error);
    bool good = document != NULL && json_is(json_root(document), JSON_ARRAY);
    hub->site->count = 0;
    for (const struct json *page = good ? json_first(json_root(document)) : NULL; good && page != NULL;
         page = json_next(page))
        good = json_is(page, JSON_ARRAY) && add_tree(hub, page);
    json_free(document);
    if (!good)
        return error_set(hub->error, "%s: the hub's list of files is malformed", hub->shown);
    return check_count(hub, hub->site->count);
}

/* Requests all pages of the tree and joins them, as take_tree() takes them. */
static bool get_tree(struct hub *hub, struct buffer *pages)
{
    struct uri uri = endpoint_uri(
        hub, arena_printf(hub->arena, "api/models/%s/tree/%s?recursive=true&limit=1000", hub->id, hub->commit));
    for (int page = 0; page < TREE_PAGES && pages->length <= TREE_LIMIT; page++) {
        struct exchange exchange;
        if (!get(hub, &uri, &exchange))
            return false;
        buffer_append(pages, page == 0 ? "[" : ",", 1);
        buffer_append(pages, exchange.bytes, exchange.length);
        if (*exchange.answer.next == '\0') {
            buffer_append(pages, "]", 1);
            return true;
        }
        if (!uri_resolve(&exchange.uri, exchange.answer.next, hub->arena, &uri, hub->error))
            return error_prefix(hub->error, "%s", hub->shown);
    }
    return error_set(hub->error, "%s: the hub's list of files does not end", hub->shown);
}

/* Returns the name of a revision's list in the store. */
static const char *memo_of(const struct hub *hub, const char *revision)
{
    char hash[SHA256_HEX + 1];
    const char *all = arena_printf(hub->arena, "%s\n%s\n%s", hub->endpoint.text, hub->id, revision);
    sha256_hex(all, strlen(all), hash);
    return arena_printf(hub->arena, "hub-%s", hash);
}

/* Returns the name of a commit's tree in the store. */
static const char *tree_memo_of(const struct hub *hub)
{
    return arena_printf(hub->arena, "%s-tree", memo_of(hub, hub->commit));
}

/* Reads the tree, for models with so many files that their list may be cut. */
static bool read_tree(struct hub *hub)
{
    struct buffer pages = {0};
    bool taken = get_tree(hub, &pages) && take_tree(hub, (const char *)pages.bytes, pages.length);
    if (taken)
        store_save(tree_memo_of(hub), (const char *)pages.bytes, pages.length);
    buffer_free(&pages);
    return taken;
}

/* Takes the stored tree of the commit. */
static bool recall_tree(struct hub *hub)
{
    size_t length;
    const char *text = store_load(tree_memo_of(hub), TREE_LIMIT, hub->arena, &length);
    return text != NULL && take_tree(hub, text, length);
}

/* Parses "2024-05-01T12:00:00.000Z"; 0 if it is not a time. */
static struct timespec time_of(const char *text)
{
    struct tm time = {0};
    bool good = text != NULL && strptime(text, "%Y-%m-%dT%H:%M:%S", &time) != NULL;
    return (struct timespec){.tv_sec = good ? timegm(&time) : 0};
}

static bool take_list(struct hub *hub, const char *text, size_t length)
{
    struct json_document *document = json_parse(text, length, hub->error);
    const struct json *root = document != NULL ? json_root(document) : NULL, *siblings = json_get(root, "siblings");
    const char *commit = json_string(json_get(root, "sha"), NULL);
    bool good = is_hash(commit, COMMIT_DIGITS) && json_is(siblings, JSON_ARRAY);
    if (good) {
        hub->commit = arena_strdup(hub->arena, commit);
        hub->modified = time_of(json_string(json_get(root, "lastModified"), NULL));
        good = add_siblings(hub, siblings);
    }
    bool is_disabled = json_bool(json_get(root, "disabled"), false);
    json_free(document);
    if (is_disabled)
        return error_set(hub->error, "%s: the hub has disabled access to this model", hub->shown);
    if (!good)
        return error_set(hub->error, "%s: the hub's list of files is malformed", hub->shown);
    return check_count(hub, hub->site->count);
}

/* Takes a stored list if it is certain to apply: a commit's always, any revision's if wfs is offline. */
static bool recall(struct hub *hub)
{
    size_t length;
    bool is_commit = is_hash(hub->revision, COMMIT_DIGITS), is_offline = remote_options().offline;
    char *text =
        is_commit || is_offline ? store_load(memo_of(hub, hub->revision), LIST_LIMIT, hub->arena, &length) : NULL;
    if (text == NULL)
        return false;
    struct error unused, *error = hub->error;
    hub->error = &unused;
    bool taken = take_list(hub, text, length) && (hub->site->count < COMPLETE_NAMES || recall_tree(hub));
    hub->error = error;
    if (!taken)
        hub->site->count = 0;
    return taken;
}

static bool read_list(struct hub *hub)
{
    struct exchange exchange;
    if (recall(hub))
        return true;
    if (remote_options().offline)
        return error_set(hub->error, "%s: offline, and '%s' is not in the cache; open it once without -o offline",
                         hub->shown, hub->revision);
    const char *revision = percent_encode(hub->revision, "", hub->arena);
    const struct uri uri =
        endpoint_uri(hub, arena_printf(hub->arena, "api/models/%s/revision/%s?blobs=true", hub->id, revision));
    if (!get(hub, &uri, &exchange) || !take_list(hub, (const char *)exchange.bytes, exchange.length))
        return false;
    store_save(memo_of(hub, hub->revision), (const char *)exchange.bytes, exchange.length);
    store_save(memo_of(hub, hub->commit), (const char *)exchange.bytes, exchange.length);
    return hub->site->count < COMPLETE_NAMES || read_tree(hub);
}

static struct location *hub_open(const char *text, enum location_links links, const char **ret_file,
                                 struct error *error)
{
    struct site *site = site_new(text);
    struct hub hub = {.arena = site->arena, .site = site, .error = error};
    if (!parse_name(&hub, text) || !find_hub(&hub) || !read_list(&hub)) {
        site_free(site);
        return NULL;
    }
    const char *slash = strchr(hub.id, '/');
    site->name = slash != NULL ? slash + 1 : hub.id;
    site->shown = hub.shown;
    site->repository = hub.id;
    site->revision = hub.revision;
    site->commit = hub.commit;
    return site_location(site, hub.path, ret_file, error);
}

/* A hub of the user's own, at a port of its own, sends to stores of files elsewhere. */
static bool names_all_ports(void)
{
    struct arena *arena = arena_new();
    const char *host = strstr(hub_endpoint(arena), "://");
    bool result = host == NULL || strchr(host + 3, ':') == NULL;
    arena_free(arena);
    return result;
}

const struct location_scheme hub_scheme = {.prefix = "hf://", .open = hub_open, .names_all_ports = names_all_ports};
