/* Which paths a mount lists, by the patterns of a shell. */
#include "fs/mount/session_options.h"

#include "tests/unit/check.h"

static const char *const patterns[] = {"model.gguf", "gguf/*Q4_K*", "tensors/*/q4_0", "hf"};
static const struct only only = {patterns, sizeof patterns / sizeof *patterns};

static void listed(void)
{
    CHECK(only_lists(&only, "model.gguf", false) && only_lists(&only, "/gguf/model-Q4_K_M.gguf", false));
    CHECK(only_lists(&only, "tensors/a.weight/q4_0", false));
    CHECK_NAMED(only_lists(&only, "gguf", true) && only_lists(&only, "tensors/b", true), "directories on the way");
    CHECK_NAMED(only_lists(&only, "hf", true) && only_lists(&only, "hf/a/b", false), "all that a directory holds");
    CHECK_NAMED(only_lists(&(struct only){0}, "mlx", true), "everything, without patterns");
}

static void left_out(void)
{
    CHECK(!only_lists(&only, "config.json", false) && !only_lists(&only, "mlx", true));
    CHECK(!only_lists(&only, "gguf/model-Q5_K_M.gguf", false) && !only_lists(&only, "tensors/b/f32", false));
    CHECK_NAMED(!only_lists(&only, "gguf", false), "a file where a directory was meant");
    CHECK_NAMED(!only_lists(&only, "hf2/a", false), "a name that only begins as the pattern");
}

int main(void)
{
    listed();
    left_out();
    return check_done();
}
