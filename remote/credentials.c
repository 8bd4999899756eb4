#include "remote/credentials.h"

#include "base/text.h"
#include "remote/aws.h"
#include "remote/options.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const char *hub_endpoint(struct arena *arena)
{
    const char *endpoint = remote_variable("HF_ENDPOINT");
    size_t length = endpoint != NULL ? strlen(endpoint) : 0;
    while (length > 0 && endpoint[length - 1] == '/')
        length--;
    return length > 0 ? arena_strndup(arena, endpoint, length) : "https://huggingface.co";
}

static const char *token_path(struct arena *arena)
{
    const char *path = remote_variable("HF_TOKEN_PATH"), *home = remote_variable("HF_HOME");
    const char *cache = remote_variable("XDG_CACHE_HOME"), *user = remote_variable("HOME");
    if (path != NULL)
        return path;
    if (home != NULL)
        return arena_printf(arena, "%s/token", home);
    if (cache != NULL)
        return arena_printf(arena, "%s/huggingface/token", cache);
    return user != NULL ? arena_printf(arena, "%s/.cache/huggingface/token", user) : NULL;
}

const char *const *credential_files(struct arena *arena)
{
    enum { MOST = 8 };
    const char **files = arena_array(arena, MOST, sizeof *files), *of_aws[2];
    const char *netrc = remote_variable("NETRC"), *home = remote_variable("HOME");
    size_t count = 0;
    if ((files[count] = token_path(arena)) != NULL)
        count++;
    if (netrc != NULL || home != NULL)
        files[count++] = netrc != NULL ? netrc : arena_printf(arena, "%s/.netrc", home);
    if ((files[count] = remote_options().cacert) != NULL)
        count++;
    aws_settings_files(arena, of_aws);
    for (int i = 0; i < 2; i++)
        if (strrchr(of_aws[i], '/') != NULL) /* new temporary keys are in a new file */
            files[count++] = arena_strndup(arena, of_aws[i], (size_t)(strrchr(of_aws[i], '/') - of_aws[i]) + 1);
    files[count] = NULL;
    return files;
}

static const char *read_token(const char *path, struct arena *arena)
{
    enum { LIMIT = 4096 };
    char text[LIMIT];
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (fd >= 0)
        close(fd);
    return length > 0 ? arena_strndup(arena, text, (size_t)length) : NULL;
}

/* The token without the spaces around it; NULL if it is empty or could not be part of a header. */
static const char *trimmed(const char *token, struct arena *arena)
{
    static const char space[] = " \t\r\n";
    if (token == NULL)
        return NULL;
    token += strspn(token, space);
    size_t length = strcspn(token, space);
    bool is_one = length > 0 && token[length + strspn(token + length, space)] == '\0';
    for (size_t i = 0; i < length; i++)
        is_one &= token[i] > ' ' && token[i] < 0x7f;
    return is_one ? arena_strndup(arena, token, length) : NULL;
}

const char *hub_authorization(struct arena *arena, const char **ret_from)
{
    static const char *const variables[] = {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"};
    const char *token = NULL, *off = remote_variable("HF_HUB_DISABLE_IMPLICIT_TOKEN");
    for (size_t i = 0; token == NULL && i < sizeof variables / sizeof *variables; i++) {
        *ret_from = variables[i];
        token = trimmed(remote_variable(variables[i]), arena);
    }
    if (off != NULL && strcmp(off, "1") == 0)
        return NULL;
    if (token == NULL) {
        *ret_from = token_path(arena);
        token = trimmed(read_token(*ret_from, arena), arena);
    }
    return token != NULL ? arena_printf(arena, "Authorization: Bearer %s", token) : NULL;
}
