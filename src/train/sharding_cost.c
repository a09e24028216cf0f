#include "train/sharding_cost.h"

static const double memory_rate = 20e9;     /* bytes a second, read and written */
static const double link_rate = 1.25e9;     /* the same, between hosts */
static const double message_seconds = 1e-5; /* for each, whatever its length */

double an_step_work_seconds(const an_step_work *work) {
    const double copied = 2 * ((double)work->sent + (double)work->received);
    const double moved = (double)work->updated + (double)work->read + (double)work->written + copied;
    const double linked = (double)work->linked / link_rate;
    return work->host_ranks * (work->seconds + moved / memory_rate + linked) + (double)work->messages * message_seconds;
}
