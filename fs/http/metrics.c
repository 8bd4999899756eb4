#include "fs/http/metrics.h"

#include "fs/tree/identity.h"

void metrics_add_request(struct metrics *metrics, unsigned status, double seconds)
{
    unsigned class = status / 100 < STATUS_CLASSES ? status / 100 : 0;
    atomic_fetch_add(&metrics->requests[class], 1);
    atomic_fetch_add(&metrics->microseconds, (unsigned long long)(seconds * 1e6));
}

void metrics_add_bytes(struct metrics *metrics, uint64_t n_bytes, enum made made)
{
    atomic_fetch_add(&metrics->file_bytes, n_bytes);
    if (made != COPIED)
        atomic_fetch_add(made == COMPUTED ? &metrics->computed_bytes : &metrics->kept_bytes, n_bytes);
}

void metrics_add_digest_bytes(struct metrics *metrics, uint64_t n_bytes)
{
    atomic_fetch_add(&metrics->digest_bytes, n_bytes);
}

static void put_counter(struct buffer *out, const char *name, const char *help, unsigned long long value)
{
    buffer_printf(out, "# HELP %s %s\n# TYPE %s counter\n%s %llu\n", name, help, name, name, value);
}

void metrics_answer(const struct metrics *metrics, struct answer *answer)
{
    struct buffer *out = &answer->text;
    answer_header(answer, "Content-Type", "text/plain; version=0.0.4");
    buffer_printf(out,
                  "# HELP wfs_build_info The version of wfs, and the build: the hash of its sources.\n"
                  "# TYPE wfs_build_info gauge\n"
                  "wfs_build_info{version=\"%s\",build=\"%s\"} 1\n",
                  WFS_VERSION, wfs_build);
    buffer_append_text(out, "# HELP wfs_requests_total Requests that were answered, by the class of their status.\n"
                            "# TYPE wfs_requests_total counter\n");
    for (int i = 2; i < STATUS_CLASSES; i++)
        buffer_printf(out, "wfs_requests_total{status=\"%dxx\"} %llu\n", i, atomic_load(&metrics->requests[i]));
    put_counter(out, "wfs_file_bytes_total", "Bytes of files that were read for clients.",
                atomic_load(&metrics->file_bytes));
    put_counter(out, "wfs_computed_bytes_total", "Those of them in blocks that were computed, not copied.",
                atomic_load(&metrics->computed_bytes));
    put_counter(out, "wfs_kept_bytes_total",
                "Those of them in blocks that had been computed and kept before (-o keep=).",
                atomic_load(&metrics->kept_bytes));
    put_counter(out, "wfs_digest_bytes_total", "Bytes of files that were read for digests.",
                atomic_load(&metrics->digest_bytes));
    buffer_printf(out,
                  "# HELP wfs_request_seconds_total Time from the first line of requests to the end of their answers.\n"
                  "# TYPE wfs_request_seconds_total counter\n"
                  "wfs_request_seconds_total %.6f\n",
                  (double)atomic_load(&metrics->microseconds) / 1e6);
}
