#include "base/report.h"
#include "base/text.h"
#include "fs/cli/command.h"
#include "fs/http/libmicrohttpd.h"
#include "fs/http/route.h"
#include "fs/http/server.h"
#include "fs/lib/library.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLAG_LISTEN, FLAG_TOKEN_FILE, FLAG_PUBLIC, FLAG_HOST, FLAG_SHOW, FLAG_VERBOSE };

struct serving {
    struct arena *arena;
    struct tree **trees;
    size_t n_trees;
    struct repositories repositories;
};

/* Returns ORG/NAME for a snapshot in the hub cache, else local/NAME. */
static const char *default_id(const struct checkpoint *checkpoint, struct arena *arena)
{
    const char *id = library_repository(checkpoint->path, arena);
    return id != NULL ? id : arena_printf(arena, "local/%s", checkpoint->model_name);
}

/* Clients and wfs read these in a path as no name. */
static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Reports a name that no model can have. */
static bool check_name(const char *id, struct arena *arena)
{
    const char *slash = strchr(id, '/');
    bool is_name = slash != NULL && slash != id && slash[1] != '\0' && strchr(slash + 1, '/') == NULL;
    const char *owner = is_name ? arena_strndup(arena, id, (size_t)(slash - id)) : NULL;
    if (!is_name || is_dots(owner) || is_dots(slash + 1))
        report("'%s' is no name of a model; write ORG/NAME=SOURCE", id);
    else if (!route_is_owner(owner))
        report("%s: the server has pages of its own below /%s/; write ORG/NAME=SOURCE with another ORG", id, owner);
    else
        return true;
    return false;
}

/* Returns an exit status. */
static int add_source(struct serving *serving, const char *argument, const struct invocation *invocation)
{
    const char *id, *source = library_split(argument, serving->arena, &id);
    if (id != NULL && !check_name(id, serving->arena))
        return EXIT_MISUSE;
    struct tree *tree = command_open(source, invocation->options);
    struct error error;
    if (tree == NULL)
        return EXIT_BAD_INPUT;
    serving->trees = memory_resize(serving->trees, (serving->n_trees + 1) * sizeof *serving->trees);
    serving->trees[serving->n_trees++] = tree;
    if (id == NULL && !check_name(id = default_id(tree_checkpoint(tree), serving->arena), serving->arena))
        return EXIT_BAD_INPUT;
    if (repositories_add(&serving->repositories, tree, id, invocation->repeated, invocation->n_repeated, serving->arena,
                         &error))
        return EXIT_SUCCESS;
    report("%s", error.message);
    return EXIT_BAD_INPUT;
}

/* Reads the token from a file, without white space at its ends. */
static const char *read_token(const char *path, struct arena *arena, struct error *error)
{
    enum { MAX_TOKEN = 4096 };
    char token[MAX_TOKEN + 1];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        error_set_errno(error, errno, "%s", path);
        return NULL;
    }
    size_t length = fread(token, 1, MAX_TOKEN, file);
    bool read = !ferror(file);
    fclose(file);
    token[length] = '\0';
    char *begin = token + strspn(token, " \t\r\n");
    begin[strcspn(begin, " \t\r\n")] = '\0';
    if (!read || *begin == '\0') {
        error_set(error, "%s: has no token", path);
        return NULL;
    }
    return arena_strdup(arena, begin);
}

/* Signals that end the server post this on any thread. */
static sem_t signalled;

static void end_serving(int number)
{
    sem_post(&signalled);
}

static void await_signal(void)
{
    while (sem_wait(&signalled) != 0 && errno == EINTR)
        continue;
}

static void catch_signals(void)
{
    const struct sigaction end = {.sa_handler = end_serving, .sa_flags = SA_RESTART}, ignore = {.sa_handler = SIG_IGN};
    sem_init(&signalled, 0, 0);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

/* Enters the sandbox. Its store keeps digests. */
static int confine(const struct serving *serving, const struct invocation *invocation)
{
    const char **sources = arena_array(serving->arena, invocation->n_arguments, sizeof *sources), *id;
    for (size_t i = 0; i < invocation->n_arguments; i++)
        sources[i] = library_split(invocation->arguments[i], serving->arena, &id);
    return command_confine(invocation, &(struct command_needs){
                                           .sources = sources,
                                           .n_sources = invocation->n_arguments,
                                           .uses_store = true,
                                           .listens = true,
                                       });
}

/* Reads and loads what the sandbox forbids. */
static bool prepare(const struct serving *serving, const struct invocation *invocation,
                    struct server_options *ret_options, struct error *error)
{
    const char *listen = invocation->values[FLAG_LISTEN], *token_file = invocation->values[FLAG_TOKEN_FILE];
    *ret_options = (struct server_options){
        .listen = listen != NULL ? listen : "127.0.0.1:8090",
        .is_public = invocation->flags[FLAG_PUBLIC],
        .hosts = invocation->values[FLAG_HOST],
        .verbose = invocation->flags[FLAG_VERBOSE],
    };
    return (token_file == NULL || (ret_options->token = read_token(token_file, serving->arena, error)) != NULL) &&
           libmicrohttpd_load(error);
}

/* Reports whether a program runs a repository, as far as it is known. Plans a file of a directory for an engine. */
static bool is_runnable(const struct repository *repository)
{
    return repository->command != NULL && repository->is_listed &&
           (!repository->is_of_engine || repository_has_weights(repository));
}

/* Prints the models of the sources, and if programs run any how many directories for engines there are. */
static void print_models(const struct repositories *repositories, FILE *out)
{
    const struct repository *engine = NULL;
    size_t n_engines = 0;
    fputs("serves", out);
    for (size_t i = 0; i < repositories->count; i++) {
        const struct repository *repository = &repositories->items[i];
        if (!repository->is_of_engine) {
            fputs(" ", out);
            text_put(repository->id, out);
            continue;
        }
        n_engines += repository->is_listed;
        if (engine == NULL && is_runnable(repository))
            engine = repository;
    }
    if (engine != NULL) {
        fprintf(out, ", and %zu for engines such as ", n_engines);
        text_put(engine->id, out);
    }
    fputs("\n", out);
}

static void print_command(const char *address, const char *command, const struct repository *repository, FILE *out)
{
    fprintf(out, "  HF_ENDPOINT=http://%s %s ", address, command);
    text_put(repository->id, out);
    fputs(repository->is_tagged ? ":Q4_K_M\n" : "\n", out);
}

static bool is_among(const char *const *texts, size_t n, const char *text)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(texts[i], text) == 0)
            return true;
    return false;
}

/* Prints a command of each program, with the first model that it runs, and one that downloads the first model. */
static void print_commands(const struct repositories *repositories, const char *address, FILE *out)
{
    enum { MOST = 16 };
    const char *printed[MOST];
    size_t n = 0;
    if (repositories->count > 0)
        print_command(address, "hf download", &repositories->items[0], out);
    for (size_t i = 0; i < repositories->count && n < MOST; i++) {
        const struct repository *repository = &repositories->items[i];
        if (repository->command == NULL || is_among(printed, n, repository->command) || !is_runnable(repository))
            continue;
        printed[n++] = repository->command;
        print_command(address, repository->command, repository, out);
    }
}

/* Prints the address, and for people what is served and how to use it. */
static void print_start(const struct repositories *repositories, const char *address, bool verbose)
{
    FILE *out = isatty(STDOUT_FILENO) ? stdout : stderr;
    printf("http://%s\n", address);
    if (out == stderr && !verbose)
        return;
    print_models(repositories, out);
    print_commands(repositories, address, out);
    fprintf(out, "  http://%s in a browser\n", address);
    fprintf(out, "  rclone mount --http-url http://%s :http: DIRECTORY\n", address);
}

static bool serve(struct serving *serving, const struct server_options *options, struct error *error)
{
    catch_signals();
    struct server *server = server_start(&serving->repositories, options, error);
    if (server == NULL)
        return false;
    print_start(&serving->repositories, server_address(server), options->verbose);
    if (finish_output(EXIT_SUCCESS) == EXIT_SUCCESS)
        await_signal();
    server_stop(server);
    return true;
}

/* Returns the exit status. */
static int open_and_serve(struct serving *serving, const struct invocation *invocation)
{
    struct server_options options;
    struct error error;
    bool done = prepare(serving, invocation, &options, &error);
    int status = done ? confine(serving, invocation) : -1;
    if (status >= 0)
        return status;
    for (size_t i = 0; i < invocation->n_arguments && done; i++)
        if ((status = add_source(serving, invocation->arguments[i], invocation)) != EXIT_SUCCESS)
            return status;
    if (done && serve(serving, &options, &error))
        return EXIT_SUCCESS;
    report("%s", error.message);
    return EXIT_BAD_INPUT;
}

static int run(const struct invocation *invocation)
{
    struct serving serving = {.arena = arena_new()};
    int status = EXIT_BAD_INPUT;
    if (invocation->options->library)
        report("option library has no effect on serve: name each model");
    else
        status = open_and_serve(&serving, invocation);
    for (size_t i = 0; i < serving.n_trees; i++)
        command_close(serving.trees[i]);
    free(serving.trees);
    repositories_free(&serving.repositories);
    arena_free(serving.arena);
    return status;
}

const struct command serve_command = {
    .name = "serve",
    .usage = "[ORG/NAME=]SOURCE...",
    .summary = "Serve computed files over HTTP, as the Hugging Face hub does",
    .group = SERVER_COMMAND,
    .text = "The first line on standard output is the address. Clients of the hub read from it with HF_ENDPOINT. Each "
            "SOURCE is two models: ORG/NAME with the files of hf/, and ORG/NAME-GGUF with the files of gguf/; "
            "directories for "
            "engines are models, too: ORG/NAME-MLX-4bit, ORG/NAME-FP8_DYNAMIC. The default "
            "name is that in the hub cache, else local/DIRECTORY. SIGTERM ends the server.",
    .flags =
        (const struct flag[]){
            {0, "listen", "listen at this address; port 0 chooses a free port (default: 127.0.0.1:8090)", "HOST:PORT",
             true},
            {0, "token-file", "clients must send the token in this file; theirs is HF_TOKEN", "FILE", true},
            {0, "public", "let other machines connect without a token"},
            {0, "host", "answer to these names, too, without a token", "NAME[,NAME...]", true},
            {0, "show", "list only files whose names match; may be repeated", "GLOB", true, .repeats = true},
            {'v', "verbose", "print what is served, and a line for each request"},
            {0},
        },
    .examples =
        (const struct example[]){
            {"wfs serve acme/Llama-3.2-1B=$HOME/models/Llama-3.2-1B", "serve a model under a name"},
            {"HF_ENDPOINT=http://127.0.0.1:8090 llama-server -hf acme/Llama-3.2-1B-GGUF:Q4_K_M",
             "run a quantization that is not on any disk"},
            {0},
        },
    .min_arguments = 1,
    .max_arguments = SIZE_MAX,
    .takes_options = true,
    .enters_sandbox_itself = true,
    .run = run,
};
