/* IS_SANITIZED is 1 in a test that runs with the address or the thread sanitizer, else 0. Sanitizers replace malloc(),
 * take most of the address space, and start processes. */
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif
