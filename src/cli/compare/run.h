/* What is compared of a run: its config, how it ended, and the last value of each of its metrics, and the best. */
#ifndef AN_CLI_COMPARE_RUN_H
#define AN_CLI_COMPARE_RUN_H

#include "cli/main/cli.h"

enum { COMPARE_MOST_RUNS = 32, COMPARE_MOST_RESULTS = 64, COMPARE_NAME = 48 };

typedef struct compare_result {
    char name[COMPARE_NAME];
    double value;
    int64_t step; /* of a best value; 0: it is the last one */
} compare_result;

/* Before the name of a metric of evaluations: its best value in the run. */
#define COMPARE_BEST "best_"
/* 1: more is better, -1: less is, 0: neither. */
int compare_direction(const char *name);

typedef struct compare_run {
    const char *path, *name;       /* as it was given, and without what comes before the last '/' */
    char *config;                  /* its config.yaml */
    char end[COMPARE_NAME];        /* "done"; "unfinished"; "died" */
    char state_hash[COMPARE_NAME]; /* "": it has not ended */
    compare_result results[COMPARE_MOST_RESULTS];
    int result_count;
} compare_run;

/* Reads a run folder. Nothing in it is trusted. */
int compare_run_read(const cli_call *call, const char *path, compare_run *run);
void compare_run_free(compare_run *run);
/* NULL: the run has no such result. */
const compare_result *compare_run_find(const compare_run *run, const char *name);

#endif
