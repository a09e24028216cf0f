/* Checks before the first step: numbers out of range, classes that training never sees, and batch norm over too few
 * samples. */
#include "config/config.h"
#include "kinds/data/data.h"
#include "open/open.h"

/* Reads a source that is in memory once. O(samples). */
static an_status look_through(an_config *config, an_dataset *dataset, const char *source, an_class_info *classes) {
    const an_data_kind *kind = an_data_kind_at(config, source);
    if (!dataset || !kind || !kind->is_in_memory) return AN_OK;
    return an_dataset_class_info(dataset, classes);
}

/* A class that training never sees is never predicted. Files that are sorted by class lose one where they are split. */
static an_status tell_missing(an_config *config, const an_class_info *training, int64_t classes) {
    const an_config_node *node = an_config_find(config, AN_SETTING(data.train));
    const int64_t missing = classes - training->seen;
    if (training->seen == 0 || missing <= 0) return AN_OK;
    if (missing > training->seen)
        return an_config_warn(config, node->place,
                              "the largest class is %lld, so there are %lld classes, but data.train has samples of "
                              "only %lld; check the labels, and number classes from 0 without gaps",
                              (long long)classes - 1, (long long)classes, (long long)training->seen);
    return an_config_warn(config, node->place,
                          "data.train has no samples of class %lld%s, of %lld classes; if the file is sorted by class, "
                          "shuffle its lines before splitting it",
                          (long long)training->first_absent, missing > 1 ? " and others" : "", (long long)classes);
}

/* What was left out or not known when a source was read. */
static an_status tell_notice(an_config *config, const an_dataset *dataset, const char *source) {
    const char *notice = dataset ? an_dataset_notice(dataset) : NULL;
    return notice ? an_config_warn(config, an_config_find(config, source)->place, "%s", notice) : AN_OK;
}

an_status an_open_look(an_config *config, an_dataset *training, an_dataset *evaluation) {
    an_class_info seen, evaluated;
    an_class_info_init(&seen, sizeof seen);
    an_class_info_init(&evaluated, sizeof evaluated);
    AN_TRY_RETURN(tell_notice(config, training, AN_SETTING(data.train)));
    AN_TRY_RETURN(tell_notice(config, evaluation, AN_SETTING(data.eval)));
    AN_TRY_RETURN(look_through(config, training, AN_SETTING(data.train), &seen));
    const bool split = !an_config_is(config, AN_SETTING(data.split.eval), "off");
    AN_TRY_RETURN(look_through(config, evaluation, split ? AN_SETTING(data.train) : AN_SETTING(data.eval), &evaluated));
    return tell_missing(config, &seen, seen.classes > evaluated.classes ? seen.classes : evaluated.classes);
}

/* ---- batch norm ---- */

an_status an_open_look_at_batches(an_config *config, an_trainer *trainer) {
    enum { USUAL = 16 };
    an_graph_info graph;
    an_graph_info_init(&graph, sizeof graph);
    an_trainer_info info;
    an_trainer_info_init(&info, sizeof info);
    const an_config_node *batch = an_config_find(config, AN_SETTING(batch)),
                         *place = batch ? batch : an_config_find(config, AN_SETTING(model));
    AN_TRY_RETURN(an_graph_info_get(an_trainer_graph(trainer), &graph));
    AN_TRY_RETURN(an_trainer_info_get(trainer, &info));
    if (graph.batch_norms > 0 && info.micro < USUAL && an_config_is(config, AN_SETTING(batch.micro), "auto"))
        AN_TRY_RETURN(
            an_config_warn(config, place->place,
                           "batch norm over micro-batches of %lld sample%s is noisy; %d or more samples are usual",
                           (long long)info.micro, info.micro == 1 ? "" : "s", (int)USUAL));
    if (graph.row_batch_norms == 0 || info.min_micro != 1) return AN_OK;
    return an_config_warn(
        config, place->place,
        "some micro-batches have only one sample, and the batch norm of one sample does not depend on it; change "
        "batch.global or batch.micro so that every micro-batch has more, or set data.drop_last to on");
}
