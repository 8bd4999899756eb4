#include "base/sandbox.h"
#include "fs/cli/command.h"
#include "fs/cli/info/json_page.h"
#include "fs/cli/terminal.h"
#include "fs/mount/mountpoint.h"
#include "fs/mount/processes.h"

#include <stdio.h>
#include <stdlib.h>

enum { FLAG_JSON, MOUNTS_SCHEMA = 1 };

static const char *const state_names[] = {
    [MOUNT_SERVED] = "served", [MOUNT_STOPPED] = "stopped", [MOUNT_DEAD] = "dead"};

/* Prints which layers of the sandbox bind a server, and what they leave to it. */
static void print_sandbox(pid_t server)
{
    struct confinement confinement;
    if (server == 0 || !confinement_of(server, &confinement))
        return;
    printf("  sandbox: privileges %s, system calls %s (seccomp), paths %s (Landlock); %s; %s\n",
           confinement.layers & SANDBOX_PRIVILEGES ? "dropped" : "KEPT",
           confinement.layers & SANDBOX_CALLS ? "filtered" : "NOT FILTERED",
           confinement.layers & SANDBOX_PATHS ? "restricted" : "NOT RESTRICTED",
           confinement.network ? "connects to servers" : "no network",
           confinement.opens_all ? "opens any path (follow-links)" : "opens what its sources and options name");
}

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
    print_sandbox(server.pid);
}

/* Returns the member `sandbox` of a mount, in `text`. */
static const char *sandbox_json(pid_t server, char text[160])
{
    static const char *const truths[] = {"false", "true"};
    struct confinement confinement;
    if (server == 0 || !confinement_of(server, &confinement))
        return "null";
    snprintf(text, 160,
             "{\"privileges_dropped\":%s,\"calls_filtered\":%s,\"paths_restricted\":%s,\"network\":%s,"
             "\"opens_any_path\":%s}",
             truths[(confinement.layers & SANDBOX_PRIVILEGES) != 0], truths[(confinement.layers & SANDBOX_CALLS) != 0],
             truths[(confinement.layers & SANDBOX_PATHS) != 0], truths[confinement.network],
             truths[confinement.opens_all]);
    return text;
}

static void put_mount(void *context, const char *path, const char *source)
{
    struct json_writer *writer = context;
    struct mount_server server = mountpoint_server(path);
    char pid[16] = "null", sandbox[160];
    if (server.pid != 0)
        snprintf(pid, sizeof pid, "%d", (int)server.pid);
    json_put_template(writer, "\n{'mountpoint': %s, 'source': %s, 'pid': %r, 'state': %s, 'sandbox': %r}", path, source,
                      pid, state_names[server.state], sandbox_json(server.pid, sandbox));
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
    .group = MOUNT_COMMAND,
    .text =
        "Prints a line for each mount, and below it what the sandbox leaves to its server. You see the mounts of your "
        "own\n"
        "processes; root sees all of them. With --json each mount has `mountpoint`, `source`, `pid` (a number or "
        "null),\n"
        "`state`: served, stopped (SIGSTOP), or dead (its wfs was killed), and `sandbox` (an object, or null if "
        "unknown):\n"
        "`privileges_dropped`, `calls_filtered` (seccomp), `paths_restricted` (Landlock), `network` (it connects to\n"
        "servers), `opens_any_path` (-o follow-links).",
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
