/* Compares the values of two saved configs. */
#ifndef AN_CLI_CHECKPOINT_CONFIG_LINES_H
#define AN_CLI_CHECKPOINT_CONFIG_LINES_H

enum { CLI_CONFIG_TEXT = 512 };

/* Calls with each key whose values differ; NULL: it is not there. Long values are cut. O(keys²), and configs have a hundred. */
void cli_config_differences(const char *a, const char *b,
                            void (*visit)(void *user, const char *path, const char *a, const char *b), void *user);

#endif
