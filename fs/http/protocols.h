/* The protocols that requests for models speak, a file each, whose first comment describes it; protocols.c has a row
 * for each kind of route. */
#pragma once

#include "base/arena.h"
#include "base/encodings.h"
#include "fs/http/answer.h"
#include "fs/http/repository.h"
#include "fs/http/route.h"
#include "fs/tree/digests.h"

/* What the answers are made from. */
struct served {
    const struct repositories *repositories;
    struct digests *digests;
    struct blob_places *places;
};

/* Answers a request of the kinds of route that the protocol's rows name. */
typedef void protocol_answer(const struct served *served, const struct http_request *request, const struct route *route,
                             struct answer *answer);

/* Answers any request, except for ROUTE_UNKNOWN, ROUTE_HEALTH and ROUTE_METRICS, which name no model. May have to plan
 * files. */
protocol_answer protocols_answer;

extern protocol_answer dav_answer, hub_answer, image_answer, page_answer, registry_answer, s3_answer, viewer_answer;

/* Answers a request for a file, whole or a range of it. HEAD requests plan the file and read nothing. */
extern protocol_answer hub_answer_file;

/* What addresses of the index answer to, beside those of S3. */
#define DAV_METHODS "OPTIONS, GET, HEAD, PROPFIND"

/* Reports whether a request is WebDAV's: one of its methods, for an address of the index. */
bool dav_is_asked(const struct http_request *request, const struct route *route);

/* Reports whether llama.cpp asks for a manifest: it wants the hub's, which names files instead of digests. */
bool registry_is_llama(const struct http_request *request);

/* Returns the model, "ORG/NAME" of a source, whose images have a name: that of this name, or the only one that has it
 * in letters of another case; NULL: none. */
const char *image_model(const struct repositories *repositories, const char *name);

/* Appends the commands that run a repository's files from this server, which the client addresses as `origin`. */
void page_put_commands(struct buffer *out, const struct repository *repository, const char *origin,
                       struct arena *arena);

/* Where the blobs of images are: the tag that names a digest. Recorded when a tag's manifest is made, in memory and in
 * the cache directory (remote/store.h), so that a later server finds them, too. Safe from any thread. */

struct blob_places;

struct blob_places *blob_places_new(void);
void blob_places_free(struct blob_places *places);

/* Records a digest, "sha256:...", of a model, "ORG/NAME". */
void blob_place_add(struct blob_places *places, const char *model, const char *digest, const char *tag);

/* Returns the tag that has a digest, in the arena; NULL if it is not known. The caller checks that the tag has it. */
const char *blob_place_find(struct blob_places *places, const char *model, const char *digest, struct arena *arena);
