/* The time that one input may take: more than a second is a finding, as a crash is. What is counted is the processor's
 * time, so that other programs do not matter; sanitizers make everything some ten times slower. */
#pragma once

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#ifdef __has_feature
#define HAS_FEATURE(x) __has_feature(x)
#else
#define HAS_FEATURE(x) 0
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || HAS_FEATURE(address_sanitizer) ||                   \
    HAS_FEATURE(thread_sanitizer)
enum { MOST_SECONDS = 10 };
#else
enum { MOST_SECONDS = 1 };
#endif

static inline void on_timeout(int signal)
{
    static const char message[] = "too slow: more than a second of the processor for one input (10 with sanitizers)\n";
    (void)signal;
    _exit(write(STDERR_FILENO, message, sizeof message - 1) < 0 ? 2 : 1);
}

static inline void limit_time(time_t seconds)
{
    signal(SIGPROF, on_timeout);
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = seconds}, NULL);
}
