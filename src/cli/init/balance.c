/* Classes that are rare. */
#include "cli/init/init.h"

void init_count_class(init_found *f, const char *name, int64_t samples) {
    enum { LABEL = 40 };
    if (f->commonest == 0 || samples < f->rarest) {
        f->rarest = samples;
        snprintf(f->rarest_name, sizeof f->rarest_name, "%s", init_show(name, LABEL).text);
    }
    if (samples > f->commonest) {
        f->commonest = samples;
        snprintf(f->commonest_name, sizeof f->commonest_name, "%s", init_show(name, LABEL).text);
    }
}

bool init_is_unbalanced(const init_found *f) {
    enum { PART = 5 };
    return f->classes > 1 && f->rarest > 0 && f->rarest * f->classes * PART < f->samples;
}

void init_tell_balance(const init_found *f) {
    enum { FEW = 10 }; /* of these nothing is learned, and a fifth of them says little about what was */
    if (init_is_unbalanced(f))
        cli_tell("classes are not balanced: '%s' has %s of %s samples, '%s' has %s. A model can be right most of the "
                 "time and "
                 "never say '%s'; the config has a line 'class_weights: balanced' to make rare classes count more",
                 f->rarest_name, cli_count(f->rarest).text, cli_count(f->samples).text, f->commonest_name,
                 cli_count(f->commonest).text, f->rarest_name);
    if (f->classes > 0 && f->rarest > 0 && f->rarest < FEW)
        cli_tell("note: the rarest class has only %lld sample%s; expect little of it", (long long)f->rarest,
                 f->rarest == 1 ? "" : "s");
}
