/* Which projector goes with which GGUF of a folder, and names in llama.cpp's flat cache, hostile ones, too. */
#include "fs/lib/library.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

/* Files of a folder with a blank between them, a model, and the projectors that belong to it. */
static const struct {
    const char *files, *model, *projectors;
} folders[] = {
    {"A-F16.gguf A-Q4_K_M.gguf mmproj-A-F16.gguf", "A-Q4_K_M.gguf", " mmproj-A-F16.gguf"},
    {"A.gguf B.gguf mmproj-A-BF16.gguf mmproj-B-F16.gguf", "A.gguf", " mmproj-A-BF16.gguf"},
    {"A.gguf B.gguf mmproj-A-BF16.gguf mmproj-B-F16.gguf", "B.gguf", " mmproj-B-F16.gguf"},
    {"A.gguf mmproj-BF16.gguf mmproj-F32.gguf", "A.gguf", " mmproj-BF16.gguf mmproj-F32.gguf"},
    {"a-7b-q4.gguf A-7B.mmproj-f16.gguf b.gguf", "a-7b-q4.gguf", " A-7B.mmproj-f16.gguf"},
    {"a-7b-q4.gguf A-7B.mmproj-f16.gguf b.gguf", "b.gguf", ""},
    {"A.gguf B.gguf mmproj-A-BF16.gguf mmproj-F16.gguf mmproj-a.gguf", "A.gguf",
     " mmproj-A-BF16.gguf mmproj-F16.gguf mmproj-a.gguf"},
    {"A.gguf B.gguf mmproj-A-BF16.gguf mmproj-F16.gguf", "B.gguf", " mmproj-F16.gguf"},
    {"A.gguf mmproj-model-f16.gguf", "A.gguf", " mmproj-model-f16.gguf"},
    {"A.gguf mmproj.gguf", "A.gguf", " mmproj.gguf"},
    {"A.gguf mmproj-A.safetensors", "A.gguf", ""},
    {"A.safetensors mmproj-A.gguf", "A.safetensors", ""},
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct location_entry *)a)->name, ((const struct location_entry *)b)->name);
}

static void list_of(const char *files, struct arena *arena, struct location_list *list)
{
    struct location_entry *entries = NULL;
    list->count = 0;
    for (char *name = strtok(arena_strdup(arena, files), " "); name != NULL; name = strtok(NULL, " ")) {
        entries = arena_grow(arena, entries, list->count, sizeof *entries);
        entries[list->count++] = (struct location_entry){name, LOCATION_FILE};
    }
    qsort(entries, list->count, sizeof *entries, by_name);
    list->entries = entries;
}

static void test_projectors(void)
{
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        struct arena *arena = arena_new();
        struct location_list list;
        char names[200] = "";
        list_of(folders[i].files, arena, &list);
        const struct companion *one = library_projectors(library_folder_new("d", &list, arena), folders[i].model);
        for (; one != NULL && one->name != NULL; one++) {
            CHECK_TEXT(one->path, arena_printf(arena, "d/%s", one->name));
            snprintf(names + strlen(names), sizeof names - strlen(names), " %s", one->name);
        }
        CHECK_TEXT(names, folders[i].projectors);
        arena_free(arena);
    }
}

#define MANIFEST "manifest=some_one=A_B-GGUF=f16.json"

/* A document of the cache, its file, a GGUF, its id ("" for a projector, NULL for no file of the cache), a projector.
 */
static const struct {
    const char *document, *text, *file, *id, *projector;
} caches[] = {
    {MANIFEST, "{\"ggufFile\":{\"rfilename\":\"a.gguf\"},\"mmprojFile\":{\"rfilename\":\"mmproj-a.gguf\"}}",
     "some_one_A_B-GGUF_a.gguf", "some_one/a", "mmproj-a.gguf"},
    {MANIFEST, "{\"ggufFile\":{\"rfilename\":\"q/a.gguf\"}}", "some_one_A_B-GGUF_q_a.gguf", "some_one/a", NULL},
    {MANIFEST, "{\"ggufFile\":{\"rfilename\":\"a.gguf\"},\"mmprojFile\":{\"rfilename\":\"mmproj-a.gguf\"}}",
     "some_one_A_B-GGUF_mmproj-a.gguf", "", NULL},
    {MANIFEST, "{\"ggufFile\":{\"rfilename\":\"a.gguf\"},\"mmprojFile\":{\"rfilename\":\"gone-mmproj.gguf\"}}",
     "some_one_A_B-GGUF_a.gguf", "some_one/a", NULL},
    {MANIFEST, "{\"ggufFile\":{\"rfilename\":\"a.gguf\"},\"mmprojFile\":{\"rfilename\":\"../../etc/mmproj.gguf\"}}",
     "some_one_A_B-GGUF_a.gguf", "some_one/a", NULL},
    {MANIFEST, "{\"ggufFile\":", "some_one_A_B-GGUF_a.gguf", NULL, NULL},
    {MANIFEST, "{\"ggufFile\":{\"rfilename\":7}}", "some_one_A_B-GGUF_a.gguf", NULL, NULL},
    {"manifest=x.json", "{}", "some_one_A_B-GGUF_a.gguf", NULL, NULL},
    {"x_y_a.gguf.json", "{\"url\":\"https://host/x/y/resolve/main/a.gguf\"}", "x_y_a.gguf", "x/a", NULL},
    {"x_y_a.gguf.json", "{\"url\":\"https://host\"}", "x_y_a.gguf", NULL, NULL},
    {"x_y_a.gguf.json", "{\"url\":\"https://host/x/y/resolve/main/b.gguf\"}", "x_y_a.gguf", NULL, NULL},
    {"acme_O_P-GGUF_o-f32.gguf.etag", "\"2\"", "acme_O_P-GGUF_o-f32.gguf", "acme/o-f32", NULL},
    {"acme_o.gguf.etag", "\"2\"", "acme_o.gguf", NULL, NULL},
    {"other.txt", "x", "acme_O_P-GGUF_o-f32.gguf", NULL, NULL},
};

static void test_caches(void)
{
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        struct arena *arena = arena_new();
        struct location_list list;
        struct flat_model model;
        char path[16];
        snprintf(path, sizeof path, "%zu", i);
        files_write_text(arena_printf(arena, "%s/%s", path, caches[i].document), caches[i].text);
        list_of(arena_printf(arena, "%s %s some_one_A_B-GGUF_mmproj-a.gguf", caches[i].document, caches[i].file), arena,
                &list);
        bool found = library_flat_model(library_folder_new(path, &list, arena), caches[i].file, &model);
        CHECK_NAMED(found == (caches[i].id != NULL), caches[i].file);
        if (found)
            CHECK_TEXT(model.id != NULL ? model.id : "", caches[i].id);
        const struct companion *projector = model.companions;
        CHECK_NAMED((projector != NULL) == (caches[i].projector != NULL), caches[i].text);
        if (projector != NULL && caches[i].projector != NULL) {
            CHECK_TEXT(projector->name, caches[i].projector);
            CHECK(projector[1].name == NULL);
        }
        arena_free(arena);
    }
}

/* Thousands of models with a projector each: comparing each with each would take minutes. */
static void test_many(void)
{
    enum { MANY = 3000 };
    struct arena *arena = arena_new();
    struct location_entry *entries = arena_array(arena, 2 * (size_t)MANY, sizeof *entries);
    const struct location_list list = {entries, 2 * (size_t)MANY};
    for (size_t i = 0; i < MANY; i++) {
        entries[i] = (struct location_entry){arena_printf(arena, "m%04zu-q4.gguf", i), LOCATION_FILE};
        entries[MANY + i] = (struct location_entry){arena_printf(arena, "mmproj-m%04zu-F16.gguf", i), LOCATION_FILE};
    }
    const struct library_folder *folder = library_folder_new("d", &list, arena);
    size_t n_paired = 0;
    for (size_t i = 0; i < MANY; i++) {
        const struct companion *one = library_projectors(folder, entries[i].name);
        n_paired += one != NULL && strcmp(one[0].name, entries[MANY + i].name) == 0 && one[1].name == NULL;
    }
    CHECK(n_paired == MANY);
    arena_free(arena);
}

int main(void)
{
    files_begin();
    test_many();
    test_projectors();
    test_caches();
    files_remove();
    return check_done();
}
