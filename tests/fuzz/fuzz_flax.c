/* Any bytes as a Flax checkpoint.
 *
 * Holds for what is accepted: the elements are inside the file, as many as dtype and shape say, and can be read. */
#include "tests/fuzz/read_tensors.h"

extern const struct format flax_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct open_options options = {.allow_trailing = size % 2 == 0};
    struct error error = {""};
    struct checkpoint *checkpoint = checkpoint_new("input.msgpack");
    struct source *file = source_of_bytes(data, size, "input.msgpack");
    checkpoint_add_source(checkpoint, file);
    if (flax_format.read_file(checkpoint, file, checkpoint->unsealed, &options, &error) &&
        tensor_set_seal(checkpoint->unsealed, &error))
        read_tensors(checkpoint);
    else
        require_one_line(&error);
    checkpoint_close(checkpoint);
    return 0;
}
