/* Any bytes as a file of torch in a container without a zip directory: legacy, plain pickle.
 *
 * Holds for what is accepted: each tensor lies in the file and can be read. */
#include "tests/fuzz/read_tensors.h"

extern const struct format torch_format;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct open_options options = {.allow_trailing = true};
    struct error error = {""};
    struct checkpoint *checkpoint = checkpoint_new("input.pt");
    struct source *file = source_of_bytes(data, size, "input.pt");
    checkpoint_add_source(checkpoint, file);
    if (torch_format.read_file(checkpoint, file, checkpoint->unsealed, &options, &error)) {
        require(tensor_set_seal(checkpoint->unsealed, &error));
        read_tensors(checkpoint);
    } else {
        require_one_line(&error);
    }
    checkpoint_close(checkpoint);
    return 0;
}
