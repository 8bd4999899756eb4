/* Packed weights of any shapes: what says how they are packed, and tensors that a packing might take for its own.
 *
 * An input is as write_model() has it, its first line config.json. Holds: a weight that is not refused can be read, all
 * of it or any part, and is the same.
 */
#include "models/formats.h"
#include "models/packings/packings.h"
#include "models/shown_tensors.h"

#include "tests/fuzz/read_tensors.h"
#include "tests/fuzz/write_model.h"

enum { MOST_VALUES = 1 << 16 };

static void remove_directory(void)
{
    remove_file("config.json");
    remove_file("model.safetensors");
    rmdir(directory);
}

static void read_view(const struct view *view)
{
    static float whole[MOST_VALUES], part[MOST_VALUES];
    struct error error;
    read_ends(view);
    if (view->n_elements == 0 || view->n_elements > MOST_VALUES || view->dtype != &f32_dtype)
        return;
    uint64_t first = view->n_elements / 3, count = view->n_elements - first - view->n_elements / 5;
    if (!view_read(view, 0, view_units(view), whole, &error))
        require_one_line(&error);
    else
        require(view_read(view, first, count, part, &error) && memcmp(part, whole + first, count * sizeof *part) == 0);
}

static void unpack(const struct checkpoint *checkpoint)
{
    struct error error;
    struct plain_set plain;
    struct arena *arena = arena_new();
    struct shown_tensors shown = shown_tensors_of(checkpoint, arena);
    for (size_t i = 0; i < shown_tensors_count(&shown); i++) {
        struct tensor room;
        const struct tensor *tensor = shown_tensors_at(&shown, i, &room);
        bool is_unpacked = shown_tensors_unpacked(&shown, i) != NULL;
        require((tensor->refusal == NULL) == (tensor->view != NULL) || !is_unpacked);
        if (is_unpacked && tensor->view != NULL)
            read_view(tensor->view);
    }
    const struct packed_weights *packed = packings_of(checkpoint);
    const struct plain_wish wish = {.arena = arena};
    if (packed->unread != NULL)
        require(*packed->unread != '\0' && strchr(packed->unread, '\n') == NULL);
    if (!packings_unpack(packed, &wish, arena, &plain, &error))
        require_one_line(&error);
    else
        for (size_t i = 0; i < plain.set->n_tensors; i++)
            if (plain.unpacked != NULL && plain.unpacked[i] != NULL)
                read_ends(tensor_view(&plain.set->tensors[i], arena));
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error;
    const struct open_options options = {0};
    if (size > MOST_BYTES)
        return 0;
    make_directory(remove_directory);
    write_model("config.json", "model.safetensors", data, size);
    const struct checkpoint *checkpoint = checkpoint_open(directory, formats, &options, &error);
    if (checkpoint != NULL)
        unpack(checkpoint);
    else
        require_one_line(&error);
    checkpoint_close(checkpoint);
    return 0;
}
