#include "formats/origin.h"

#include "formats/documents.h"

struct origin origin_of_weights(const struct checkpoint *checkpoint)
{
    return (struct origin){.sources = checkpoint->sources, .n_sources = checkpoint->n_sources + checkpoint->n_guides};
}

/* Adds the side files of a checkpoint whose names are wanted; a NULL checkpoint adds none. */
static struct origin with_side_files(struct origin origin, const struct checkpoint *checkpoint,
                                     bool (*is_wanted)(const char *name), struct arena *arena)
{
    if (checkpoint == NULL)
        return origin;
    struct source **sources = arena_array(arena, origin.n_sources + checkpoint->n_side_files, sizeof(struct source *));
    for (size_t i = 0; i < origin.n_sources; i++)
        sources[i] = origin.sources[i];
    size_t n_sources = origin.n_sources;
    for (size_t i = 0; i < checkpoint->n_side_files; i++)
        if (is_wanted(checkpoint->side_files[i].name))
            sources[n_sources++] = checkpoint->side_files[i].source;
    return (struct origin){sources, n_sources};
}

static struct origin origin_with(const struct checkpoint *checkpoint, bool (*is_wanted)(const char *name),
                                 struct arena *arena)
{
    struct origin own = with_side_files(origin_of_weights(checkpoint), checkpoint, is_wanted, arena);
    return with_side_files(own, checkpoint_base(checkpoint, BASE_TARGET), is_wanted, arena);
}

struct origin origin_with_base(struct origin origin, const struct checkpoint *base, struct arena *arena)
{
    return with_side_files(origin, base, document_is_declared, arena);
}

struct origin origin_of_packed(const struct checkpoint *checkpoint, struct arena *arena)
{
    return origin_with(checkpoint, document_says_packing, arena);
}

struct origin origin_of_model(const struct checkpoint *checkpoint, struct arena *arena)
{
    return origin_with(checkpoint, document_is_declared, arena);
}

struct origin origin_of_side_file(const struct checkpoint *checkpoint, const struct side_file *side)
{
    return source_is_file(side->source) ? (struct origin){.sources = &side->source, .n_sources = 1}
                                        : origin_of_weights(checkpoint);
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
