#include "models/derive/recipe_plan.h"
#include "models/derive/recipe_merging.h"

#include "base/sort.h"
#include "text/json_write.h"

#include <stdlib.h>
#include <string.h>

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

/* The order in which mergekit computes the tensors of a merge: by label, and among equal labels, which only slices that
 * share layers have, by the places of its tasks in a graph. mergekit adds the tasks to the graph in the order in which
 * it takes them out of a set of Python, where they are hashed by their numbers. So the order follows from the numbers,
 * and from how CPython's sets work, alike in all versions from 3.10 to 3.13. Source: mergekit, graph.py; CPython,
 * Objects/setobject.c. */

/* Sets of numbers. */

enum { FREE = -1, TAKEN_OUT = -2, LINEAR_PROBES = 9, SMALLEST_SET = 8, LARGE_SET = 50000 };

struct number_set {
    int64_t *slots; /* a number, FREE or TAKEN_OUT */
    size_t mask;    /* of the slots, whose number is a power of two */
    size_t n_filled, n_used, finger;
};

static void make_slots(struct number_set *set, size_t n_slots)
{
    set->slots = memory_alloc(n_slots * sizeof *set->slots);
    set->mask = n_slots - 1;
    for (size_t i = 0; i < n_slots; i++)
        set->slots[i] = FREE;
}

/* Returns the slot of a number: its own, or where it has to be put. */
static int64_t *find_slot(const struct number_set *set, int64_t number)
{
    enum { PERTURB_SHIFT = 5 };
    size_t perturb = (size_t)number, at = perturb & set->mask;
    int64_t *again = NULL;
    for (;;) {
        size_t n_probes = at + LINEAR_PROBES <= set->mask ? LINEAR_PROBES : 0;
        for (int64_t *slot = set->slots + at; slot <= set->slots + at + n_probes; slot++) {
            if (*slot == number)
                return slot;
            if (*slot == FREE)
                return again != NULL ? again : slot;
            if (*slot == TAKEN_OUT)
                again = slot;
        }
        perturb >>= PERTURB_SHIFT;
        at = (at * 5 + 1 + perturb) & set->mask;
    }
}

static void grow(struct number_set *set)
{
    size_t least = set->n_used > LARGE_SET ? 2 * set->n_used : 4 * set->n_used, n_slots = SMALLEST_SET;
    const struct number_set old = *set;
    while (n_slots <= least)
        n_slots *= 2;
    make_slots(set, n_slots);
    for (size_t i = 0; i <= old.mask; i++)
        if (old.slots[i] >= 0)
            *find_slot(set, old.slots[i]) = old.slots[i];
    set->n_filled = set->n_used;
    free(old.slots);
}

static void add_number(struct number_set *set, uint32_t number)
{
    int64_t *slot = find_slot(set, number);
    if (*slot == number)
        return;
    bool fills = *slot == FREE;
    *slot = number;
    set->n_used++;
    set->n_filled += fills;
    if (fills && set->n_filled * 5 >= set->mask * 3)
        grow(set);
}

/* Takes a number out of a set that is not empty. */
static uint32_t take_number(struct number_set *set)
{
    size_t at = set->finger & set->mask;
    while (set->slots[at] < 0)
        at = at < set->mask ? at + 1 : 0;
    uint32_t number = (uint32_t)set->slots[at];
    set->slots[at] = TAKEN_OUT;
    set->n_used--;
    set->finger = at + 1;
    return number;
}

/* Tasks, by number. mergekit numbers a task before those that it needs, each once. */

struct task {
    size_t first_need; /* in tasks.needs */
    uint32_t n_needs;
    uint32_t place; /* in the graph, from 1 on; 0: not yet */
    bool is_explored;
};

struct tasks {
    struct task *items;
    uint32_t count;
    uint32_t *needs; /* numbers */
    size_t n_needs;
    uint32_t writer;
    uint32_t n_placed;
};

/* The tasks of a job: saving a tensor needs merging, which needs gathering, which needs loading. */
struct job_tasks {
    uint32_t save, gather;
};

static uint32_t add_task(struct tasks *tasks, uint32_t n_needs)
{
    tasks->items[tasks->count] = (struct task){.first_need = tasks->n_needs, .n_needs = n_needs};
    tasks->n_needs += n_needs;
    return tasks->count++;
}

static void set_need(struct tasks *tasks, uint32_t task, uint32_t index, uint32_t number)
{
    tasks->needs[tasks->items[task].first_need + index] = number;
}

/* The tasks that load the tensors of each model: `loads[model][tensor]`, or 0. Only layers are loaded once for several
 * jobs. */
static void number_loads(const struct recipe_merge *merge, struct tasks *tasks, uint32_t *const *loads,
                         const struct recipe_job *job, uint32_t gather)
{
    for (size_t i = 0; i < job->slice->n_sources; i++) {
        int model = job->slice->sources[i].model;
        uint32_t *load = &loads[model][job->tensors[i] - merge->inputs[model].model->tensors->tensors];
        uint32_t number = job->is_of_layer && *load != 0 ? *load : add_task(tasks, 0);
        if (job->is_of_layer)
            *load = number;
        set_need(tasks, gather, (uint32_t)i, number);
    }
}

static void number_job(const struct recipe_merge *merge, struct tasks *tasks, uint32_t *const *loads,
                       const struct recipe_job *job, struct job_tasks *ret_tasks)
{
    enum { WRITER, MERGED };
    bool is_first = tasks->count == 0;
    uint32_t save = add_task(tasks, 2);
    if (is_first)
        tasks->writer = add_task(tasks, 0);
    uint32_t merged = add_task(tasks, 1), gather = add_task(tasks, (uint32_t)job->slice->n_sources);
    set_need(tasks, save, WRITER, tasks->writer);
    set_need(tasks, save, MERGED, merged);
    set_need(tasks, merged, 0, gather);
    number_loads(merge, tasks, loads, job, gather);
    *ret_tasks = (struct job_tasks){save, gather};
}

static void place(struct tasks *tasks, uint32_t number)
{
    if (tasks->items[number].place == 0)
        tasks->items[number].place = ++tasks->n_placed;
}

/* Places the tasks as mergekit adds them to its graph, from those that save tensors and the last on. */
static void place_tasks(struct tasks *tasks, const struct job_tasks *jobs, size_t n_jobs, uint32_t last)
{
    struct number_set set = {NULL};
    make_slots(&set, SMALLEST_SET);
    for (size_t i = 0; i < n_jobs; i++)
        add_number(&set, jobs[i].save);
    add_number(&set, last);
    while (set.n_used > 0) {
        uint32_t number = take_number(&set);
        struct task *task = &tasks->items[number];
        for (uint32_t i = 0; i < task->n_needs && !task->is_explored; i++) {
            uint32_t need = tasks->needs[task->first_need + i];
            add_number(&set, need);
            place(tasks, need);
            place(tasks, number);
        }
        task->is_explored = true;
    }
    free(set.slots);
}

static void number_and_place(const struct recipe_merge *merge, const struct recipe_jobs *jobs, struct tasks *tasks,
                             struct job_tasks *of_jobs)
{
    struct arena *scratch = arena_new();
    uint32_t **loads = arena_array(scratch, merge->recipe->n_models, sizeof *loads);
    for (size_t i = 0; i < merge->recipe->n_models; i++)
        loads[i] = arena_array(scratch, merge->inputs[i].model->tensors->n_tensors, sizeof **loads);
    for (size_t i = 0; i < jobs->count; i++)
        number_job(merge, tasks, loads, &jobs->items[i], &of_jobs[i]);
    uint32_t last = add_task(tasks, (uint32_t)jobs->count + 1); /* ends the writing */
    set_need(tasks, last, 0, tasks->writer);
    for (size_t i = 0; i < jobs->count; i++)
        set_need(tasks, last, (uint32_t)i + 1, of_jobs[i].save);
    place_tasks(tasks, of_jobs, jobs->count, last);
    arena_free(scratch);
}

/* When a job is computed among those of its label: after the last load of that label, the first gathered first. */
struct turn {
    uint32_t loaded, gathered;
};

static struct turn turn_of(const struct tasks *tasks, const struct recipe_job *job, uint32_t gather)
{
    struct turn turn = {0, tasks->items[gather].place};
    for (size_t i = 0; i < job->slice->n_sources; i++) {
        uint32_t place = tasks->items[tasks->needs[tasks->items[gather].first_need + i]].place;
        if (strcmp(job->tensors[i]->name, job->label) == 0 && place > turn.loaded)
            turn.loaded = place;
    }
    return turn;
}

static struct turn *find_turns(const struct recipe_merge *merge, const struct recipe_jobs *jobs)
{
    size_t n_needs = 0;
    for (size_t i = 0; i < jobs->count; i++)
        n_needs += jobs->items[i].slice->n_sources;
    size_t most_tasks = 3 * jobs->count + n_needs + 2;
    struct tasks tasks = {.items = memory_alloc(most_tasks * sizeof *tasks.items),
                          .needs = memory_alloc((n_needs + 4 * jobs->count + 1) * sizeof *tasks.needs)};
    struct job_tasks *of_jobs = memory_alloc(jobs->count * sizeof *of_jobs);
    struct turn *turns = memory_alloc(jobs->count * sizeof *turns);
    number_and_place(merge, jobs, &tasks, of_jobs);
    for (size_t i = 0; i < jobs->count; i++)
        turns[i] = turn_of(&tasks, &jobs->items[i], of_jobs[i].gather);
    free(of_jobs);
    free(tasks.needs);
    free(tasks.items);
    return turns;
}

/* Sorting. */

static const char *label_of(const void *context, uint32_t index, size_t *ret_length)
{
    const struct recipe_job *items = context;
    *ret_length = strlen(items[index].label);
    return items[index].label;
}

static int compare_turns(const void *context, uint32_t a, uint32_t b)
{
    const struct turn *turns = context, x = turns[a], y = turns[b];
    if (x.loaded != y.loaded)
        return x.loaded < y.loaded ? -1 : 1;
    return x.gathered < y.gathered ? -1 : x.gathered > y.gathered;
}

/* Returns how many jobs from `first` on have the same label. */
static size_t count_equal(const struct recipe_jobs *jobs, const uint32_t *order, size_t first)
{
    size_t n = 1;
    while (first + n < jobs->count && strcmp(jobs->items[order[first]].label, jobs->items[order[first + n]].label) == 0)
        n++;
    return n;
}

static void sort_equal(const struct recipe_merge *merge, const struct recipe_jobs *jobs, uint32_t *order)
{
    struct turn *turns = NULL;
    for (size_t first = 0, n; first < jobs->count; first += n) {
        n = count_equal(jobs, order, first);
        if (n == 1)
            continue;
        if (turns == NULL)
            turns = find_turns(merge, jobs);
        sort_indices(order + first, n, compare_turns, turns);
    }
    free(turns);
}

void recipe_sort_jobs(const struct recipe_merge *merge, struct recipe_jobs *jobs)
{
    uint32_t *order = arena_array(jobs->arena, jobs->count, sizeof *order);
    struct recipe_job *sorted = arena_array(jobs->arena, jobs->count, sizeof *sorted);
    for (size_t i = 0; i < jobs->count; i++)
        order[i] = (uint32_t)i;
    sort_texts(order, jobs->count, label_of, jobs->items);
    sort_equal(merge, jobs, order);
    for (size_t i = 0; i < jobs->count; i++)
        sorted[i] = jobs->items[order[i]];
    jobs->items = sorted;
}
