/* Compares the values of two saved configs. */
#ifndef AN_CLI_CHECKPOINT_CONFIG_LINES_H
#define AN_CLI_CHECKPOINT_CONFIG_LINES_H

#include <stdbool.h>

enum { CLI_CONFIG_TEXT = 512 };

/* The value of a key; false: it is not there. Long ones are cut. */
bool cli_config_find(const char *text, const char *path, char value[CLI_CONFIG_TEXT]);

/* Calls with each key whose values differ; NULL: it is not there. Long values are cut. O(keys²), and configs have a
 * hundred. */
void cli_config_differences(const char *a, const char *b,
                            void (*visit)(void *user, const char *path, const char *a, const char *b), void *user);

#endif
