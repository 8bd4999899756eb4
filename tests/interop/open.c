/* For the scripts here, open FORMAT FILE...: opens each file and prints what it is, in one line of tab-separated
 * fields: "refused" and the reason, or "accepted" and of each tensor its name in hexadecimal, dtype, shape, offset and
 * length. */
#include "formats/checkpoint.h"
#include "models/formats.h"

#include <inttypes.h>
#include <stdio.h>

static void print_tensor(const struct tensor *tensor)
{
    printf("\t");
    for (size_t i = 0; i < tensor->name_length; i++)
        printf("%02x", (unsigned char)tensor->name[i]);
    printf(" %s ", tensor->dtype->name);
    for (unsigned i = 0; i < tensor->rank; i++)
        printf("%s%" PRIu64, i ? "," : "", tensor->shape[i]);
    printf(" %" PRIu64 " %" PRIu64, tensor->offset, tensor->length);
}

int main(int argc, char **argv)
{
    const struct open_options options = {.format = argc > 1 ? argv[1] : NULL};
    for (int i = 2; i < argc; i++) {
        struct error error;
        const struct checkpoint *checkpoint = checkpoint_open(argv[i], formats, &options, &error);
        if (checkpoint == NULL) {
            printf("refused\t%s\n", error.message);
            continue;
        }
        printf("accepted");
        for (size_t k = 0; k < checkpoint->tensors->n_tensors; k++)
            print_tensor(&checkpoint->tensors->tensors[k]);
        printf("\n");
        checkpoint_close(checkpoint);
    }
    return 0;
}
