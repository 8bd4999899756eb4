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
        print_roff_line("\\fB\\-\\-", flag->name, "\\fR");
        print_roff_line("", flag->help, "");
    }
    for (const struct example *example = command->examples; example->line != NULL; example++) {
        print_roff_line(".PP\n", example->meaning, ":\n.PP\n.RS 4\n.nf");
        print_roff_line("", example->line, "\n.fi\n.RE");
    }
}

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
         "SOURCE is a file, a directory with a model, or ORG/NAME of a model in the local hub cache.");
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
    puts(".SH EXIT STATUS\n0 when all went well, 1 when the input or the system was at fault, 2 when wfs was called "
         "wrongly. "
         "\\fBwfs exec\\fR returns what\n"
         "the program returned; as a helper of \\fBmount\\fR(8), wfs returns 32 when a mount failed.");
    puts(".SH NOTES\nA program that opens a mounted file with O_DIRECT and reads 4 MiB and more at a time gets it "
         "fastest. A "
         "read that fails is EIO,\n"
         "and its reason goes to syslog, or to stderr with \\-f. Files are as they were when wfs opened the source: "
         "what is "
         "replaced by a\n"
         "rename or deleted is served as before, what is cut off is EIO. Facts about tensors are extended attributes, "
         "\\fIuser.wfs.*\\fR.");
    puts(".SH FILES\n.TP\n\\fI/etc/fuse.conf\\fR\nthe line \"user_allow_other\" lets ordinary users use \\-o "
         "allow_other\n"
         ".SH SEE ALSO\n\\fBfusermount3\\fR(1), \\fBmount\\fR(8), \\fBgetfattr\\fR(1)");
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
