#include "fs/tree/read_cost.h"

#include "base/binary_search.h"
#include "quant/views/convert.h"

struct place {
    const struct span *spans;
    uint64_t offset;
};

static bool ends_before(const void *context, size_t index)
{
    const struct place *place = context;
    return place->spans[index].offset + place->spans[index].length <= place->offset;
}

uint64_t vfile_read_cost(const struct vfile *file, uint64_t offset, uint64_t length)
{
    const struct place place = {file->spans, offset};
    uint64_t cost = 0, end = offset + length;
    for (size_t i = search_first(file->n_spans, ends_before, &place); i < file->n_spans && file->spans[i].offset < end;
         i++) {
        const struct span *span = &file->spans[i];
        uint64_t from = span->offset > offset ? span->offset : offset,
                 to = span->offset + span->length < end ? span->offset + span->length : end;
        if (span->kind == SPAN_VIEW)
            cost += convert_cost(span->view, span->encoding, (to - from) / span->encoding.dtype->block_bytes);
    }
    return cost;
}
