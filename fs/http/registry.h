/* A read-only registry of GGUF files, in the protocol of OCI registries: manifests name files and texts by SHA-256.
 *
 * Names and tags have letters of either case, since references to OCI registries are in lower case. A tag of
 * ORG/NAME-GGUF is a quantization: Q4_K_M. "latest" is the first of the usual choices. The manifest has the
 * form that the Accept header asks for (fs/tree/manifest.h). Making one takes a pass over the files it names
 * (fs/tree/digests.h), unless their digests are known.
 *
 * Source: the OCI distribution specification 1.1. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/repository.h"
#include "fs/http/route.h"
#include "fs/tree/digests.h"

struct registry {
    const struct repositories *repositories;
    struct digests *digests;
};

/* Answers ROUTE_REGISTRY, ROUTE_TAGS, ROUTE_MANIFEST and ROUTE_BLOB. */
void registry_answer(const struct registry *registry, const struct http_request *request, const struct route *route,
                     struct answer *answer);

/* Reports whether llama.cpp asks for a manifest: it wants the hub's, which names files instead of digests. */
bool registry_is_llama(const struct http_request *request);
