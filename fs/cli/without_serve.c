/* What `wfs serve` does in a build without libmicrohttpd. */
#include "base/report.h"
#include "fs/cli/command.h"

static int refuse(const struct invocation *invocation)
{
    report("serve: this wfs was built without the server; 'wfs ls', 'wfs cat' and 'wfs cp' need none");
    return EXIT_MISUSE;
}

/* Takes any operands, so that the reason above is what is said. */
const struct command serve_command = {
    .name = "serve",
    .usage = "...",
    .summary = "not in this build",
    .max_arguments = SIZE_MAX,
    .takes_options = true,
    .run = refuse,
};
