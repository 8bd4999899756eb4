#include "fs/cli/terminal.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { USUAL_COLUMNS = 80, FEWEST_COLUMNS = 20, LONGEST_WORD = 1024 };

unsigned terminal_columns(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return USUAL_COLUMNS;
    return size.ws_col < FEWEST_COLUMNS ? FEWEST_COLUMNS : size.ws_col;
}

void print_wrapped(const char *text, unsigned column, unsigned indent, unsigned columns)
{
    bool is_first = true;
    for (text += strspn(text, " \n"); *text != '\0'; text += strspn(text, " \n")) {
        char word[LONGEST_WORD];
        size_t length = strcspn(text, " \n");
        text_printable(text, length, word, sizeof word);
        unsigned width = (unsigned)text_columns(word);
        if (!is_first && columns != 0 && column + 1 + width > columns) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (!is_first) {
            putchar(' ');
            column++;
        }
        fputs(word, stdout);
        column += width;
        is_first = false;
        text += length;
    }
    putchar('\n');
}

void print_name(const char *name)
{
    if (isatty(STDOUT_FILENO))
        text_put(name, stdout);
    else
        fputs(name, stdout);
}

enum json_letters stdout_letters(void)
{
    return isatty(STDOUT_FILENO) ? JSON_ASCII : JSON_UTF8;
}

bool wants_colour(const char *when)
{
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (when != NULL && strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    return isatty(STDOUT_FILENO) && (no_colour == NULL || *no_colour == '\0') && terminal != NULL &&
           strcmp(terminal, "dumb") != 0;
}

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
