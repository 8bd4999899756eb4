#include "formats/gguf/write.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

enum {
    USUAL_ALIGNMENT = 32,
    VERSION = 3,
    LONG_VALUE = 4096, /* bytes; it is not copied into every header that has it */
};

void gguf_plan_free(struct gguf_plan *plan)
{
    gguf_kvs_free(&plan->kvs);
    free(plan->places);
    arena_free(plan->arena);
    *plan = (struct gguf_plan){0};
}

static void write_tensor(struct buffer *out, const struct gguf_place *place, bool trim_ones)
{
    const struct tensor *tensor = place->tensor;
    unsigned first = 0;
    while (trim_ones && first + 1u < tensor->rank && tensor->shape[first] == 1)
        first++;
    gguf_append_string(out, tensor->name, tensor->name_length);
    buffer_append_le(out, tensor->rank - first, 4);
    for (unsigned i = tensor->rank; i-- > first;)
        buffer_append_le(out, tensor->shape[i], 8);
    buffer_append_le(out, (uint64_t)place->encoding.dtype->ggml_type, 4);
    buffer_append_le(out, place->offset, 8);
}

/* Sets every tensor's offset; *ret_length is that of the whole data section. */
static bool place_tensors(struct gguf_plan *plan, uint64_t alignment, uint64_t *ret_length, struct error *error)
{
    uint64_t end = 0;
    for (size_t i = 0; i < plan->n_tensors; i++) {
        struct gguf_place *place = &plan->places[i];
        place->offset = end;
        if (!checked_add(end, dtype_bytes(place->encoding.dtype, tensor_elements(place->tensor)), &end) ||
            !checked_align(end, alignment, &end))
            return error_set(error, "tensor '%s' makes the file too large", place->tensor->name);
    }
    *ret_length = end;
    return true;
}

static void end_literal(struct gguf_layout *layout, struct buffer *literal, struct arena *arena)
{
    if (literal->length > 0)
        layout->pieces[layout->n_pieces++] =
            (struct gguf_piece){arena_copy(arena, literal->bytes, literal->length), NULL, literal->length};
    literal->length = 0;
}

/* A value that is long is not copied where somebody else keeps it: in memory, or in its file. */
static bool write_key(struct gguf_layout *layout, struct buffer *literal, const struct gguf_kv *kv, struct arena *arena,
                      struct error *error)
{
    const struct gguf_stored *stored = &kv->stored;
    bool is_stored = stored->source != NULL && stored->canonical && stored->length > LONG_VALUE;
    bool is_lent = stored->source == NULL && kv->is_borrowed && kv->value.length > LONG_VALUE;
    if (!is_stored && !is_lent)
        return gguf_write_kv(literal, kv, error);
    gguf_append_string(literal, kv->key, strlen(kv->key));
    buffer_append_le(literal, (uint64_t)kv->type, 4);
    end_literal(layout, literal, arena);
    struct gguf_piece piece = {.bytes = kv->value.bytes, .length = kv->value.length};
    if (is_stored)
        piece = (struct gguf_piece){.view = view_of_source(arena, (struct source *)stored->source, stored->offset,
                                                           &u8_dtype, 1, &stored->length),
                                    .length = stored->length};
    layout->pieces[layout->n_pieces++] = piece;
    return true;
}

static bool write_header(const struct gguf_plan *plan, struct gguf_layout *layout, struct buffer *literal,
                         struct arena *arena, struct error *error)
{
    buffer_append(literal, "GGUF", 4);
    buffer_append_le(literal, VERSION, 4);
    buffer_append_le(literal, plan->n_tensors, 8);
    buffer_append_le(literal, plan->kvs.n_kvs, 8);
    for (size_t i = 0; i < plan->kvs.n_kvs; i++)
        if (!write_key(layout, literal, &plan->kvs.kvs[i], arena, error))
            return false;
    for (size_t i = 0; i < plan->n_tensors; i++)
        write_tensor(literal, &plan->places[i], plan->trim_ones);
    return true;
}

/* `*alignment` stays as it is where the keys do not say it. */
static bool read_alignment(const struct gguf_kvs *kvs, uint64_t *alignment, struct error *error)
{
    const struct gguf_kv *kv = gguf_kvs_find(kvs, "general.alignment");
    if (kv != NULL && kv->type != GGUF_U32)
        return error_set(error, "general.alignment is %s, not u32", gguf_type_name(kv->type));
    gguf_get_u64(kvs, "general.alignment", alignment);
    if ((*alignment & (*alignment - 1)) == 0 && *alignment != 0)
        return true;
    return error_set(error, "general.alignment is %llu, not a power of two", (unsigned long long)*alignment);
}

bool gguf_lay_out(struct gguf_plan *plan, struct arena *arena, struct gguf_layout *ret_layout, struct error *error)
{
    struct gguf_layout layout = {.pieces = arena_array(arena, 2 * plan->kvs.n_kvs + 1, sizeof *layout.pieces)};
    struct buffer literal = {0};
    uint64_t alignment = USUAL_ALIGNMENT, data_length = 0, meta = 0;
    if (!read_alignment(&plan->kvs, &alignment, error))
        return false;
    bool written =
        place_tensors(plan, alignment, &data_length, error) && write_header(plan, &layout, &literal, arena, error);
    for (size_t i = 0; i < layout.n_pieces; i++)
        meta += layout.pieces[i].length;
    meta += literal.length;
    if (written &&
        (!checked_align(meta, alignment, &layout.data) || !checked_add(layout.data, data_length, &layout.size)))
        written = error_set(error, "the file would be too large");
    if (written) {
        buffer_append_zeros(&literal, layout.data - meta);
        end_literal(&layout, &literal, arena);
        *ret_layout = layout;
    }
    buffer_free(&literal);
    return written;
}
