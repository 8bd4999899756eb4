#include "fs/http/s3.h"

#include "base/text.h"
#include "fs/http/file_answer.h"
#include "fs/http/xml.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Reports whether a word of a list, which ends with NULL, is a text; `ignores_case` for names of headers. */
static bool is_among(const char *text, const char *const *list, bool ignores_case)
{
    while (*list != NULL && (ignores_case ? strcasecmp(*list, text) : strcmp(*list, text)) != 0)
        list++;
    return *list != NULL;
}

/* What a bucket or an object may be asked for beside itself, and is not here. */
static const char *const lacking[] = {
    "accelerate",
    "acl",
    "analytics",
    "attributes",
    "cors",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "retention",
    "select",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versions",
    "website",
    NULL,
};

bool s3_is_asked(const struct http_request *request, const struct route *route)
{
    static const char *const headers[] = {"x-amz-date", "x-amz-content-sha256", "x-amz-checksum-mode",
                                          "amz-sdk-invocation-id", NULL};
    static const char *const parameters[] = {"list-type", "prefix",     "delimiter", "marker",
                                             "max-keys",  "partNumber", "versionId", "continuation-token",
                                             "location",  "versioning", "x-id",      NULL};
    bool is_asked = false;
    struct arena *arena = arena_new();
    for (size_t i = 0; i < request->n_headers; i++)
        is_asked |= is_among(request->headers[i].name, headers, true) ||
                    (strcasecmp(request->headers[i].name, "Authorization") == 0 &&
                     text_starts_with(request->headers[i].value, "AWS"));
    struct query query = query_parse(request->query, arena);
    bool is_here = route->kind == ROUTE_PAGE || route->kind == ROUTE_OWNER || route->kind == ROUTE_PATH;
    for (size_t i = 0; i < query.count; i++) {
        const char *name = query.items[i].name;
        is_asked |= text_starts_with(name, "X-Amz-") || strcmp(name, "AWSAccessKeyId") == 0 ||
                    (is_here && (is_among(name, parameters, false) || is_among(name, lacking, false)));
    }
    arena_free(arena);
    return is_asked;
}

bool s3_refuse(const struct http_request *request, const char *secret, struct answer *answer)
{
    struct s3_refusal refusal = {0};
    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        s3_fail(answer, 405, "MethodNotAllowed", "wfs serves files to read: only GET and HEAD are answered");
        answer_header(answer, "Allow", "GET, HEAD");
    } else if (secret != NULL && !s3_signature_is_valid(request, secret, time(NULL), &refusal)) {
        s3_fail(answer, refusal.status, refusal.code, "%s", refusal.message);
    } else {
        return false;
    }
    return true;
}

static bool is_of_owner(const struct repository *repository, const char *owner)
{
    size_t length = strlen(owner);
    return strncmp(repository->id, owner, length) == 0 && repository->id[length] == '/';
}

static bool has_bucket(const struct repositories *repositories, const char *bucket)
{
    for (size_t i = 0; i < repositories->count; i++)
        if (is_of_owner(&repositories->items[i], bucket))
            return true;
    return false;
}

static void put_bucket(struct buffer *out, const struct repository *repository)
{
    size_t length = strcspn(repository->id, "/");
    buffer_append_text(out, "<Bucket><Name>");
    xml_put_text(out, repository->id, length);
    buffer_append_text(out, "</Name>");
    s3_put_time(out, "CreationDate", repository->modified.tv_sec);
    buffer_append_text(out, "</Bucket>");
}

static void answer_buckets(const struct repositories *repositories, struct answer *answer)
{
    struct buffer *out = s3_begin(answer, "ListAllMyBucketsResult");
    buffer_append_text(out, "<Owner><ID>wfs</ID><DisplayName>wfs</DisplayName></Owner><Buckets>");
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *repository = &repositories->items[i];
        if (repository_is_first_of_owner(repositories, i, NULL))
            put_bucket(out, repository);
    }
    buffer_append_text(out, "</Buckets></ListAllMyBucketsResult>\n");
}

static void answer_bucket(const struct repositories *repositories, const struct http_request *request,
                          const struct query *query, const char *bucket, struct answer *answer)
{
    if (!has_bucket(repositories, bucket))
        s3_fail(answer, 404, "NoSuchBucket", "there is no bucket '%s' here: a bucket is an owner of models", bucket);
    else if (query_value(query, "location") != NULL)
        buffer_append_text(s3_begin(answer, "LocationConstraint"), "</LocationConstraint>\n");
    else if (query_value(query, "versioning") != NULL)
        buffer_append_text(s3_begin(answer, "VersioningConfiguration"), "</VersioningConfiguration>\n");
    else if (!request->head)
        s3_list(repositories, query, bucket, answer);
}

/* Answers in S3's form what file_answer() refuses. */
static void restate(struct answer *answer)
{
    static const struct {
        unsigned status;
        const char *code;
    } codes[] = {{412, "PreconditionFailed"}, {416, "InvalidRange"}, {0, "InternalError"}};
    const char *message = "", *range = NULL;
    size_t i = 0;
    for (size_t j = 0; j < answer->n_headers; j++) {
        message = strcmp(answer->headers[j].name, "X-Error-Message") == 0 ? answer->headers[j].value : message;
        range = strcmp(answer->headers[j].name, "Content-Range") == 0 ? answer->headers[j].value : range;
    }
    while (codes[i].status != 0 && codes[i].status != answer->status)
        i++;
    s3_fail(answer, answer->status, codes[i].code, "%s", message);
    if (range != NULL)
        answer_header(answer, "Content-Range", "%s", range);
}

static const struct repository_file *find_object(const struct repositories *repositories, const struct route *route,
                                                 struct arena *arena, const struct repository **ret_repository)
{
    const char *slash = strchr(route->path, '/');
    if (slash == NULL)
        return NULL;
    const char *id = arena_printf(arena, "%s/%.*s", route->repository, (int)(slash - route->path), route->path);
    *ret_repository = repository_find(repositories, id);
    return *ret_repository != NULL ? repository_file(*ret_repository, slash + 1) : NULL;
}

/* Reports whether a text is a whole number from 1 on, with no more digits than S3's limit, 10000, has. */
static bool is_part(const char *text)
{
    size_t length = strlen(text);
    return length >= 1 && length <= 5 && strspn(text, "0123456789") == length && *text != '0' &&
           (length < 5 || strcmp(text, "10000") <= 0);
}

/* Refuses a part or a version that an object here does not have: it has one part and no versions, as one that was
 * uploaded at once into a bucket without versions, whose version is "null". Returns false for the others. */
static bool refuse_choice(const struct http_request *request, const struct query *query, struct answer *answer)
{
    enum { MOST_VERSION = 1024 };
    const char *part = query_value(query, "partNumber"), *version = query_value(query, "versionId");
    size_t n_version = version != NULL ? strlen(version) : 0;
    if (version != NULL && (n_version == 0 || n_version > MOST_VERSION))
        s3_fail(answer, 400, "InvalidArgument", "versionId has no or more than %d bytes", MOST_VERSION);
    else if (version != NULL && strcmp(version, "null") != 0)
        s3_fail(answer, 404, "NoSuchVersion", "objects here have no versions");
    else if (part != NULL && !is_part(part))
        s3_fail(answer, 400, "InvalidArgument", "partNumber is a number from 1 to 10000");
    else if (part != NULL && request->range != NULL)
        s3_fail(answer, 400, "InvalidRequest", "a request has a Range or a partNumber, not both");
    else if (part != NULL && strcmp(part, "1") != 0)
        s3_fail(answer, 416, "InvalidPartNumber", "objects here have one part");
    else
        return false;
    return true;
}

/* Makes the answer with an object that with its only part, which S3 answers like a range; no range is empty. */
static void answer_part(const struct query *query, struct answer *answer)
{
    uint64_t size = answer->file.size;
    if (query_value(query, "partNumber") == NULL || answer->status != 200 || size == 0)
        return;
    answer->status = 206;
    answer_header(answer, "Content-Range", "bytes 0-%" PRIu64 "/%" PRIu64, size - 1, size);
}

static void answer_object(const struct repositories *repositories, const struct http_request *request,
                          const struct query *query, const struct route *route, struct answer *answer)
{
    const struct repository *repository = NULL;
    const struct repository_file *file = find_object(repositories, route, answer->arena, &repository);
    if (!has_bucket(repositories, route->repository))
        s3_fail(answer, 404, "NoSuchBucket", "there is no bucket '%s' here: a bucket is an owner of models",
                route->repository);
    else if (file == NULL)
        s3_fail(answer, 404, "NoSuchKey", "there is no key '%s' here", route->path);
    else if (refuse_choice(request, query, answer))
        return;
    else if (!file_answer(repository, file->node, file->name, S3_TAG_ENDING, request, answer))
        s3_fail(answer, 404, "NoSuchKey", "there is no key '%s' here: %s", route->path,
                repository_refusal_of(repository, file, answer->arena));
    else if (answer->status >= 400)
        restate(answer);
    else
        answer_part(query, answer);
}

void s3_answer(const struct served *served, const struct http_request *request, const struct route *route,
               struct answer *answer)
{
    struct query query = query_parse(request->query, answer->arena);
    const char *lacks = NULL;
    for (size_t i = 0; i < query.count; i++)
        lacks = is_among(query.items[i].name, lacking, false) ? query.items[i].name : lacks;
    if (lacks != NULL)
        s3_fail(answer, 501, "NotImplemented", "wfs does not answer ?%s", lacks);
    else if (*route->repository == '\0')
        answer_buckets(served->repositories, answer);
    else if (*route->path == '\0')
        answer_bucket(served->repositories, request, &query, route->repository, answer);
    else
        answer_object(served->repositories, request, &query, route, answer);
}

struct buffer *s3_begin(struct answer *answer, const char *element)
{
    struct buffer *out = &answer->text;
    answer_header(answer, "Content-Type", "application/xml");
    xml_put_declaration(out);
    buffer_printf(out, "<%s xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">", element);
    return out;
}

void s3_put(struct buffer *out, const char *element, const char *text)
{
    buffer_printf(out, "<%s>", element);
    xml_put_text(out, text, strlen(text));
    buffer_printf(out, "</%s>", element);
}

void s3_put_number(struct buffer *out, const char *element, uint64_t number)
{
    buffer_printf(out, "<%s>%" PRIu64 "</%s>", element, number, element);
}

void s3_put_time(struct buffer *out, const char *element, time_t time)
{
    char text[40];
    struct tm utc = {0};
    gmtime_r(&time, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.000Z", &utc);
    s3_put(out, element, text);
}

void s3_fail(struct answer *answer, unsigned status, const char *code, const char *format, ...)
{
    struct error error;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error.message, sizeof error.message, format, arguments);
    va_end(arguments);
    answer_fail(answer, status, NULL, "%s", error.message);
    buffer_free(&answer->text);
    answer->text = (struct buffer){0};
    answer->n_headers = 0;
    answer_header(answer, "Content-Type", "application/xml");
    xml_put_declaration(&answer->text);
    buffer_append_text(&answer->text, "<Error>");
    s3_put(&answer->text, "Code", code);
    s3_put(&answer->text, "Message", error.message);
    buffer_append_text(&answer->text, "</Error>\n");
}
