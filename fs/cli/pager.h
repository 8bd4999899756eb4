/* A pager for long help on a terminal, as git and man use one. */
#pragma once

/* Sends what is written to stdout through $PAGER, or less, which ends at once if a screen holds everything. Has no
 * effect if stdout is no terminal or there is no such program. */
void pager_begin(void);

/* Returns the columns of the terminal that stdout is, or that it was before the pager. */
unsigned pager_columns(void);

/* Waits until the user has left the pager. Call it after stdout was flushed, if pager_begin() was called. */
void pager_end(void);
