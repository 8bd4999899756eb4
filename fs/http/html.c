#include "fs/http/html.h"

#include "base/encodings.h"
#include "base/text.h"

#include <math.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
    "h1{font-size:1.5em;overflow-wrap:anywhere}h2{font-size:1.15em;margin-top:2em}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f4f4;padding:.5em}"
    "table{border-collapse:collapse}td,th{padding:1px 12px 1px 0;text-align:left;vertical-align:top;overflow-wrap:"
    "anywhere}td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    "th.s{cursor:pointer;text-decoration:underline dotted}"
    "svg{display:block;max-width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:#444}"
    ".bar{fill:#4a86c5}.axis{stroke:#999}.grid{stroke:#e5e5e5}"
    ".h0{stroke:#fff7e6}.h1{stroke:#fde8cb}.h2{stroke:#fbd8b0}.h3{stroke:#f8c896}.h4{stroke:#f5b67d}"
    ".h5{stroke:#f2a365}.h6{stroke:#ee8f52}.h7{stroke:#e27945}.h8{stroke:#d1633b}.h9{stroke:#bd4e33}"
    ".h10{stroke:#a83b2b}.h11{stroke:#922a24}.h12{stroke:#7b1a1d}.h13{stroke:#650d16}.bad{stroke:#6a3fc0}"
    ".unread{stroke:#ddd}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#262626}a{color:#8ab8ff}"
    "svg text{fill:#bbb}.grid{stroke:#333}.unread{stroke:#444}}";

/* Sorts a table by the column whose heading is clicked, and hides the rows whose text lacks what is typed. */
static const char script[] =
    "'use strict';for(const t of document.querySelectorAll('table.sort')){const rows=()=>[...t.rows].slice(1),"
    "key=(r,i)=>r.cells[i].dataset.n??r.cells[i].textContent;[...t.rows[0].cells].forEach((h,i)=>{let up=1;"
    "h.classList.add('s');h.onclick=()=>{rows().sort((a,b)=>up*((key(a,i)-key(b,i))||key(a,i).localeCompare(key(b,i)))"
    ").forEach(r=>t.tBodies[0].append(r));up=-up}});const f=document.querySelector('input[name=q]');"
    "if(f)f.oninput=()=>rows().forEach(r=>r.hidden=!r.textContent.includes(f.value))}";

/* Returns the source expression of a text in a policy: 'sha256-...'. Source: Content Security Policy Level 3, 2.3.1. */
static const char *hash_source(const char *text, struct arena *arena)
{
    struct sha256_ctx context;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&context);
    sha256_update(&context, strlen(text), (const uint8_t *)text);
    sha256_digest(&context, sizeof digest, digest);
    return arena_printf(arena, "'sha256-%s'", base64_encode(arena, digest, sizeof digest));
}

struct buffer *html_begin_n(struct answer *answer, const char *title, size_t length)
{
    struct buffer *out = &answer->text;
    answer_header(answer, "Content-Type", "text/html; charset=utf-8");
    answer_header(answer, "Content-Security-Policy",
                  "default-src 'none'; style-src %s; script-src %s; form-action 'self'; base-uri 'none'; "
                  "frame-ancestors 'none'",
                  hash_source(style, answer->arena), hash_source(script, answer->arena));
    answer_header(answer, "Referrer-Policy", "no-referrer");
    buffer_append_text(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">"
                            "<meta name=\"viewport\" content=\"width=device-width\"><title>");
    html_put_text_n(out, title, length);
    buffer_printf(out, "</title>\n<style>%s</style></head>\n<body>\n<h1>", style);
    html_put_text_n(out, title, length);
    buffer_append_text(out, "</h1>\n");
    return out;
}

struct buffer *html_begin(struct answer *answer, const char *title)
{
    return html_begin_n(answer, title, strlen(title));
}

void html_end(struct buffer *out)
{
    buffer_printf(out, "<script>%s</script>\n</body>\n</html>\n", script);
}

void html_put_text_n(struct buffer *out, const char *text, size_t length)
{
    size_t capacity = 4 * length + 1;
    char *shown = memory_alloc(capacity);
    text_printable(text, length, shown, capacity);
    for (const char *c = shown; *c != '\0'; c++)
        if (strchr("&<>\"'", *c) != NULL)
            buffer_printf(out, "&#%d;", *c);
        else
            buffer_append(out, c, 1);
    free(shown);
}

void html_put_text(struct buffer *out, const char *text)
{
    html_put_text_n(out, text, strlen(text));
}

void html_put_lines(struct buffer *out, const char *text, size_t length)
{
    buffer_append_text(out, "<pre>");
    for (const char *line = text; line < text + length;) {
        const char *end = memchr(line, '\n', (size_t)(text + length - line));
        end = end != NULL ? end : text + length;
        html_put_text_n(out, line, (size_t)(end - line));
        buffer_append_text(out, "\n");
        line = end + 1;
    }
    buffer_append_text(out, "</pre>");
}

void html_put_path(struct buffer *out, const char *path)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    for (const char *c = path; *c != '\0'; c++)
        if (strchr(plain, *c) != NULL)
            buffer_append(out, c, 1);
        else
            buffer_printf(out, "%%%02X", (unsigned char)*c);
}

void html_put_size(struct buffer *out, uint64_t size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    double value = (double)size;
    size_t unit = 0;
    for (; value >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1000;
    buffer_printf(out, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

void html_put_viewer_form(struct buffer *out, const char *root, const char *id)
{
    buffer_printf(out, "<form action=\"%sview/", root);
    html_put_path(out, id);
    buffer_append_text(out, "\"><button>Look at its tensors</button></form>\n");
}

double plot_step(double span, int most)
{
    static const double factors[] = {1, 2, 5};
    double power = pow(10, floor(log10(span / most)));
    for (int i = 0; i < 3; i++)
        if (span / (factors[i] * power) <= most)
            return factors[i] * power;
    return 10 * power;
}
