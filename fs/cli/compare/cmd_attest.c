#include "base/report.h"
#include "fs/cli/command.h"
#include "fs/cli/info/json_page.h"
#include "fs/cli/terminal.h"
#include "fs/lib/attestation.h"

#include <stdlib.h>

static int run(const struct invocation *invocation)
{
    struct tree *tree = command_open(invocation->arguments[0], invocation->options);
    struct found_list files = {0};
    struct attestation attestation;
    struct error error;
    struct buffer text = {0};
    if (tree == NULL)
        return EXIT_BAD_INPUT;
    struct arena *arena = arena_new();
    bool done = paths_find_files(tree, invocation->arguments + 1, invocation->n_arguments - 1, &files);
    if (done && !attestation_make(tree, &files, invocation->options, arena, &attestation, &error)) {
        report("%s", error.message);
        done = false;
    }
    if (done) {
        attestation_append(&attestation, stdout_letters(), &text);
        print_json_line(&text);
    }
    found_free(&files);
    arena_free(arena);
    command_close(tree);
    return finish_output(done ? EXIT_SUCCESS : EXIT_BAD_INPUT);
}

const struct command attest_command = {
    .name = "attest",
    .usage = "SOURCE PATH...",
    .summary = "Print an in-toto statement of what virtual files are made from",
    .group = COMPARE_COMMAND,
    .text =
        "The statement has the SHA-256 of each virtual file and of each file that it is made from, the options, and "
        "the "
        "version of wfs (SLSA provenance v1).\nIt holds no time and no absolute path: the same files always give the "
        "same "
        "statement. Sign it with cosign or another\ntool; 'wfs verify --attestation FILE SOURCE' makes it again and "
        "compares.",
    .examples =
        (const struct example[]){
            {"wfs attest ~/models/Llama-3.2-1B gguf/model-Q4_K_M.gguf >model.intoto.json",
             "say what a quantized file is made from"},
            {"wfs attest Qwen/Qwen2.5-0.5B hf >hf.intoto.json", "attest all files of a directory"},
            {0},
        },
    .min_arguments = 2,
    .max_arguments = SIZE_MAX,
    .n_sources = 1,
    .takes_options = true,
    .run = run,
};
