/* Which module answers a request that names models: by the kind of its route, a row each in protocols.c. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/blob_places.h"
#include "fs/http/repository.h"
#include "fs/http/route.h"
#include "fs/tree/digests.h"

/* What the answers are made from. */
struct served {
    const struct repositories *repositories;
    struct digests *digests;
    struct blob_places *places;
};

/* Answers a request, except for ROUTE_UNKNOWN, ROUTE_HEALTH and ROUTE_METRICS, which name no model. May have to plan
 * files. */
void protocols_answer(const struct served *served, const struct http_request *request, const struct route *route,
                      struct answer *answer);
