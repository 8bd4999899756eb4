/* Cuts of files into parts: where they may be, and that parts cost about the same. */
#include "fs/lib/parts_plan.h"

#include "formats/artifact.h"
#include "quant/blocks/dtype.h"
#include "quant/merge/merge.h"
#include "tests/unit/check.h"

enum { MIB = 1 << 20 };

static const uint64_t shape[2] = {16384, 1024};

/* Adds the blocks of a type that are encoded from a stored F32 matrix; none of its values is read. */
static void add_encoded(struct span_list *spans, const struct dtype *dtype)
{
    spans_add_view(spans, view_of_source(spans->arena, NULL, 0, &f32_dtype, 2, shape), encoding_of(dtype));
}

static void check_cuts(const struct vfile *const *files, size_t n_files, const uint64_t *ends, size_t n_parts)
{
    for (size_t i = 0; i < n_parts; i++) {
        uint64_t begin = 0;
        bool at_end = false;
        for (size_t k = 0; k < n_files && begin + files[k]->size <= ends[i]; k++) {
            begin += files[k]->size;
            at_end |= begin == ends[i];
        }
        CHECK(at_end || (ends[i] - begin) % CUT_UNIT == 0);
        CHECK(i == 0 || ends[i - 1] <= ends[i]);
    }
}

static void equal_bytes(struct arena *arena)
{
    struct span_list spans = {.arena = arena};
    uint64_t ends[97];
    spans_add_zeros(&spans, 64 * MIB + 5);
    const struct vfile file = vfile_of_spans(&spans, (struct origin){0}), *files[] = {&file};
    cut_files(files, 1, 1, ends);
    CHECK(ends[0] == file.size);
    cut_files(files, 1, 4, ends);
    CHECK(ends[0] == 16 * MIB && ends[1] == 32 * MIB && ends[2] == 48 * MIB && ends[3] == file.size);
    cut_files(files, 1, 97, ends);
    check_cuts(files, 1, ends, 97);
    CHECK(ends[96] == file.size);
}

/* Quantizing a Q4_K block takes longer than copying its bytes, so half of the cost is reached long after half of the
 * bytes. */
static void equal_cost(struct arena *arena)
{
    struct span_list spans = {.arena = arena};
    uint64_t ends[16];
    spans_add_zeros(&spans, 9 * MIB);
    add_encoded(&spans, dtype_by_name("Q4_K"));
    CHECK(spans.size == 18 * MIB);
    const struct vfile file = vfile_of_spans(&spans, (struct origin){0}), *files[] = {&file};
    cut_files(files, 1, 2, ends);
    CHECK(ends[0] > 13 * MIB && ends[0] < 14 * MIB && ends[1] == 18 * MIB);
    cut_files(files, 1, 16, ends);
    check_cuts(files, 1, ends, 16);
    CHECK(ends[0] > 9 * MIB && ends[15] == 18 * MIB);
}

/* A merge of two stored matrices of BF16; none of its values is read. */
static const struct view *merged(struct arena *arena, merge_function *merge)
{
    struct merge_model model = {.view = view_of_source(arena, NULL, 0, &bf16_dtype, 2, shape), .weight = 1};
    return merge(arena, &(struct merge_operands){.dtype = &bf16_dtype,
                                                 .base = view_of_source(arena, NULL, 0, &bf16_dtype, 2, shape),
                                                 .models = &model,
                                                 .n_models = 1,
                                                 .findings = findings_new(arena),
                                                 .t = 0.5});
}

/* Every part that has some of a tensor merged by slerp reads both models' whole tensors: 100 KiB of zeros, two such
 * tensors of 32 MiB, and 100 KiB. Cuts are at multiples of the unit around them. */
static void whole_tensors(struct arena *arena)
{
    struct span_list spans = {.arena = arena};
    uint64_t ends[16];
    spans_add_zeros(&spans, 100 * 1024);
    spans_add_view(&spans, merged(arena, merge_slerp), encoding_of(&bf16_dtype));
    spans_add_view(&spans, merged(arena, merge_slerp), encoding_of(&bf16_dtype));
    spans_add_zeros(&spans, 100 * 1024);
    const struct vfile file = vfile_of_spans(&spans, (struct origin){0}), *files[] = {&file};
    cut_files(files, 1, 16, ends);
    check_cuts(files, 1, ends, 16);
    for (size_t i = 0; i < 15; i++)
        CHECK(ends[i] == 64 * 1024 || ends[i] == 32 * MIB + 64 * 1024 || ends[i] == 32 * MIB + 128 * 1024 ||
              ends[i] == 64 * MIB + 128 * 1024);
    cut_files(files, 1, 2, ends);
    CHECK(ends[0] == 32 * MIB + 64 * 1024 || ends[0] == 32 * MIB + 128 * 1024);
}

/* Elements of a linear merge need those of the models alone: such a tensor is divided as others are. */
static void divided_merge(struct arena *arena)
{
    struct span_list spans = {.arena = arena};
    uint64_t ends[4];
    spans_add_view(&spans, merged(arena, merge_linear), encoding_of(&bf16_dtype));
    const struct vfile file = vfile_of_spans(&spans, (struct origin){0}), *files[] = {&file};
    cut_files(files, 1, 4, ends);
    CHECK(ends[0] == 8 * MIB && ends[1] == 16 * MIB && ends[2] == 24 * MIB && ends[3] == 32 * MIB);
}

static void several_files(struct arena *arena)
{
    struct span_list small = {.arena = arena}, large = {.arena = arena}, none = {.arena = arena};
    uint64_t ends[40];
    spans_add_zeros(&small, 1000);
    spans_add_zeros(&large, MIB + 1);
    const struct vfile a = vfile_of_spans(&small, (struct origin){0}), b = vfile_of_spans(&large, (struct origin){0}),
                       empty = vfile_of_spans(&none, (struct origin){0});
    const struct vfile *files[] = {&a, &empty, &b, &a}, *nothing[] = {&empty};
    cut_files(files, 4, 40, ends);
    check_cuts(files, 4, ends, 40);
    CHECK(ends[39] == MIB + 2001);
    cut_files(nothing, 1, 3, ends);
    CHECK(ends[0] == 0 && ends[2] == 0);
    cut_files(NULL, 0, 3, ends);
    CHECK(ends[2] == 0);
}

int main(void)
{
    struct arena *arena = arena_new();
    equal_bytes(arena);
    equal_cost(arena);
    whole_tensors(arena);
    divided_merge(arena);
    several_files(arena);
    arena_free(arena);
    return check_done();
}
