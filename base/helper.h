/* Helpers: processes that a confined process starts before it gives its rights away, and asks later for what it may no
 * longer do itself. A helper has one end of a socket and answers each message with one; it ends with the process that
 * started it, also if that is killed. Linux only. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct helper {
    pid_t process;
    int socket;
    pthread_mutex_t lock; /* held from a message to its answer */
};

enum { HELPER_DESCRIPTORS = 2 }; /* at most, with a message */

/* A message: bytes that keep their bounds, and descriptors, which the sender keeps and the receiver closes. Missing
 * ones are -1. */
struct helper_message {
    void *bytes;
    size_t length;
    int descriptors[HELPER_DESCRIPTORS];
};

/* Starts a helper, which runs `attend` and then ends. It has left the terminal and ignores its signals, and has no
 * descriptor but the socket, /dev/null as its standard ones, and those in `kept`, which ends with -1 and may be NULL.
 * Returns false with errno. Only for a process with one thread. */
bool helper_start(struct helper *helper, void (*attend)(int socket, void *context), void *context, const int *kept);

/* Sends a message and receives the answer into `answer`, whose length must be that of the answer. Safe from any number
 * of threads. Returns false with errno if the helper has ended, and EMFILE if the process lacks descriptors. */
bool helper_ask(struct helper *helper, const struct helper_message *message, struct helper_message *answer);

/* Ends the helper, and waits for it. */
void helper_end(struct helper *helper);

/* The helper's side. Receives a message of exactly the expected length; false: the helper shall end. */
bool helper_receive(int socket, struct helper_message *message);
bool helper_answer(int socket, const struct helper_message *message);
void helper_close(const struct helper_message *message);
