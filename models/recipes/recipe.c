#include "models/recipes/recipe.h"

#include "base/text_index.h"
#include "models/recipes/parsing.h"

#include <string.h>

bool recipe_is_likely(const char *text, size_t length)
{
    static const char *const keys[] = {"merge_method:", "gate_mode:", "experts:"};
    for (size_t at = 0; at < length;) {
        const char *newline = memchr(text + at, '\n', length - at);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strlen(keys[i]) <= length - at && memcmp(text + at, keys[i], strlen(keys[i])) == 0)
                return true;
        at = newline != NULL ? (size_t)(newline - text) + 1 : length;
    }
    return false;
}

/* Models. */

/* Splits "PATH+LORA". */
static bool split_adapter(const struct parsing *parsing, const struct yaml_value *value, struct recipe_model *model)
{
    const char *plus = strchr(model->text, '+');
    model->path = model->text;
    if (plus == NULL)
        return true;
    if (plus == model->text || plus[1] == '\0' || strchr(plus + 1, '+') != NULL)
        return parsing_fail(parsing, value,
                            "'%.200s' is not MODEL or MODEL+LORA; for a path with a '+' write model: "
                            "{model: {path: PATH}}",
                            model->text);
    model->path = arena_strndup(parsing->arena, model->text, (size_t)(plus - model->text));
    model->lora = plus + 1;
    return true;
}

/* Reads {path, revision}, or the path alone. */
static const char *read_path(const struct parsing *parsing, const struct yaml_value *value, const char *what)
{
    static const char *const keys[] = {"path", "revision", NULL};
    if (value->type != YAML_MAPPING)
        return parsing_text(parsing, value, what);
    if (!parsing_keys(parsing, value, what, keys))
        return NULL;
    const struct yaml_value *path = parsing_get(value, "path"), *revision = parsing_get(value, "revision");
    const char *name = path != NULL ? parsing_text(parsing, path, "path") : NULL;
    if (path == NULL)
        parsing_fail(parsing, value, "%s: 'path' is missing", what);
    if (name == NULL || revision == NULL)
        return name;
    const char *commit = parsing_text(parsing, revision, "revision");
    return commit != NULL ? arena_printf(parsing->arena, "%s@%s", name, commit) : NULL;
}

/* Reads {model, lora}. */
static bool read_reference(const struct parsing *parsing, const struct yaml_value *value, struct recipe_model *model)
{
    static const char *const keys[] = {"model", "lora", NULL};
    if (!parsing_keys(parsing, value, "model", keys))
        return false;
    const struct yaml_value *own = parsing_get(value, "model"), *lora = parsing_get(value, "lora");
    if (own == NULL)
        return parsing_fail(parsing, value, "model: 'model' is missing");
    model->path = read_path(parsing, own, "model");
    if (model->path == NULL || (lora != NULL && (model->lora = read_path(parsing, lora, "lora")) == NULL))
        return false;
    model->text = model->lora != NULL ? arena_printf(parsing->arena, "%s+%s", model->path, model->lora) : model->path;
    return true;
}

bool parsing_model(struct parsing *parsing, const struct yaml_value *value, int *ret_model)
{
    struct recipe *recipe = parsing->recipe;
    struct recipe_model model = {0};
    if (value->type == YAML_MAPPING) {
        if (!read_reference(parsing, value, &model))
            return false;
    } else {
        model.text = parsing_text(parsing, value, "model");
        if (model.text == NULL || !split_adapter(parsing, value, &model))
            return false;
    }
    for (size_t i = 0; i < recipe->n_models; i++)
        if (strcmp(parsing->models[i].text, model.text) == 0) {
            *ret_model = (int)i;
            return true;
        }
    if (recipe->n_models == RECIPE_MAX_SOURCES)
        return parsing_fail(parsing, value, "more than %d models", RECIPE_MAX_SOURCES);
    parsing->models = arena_grow(parsing->arena, parsing->models, recipe->n_models, sizeof model);
    parsing->models[recipe->n_models] = model;
    *ret_model = (int)recipe->n_models++;
    recipe->models = parsing->models;
    return true;
}

/* Reads an optional model; NO_MODEL if it is absent. */
static bool read_optional_model(struct parsing *parsing, const struct yaml_value *mapping, const char *key,
                                int *ret_model)
{
    const struct yaml_value *value = parsing_get(mapping, key);
    *ret_model = NO_MODEL;
    return value == NULL || parsing_model(parsing, value, ret_model);
}

/* Slices. */

static bool read_layer_range(const struct parsing *parsing, const struct yaml_value *value,
                             struct recipe_source *source)
{
    source->has_range = true;
    if (value->type != YAML_LIST || value->n_pairs != 2)
        return parsing_fail(parsing, value, "layer_range: expected [FIRST, END]");
    if (!parsing_count(parsing, value->pairs[0].value, "layer_range", RECIPE_MAX_LAYERS, &source->first_layer) ||
        !parsing_count(parsing, value->pairs[1].value, "layer_range", RECIPE_MAX_LAYERS, &source->end_layer))
        return false;
    return source->first_layer < source->end_layer ||
           parsing_fail(parsing, value, "layer_range: the end must be greater than the first layer");
}

static bool recipe_read_source(struct parsing *parsing, const struct yaml_value *value, bool has_range,
                               struct recipe_source *source)
{
    static const char *const ranged_keys[] = {"model", "parameters", "layer_range", NULL};
    static const char *const keys[] = {"model", "parameters", NULL};
    const char *what = has_range ? "sources" : "models";
    if (!parsing_keys(parsing, value, what, has_range ? ranged_keys : keys))
        return false;
    const struct yaml_value *model = parsing_get(value, "model"), *range = parsing_get(value, "layer_range");
    if (model == NULL || (has_range && range == NULL))
        return parsing_fail(parsing, value, "%s: '%s' is missing", what, model == NULL ? "model" : "layer_range");
    return parsing_model(parsing, model, &source->model) &&
           (range == NULL || read_layer_range(parsing, range, source)) &&
           parsing_parameters(parsing, yaml_get(value, "parameters"), true, &source->parameters);
}

static bool check_sources(const struct parsing *parsing, const struct yaml_value *at,
                          const struct recipe_source *sources, size_t n_sources)
{
    for (size_t i = 0; i < n_sources; i++) {
        if (sources[i].end_layer - sources[i].first_layer != sources[0].end_layer - sources[0].first_layer)
            return parsing_fail(parsing, at, "layer_range: the sources of a slice must have the same number of layers");
        for (size_t j = 0; j < i; j++)
            if (sources[j].model == sources[i].model)
                return parsing_fail(parsing, at, "the model '%.200s' is there twice",
                                    parsing->models[sources[i].model].text);
    }
    return true;
}

/* Reads the sources of a slice. Appends the base model to all models, as their last one, if it is not among them. */
static bool read_sources(struct parsing *parsing, const struct yaml_value *list, bool has_range,
                         struct recipe_slice *slice)
{
    int base = has_range ? NO_MODEL : parsing->recipe->base;
    if (!parsing_list(parsing, list, has_range ? "sources" : "models", RECIPE_MAX_SOURCES))
        return false;
    struct recipe_source *sources = arena_array(parsing->arena, list->n_pairs + 1, sizeof *sources);
    for (size_t i = 0; i < list->n_pairs; i++) {
        if (!recipe_read_source(parsing, list->pairs[i].value, has_range, &sources[i]))
            return false;
        base = sources[i].model == base ? NO_MODEL : base;
    }
    slice->sources = sources;
    slice->n_sources = list->n_pairs;
    if (base != NO_MODEL)
        sources[slice->n_sources++].model = base;
    return check_sources(parsing, list, sources, slice->n_sources);
}

static bool has_source(const struct recipe_slice *slice, int model)
{
    for (size_t i = 0; i < slice->n_sources; i++)
        if (slice->sources[i].model == model)
            return true;
    return false;
}

/* Reports whether the method can merge so many models. */
static bool check_slice(const struct parsing *parsing, const struct yaml_value *at, const struct recipe_slice *slice)
{
    const struct method *method = parsing->recipe->method;
    bool has_base = has_source(slice, slice->base);
    size_t n_models = slice->n_sources - (has_base && method->base != BASE_IGNORED);
    if (method->base == BASE_REQUIRED && slice->base == NO_MODEL)
        return parsing_fail(parsing, at, "%s needs a base_model", method->name);
    if (method->base == BASE_REQUIRED && !has_base)
        return parsing_fail(parsing, at, "%s needs the base model '%.200s' among the sources", method->name,
                            parsing->models[slice->base].text);
    if (n_models < method->min_models || (method->max_models != 0 && n_models > method->max_models))
        return parsing_fail(parsing, at, "%s merges %s %zu model%s%s, and here are %zu", method->name,
                            method->max_models == method->min_models ? "exactly" : "at least", method->min_models,
                            method->min_models == 1 ? "" : "s",
                            method->base == BASE_IGNORED ? "" : " other than the base", n_models);
    return true;
}

static bool read_slice(struct parsing *parsing, const struct yaml_value *value, struct recipe_slice *slice)
{
    static const char *const keys[] = {"sources", "base_model", "parameters", NULL};
    if (!parsing_keys(parsing, value, "slices", keys))
        return false;
    const struct yaml_value *sources = parsing_get(value, "sources");
    if (sources == NULL)
        return parsing_fail(parsing, value, "slices: 'sources' is missing");
    if (!read_optional_model(parsing, value, "base_model", &slice->base) ||
        !parsing_parameters(parsing, yaml_get(value, "parameters"), false, &slice->parameters))
        return false;
    if (slice->base == NO_MODEL)
        slice->base = parsing->recipe->base;
    return read_sources(parsing, sources, true, slice) && check_slice(parsing, value, slice);
}

/* Reads the sources of the model: `slices`, or `models` as one slice. */
static bool read_slices(struct parsing *parsing, const struct yaml_value *mapping)
{
    struct recipe *recipe = parsing->recipe;
    const struct yaml_value *models = parsing_get(mapping, "models"), *slices = parsing_get(mapping, "slices");
    if ((models == NULL) == (slices == NULL))
        return parsing_fail(parsing, mapping, "expected one of 'models' and 'slices'");
    if (slices != NULL && !parsing_list(parsing, slices, "slices", RECIPE_MAX_SLICES))
        return false;
    recipe->has_slices = slices != NULL;
    recipe->n_slices = slices != NULL ? slices->n_pairs : 1;
    struct recipe_slice *items = arena_array(parsing->arena, recipe->n_slices, sizeof *items);
    recipe->slices = items;
    items[0].base = recipe->base;
    if (models != NULL)
        return read_sources(parsing, models, false, items) && check_slice(parsing, models, items);
    for (size_t i = 0; i < recipe->n_slices; i++)
        if (!read_slice(parsing, slices->pairs[i].value, &items[i]))
            return false;
    return true;
}

/* Reads `modules`, of which decoders have one. */
static bool read_modules(struct parsing *parsing, const struct yaml_value *modules)
{
    static const char *const names[] = {"default", NULL};
    static const char *const keys[] = {"models", "slices", "parameters", NULL};
    if (modules->type == YAML_MAPPING && (modules->n_pairs != 1 || yaml_get(modules, "default") == NULL))
        return parsing_fail(parsing, modules, "modules: wfs merges models of one module, 'default'");
    if (!parsing_keys(parsing, modules, "modules", names))
        return false;
    const struct yaml_value *module = yaml_get(modules, "default");
    return parsing_keys(parsing, module, "default", keys) &&
           parsing_parameters(parsing, yaml_get(module, "parameters"), false, &parsing->recipe->module) &&
           read_slices(parsing, module);
}

/* The recipe as a whole. */

static bool read_dtype(const struct parsing *parsing, const struct yaml_value *root, const char *key,
                       const struct dtype **ret_dtype)
{
    static const struct {
        const char *name;
        const struct dtype *dtype;
    } known[] = {{"bfloat16", &bf16_dtype}, {"float16", &f16_dtype}, {"float32", &f32_dtype}};
    const struct yaml_value *value = parsing_get(root, key);
    *ret_dtype = NULL;
    if (value == NULL)
        return true;
    const char *name = parsing_text(parsing, value, key);
    if (name == NULL)
        return false;
    name += strncmp(name, "torch.", strlen("torch.")) == 0 ? strlen("torch.") : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) {
            *ret_dtype = known[i].dtype;
            return true;
        }
    return parsing_fail(parsing, value, "%s: '%.40s' is not supported; use bfloat16, float16 or float32", key, name);
}

static bool refuse_experts(const struct parsing *parsing, const struct yaml_value *root)
{
    const struct yaml_value *mode = parsing_get(root, "gate_mode");
    const char *name = mode != NULL ? parsing_text(parsing, mode, "gate_mode") : "hidden"; /* mergekit-moe's default */
    return name != NULL &&
           parsing_fail(parsing, mode != NULL ? mode : root,
                        "a recipe of mergekit-moe: wfs cannot compute its gates (gate_mode: %.40s)", name);
}

static bool read_method(const struct parsing *parsing, const struct yaml_value *root)
{
    const struct yaml_value *value = parsing_get(root, "merge_method");
    if (parsing_get(root, "gate_mode") != NULL || parsing_get(root, "experts") != NULL)
        return refuse_experts(parsing, root);
    if (value == NULL)
        return parsing_fail(parsing, root, "'merge_method' is missing");
    const char *name = parsing_text(parsing, value, "merge_method");
    struct error reason;
    if (name == NULL)
        return false;
    parsing->recipe->method = method_of_name(name, &reason);
    return parsing->recipe->method != NULL || parsing_fail(parsing, value, "merge_method: %s", reason.message);
}

static bool find_after_layers(const struct parsing *parsing, const struct yaml_value *root)
{
    struct recipe *recipe = parsing->recipe;
    size_t most = recipe->slices[0].n_sources;
    recipe->after_layers = recipe->slices[recipe->n_slices - 1];
    if (recipe->after_layers.n_sources <= most)
        return true;
    recipe->after_layers.n_sources = most;
    return check_slice(parsing, root, &recipe->after_layers) ||
           error_prefix(parsing->error,
                        "the last slice has more sources than the first, which has as many as mergekit takes for "
                        "weights after the layers");
}

static bool read_root(struct parsing *parsing, const struct yaml_value *root)
{
    static const char *const keys[] = {"merge_method",  "models",    "slices",     "modules",   "base_model",
                                       "dtype",         "out_dtype", "parameters", "tokenizer", "tokenizer_source",
                                       "chat_template", NULL};
    struct recipe *recipe = parsing->recipe;
    const struct yaml_value *modules = parsing_get(root, "modules");
    if (root->type != YAML_MAPPING)
        return parsing_fail(parsing, root, "expected a mapping");
    if (!read_method(parsing, root) || !parsing_keys(parsing, root, "recipe", keys) ||
        !read_dtype(parsing, root, "dtype", &recipe->dtype) ||
        !read_dtype(parsing, root, "out_dtype", &recipe->out_dtype) ||
        !read_optional_model(parsing, root, "base_model", &recipe->base) ||
        !parsing_parameters(parsing, yaml_get(root, "parameters"), false, &recipe->parameters))
        return false;
    if (modules != NULL && (parsing_get(root, "models") != NULL || parsing_get(root, "slices") != NULL))
        return parsing_fail(parsing, modules, "expected one of 'models', 'slices' and 'modules'");
    return (modules != NULL ? read_modules(parsing, modules) : read_slices(parsing, root)) &&
           find_after_layers(parsing, root) && parsing_tokenizer(parsing, root);
}

const struct recipe *recipe_read(struct arena *arena, const char *text, size_t length, struct error *error)
{
    const struct yaml_value *root;
    bool has_more;
    struct recipe *recipe = arena_alloc(arena, sizeof *recipe);
    struct parsing parsing = {.arena = arena, .recipe = recipe, .error = error};
    if (!yaml_read(arena, &(struct yaml_text){text, length, 1}, &root, &has_more, error))
        return NULL;
    if (root == NULL || has_more) {
        error_set(error, root == NULL ? "the recipe is empty"
                                      : "several documents, as for mergekit-multi; write each to a file of its own, "
                                        "and name the files as models");
        return NULL;
    }
    return read_root(&parsing, root) ? recipe : NULL;
}

/* Values. */

static bool default_value(const struct recipe *recipe, enum parameter_name name, double *ret_value)
{
    const struct method_parameter *parameter = method_parameter(recipe->method, name);
    if (parameter == NULL || parameter->otherwise != parameter->otherwise)
        return false;
    *ret_value = parameter->otherwise;
    return true;
}

bool recipe_shared_value(const struct recipe *recipe, const struct recipe_slice *slice, enum parameter_name name,
                         const char *tensor, double at, double *ret_value)
{
    return settings_value(&slice->parameters, name, tensor, at, ret_value) ||
           settings_value(&recipe->module, name, tensor, at, ret_value) ||
           settings_value(&recipe->parameters, name, tensor, at, ret_value) || default_value(recipe, name, ret_value);
}

bool recipe_input_value(const struct recipe *recipe, const struct recipe_slice *slice,
                        const struct recipe_source *source, enum parameter_name name, const char *tensor, double at,
                        double *ret_value)
{
    return settings_value(&source->parameters, name, tensor, at, ret_value) ||
           recipe_shared_value(recipe, slice, name, tensor, at, ret_value);
}

/* The vocabulary that a recipe asks for: tokenizer_source, tokenizer, chat_template. */

enum { MAX_TOKENS = 65536, MAX_PADDING = 1 << 20 };

/* mergekit's built-in template of that name, whose markup is public; it has others, whose texts are its own. */
static const char chatml[] =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

static bool tokenizer_read_source(struct parsing *parsing, const struct yaml_value *value)
{
    struct recipe *recipe = parsing->recipe;
    bool is_text = value->type == YAML_STRING;
    recipe->vocabulary = VOCABULARY_OF_MODEL;
    if (is_text && strcmp(value->text, "union") == 0)
        recipe->vocabulary = VOCABULARY_UNION;
    else if (is_text && strcmp(value->text, "base") == 0)
        recipe->vocabulary = VOCABULARY_OF_BASE;
    else
        return parsing_model(parsing, value, &recipe->vocabulary_model);
    return recipe->vocabulary == VOCABULARY_UNION || recipe->base != NO_MODEL ||
           parsing_fail(parsing, value, "the tokenizer of the base needs a base_model");
}

/* Reads {kind, model, token, token_id}. */
static bool read_token_kind(struct parsing *parsing, const struct yaml_value *value, struct recipe_token *token)
{
    static const char *const keys[] = {"kind", "model", "token", "token_id", NULL};
    const struct yaml_value *kind = parsing_get(value, "kind"), *model = parsing_get(value, "model");
    const struct yaml_value *other = parsing_get(value, "token"), *id = parsing_get(value, "token_id");
    uint64_t number = 0;
    if (!parsing_keys(parsing, value, "source", keys))
        return false;
    if (kind != NULL && kind->text != NULL && strcmp(kind->text, "zero") == 0) {
        token->kind = TOKEN_ZERO;
        return true;
    }
    if (kind == NULL || kind->text == NULL || strcmp(kind->text, "model_token") != 0)
        return parsing_fail(parsing, value, "source: 'kind' is neither model_token nor zero");
    if (model == NULL || (other == NULL) == (id == NULL))
        return parsing_fail(parsing, value, "source: expected 'model' and one of 'token' and 'token_id'");
    if (id != NULL && !parsing_count(parsing, id, "token_id", INT32_MAX, &number))
        return false;
    token->kind = TOKEN_OF_MODEL;
    token->other_id = id != NULL ? (int64_t)number : -1;
    token->other = other != NULL ? parsing_text(parsing, other, "token") : NULL;
    return (other == NULL || token->other != NULL) && parsing_model(parsing, model, &token->model);
}

static bool read_token(struct parsing *parsing, const struct yaml_pair *pair, struct recipe_token *token)
{
    static const char *const keys[] = {"source", "force", NULL};
    const struct yaml_value *value = pair->value;
    double force = 0;
    token->text = parsing_text(parsing, pair->key, "tokens");
    token->other_id = -1;
    if (token->text == NULL || !parsing_keys(parsing, value, "tokens", keys))
        return false;
    const struct yaml_value *source = parsing_get(value, "source"), *forced = parsing_get(value, "force");
    if (forced != NULL && !parsing_truth(parsing, forced, "force", &force))
        return false;
    token->force = force != 0;
    if (source == NULL)
        return true;
    if (source->type == YAML_MAPPING && parsing_get(source, "kind") != NULL)
        return read_token_kind(parsing, source, token);
    token->kind = TOKEN_OF_MODEL;
    return parsing_model(parsing, source, &token->model);
}

static bool read_tokens(struct parsing *parsing, const struct yaml_value *value)
{
    struct text_index seen = {0};
    bool is_read = value->type == YAML_MAPPING || parsing_fail(parsing, value, "tokens: expected a mapping");
    if (is_read && value->n_pairs > MAX_TOKENS)
        is_read = parsing_fail(parsing, value, "tokens: more than %d", MAX_TOKENS);
    struct recipe_token *tokens = arena_array(parsing->arena, is_read ? value->n_pairs : 0, sizeof *tokens);
    for (size_t i = 0; is_read && i < value->n_pairs; i++) {
        is_read = read_token(parsing, &value->pairs[i], &tokens[i]);
        if (is_read && !text_index_add(&seen, tokens[i].text, strlen(tokens[i].text), i))
            is_read = parsing_fail(parsing, value->pairs[i].key, "tokens: '%.100s' is there twice", tokens[i].text);
    }
    text_index_free(&seen);
    parsing->recipe->tokens = tokens;
    parsing->recipe->n_tokens = is_read ? value->n_pairs : 0;
    return is_read;
}

static bool read_tokenizer(struct parsing *parsing, const struct yaml_value *value)
{
    static const char *const keys[] = {"source", "tokens", "pad_to_multiple_of", NULL};
    struct recipe *recipe = parsing->recipe;
    if (!parsing_keys(parsing, value, "tokenizer", keys))
        return false;
    const struct yaml_value *source = parsing_get(value, "source"), *tokens = parsing_get(value, "tokens");
    const struct yaml_value *padding = parsing_get(value, "pad_to_multiple_of");
    recipe->vocabulary = VOCABULARY_UNION;
    return (source == NULL || tokenizer_read_source(parsing, source)) &&
           (tokens == NULL || read_tokens(parsing, tokens)) &&
           (padding == NULL ||
            parsing_count(parsing, padding, "pad_to_multiple_of", MAX_PADDING, &recipe->pad_to_multiple_of));
}

static bool read_template(struct parsing *parsing, const struct yaml_value *value)
{
    enum { SHORTEST_TEMPLATE = 20 };
    const char *text = parsing_text(parsing, value, "chat_template");
    if (text == NULL)
        return false;
    bool is_template = strlen(text) >= SHORTEST_TEMPLATE && strchr(text, '{') != NULL;
    parsing->recipe->chat_template = strcmp(text, "chatml") == 0 ? chatml : text;
    return is_template || strcmp(text, "chatml") == 0 || strcmp(text, "auto") == 0 ||
           parsing_fail(parsing, value, "chat_template: '%.40s' is neither auto, chatml nor the text of a template",
                        text);
}

bool parsing_tokenizer(struct parsing *parsing, const struct yaml_value *root)
{
    const struct yaml_value *source = parsing_get(root, "tokenizer_source"), *whole = parsing_get(root, "tokenizer");
    const struct yaml_value *template = parsing_get(root, "chat_template");
    if (source != NULL && whole != NULL)
        return parsing_fail(parsing, source, "expected one of 'tokenizer' and 'tokenizer_source'");
    return (source == NULL || tokenizer_read_source(parsing, source)) &&
           (whole == NULL || read_tokenizer(parsing, whole)) && (template == NULL || read_template(parsing, template));
}
