#include "base/text.h"
#include "formats/checkpoint_builder.h"
#include "formats/dcp/dcp.h"
#include "formats/safetensors/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_BYTES = 9, SHOWN_NAME = 200 }; /* the head of safetensors: a length of 8 bytes, and the header's brace */

struct dcp_parts {
    struct arena *arena; /* of the views */
    struct source *file;
    uint64_t offset;
    struct tensor_set *tensors; /* sealed */
    const uint64_t **firsts;    /* by tensor: where it begins in the whole one */
    bool tells_firsts;          /* torch 2.7 does not write them */
    bool *found;                /* by tensor: a chunk has it */
};

static bool is_safetensors(const struct source *file, uint64_t offset, bool *ret_is, struct error *error)
{
    char head[HEAD_BYTES] = {0};
    uint64_t size = source_size(file);
    if (offset < size && size - offset >= sizeof head && !source_read(file, offset, sizeof head, head, error))
        return false;
    *ret_is = head[sizeof head - 1] == '{' && memcmp(head, "PK", 2) != 0;
    return true;
}

/* Reads the header. The tensors become tensors of the file, so that nothing needs `run`, its end, afterwards. */
static bool read_header(struct dcp_parts *parts, struct checkpoint *checkpoint, struct source *run,
                        const struct open_options *options, struct error *error)
{
    const char *places;
    if (!safetensors_read_parts(checkpoint, run, parts->tensors, options, &places, error))
        return false;
    size_t n = parts->tensors->n_tensors;
    struct tensor *tensors = tensor_set_edit(parts->tensors);
    for (size_t i = 0; i < n; i++) {
        tensors[i].source = parts->file;
        tensors[i].offset += parts->offset;
    }
    parts->found = arena_array(parts->arena, n + 1, sizeof *parts->found);
    memset(parts->found, 0, n * sizeof *parts->found);
    parts->firsts = arena_array(parts->arena, n + 1, sizeof *parts->firsts);
    parts->tells_firsts = places != NULL;
    if (!safetensors_part_firsts(parts->tensors, 0, places, parts->arena, parts->firsts, error))
        return error_prefix(error, "%s", source_name(run));
    return tensor_set_seal(parts->tensors, error);
}

bool dcp_parts_read(struct checkpoint *checkpoint, struct source *file, uint64_t offset,
                    const struct open_options *options, struct dcp_parts **ret_parts, struct error *error)
{
    bool is_there;
    char name[256];
    *ret_parts = NULL;
    if (!is_safetensors(file, offset, &is_there, error))
        return false;
    if (!is_there)
        return true;
    snprintf(name, sizeof name, "%.200s, from byte %" PRIu64, source_name(file), offset);
    struct source *run = source_range_new(file, name, offset, source_size(file) - offset);
    struct dcp_parts *parts = arena_alloc(checkpoint->arena, sizeof *parts);
    *parts = (struct dcp_parts){
        .arena = checkpoint->arena, .file = file, .offset = offset, .tensors = tensor_set_new(checkpoint->arena)};
    bool good = read_header(parts, checkpoint, run, options, error);
    source_close(run);
    *ret_parts = good ? parts : NULL;
    return good;
}

static bool is_chunk(const struct dcp_parts *parts, const struct tensor *part, const struct dcp_tensor *tensor,
                     const struct dcp_box *chunk)
{
    size_t n_bytes = tensor->rank * sizeof *part->shape;
    return part->dtype == tensor->dtype && part->rank == tensor->rank &&
           memcmp(part->shape, chunk->sizes, n_bytes) == 0 &&
           (!parts->tells_firsts || memcmp(parts->firsts[part - parts->tensors->tensors], chunk->first, n_bytes) == 0);
}

const struct view *dcp_part_view(struct dcp_parts *parts, const struct dcp_tensor *tensor, const struct dcp_box *chunk,
                                 uint64_t offset, struct error *error)
{
    const struct tensor *part = tensor_set_find(parts->tensors, tensor->name.bytes, tensor->name.length);
    size_t index = part != NULL ? (size_t)(part - parts->tensors->tensors) : 0;
    if (offset == parts->offset && part != NULL && !parts->found[index] && is_chunk(parts, part, tensor, chunk)) {
        parts->found[index] = true;
        return tensor_view(part, parts->arena);
    }
    char shown[SHOWN_NAME];
    text_printable(tensor->name.bytes, tensor->name.length, shown, sizeof shown);
    error_set(error,
              "%s: tensor '%s': its safetensors lack a chunk that .metadata describes; torch keeps one chunk of a "
              "tensor in a file: save with SerializationFormat.TORCH_SAVE",
              source_name(parts->file), shown);
    return NULL;
}
