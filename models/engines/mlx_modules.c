#include "models/engines/mlx_families.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A module for a model type, or for one of its classes only. */
struct renamed {
    const char *model_type, *class_name, *module; /* class_name NULL: all classes */
};

#include "models/engines/mlx_modules.inc"

static bool is(const char *text, const char *expected)
{
    return text != NULL && strcmp(text, expected) == 0;
}

const char *mlx_module_of(const char *model_type, const char *class_name)
{
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (is(model_type, renamed[i].model_type) &&
            (renamed[i].class_name == NULL || is(class_name, renamed[i].class_name)))
            return renamed[i].module;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (is(model_type, modules[i]))
            return modules[i];
    return NULL;
}
