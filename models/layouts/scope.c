#include "models/layouts/scope.h"

#include "base/text.h"
#include "base/text_index.h"
#include "models/huggingface/shards.h"
#include "models/packings/packings.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { MAX_DEPTH = 16, MAX_LOOKED_UP = 20 * 1000 * 1000 };

/* Values of definitions, which hold as long as no local that one of them names comes or goes. */
struct known_lets {
    struct known_let {
        struct value value;
        uint64_t epoch; /* in which the value was computed; 0: never */
    } * of;
    uint64_t epoch, n_fleeting; /* calls whose results change */
    struct text_index named;    /* every word of the definitions */
};

static void free_words(void *lets)
{
    text_index_free(&((struct known_lets *)lets)->named);
}

static void know_lets(struct scope *scope)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    struct known_lets *lets = arena_alloc(scope->arena, sizeof *lets);
    lets->of = arena_array(scope->arena, scope->file->n_lets + 1, sizeof *lets->of);
    lets->epoch = 1;
    arena_on_free(scope->arena, free_words, lets);
    for (size_t i = 0; i < scope->file->n_lets; i++)
        for (const char *word = scope->file->lets[i].expression; *(word += strcspn(word, letters)) != '\0';) {
            size_t length = strspn(word, letters);
            text_index_add(&lets->named, word, length, 0);
            word += length;
        }
    scope->lets = lets;
}

static void note_change(struct scope *scope, const char *local)
{
    size_t unused;
    if (scope->lets != NULL && text_index_find(&scope->lets->named, local, strlen(local), &unused))
        scope->lets->epoch++;
}

void scope_push(struct scope *scope, const char *name, struct value value)
{
    assert(scope->n_locals < SCOPE_MAX_LOCALS);
    scope->locals[scope->n_locals++] = (struct scope_name){name, value};
    note_change(scope, name);
}

void scope_pop(struct scope *scope)
{
    scope->n_locals--;
    note_change(scope, scope->locals[scope->n_locals].name);
}

static bool parameter_value(const struct json *standard, const char *text, struct value *ret_value, struct error *error)
{
    uint64_t number;
    bool is_flag = json_is(standard, JSON_TRUE) || json_is(standard, JSON_FALSE);
    if (text == NULL) {
        *ret_value = value_of_boolean(true);
    } else if (json_is(standard, JSON_NUMBER)) {
        if (strcmp(text, "0") != 0 && (!shards_parse_size(text, &number, error) || number > INT64_MAX))
            return error_set(error, "'%.100s' is not a number", text);
        *ret_value = value_of_number(strcmp(text, "0") == 0 ? 0 : (int64_t)number);
    } else if (is_flag) {
        if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
            return error_set(error, "'%.100s' is neither 0 nor 1", text);
        *ret_value = value_of_boolean(*text == '1');
    } else {
        *ret_value = value_of_text(text);
    }
    return true;
}

static bool refuse_parameter(const struct scope *scope, const char *word, struct error *error)
{
    const char *known = "";
    struct text_guess guess = {.typed = word};
    char question[TEXT_QUESTION];
    for (struct json_member member = {0}; json_next_member(scope->file->parameters, &member);) {
        text_guess_try(&guess, member.key);
        known = arena_printf(scope->arena, "%s%s%s", known, *known != '\0' ? ", " : "", member.key);
    }
    return error_set(error, "%s: unknown parameter '%.100s' (known: %s)%s", scope->file->name, word, known,
                     text_guess_question(&guess, question));
}

static bool set_parameter(struct scope *scope, char *word, struct error *error)
{
    char *equals = strchr(word, '=');
    const char *text = equals != NULL ? equals + 1 : NULL;
    if (equals != NULL)
        *equals = '\0';
    const struct json *standard = json_get(scope->file->parameters, word);
    if (standard == NULL)
        return refuse_parameter(scope, word, error);
    if (text == NULL && (json_is(standard, JSON_NUMBER) || json_is(standard, JSON_STRING)))
        return error_set(error, "%s: %s: '=VALUE' is missing", scope->file->name, word);
    for (size_t i = 0; i < scope->n_parameters; i++) {
        struct scope_name *parameter = &scope->parameters[i];
        size_t at = 0;
        while (word[at] != '\0' && (word[at] == '-' ? '_' : word[at]) == parameter->name[at])
            at++;
        if (word[at] == '\0' && parameter->name[at] == '\0')
            return parameter_value(standard, text, &parameter->value, error) ||
                   error_prefix(error, "%s: %s", scope->file->name, word);
    }
    return true;
}

bool scope_read_parameters(struct scope *scope, const char *text, struct error *error)
{
    const struct json *parameters = scope->file->parameters;
    know_lets(scope);
    scope->parameters = arena_array(scope->arena, json_count_members(parameters) + 1, sizeof *scope->parameters);
    for (struct json_member member = {0}; json_next_member(parameters, &member);) {
        char *name = arena_strdup(scope->arena, member.key);
        for (char *at = name; *at != '\0'; at++)
            *at = *at == '-' ? '_' : *at;
        scope->parameters[scope->n_parameters++] = (struct scope_name){name, value_of_json(member.value)};
    }
    char *rest = text != NULL ? arena_strdup(scope->arena, text) : NULL, *word;
    while ((word = strsep(&rest, ",")) != NULL)
        if (*word != '\0' && !set_parameter(scope, word, error))
            return false;
    return true;
}

static bool look_up_let(struct scope *scope, size_t index, struct value *ret_value, struct error *error)
{
    struct known_let *known = &scope->lets->of[index];
    uint64_t n_fleeting = scope->lets->n_fleeting;
    if (known->epoch == scope->lets->epoch) {
        *ret_value = known->value;
        return true;
    }
    if (!scope_value(scope, scope->file->lets[index].expression, ret_value, error))
        return false;
    if (scope->lets->n_fleeting == n_fleeting)
        *known = (struct known_let){*ret_value, scope->lets->epoch};
    return true;
}

/* Looks a name up in the model's dimensions and configuration. */
static bool look_up_model(const struct scope *scope, const char *name, struct value *ret_value)
{
    static const char *const dimensions[] = {"hidden", "head", "kv_head", "expert"};
    *ret_value = (struct value){.kind = VALUE_NULL};
    if (text_starts_with(name, "config.") || text_starts_with(name, "rope.")) {
        bool is_rope = *name == 'r';
        if (scope->hparams != NULL)
            *ret_value =
                value_of_json(is_rope ? hparams_rope(scope->hparams, name + 5) : hparams_get(scope->hparams, name + 7));
        return true;
    }
    if (strcmp(name, "architecture") == 0) {
        const char *architecture = scope->hparams != NULL ? hparams_class(scope->hparams) : NULL;
        *ret_value = value_of_text(architecture != NULL ? architecture : "");
        return true;
    }
    if (strcmp(name, "layers") == 0) {
        *ret_value = value_of_number((int64_t)scope->dimensions.n_layers);
        return true;
    }
    for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++)
        if (strcmp(name, dimensions[i]) == 0) {
            *ret_value = value_of_number((int64_t)dimensions_get(&scope->dimensions, name));
            return true;
        }
    return false;
}

static bool look_up(void *context, const char *name, struct value *ret_value, struct error *error)
{
    struct scope *scope = context;
    if (++scope->n_looked_up > MAX_LOOKED_UP)
        return error_set(error, "too many definitions use each other");
    for (unsigned i = scope->n_locals; i-- > 0;)
        if (strcmp(scope->locals[i].name, name) == 0) {
            *ret_value = scope->locals[i].value;
            return true;
        }
    for (size_t i = 0; i < scope->n_parameters; i++)
        if (strcmp(scope->parameters[i].name, name) == 0) {
            *ret_value = scope->parameters[i].value;
            return true;
        }
    for (size_t i = 0; i < scope->file->n_lets; i++)
        if (strcmp(scope->file->lets[i].name, name) == 0)
            return look_up_let(scope, i, ret_value, error);
    return look_up_model(scope, name, ret_value) || error_set(error, "unknown name '%s'", name);
}

static void release(void *document)
{
    json_free(document);
}

static bool quantization(struct scope *scope, const char *name, struct value *ret_value, struct error *error)
{
    const struct packer *packer = packer_find(name);
    struct buffer text = {0};
    struct json_writer writer = {.out = &text, .letters = JSON_ASCII};
    if (packer == NULL)
        return error_set(error, "no packing is called '%.100s'", name);
    json_begin_object(&writer, NULL);
    bool written = packer->write_config(packer, scope->weights, scope->n_weights, &writer, error);
    json_end(&writer);
    struct json_document *document = written ? json_parse((const char *)text.bytes, text.length, error) : NULL;
    buffer_free(&text);
    if (document == NULL)
        return false;
    arena_on_free(scope->arena, release, document);
    *ret_value = value_of_json(json_root(document));
    return true;
}

static bool call(void *context, const char *name, const struct value *arguments, unsigned n_arguments,
                 struct value *ret_value, struct error *error)
{
    struct scope *scope = context;
    const char *filled, *names[KEY_NAMES_MAX];
    unsigned n_names;
    if (n_arguments == 0 || arguments[0].kind != VALUE_TEXT)
        return error_set(error, "%s() takes a string", name);
    if (strcmp(name, "fail") == 0)
        return error_set(error, "%s", arguments[0].text);
    if (strcmp(name, "of") == 0 && n_arguments == 2 && arguments[1].kind == VALUE_TEXT) {
        *ret_value = value_of_boolean(strstr(arguments[1].text, arguments[0].text) != NULL);
        return true;
    }
    if (n_arguments != 1 || !scope_fill(scope, arguments[0].text, &filled, error))
        return n_arguments == 1 ? false : error_set(error, "%s() takes one string", name);
    if (strcmp(name, "has") == 0) {
        *ret_value = value_of_boolean(tensor_set_find_text(scope->set, filled) != NULL);
        return true;
    }
    scope->lets->n_fleeting++; /* for definitions that are computed before the dictionaries and weights are known */
    if (strcmp(name, "quantization") == 0)
        return quantization(scope, filled, ret_value, error);
    if (strcmp(name, "translated") != 0)
        return error_set(error, "unknown function '%s'", name);
    if (!key_names_translate(&scope->keys, filled, scope->arena, names, &n_names, error))
        return false;
    const char *below = arena_printf(scope->arena, "language_model.%s", names[0]);
    bool is_below =
        tensor_set_find_text(scope->set, names[0]) == NULL && tensor_set_find_text(scope->set, below) != NULL;
    *ret_value = value_of_text(is_below ? below : names[0]);
    return true;
}

bool scope_value(struct scope *scope, const char *expression, struct value *ret_value, struct error *error)
{
    const struct names names = {scope, look_up, call};
    if (scope->depth == MAX_DEPTH)
        return error_set(error, "definitions use each other too deeply");
    scope->depth++;
    bool evaluated = expression_evaluate(expression, &names, scope->arena, ret_value, error);
    scope->depth--;
    return evaluated;
}

bool scope_number(struct scope *scope, const char *expression, uint64_t limit, uint64_t *ret_number,
                  struct error *error)
{
    struct value value;
    if (!scope_value(scope, expression, &value, error))
        return false;
    if (value.kind != VALUE_NUMBER || value.number < 0 || (uint64_t)value.number > limit)
        return error_set(error, "'%.200s' is not a number from 0 to %" PRIu64, expression, limit);
    *ret_number = (uint64_t)value.number;
    return true;
}

bool scope_holds(struct scope *scope, const char *expression, bool *ret_holds, struct error *error)
{
    struct value value = {.kind = VALUE_BOOLEAN, .number = 1};
    if (expression != NULL && !scope_value(scope, expression, &value, error))
        return false;
    *ret_holds = value_is_true(&value);
    return true;
}

bool scope_knows(struct scope *scope, const char *name)
{
    struct value value;
    struct error unused;
    return look_up(scope, name, &value, &unused);
}

bool scope_fill(struct scope *scope, const char *text, const char **ret_text, struct error *error)
{
    const char *result = "", *open, *close;
    for (; (open = strchr(text, '{')) != NULL && (close = strchr(open, '}')) != NULL; text = close + 1) {
        struct value value;
        if (!scope_value(scope, arena_strndup(scope->arena, open + 1, (size_t)(close - open - 1)), &value, error))
            return false;
        if (value.kind == VALUE_TEXT)
            result = arena_printf(scope->arena, "%s%.*s%s", result, (int)(open - text), text, value.text);
        else if (value.kind == VALUE_NUMBER)
            result = arena_printf(scope->arena, "%s%.*s%" PRId64, result, (int)(open - text), text, value.number);
        else
            return error_set(error, "'%.200s' is neither a number nor a string", open);
    }
    *ret_text = arena_printf(scope->arena, "%s%s", result, text);
    return true;
}
