/* data.split: one source for training and evaluation. */
#include <string.h>

#include "kinds/keys.h"
#include "open/open.h"

an_status an_open_split(an_dataset **training, an_dataset **evaluation, an_config *config, an_context *ctx) {
    static const char *const words[] = {
        [AN_SPLIT_SHUFFLE] = "shuffle", [AN_SPLIT_STRATIFY] = "stratify", [AN_SPLIT_TIME] = "time"};
    an_split_source s;
    an_split_source_init(&s, sizeof s);
    if (!*training || an_config_is(config, AN_SETTING(data.split.eval), "off")) return AN_OK;
    an_dataset *whole = *training;
    s.source = whole;
    s.owns = true;
    s.by = AN_SPLIT_GROUP;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(config->settings->data.split.by, words[i])) s.by = (an_split_by)i;
    AN_TRY_RETURN(an_config_fill(config, AN_SETTING(data.split), an_split_source, &s));
    const an_status status = an_dataset_split(training, evaluation, ctx, &s);
    if (status != AN_OK) *training = whole;
    return an_key_blame_named(config, ctx, status, AN_SETTING(data.split));
}
