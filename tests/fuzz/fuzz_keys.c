/* Any keys and shapes as a GGUF: opens it and reads everything that is made of them, hf/ above all.
 *
 * An input is lines of fields with tabs between them: of each key its name, its type and its value, or its type, "[]"
 * and its elements; after an empty line, of each tensor its name, its type and its dimensions as GGUF orders them, and
 * perhaps "=" and the first of its values, in F32. %XX is a byte of a text. All other weights are zero, and a hole in
 * the file. */
#include "tests/fuzz/visit_tree.h"

#include "base/buffer.h"
#include "formats/gguf/kv.h"

#include <fcntl.h>

enum { MAX_INPUT = 1 << 16, MAX_FIELD = 1 << 12, ALIGNMENT = 32 };
static const uint64_t max_data = 1 << 26;

struct fields {
    const char *at, *end;
};

/* Values of weights, from where they are in the data. */
struct values {
    uint64_t offset;
    struct buffer bytes;
};
static struct values given[16];
static size_t n_given;

static void put(struct buffer *out, uint64_t number, size_t size)
{
    buffer_append(out, &number, size); /* this is for little-endian machines */
}

static bool more(const struct fields *fields)
{
    return fields->at < fields->end;
}

/* The next field of a line, with its escapes as they are; cut where it is long. */
static void take(struct fields *fields, char field[MAX_FIELD])
{
    const char *tab = memchr(fields->at, '\t', (size_t)(fields->end - fields->at));
    const char *end = tab != NULL ? tab : fields->end;
    size_t length = (size_t)(end - fields->at) < MAX_FIELD - 1 ? (size_t)(end - fields->at) : MAX_FIELD - 1;
    memcpy(field, fields->at, length);
    field[length] = '\0';
    fields->at = tab != NULL ? tab + 1 : fields->end;
}

static void put_text(struct buffer *out, const char *field)
{
    char text[MAX_FIELD];
    size_t length = 0;
    unsigned byte;
    while (*field != '\0') {
        bool is_escape = sscanf(field, "%%%2x", &byte) == 1 && strlen(field) > 2;
        text[length++] = is_escape ? (char)byte : *field;
        field += is_escape ? 3 : 1;
    }
    put(out, length, 8);
    buffer_append(out, text, length);
}

static void put_value(struct buffer *out, enum gguf_type type, const char *field)
{
    static const size_t sizes[] = {
        [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4,
        [GGUF_I32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_ARRAY] = 0,
    };
    float single = strtof(field, NULL);
    double number = strtod(field, NULL);
    if (type == GGUF_STRING)
        put_text(out, field);
    else if (type == GGUF_F32)
        buffer_append(out, &single, sizeof single);
    else if (type == GGUF_F64)
        buffer_append(out, &number, sizeof number);
    else
        put(out, *field == '-' ? (uint64_t)strtoll(field, NULL, 10) : strtoull(field, NULL, 10), sizes[type]);
}

static enum gguf_type type_of(char *name, bool *ret_is_array)
{
    size_t length = strlen(name);
    *ret_is_array = length > 2 && strcmp(name + length - 2, "[]") == 0;
    if (*ret_is_array)
        name[length - 2] = '\0';
    for (unsigned type = GGUF_U8; type <= GGUF_F64; type++)
        if (type != GGUF_ARRAY && strcmp(gguf_type_name(type), name) == 0)
            return type;
    return GGUF_U32;
}

static void put_key(struct buffer *out, struct fields *fields)
{
    char field[MAX_FIELD];
    struct buffer elements = {0};
    bool is_array;
    uint64_t n_elements = 0;
    take(fields, field);
    put_text(out, field);
    take(fields, field);
    enum gguf_type type = type_of(field, &is_array);
    put(out, is_array ? GGUF_ARRAY : type, 4);
    do {
        take(fields, field);
        put_value(&elements, type, field);
        n_elements++;
    } while (is_array && more(fields));
    if (is_array) {
        put(out, type, 4);
        put(out, n_elements, 8);
    }
    buffer_append(out, elements.bytes, elements.length);
    buffer_free(&elements);
}

static void take_values(struct fields *fields, uint64_t offset, uint64_t n_bytes)
{
    char field[MAX_FIELD];
    struct values *values = &given[n_given++];
    *values = (struct values){.offset = offset};
    while (more(fields)) {
        take(fields, field);
        float value = strtof(field, NULL);
        if (values->bytes.length + sizeof value <= n_bytes)
            buffer_append(&values->bytes, &value, sizeof value);
    }
}

/* Appends what the header says of a tensor; false for what has no place. */
static bool put_tensor(struct buffer *out, struct fields *fields, uint64_t *n_data)
{
    char name[MAX_FIELD], field[MAX_FIELD];
    uint64_t dims[4], n_elements = 1;
    unsigned rank = 0;
    take(fields, name);
    take(fields, field);
    const struct dtype *dtype = dtype_by_name(field);
    while (more(fields) && rank < 4) {
        take(fields, field);
        if (*field == '=')
            break;
        dims[rank] = strtoull(field, NULL, 10);
        if (dims[rank] > max_data || n_elements * dims[rank] > max_data)
            return false;
        n_elements *= dims[rank++];
    }
    if (dtype == NULL || dtype->ggml_type == GGML_TYPE_NONE)
        return false;
    uint64_t n_bytes = (dtype_bytes(dtype, n_elements) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    put_text(out, name);
    put(out, rank, 4);
    for (unsigned i = 0; i < rank; i++)
        put(out, dims[i], 8);
    put(out, (uint64_t)dtype->ggml_type, 4);
    put(out, *n_data, 8);
    if (*field == '=' && n_given < sizeof given / sizeof *given)
        take_values(fields, *n_data, n_bytes);
    *n_data += n_bytes;
    return *n_data <= max_data;
}

/* The next line; false at the end. */
static bool next_line(const char **at, const char *end, struct fields *ret_line)
{
    if (*at >= end)
        return false;
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    *ret_line = (struct fields){*at, newline != NULL ? newline : end};
    *at = newline != NULL ? newline + 1 : end;
    return true;
}

static bool assemble(const char *at, const char *end, struct buffer *keys, struct buffer *tensors, uint64_t counts[2],
                     uint64_t *n_data)
{
    struct fields line;
    for (; next_line(&at, end, &line) && more(&line); counts[1]++)
        put_key(keys, &line);
    for (; next_line(&at, end, &line); counts[0]++)
        if (!put_tensor(tensors, &line, n_data))
            return false;
    return true;
}

static char directory[] = "/tmp/wfs-fuzz-XXXXXX";

static void remove_directory(void)
{
    rmdir(directory);
}

static void visit_gguf(const struct buffer *header, uint64_t n_data)
{
    static const struct content_options options = {.request.quantize.requantize = true};
    static char path[64];
    if (path[0] == '\0') {
        require(mkdtemp(directory) != NULL && atexit(remove_directory) == 0);
        snprintf(path, sizeof path, "%s/model.gguf", directory);
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    uint64_t data = (header->length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    require(fd >= 0 && write(fd, header->bytes, header->length) == (ssize_t)header->length);
    require(ftruncate(fd, (off_t)(data + n_data)) == 0);
    for (size_t i = 0; i < n_given; i++)
        require(pwrite(fd, given[i].bytes.bytes, given[i].bytes.length, (off_t)(data + given[i].offset)) ==
                (ssize_t)given[i].bytes.length);
    close(fd);
    visit_path(path, &options, "tensors");
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer header = {0}, keys = {0}, tensors = {0};
    uint64_t counts[2] = {0}, n_data = 0;
    if (size <= MAX_INPUT &&
        assemble((const char *)data, (const char *)data + size, &keys, &tensors, counts, &n_data)) {
        buffer_append_text(&header, "GGUF");
        put(&header, 3, 4);
        put(&header, counts[0], 8);
        put(&header, counts[1], 8);
        buffer_append(&header, keys.bytes, keys.length);
        buffer_append(&header, tensors.bytes, tensors.length);
        visit_gguf(&header, n_data);
    }
    buffer_free(&header);
    buffer_free(&keys);
    buffer_free(&tensors);
    while (n_given > 0)
        buffer_free(&given[--n_given].bytes);
    return 0;
}
