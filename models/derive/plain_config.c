#include "models/derive/plain_config.h"

#include "text/json_write.h"

#include <string.h>

enum { DEEPEST = 2 };

static const char *const names[] = {"quantization_config", "quantization", "compression_config"};

bool plain_config_lacks(const char *name)
{
    static const char *const files[] = {"hf_quant_config.json", "quantize_config.json", "quantization_config.json"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strcmp(files[i], name) == 0)
            return true;
    return false;
}

static bool leave_out(void *context, struct json_writer *writer, const struct json_member *member, unsigned depth)
{
    for (size_t i = 0; i < sizeof names / sizeof *names && depth <= DEEPEST; i++)
        if (strcmp(member->key, names[i]) == 0)
            return true;
    return false;
}

void plain_config(const struct json *config, struct buffer *out)
{
    json_put_edited(&(struct json_writer){.out = out, .letters = JSON_ASCII}, config, leave_out, NULL);
    buffer_append_text(out, "\n");
}
