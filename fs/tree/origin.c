#include "fs/tree/origin.h"

struct origin origin_of_weights(const struct checkpoint *checkpoint)
{
    return (struct origin){checkpoint->sources, checkpoint->n_sources + checkpoint->n_guides};
}

struct origin origin_of_tensor(const struct checkpoint *checkpoint, const struct tensor *tensor)
{
    if (tensor->view != NULL || tensor->source == NULL)
        return origin_of_weights(checkpoint);
    return (struct origin){&tensor->source, 1};
}

/* Adds the side files of a checkpoint that something has been made of. */
static size_t add_consulted(const struct checkpoint *checkpoint, struct source **sources, size_t n_sources)
{
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        if (source_was_consulted(checkpoint->side_files[i].source))
            sources[n_sources++] = checkpoint->side_files[i].source;
    return n_sources;
}

struct origin origin_of_model(const struct checkpoint *checkpoint, struct arena *arena)
{
    const struct checkpoint *target = checkpoint->target;
    struct origin weights = origin_of_weights(checkpoint);
    size_t most = weights.n_sources + checkpoint->n_side_files + (target != NULL ? target->n_side_files : 0);
    struct source **sources = arena_array(arena, most, sizeof(struct source *));
    size_t n_sources = 0;
    for (size_t i = 0; i < weights.n_sources; i++)
        sources[n_sources++] = weights.sources[i];
    n_sources = add_consulted(checkpoint, sources, n_sources);
    if (target != NULL)
        n_sources = add_consulted(target, sources, n_sources);
    return (struct origin){sources, n_sources};
}

struct origin origin_of_side_file(const struct checkpoint *checkpoint, const struct side_file *side)
{
    return source_is_file(side->source) ? (struct origin){&side->source, 1} : origin_of_weights(checkpoint);
}

mode_t origin_permissions(const struct origin *origin)
{
    mode_t mode = 0444;
    for (size_t i = 0; i < origin->n_sources; i++)
        mode &= source_permissions(origin->sources[i]);
    return mode;
}

gid_t origin_group(const struct origin *origin)
{
    gid_t group = origin->n_sources > 0 ? source_group(origin->sources[0]) : (gid_t)NO_GROUP;
    for (size_t i = 1; i < origin->n_sources; i++)
        if (source_group(origin->sources[i]) != group)
            return (gid_t)NO_GROUP;
    return group;
}

bool origin_changed(const struct origin *origin)
{
    for (size_t i = 0; i < origin->n_sources; i++)
        if (source_changed(origin->sources[i]))
            return true;
    return false;
}

bool origin_verify(const struct origin *origin)
{
    bool changed = false;
    for (size_t i = 0; i < origin->n_sources; i++)
        changed |= source_verify(origin->sources[i]);
    return changed;
}
