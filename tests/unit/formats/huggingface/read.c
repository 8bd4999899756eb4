#include "base/text.h"
#include "formats/checkpoint.h"

#include "tests/unit/check.h"
#include "tests/unit/formats/readers_table.h"
#include "tests/unit/write_safetensors.h"

/* A file of one-byte tensors with those names, separated by spaces. */
static void write_shard(const char *path, const char *names)
{
    char copy[1024];
    struct safetensors file = {0};
    buffer_append_text(&file.header, "\"__metadata__\":{\"format\":\"pt\"}");
    strcpy(copy, names);
    for (char *name = strtok(copy, " "); name != NULL; name = strtok(NULL, " "))
        safetensors_add(&file, name, "U8", "1", NULL, 1);
    safetensors_write(&file, path);
}

/* Opens the directory and closes it again; "ok: " and the tensors in their order, or the error. */
static const char *outcome(const char *directory, const struct open_options *options)
{
    static char text[64 * 1024];
    struct error error = {""};
    const struct checkpoint *checkpoint = checkpoint_open(directory, readers, options, &error);
    if (checkpoint == NULL)
        return strcpy(text, error.message);
    strcpy(text, "ok:");
    for (size_t i = 0; i < checkpoint->tensors->n_tensors; i++)
        sprintf(text + strlen(text), " %s", checkpoint->tensors->tensors[i].name);
    for (size_t i = 0; i < checkpoint_notes(checkpoint); i++)
        sprintf(text + strlen(text), "; %s", checkpoint_note_at(checkpoint, i).text);
    checkpoint_close(checkpoint);
    return text;
}

static const struct open_options usual = {.format = NULL}, part = {.partial = true};

#define SHARD_1 "model-00001-of-00002.safetensors"
#define SHARD_2 "model-00002-of-00002.safetensors"
#define OVERLAY "a-model-overlay.safetensors"
#define INDEX   "model.safetensors.index.json"
#define LACKS   "; -o partial makes files of the tensors that are there"

static void single_files(void)
{
    write_shard("single/model.safetensors", "b a");
    CHECK_TEXT(outcome("single", &usual), "ok: a b");
    CHECK_TEXT(outcome("single/", &usual), "ok: a b");
    write_shard("single/adapter_model.safetensors", "lora");
    CHECK_TEXT(outcome("single", &usual), "ok: a b");
    files_write_text("single/" INDEX, "{}");
    CHECK_TEXT(outcome("single", &usual), "ok: a b; " INDEX " is not used, because model.safetensors exists");
    write_shard("single/" SHARD_1, "c");
    files_write_text("single/" INDEX, "{\"weight_map\":{\"c\":\"" SHARD_1 "\",\"d\":\"" SHARD_2 "\"}}");
    CHECK_TEXT(outcome("single", &usual), "ok: a b; " INDEX " is not used, because model.safetensors exists");
    write_shard("single/" SHARD_2, "d");
    CHECK_TEXT(outcome("single", &usual),
               "ok: c d; the shards of " INDEX " are read, as by the converter to GGUF, not model.safetensors, which "
               "transformers loads; remove the older weights");
    files_write_text("single/" INDEX, "{\"weight_map\":{\"c\":\"" SHARD_1 "\",\"b\":\"model.safetensors\"}}");
    CHECK_TEXT(outcome("single", &usual), "ok: c a b; " INDEX " does not list tensor 'a' of model.safetensors");
    remove("single/" SHARD_1);
    remove("single/" SHARD_2);

    write_shard("other/adapter_model.safetensors", "lora");
    CHECK_TEXT(outcome("other", &usual), "ok: lora");
    write_shard("other/z.safetensors", "z");
    CHECK_TEXT(outcome("other", &usual), "other: adapter_model.safetensors and z.safetensors: without an index, it is "
                                         "unknown which files belong together; name one file");
    files_write_text("other/adapter_config.json", "{}");
    CHECK_TEXT(outcome("other", &usual), "ok: lora");

    files_write_text("none/config.json", "{}");
    CHECK_TEXT(outcome("none", &usual), "none: no checkpoint that wfs can read in this directory, only its "
                                        "config.json; 'hf download ORG/NAME' fetches complete models");
    CHECK_TEXT(outcome("nowhere/else/at/all", &usual), "nowhere/else/at/all: No such file or directory");
}

static bool is_of_kind(const char *path, enum checkpoint_kind kind)
{
    struct error error;
    const struct checkpoint *checkpoint = checkpoint_open(path, readers, &usual, &error);
    bool is = checkpoint != NULL && checkpoint->kind == kind;
    checkpoint_close(checkpoint);
    return is;
}

static void kinds_of_checkpoints(void)
{
    write_shard("lora/adapter_model.safetensors", "lora");
    CHECK(is_of_kind("lora", CHECKPOINT_WEIGHTS)); /* nothing says that it is peft's */
    files_write_text("lora/adapter_config.json", "{}");
    CHECK(is_of_kind("lora", CHECKPOINT_ADAPTER) && is_of_kind("lora/adapter_model.safetensors", CHECKPOINT_ADAPTER));
    write_shard("lora/model.safetensors", "a"); /* the model, beside which an adapter lies */
    CHECK(is_of_kind("lora", CHECKPOINT_WEIGHTS) && is_of_kind("lora/model.safetensors", CHECKPOINT_WEIGHTS));
}

static void shards_without_index(void)
{
    write_shard("sharded/" SHARD_1, "z y");
    CHECK_TEXT(outcome("sharded", &usual), "sharded: " SHARD_2 " is missing: 1 of 2 shards found");
    CHECK_TEXT(outcome("sharded/" SHARD_1, &usual),
               "ok: y z; " SHARD_1 ": only one of 2 shards; name the directory for all tensors" LACKS);
    CHECK_TEXT(outcome("sharded/" SHARD_1, &part),
               "ok: y z; " SHARD_1 ": only one of 2 shards; name the directory for all tensors");
    write_shard("sharded/" SHARD_2, "a");
    CHECK_TEXT(outcome("sharded", &usual), "ok: y z a");
    write_shard("sharded/consolidated.safetensors", "wq");
    CHECK_TEXT(outcome("sharded", &usual), "ok: y z a");
    write_shard("sharded/model-00001-of-00003.safetensors", "x");
    CHECK(strstr(outcome("sharded", &usual), "without an index, it is unknown which files belong together") != NULL);

    write_shard("first/" SHARD_2, "a");
    CHECK_TEXT(outcome("first", &usual), "first: " SHARD_1 " is missing: 1 of 2 shards found");

    write_shard("twice/" SHARD_1, "a b");
    write_shard("twice/" SHARD_2, "b c");
    CHECK_TEXT(outcome("twice", &usual), SHARD_2 ": tensor 'b' is also in " SHARD_1);
}

/* The index of the directory "indexed", whose shards hold a, b and c, d. */
static const struct {
    const char *name, *index, *expected;
} indices[] = {
    {"an index that is right",
     "{\"weight_map\":{\"d\":\"" SHARD_2 "\",\"a\":\"" SHARD_1 "\",\"b\":\"" SHARD_1 "\",\"c\":\"" SHARD_2 "\"}}",
     "ok: a b c d"},
    {"metadata of any kind",
     "{\"metadata\":{\"total_size\":4.0},\"weight_map\":{\"a\":\"" SHARD_1 "\",\"b\":\"" SHARD_1 "\"}}", "ok: a b"},
    {"a tensor that is not listed",
     "{\"weight_map\":{\"a\":\"" SHARD_1 "\",\"b\":\"" SHARD_1 "\",\"c\":\"" SHARD_2 "\"}}",
     "ok: a b c d; " INDEX " does not list tensor 'd' of " SHARD_2},
    {"several that are not listed", "{\"weight_map\":{\"a\":\"" SHARD_1 "\",\"c\":\"" SHARD_2 "\"}}",
     "ok: a b c d; " INDEX " does not list tensor 'b' of " SHARD_1 ", nor others"},
    {"a tensor that is in no shard", "{\"weight_map\":{\"a\":\"" SHARD_1 "\",\"x\":\"" SHARD_1 "\"}}",
     "ok: a b; " INDEX ": tensor 'x' should be in " SHARD_1 ", but is in no shard" LACKS "; " INDEX
     " does not list tensor 'b' of " SHARD_1},
    {"several that are in no shard",
     "{\"weight_map\":{\"a\":\"" SHARD_1 "\",\"b\":\"" SHARD_1 "\",\"rotary.inv_freq\":\"" SHARD_1 "\",\"x\":\"" SHARD_1
     "\"}}",
     "ok: a b; " INDEX ": tensor 'x' should be in " SHARD_1 ", but is in no shard, nor are others that it lists" LACKS},
    {"a buffer that is in no shard",
     "{\"weight_map\":{\"a\":\"" SHARD_1 "\",\"b\":\"" SHARD_1 "\",\"rotary.inv_freq\":\"" SHARD_1 "\"}}",
     "ok: a b; " INDEX ": tensor 'rotary.inv_freq' should be in " SHARD_1 ", but is in no shard; models do without it"},
    {"superseded copies",
     "{\"weight_map\":{\"a\":\"" OVERLAY "\",\"b\":\"" SHARD_1 "\",\"c\":\"" OVERLAY "\",\"d\":\"" SHARD_2 "\"}}",
     "ok: a c b d; " INDEX ": 2 superseded copies in other shards left out, first of 'a'"},
    {"a newer copy that is older",
     "{\"weight_map\":{\"a\":\"" SHARD_1 "\",\"b\":\"" SHARD_1 "\",\"c\":\"" OVERLAY "\"}}",
     "ok: c a b; " INDEX ": 1 superseded copy in other shards left out, first of 'a'"},
    {"copies in shards that are not listed", "{\"weight_map\":{\"b\":\"" SHARD_1 "\",\"c\":\"" OVERLAY "\"}}",
     SHARD_1 ": tensor 'a' is also in " OVERLAY},
    {"a tensor that is in another shard", "{\"weight_map\":{\"a\":\"" SHARD_2 "\",\"b\":\"" SHARD_1 "\"}}",
     INDEX ": tensor 'a' should be in " SHARD_2 ", but is in " SHARD_1},
    {"a missing shard", "{\"weight_map\":{\"a\":\"model-00009.safetensors\"}}",
     INDEX ": model-00009.safetensors: No such file or directory"},
    {"a path to the parent", "{\"weight_map\":{\"a\":\"../single/model.safetensors\"}}",
     INDEX ": the shard '../single/model.safetensors' of tensor 'a' is not a path inside this directory"},
    {"a path below", "{\"weight_map\":{\"e\":\"x/y/" SHARD_1 "\",\"a\":\"" SHARD_1 "\",\"b\":\"" SHARD_1 "\"}}",
     "ok: a b e"},
    {"a path below that leads out", "{\"weight_map\":{\"a\":\"x/../../single/model.safetensors\"}}",
     INDEX ": the shard 'x/../../single/model.safetensors' of tensor 'a' is not a path inside this directory"},
    {"a path through a link that leads out", "{\"weight_map\":{\"a\":\"out/model.safetensors\"}}",
     INDEX
     ": out/model.safetensors: a symbolic link to DIR/single/model.safetensors, outside of the model's directory; "
     "-o follow-links follows it"},
    {"an absolute path", "{\"weight_map\":{\"a\":\"/etc/passwd\"}}",
     INDEX ": the shard '/etc/passwd' of tensor 'a' is not a path inside this directory"},
    {"a dot before the name", "{\"weight_map\":{\"a\":\"./" SHARD_1 "\"}}",
     INDEX ": the shard './" SHARD_1 "' of tensor 'a' is not a path inside this directory"},
    {"two dots", "{\"weight_map\":{\"a\":\"..\"}}",
     INDEX ": the shard '..' of tensor 'a' is not a path inside this directory"},
    {"no name", "{\"weight_map\":{\"a\":\"\"}}",
     INDEX ": the shard '' of tensor 'a' is not a path inside this directory"},
    {"a NUL in the name", "{\"weight_map\":{\"a\":\"" SHARD_1 "\\u0000x\"}}",
     INDEX ": the shard '" SHARD_1 "' of tensor 'a' is not a path inside this directory"},
    {"the index itself as shard", "{\"weight_map\":{\"a\":\"" INDEX "\"}}",
     INDEX ": a text file, not a checkpoint; name its directory if that is a model"},
    {"a directory as shard", "{\"weight_map\":{\"a\":\"directory\"}}", INDEX ": directory: not a regular file"},
    {"a FIFO as shard", "{\"weight_map\":{\"a\":\"fifo\"}}", INDEX ": fifo: not a regular file"},
    {"a link inside the directory", "{\"weight_map\":{\"c\":\"link.safetensors\"}}",
     "ok: c d; " INDEX " does not list tensor 'd' of link.safetensors"},
    {"a link out of the directory", "{\"weight_map\":{\"wq\":\"away.safetensors\"}}",
     INDEX ": away.safetensors: a symbolic link to DIR/single/model.safetensors, outside of the model's directory; "
           "-o follow-links follows it"},
    {"a tensor in two shards",
     "{\"weight_map\":{\"a\":\"" SHARD_1 "\",\"c\":\"" SHARD_2 "\",\"d\":\"link.safetensors\"}}",
     "ok: d a b c; " INDEX ": 2 superseded copies in other shards left out, first of 'c'; " INDEX
     " does not list tensor 'b' of " SHARD_1},
    {"a shard that is not a string", "{\"weight_map\":{\"a\":1}}", INDEX ": the shard of tensor 'a' is not a string"},
    {"a tensor twice", "{\"weight_map\":{\"a\":\"" SHARD_1 "\",\"a\":\"" SHARD_1 "\"}}",
     INDEX ": line 1: key 'a' appears twice in one object"},
    {"an empty map", "{\"weight_map\":{}}", INDEX ": weight_map is empty"},
    {"no map", "{\"metadata\":{}}", INDEX ": the object weight_map is missing"},
    {"a list", "[]", INDEX ": the object weight_map is missing"},
};

static void indexed(void)
{
    write_shard("indexed/" SHARD_1, "a b");
    write_shard("indexed/" SHARD_2, "c d");
    write_shard("indexed/" OVERLAY, "a c");
    write_shard("indexed/x/y/" SHARD_1, "e");
    files_link("indexed/out", "../single");
    files_link("indexed/link.safetensors", SHARD_2);
    files_link("indexed/away.safetensors", "../single/model.safetensors");
    files_must(mkdir("indexed/directory", 0755) == 0 && mkfifo("indexed/fifo", 0644) == 0, "indexed");
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
        char expected[1024];
        const char *placeholder = strstr(indices[i].expected, "DIR");
        int before = placeholder != NULL ? (int)(placeholder - indices[i].expected) : (int)strlen(indices[i].expected);
        snprintf(expected, sizeof expected, "%.*s%s%s", before, indices[i].expected,
                 placeholder != NULL ? files_directory : "", placeholder != NULL ? placeholder + 3 : "");
        files_write_text("indexed/" INDEX, indices[i].index);
        check_text_report(outcome("indexed", &usual), expected, __FILE__, __LINE__, indices[i].name);
    }
}

static void many_shards(size_t n_shards, bool accepted)
{
    static char index[4200 * 40];
    if (accepted && !files_may_be_open(n_shards)) {
        check_skip("many shards", "the hard limit of open files is lower");
        return;
    }
    strcpy(index, "{\"weight_map\":{");
    char *end = index + strlen(index);
    for (size_t i = 0; i < n_shards; i++) {
        char path[64], name[24];
        sprintf(path, "many/s%04zu.safetensors", i);
        sprintf(name, "t%04zu", i);
        write_shard(path, name);
        end += sprintf(end, "%s\"%s\":\"%s\"", i ? "," : "", name, path + 5);
    }
    strcpy(end, "}}");
    files_write_text("many/" INDEX, index);
    const char *text = outcome("many", &usual);
    if (accepted)
        CHECK(text_starts_with(text, "ok: t0000 t0001 "));
    else
        CHECK_TEXT(text, INDEX ": too many shards: 4097, the limit is 4096");
}

/* A shard that is missing, and what is there of it: beside the others, where the hub's client keeps it, or, of a
 * folder, where it keeps that of the whole. */
static void half_downloads(void)
{
    static const char beside[] =
        "half: " SHARD_2 " is missing: 1 of 2 shards found; unfinished download (" SHARD_2 ".part): let it finish";
    static const char index[] = "{\"weight_map\":{\"a\":\"" SHARD_1 "\",\"c\":\"" SHARD_2 "\"}}";
    static const char missing[] = INDEX ": " SHARD_2 ": No such file or directory";
    char expected[512];
    write_shard("half/" SHARD_1, "a b");
    CHECK_TEXT(outcome("half", &usual), "half: " SHARD_2 " is missing: 1 of 2 shards found");
    files_write_text("half/" SHARD_2 ".part", "x");
    CHECK_TEXT(outcome("half", &usual), beside);
    remove("half/" SHARD_2 ".part");
    files_write_text("half/" INDEX, index);
    CHECK_TEXT(outcome("half", &usual), missing);
    files_write_text("half/.cache/huggingface/download/x=.0.incomplete", "x");
    snprintf(expected, sizeof expected,
             "%s; unfinished download (*.incomplete in .cache/huggingface/download): let 'hf download' finish it",
             missing);
    CHECK_TEXT(outcome("half", &usual), expected);

    write_shard("whole/unet/" SHARD_1, "a b");
    files_write_text("whole/unet/" INDEX, index);
    files_write_text("whole/.cache/huggingface/download/vae/x=.0.incomplete", "x");
    CHECK_TEXT(outcome("whole/unet", &usual), missing);
    files_write_text("whole/.cache/huggingface/download/unet/x=.0.incomplete", "x");
    CHECK_TEXT(outcome("whole/unet", &usual), expected);

    write_shard("below/weights/" SHARD_1, "a b");
    files_write_text("below/" INDEX, "{\"weight_map\":{\"a\":\"weights/" SHARD_1 "\",\"c\":\"weights/" SHARD_2 "\"}}");
    CHECK_TEXT(outcome("below", &usual), INDEX ": weights/" SHARD_2 ": No such file or directory");
    files_write_text("below/weights/" SHARD_2 ".part", "x");
    CHECK_TEXT(outcome("below", &usual), INDEX ": weights/" SHARD_2 ": No such file or directory; unfinished download "
                                               "(weights/" SHARD_2 ".part): let it finish");
    files_write_text("below/.cache/huggingface/download/weights/x=.0.incomplete", "x");
    CHECK_TEXT(outcome("below", &usual),
               INDEX ": weights/" SHARD_2 ": No such file or directory; unfinished download (*.incomplete in "
                     ".cache/huggingface/download): let 'hf download' finish it");

    write_shard("models--o--n/snapshots/r/" SHARD_1, "a b");
    write_shard("models--o--n/snapshots/r/unet/" SHARD_1, "a b");
    files_write_text("models--o--n/snapshots/r/" INDEX, index);
    files_write_text("models--o--n/snapshots/r/unet/" INDEX, index);
    CHECK_TEXT(outcome("models--o--n/snapshots/r", &usual), missing);
    files_write_text("models--o--n/blobs/0.incomplete", "x");
    snprintf(expected, sizeof expected,
             "%s; unfinished download (*.incomplete among the blobs): let 'hf download' finish it", missing);
    CHECK_TEXT(outcome("models--o--n/snapshots/r", &usual), expected);
    CHECK_TEXT(outcome("models--o--n/snapshots/r/unet", &usual), expected);
    files_link("models--o--n/snapshots/r/" SHARD_2, "../../blobs/0");
    CHECK_TEXT(outcome("models--o--n/snapshots/r", &usual), missing); /* a link that leads nowhere is something else */
}

static void kinds_of_weights(void)
{
    static const struct open_options as_safetensors = {.format = "safetensors"}, as_torch = {.format = "torch"},
                                     as_unknown = {.format = "tarot"}, as_directory = {.format = "huggingface"};
    write_shard("kinds/model.safetensors", "a");
    CHECK_TEXT(outcome("kinds", &as_safetensors), "ok: a");
    CHECK_TEXT(outcome("kinds", &as_directory), "ok: a");
    CHECK_TEXT(
        outcome("kinds", &as_unknown),
        "'tarot' is not a format (known: dcp, deepspeed, flax, gguf, hdf5, huggingface, keras, "
        "mistral, nemo, numpy, onnx, orbax, pipeline, safetensors, tensorflow, tensorflow-graph, tflite, torch)");
    CHECK(!text_starts_with(outcome("kinds", &as_torch), "ok"));

    /* A shard is what its content is, not its name. */
    write_shard("kinds/pytorch_model.bin", "b");
    CHECK_TEXT(outcome("kinds", &usual), "ok: a");
    remove("kinds/model.safetensors");
    CHECK_TEXT(outcome("kinds", &usual), "ok: b");
    files_write_text("kinds/training_args.bin", "x");
    CHECK_TEXT(outcome("kinds", &usual), "ok: b");
}

/* Diffusers' own names, with variants beside them. */
static void names_of_diffusers(void)
{
    static const struct open_options as_torch = {.format = "torch"};
    write_shard("diffusers/diffusion_pytorch_model.fp16.safetensors", "half");
    CHECK_TEXT(outcome("diffusers", &usual), "ok: half");
    write_shard("diffusers/diffusion_pytorch_model.non_ema.safetensors", "other");
    CHECK(strstr(outcome("diffusers", &usual), "without an index, it is unknown which files belong together") != NULL);
    write_shard("diffusers/diffusion_pytorch_model.safetensors", "full");
    write_shard("diffusers/diffusion_pytorch_model.bin", "torch");
    write_shard("diffusers/diffusion_pytorch_model.fp16.bin", "torch half");
    CHECK_TEXT(outcome("diffusers", &usual), "ok: full");
    CHECK_TEXT(outcome("diffusers", &as_torch), "ok: torch");
    remove("diffusers/diffusion_pytorch_model.safetensors");
    write_shard("diffusers/diffusion_pytorch_model-00001-of-00002.safetensors", "a");
    write_shard("diffusers/diffusion_pytorch_model-00002-of-00002.safetensors", "b");
    CHECK_TEXT(outcome("diffusers", &usual), "ok: a b");
    write_shard("diffusers/model.safetensors", "transformers");
    CHECK_TEXT(outcome("diffusers", &usual), "ok: transformers");
}

static void metadata(void)
{
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"mlx\",\"only\":\"here\"},\"b\":{\"dtype\":\"U8\",\"shape\":[1],"
        "\"data_offsets\":[0,1]}}";
    struct error error;
    write_shard("metadata/" SHARD_1, "a");
    files_write_safetensors("metadata/" SHARD_2, header, sizeof header - 1, 1);
    const struct checkpoint *checkpoint = checkpoint_open("metadata", readers, &usual, &error);
    CHECK(checkpoint != NULL && checkpoint->metadata.n_kvs == 2);
    size_t length;
    CHECK_TEXT(checkpoint->metadata.kvs[0].key, "format");
    CHECK_TEXT(gguf_get_string(&checkpoint->metadata, "format", checkpoint->arena, &length, &error), "pt");
    CHECK_TEXT(checkpoint->metadata.kvs[1].key, "only");
    CHECK_TEXT(checkpoint_note_at(checkpoint, 0).text,
               "the shards differ in the metadata key 'format': the first shard's value is shown");
    CHECK_TEXT(checkpoint->format, "huggingface");
    CHECK_TEXT(checkpoint->model_name, "metadata");
    CHECK(checkpoint->n_sources == 2 && checkpoint->tensors->tensors[1].source == checkpoint->sources[1]);
    checkpoint_close(checkpoint);
}

/* Shards that differ in every key: one note, and no work for each pair of keys. */
static void different_metadata(void)
{
    enum { KEYS = 20000 };
    struct error error;
    for (int shard = 1; shard <= 2; shard++) {
        char *header = malloc(KEYS * 24 + 200), *end = header;
        end += sprintf(end, "{\"__metadata__\":{");
        for (int i = 0; i < KEYS; i++)
            end += sprintf(end, "%s\"k%05d\":\"%d\"", i > 0 ? "," : "", i, shard);
        end += sprintf(end, "},\"%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", shard);
        files_write_safetensors(shard == 1 ? "different/" SHARD_1 : "different/" SHARD_2, header,
                                (size_t)(end - header), 1);
        free(header);
    }
    const struct checkpoint *checkpoint = checkpoint_open("different", readers, &usual, &error);
    CHECK(checkpoint != NULL && checkpoint->metadata.n_kvs == KEYS && checkpoint_notes(checkpoint) == 1);
    CHECK_TEXT(checkpoint_note_at(checkpoint, 0).text,
               "the shards differ in 20000 metadata keys, first 'k00000': the first shard's values are shown");
    for (int i = 0; i < 1000; i++)
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "note %d", i);
    CHECK(checkpoint_notes(checkpoint) == 256);
    checkpoint_close(checkpoint);
}

int main(void)
{
    files_begin();
    single_files();
    kinds_of_checkpoints();
    shards_without_index();
    indexed();
    many_shards(4096, true);
    many_shards(4097, false);
    kinds_of_weights();
    names_of_diffusers();
    half_downloads();
    metadata();
    different_metadata();
    files_remove();
    return check_done();
}
