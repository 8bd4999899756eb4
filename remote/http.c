#include "remote/http.h"

#include "base/attempt.h"
#include "base/lock.h"
#include "base/system.h"
#include "base/text.h"
#include "remote/libcurl.h"
#include "remote/options.h"
#include "remote/retry.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
    BUFFER_BYTES = 256 << 10,
    CONNECT_MS = 10 * 1000,
    STALL_BYTES = 1000, /* a second: what comes more slowly counts as stalled */
    STALL_SECONDS = 15,
    HEADER_LIMIT = 64 << 10,
    IGNORED_LIMIT = 64 << 10, /* of a body that nobody takes: reading it keeps the connection */
    EXCERPT = 1000,
    SHOWN_EXCERPT = 200, /* of it, in a message */
    MAX_FLAWS = 3,       /* answers with wrong ranges */
};

/* A request under way, perhaps by several exchanges one after the other. */
struct task {
    struct task *next;
    struct http_request request;
    struct arena *arena;
    struct uri uri;       /* where it is asked for now */
    struct question left; /* what has not come yet */
    struct retry retry;
    unsigned hops, n_flaws;

    /* of the exchange under way */
    CURL *easy;
    struct curl_slist *headers;
    struct answer answer;
    size_t header_bytes;
    bool is_judged, is_unwanted; /* unwanted: the bytes could not be kept */
    enum verdict verdict;
    uint64_t first; /* place of the body's first byte in the object */
    uint64_t expected, received;
    char excerpt[EXCERPT + 1];
    size_t excerpt_length;
    struct error error;
};

struct queue {
    struct task *first, **end;
};

static struct {
    struct lock lock; /* of the queues and `is_ending`; never held while the network is waited for */
    struct queue urgent, hinted;
    bool is_ending;
    pthread_t thread;
    unsigned timeout; /* as options.h has it; these two are set before the thread starts */
    char *cacert;     /* may be NULL */
    CURLM *multi;
    struct task *resting; /* until they are repeated; these and what follows only the thread uses */
    unsigned n_active, n_hinted;
} http = {.lock = LOCK_INITIALIZER, .urgent.end = &http.urgent.first, .hinted.end = &http.hinted.first};

const struct http_credential *http_credential_copy(const struct http_credential *credential, struct arena *arena)
{
    if (credential == NULL)
        return NULL;
    struct http_credential *copy = arena_alloc(arena, sizeof *copy);
    copy->origin = arena_strdup(arena, credential->origin);
    copy->header = credential->header != NULL ? arena_strdup(arena, credential->header) : NULL;
    copy->sign = credential->sign;
    copy->scope = credential->scope != NULL ? arena_strdup(arena, credential->scope) : NULL;
    return copy;
}

static void push(struct queue *queue, struct task *task)
{
    task->next = NULL;
    *queue->end = task;
    queue->end = &task->next;
}

static struct task *remove_at(struct queue *queue, struct task **at)
{
    struct task *task = *at;
    *at = task->next;
    if (*at == NULL)
        queue->end = at;
    return task;
}

/* The task is done with, as its last verdict says. */
static void finish_task(struct task *task)
{
    task->excerpt[task->excerpt_length] = '\0';
    const struct http_result result = {task->verdict, &task->answer, &task->uri, &task->error, task->excerpt};
    task->request.done(task->request.context, &result);
    arena_free(task->arena);
    free(task);
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    struct task *task = context;
    task->header_bytes += size * count;
    if (task->header_bytes > HEADER_LIMIT)
        return 0;
    answer_add_line(&task->answer, line, size * count);
    return size * count;
}

static void judge(struct task *task)
{
    const struct http_request *request = &task->request;
    task->verdict = answer_judge(&task->answer, &task->left, &task->expected, &task->error);
    task->is_judged = true;
    task->first = task->verdict == VERDICT_WHOLE ? 0 : task->left.first;
    bool has_bytes = task->verdict == VERDICT_TAKE || task->verdict == VERDICT_WHOLE;
    if (has_bytes && request->begin != NULL && !request->begin(request->context, &task->uri, &task->answer))
        task->verdict = answer_changed(&task->error);
}

/* What nobody takes is read, so that the connection can be used again; not if it is much. */
static size_t ignore(struct task *task, const char *bytes, size_t length)
{
    size_t kept = EXCERPT - task->excerpt_length < length ? EXCERPT - task->excerpt_length : length;
    memcpy(task->excerpt + task->excerpt_length, bytes, kept);
    task->excerpt_length += kept;
    task->received += length;
    bool is_error = task->answer.status >= 300;
    return is_error && task->received <= IGNORED_LIMIT ? length : 0;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct task *task = context;
    size_t length = size * count;
    if (!task->is_judged)
        judge(task);
    if (task->verdict != VERDICT_TAKE && task->verdict != VERDICT_WHOLE)
        return ignore(task, bytes, length);
    bool is_too_long = task->expected != SIZE_UNKNOWN && length > task->expected - task->received;
    if (is_too_long) {
        error_set(&task->error, "the server sends more bytes than were asked for");
        task->verdict = VERDICT_REFUSED;
        return 0;
    }
    task->is_unwanted = !task->request.take(task->request.context, task->first + task->received, bytes, length);
    if (task->is_unwanted)
        return 0;
    task->received += length;
    retry_progress(&task->retry);
    return length;
}

static void add_header(struct task *task, const char *header)
{
    struct curl_slist *longer = libcurl.slist_append(task->headers, header);
    if (longer == NULL)
        memory_exhausted(strlen(header));
    task->headers = longer;
}

static void add_credential(struct task *task, const struct http_credential *credential)
{
    struct buffer lines = {0};
    char *rest = NULL;
    if (credential->header != NULL) {
        add_header(task, credential->header);
        return;
    }
    credential->sign(credential->scope, &task->uri, &lines);
    buffer_append(&lines, "", 1);
    for (char *line = strtok_r((char *)lines.bytes, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        add_header(task, line);
    buffer_free(&lines);
}

static void set_headers(struct task *task)
{
    const struct question *left = &task->left;
    const struct http_credential *credential = task->request.credential;
    add_header(task, "Accept-Encoding: identity");
    bool is_owner = credential != NULL && strcmp(credential->origin, task->uri.origin) == 0;
    if (is_owner && uri_is_private(&task->uri))
        add_credential(task, credential);
    else if (text_starts_with(task->uri.origin, "https://"))
        libcurl.easy_setopt(task->easy, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    if (left->etag != NULL && answer_tag_is_strong(left->etag))
        add_header(task, arena_printf(task->arena, "If-Match: %s", left->etag));
    if (task->request.condition != NULL)
        add_header(task, task->request.condition);
    if (left->is_range)
        libcurl.easy_setopt(task->easy, CURLOPT_RANGE,
                            arena_printf(task->arena, "%llu-%llu", (unsigned long long)left->first,
                                         (unsigned long long)(left->first + left->length - 1)));
    libcurl.easy_setopt(task->easy, CURLOPT_HTTPHEADER, task->headers);
}

static void set_limits(struct task *task)
{
    long seconds = http.timeout < STALL_SECONDS ? (long)http.timeout : STALL_SECONDS;
    libcurl.easy_setopt(task->easy, CURLOPT_CONNECTTIMEOUT_MS,
                        seconds * 1000 < CONNECT_MS ? seconds * 1000 : CONNECT_MS);
    libcurl.easy_setopt(task->easy, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES);
    libcurl.easy_setopt(task->easy, CURLOPT_LOW_SPEED_TIME, seconds);
    if (http.cacert != NULL)
        libcurl.easy_setopt(task->easy, CURLOPT_CAINFO, http.cacert);
}

/* libcurl leaves its descriptors open to programs that the process starts, and to those who take them for inherited.
 * Sockets are made here; the ones it wakes itself with are those that were not there before. */

enum { DESCRIPTORS = 1024 };

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    return system_socket(address->family, address->socktype, address->protocol);
}

static bool is_inheritable(int fd)
{
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && !(flags & FD_CLOEXEC);
}

static CURLM *make_multi(void)
{
    bool before[DESCRIPTORS];
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        before[fd] = is_inheritable(fd);
    CURLM *multi = libcurl.multi_init();
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        if (!before[fd] && is_inheritable(fd))
            fcntl(fd, F_SETFD, FD_CLOEXEC);
    return multi;
}

static void begin_exchange(struct task *task)
{
    task->easy = libcurl.easy_init();
    if (task->easy == NULL)
        memory_exhausted(sizeof *task);
    libcurl.easy_setopt(task->easy, CURLOPT_URL, task->uri.text);
    libcurl.easy_setopt(task->easy, CURLOPT_PROTOCOLS_STR, "http,https");
    libcurl.easy_setopt(task->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    libcurl.easy_setopt(task->easy, CURLOPT_NOSIGNAL, 1L);
    libcurl.easy_setopt(task->easy, CURLOPT_TCP_KEEPALIVE, 1L);
    libcurl.easy_setopt(task->easy, CURLOPT_BUFFERSIZE, (long)BUFFER_BYTES);
    libcurl.easy_setopt(task->easy, CURLOPT_USERAGENT, "wfs/" WFS_VERSION);
    libcurl.easy_setopt(task->easy, CURLOPT_PRIVATE, task);
    libcurl.easy_setopt(task->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    libcurl.easy_setopt(task->easy, CURLOPT_HEADERFUNCTION, on_header);
    libcurl.easy_setopt(task->easy, CURLOPT_HEADERDATA, task);
    libcurl.easy_setopt(task->easy, CURLOPT_WRITEFUNCTION, on_body);
    libcurl.easy_setopt(task->easy, CURLOPT_WRITEDATA, task);
    libcurl.easy_setopt(task->easy, CURLOPT_FRESH_CONNECT, task->n_flaws > 0 ? 1L : 0L);
    set_limits(task);
    set_headers(task);
    task->answer = (struct answer){0};
    task->header_bytes = task->excerpt_length = 0;
    task->is_judged = task->is_unwanted = false;
    task->received = 0;
    libcurl.multi_add_handle(http.multi, task->easy);
    http.n_active++;
    http.n_hinted += !task->request.is_urgent;
}

static void end_exchange(struct task *task)
{
    libcurl.multi_remove_handle(http.multi, task->easy);
    libcurl.easy_cleanup(task->easy);
    libcurl.slist_free_all(task->headers);
    task->easy = NULL;
    task->headers = NULL;
    http.n_active--;
    http.n_hinted -= !task->request.is_urgent;
}

/* Asks for what is left of a range when its answer broke off, and only of the object that the answer was about. */
static void keep_part(struct task *task)
{
    struct question *left = &task->left;
    if (!task->is_judged || task->verdict != VERDICT_TAKE || !left->is_range || task->received == 0)
        return;
    left->first += task->received;
    left->length -= task->received;
    left->size = task->answer.total;
    if (left->etag == NULL && *task->answer.etag != '\0')
        left->etag = arena_strdup(task->arena, task->answer.etag);
}

/* Ends a task whose server may be down. */
static void give_up(struct task *task, enum verdict verdict)
{
    if (task->answer.status == 0)
        outage_begin(task->uri.origin, retry_now(), &task->error);
    task->verdict = verdict;
    finish_task(task);
}

/* Repeats the exchange later, or ends the task where that has been tried for as long as may be. task->error says what
 * is wrong. */
static void rest(struct task *task)
{
    keep_part(task);
    if (!retry_again(&task->retry, task->answer.pause, &task->error)) {
        give_up(task, VERDICT_RETRY);
        return;
    }
    task->next = http.resting;
    http.resting = task;
}

static void refuse(struct task *task, const char *why)
{
    error_set(&task->error, "%s", why);
    task->verdict = VERDICT_REFUSED;
    finish_task(task);
}

static void redirect(struct task *task)
{
    struct uri to;
    if (!uri_resolve(&task->uri, task->answer.location, task->arena, &to, &task->error))
        refuse(task, "the server redirects to an address that is not valid");
    else if (++task->hops > HTTP_HOPS)
        refuse(task, "the server redirects too often, perhaps in a loop");
    else if (uri_is_private(&task->uri) && !uri_is_private(&to))
        refuse(task, "the server redirects to http on another machine, where others can read and change the bytes");
    else if (text_starts_with(task->uri.origin, "https:") && text_starts_with(to.origin, "http:"))
        refuse(task, "the server redirects from https to http");
    else {
        task->uri = to;
        begin_exchange(task);
    }
}

/* Repeats a request from its own URL, with a connection of its own: a proxy may answer one with the bytes of another.
 * Returns false if that has been tried often enough. */
static bool try_elsewhere(struct task *task)
{
    if (task->answer.status != 206 || ++task->n_flaws >= MAX_FLAWS)
        return false;
    task->uri = task->request.uri;
    task->hops = 0;
    rest(task);
    return true;
}

/* A 403 alone is explained by its body: of other answers the status says enough. */
static void finish_refused(struct task *task)
{
    struct error error = task->error;
    if (task->answer.status == 403 && task->excerpt_length > 0)
        error_set(&task->error, "%s: %.*s", error.message,
                  (int)(task->excerpt_length < SHOWN_EXCERPT ? task->excerpt_length : SHOWN_EXCERPT), task->excerpt);
    finish_task(task);
}

/* What to do after an exchange whose answer was judged and whose body, if it is wanted, has all come. */
static void act(struct task *task)
{
    if (task->verdict == VERDICT_REDIRECT)
        redirect(task);
    else if (task->verdict == VERDICT_RETRY)
        rest(task);
    else if (task->verdict != VERDICT_REFUSED)
        finish_task(task);
    else if (!try_elsewhere(task))
        finish_refused(task);
}

static void after_exchange(struct task *task, CURLcode code)
{
    end_exchange(task);
    if (task->answer.status != 0)
        outage_end(task->uri.origin);
    if (!task->is_judged && code == CURLE_OK)
        judge(task);
    bool has_body = task->is_judged && (task->verdict == VERDICT_TAKE || task->verdict == VERDICT_WHOLE);
    if (task->is_unwanted)
        refuse(task, "the bytes cannot be kept");
    else if (task->header_bytes > HEADER_LIMIT)
        refuse(task, "the headers of the server's answer are too long");
    else if (task->is_judged && !has_body)
        act(task);
    else if (retry_is_hopeless(&task->retry, code, &task->error))
        give_up(task, VERDICT_REFUSED);
    else if (code != CURLE_OK || (task->expected != SIZE_UNKNOWN && task->received != task->expected)) {
        error_set(&task->error, "%s", code != CURLE_OK ? libcurl.easy_strerror(code) : "the answer ends early");
        rest(task);
    } else
        act(task);
}

static void finish_exchanges(void)
{
    int n_left;
    for (const CURLMsg *message; (message = libcurl.multi_info_read(http.multi, &n_left)) != NULL;) {
        CURLcode code = message->data.result;
        char *task;
        libcurl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &task);
        after_exchange((struct task *)(void *)task, code);
    }
}

/* The next task to begin: the urgent before others. NULL: none, or enough are under way. */
static struct task *next_task(void)
{
    struct task *task = NULL;
    lock_take(&http.lock);
    if (http.n_active < HTTP_UNDER_WAY && http.urgent.first != NULL)
        task = remove_at(&http.urgent, &http.urgent.first);
    else if (http.n_active < HTTP_UNDER_WAY && http.n_hinted < HTTP_HINTED && http.hinted.first != NULL)
        task = remove_at(&http.hinted, &http.hinted.first);
    lock_drop(&http.lock);
    return task;
}

/* Begins what may begin. Returns how many milliseconds later to look again. */
static int begin_exchanges(void)
{
    enum { LONGEST = 1000 };
    int pause = LONGEST;
    for (struct task **at = &http.resting; *at != NULL;) {
        struct task *task = *at;
        int64_t left = retry_left(&task->retry);
        if (left > 0 || http.n_active >= HTTP_UNDER_WAY) {
            pause = left < pause ? (int)(left > 0 ? left : 1) : pause;
            at = &task->next;
            continue;
        }
        *at = task->next;
        begin_exchange(task);
    }
    for (struct task *task; (task = next_task()) != NULL;) {
        retry_begin(&task->retry, http.timeout, task->left.size == SIZE_UNKNOWN);
        if (outage_refuses(task->uri.origin, retry_now(), &task->error)) {
            task->verdict = VERDICT_RETRY;
            finish_task(task);
        } else {
            begin_exchange(task);
        }
    }
    return pause;
}

static bool is_ending(void)
{
    lock_take(&http.lock);
    bool ending = http.is_ending;
    lock_drop(&http.lock);
    return ending;
}

static void *serve(void *unused)
{
    int n_running;
    while (!is_ending()) {
        int pause = begin_exchanges();
        libcurl.multi_perform(http.multi, &n_running);
        finish_exchanges();
        libcurl.multi_poll(http.multi, NULL, 0, pause, NULL);
    }
    return unused;
}

/* Ends the thread before the libraries that it uses clean up. What is under way is dropped with the process: a name
 * that is being resolved would have to be waited for. */
static void stop(void)
{
    lock_take(&http.lock);
    http.is_ending = true;
    lock_drop(&http.lock);
    libcurl.multi_wakeup(http.multi);
    pthread_join(http.thread, NULL);
}

static void start(void)
{
    sigset_t all, before;
    if (libcurl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        memory_exhausted(sizeof http);
    if (http.multi == NULL && (http.multi = make_multi()) == NULL)
        memory_exhausted(sizeof http);
    libcurl.multi_setopt(http.multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)HTTP_CONNECTIONS);
    libcurl.multi_setopt(http.multi, CURLMOPT_MAXCONNECTS, (long)HTTP_UNDER_WAY);
    const struct remote_options options = remote_options();
    http.timeout = options.timeout;
    if (http.cacert == NULL && options.cacert != NULL)
        http.cacert = memory_strdup(options.cacert);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_made = pthread_create(&http.thread, NULL, serve, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!is_made)
        memory_exhausted(sizeof http);
    atexit(stop);
}

/* Starts the thread, once. If memory runs out, the next request tries again: pthread_once() would make it wait for the
 * attempt that has ended. */
static void start_once(void)
{
    static struct lock starting = LOCK_INITIALIZER;
    static bool is_started;
    attempt_lock(&starting);
    if (!is_started)
        start();
    is_started = true;
    attempt_unlock(&starting);
}

void http_submit(const struct http_request *request)
{
    start_once();
    struct task *task = memory_alloc(sizeof *task);
    *task =
        (struct task){.request = *request, .uri = request->uri, .left = request->question, .arena = arena_new_shared()};
    lock_take(&http.lock);
    push(request->is_urgent ? &http.urgent : &http.hinted, task);
    lock_drop(&http.lock);
    libcurl.multi_wakeup(http.multi);
}

void http_hurry(const void *context)
{
    lock_take(&http.lock);
    for (struct task **at = &http.hinted.first; *at != NULL; at = &(*at)->next) {
        if ((*at)->request.context != context)
            continue;
        struct task *task = remove_at(&http.hinted, at);
        task->request.is_urgent = true;
        push(&http.urgent, task);
        break;
    }
    lock_drop(&http.lock);
    libcurl.multi_wakeup(http.multi);
}
