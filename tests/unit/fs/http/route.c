#include "fs/http/route.h"

#include "tests/unit/check.h"

static const struct {
    const char *target;
    struct route expected;
} targets[] = {
    {"/", {ROUTE_PAGE, "", "", "", true}},
    {"", {ROUTE_PAGE, "", "", "", true}},
    {"/metrics", {ROUTE_METRICS, "", "main", ""}},
    {"/metrics/x", {ROUTE_UNKNOWN, "", "", ""}},
    {"/healthz", {ROUTE_HEALTH, "", "main", ""}},
    {"/acme", {ROUTE_OWNER, "acme", "main", ""}},
    {"/view/acme/Llama", {ROUTE_VIEW, "acme/Llama", "main", ""}},
    {"/view/acme/Llama/x", {ROUTE_UNKNOWN, "", "", ""}},
    {"/view/acme", {ROUTE_UNKNOWN, "", "", ""}},
    {"/acme/", {ROUTE_OWNER, "acme", "main", "", true}},
    {"/acme/Llama/", {ROUTE_PATH, "acme/Llama", "main", "", true}},
    {"/acme/Llama/vae/a%20b", {ROUTE_PATH, "acme/Llama", "main", "vae/a b"}},
    {"/v2/acme", {ROUTE_UNKNOWN, "", "", ""}},
    {"/api/models", {ROUTE_MODELS, "", "main", ""}},
    {"/api/models/acme/Llama", {ROUTE_MODEL, "acme/Llama", "main", ""}},
    {"//api/models/acme/Llama/", {ROUTE_MODEL, "acme/Llama", "main", "", true}},
    {"/api/models/acme/Llama/refs", {ROUTE_REFS, "acme/Llama", "main", ""}},
    {"/api/models/acme/Llama/refs/x", {ROUTE_UNKNOWN, "", "", ""}},
    {"/api/models/acme/Llama/revision/refs%2Fpr%2F1", {ROUTE_MODEL, "acme/Llama", "refs/pr/1", ""}},
    {"/api/models/acme/Llama/revision/a/b", {ROUTE_UNKNOWN, "", "", ""}},
    {"/api/models/acme/Llama/tree/main", {ROUTE_TREE, "acme/Llama", "main", ""}},
    {"/api/models/acme/Llama/tree/main/vae/a%20b", {ROUTE_TREE, "acme/Llama", "main", "vae/a b"}},
    {"/api/models/acme", {ROUTE_UNKNOWN, "", "", ""}},
    {"/api/datasets/acme/Llama", {ROUTE_UNKNOWN, "", "", ""}},
    {"/acme/Llama/resolve/main/config.json", {ROUTE_FILE, "acme/Llama", "main", "config.json"}},
    {"/acme/Llama/resolve/main/a/%C3%A9", {ROUTE_FILE, "acme/Llama", "main", "a/\xc3\xa9"}},
    {"/acme/Llama/resolve/main", {ROUTE_PATH, "acme/Llama", "main", "resolve/main"}},
    {"/acme/Llama/blob/main/config.json", {ROUTE_PATH, "acme/Llama", "main", "blob/main/config.json"}},
    {"/v2/acme/Llama-GGUF/manifests/Q4_K_M", {ROUTE_MANIFEST, "acme/Llama-GGUF", "Q4_K_M", ""}},
    {"/v2/", {ROUTE_REGISTRY, "", "main", "", true}},
    {"/v2", {ROUTE_REGISTRY, "", "main", ""}},
    {"/v2/acme/Llama-GGUF/tags/list", {ROUTE_TAGS, "acme/Llama-GGUF", "main", ""}},
    {"/v2/acme/Llama-GGUF/blobs/sha256:00", {ROUTE_BLOB, "acme/Llama-GGUF", "sha256:00", ""}},
    {"/v2/acme/llama/referrers/sha256:00", {ROUTE_REFERRERS, "acme/llama", "sha256:00", ""}},
    {"/v2/acme/Llama-GGUF/blobs", {ROUTE_UNKNOWN, "", "", ""}},
    {"/v2/acme/Llama-GGUF/blobs/sha256:00/x", {ROUTE_UNKNOWN, "", "", ""}},
    {"/acme/Llama/resolve/main/../secret", {ROUTE_UNKNOWN, "", "", ""}},
    {"/acme/Llama/resolve/main/%2e%2E/secret", {ROUTE_UNKNOWN, "", "", ""}},
    {"/acme/Llama/resolve/main/a%00b", {ROUTE_UNKNOWN, "", "", ""}},
    {"/acme/Llama/resolve/main/a%", {ROUTE_UNKNOWN, "", "", ""}},
    {"/acme/Llama/resolve/main/a%4", {ROUTE_UNKNOWN, "", "", ""}},
    {"/acme/Llama/resolve/main/a%zz", {ROUTE_UNKNOWN, "", "", ""}},
    {"/acme/Llama/resolve/main/a%41", {ROUTE_FILE, "acme/Llama", "main", "aA"}},
};

static const struct {
    const char *target, *path, *host;
} absolute[] = {
    {"/api/models", "/api/models", NULL},
    {"http://a/api/models", "/api/models", "a"},
    {"HTTPS://a.b:8090/x", "/x", "a.b:8090"},
    {"http://[::1]:80", "", "[::1]:80"},
    {"http:///x", "/x", ""},
    {"ftp://a/x", "ftp://a/x", NULL},
    {"/http://a/x", "/http://a/x", NULL},
};

static const struct {
    const char *target;
    struct route expected;
} of_s3[] = {
    {"/", {ROUTE_S3, "", "main", "", true}},
    {"", {ROUTE_S3, "", "main", "", false}},
    {"/acme", {ROUTE_S3, "acme", "main", "", false}},
    {"/acme/", {ROUTE_S3, "acme", "main", "", true}},
    {"/api/models/a%2Fb+c//../d%20e", {ROUTE_S3, "api", "main", "models/a/b+c//../d e", false}},
    {"/acme/a%00b", {ROUTE_UNKNOWN, "", "", "", false}},
    {"/a%zz", {ROUTE_UNKNOWN, "", "", "", false}},
};

static void check_s3(struct arena *arena)
{
    for (size_t i = 0; i < sizeof of_s3 / sizeof *of_s3; i++) {
        const struct route *expected = &of_s3[i].expected, route = route_parse_s3(of_s3[i].target, arena);
        CHECK_NAMED(route.kind == expected->kind && strcmp(route.repository, expected->repository) == 0 &&
                        strcmp(route.path, expected->path) == 0 && route.is_directory == expected->is_directory,
                    of_s3[i].target);
    }
}

static void check_absolute(struct arena *arena)
{
    for (size_t i = 0; i < sizeof absolute / sizeof *absolute; i++) {
        const char *host, *path = route_path(absolute[i].target, &host, arena);
        CHECK_NAMED(strcmp(path, absolute[i].path) == 0 && (host == NULL) == (absolute[i].host == NULL) &&
                        (host == NULL || strcmp(host, absolute[i].host) == 0),
                    absolute[i].target);
    }
}

int main(void)
{
    struct arena *arena = arena_new();
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const struct route *expected = &targets[i].expected, route = route_parse(targets[i].target, arena);
        CHECK_NAMED(route.kind == expected->kind && strcmp(route.repository, expected->repository) == 0 &&
                        strcmp(route.revision, expected->revision) == 0 && strcmp(route.path, expected->path) == 0 &&
                        route.is_directory == expected->is_directory,
                    targets[i].target);
    }
    check_s3(arena);
    check_absolute(arena);
    char deep[300] = "/acme/Llama/resolve/main";
    for (int i = 0; i < 100; i++)
        strcat(deep, "/a");
    CHECK_NAMED(route_parse(deep, arena).kind == ROUTE_UNKNOWN, "a path of more parts than any file has");
    arena_free(arena);
    return check_done();
}
