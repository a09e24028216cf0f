/* The completion script for bash. Bash also splits words at '=': "--set optimizer.lr=1" is four words. */
#include <string.h>

#include "cli/shell/completion.h"

static const char head[] = "# Completes anneal in bash; made by 'anneal completion bash'.\n"
                           "_anneal() {\n"
                           "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
                           "    local command=${COMP_WORDS[1]} first=2 words= files= keys=\n"
                           "    if [[ $current == = ]]; then\n"
                           "        current=\n"
                           "        [[ $previous == -* ]] || previous+==\n" /* a key */
                           "    elif [[ $previous == = ]]; then\n"
                           "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
                           "        [[ $previous == -* ]] || previous+==\n"
                           "    fi\n";

static const char tail[] = "    if [[ -n $keys ]]; then\n"
                           "        mapfile -t COMPREPLY < <(compgen -S = -W \"$words\" -- \"$current\")\n"
                           "        compopt -o nospace 2>/dev/null\n"
                           "        return\n"
                           "    fi\n"
                           "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
                           "    if [[ -n $files ]]; then\n"
                           "        local names\n"
                           "        mapfile -t names < <(compgen -f -- \"$current\")\n"
                           "        COMPREPLY+=(\"${names[@]}\")\n"
                           "        compopt -o filenames 2>/dev/null\n"
                           "    fi\n"
                           "}\n"
                           "complete -F _anneal anneal\n";

static void print_values(const completion_values *values) {
    if (*values->words) printf(" words='%s'", values->words);
    if (values->files) printf(" files=1");
    if (values->keys) printf(" words=$all_keys keys=1");
    printf(" ;;\n");
}

static void print_key(void *user, const completion_key *key) {
    (void)user;
    printf("%s ", key->path);
}

static void print_key_values(void *user, const completion_key *key) {
    (void)user;
    if (*key->values) printf("    *' %s=') words='%s' ;;\n", key->path, key->values);
    if (key->is_path) printf("    *' %s=') files=1 ;;\n", key->path);
}

static void print_commands(void) {
    const char *second;
    printf("    case $COMP_CWORD:$command in\n    1:*) words='");
    for (int i = 0; cli_commands[i]; i++)
        if (completion_is_new(i))
            printf("%.*s ", completion_first_word(cli_commands[i], &second), cli_commands[i]->name);
    printf("--help --version' ;;\n");
    for (int i = 0; cli_commands[i]; i++) {
        const int length = completion_first_word(cli_commands[i], &second);
        if (!second || !completion_is_new(i)) continue;
        printf("    2:%.*s) words='", length, cli_commands[i]->name);
        completion_second_words(i, " ");
        printf(" --help' ;;\n    *:%.*s) command+=\" ${COMP_WORDS[2]}\" first=3 ;;\n", length, cli_commands[i]->name);
    }
    printf("    esac\n");
}

static void print_options(void) {
    for (int i = 0; cli_commands[i]; i++)
        for (const cli_option *o = cli_commands[i]->options; o && o->name; o++) {
            if (!o->argument) continue;
            const completion_values values = completion_of(o->argument);
            printf("    '%s --%s')", cli_commands[i]->name, o->name);
            print_values(&values);
        }
}

static void print_rest(void) {
    for (int i = 0; cli_commands[i]; i++) {
        const completion_values values = completion_of(cli_commands[i]->argument);
        printf("    '%s -'*)", cli_commands[i]->name);
        printf(" words='");
        for (const cli_option *o = cli_commands[i]->options; o && o->name; o++) printf("--%s ", o->name);
        printf("--verbose --help' ;;\n    '%s '*)", cli_commands[i]->name);
        print_values(&values);
    }
}

void completion_bash(void) {
    fputs(head, stdout);
    printf("    local all_keys='");
    completion_each_key(print_key, NULL);
    printf("'\n");
    print_commands();
    printf("    if ((COMP_CWORD >= first)); then\n    case \"$command $previous\" in\n");
    print_options();
    completion_each_key(print_key_values, NULL);
    printf("    *=) ;;\n    *) case \"$command $current\" in\n");
    print_rest();
    printf("    esac ;;\n    esac\n    fi\n");
    fputs(tail, stdout);
}
