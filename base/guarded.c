#include "base/guarded.h"

#include "base/process.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

/* Where this thread continues after losing a page. */
static _Thread_local struct {
    sigjmp_buf back;
    const unsigned char *volatile first, *volatile last; /* bytes being copied; NULL: none */
} guard;

static struct sigaction before;

static void lost(int signal, siginfo_t *info, void *context)
{
    enum { LEAST_PAGE = 4096 };
    const unsigned char *at = info->si_addr;
    const ucontext_t *interrupted = context;
    /* s390x tells only in which page the byte is */
    if (guard.first != NULL && at >= guard.first - (uintptr_t)guard.first % LEAST_PAGE && at <= guard.last) {
        /* siglongjmp() does not restore the signal mask here. */
        pthread_sigmask(SIG_SETMASK, &interrupted->uc_sigmask, NULL);
        siglongjmp(guard.back, 1);
    }
    sigaction(signal, &before, NULL); /* the instruction runs and fails again, now for the earlier handler */
}

static void set_handler(void)
{
    struct sigaction action = {.sa_sigaction = lost, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, &before);
}

/* Copies runs whose length is a constant once this is inlined. */
static inline void copy_short(unsigned char *out, const unsigned char *from, uint64_t count, size_t length,
                              uint64_t stride)
{
    enum { AHEAD = 16 };
    for (uint64_t i = 0; i < count; i++, from += stride, out += length) {
        __builtin_prefetch(from + (i + AHEAD < count ? AHEAD * stride : 0));
        memcpy(out, from, length);
    }
}

static __attribute__((noinline)) void copy(unsigned char *out, const unsigned char *from, uint64_t count, size_t length,
                                           uint64_t stride)
{
    switch (length) {
    case 4:
        copy_short(out, from, count, 4, stride);
        break;
    case 8:
        copy_short(out, from, count, 8, stride);
        break;
    case 16:
        copy_short(out, from, count, 16, stride);
        break;
    default:
        copy_short(out, from, count, length, stride);
    }
}

bool guarded_copy(unsigned char *out, const unsigned char *mapping, uint64_t count, size_t length, uint64_t stride)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (count == 0 || length == 0)
        return true;
    if (!process_allows(PROCESS_SIGBUS))
        return false;
    pthread_once(&once, set_handler);
    if (sigsetjmp(guard.back, 0) != 0) {
        guard.first = NULL;
        return false;
    }
    guard.last = mapping + (count - 1) * stride + length - 1;
    guard.first = mapping;
    atomic_signal_fence(memory_order_seq_cst); /* keeps the copy's accesses between the fences */
    copy(out, mapping, count, length, stride);
    atomic_signal_fence(memory_order_seq_cst);
    guard.first = NULL;
    return true;
}
