/* A pager for long help on a terminal, as git and man use one. */
#pragma once

/* Sends what is written to stdout through $PAGER, or less, which ends at once if a screen holds everything. Has no
 * effect if stdout is no terminal or there is no such program. */
void pager_begin(void);

/* Waits until the user has left the pager. Call it after stdout was flushed, if pager_begin() was called. */
void pager_end(void);
