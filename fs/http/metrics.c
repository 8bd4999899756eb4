#include "fs/http/metrics.h"

void metrics_add_request(struct metrics *metrics, unsigned status, double seconds)
{
    unsigned class = status / 100 < STATUS_CLASSES ? status / 100 : 0;
    atomic_fetch_add(&metrics->requests[class], 1);
    atomic_fetch_add(&metrics->microseconds, (unsigned long long)(seconds * 1e6));
}

void metrics_add_bytes(struct metrics *metrics, uint64_t n_bytes)
{
    atomic_fetch_add(&metrics->file_bytes, n_bytes);
}

void metrics_answer(const struct metrics *metrics, struct answer *answer)
{
    struct buffer *out = &answer->text;
    answer_header(answer, "Content-Type", "text/plain; version=0.0.4");
    buffer_append_text(out, "# HELP wfs_requests_total Requests that were answered, by the class of their status.\n"
                            "# TYPE wfs_requests_total counter\n");
    for (int i = 2; i < STATUS_CLASSES; i++)
        buffer_printf(out, "wfs_requests_total{status=\"%dxx\"} %llu\n", i, atomic_load(&metrics->requests[i]));
    buffer_printf(out,
                  "# HELP wfs_file_bytes_total Bytes of files that were read for clients.\n"
                  "# TYPE wfs_file_bytes_total counter\n"
                  "wfs_file_bytes_total %llu\n"
                  "# HELP wfs_request_seconds_total Time from the first line of requests to the end of their answers.\n"
                  "# TYPE wfs_request_seconds_total counter\n"
                  "wfs_request_seconds_total %.6f\n",
                  atomic_load(&metrics->file_bytes), (double)atomic_load(&metrics->microseconds) / 1e6);
}
