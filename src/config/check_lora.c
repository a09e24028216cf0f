/* What goes with an adapter, and what does not. */
#include <string.h>

#include "config/config.h"

/* Whether an option says something else than its default. */
static bool says_more(const an_config_node *n) {
    const char *text = n->option ? an_option_default(n->option) : NULL;
    if (n->origin <= AN_ORIGIN_DEFAULT) return false;
    return n->type != AN_CONFIG_SCALAR || !text || strcmp(n->text, text) != 0;
}

an_status an_config_check_lora(an_config *c) {
    const an_config_node *lora = an_config_find(c, "lora"), *groups = an_config_find(c, "optimizer.groups");
    if (!lora) return AN_OK;
    const bool has_from = an_config_find(c, "lora.from") != NULL;
    for (const an_config_node *n = lora->first; n && has_from && !an_config_find(c, "lora.targets"); n = n->next)
        if (says_more(n) && (!strcmp(n->key, "rank") || !strcmp(n->key, "alpha") || !strcmp(n->key, "rslora") ||
                             !strcmp(n->key, "dora") || !strcmp(n->key, "train")))
            return AN_ERROR(
                c->ctx, AN_ERR_ARGUMENT,
                "%s: lora.%s is set, but without lora.targets the adapter of lora.from says it; remove it, or set "
                "lora.targets too",
                AN_SPOT(n->key_place), n->key);
    if (!an_config_find(c, "lora.targets") && !has_from) {
        for (const an_config_node *n = lora->first; n; n = n->next)
            if (says_more(n))
                return AN_ERROR(
                    c->ctx, AN_ERR_ARGUMENT,
                    "%s: lora.%s is set, but lora.targets does not say which layers the adapter changes; set it, "
                    "such as [q_proj, v_proj]",
                    AN_SPOT(n->key_place), n->key);
        return AN_OK;
    }
    for (const an_config_node *rule = groups ? groups->first : NULL; rule; rule = rule->next)
        for (const an_config_node *n = rule->first; n; n = n->next) {
            bool freezes = false;
            if (strcmp(n->key, "freeze") != 0 || !an_read_bool(n->text, &freezes) || !freezes) continue;
            return AN_ERROR(
                c->ctx, AN_ERR_ARGUMENT,
                "%s: a group is frozen, but lora.targets is set, which already freezes everything except the "
                "adapter; remove the group",
                AN_SPOT(n->key_place));
        }
    return AN_OK;
}
