/* Any bytes as a file of tensorizer.
 *
 * Holds for what is accepted: the elements are inside the file, as many as dtype and shape say, and can be read. */
#include "tests/fuzz/read_tensors.h"

extern const struct format tensorizer_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct open_options options;
    struct error error = {""};
    struct checkpoint *checkpoint = checkpoint_new("model.tensors");
    struct source *file = source_of_bytes(data, size, "model.tensors");
    checkpoint_add_source(checkpoint, file);
    if (tensorizer_format.read_file(checkpoint, file, checkpoint->unsealed, &options, &error) &&
        tensor_set_seal(checkpoint->unsealed, &error))
        read_tensors(checkpoint);
    else
        require_one_line(&error);
    checkpoint_close(checkpoint);
    return 0;
}
