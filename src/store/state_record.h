/* The progress of a run: the numbers of its state besides the tensors, and how they are stored. */
#ifndef AN_STORE_STATE_RECORD_H
#define AN_STORE_STATE_RECORD_H

#include "anneal/train.h"
#include "base/added.h"
#include "base/text/json.h"
#include "base/text/text.h"

/* Values of the metrics that the program has added. */
#define AN_METRIC_PREFIX "val_"
enum { AN_MOST_OWN_METRICS = 16, AN_METRIC_NAME = AN_ADDED_NAME + 4 };
typedef struct an_own_metric {
    char name[AN_METRIC_NAME]; /* with its prefix */
    double value;
} an_own_metric;
typedef struct an_own_metrics {
    int64_t count;
    an_own_metric items[AN_MOST_OWN_METRICS];
} an_own_metrics;

typedef struct an_progress {
    int64_t steps, schedule_steps; /* of the run; of the schedule, which --extend=keep leaves as it was */
    int64_t step;                  /* taken so far: the position in the data */
    int64_t updates;               /* of the optimizer */
    int64_t schedule_step;         /* without skipped ones */
    int64_t taken, skips;          /* by the stepper */
    int64_t skips_in_row;          /* up to the last step */
    double scale;                  /* of the loss */
    int64_t good_steps;
    uint64_t chain[2]; /* hash over the numbers of every step so far */

    int64_t evaluated; /* the step after which the last evaluation was; -1: there was none */
    bool has_best, has_patient;
    int64_t best_step, without; /* evaluations without getting better */
    double best_value, patient_value;
    an_step_metrics last;     /* step */
    an_evaluation evaluation; /* the last; samples 0: there was none */
    an_own_metrics own;       /* of the last evaluation */
    bool chains_right;        /* its accuracy of tokens is part of the chain */

    bool has_user_step;
    int64_t user_step; /* the host program's clock */
    double seconds;    /* of training, in all launches */

    /* Sums of the losses of targets, and how many targets: of the epoch so far, and since the last line of
     * metrics.jsonl */
    double epoch_loss, line_loss;
    int64_t epoch_targets, line_targets;
} an_progress;

/* Before the first step. */
an_progress an_progress_start(void);

/* As members of a JSON object, and back: every number is there again to the bit. A member that is missing or of another
 * kind is a problem of the reader; one that is not known is skipped, so that later versions may have more. */
void an_progress_write(an_json_writer *json, const an_progress *progress);
bool an_progress_read(an_json *json, an_progress *progress);

/* XXH3-128 in hexadecimal, high half first, as xxhsum writes it. */
enum { AN_HASH_DIGITS = 32 };
void an_hash_write(char digits[AN_HASH_DIGITS], const uint64_t hash[2]); /* no NUL */
bool an_hash_read(const char *digits, size_t length, uint64_t hash[2]);
bool an_json_hash(an_json *json, uint64_t hash[2]); /* a string of such digits */

#endif
