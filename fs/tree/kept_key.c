#include "fs/tree/kept.h"

#include "base/system.h"
#include "quant/views/convert.h"
#include "quant/views/dependencies.h"

#include <nettle/base16.h>
#include <string.h>

/* Must change whenever keys are made otherwise, or granules of a file are. */
static const char format_version[] = "wfs kept 1";

static void add_number(struct sha256_ctx *hash, uint64_t number)
{
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    sha256_update(hash, sizeof bytes, bytes);
}

static void add_text(struct sha256_ctx *hash, const char *text)
{
    sha256_update(hash, strlen(text) + 1, (const uint8_t *)text);
}

static void add_bytes(void *hash, const void *bytes, size_t length)
{
    sha256_update(hash, length, bytes);
}

static void add_changes(struct sha256_ctx *hash, const struct origin *origin)
{
    struct buffer changes = {0};
    for (size_t i = 0; i < origin->n_sources; i++)
        source_append_change(origin->sources[i], &changes);
    sha256_update(hash, changes.length, changes.bytes);
    buffer_free(&changes);
}

static void add_extent(void *hash, const struct extent *from, uint64_t n_bytes)
{
    add_text(hash, source_name(from->source));
    add_number(hash, from->offset);
    add_number(hash, n_bytes);
}

/* Adds what a tensor is encoded as, and where its first block comes from. */
static void add_view(struct sha256_ctx *hash, const struct span *span)
{
    const struct encoding *encoding = &span->encoding;
    uint64_t n_importances = view_row_elements(span->view) * view_matrices(span->view);
    struct dependencies to = {.take = add_extent, .context = hash, .as_at_first = true};
    add_text(hash, encoding->dtype->name);
    add_text(hash, span->view->dtype->name);
    add_text(hash, encoding->rule != NULL ? encoding->rule->name : "");
    if (encoding->importance != NULL)
        sha256_update(hash, n_importances * sizeof *encoding->importance, (const uint8_t *)encoding->importance);
    convert_depends(span->view, *encoding, 0, 1, &to);
    dependencies_end(&to);
}

static void add_made_text(struct sha256_ctx *hash, const struct span *span)
{
    struct buffer text = {0};
    span->text(span->context, span->index, &text);
    sha256_update(hash, text.length, text.bytes);
    buffer_free(&text);
}

static void add_span(struct sha256_ctx *hash, const struct span *span)
{
    add_number(hash, span->kind);
    add_number(hash, span->length);
    if (span->kind == SPAN_LITERAL)
        sha256_update(hash, span->length, span->literal);
    else if (span->kind == SPAN_TEXT)
        add_made_text(hash, span);
    else if (span->kind == SPAN_VIEW)
        add_view(hash, span);
}

void kept_key_begin(struct sha256_ctx *hash, const struct origin *origin, const char *identity)
{
    sha256_init(hash);
    add_text(hash, format_version);
    system_build_id(add_bytes, hash);
    add_text(hash, identity);
    add_changes(hash, origin);
}

void kept_key_end(struct sha256_ctx *hash, char key[SHA256_HEX + 1])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(hash, sizeof digest, digest);
    base16_encode_update(key, sizeof digest, digest);
    key[SHA256_HEX] = '\0';
}

void kept_key(const struct vfile *file, const char *identity, char key[SHA256_HEX + 1])
{
    struct sha256_ctx hash;
    kept_key_begin(&hash, &file->origin, identity);
    for (size_t i = 0; i < file->n_spans; i++)
        add_span(&hash, &file->spans[i]);
    kept_key_end(&hash, key);
}
