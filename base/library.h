/* Libraries that are loaded when they are first needed: with the libraries they need themselves, they would more than
 * double the time that every command takes to start. */
#pragma once

#include "base/error.h"

#include <stddef.h>

/* A function of a library, and the pointer that is set to its address. */
struct library_function {
    const char *name;
    void **pointer;
};

/* Loads the library `soname` ("libcurl.so.4"), which stays loaded, and sets the pointers. The error is `need`, what
 * needs which library, and the file or function that is missing. */
bool library_load(const char *soname, const char *need, const struct library_function *functions, size_t n_functions,
                  struct error *error);
