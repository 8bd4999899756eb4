/* Text of dict keys. */
#include "formats/torch/tensors.h"
#include "text/json_write.h"

#include <inttypes.h>

enum { MAX_KEY_TEXT = 64 }; /* bytes of a key that is not text; items of a tuple */

void torch_append_key(struct buffer *path, const struct pickle_node *key)
{
    char number[JSON_FLOAT_TEXT];
    if (key->absent) {
        buffer_printf(path, "%zu bytes", key->text.length);
        return;
    }
    switch (key->kind) {
    case PICKLE_TEXT:
    case PICKLE_BYTES:
        buffer_append(path, key->text.bytes, key->text.length);
        break;
    case PICKLE_INTEGER:
        buffer_printf(path, "%" PRId64, key->integer);
        break;
    case PICKLE_FLOAT:
        buffer_append_text(path, json_f64_text(key->number, number));
        break;
    case PICKLE_TRUE:
        buffer_append_text(path, "True");
        break;
    case PICKLE_FALSE:
        buffer_append_text(path, "False");
        break;
    case PICKLE_NONE:
        buffer_append_text(path, "None");
        break;
    case PICKLE_GLOBAL:
        buffer_printf(path, "%.*s", MAX_KEY_TEXT, key->global.name);
        break;
    case PICKLE_TUPLE: /* as Python prints it, but without quotes */
        buffer_append_text(path, "(");
        for (uint32_t i = 0; i < key->items.n && i < MAX_KEY_TEXT && path->length <= TENSOR_MAX_NAME; i++) {
            if (i > 0)
                buffer_append_text(path, ", ");
            if (key->items.nodes[i]->kind != PICKLE_TUPLE)
                torch_append_key(path, key->items.nodes[i]);
        }
        buffer_append_text(path, ")");
        break;
    default:
        buffer_append_text(path, "?");
    }
}
