/* Any text as a request to `wfs serve`, by the hub's protocol, a registry's or S3's: lines of its target and of the
 * headers Range, If-Range, If-Match, If-None-Match, If-Modified-Since, User-Agent, Accept and Authorization. WebDAV
 * takes the first two headers for the depth and the body. The model is always the same.
 *
 * Holds for every answer: it has a status that the server sends, and the part of a file is in the file. */
#include "fs/http/admission.h"
#include "fs/http/protocols.h"
#include "fs/http/s3.h"
#include "fs/tree/content_options.h"
#include "models/formats.h"

#include "tests/fuzz/fuzz.h"
#include "tests/unit/write_safetensors.h"

enum { N_LINES = 9, MOST_BYTES = 1 << 14 };

static char directory[] = "/tmp/wfs-fuzz-XXXXXX";
static const struct checkpoint *checkpoint;
static struct tree *tree;
static struct arena *names;
static struct repositories repositories;
static struct digests *digests;
static struct blob_places *places;

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void count_nothing(void *context, uint64_t n_bytes)
{
    (void)context;
    (void)n_bytes;
}

static void remove_model(void)
{
    digests_free(digests);
    blob_places_free(places);
    repositories_free(&repositories);
    arena_free(names);
    tree_free(tree);
    checkpoint_close(checkpoint);
    unlink(path_of("config.json"));
    unlink(path_of("model.safetensors"));
    rmdir(directory);
}

static void make_model(void)
{
    static const struct open_options options;
    static const struct content_options content_options;
    struct error error;
    struct safetensors file = {0};
    require(mkdtemp(directory) != NULL && atexit(remove_model) == 0);
    files_write_text(path_of("config.json"), "{\"model_type\":\"llama\"}");
    safetensors_add(&file, "model.norm.weight", "F32", "8", NULL, 32);
    safetensors_write(&file, path_of("model.safetensors"));
    checkpoint = checkpoint_open(directory, formats, &options, &error);
    require(checkpoint != NULL);
    tree = tree_new(checkpoint, &content_options, &error);
    names = arena_new();
    digests = digests_new(false, count_nothing, NULL);
    places = blob_places_new();
    require(tree != NULL && repositories_add(&repositories, tree, "org/model", NULL, 0, names, &error));
    require(repositories.count > 0);
}

/* The input's lines as texts; NULL after the last. */
static void split(char *text, size_t size, const char *lines[N_LINES])
{
    char *end = text + size;
    for (size_t i = 0; i < N_LINES; i++) {
        char *newline = text < end ? memchr(text, '\n', (size_t)(end - text)) : NULL;
        lines[i] = text < end ? text : NULL;
        if (newline != NULL)
            *newline = '\0';
        text = newline != NULL ? newline + 1 : end;
    }
}

static void check(const struct answer *answer)
{
    unsigned char bytes[64];
    struct error error;
    require(answer->status == 0 || (answer->status >= 200 && answer->status < 600));
    if (!answer->is_file)
        return;
    require(answer->first <= answer->file.size && answer->length <= answer->file.size - answer->first);
    size_t n_bytes = answer->length < sizeof bytes ? (size_t)answer->length : sizeof bytes;
    require(vfile_read(&answer->file, answer->first, n_bytes, bytes, &error));
}

static void answer(const struct http_request *request, const struct route *route)
{
    struct answer answer;
    answer_begin(&answer);
    protocols_answer(&(struct served){&repositories, digests, places}, request, route, &answer);
    check(&answer);
    answer_free(&answer);
}

/* Answers the same address by WebDAV. */
static void answer_dav(const struct http_request *request, const struct route *route, const char *depth,
                       const char *body)
{
    struct http_request propfind = *request;
    struct route listed = *route;
    const struct http_header header = {"Depth", depth != NULL ? depth : "1"};
    propfind.method = "PROPFIND";
    propfind.head = false;
    propfind.headers = &header;
    propfind.n_headers = 1;
    propfind.body = body;
    propfind.body_length = body != NULL ? strlen(body) : 0;
    require(dav_is_asked(&propfind, route));
    listed.kind = ROUTE_DAV;
    answer(&propfind, &listed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[MOST_BYTES + 1];
    const char *lines[N_LINES], *host = NULL;
    if (size > MOST_BYTES)
        return 0;
    if (tree == NULL)
        make_model();
    memcpy(text, data, size);
    text[size] = '\0';
    split(text, size, lines);
    struct arena *arena = arena_new();
    const char *path = route_path(lines[0] != NULL ? lines[0] : "", &host, arena);
    const char *query = path != NULL ? strchr(path, '?') : NULL;
    const struct http_header headers[] = {{"Authorization", lines[8] != NULL ? lines[8] : ""},
                                          {"x-amz-date", "20260131T120000Z"},
                                          {"Host", lines[6] != NULL ? lines[6] : ""}};
    const struct http_request request = {
        .method = size % 3 == 0 ? "HEAD" : "GET",
        .path = path != NULL ? arena_strndup(arena, path, strcspn(path, "?")) : "",
        .query = query != NULL ? query + 1 : "",
        .headers = headers,
        .n_headers = size % 4,
        .head = size % 3 == 0,
        .range = lines[1],
        .if_range = lines[2],
        .if_match = lines[3],
        .if_none_match = lines[4],
        .if_modified_since = lines[5],
        .user_agent = lines[6],
        .origin = arena_printf(arena, "http://%s", host != NULL ? host : "127.0.0.1:8090"),
        .accept = lines[7],
        .recursive = size % 2,
        .limit = size % 8,
    };
    struct route route = route_parse(request.path, arena);
    if (s3_is_asked(&request, &route)) {
        struct s3_refusal refusal;
        route = route_parse_s3(request.path, arena);
        require(!s3_signature_is_valid(&request, "token", 0, &refusal));
    }
    if (route.kind != ROUTE_UNKNOWN && route.kind != ROUTE_METRICS && route.kind != ROUTE_HEALTH)
        answer(&request, &route);
    if (route.kind == ROUTE_PAGE || route.kind == ROUTE_OWNER || route.kind == ROUTE_PATH)
        answer_dav(&request, &route, lines[1], lines[2]);
    require(!access_has_token(lines[8], "token") || strlen(lines[8]) > strlen("Basic "));
    arena_free(arena);
    return 0;
}
