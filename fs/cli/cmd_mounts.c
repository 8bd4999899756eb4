#include "fs/cli/command.h"
#include "fs/cli/json_page.h"
#include "fs/cli/terminal.h"
#include "fs/mount/mountpoint.h"

#include <stdio.h>
#include <stdlib.h>

enum { FLAG_JSON, MOUNTS_SCHEMA = 1 };

static const char *const state_names[] = {
    [MOUNT_SERVED] = "served", [MOUNT_STOPPED] = "stopped", [MOUNT_DEAD] = "dead"};

static void print_mount(void *unused, const char *path, const char *source)
{
    struct mount_server server = mountpoint_server(path);
    print_name(source);
    fputs(" on ", stdout);
    print_name(path);
    if (server.pid != 0)
        printf(", process %d", (int)server.pid);
    if (server.state == MOUNT_STOPPED)
        printf(", stopped; 'kill -CONT %d' resumes it", (int)server.pid);
    else if (server.state == MOUNT_DEAD)
        fputs(", dead; 'wfs umount' removes it", stdout);
    putchar('\n');
}

static void put_mount(void *context, const char *path, const char *source)
{
    struct json_writer *writer = context;
    struct mount_server server = mountpoint_server(path);
    char pid[16] = "null";
    if (server.pid != 0)
        snprintf(pid, sizeof pid, "%d", (int)server.pid);
    json_put_template(writer, "\n{'mountpoint': %s, 'source': %s, 'pid': %r, 'state': %s}", path, source, pid,
                      state_names[server.state]);
}

static void print_json(void)
{
    struct buffer out = {0};
    struct json_writer writer = {.out = &out, .letters = stdout_letters(), .compact = true};
    json_put_template(&writer, "{'schema': %u, 'mounts': [", (uint64_t)MOUNTS_SCHEMA);
    mountpoint_each(put_mount, &writer);
    json_put_template(&writer, "]}");
    print_json_line(&out);
}

static int run(const struct invocation *invocation)
{
    if (invocation->flags[FLAG_JSON])
        print_json();
    else
        mountpoint_each(print_mount, NULL);
    return finish_output(EXIT_SUCCESS);
}

const struct command mounts_command = {
    .name = "mounts",
    .usage = "",
    .summary = "List the mounts of wfs: source, mount point and process",
    .text =
        "Prints one line for each mount. You see the mounts of your own processes; root sees all of them. "
        "With --json\n"
        "each mount has `mountpoint`, `source`, `pid` (a number or null) and `state`: served, stopped (SIGSTOP), or "
        "dead "
        "(its wfs was\n"
        "killed).",
    .flags = (const struct flag[]){{0, "json", "print JSON for scripts"}, {0}},
    .examples =
        (const struct example[]){
            {"wfs mounts", "list mounted models with their processes"},
            {"wfs mounts --json | jq -r '.mounts[].mountpoint'", "list only the mount points"},
            {0},
        },
    .min_arguments = 0,
    .max_arguments = 0,
    .enters_sandbox_itself = true,
    .run = run,
};
