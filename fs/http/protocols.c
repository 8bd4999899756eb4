#include "fs/http/protocols.h"

#include <stddef.h>

static void answer_registry(const struct served *served, const struct http_request *request, const struct route *route,
                            struct answer *answer)
{
    const struct repository *exact = repository_find_any_case(served->repositories, route->repository);
    bool is_image = (exact == NULL || !exact->gguf) && image_exists(served->repositories, route->repository);
    if (is_image || (exact != NULL && route->kind == ROUTE_REFERRERS))
        image_answer(served, request, route, answer);
    else
        registry_answer(served, request, route, answer);
}

static void answer_manifest(const struct served *served, const struct http_request *request, const struct route *route,
                            struct answer *answer)
{
    if (registry_is_llama(request))
        hub_answer(served, request, route, answer);
    else
        answer_registry(served, request, route, answer);
}

static protocol_answer *const answers[] = {
    [ROUTE_PAGE] = page_answer,          [ROUTE_OWNER] = page_answer,
    [ROUTE_PATH] = page_answer,          [ROUTE_VIEW] = viewer_answer,
    [ROUTE_MODELS] = hub_answer,         [ROUTE_MODEL] = hub_answer,
    [ROUTE_REFS] = hub_answer,           [ROUTE_TREE] = hub_answer,
    [ROUTE_FILE] = hub_answer_file,      [ROUTE_REGISTRY] = answer_registry,
    [ROUTE_MANIFEST] = answer_manifest,  [ROUTE_BLOB] = answer_registry,
    [ROUTE_TAGS] = answer_registry,      [ROUTE_S3] = s3_answer,
    [ROUTE_REFERRERS] = answer_registry,
};

void protocols_answer(const struct served *served, const struct http_request *request, const struct route *route,
                      struct answer *answer)
{
    answers[route->kind](served, request, route, answer);
}
