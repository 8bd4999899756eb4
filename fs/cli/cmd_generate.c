/* The man page and the completions of shells, from the tables of commands and options: run when wfs is built. */
#include "base/report.h"
#include "fs/cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Within single quotes of bash and zsh. */
static void print_quoted(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\'", stdout);
        putchar(*text);
    }
}

/* man */

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

/* bash */

static void print_bash(void)
{
    puts("_wfs()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} flags words\n    "
         "COMPREPLY=()");
    fputs("    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W '", stdout);
    for (const struct command *const *command = commands; *command != NULL; command++)
        if (!(*command)->hidden)
            printf("%s ", (*command)->name);
    puts("--help --version' -- \"$cur\"))\n        return\n    fi");
    fputs("    if [ \"$prev\" = -o ]; then\n        words='", stdout);
    for (const struct option_row *row = option_rows; row->name != NULL; row++)
        printf("%s%s ", row->name, row->argument != NULL ? "=" : "");
    puts("'\n        local before=${cur%\"${cur##*,}\"}\n        COMPREPLY=($(compgen -P \"$before\" -W \"$words\" -- "
         "\"${cur##*,}\"))\n"
         "        compopt -o nospace\n        return\n    fi");
    puts("    case ${COMP_WORDS[1]} in");
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if ((*command)->hidden)
            continue;
        printf("    %s) flags='--help%s", (*command)->name, (*command)->takes_options ? " -o" : "");
        for (const struct flag *flag = (*command)->flags; flag != NULL && flag->name != NULL; flag++) {
            if (flag->letter != 0)
                printf(" -%c", flag->letter);
            printf(" --%s", flag->name);
        }
        puts("' ;;");
    }
    puts("    esac\n    [[ $cur == -* ]] && COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n}\ncomplete -o default "
         "-F _wfs wfs");
}

/* zsh */

static void print_zsh_help(const char *help)
{
    for (; *help != '\0'; help++) {
        if (strchr("[]:\\", *help) != NULL)
            putchar('\\');
        print_quoted((char[]){*help, '\0'});
    }
}

static void print_zsh_flags(const struct command *command)
{
    for (const struct flag *flag = command->flags; flag != NULL && flag->name != NULL; flag++) {
        fputs(" '", stdout);
        if (flag->letter != 0)
            printf("(-%c --%s)'{-%c,--%s}'[", flag->letter, flag->name, flag->letter, flag->name);
        else
            printf("--%s[", flag->name);
        print_zsh_help(flag->help);
        fputs("]'", stdout);
    }
}

static void print_zsh(void)
{
    puts("#compdef wfs\n\n_wfs_options() {\n    _values -s , option \\");
    for (const struct option_row *row = option_rows; row->name != NULL; row++) {
        printf("        '%s[", row->name);
        print_zsh_help(row->help);
        printf("]%s%s' \\\n", row->argument != NULL ? ":" : "", row->argument != NULL ? row->argument : "");
    }
    puts("        && return\n}\n\n_wfs() {\n    local state line\n    local -a commands=(");
    for (const struct command *const *command = commands; *command != NULL; command++)
        if (!(*command)->hidden) {
            printf("        '%s:", (*command)->name);
            print_zsh_help((*command)->summary);
            puts("'");
        }
    puts("    )\n    _arguments -C '(- *)--help[what wfs can do]' '(- *)--version[which wfs this is]' "
         "'1:command:->command' "
         "'*::argument:->argument'\n"
         "    case $state in\n    command) _describe command commands ;;\n    argument)\n        case $words[1] in");
    for (const struct command *const *command = commands; *command != NULL; command++) {
        if ((*command)->hidden)
            continue;
        printf("        %s) _arguments '(- *)--help[more about it]'", (*command)->name);
        if ((*command)->takes_options)
            fputs(" '*-o[options]:option:_wfs_options'", stdout);
        print_zsh_flags(*command);
        puts(" '*:file:_files' ;;");
    }
    puts("        esac ;;\n    esac\n}\n\n_wfs \"$@\"");
}

/* fish */

static void print_fish_quoted(const char *text)
{
    putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void print_fish_help(const char *help)
{
    fputs(" -d ", stdout);
    print_fish_quoted(help);
    putchar('\n');
}

static void print_fish(void)
{
    fputs("function __wfs_options\n    printf '%s\\t%s\\n'", stdout);
    for (const struct option_row *row = option_rows; row->name != NULL; row++) {
        printf(" %s%s ", row->name, row->argument != NULL ? "=" : "");
        print_fish_quoted(row->help);
    }
    puts("\nend\ncomplete -c wfs -n __fish_use_subcommand -f -l help -d 'what wfs can do'\n"
         "complete -c wfs -n __fish_use_subcommand -f -l version -d 'which wfs this is'");
    for (const struct command *const *command = commands; *command != NULL; command++) {
        const char *name = (*command)->name;
        if ((*command)->hidden)
            continue;
        printf("complete -c wfs -n __fish_use_subcommand -f -a %s", name);
        print_fish_help((*command)->summary);
        printf("complete -c wfs -n '__fish_seen_subcommand_from %s' -l help -d 'more about it'\n", name);
        if ((*command)->takes_options)
            printf("complete -c wfs -n '__fish_seen_subcommand_from %s' -s o -x -a '(__wfs_options)'\n", name);
        for (const struct flag *flag = (*command)->flags; flag != NULL && flag->name != NULL; flag++) {
            printf("complete -c wfs -n '__fish_seen_subcommand_from %s' -l %s", name, flag->name);
            if (flag->letter != 0)
                printf(" -s %c", flag->letter);
            print_fish_help(flag->help);
        }
    }
}

static int run(const struct invocation *invocation)
{
    static const struct {
        const char *what;
        void (*print)(void);
    } kinds[] = {{"man", print_man}, {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(invocation->arguments[0], kinds[i].what) == 0) {
            kinds[i].print();
            return finish_output(EXIT_SUCCESS);
        }
    report("generate: there is no '%s'", invocation->arguments[0]);
    return EXIT_MISUSE;
}

const struct command generate_command = {
    .name = "generate",
    .usage = "man|bash|zsh|fish",
    .summary = "Print the man page or a shell's completions",
    .examples = (const struct example[]){{"wfs generate man | man -l -", "the man page"}, {0}},
    .min_arguments = 1,
    .max_arguments = 1,
    .hidden = true,
    .run = run,
};
