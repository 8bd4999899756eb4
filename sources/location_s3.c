/* Objects in S3 and the stores that speak its protocol: s3://BUCKET[/PREFIX][/KEY].
 *
 * One request lists a thousand objects with their sizes and ETags. The text may name an object or a prefix of objects:
 * one step requests both. Requests are signed with the credentials of AWS's own tools.
 *
 * Source: Amazon S3 API Reference, ListObjectsV2, GetObject, "Methods for accessing a bucket". */
#include "base/encodings.h"
#include "base/text.h"
#include "remote/aws.h"
#include "remote/http.h"
#include "remote/libcurl.h"
#include "remote/options.h"
#include "remote/s3_answer.h"
#include "sources/site.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUCKET_LEAST = 3, BUCKET_MOST = 63 /* bytes */ };
enum { PAGE_LIMIT = 4 << 20 /* bytes */, MAX_PAGES = 1 + SITE_FILES / 1000 };

struct s3 {
    struct arena *arena; /* the site's */
    struct site *site;
    const char *bucket, *path; /* without slashes at its ends; "" for the whole bucket */
    const char *shown;
    struct aws_settings settings;
    struct http_credential *credential; /* in the arena, as the site's files have it */
    struct uri base;                    /* of the bucket; its path ends in '/' */
    struct error *error;
};

static bool parse_text(struct s3 *s3, const char *text)
{
    const char *rest = text + strlen("s3://"), *slash = strchr(rest, '/');
    size_t length = slash != NULL ? (size_t)(slash - rest) : strlen(rest);
    s3->bucket = arena_strndup(s3->arena, rest, length);
    if (length < BUCKET_LEAST || length > BUCKET_MOST ||
        strspn(s3->bucket, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") != length)
        return error_set(s3->error,
                         "'%s' is no name of a bucket, which has 3 to 63 letters, digits, '-' and '.'; write "
                         "s3://BUCKET/PREFIX",
                         s3->bucket);
    char *path = arena_strdup(s3->arena, slash != NULL ? slash + 1 : "");
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        path[--end] = '\0';
    s3->path = path;
    return true;
}

/* Sets the bucket's URL: a path of a given endpoint, else Amazon's host for the bucket, unless TLS would refuse its
 * name. */
static bool find_bucket(struct s3 *s3)
{
    const struct aws_settings *settings = &s3->settings;
    const char *url;
    if (settings->endpoint != NULL)
        url = arena_printf(s3->arena, "%s/%s/", settings->endpoint, s3->bucket);
    else if (strchr(s3->bucket, '.') != NULL)
        url = arena_printf(s3->arena, "https://s3.%s.amazonaws.com/%s/", settings->region, s3->bucket);
    else
        url = arena_printf(s3->arena, "https://%s.s3.%s.amazonaws.com/", s3->bucket, settings->region);
    if (!uri_parse(url, s3->arena, &s3->base, s3->error))
        return error_prefix(s3->error, "the endpoint of AWS_ENDPOINT_URL");
    if (!uri_is_private(&s3->base))
        return error_set(s3->error,
                         "http:// lets others read and change the model on its way; use an https:// endpoint");
    s3->credential = arena_alloc(s3->arena, sizeof *s3->credential);
    *s3->credential = (struct http_credential){
        .origin = s3->base.origin, .sign = aws_sign, .scope = arena_strdup(s3->arena, settings->region)};
    return true;
}

static bool find_settings(struct s3 *s3)
{
    return aws_settings_read(s3->arena, &s3->settings, s3->error) && find_bucket(s3);
}

/* Makes the request for a page of the objects below a prefix; with a delimiter, only of those in the folder itself.
 * Signing requires sorted parameters. */
static struct exchange page_of(const struct s3 *s3, const char *prefix, bool only_folder, const char *token)
{
    struct arena *arena = s3->arena;
    const char *query =
        arena_printf(arena, "%s%s%s%sencoding-type=url&list-type=2&max-keys=1000&prefix=%s",
                     token != NULL ? "continuation-token=" : "", token != NULL ? percent_encode(token, "", arena) : "",
                     token != NULL ? "&" : "", only_folder ? "delimiter=%2F&" : "", percent_encode(prefix, "", arena));
    struct uri uri = s3->base;
    uri.text = arena_printf(arena, "%s?%s", s3->base.text, query);
    uri.query = query;
    return (struct exchange){
        .request = {.uri = uri, .credential = s3->credential, .is_urgent = true, .question = {.size = SIZE_UNKNOWN}},
        .limit = PAGE_LIMIT,
    };
}

/* Explains the store's error codes to a person; unknown codes are shown unchanged. */
static bool explain(struct s3 *s3, const struct exchange *page)
{
    bool is_anonymous = s3->settings.key_id == NULL;
    const struct s3_failure failure = s3_failure_read(page->refusal, strlen(page->refusal), s3->arena);
    const char *code = failure.code != NULL ? failure.code : "";
    if (strcmp(code, "NoSuchBucket") == 0)
        return error_set(s3->error, "there is no such bucket");
    if (strcmp(code, "InvalidBucketName") == 0)
        return error_set(s3->error, "the store accepts no such name of a bucket");
    if (strcmp(code, "AccessDenied") == 0 && is_anonymous)
        return error_set(s3->error, "access is denied without credentials; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
                                    "AWS_SECRET_ACCESS_KEY");
    if (strcmp(code, "AccessDenied") == 0)
        return error_set(s3->error, "these credentials may not list the bucket");
    if (strcmp(code, "InvalidAccessKeyId") == 0 || strcmp(code, "SignatureDoesNotMatch") == 0)
        return error_set(s3->error, "the store does not accept the credentials: %s", code);
    if (strcmp(code, "ExpiredToken") == 0)
        return error_set(s3->error, "the temporary credentials have expired");
    if (strcmp(code, "RequestTimeTooSkewed") == 0)
        return error_set(s3->error, "the store refuses the time of this machine; set its clock");
    if (failure.code != NULL && failure.message != NULL)
        return error_set(s3->error, "%s: %s", failure.code, failure.message);
    *s3->error = page->error;
    return false;
}

static const char *hash_of(const struct s3 *s3, const char *kind, const char *all)
{
    char hash[SHA256_HEX + 1];
    sha256_hex(all, strlen(all), hash);
    return arena_printf(s3->arena, "%s-%s", kind, hash);
}

/* Adds an object as the file `path`. Its key in the store covers everything that identifies its bytes. */
static void add_file(struct s3 *s3, const char *prefix, const struct site_memory *object)
{
    const char *key = arena_printf(s3->arena, "%s%s", prefix, object->path);
    const char *all = arena_printf(s3->arena, "%s%s\n%s\n%s\n%" PRId64 "\n%" PRIu64, s3->base.origin, s3->base.path,
                                   key, object->etag, object->modified, object->size);
    const struct site_file file = {
        .path = object->path,
        .origin = {.uri = uri_below(&s3->base, key, s3->arena),
                   .credential = s3->credential,
                   .key = hash_of(s3, "s3", all),
                   .name = arena_printf(s3->arena, "s3://%s/%s", s3->bucket, key),
                   .size = object->size,
                   .etag = object->etag},
        .modified.tv_sec = object->modified,
    };
    site_add(s3->site, &file);
}

static int64_t time_of(const char *text)
{
    struct tm utc = {0};
    return text != NULL && strptime(text, "%Y-%m-%dT%H:%M:%S", &utc) != NULL ? (int64_t)timegm(&utc) : 0;
}

/* Adds the objects of a page as files below `prefix`. */
static bool add_page(struct s3 *s3, const char *prefix, const struct s3_page *page)
{
    for (size_t i = 0; i < page->n_objects; i++) {
        const struct s3_object *object = &page->objects[i];
        if (!text_starts_with(object->key, prefix))
            return error_set(s3->error, "the store lists '%s', which is not below '%s'", object->key, prefix);
        if (object->etag == NULL)
            return error_set(s3->error, "the store lists '%s' without an ETag", object->key);
        if (s3->site->count == SITE_FILES)
            return error_set(s3->error, "more than %d objects; name a prefix of fewer", SITE_FILES);
        add_file(s3, prefix,
                 &(struct site_memory){object->key + strlen(prefix), object->etag, object->size,
                                       time_of(object->last_modified)});
    }
    return true;
}

/* Returns the name under which the store keeps the list of a prefix. */
static const char *memo_of(const struct s3 *s3, const char *prefix)
{
    return hash_of(s3, "s3-list", arena_printf(s3->arena, "%s%s\n%s", s3->base.origin, s3->base.path, prefix));
}

/* Reads all pages of a listing, the first of which has arrived. */
static bool add_pages(struct s3 *s3, const char *prefix, bool only_folder, struct exchange *page)
{
    for (int i = 0; i < MAX_PAGES; i++) {
        struct s3_page found;
        if (page->verdict != VERDICT_TAKE)
            return explain(s3, page);
        if (!s3_page_read((const char *)page->bytes, page->length, s3->arena, &found, s3->error) ||
            !add_page(s3, prefix, &found))
            return false;
        if (found.next == NULL) {
            site_remember(s3->site, memo_of(s3, prefix));
            return true;
        }
        *page = page_of(s3, prefix, only_folder, found.next);
        if (!exchange_all(page, 1, s3->arena, s3->error))
            return false;
    }
    return error_set(s3->error, "the store's listing does not end");
}

/* Switches to the region that a refusal names; false if it names none, or the current one. */
static bool take_region(struct s3 *s3, const struct exchange *page)
{
    const struct s3_failure failure = s3_failure_read(page->refusal, strlen(page->refusal), s3->arena);
    if (failure.region == NULL || strcmp(failure.region, s3->settings.region) == 0)
        return false;
    s3->settings.region = failure.region;
    return find_bucket(s3);
}

/* The two readings of the text: a prefix, with a slash after it, or an object in its folder. */
struct request_pair {
    const char *prefixes[2];
    bool only_folder[2];
    size_t count;
};

static struct request_pair requests_of(const struct s3 *s3)
{
    if (*s3->path == '\0')
        return (struct request_pair){{""}, {false}, 1};
    const char *slash = strrchr(s3->path, '/');
    return (struct request_pair){
        {arena_printf(s3->arena, "%s/", s3->path),
         arena_strndup(s3->arena, s3->path, slash != NULL ? (size_t)(slash + 1 - s3->path) : 0)},
        {false, true},
        2,
    };
}

/* Makes the first requests, and repeats them if the bucket is in another region. */
static bool ask(struct s3 *s3, const struct request_pair *pair, struct exchange pages[2])
{
    for (int attempt = 0; attempt < 2; attempt++) {
        for (size_t i = 0; i < pair->count; i++)
            pages[i] = page_of(s3, pair->prefixes[i], pair->only_folder[i], NULL);
        if (!exchange_all(pages, pair->count, s3->arena, s3->error))
            return false;
        if (pages[0].verdict == VERDICT_TAKE)
            return true;
        if (!take_region(s3, &pages[0]))
            break;
    }
    return explain(s3, &pages[0]);
}

struct recalling {
    struct s3 *s3;
    const char *prefix;
};

static void take_known(void *context, const struct site_memory *memory)
{
    const struct recalling *recalling = context;
    add_file(recalling->s3, recalling->prefix, memory);
}

/* Adds the stored list of the objects below a prefix. */
static void recall(struct s3 *s3, const char *prefix)
{
    site_recall(memo_of(s3, prefix), s3->arena, take_known, &(struct recalling){s3, prefix});
}

/* The code lets location_open() look for an archive above. */
static bool fail_as_missing(const struct s3 *s3)
{
    error_set(s3->error, "the bucket has no object of that name, and none below it");
    return error_set_code(s3->error, ENOENT);
}

/* Adds the objects below the named prefix or, if there are none, those in the folder of the named object. Does not use
 * `pages` offline. */
static bool add_either(struct s3 *s3, const struct request_pair *pair, struct exchange pages[2], bool *ret_is_file)
{
    bool is_offline = remote_options().offline;
    for (size_t i = 0; i < pair->count; i++) {
        *ret_is_file = i == 1;
        if (is_offline)
            recall(s3, pair->prefixes[i]);
        else if (!add_pages(s3, pair->prefixes[i], pair->only_folder[i], &pages[i]))
            return false;
        if (s3->site->count > 0)
            return true;
    }
    if (is_offline || pair->count == 1)
        return error_set(s3->error, is_offline ? "offline, and not in the cache; open it once without -o offline"
                                               : "the bucket has no objects");
    return fail_as_missing(s3);
}

/* Fills the site; *ret_file is the name of the named object, or NULL. */
static bool find_files(struct s3 *s3, const char **ret_file)
{
    const struct request_pair pair = requests_of(s3);
    struct exchange pages[2];
    bool is_file;
    if ((!remote_options().offline && !ask(s3, &pair, pages)) || !add_either(s3, &pair, pages, &is_file))
        return false;
    *ret_file = is_file ? s3->path + strlen(pair.prefixes[1]) : NULL;
    for (size_t i = 0; is_file && i < s3->site->count; i++)
        if (strcmp(s3->site->files[i].path, *ret_file) == 0)
            return true;
    return !is_file || fail_as_missing(s3);
}

/* Returns the name of the last folder in the path, or of the bucket. */
static const char *model_of(const struct s3 *s3, const char *file)
{
    size_t end = strlen(s3->path) - (file != NULL ? strlen(file) : 0), start;
    while (end > 0 && s3->path[end - 1] == '/')
        end--;
    for (start = end; start > 0 && s3->path[start - 1] != '/'; start--)
        continue;
    return end > start ? arena_strndup(s3->arena, s3->path + start, end - start) : s3->bucket;
}

static struct location *s3_open(const char *text, enum location_links links, const char **ret_file, struct error *error)
{
    struct site *site = site_new(text);
    struct s3 s3 = {.arena = site->arena, .site = site, .shown = text, .error = error};
    const char *file;
    if (libcurl_load(error) && parse_text(&s3, text) && find_settings(&s3) && find_files(&s3, &file)) {
        site->name = model_of(&s3, file);
        return site_location(site, file != NULL ? file : "", ret_file, error);
    }
    error_prefix(error, "%s", text);
    site_free(site);
    return NULL;
}

/* The file of AWS's settings may name an endpoint. */
static bool names_all_ports(void)
{
    return false;
}

const struct location_scheme s3_scheme = {.prefix = "s3://", .open = s3_open, .names_all_ports = names_all_ports};
