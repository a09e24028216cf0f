#include "kinds/kinds.h"

#include "kinds/data/data.h"
#include "kinds/models/models.h"

static const an_kind *const data[] = {
#define AN_DATA(name) &an_data_##name.kind,
#include "kinds/data/kinds.def"
    NULL};
static const an_kind *const models[] = {
#define AN_MODEL(name) &an_model_kind_##name.kind,
#include "kinds/models/kinds.def"
    NULL};
static const an_kind *const layers[] = {
#define AN_LAYER(name) &an_layer_kind_##name,
#include "kinds/layers.def"
    NULL};

void an_context_add_kinds(an_context *ctx) {
    static const an_kind *const *const lists[AN_KIND_SORTS] = {
        [AN_KINDS_DATA] = data, [AN_KINDS_MODEL] = models, [AN_KINDS_LAYER] = layers};
    for (int sort = 0; sort < AN_KIND_SORTS; sort++)
        if (lists[sort]) ctx->kinds[sort] = lists[sort];
}
