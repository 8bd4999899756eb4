/* Files of Megatron that hold a part of a model: model_optim_rng.pt of one rank, where a run spread tensors, layers or
 * experts over several. Each has names like those of the whole, so nothing else tells. Source: Megatron-Core 0.14,
 * training/checkpointing.py, generate_state_dict(): "args" are the run's arguments. */
#include "formats/torch/tensors.h"

#include <inttypes.h>

/* Returns how many ways an argument says that models were cut; 1: not at all, or not said. */
static int64_t ways(const struct pickle_node *arguments, const char *name)
{
    int64_t n;
    return pickle_integer(pickle_get(arguments, name), &n) && n > 1 ? n : 1;
}

bool torch_check_whole(const struct torch_container *container, const struct pickle_node *root, struct error *error)
{
    const struct pickle_node *arguments = pickle_get(root, "args");
    bool has_model = pickle_get(root, "model") != NULL || pickle_get(root, "model0") != NULL;
    if (pickle_is(arguments, PICKLE_OBJECT))
        arguments = arguments->object->state;
    int64_t n_tensor = ways(arguments, "tensor_model_parallel_size"),
            n_pipeline = ways(arguments, "pipeline_model_parallel_size"),
            n_expert = ways(arguments, "expert_model_parallel_size");
    if (!has_model || (n_tensor == 1 && n_pipeline == 1 && n_expert == 1))
        return true;
    return error_set(error,
                     "%s: a part of a model: the file of one rank of a Megatron checkpoint with "
                     "tensor_model_parallel_size %" PRId64 ", pipeline_model_parallel_size %" PRId64
                     " and expert_model_parallel_size %" PRId64 "; join the ranks with Megatron's converter",
                     source_name(container->file), n_tensor, n_pipeline, n_expert);
}
