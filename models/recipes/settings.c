#include "models/recipes/settings.h"

#include <string.h>

static double value_at(const struct condition *condition, double at)
{
    double place = at * (double)(condition->n_values - 1);
    size_t first = (size_t)place, next = first + 1 < condition->n_values ? first + 1 : first;
    double part = place - (double)first;
    if (condition->has_steps)
        return condition->values[first];
    return (1 - part) * condition->values[first] + part * condition->values[next];
}

static bool fits(const struct condition *condition, const char *tensor)
{
    return condition->filter == NULL || strstr(tensor, condition->filter) != NULL;
}

bool settings_value(const struct settings *settings, enum parameter_name name, const char *tensor, double at,
                    double *ret_value)
{
    for (size_t i = 0; i < settings->count; i++) {
        const struct setting *setting = &settings->items[i];
        for (size_t j = 0; setting->name == name && j < setting->n_conditions; j++) {
            if (!fits(&setting->conditions[j], tensor))
                continue;
            *ret_value = value_at(&setting->conditions[j], at);
            return true;
        }
    }
    return false;
}
