/* The order of parameters in models of transformers (tests/data/make_module_orders.py), told from names alone.
 */
#include "models/huggingface/shards.h"

#include "base/buffer.h"
#include "tests/unit/check.h"

#include <stdlib.h>

static void add(struct tensor_set *set, const char *name)
{
    tensor_set_add(set, &(struct tensor){.name = name, .name_length = (uint32_t)strlen(name)});
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct tensor *)a)->name, ((const struct tensor *)b)->name);
}

/* A line is a type and names; gets the names from the order of the alphabet back into their own. */
static void check_model(char *line)
{
    enum { MOST_NAMES = 200 };
    const char *names[MOST_NAMES];
    size_t n = 0;
    struct arena *arena = arena_new();
    struct tensor_set *set = tensor_set_new(arena);
    const char *model_type = strtok(line, " ");
    while (n < MOST_NAMES && (names[n] = strtok(NULL, " ")) != NULL)
        n++;
    for (size_t i = 0; i < n; i++)
        add(set, names[i]);
    qsort(tensor_set_edit(set), n, sizeof *set->tensors, compare_names);
    const size_t *order = module_order(set, model_type, arena);
    size_t n_same = 0;
    while (n_same < n && strcmp(set->tensors[order[n_same]].name, names[n_same]) == 0)
        n_same++;
    CHECK_NAMED(n > 0 && n_same == n, model_type);
    if (n_same < n)
        fprintf(stderr, "  %s comes before %s\n", set->tensors[order[n_same]].name, names[n_same]);
    arena_free(arena);
}

static void models(void)
{
    char path[1024], line[8192];
    snprintf(path, sizeof path, "%s/module_orders.txt", getenv("WFS_TEST_DATA"));
    FILE *file = fopen(path, "r");
    for (CHECK(file != NULL); file != NULL && fgets(line, sizeof line, file) != NULL;) {
        line[strcspn(line, "\n")] = '\0';
        if (*line != '#')
            check_model(line);
    }
    if (file != NULL)
        fclose(file);
}

/* Names with a blank between them, ordered as those of no type in particular. */
static void check_order(const char *names, const char *expected)
{
    char copy[1024];
    struct buffer out = {0};
    struct arena *arena = arena_new();
    struct tensor_set *set = tensor_set_new(arena);
    snprintf(copy, sizeof copy, "%s", names);
    for (const char *name = strtok(copy, " "); name != NULL; name = strtok(NULL, " "))
        add(set, name);
    const size_t *order = module_order(set, NULL, arena);
    for (size_t i = 0; i < set->n_tensors; i++)
        buffer_printf(&out, "%s%s", i > 0 ? " " : "", set->tensors[order[i]].name);
    buffer_append(&out, "", 1);
    CHECK_TEXT((const char *)out.bytes, expected);
    buffer_free(&out);
    arena_free(arena);
}

static void odd_names(void)
{
    check_order("", "");
    /* numbers are counted */
    check_order("layers.10.mlp layers.2.mlp layers.9.mlp", "layers.2.mlp layers.9.mlp layers.10.mlp");
    /* what is not known is after its siblings, in the order of the set, and what is of other parents where it was */
    check_order("layers.1.zz layers.0.xx layers.0.aa layers.0.mlp aa layers.1.self_attn lm_head",
                "layers.0.mlp layers.0.xx layers.0.aa layers.1.self_attn layers.1.zz lm_head aa");
    check_order("4294967296.bias 4294967296.weight 1.weight 99999999999999999999.weight",
                "1.weight 4294967296.weight 99999999999999999999.weight 4294967296.bias");
    /* of parts beyond those that are compared nothing is known, and a name that ends is before those that go on */
    check_order("a.a.a.a.a.a.a.a.a.a.a.a.bias a.a.a.a.a.a.a.a.a.a.a.a.weight .. .",
                ". .. a.a.a.a.a.a.a.a.a.a.a.a.bias a.a.a.a.a.a.a.a.a.a.a.a.weight");
}

int main(void)
{
    models();
    odd_names();
    return check_done();
}
