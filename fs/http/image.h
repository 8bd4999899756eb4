/* Images of OCI registries: /v2/ORG/NAME, with a tag for each directory and GGUF file that is offered of the model:
 * "hf", "Q4_K_M", "mlx-4bit", "FP8_DYNAMIC"; "latest" is "hf". The files are below /models, as KServe, and image
 * volumes of Kubernetes have them.
 *
 * A layer is a tar that is not compressed (fs/tree/tar.h), computed when it is read. A file of a MiB or more is a
 * layer of its own, so that tags share equal files; the small ones are one layer. Sizes are known at once. A digest
 * takes one pass over its layer when the manifest is first asked for (fs/tree/digests.h); HEAD requests compute none,
 * and leave out a digest that is not known. Names have letters of either case. One image serves amd64 and arm64, as an
 * index if the client accepts one.
 *
 * ORG/NAME-GGUF is registry.h's.
 *
 * Source: the OCI distribution and image specifications 1.1. */
#pragma once

#include "fs/http/answer.h"
#include "fs/http/blob_places.h"
#include "fs/http/repository.h"
#include "fs/http/route.h"
#include "fs/tree/digests.h"

struct images {
    const struct repositories *repositories;
    struct digests *digests;
    struct blob_places *places;
};

/* Reports whether a name is that of a model with images: "ORG/NAME" of a source. */
bool image_exists(const struct repositories *repositories, const char *name);

/* Answers ROUTE_TAGS, ROUTE_MANIFEST and ROUTE_BLOB for such a name, and ROUTE_REFERRERS for any. */
void image_answer(const struct images *images, const struct http_request *request, const struct route *route,
                  struct answer *answer);
