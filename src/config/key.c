/* Keys of configs, one by one: for listings and for programs. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "config/config.h"
#include "config/structs.h"

an_status an_config_key_get(an_context *ctx, int index, an_config_key *given) {
    AN_GUARD;
    AN_NEED_IN(ctx, ctx, given);
    const an_option_list *all;
    AN_TRY_RETURN(an_config_key_check(ctx, given));
    AN_TRY_RETURN(an_option_list_get(ctx, &all));
    if (index < 0 || index >= all->count)
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "there are %d options, and none has number %d", all->count, index);
    const an_option *o = &all->items[index];
    size_t used = 0;
    an_config_key own = {.default_value = an_option_default(o),
                         .of = o->of,
                         .help = o->help,
                         .required = an_option_is_required(o),
                         .unsupported = o->unsupported};
    an_config_key *const key = &own;
    /* Elements of a list get their brackets: the path of the list is a part of the option's. */
    for (const char *at = o->path; *at;) {
        const size_t here = strcspn(at, ".");
        char table[64];
        snprintf(table, sizeof table, "%.*s", (int)(at + here - o->path), o->path);
        bool is_list = false;
        for (int i = 0; at[here] && i < all->count; i++)
            is_list |= all->items[i].kind == AN_OPTION_TABLES && !strcmp(all->items[i].path, table);
        used += (size_t)snprintf(key->path + used, sizeof key->path - used, "%.*s%s%s", (int)here, at,
                                 is_list ? "[]" : "", at[here] ? "." : "");
        at += here + (at[here] == '.');
    }
    snprintf(key->type, sizeof key->type, "%s", an_option_wants(o).text);
    if (o->table && o->kind == AN_OPTION_TABLE) snprintf(key->type, sizeof key->type, "a table like %s", o->table);
    if (o->table && o->kind == AN_OPTION_TABLES)
        snprintf(key->type, sizeof key->type, "a list of tables like %s", o->table);
    return an_config_key_write(ctx, given, &own);
}
