#include "fs/mount/device.h"

#include "base/buffer.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* libfuse's last message, for the error of a mount that fails. While serving, libfuse complains about reads that got
 * EIO, which fuse_ops.c reports better. */
static char last_words[256];

static void keep_words(enum fuse_log_level level, const char *format, va_list arguments)
{
    vsnprintf(last_words, sizeof last_words, text_starts_with(format, "fuse: ") ? format + 6 : format, arguments);
    last_words[strcspn(last_words, "\n")] = '\0';
}

void device_keep_words(void)
{
    fuse_set_log_func(keep_words);
}

const char *device_words(void)
{
    return last_words;
}

void device_forget_words(void)
{
    *last_words = '\0';
}

/* Appends text to an option, with commas and backslashes escaped for libfuse. */
static void append_escaped(struct buffer *options, const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        buffer_printf(options, "%s%c", *c == ',' || *c == '\\' ? "\\" : "", *c);
}

/* Appends the labels for a kernel that knows them; others refuse them, and mount(8) leaves them out, too. */
static void append_labels(struct buffer *options, const struct labels *labels)
{
    const struct {
        const char *name, *label;
    } rows[] = {
        {"context", labels->context},
        {"fscontext", labels->fscontext},
        {"defcontext", labels->defcontext},
        {"rootcontext", labels->rootcontext},
    };
    bool has_selinux = access("/sys/fs/selinux/enforce", F_OK) == 0;
    for (size_t i = 0; has_selinux && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].label != NULL) {
            buffer_printf(options, ",%s=\"", rows[i].name);
            append_escaped(options, rows[i].label);
            buffer_append_text(options, "\"");
        }
}

char *device_options(const struct session_options *options)
{
    struct buffer text = {0};
    buffer_append_text(&text, options->allow_rdwr ? "rw" : "ro");
    buffer_append_text(&text, ",nosuid,nodev,default_permissions,subtype=wfs,fsname=");
    append_escaped(&text, options->source);
    buffer_printf(&text, "%s%s%s", options->allow_other ? ",allow_other" : "", options->noexec ? ",noexec" : "",
                  options->auto_unmount ? ",auto_unmount" : "");
    append_labels(&text, &options->labels);
    buffer_append(&text, "", 1);
    return (char *)text.bytes;
}

int device_mount(const char *mountpoint, const struct session_options *options, struct error *error)
{
    static const struct fuse_lowlevel_ops none;
    device_keep_words();
    char *text = device_options(options), *arguments[] = {"wfs", "-o", text, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, arguments);
    struct fuse_session *fuse = fuse_session_new(&args, &none, sizeof none, NULL);
    fuse_opt_free_args(&args);
    free(text);
    char reason[FUSERMOUNT_WORDS] = "";
    int device = -1;
    if (fuse != NULL && fusermount_mount(fuse, mountpoint, reason))
        device = fcntl(fuse_session_fd(fuse), F_DUPFD_CLOEXEC, 0);
    if (device < 0)
        obstacle_explain(mountpoint, *reason ? reason : *last_words ? last_words : "libfuse gives no reason", error);
    if (fuse != NULL)
        fuse_session_destroy(fuse);
    return device;
}
