/* Keys that a config leaves at their defaults when its run is resumed: they keep the checkpoint's value. A default
 * may change between versions, and a --set option may be missing now; the run does not change. */
#include <string.h>

#include "config/compare.h"

/* A copy of another config's node that needs nothing of that config. */
static an_status copy_node(an_config *config, an_config_node **copy, const an_config_node *node) {
    AN_TRY_RETURN(an_arena_alloc(&config->arena, (void **)copy, 1, sizeof **copy));
    an_config_node *made = *copy;
    *made = *node;
    made->origin = AN_ORIGIN_CHECKPOINT;
    made->place = made->key_place = (an_spot){config->name, 0, 0};
    made->first = made->last = made->next = NULL;
    made->count = 0;
    if (node->key) AN_TRY_RETURN(an_arena_string(&config->arena, &made->key, node->key, strlen(node->key)));
    if (node->text) AN_TRY_RETURN(an_arena_string(&config->arena, &made->text, node->text, strlen(node->text)));
    for (const an_config_node *child = node->first; child; child = child->next) {
        an_config_node *inner = NULL;
        AN_TRY_RETURN(copy_node(config, &inner, child));
        an_config_node_add(made, inner);
    }
    return AN_OK;
}

/* A run may change free keys as it likes, so taking a line out means the default. The instructions are the context's,
 * which is there already. A type decides which other keys there are: another one stays a change, which is refused. */
static bool may_inherit(const an_config_change *change, const an_config_node *now) {
    return change->kind != AN_CHANGE_FREE && now && now->origin == AN_ORIGIN_DEFAULT &&
           strcmp(change->path, AN_SETTING(run.isa)) != 0 && strcmp(now->key, "type") != 0;
}

an_status an_config_inherit(an_config_changes *changes, const an_config *before, an_config *config, an_text *notes) {
    an_config_node *root = NULL;
    size_t kept = 0;
    AN_TRY_RETURN(an_config_node_copy(config, &root, config->root));
    config->root = root; /* the tree from before is as it was: who has it can put it back */
    for (size_t i = 0; i < changes->count; i++) {
        const an_config_change *c = &changes->items[i];
        an_config_node *now = an_config_find(config, c->path), *copy = NULL;
        const an_config_node *then = an_config_find(before, c->path);
        if (!then || !may_inherit(c, now)) {
            changes->items[kept++] = *c;
            continue;
        }
        AN_TRY_RETURN(copy_node(config, &copy, then));
        copy->next = now->next;
        *now = *copy;
        an_text_add(notes,
                    "%s: stays %s, as in the checkpoint, because the config does not set it (the default is now %s)\n",
                    c->path, c->before, c->after);
    }
    changes->count = kept;
    AN_TRY_RETURN(an_config_settle(config));
    return notes->status;
}
