/* Prints the tensors of a model, and the first values of one, with libwfs.
 *
 *     cc tensors.c $(pkg-config --cflags --libs wfs) -o tensors
 *     ./tensors model.safetensors
 *     ./tensors Qwen/Qwen2.5-0.5B model.norm.weight
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wfs.h>

static void print_tensor(const struct wfs_tensor *tensor)
{
    printf("%s %s [", tensor->name, tensor->dtype);
    for (uint32_t i = 0; i < tensor->rank; i++)
        printf("%s%llu", i > 0 ? ", " : "", (unsigned long long)tensor->shape[i]);
    printf("]%s%s\n", tensor->refusal != NULL ? " " : "", tensor->refusal != NULL ? tensor->refusal : "");
}

static bool print_all(wfs_model *model, struct wfs_error *error)
{
    struct wfs_tensor tensor;
    for (size_t i = 0; i < wfs_tensor_count(model); i++) {
        if (!wfs_tensor_at(model, i, &tensor, error))
            return false;
        print_tensor(&tensor);
    }
    return true;
}

/* Prints the first eight values of a tensor as F32, and reads no others. */
static bool print_values(wfs_model *model, const char *name, struct wfs_error *error)
{
    enum { FIRST = 8 };
    size_t index;
    struct wfs_tensor tensor;
    if (!wfs_tensor_find(model, name, strlen(name), &index, error) || !wfs_tensor_at(model, index, &tensor, error))
        return false;
    float values[FIRST];
    struct wfs_slice *slices = calloc(tensor.rank + 1, sizeof *slices);
    uint64_t count = tensor.n_elements > 0;
    for (uint32_t i = 0; i < tensor.rank; i++)
        slices[i] = (struct wfs_slice){0, count, 1};
    if (tensor.rank > 0 && count > 0) {
        uint64_t row = tensor.shape[tensor.rank - 1];
        slices[tensor.rank - 1].count = count = row < FIRST ? row : FIRST;
    }
    bool done = wfs_tensor_read(model, index, "f32", slices, values, count * sizeof *values, error);
    for (uint64_t i = 0; i < count && done; i++)
        printf("%.9g\n", (double)values[i]);
    free(slices);
    return done;
}

int main(int argc, char **argv)
{
    struct wfs_error error;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s SOURCE [TENSOR]\n", argv[0]);
        return 2;
    }
    wfs_context *context = wfs_context_new(0, NULL, NULL);
    wfs_model *model = context != NULL ? wfs_open(context, argv[1], NULL, &error) : NULL;
    bool done = model != NULL && (argc == 3 ? print_values(model, argv[2], &error) : print_all(model, &error));
    if (!done)
        fprintf(stderr, "%s\n", context != NULL ? error.message : "out of memory");
    wfs_close(model);
    wfs_context_free(context);
    return done ? 0 : 1;
}
