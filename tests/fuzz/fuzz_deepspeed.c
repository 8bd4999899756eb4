/* Any two pickles as a DeepSpeed ZeRO checkpoint: a byte that gives the number of ranks, two bytes that give the length
 * of the model's pickle, which all ranks share, that pickle, and the one of the optimizer, which all ranks share, too.
 *
 * Holds for what is accepted: the elements of each parameter are as many as its shape says, and can be read. */
#include "formats/deepspeed/gather.h"

#include "tests/fuzz/read_pickle.h"
#include "tests/fuzz/read_tensors.h"

enum { HEAD = 3, MOST_RANKS = 4 };

static bool read_file(struct checkpoint *checkpoint, const uint8_t *data, size_t size, struct arena *scratch,
                      struct zero_file *file, struct error *error)
{
    struct tensor_set *tensors = tensor_set_new(checkpoint->arena);
    struct pickle *pickle = arena_alloc(scratch, sizeof *pickle);
    *file = (struct zero_file){source_of_storages("input.pt"), tensors, NULL};
    checkpoint_add_source(checkpoint, file->source);
    if (!add_tensors_of_pickle(checkpoint, tensors, file->source, data, size, scratch, error) ||
        !tensor_set_seal(tensors, error) || !pickle_read(pickle, data, size, scratch, NULL, error))
        return false;
    file->values = pickle->root;
    return true;
}

static bool gather(struct checkpoint *checkpoint, const uint8_t *data, size_t size, struct arena *scratch,
                   struct error *error)
{
    struct zero_file models[MOST_RANKS], optimizers[MOST_RANKS];
    size_t wanted = data[1] | (size_t)data[2] << 8, length = wanted < size - HEAD ? wanted : size - HEAD;
    unsigned n_ranks = 1 + data[0] % MOST_RANKS;
    const uint8_t *model = data + HEAD, *optimizer = model + length;
    const struct zero_ranks ranks = {"input", n_ranks, data[0] & MOST_RANKS ? 1 : n_ranks, models, optimizers};
    if (!read_file(checkpoint, model, length, scratch, &models[0], error) ||
        !read_file(checkpoint, optimizer, size - HEAD - length, scratch, &optimizers[0], error))
        return false;
    for (unsigned rank = 1; rank < n_ranks; rank++) {
        models[rank] = models[0];
        optimizers[rank] = optimizers[0];
    }
    return zero_gather(&ranks, checkpoint->unsealed, checkpoint->arena, error) &&
           tensor_set_seal(checkpoint->unsealed, error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error = {""};
    if (size < HEAD)
        return 0;
    struct arena *scratch = arena_new();
    struct checkpoint *checkpoint = checkpoint_new("input");
    if (gather(checkpoint, data, size, scratch, &error))
        read_tensors(checkpoint);
    else
        require_one_line(&error);
    arena_free(scratch);
    checkpoint_close(checkpoint);
    return 0;
}
