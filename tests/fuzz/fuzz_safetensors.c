/* Any bytes as a safetensors file.
 *
 * Holds for what is accepted: the tensors fill the data without gap or overlap, each as long as its dtype and shape
 * say, and are sorted by name. What is refused is refused with one line. Most changed inputs get the length of their
 * header again, or changes would hardly get beyond it. */
#include "formats/shape.h"

#include "tests/fuzz/fuzz.h"

static void check_tensors(const struct checkpoint *checkpoint, uint64_t size)
{
    uint64_t first = size, total = 0;
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++) {
        const struct tensor *tensor = &checkpoint->tensors->tensors[i];
        uint64_t n_elements, n_bytes;
        require(tensor->rank <= SHAPE_MAX_RANK && tensor->name_length <= TENSOR_MAX_NAME);
        require(shape_size(tensor->dtype, tensor->shape, tensor->rank, &n_elements, &n_bytes, NULL));
        require(tensor->length == n_bytes && tensor->offset <= size && n_bytes <= size - tensor->offset);
        require(checkpoint->tensors->by_name[i] == i &&
                tensor_set_find(checkpoint->tensors, tensor->name, tensor->name_length) == tensor);
        first = tensor->offset < first ? tensor->offset : first;
        total += n_bytes;
    }
    require(total == size - first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct open_options options = {.format = NULL};
    struct error error = {""};
    struct checkpoint *checkpoint = checkpoint_new("input.safetensors");
    struct source *file = source_of_bytes(data, size, "input.safetensors");
    checkpoint_add_source(checkpoint, file);
    if (safetensors_format.read_file(checkpoint, file, checkpoint->unsealed, &options, &error)) {
        require(tensor_set_seal(checkpoint->unsealed, &error));
        check_tensors(checkpoint, size);
    } else {
        require_one_line(&error);
    }
    checkpoint_close(checkpoint);
    return 0;
}

#ifdef LIBFUZZER
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    enum { LENGTH = 8, KEPT = 4 };
    size = LLVMFuzzerMutate(data, size, max_size);
    uint64_t end = size;
    while (end > LENGTH && data[end - 1] != '}')
        end--;
    uint64_t length = end - LENGTH;
    if (end > LENGTH && seed % KEPT != 0)
        memcpy(data, &length, LENGTH);
    return size;
}
#endif
