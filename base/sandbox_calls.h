/* The system calls of the sandbox: what sandbox.c gives to the kernel as a seccomp filter. */
#pragma once

#include "base/sandbox.h"

/* Leaves the calls of a role to all threads of the process, for good. Every other call fails with EPERM; clone3() fails
 * with ENOSYS, after which libraries use clone(). Returns false if the kernel has no seccomp. */
bool sandbox_filter_calls(const struct sandbox *sandbox);
