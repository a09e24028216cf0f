/* What a predictor needs to know of a run besides its graph, its weights and its precision. */
#ifndef AN_STORE_PREDICTION_RECORD_H
#define AN_STORE_PREDICTION_RECORD_H

#include "base/text/json.h"
#include "base/text/json_write.h"

enum { AN_SAVED_SIZES = 8 };

/* The largest value of a symbol of the graph. */
typedef struct an_saved_size {
    const char *symbol; /* of the manifest's text, or of the trainer */
    int64_t value;
} an_saved_size;

typedef struct an_saved_prediction {
    bool is_known;    /* false: the checkpoint does not say, as those of 0.1 */
    bool f32_storage; /* as in an_plan_options */
    int size_count;   /* of all symbols but that of samples */
    an_saved_size sizes[AN_SAVED_SIZES];
} an_saved_prediction;

/* As members of a JSON object, and back. What breaks a rule of docs/checkpoint-format.md is a problem of the reader. */
void an_prediction_write(an_json_writer *json, const an_saved_prediction *prediction);
bool an_prediction_read(an_json *json, an_saved_prediction *prediction);

/* NULL: it has no such symbol. */
const an_saved_size *an_prediction_size(const an_saved_prediction *prediction, const char *symbol);

#endif
