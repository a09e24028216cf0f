/* Included before anything else by a test_*.c that shares a program with others of its folder: its main gets the name
 * of the test, and a record for the table of members.c. */
#ifndef AN_TESTS_SUPPORT_MEMBER_H
#define AN_TESTS_SUPPORT_MEMBER_H

typedef struct {
    int (*plain)(void); /* one of the two, as the test has written it */
    int (*with_arguments)(int count, char **arguments);
} test_member;

#endif

#ifdef MEMBER
#define MEMBER_JOINED(a, b) a##b
#define MEMBER_NAMED(prefix, name) MEMBER_JOINED(prefix, name)
#define MEMBER_MAIN MEMBER_NAMED(main_of_, MEMBER)
#define MEMBER_RECORD MEMBER_NAMED(record_of_, MEMBER)
/* clang-format off */
#define MEMBER_IF(type) _Generic(MEMBER_MAIN, type: MEMBER_MAIN, default: 0)
/* clang-format on */
#define main(...)                                                                                   \
    MEMBER_MAIN(__VA_ARGS__);                                                                       \
    extern const test_member MEMBER_RECORD;                                                         \
    const test_member MEMBER_RECORD = {MEMBER_IF(int (*)(void)), MEMBER_IF(int (*)(int, char **))}; \
    int MEMBER_MAIN(__VA_ARGS__)
#endif
