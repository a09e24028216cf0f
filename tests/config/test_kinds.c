/* Options of kinds: what kinds have in common is one option, and each has its own members. */
#include <stdlib.h>

#include "anneal/data.h"
#include "anneal/models.h"
#include "base/options/kind.h"
#include "base/options/option.h"
#include "config/config.h"
#include "support.h"

static const char *const sorts[AN_KIND_SORTS] = {[AN_KINDS_DATA] = "data.train",
                                                 [AN_KINDS_MODEL] = "model",
                                                 [AN_KINDS_LAYER] = "model.layers",
                                                 [AN_KINDS_OPTIMIZER] = "optimizer",
                                                 [AN_KINDS_SCHEDULE] = "schedule"};

static bool is_in(const char *path, const char *table) {
    return !strncmp(path, table, strlen(table)) && path[strlen(table)] == '.';
}

static bool same(const char *a, const char *b) {
    return a == b || (a && b && !strcmp(a, b));
}

/* Options that kinds have in common differ in their members alone. */
static void compare(const char *kind, const an_option *a, const an_option *b) {
    const bool is_same = same(a->path, b->path) && a->kind == b->kind && same(a->default_value, b->default_value) &&
                         same(a->words, b->words) && a->minimum == b->minimum && a->maximum == b->maximum &&
                         same(a->units, b->units) && a->change == b->change && same(a->why, b->why) &&
                         same(a->help, b->help);
    if (!is_same) fail_msg("%s of %s has the place of another option, and is not the same", b->path, kind);
}

static void test_records(void **state) {
    an_context *ctx = make_context();
    (void)state;
    for (int sort = AN_KINDS_NONE + 1; sort < AN_KIND_SORTS; sort++) {
        const an_option *at[1000] = {NULL}; /* by place */
        for (const an_kind *const *k = ctx->kinds[sort]; *k; k++) {
            int last = 0;
            assert_ptr_equal(an_kind_find(ctx, (an_kind_sort)sort, (*k)->name), *k);
            for (const an_option *o = (*k)->options; o && o->path; o++) {
                if (o->rows) continue;
                if (!is_in(o->path, sorts[sort])) fail_msg("%s is no option of %s", o->path, sorts[sort]);
                assert_true(o->place >= 0 && o->place < 1000);
                if (o->place < last) fail_msg("%s of %s stands behind a later place", o->path, (*k)->name);
                if (o->place) last = o->place;
                if (at[o->place] && o->place && same(at[o->place]->path, o->path)) compare((*k)->name, at[o->place], o);
                at[o->place] = o;
            }
        }
    }
    assert_null(an_kind_find(ctx, AN_KINDS_DATA, "xlsx"));
    assert_null(an_kind_find(ctx, AN_KINDS_DATA, NULL));
    an_context_destroy(&ctx);
}

static void test_an_option_of_several_kinds(void **state) {
    an_context *ctx = make_context();
    an_config *c = config_of(ctx, "model: {type: cnn, dropout: 0.25}\ndata: {train: {type: idx, path: a}}\n");
    an_cnn_options cnn;
    an_mlp_options mlp;
    const an_option_list *all;
    (void)state;
    OK(ctx, an_option_list_get(ctx, &all));
    const an_option *o = an_option_find(all, "model", "dropout", "gpt2");
    assert_string_equal(o->of, "mlp|cnn|gpt2|bert");
    assert_ptr_equal(o, an_option_find(all, "model", "dropout", "mlp"));
    assert_ptr_not_equal(o, an_option_find(all, "model", "dropout", "pretrained"));
    an_cnn_options_init(&cnn, sizeof cnn);
    an_mlp_options_init(&mlp, sizeof mlp);
    OK(ctx, an_config_fill(c, "model", an_cnn_options, &cnn));
    OK(ctx, an_config_fill(c, "model", an_mlp_options, &mlp));
    assert_true(cnn.dropout == 0.25 && mlp.dropout == 0.25);
    an_config_destroy(&c);
    an_context_destroy(&ctx);
}

/* A context that has other kinds has their options, and no others. */
static void test_other_kinds(void **state) {
    static const an_option options[] = {
        {.path = "data.train.last", .of = "", .words = "", .help = "h", .why = "w"},
        {.path = "data.train.first", .of = "", .words = "", .help = "h", .why = "w", .place = 10, .default_value = "1"},
        {.path = NULL}};
    static const an_kind a = {.name = "a", .options = options}, b = {.name = "b", .options = options};
    static const an_kind *const kinds[] = {&a, &b, NULL};
    an_context *ctx = make_context();
    const an_option_list *all;
    (void)state;
    ctx->kinds[AN_KINDS_DATA] = kinds;
    OK(ctx, an_option_list_get(ctx, &all));
    assert_string_equal(an_option_find(all, "data.train", "type", NULL)->words, "a|b");
    const an_option *first = an_option_find(all, "data.train", "first", NULL);
    assert_string_equal(first->of, "a|b");
    assert_string_equal(first[1].path, "data.train.last"); /* without a place: listed once for each kind */
    assert_string_equal(first[1].of, "a");
    assert_string_equal(first[2].of, "b");
    assert_null(an_option_find(all, "data.train", "part", NULL));
    an_context_destroy(&ctx);
}

/* Every allocation fails once; what was there is released, and the next call succeeds. */
static void test_memory_may_run_out(void **state) {
    (void)state;
    an_status status = AN_ERR_MEMORY;
    for (long at = 1; status != AN_OK; at++) {
        ledger l = {0};
        an_context *ctx = NULL;
        const an_option_list *all;
        assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
        const size_t held = l.held;
        l.fail_at = l.calls + at;
        l.once = true;
        status = an_option_list_get(ctx, &all);
        if (status != AN_OK) {
            assert_int_equal(status, AN_ERR_MEMORY);
            assert_null(all);
            assert_int_equal(l.held, held);
            OK(ctx, an_option_list_get(ctx, &all));
        }
        assert_true(all->count > 250);
        an_context_destroy(&ctx);
        assert_true(l.held == 0 && !l.mismatch);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records),
                                       cmocka_unit_test(test_an_option_of_several_kinds),
                                       cmocka_unit_test(test_other_kinds), cmocka_unit_test(test_memory_may_run_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
