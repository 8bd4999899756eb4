/* Expected: what botocore 1.44 finds with the same files and variables, but for AWS_REGION, which other SDKs read. */
#include "remote/aws.h"

#include "tests/unit/check.h"
#include "tests/unit/files.h"

static const char credentials[] = "# keys\n"
                                  "[default]\n"
                                  "aws_access_key_id = DEFAULT_ID\n"
                                  "aws_secret_access_key=default/secret+key=\n"
                                  "\n"
                                  "[work]\n"
                                  "aws_access_key_id =\tWORK_ID \r\n"
                                  "aws_secret_access_key = work secret\n"
                                  "aws_session_token = work/token==\n"
                                  "[half]\n"
                                  "aws_access_key_id = HALF_ID\n";
static const char config[] = "[default]\n"
                             "region = eu-west-1\n"
                             "; a comment = no setting\n"
                             "[profile work]\n"
                             "region = eu-north-1\n"
                             "aws_access_key_id = NOT_THIS\n"
                             "s3 =\n"
                             "    region = nested-1\n"
                             "endpoint_url = http://127.0.0.1:9000/\n"
                             "[profile \"two words\"]\n"
                             "region = ap-south-1\n"
                             "[profile a]b\n";

static const char *const names[] = {
    "AWS_ACCESS_KEY_ID",  "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
    "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL_S3",   "AWS_ENDPOINT_URL",  "HOME",        "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
};

enum { MAX_VARIABLES = 5 };

static const struct {
    const char *variables[MAX_VARIABLES]; /* "NAME=value" */
    struct aws_settings expected;
} found[] = {
    {{"HOME=home"}, {"DEFAULT_ID", "default/secret+key=", NULL, "eu-west-1", NULL}},
    {{"HOME=home", "AWS_PROFILE=work"},
     {"WORK_ID", "work secret", "work/token==", "eu-north-1", "http://127.0.0.1:9000"}},
    {{"HOME=home", "AWS_PROFILE=two words"}, {NULL, NULL, NULL, "ap-south-1", NULL}},
    {{"HOME=nowhere"}, {NULL, NULL, NULL, "us-east-1", NULL}},
    {{"HOME=home", "AWS_ACCESS_KEY_ID=ID", "AWS_SECRET_ACCESS_KEY=SECRET"}, {"ID", "SECRET", NULL, "eu-west-1", NULL}},
    {{"HOME=home", "AWS_ACCESS_KEY_ID=", "AWS_REGION="},
     {"DEFAULT_ID", "default/secret+key=", NULL, "eu-west-1", NULL}},
    {{"HOME=home", "AWS_REGION=a-1", "AWS_DEFAULT_REGION=b-1"},
     {"DEFAULT_ID", "default/secret+key=", NULL, "a-1", NULL}},
    {{"HOME=home", "AWS_ENDPOINT_URL=https://a", "AWS_ENDPOINT_URL_S3=https://b/"},
     {"DEFAULT_ID", "default/secret+key=", NULL, "eu-west-1", "https://b"}},
    {{"HOME=nowhere", "AWS_SHARED_CREDENTIALS_FILE=home/.aws/credentials", "AWS_CONFIG_FILE=home/.aws/config"},
     {"DEFAULT_ID", "default/secret+key=", NULL, "eu-west-1", NULL}},
};

static void set_variables(const char *const variables[MAX_VARIABLES])
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    for (size_t i = 0; i < MAX_VARIABLES && variables[i] != NULL; i++) {
        char name[100];
        const char *equals = strchr(variables[i], '=');
        snprintf(name, sizeof name, "%.*s", (int)(equals - variables[i]), variables[i]);
        setenv(name, equals + 1, 1);
    }
}

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void check_found(struct arena *arena)
{
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        struct aws_settings settings = {0};
        struct error error;
        char name[20];
        snprintf(name, sizeof name, "settings %zu", i);
        set_variables(found[i].variables);
        CHECK_NAMED(aws_settings_read(arena, &settings, &error), name);
        CHECK_NAMED(
            same(settings.key_id, found[i].expected.key_id) && same(settings.secret, found[i].expected.secret) &&
                same(settings.token, found[i].expected.token) && same(settings.region, found[i].expected.region) &&
                same(settings.endpoint, found[i].expected.endpoint),
            name);
    }
}

static const struct {
    const char *variables[MAX_VARIABLES];
    const char *message;
} refused[] = {
    {{"HOME=home", "AWS_PROFILE=none"},
     "neither home/.aws/credentials nor home/.aws/config has the profile 'none' of AWS_PROFILE"},
    {{"HOME=home", "AWS_PROFILE=half"}, "the AWS credentials of the profile 'half' have no secret key"},
    {{"HOME=home", "AWS_ACCESS_KEY_ID=ID"}, "the AWS credentials in the environment have no secret key"},
    {{"HOME=home", "AWS_CONFIG_FILE=home"}, "home: Is a directory"},
};

static void check_refused(struct arena *arena)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct aws_settings settings;
        struct error error = {0};
        set_variables(refused[i].variables);
        CHECK(!aws_settings_read(arena, &settings, &error));
        CHECK_TEXT(error.message, refused[i].message);
    }
}

int main(void)
{
    files_begin();
    struct arena *arena = arena_new();
    files_write("home/.aws/credentials", credentials, strlen(credentials));
    files_write("home/.aws/config", config, strlen(config));
    check_found(arena);
    check_refused(arena);
    arena_free(arena);
    files_remove();
    return check_done();
}
