#include "models/derive/recipe_plan.h"

#include "models/derive/recipe_merging.h"
#include "text/json_write.h"

const struct recipe_plan *recipe_plan_of(const struct checkpoint *checkpoint)
{
    return checkpoint->plan;
}

/* The jobs were found when the merge was made, so they are found again. */
struct recipe_steps recipe_plan_steps(const struct recipe_plan *plan, struct arena *arena)
{
    struct error error;
    struct recipe_merge merge = *plan->merge;
    struct recipe_jobs jobs = {.arena = arena};
    struct recipe_steps steps = {NULL, 0};
    merge.error = &error;
    if (!recipe_find_jobs(&merge, &jobs))
        return steps;
    steps.items = arena_array(arena, jobs.count, sizeof *steps.items);
    for (; steps.count < jobs.count; steps.count++) {
        const struct recipe_job *job = &jobs.items[steps.count];
        steps.items[steps.count] = (struct recipe_step){job->name, job->slice, job->tensors, job->at};
    }
    return steps;
}

static void append_value(struct buffer *out, const struct parameter *parameter, double value)
{
    char text[JSON_FLOAT_TEXT];
    if (parameter->type == TRUTH)
        buffer_printf(out, " %s %s", parameter->text, value != 0 ? "true" : "false");
    else
        buffer_printf(out, " %s %s", parameter->text, json_f64_text(value, text));
}

/* Reports whether a value is worth a word: not a default. */
static bool is_said(const struct method_parameter *parameter, double value)
{
    return parameter->is_required || value != parameter->otherwise;
}

static void append_shared(const struct recipe_plan *plan, const struct recipe_step *step, struct buffer *out)
{
    const struct method *method = plan->recipe->method;
    for (size_t i = 0; i < method->n_parameters; i++) {
        const struct parameter *parameter = &parameters[method->parameters[i].name];
        double value;
        if (!parameter->is_of_input && parameter->name != PARAMETER_INT8_MASK &&
            recipe_shared_value(plan->recipe, step->slice, parameter->name, step->name, step->at, &value) &&
            is_said(&method->parameters[i], value))
            append_value(out, parameter, value);
    }
}

static void append_source(const struct recipe_plan *plan, const struct recipe_step *step, size_t source,
                          struct buffer *out)
{
    const struct method *method = plan->recipe->method;
    const struct recipe_source *input = &step->slice->sources[source];
    bool is_base = method->base != BASE_IGNORED && input->model == step->slice->base;
    buffer_printf(out, "%s %s", source > 0 ? "," : ":", plan->recipe->models[input->model].text);
    if (is_base)
        buffer_append_text(out, " (base)");
    for (size_t i = 0; i < method->n_parameters && !is_base; i++) {
        const struct parameter *parameter = &parameters[method->parameters[i].name];
        double value;
        if (parameter->is_of_input &&
            recipe_input_value(plan->recipe, step->slice, input, parameter->name, step->inputs[source]->name, step->at,
                               &value) &&
            is_said(&method->parameters[i], value))
            append_value(out, parameter, value);
    }
}

void recipe_plan_describe(const struct recipe_plan *plan, const struct recipe_step *step, struct buffer *out)
{
    buffer_append_text(out, plan->recipe->method->name);
    append_shared(plan, step, out);
    for (size_t i = 0; i < step->slice->n_sources; i++)
        append_source(plan, step, i, out);
}

const char *recipe_plan_cost(const struct recipe_plan *plan)
{
    static const char *const costs[] = {
        [COST_NONE] = "a range of a tensor takes just that range of every model",
        [COST_ONE_PASS] = "the first read of a tensor reads all of it in every model, for a few numbers",
        [COST_SELECTION] = "the first read of a tensor reads all of it in every model, to choose which elements stay",
        [COST_RANDOM] =
            "the first read of a tensor reads all of it in every model, to choose at random which elements stay",
    };
    return costs[plan->recipe->method->cost];
}

uint64_t recipe_steps_bytes(const struct recipe_steps *steps)
{
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < steps->count; i++)
        for (size_t j = 0; j < steps->items[i].slice->n_sources; j++) {
            const struct tensor *input = steps->items[i].inputs[j];
            n_bytes += dtype_bytes(input->dtype, tensor_elements(input));
        }
    return n_bytes;
}
