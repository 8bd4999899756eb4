/* Files that torch wrote, and what torch.load() makes of them: tests/data/torch, by tests/data/make_torch.py. */
#include "base/text.h"
#include "formats/checkpoint.h"

#include "tests/unit/check.h"
#include "tests/unit/formats/readers_table.h"

#include <stdlib.h>

enum { MAX_LINE = 1 << 16, MAX_BYTES = 8192 };

struct expected {
    const char *file, *name, *dtype, *shape, *bytes;
};

static bool has_values(const struct tensor *tensor, const char *hex)
{
    unsigned char bytes[MAX_BYTES];
    char text[2 * MAX_BYTES + 1] = "";
    struct error error;
    if (strcmp(hex, "-") == 0 || tensor->refusal != NULL)
        return tensor->refusal != NULL && strcmp(hex, "-") == 0;
    struct arena *arena = arena_new();
    const struct view *view = tensor_view(tensor, arena);
    bool good = view_bytes(view) <= MAX_BYTES && view_read(view, 0, view_units(view), bytes, &error);
    for (uint64_t i = 0; good && i < view_bytes(view); i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    arena_free(arena);
    return good && strcmp(text, hex) == 0;
}

static void check_tensor(const struct checkpoint *checkpoint, const struct expected *expected)
{
    char shape[128], name[256];
    const struct tensor *tensor = tensor_set_find(checkpoint->tensors, expected->name, strlen(expected->name));
    snprintf(name, sizeof name, "%s: %s", expected->file, expected->name);
    if (!CHECK_NAMED(tensor != NULL, name))
        return;
    shape_text(tensor->shape, tensor->rank, shape, sizeof shape);
    CHECK_NAMED(strcmp(tensor->dtype->name, expected->dtype) == 0 && strcmp(shape, expected->shape) == 0, name);
    CHECK_NAMED(has_values(tensor, expected->bytes), name);
}

static bool split(char *line, struct expected *expected)
{
    const char **fields[] = {&expected->file, &expected->name, &expected->dtype, &expected->shape, &expected->bytes};
    for (int i = 0; i < 5; i++)
        if ((*fields[i] = strsep(&line, "\t\n")) == NULL)
            return false;
    return true;
}

static const struct checkpoint *open_data(const char *file)
{
    char path[1024];
    struct error error;
    static const struct open_options options = {.format = "torch"};
    snprintf(path, sizeof path, "%s/torch/%s", getenv("WFS_TEST_DATA"), file);
    const struct checkpoint *checkpoint = checkpoint_open(path, readers, &options, &error);
    if (!CHECK_NAMED(checkpoint != NULL, file))
        fprintf(stderr, "  %s\n", error.message);
    return checkpoint;
}

/* As many tensors as are expected, and no others. */
static void close_data(const struct checkpoint *checkpoint, size_t n_expected)
{
    if (checkpoint != NULL)
        CHECK_NAMED(checkpoint->tensors->n_tensors == n_expected, "no other tensors");
    checkpoint_close(checkpoint);
}

static void check_files(FILE *lines)
{
    static char line[MAX_LINE];
    char file[128] = "";
    const struct checkpoint *checkpoint = NULL;
    struct expected expected;
    size_t n_expected = 0;
    while (fgets(line, sizeof line, lines) != NULL && split(line, &expected)) {
        if (strcmp(file, expected.file) != 0) {
            close_data(checkpoint, n_expected);
            checkpoint = open_data(expected.file);
            snprintf(file, sizeof file, "%s", expected.file);
            n_expected = 0;
        }
        n_expected++;
        if (checkpoint != NULL)
            check_tensor(checkpoint, &expected);
    }
    close_data(checkpoint, n_expected);
}

static void check_extras(void)
{
    const struct checkpoint *checkpoint = open_data("nested-2.pt");
    CHECK_TEXT(checkpoint->extras,
               "{\"optimizer\":{\"param_groups\":[{\"lr\":0.001,\"betas\":[0.9,0.999],\"eps\":1e-08,\"weight_decay\":0,"
               "\"amsgrad\":"
               "false,\"maximize\":false,\"foreach\":null,\"capturable\":false,\"differentiable\":false,\"fused\":null,"
               "\"decoupled_weight_decay\":false,\"params\":[0,1]}]},\"epoch\":3,\"args\":{\"lr\":0.1,\"name\":\"x\"},"
               "\"scalar\":2.5,"
               "\"dtype\":\"torch.bfloat16\",\"size\":[1,2]}");
    checkpoint_close(checkpoint);
}

/* Reports whether the extras hold a member of that text. */
static void check_member(const struct checkpoint *checkpoint, const char *member)
{
    CHECK_NAMED(checkpoint->extras != NULL && strstr(checkpoint->extras, member) != NULL, member);
}

/* What torch.load() would have to call is named, in the words of the pickle. */
static void check_odd(const char *file, const char *builtins)
{
    static const char *const members[] = {
        "\"enum\":{\"__main__.Color\":[1]}",
        "\"flag\":{\"__main__.Level\":[1]}",
        "\"function\":\"torch._C._nn.gelu\"",
        "\"regex\":{\"re._compile\":[\"a+\",32]}",
        "\"logger\":{\"logging.getLogger\":[\"train\"]}",
        "\"random\":{\"random.Random\":[],\"state\":[3,[2147483648,163610392,",
        "\"generator\":{\"torch._C.Generator\":[\"cpu\"],\"state\":[7,null,null]}",
        "\"getter\":{\"operator.attrgetter\":[\"x\"]}",
        "\"count\":{\"itertools.count\":[3]}",
        "\"bytes\":{\"bytes\":\"00ff\",\"length\":2}",
        "\"big\":\"1180591620717411303424\"",
        "\"small\":\"-18446744073709551616\"",
        "\"seed\":\"18446744073709551615\"",
        "\"when\":\"2024-05-06T07:08:09.000010\",\"day\":\"2024-05-06\",\"hour\":\"07:08:00\"",
        "\"zone\":{\"datetime.datetime\":[{\"bytes\":\"07e80506000000000000\",\"length\":10},",
        "\"strings\":{\"numpy.ndarray\":[\"U2\",[2]]},\"objects\":{\"numpy.ndarray\":[\"O8\",[2]]}",
        "\"storage\":{\"torch.storage.UntypedStorage\":[\"2\",\"cpu\",12]}",
    };
    char text[200];
    const struct checkpoint *checkpoint = open_data(file);
    if (checkpoint == NULL)
        return;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        check_member(checkpoint, members[i]);
    snprintf(text, sizeof text, "\"builtin\":\"%s.len\"", builtins);
    check_member(checkpoint, text);
    snprintf(text, sizeof text,
             "\"partial\":{\"functools.partial\":[\"%s.divmod\"],\"state\":[\"%s.divmod\",[7],{},null]}", builtins,
             builtins);
    check_member(checkpoint, text);
    snprintf(text, sizeof text, "\"method\":{\"%s.getattr\":[\"text\",\"upper\"]}", builtins);
    check_member(checkpoint, text);
    checkpoint_close(checkpoint);
}

static void check_notes(void)
{
    const struct checkpoint *checkpoint = open_data("module.pt");
    CHECK(checkpoint_notes(checkpoint) == 3 &&
          strstr(checkpoint_note_at(checkpoint, 1).text, "torch.nn.modules.linear.Linear") != NULL);
    checkpoint_close(checkpoint);
}

int main(void)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/torch/expected.txt", getenv("WFS_TEST_DATA"));
    FILE *lines = fopen(path, "r");
    CHECK_NAMED(lines != NULL, path);
    if (lines != NULL) {
        check_files(lines);
        fclose(lines);
    }
    check_extras();
    check_odd("odd-2.pt", "__builtin__");
    check_odd("odd-4.pt", "builtins");
    check_notes();
    return check_done();
}
