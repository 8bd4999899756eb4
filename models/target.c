#include "models/target.h"

#include "models/adapter.h"
#include "models/from_gguf.h"

bool target_open(struct checkpoint *checkpoint, const char *path, struct error *error)
{
    if (path == NULL || adapter_is_source(checkpoint) || gguf_is_source(checkpoint))
        return true;
    checkpoint->target = checkpoint_open_side_files(path, error);
    return checkpoint->target != NULL;
}
