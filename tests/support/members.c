/* The program of a folder's tests. Each of them is called by its name, which is that of a link to this program:
 * bin/test_base_pool is bin/tests_base. */
#include <stdio.h>
#include <string.h>

#include "support/member.h"

#define MEMBER_OF_PROGRAM(name) extern const test_member record_of_##name;
#include MEMBERS
#undef MEMBER_OF_PROGRAM

static const struct {
    const char *name;
    const test_member *record;
} members[] = {
#define MEMBER_OF_PROGRAM(name) {#name, &record_of_##name},
#include MEMBERS
#undef MEMBER_OF_PROGRAM
};

/* test_base_pool_on_model is the same test in a program whose tiles are a model's (tests/tiles). */
static int is_name_of(const char *name, const char *member) {
    const size_t length = strlen(member);
    return strncmp(name, member, length) == 0 && (!name[length] || strcmp(name + length, "_on_model") == 0);
}

int main(int count, char **arguments) {
    const char *slash = strrchr(arguments[0], '/'), *name = slash ? slash + 1 : arguments[0];
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const test_member *record = members[i].record;
        if (!is_name_of(name, members[i].name)) continue;
        return record->plain ? record->plain() : record->with_arguments(count, arguments);
    }
    fprintf(stderr, "%s is called by the name of one of its tests:\n", name);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) fprintf(stderr, "    %s\n", members[i].name);
    return 2;
}
