/* The man page, from the tables of commands and options: made when wfs is built. */
#include "fs/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_roff(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text != '\0'; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void print_roff_line(const char *before, const char *text, const char *after)
{
    fputs(before, stdout);
    print_roff(text);
    puts(after);
}

static void print_man_command(const struct command *command)
{
    printf(".SS \"wfs %s%s%s ", command->name, command->flags != NULL ? " [FLAGS]" : "",
           command->takes_options ? " [\\-o OPTION,...]" : "");
    print_roff_line("", command->usage, "\"");
    print_roff_line("", command->summary, ".");
    if (command->text != NULL)
        print_roff_line("", command->text, "");
    for (const struct flag *flag = command->flags; flag != NULL && flag->name != NULL; flag++) {
        puts(".TP");
        if (flag->letter != 0)
            printf("\\fB\\-%c\\fR, ", flag->letter);
        print_roff_line("\\fB\\-\\-", flag->name, flag->argument != NULL ? "\\fR[=\\c" : "\\fR");
        if (flag->argument != NULL)
            print_roff_line("\\fI", flag->argument, "\\fR]");
        print_roff_line("", flag->help, "");
    }
    for (const struct example *example = command->examples; example->line != NULL; example++) {
        print_roff_line(".PP\n", example->meaning, ":\n.PP\n.RS 4\n.nf");
        print_roff_line("", example->line, "\n.fi\n.RE");
    }
}

/* The first example of each command; the others are beside it. */
static void print_man_examples(void)
{
    puts(".SH EXAMPLES");
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if ((*command)->hidden)
            continue;
        print_roff_line(".TP\n\\fB", (*command)->examples->line, "\\fR");
        print_roff_line("", (*command)->examples->meaning, "");
    }
}

/* What no table says. */
static const char rest_of_man[] =
    ".SH EXIT STATUS\n"
    ".TP\n0\nall went well\n"
    ".TP\n1\nthe input or the system was at fault; of \\fBwfs diff\\fR and \\fBwfs verify\\fR: there are differences\n"
    ".TP\n2\nwfs was called wrongly\n"
    ".TP\n32\na mount failed, of \\fBmount.wfs\\fR as \\fBmount\\fR(8) runs it\n"
    ".PP\n\\fBwfs exec\\fR returns what the program returned, 128 and the number of the signal that ended it, 126 "
    "where\n"
    "it cannot be run, 127 where it is not there.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBHF_HUB_CACHE\\fR, \\fBHUGGINGFACE_HUB_CACHE\\fR, \\fBHF_HOME\\fR, \\fBXDG_CACHE_HOME\\fR\n"
    "where the hub cache is that ORG/NAME is looked for in, as huggingface_hub finds it;\n"
    "\\fI~/.cache/huggingface/hub\\fR without them\n"
    ".TP\n\\fBNO_COLOR\\fR, \\fBTERM\\fR\nno colours where the first is set or the second is \"dumb\"\n"
    ".TP\n\\fBTMPDIR\\fR\nwhere \\fBwfs exec\\fR makes its mount point, instead of \\fI/tmp\\fR\n"
    ".TP\n\\fBWFS_CPU\\fR\nportable, avx2 or avx512: no faster instructions than these. The results are the same\n"
    ".SH FILES\n"
    ".TP\n\\fI/dev/fuse\\fR\nwhat a mount needs; \\fBwfs ls\\fR, \\fBcat\\fR, \\fBcp\\fR, \\fBinfo\\fR do not\n"
    ".TP\n\\fI/etc/fuse.conf\\fR\nthe line \"user_allow_other\" lets ordinary users use \\-o allow_other\n"
    ".TP\n\\fI/etc/fstab\\fR\nSOURCE MOUNTPOINT fuse.wfs defaults 0 0\n"
    ".TP\n\\fIMOUNTPOINT/metadata.json\\fR\nof a mount: what it shows, what it does not, and why\n"
    ".SH NOTES\n"
    "A program that opens a mounted file with O_DIRECT and reads 4 MiB and more at a time gets it fastest. A read "
    "that\n"
    "fails is EIO, and its reason goes to syslog, to stderr with \\-f or \\-v, and to the file of \\-o log=. Files are "
    "as\n"
    "they were when wfs opened the source: what is replaced by a rename or deleted is served as before, what is "
    "written\n"
    "to or cut is EIO. Facts about tensors are extended attributes, \\fIuser.wfs.*\\fR.\n"
    ".SH BUGS\n"
    "Who changes a source through a mapping, or from another machine, is noticed when a file is next read, not "
    "before.\n"
    "\\-o auto_unmount is libfuse's: fusermount3 may lose the race with the end of wfs and leave a dead mount, which\n"
    "\\fBwfs umount\\fR takes away.\n"
    ".SH SEE ALSO\n\\fBfusermount3\\fR(1), \\fBmount\\fR(8), \\fBgetfattr\\fR(1)";

static void print_man(void)
{
    printf(".TH WFS 1 \"\" \"wfs %s\" \"User Commands\"\n", WFS_VERSION);
    puts(".SH NAME\nwfs \\- show any model checkpoint as files\n.SH SYNOPSIS\n.nf");
    for (const struct command *const *command = commands; *command != NULL; command++)
        if (!(*command)->hidden) {
            printf("\\fBwfs %s\\fR ", (*command)->name);
            print_roff_line("", (*command)->usage, "");
        }
    puts(".fi\n.SH DESCRIPTION\nEach tensor of a checkpoint is a directory of files: its raw bytes, the same as F32, "
         "F16, Q4_0 "
         "and so on, and as numpy\n"
         "arrays. \\fImodel.gguf\\fR and the files in \\fIgguf/\\fR are what llama.cpp's converter and "
         "llama\\-quantize would "
         "have written. All\n"
         "of it is computed when it is read; nothing is stored.\n.PP\n"
         "SOURCE is a file, a directory with a model or with a pipeline of several, or ORG/NAME of a model in the "
         "local hub cache.");
    puts(".SH COMMANDS");
    for (const struct command *const *command = commands; *command != NULL; command++)
        if (!(*command)->hidden)
            print_man_command(*command);
    puts(".SH OPTIONS\n\\-o takes words separated by commas; a comma in a value is written \"\\e,\".");
    for (const struct option_row *row = option_rows; row->name != NULL; row++) {
        fputs(".TP\n\\fB", stdout);
        print_roff(row->name);
        print_roff_line(row->argument != NULL ? "\\fR=\\fI" : "", row->argument != NULL ? row->argument : "", "\\fR");
        print_roff_line("", row->help, row->for_mounts ? " (mounts only)" : "");
    }
    print_man_examples();
    puts(rest_of_man);
}

static int run(const struct invocation *invocation)
{
    (void)invocation;
    print_man();
    return finish_output(EXIT_SUCCESS);
}

const struct command manual_command = {
    .name = "manual",
    .usage = "",
    .summary = "Print the man page",
    .examples = (const struct example[]){{"wfs manual | man -l -", "reads it"}, {0}},
    .max_arguments = 0,
    .hidden = true,
    .run = run,
};
