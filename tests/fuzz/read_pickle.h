/* Any bytes as the data.pkl of a container of torch whose storages are all there, and zero. */
#pragma once

#include "formats/torch/tensors.h"

#include "tests/fuzz/fuzz.h"

enum { STORAGE_BYTES = 4096 };

static inline struct source *source_of_storages(const char *name)
{
    static const uint8_t zeros[STORAGE_BYTES];
    return source_of_bytes(zeros, sizeof zeros, name);
}

/* As a container does: storages larger than what there is are refused. */
static inline bool find_storages(const struct torch_container *container, const struct pickle *pickle,
                                 struct torch_storage *storages, struct error *error)
{
    for (uint32_t i = 0; i < pickle->persistent.n; i++) {
        struct torch_storage_id id;
        bool is_storage;
        if (!torch_storage_id(container, pickle->persistent.nodes[i], &id, &is_storage, error))
            return false;
        if (!is_storage)
            continue;
        if (id.n_bytes > STORAGE_BYTES)
            return error_set(error, "too large");
        storages[i] = (struct torch_storage){
            .source = container->file,
            .n_bytes = id.n_bytes,
            .stored = {container->file, 0, id.n_bytes},
            .dtype = id.dtype,
            .untyped = id.untyped,
        };
    }
    return true;
}

/* Adds the tensors of a pickle to a set of the checkpoint. `storages` is of source_of_storages(). */
static inline bool add_tensors_of_pickle(struct checkpoint *checkpoint, struct tensor_set *tensors,
                                         struct source *storages, const uint8_t *data, size_t size,
                                         struct arena *scratch, struct error *error)
{
    struct pickle pickle;
    struct torch_container container = {
        .checkpoint = checkpoint,
        .tensors = tensors,
        .file = storages,
        .place = "input.pt: data.pkl",
        .pickle_bytes = (const char *)data,
        .big_endian = size % 2,
    };
    if (!pickle_read(&pickle, data, size, scratch, NULL, error))
        return false;
    struct torch_storage *found = arena_array(scratch, pickle.persistent.n, sizeof *found);
    container.storages = found;
    return find_storages(&container, &pickle, found, error) && torch_add_tensors(&container, &pickle, scratch, error);
}
