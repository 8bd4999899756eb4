#include "fs/lib/info/architectures.h"

#include "models/diffusion/state_dict.h"
#include "models/families/families.h"
#include "models/projectors/projectors.h"

static const char *const *names_of(const struct family *family, struct arena *arena)
{
    size_t n = 0;
    while (family->hf[n].name != NULL)
        n++;
    const char **names = arena_array(arena, n + 1, sizeof *names);
    for (size_t i = 0; i <= n; i++)
        names[i] = family->hf[i].name;
    return names;
}

static struct architecture *list_families(const struct family *const *table, bool in_groups, struct arena *arena,
                                          size_t *ret_count)
{
    struct architecture *list = NULL;
    for (*ret_count = 0; table[*ret_count] != NULL; ++*ret_count) {
        const struct family *family = table[*ret_count];
        list = arena_grow(arena, list, *ret_count, sizeof *list);
        list[*ret_count] = (struct architecture){
            .gguf = family_architecture(family),
            .summary = family->summary,
            .group = in_groups ? family_group_of(family)->title : NULL,
            .names = names_of(family, arena),
            .is_compared = family_is_golden(family),
        };
    }
    return list;
}

static const char *const *list_groups(struct arena *arena)
{
    size_t n = 0;
    while (family_groups[n].title != NULL)
        n++;
    const char **titles = arena_array(arena, n + 1, sizeof *titles);
    for (size_t i = 0; i <= n; i++)
        titles[i] = family_groups[i].title;
    return titles;
}

struct architectures architectures_list(struct arena *arena)
{
    struct architectures all = {.groups = list_groups(arena)};
    all.families = list_families(families, true, arena, &all.n_families);
    all.projectors = list_families(projectors, false, arena, &all.n_projectors);
    for (; diffusion_architectures[all.n_diffusion] != NULL; all.n_diffusion++) {
        const struct diffusion_architecture *row = diffusion_architectures[all.n_diffusion];
        all.diffusion = arena_grow(arena, all.diffusion, all.n_diffusion, sizeof *all.diffusion);
        all.diffusion[all.n_diffusion] = (struct architecture){.gguf = row->name, .summary = row->summary};
    }
    return all;
}

static void put_list(struct json_writer *writer, const struct architecture *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_put_template(writer, "\n{'gguf': %s, 'family': %s", list[i].gguf, list[i].summary);
        if (list[i].group != NULL)
            json_put_text(writer, "group", list[i].group);
        if (list[i].names != NULL) {
            json_put_template(writer, "'compared': %b, 'hugging_face': [", list[i].is_compared);
            for (const char *const *name = list[i].names; *name != NULL; name++)
                json_put_text(writer, NULL, *name);
            json_end(writer);
        }
        json_end(writer);
    }
}

void architectures_put(struct json_writer *writer)
{
    struct arena *arena = arena_new();
    const struct architectures all = architectures_list(arena);
    json_put_template(writer, "\n'architectures': [");
    put_list(writer, all.families, all.n_families);
    json_put_template(writer, "], \n'projectors': [");
    put_list(writer, all.projectors, all.n_projectors);
    json_put_template(writer, "], \n'diffusion': [");
    put_list(writer, all.diffusion, all.n_diffusion);
    json_end(writer);
    arena_free(arena);
}
