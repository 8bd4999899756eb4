#include "fs/http/protocols.h"

#include "fs/http/hub.h"
#include "fs/http/image.h"
#include "fs/http/page.h"
#include "fs/http/registry.h"
#include "fs/http/s3.h"
#include "fs/http/viewer.h"

#include <stddef.h>

typedef void answer_function(const struct served *served, const struct http_request *request, const struct route *route,
                             struct answer *answer);

static void answer_page(const struct served *served, const struct http_request *request, const struct route *route,
                        struct answer *answer)
{
    page_answer(served->repositories, request, route, answer);
}

static void answer_view(const struct served *served, const struct http_request *request, const struct route *route,
                        struct answer *answer)
{
    viewer_answer(served->repositories, request, route, answer);
}

static void answer_hub(const struct served *served, const struct http_request *request, const struct route *route,
                       struct answer *answer)
{
    hub_answer(served->repositories, request, route, answer);
}

static void answer_file(const struct served *served, const struct http_request *request, const struct route *route,
                        struct answer *answer)
{
    hub_answer_file(served->repositories, request, route, answer);
}

static void answer_s3(const struct served *served, const struct http_request *request, const struct route *route,
                      struct answer *answer)
{
    s3_answer(served->repositories, request, route, answer);
}

static void answer_registry(const struct served *served, const struct http_request *request, const struct route *route,
                            struct answer *answer)
{
    const struct repository *exact = repository_find_any_case(served->repositories, route->repository);
    bool is_image = (exact == NULL || !exact->gguf) && image_exists(served->repositories, route->repository);
    if (is_image || (exact != NULL && route->kind == ROUTE_REFERRERS))
        image_answer(&(struct images){served->repositories, served->digests, served->places}, request, route, answer);
    else
        registry_answer(&(struct registry){served->repositories, served->digests}, request, route, answer);
}

static void answer_manifest(const struct served *served, const struct http_request *request, const struct route *route,
                            struct answer *answer)
{
    if (registry_is_llama(request))
        answer_hub(served, request, route, answer);
    else
        answer_registry(served, request, route, answer);
}

static answer_function *const answers[] = {
    [ROUTE_PAGE] = answer_page,          [ROUTE_OWNER] = answer_page,
    [ROUTE_PATH] = answer_page,          [ROUTE_VIEW] = answer_view,
    [ROUTE_MODELS] = answer_hub,         [ROUTE_MODEL] = answer_hub,
    [ROUTE_REFS] = answer_hub,           [ROUTE_TREE] = answer_hub,
    [ROUTE_FILE] = answer_file,          [ROUTE_REGISTRY] = answer_registry,
    [ROUTE_MANIFEST] = answer_manifest,  [ROUTE_BLOB] = answer_registry,
    [ROUTE_TAGS] = answer_registry,      [ROUTE_S3] = answer_s3,
    [ROUTE_REFERRERS] = answer_registry,
};

void protocols_answer(const struct served *served, const struct http_request *request, const struct route *route,
                      struct answer *answer)
{
    answers[route->kind](served, request, route, answer);
}
