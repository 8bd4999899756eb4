/* Any bytes as a static model of Paddle: a byte that says whether the program is JSON, two bytes that give its length,
 * the program, and the tensors.
 *
 * Holds for what is accepted: the elements are inside the file, as many as dtype and shape say, and can be read. */
#include "formats/paddle/static.h"

#include "tests/fuzz/read_tensors.h"

enum { HEAD = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error = {""};
    if (size < HEAD)
        return 0;
    size_t wanted = data[1] | (size_t)data[2] << 8, length = wanted < size - HEAD ? wanted : size - HEAD;
    struct checkpoint *checkpoint = checkpoint_new("inference.pdiparams");
    struct source *program = source_of_bytes(data + HEAD, length, "program"),
                  *file = source_of_bytes(data + HEAD + length, size - HEAD - length, "inference.pdiparams");
    checkpoint_add_source(checkpoint, file);
    checkpoint_add_guide(checkpoint, program);
    if (paddle_static_read(checkpoint, file, program, data[0] & 1, data[0] & 2, &error) &&
        tensor_set_seal(checkpoint->unsealed, &error))
        read_tensors(checkpoint);
    else
        require_one_line(&error);
    checkpoint_close(checkpoint);
    return 0;
}
