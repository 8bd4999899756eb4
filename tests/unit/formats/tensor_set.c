/* Sets of stored and of derived tensors. */
#include "formats/tensor_set.h"

#include "base/little_endian.h"
#include "sources/location.h"

#include "tests/unit/check.h"
#include "tests/unit/numbers.h"

#include <stdio.h>
#include <string.h>

static const uint64_t shape[] = {2, 3};

static const struct view *numbers(struct arena *arena)
{
    static const float values[] = {0, 1, 2, 3, 4, 5};
    return view_numbers(arena, 2, shape, values);
}

static void add(struct tensor_set *set, const char *name, size_t length, struct source *source)
{
    const struct tensor tensor = {.name = name,
                                  .name_length = (uint32_t)length,
                                  .rank = 2,
                                  .dtype = &f32_dtype,
                                  .shape = shape,
                                  .source = source,
                                  .length = 24};
    tensor_set_add(set, &tensor);
}

static struct source *source_of_floats(const char *name, const struct source *base)
{
    float values[] = {1, 2, 3, 4, 5, 6};
    little_endian(values, 6, sizeof *values);
    return source_of_text(base, name, (const char *)values, sizeof values);
}

static void order_and_names(struct source *source)
{
    struct arena *arena = arena_new();
    struct tensor_set *set = tensor_set_new(arena);
    struct error error;
    add(set, "b", 1, source);
    tensor_set_add_view(set, "a.x", numbers(arena));
    add(set, "a", 1, source);
    add(set, "a\0b", 3, source);
    CHECK(tensor_set_seal(set, &error) && set->n_tensors == 4 && tensor_set_seal(set, &error));
    CHECK_NAMED(strcmp(set->tensors[0].name, "b") == 0 && strcmp(set->tensors[1].name, "a.x") == 0,
                "in the order of adding");
    static const uint32_t by_name[] = {2, 3, 1, 0};
    CHECK_NAMED(memcmp(set->by_name, by_name, sizeof by_name) == 0, "names sort as bytes, the shorter one first");
    CHECK(tensor_set_find_text(set, "a") == &set->tensors[2] && tensor_set_find(set, "a\0b", 3) == &set->tensors[3]);
    CHECK(tensor_set_find_text(set, "a.x") == &set->tensors[1] && tensor_set_find_text(set, "b") == &set->tensors[0]);
    CHECK(tensor_set_find_text(set, "") == NULL && tensor_set_find_text(set, "c") == NULL &&
          !tensor_set_find(set, "a\0", 2));
    arena_free(arena);
}

/* Tensors do not move while there is room for more, and all are there after they have moved. */
static void room(struct source *source)
{
    enum { N_SETS = 20, N_TENSORS = 50 };
    static char names[N_SETS * N_TENSORS][8];
    struct arena *arena = arena_new();
    struct tensor_set *set = tensor_set_new(arena);
    struct error error;
    bool stay = true;
    add(set, "first", 5, source);
    for (size_t i = 0; i < N_SETS; i++) {
        tensor_set_reserve(set, N_TENSORS);
        const struct tensor *tensors = set->tensors;
        for (size_t k = 0; k < N_TENSORS; k++) {
            char *name = names[i * N_TENSORS + k];
            add(set, name, (size_t)sprintf(name, "%zu", i * N_TENSORS + k), source);
        }
        stay = stay && set->tensors == tensors;
    }
    CHECK(stay && set->n_tensors == 1 + N_SETS * N_TENSORS && tensor_set_seal(set, &error));
    for (size_t i = 0; i < N_SETS * N_TENSORS; i++)
        stay = stay && tensor_set_find_text(set, names[i]) == &set->tensors[i + 1];
    CHECK(stay && tensor_set_find_text(set, "first") == set->tensors);
    arena_free(arena);
}

/* From every tensor to every name, and to names between them. */
static void near(void)
{
    enum { N = 40 };
    char names[N][8];
    struct arena *arena = arena_new();
    struct tensor_set *set = tensor_set_new(arena);
    struct error error;
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "%03d", i * 7 % N * 2 + 1);
        add(set, names[i], 3, NULL);
    }
    CHECK(tensor_set_seal(set, &error));
    bool good = true;
    for (int i = 0; i < N; i++)
        for (int wanted = 0; wanted <= 2 * N; wanted++) {
            char name[8];
            snprintf(name, sizeof name, "%03d", wanted);
            const struct tensor *found = tensor_set_find_near(set, &set->tensors[i], name, 3);
            good &= wanted % 2 == 0 ? found == NULL : found != NULL && strcmp(found->name, name) == 0;
        }
    CHECK_NAMED(good, "a name is found from wherever it is looked for");
    arena_free(arena);
}

static void values(struct source *source)
{
    struct arena *arena = arena_new();
    struct tensor_set *set = tensor_set_new(arena);
    struct error error;
    static const uint64_t transposed[] = {1, 2};
    float out[6];
    add(set, "stored", 6, source);
    add(set, "strided", 7, source);
    tensor_set_edit(set)[1].strides = transposed;
    tensor_set_add_view(set, "derived", numbers(arena));
    CHECK(tensor_set_seal(set, &error));
    const struct tensor *stored = &set->tensors[0], *strided = &set->tensors[1], *derived = &set->tensors[2];
    CHECK(tensor_is_stored(stored) && !tensor_is_stored(strided) && !tensor_is_stored(derived));
    CHECK(tensor_elements(stored) == 6 && tensor_elements(derived) == 6 && derived->source == NULL &&
          derived->rank == 2);
    CHECK(read_numbers(tensor_view(stored, arena), 0, 6, out, &error) && out[0] == 1 && out[1] == 2 && out[5] == 6);
    CHECK(read_numbers(tensor_view(strided, arena), 0, 6, out, &error) && out[0] == 1 && out[1] == 3 && out[3] == 2);
    CHECK(tensor_view(derived, arena) == derived->view);
    arena_free(arena);
}

static void twins(struct source *first, struct source *second)
{
    struct arena *arena = arena_new();
    struct tensor_set *stored = tensor_set_new(arena), *derived = tensor_set_new(arena);
    struct error error;
    add(stored, "x", 1, first);
    add(stored, "w", 1, first);
    add(stored, "x", 1, second);
    CHECK(!tensor_set_seal(stored, &error));
    CHECK_TEXT(error.message, "second: tensor 'x' is also in first");
    tensor_set_add_view(derived, "y", numbers(arena));
    tensor_set_add_view(derived, "y", numbers(arena));
    CHECK(!tensor_set_seal(derived, &error));
    CHECK_TEXT(error.message, "two tensors would have the name 'y'");
    arena_free(arena);
}

static void many(void)
{
    enum { MANY = 100000 };
    struct arena *arena = arena_new();
    struct tensor_set *set = tensor_set_new(arena);
    struct error error;
    for (unsigned i = 0; i < MANY; i++)
        tensor_set_add_view(set, arena_printf(arena, "%u", i * 7919u % MANY), numbers(arena));
    CHECK(tensor_set_seal(set, &error) && set->n_tensors == MANY);
    bool found = true;
    for (unsigned i = 0; i < MANY; i++)
        found &= tensor_set_find_text(set, set->tensors[i].name) == &set->tensors[i];
    CHECK_NAMED(found, "each of many is found");
    arena_free(arena);
}

int main(void)
{
    struct error error;
    struct source *self = location_open_file("/proc/self/exe", &error);
    struct source *first = source_of_floats("first", self), *second = source_of_floats("second", self);
    struct arena *arena = arena_new();
    struct tensor_set *empty = tensor_set_new(arena);
    CHECK(tensor_set_seal(empty, &error) && tensor_set_find_text(empty, "x") == NULL);
    CHECK_NAMED(sizeof(struct tensor) + sizeof(uint32_t) <= 100, "a tensor costs at most 100 bytes");
    arena_free(arena);
    order_and_names(first);
    room(first);
    near();
    values(first);
    twins(first, second);
    many();
    source_close(second);
    source_close(first);
    source_close(self);
    return check_done();
}
