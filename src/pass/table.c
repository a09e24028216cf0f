/* The table of all passes, in order. */
#include "ir/verify.h"
#include "pass/pass.h"

const an_pass an_pass_table[] = {
#define AN_PASS(pass) {#pass, an_pass_##pass},
#include "pass/pass.def"
#undef AN_PASS
    {0},
};

an_status an_pass_verify(an_graph *g, const an_pass_options *options) {
    (void)options;
    return an_graph_check(g);
}
