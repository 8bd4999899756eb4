#include "formats/components.h"

#include "tests/unit/check.h"
#include "tests/unit/formats/readers_table.h"
#include "tests/unit/write_safetensors.h"

static const char header[] = "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}";
static const struct open_options with_components = {.components = true};

static void write_weights(const char *path)
{
    files_write_safetensors(path, header, sizeof header - 1, 4);
}

/* "NAME:CLASS" of all of them. */
static const char *names(const struct checkpoint *checkpoint)
{
    static char text[4096];
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; checkpoint->components != NULL && i < checkpoint->components->count; i++) {
        const struct component *component = &checkpoint->components->items[i];
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s:%s", i > 0 ? " " : "", component->name,
                                   component->class_name != NULL ? component->class_name : "");
    }
    return text;
}

static bool has_note(const struct checkpoint *checkpoint, const char *note)
{
    for (size_t i = 0; i < checkpoint_notes(checkpoint); i++)
        if (strcmp(checkpoint_note_at(checkpoint, i).text, note) == 0)
            return true;
    return false;
}

static void write_pipeline(const char *list)
{
    write_weights("p/unet/model.safetensors");
    write_weights("p/extra/model.safetensors");
    write_weights("p/.hidden/model.safetensors");
    write_weights("p/deep/er/model.safetensors");
    write_weights("outside/model.safetensors");
    files_write_text("p/unet/config.json", "{}");
    files_write_text("p/vae/config.json", "{}");
    files_write_text("p/scheduler/scheduler_config.json", "{}");
    files_write_text("p/model_index.json", list);
}

/* Folders of weights, whether they are named or not; nothing that is elsewhere, whatever the list says. */
static void pipeline(void)
{
    struct error error = {""};
    write_pipeline("{\"_class_name\": \"P\", \"unet\": [\"diffusers\", \"UNet\"], \"vae\": [\"diffusers\", \"VAE\"],"
                   "\"gone\": [\"l\", \"C\"], \"off\": [null, null], \"linked\": [\"l\", \"L\"], \"flag\": true,"
                   "\"../outside\": [\"l\", \"O\"], \"scheduler\": [\"diffusers\", \"S\"], \"_x\": [\"l\", \"X\"]}");
    files_link("p/linked", "../outside");
    const struct checkpoint *checkpoint = checkpoint_open("p", readers, &with_components, &error);
    if (!CHECK(checkpoint != NULL))
        return;
    CHECK_TEXT(checkpoint->format, "pipeline");
    CHECK_TEXT(names(checkpoint), "extra: unet:UNet");
    CHECK(checkpoint->tensors->n_tensors == 0 && checkpoint->n_sources == 0 && checkpoint->n_guides == 1);
    CHECK(checkpoint_notes(checkpoint) == 3);
    CHECK(has_note(checkpoint, "gone is missing, but model_index.json names it (C)"));
    CHECK(has_note(checkpoint, "../outside is missing, but model_index.json names it (O)"));
    CHECK(has_note(checkpoint, "vae: contains no weights that wfs can read (VAE)"));
    CHECK(checkpoint->components->items[1].bytes == 8 + sizeof header - 1 + 4);
    CHECK(checkpoint_bytes(checkpoint) == 2 * (8 + sizeof header - 1 + 4));
    CHECK(components_hold(checkpoint->components, "unet/config.json"));
    CHECK(!components_hold(checkpoint->components, "unet"));
    CHECK(!components_hold(checkpoint->components, "unet2/config.json"));
    CHECK(!components_hold(checkpoint->components, "scheduler/scheduler_config.json"));
    checkpoint_close(checkpoint);
    CHECK(checkpoint_open("p", readers, &(struct open_options){0}, &error) == NULL);
    CHECK_TEXT(error.message, "p: a pipeline of 2 models (model_index.json): extra, unet; name one, such as p/extra");
}

/* What is opened later is in the directory that was opened first. */
static void opened_later(void)
{
    struct error error = {""}, failure = {"no"};
    const struct checkpoint *whole =
        checkpoint_open("p", readers, &(struct open_options){.components = true, .name = "x"}, &error);
    files_must(rename("p", "q") == 0, "q");
    write_weights("p/unet/other.safetensors");
    const struct component *unet = &whole->components->items[1], *extra = &whole->components->items[0];
    const struct checkpoint *checkpoint = checkpoint_open_component(whole, unet, NULL, &error);
    if (CHECK(checkpoint != NULL)) {
        CHECK_TEXT(checkpoint->model_name, "unet");
        CHECK_TEXT(checkpoint->path, "p/unet");
        CHECK_TEXT(source_name(checkpoint->sources[0]), "model.safetensors");
        CHECK(checkpoint->n_side_files == 1 && checkpoint->components == NULL);
    }
    checkpoint_close(checkpoint);
    checkpoint = checkpoint_open_component(whole, unet, &failure, &error);
    if (CHECK(checkpoint != NULL)) {
        CHECK(checkpoint->n_sources == 0 && checkpoint->n_side_files == 1);
        CHECK_TEXT(checkpoint->failure, "no");
    }
    checkpoint_close(checkpoint);
    files_must(rename("q/extra", "q/moved") == 0, "q/moved");
    files_link("q/extra", "../outside");
    CHECK(checkpoint_open_component(whole, extra, NULL, &error) == NULL);
    CHECK(strstr(error.message, "p/extra: ") == error.message);
    checkpoint_close(whole);
}

/* A list that cannot be read says nothing, and the folders are there all the same. */
static void unreadable_list(void)
{
    struct error error = {""};
    files_write_text("q/model_index.json", "{\"a\": [1, ");
    const struct checkpoint *checkpoint = checkpoint_open("q", readers, &with_components, &error);
    if (CHECK(checkpoint != NULL))
        CHECK_TEXT(names(checkpoint), "moved: unet:");
    CHECK(checkpoint_notes(checkpoint) == 1);
    CHECK(strstr(checkpoint_note_at(checkpoint, 0).text, "model_index.json: line 1") != NULL);
    checkpoint_close(checkpoint);
    static const char *const odd[] = {"[]", "3", "{}", "null", "{\"unet\": {}, \"moved\": [\"a\"]}"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        files_write_text("q/model_index.json", odd[i]);
        checkpoint = checkpoint_open("q", readers, &with_components, &error);
        CHECK_NAMED(checkpoint != NULL && strcmp(names(checkpoint), "moved: unet:") == 0, odd[i]);
        checkpoint_close(checkpoint);
    }
}

/* Of a model with a list of modules, only what is named. */
static void modules(void)
{
    struct error error = {""};
    files_write_text(
        "s/modules.json",
        "[{\"path\": \"\", \"type\": \"a.Transformer\"}, {\"path\": \"1_Pooling\", \"type\": \"a.Pooling\"},"
        " {\"path\": \"2_Dense\", \"type\": \"a.b.Dense\"}, {\"path\": \"2_Dense\"}, 7, {},"
        " {\"path\": \"../outside\"}, {\"path\": \"onnx/\"}, {\"path\": \".\"}, {\"path\": \"3_Dense\"}]");
    files_write_text("s/1_Pooling/config.json", "{}");
    files_write_text("s/2_Dense/config.json", "{}");
    write_weights("s/model.safetensors");
    write_weights("s/2_Dense/model.safetensors");
    write_weights("s/3_Dense/model-00001-of-00002.safetensors");
    write_weights("s/onnx/model.safetensors");
    const struct checkpoint *checkpoint = checkpoint_open("s", readers, &(struct open_options){0}, &error);
    if (!CHECK(checkpoint != NULL))
        return;
    CHECK_TEXT(checkpoint->format, "huggingface");
    CHECK_TEXT(names(checkpoint), "2_Dense:Dense 3_Dense:");
    CHECK(checkpoint->tensors->n_tensors == 1 && checkpoint_notes(checkpoint) == 0);
    CHECK(checkpoint_side_file(checkpoint, "2_Dense/config.json") != NULL);
    CHECK(checkpoint->n_hidden == 2); /* the model, and what nothing names */
    checkpoint_close(checkpoint);

    checkpoint = checkpoint_open("s/model.safetensors", readers, &with_components, &error);
    CHECK(checkpoint != NULL && checkpoint->components == NULL);
    checkpoint_close(checkpoint);

    files_must(remove("s/model.safetensors") == 0, "s/model.safetensors");
    checkpoint = checkpoint_open("s", readers, &with_components, &error);
    CHECK(checkpoint != NULL && strcmp(checkpoint->format, "pipeline") == 0);
    checkpoint_close(checkpoint);
}

/* What makes tokens of sound is one, which no list names, of a model that has weights itself. */
static void codec(void)
{
    struct error error = {""};
    files_write_text("t/config.json", "{}");
    files_write_text("t/audio_tokenizer/config.json", "{}");
    write_weights("t/model.safetensors");
    write_weights("t/audio_tokenizer/model.safetensors");
    write_weights("t/other/model.safetensors");
    const struct checkpoint *checkpoint = checkpoint_open("t", readers, &(struct open_options){0}, &error);
    if (!CHECK(checkpoint != NULL))
        return;
    CHECK_TEXT(checkpoint->format, "huggingface");
    CHECK_TEXT(names(checkpoint), "audio_tokenizer:");
    CHECK(checkpoint_side_file(checkpoint, "audio_tokenizer/config.json") != NULL);
    checkpoint_close(checkpoint);
    files_must(remove("t/model.safetensors") == 0, "t/model.safetensors");
    CHECK(checkpoint_open("t", readers, &with_components, &error) == NULL);
}

static void many(void)
{
    struct error error = {""};
    for (int i = 0; i <= COMPONENTS_MAX; i++) {
        char path[64];
        snprintf(path, sizeof path, "m/%03d/model.safetensors", i);
        write_weights(path);
    }
    files_write_text("m/model_index.json", "{}");
    const struct checkpoint *checkpoint = checkpoint_open("m", readers, &with_components, &error);
    CHECK(checkpoint != NULL && checkpoint->components->count == COMPONENTS_MAX);
    CHECK(has_note(checkpoint, "more than 64 folders of weights: the rest are not shown"));
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    pipeline();
    opened_later();
    unreadable_list();
    modules();
    codec();
    many();
    files_remove();
    return check_done();
}
