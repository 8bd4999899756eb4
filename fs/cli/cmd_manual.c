/* The man page, made from the tables of commands and options when wfs is built. */
#include "fs/cli/command.h"

#include <stdio.h>
#include <stdlib.h>

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
        print_roff_line("\\fB\\-\\-", flag->name,
                        flag->argument == NULL ? "\\fR"
                        : flag->needs_argument ? "\\fR=\\c"
                                               : "\\fR[=\\c");
        if (flag->argument != NULL)
            print_roff_line("\\fI", flag->argument, flag->needs_argument ? "\\fR" : "\\fR]");
        print_roff_line("", flag->help, "");
    }
    for (const struct example *example = command->examples; example->line != NULL; example++) {
        print_roff_line(".PP\n", example->meaning, ":\n.PP\n.RS 4\n.nf");
        print_roff_line("", example->line, "\n.fi\n.RE");
    }
}

/* Prints the first example of each command; the commands' sections have all examples. */
static void print_man_examples(void)
{
    puts(".SH EXAMPLES");
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if ((*command)->group == UNLISTED_COMMAND)
            continue;
        print_roff_line(".TP\n\\fB", (*command)->examples->line, "\\fR");
        print_roff_line("", (*command)->examples->meaning, "");
    }
}

/* The parts of the man page that come from no table. */
static const char rest_of_man[] =
    ".SH EXIT STATUS\n"
    ".TP\n0\nsuccess\n"
    ".TP\n1\nthe input is invalid or the system failed; for \\fBwfs diff\\fR and \\fBwfs verify\\fR: the inputs "
    "differ\n"
    ".TP\n2\nwfs was used incorrectly\n"
    ".TP\n3\nfor \\fBwfs verify\\fR: the file has the same values, and other bytes; for \\fBwfs cp\\fR with "
    "\\fB\\-\\-part\\fR or \\fB\\-\\-join\\fR: an I/O error, a full disk, or a server that does not "
    "answer: the same command may succeed later\n"
    ".TP\n4\nfor \\fBwfs verify\\fR: the file has other scales, and the codes that are the nearest for them\n"
    ".TP\n32\na mount failed, for \\fBmount.wfs\\fR as \\fBmount\\fR(8) runs it\n"
    ".PP\n\\fBwfs exec\\fR returns the exit status of the program, 128 + N if signal N ended it, 126 if it cannot be\n"
    "run, 127 if it does not exist.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBHF_HUB_CACHE\\fR, \\fBHUGGINGFACE_HUB_CACHE\\fR, \\fBHF_HOME\\fR, \\fBXDG_CACHE_HOME\\fR, \\fBHOME\\fR\n"
    "where to look for ORG/NAME, as in huggingface_hub; the default is \\fI~/.cache/huggingface/hub\\fR\n"
    ".TP\n\\fBHF_ENDPOINT\\fR, \\fBHF_TOKEN\\fR, \\fBHF_TOKEN_PATH\\fR, \\fBHF_HUB_OFFLINE\\fR\n"
    "the hub of hf:// sources, the token for it, and whether to use the network, as in huggingface_hub\n"
    ".TP\n\\fBCACHE_DIRECTORY\\fR, \\fBXDG_CACHE_HOME\\fR, \\fBHOME\\fR\n"
    "where fetched bytes are kept; the default is \\fI~/.cache/wfs\\fR\n"
    ".TP\n\\fBSSL_CERT_FILE\\fR, \\fBhttps_proxy\\fR, \\fBno_proxy\\fR\n"
    "certificates to trust, and proxies, for remote sources\n"
    ".TP\n\\fBNO_COLOR\\fR, \\fBTERM\\fR\nno colours if NO_COLOR is set, or TERM is unset or \"dumb\"\n"
    ".TP\n\\fBPATH\\fR\nwhere to look for fusermount3, and for the program that \\fBwfs exec\\fR runs\n"
    ".TP\n\\fBTMPDIR\\fR\nwhere \\fBwfs exec\\fR makes its mount point; the default is \\fI/tmp\\fR\n"
    ".TP\n\\fBWFS_CPU\\fR\nportable, or on x86-64 avx2 or avx512: use no faster instruction set; results do not "
    "change\n"
    ".SH FILES\n"
    ".TP\n\\fI/dev/fuse\\fR\nneeded by \\fBwfs mount\\fR and \\fBwfs exec\\fR only\n"
    ".TP\n\\fI/etc/fuse.conf\\fR\nthe line \"user_allow_other\" lets ordinary users give \\-o allow_other\n"
    ".TP\n\\fI/etc/wfs/NAME\\fR\nthe source and options of the units wfs@NAME and wfs\\-serve@NAME\n"
    ".TP\n\\fI/etc/fstab\\fR\nSOURCE MOUNTPOINT fuse.wfs defaults 0 0\n"
    ".TP\n\\fIMOUNTPOINT/metadata.json\\fR\nwhat a mount shows, what it leaves out, and why\n"
    ".TP\n\\fI~/.cache/wfs\\fR\nfetched bytes, and those that \\-o keep= keeps: \\fBwfs cache\\fR lists and removes "
    "them\n"
    ".SH NOTES\n"
    "Reads of 4 MiB or more with O_DIRECT are the fastest. If a read fails, the reader gets EIO; the reason goes to\n"
    "syslog, to standard error with \\-f or \\-v, or to the file of \\-o log=. A mount shows its sources as they were "
    "when\n"
    "it was made: a source that is deleted or replaced by a rename keeps being shown, and a source that is written to "
    "or\n"
    "truncated fails with EIO. Facts about tensors are extended attributes, \\fIuser.wfs.*\\fR.\n"
    ".SH BUGS\n"
    "A change to a source through a mapping, or from another machine, is noticed only when a file is read next.\n"
    "\\-o auto_unmount is libfuse's: fusermount3 can lose the race with the end of wfs and leave a dead mount, which\n"
    "\\fBwfs umount\\fR removes.\n"
    ".SH SEE ALSO\n\\fBwfs\\fR(3), \\fBfusermount3\\fR(1), \\fBmount\\fR(8), \\fBfstab\\fR(5), \\fBgetfattr\\fR(1)";

static void print_man(void)
{
    printf(".TH WFS 1 \"\" \"wfs %s\" \"User Commands\"\n", WFS_VERSION);
    puts(".SH NAME\nwfs \\- show any model checkpoint as files\n.SH SYNOPSIS\n.nf");
    for (const struct command *const *command = commands; *command != NULL; command++)
        if ((*command)->group != UNLISTED_COMMAND) {
            printf("\\fBwfs %s\\fR ", (*command)->name);
            print_roff_line("", (*command)->usage, "");
        }
    puts(
        ".fi\n.SH DESCRIPTION\nwfs shows each tensor of a checkpoint as a directory of files: its raw bytes, F32, F16, "
        "Q4_0 "
        "and other types, and numpy arrays.\n\\fImodel.gguf\\fR and the files in \\fIgguf/\\fR are byte\\-identical to "
        "those of llama.cpp's converter and llama\\-quantize.\nwfs computes all files when they are read.\n.PP\n"
        "SOURCE is a file, a directory with a model or with a pipeline of several, ORG/NAME[@REV] of a model in the "
        "local hub cache, hf://ORG/NAME, https://HOST/FOLDER/, s3://BUCKET/PREFIX, or a recipe of mergekit.");
    puts(".SH COMMANDS\nAll commands take \\fB\\-h\\fR, \\fB\\-\\-help\\fR, and \\fB\\-q\\fR, \\fB\\-\\-quiet\\fR: no "
         "notes and no progress (\\fB\\-q\\fR of diff is another flag).");
    for (const struct command *const *command = commands; *command != NULL; command++)
        if ((*command)->group != UNLISTED_COMMAND)
            print_man_command(*command);
    puts(".SH OPTIONS\n\\-o takes options separated by commas; write a comma in a value as \"\\e,\".");
    for (const struct option_row *row = option_rows; row->name != NULL; row++) {
        fputs(".TP\n\\fB", stdout);
        print_roff(row->name);
        print_roff_line(row->argument != NULL ? "\\fR=\\fI" : "", row->argument != NULL ? row->argument : "", "\\fR");
        print_roff_line("", row->help, row->group == MOUNT_OPTION ? " (mounts only)" : "");
    }
    print_man_examples();
    puts(rest_of_man);
}

static int run(const struct invocation *invocation)
{
    print_man();
    return finish_output(EXIT_SUCCESS);
}

const struct command manual_command = {
    .name = "manual",
    .usage = "",
    .summary = "Print the man page",
    .examples = (const struct example[]){{"wfs manual | man -l -", "read the man page"}, {0}},
    .max_arguments = 0,
    .run = run,
};
