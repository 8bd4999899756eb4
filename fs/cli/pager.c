#include "fs/cli/pager.h"

#include "fs/cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static FILE *pager;
static unsigned columns; /* 0: no pager */

void pager_begin(void)
{
    if (!isatty(STDOUT_FILENO))
        return;
    columns = terminal_columns(STDOUT_FILENO);
    setenv("LESS", "FRX", 0); /* F: end if a screen holds everything; X: leave it there */
    pager = popen("pager=${PAGER:-less}; command -v ${pager%% *} >/dev/null || pager=cat; exec $pager", "w");
    if (pager != NULL)
        dup2(fileno(pager), STDOUT_FILENO);
}

unsigned pager_columns(void)
{
    return columns != 0 ? columns : terminal_columns(STDOUT_FILENO);
}

void pager_end(void)
{
    if (pager == NULL)
        return;
    close(STDOUT_FILENO); /* the pager reads to the end of both */
    pclose(pager);
    pager = NULL;
}
