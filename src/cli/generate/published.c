#include <string.h>

#include "cli/generate/generate.h"

int cli_published_open(cli_published *p, const cli_call *call, an_context *ctx) {
    an_pretrained *model = NULL;
    an_pretrained_info info;
    *p = (cli_published){.call = call};
    an_pretrained_info_init(&info, sizeof info);
    an_pretrained_sampling_init(&p->sampling, sizeof p->sampling);
    an_status status = an_pretrained_open(&model, ctx, call->argument);
    if (status == AN_OK) status = an_pretrained_info_get(model, &info);
    if (status == AN_OK) status = an_pretrained_sampling_get(model, &p->sampling);
    an_pretrained_close(&model);
    p->context = info.context;
    p->is_gguf = info.is_gguf;
    return status == AN_OK ? CLI_DONE : cli_refuse(call, ctx, NULL, status);
}

static bool is_given(const cli_call *call, const char *name) {
    for (int i = 0; call->command->options[i].name; i++)
        if (!strcmp(call->command->options[i].name, name)) return call->values[i] != NULL;
    return false;
}

/* "temperature 0.6", in a list. */
static void add_value(char *list, size_t capacity, const char *name, double value) {
    const size_t length = strlen(list);
    snprintf(list + length, capacity - length, "%s%s %g", length ? ", " : "", name, value);
}

void cli_published_apply(const cli_published *p, an_sampling_options *s) {
    const an_pretrained_sampling *own = &p->sampling;
    const char *const source = p->is_gguf ? "the GGUF file" : "generation_config.json";
    double top_k = 0; /* only shown: a double does not hold every count */
    const struct {
        const char *name;
        double value, none; /* of the model; at which it has no effect */
        double *to;
    } settings[] = {
        {"temperature", own->temperature, 0, &s->temperature}, /* first: without it, only the penalty counts */
        {"top-k", (double)own->top_k, 0, &top_k},
        {"top-p", own->top_p, 1, &s->top_p},
        {"min-p", own->min_p, 0, &s->min_p},
        {"repetition-penalty", own->repetition_penalty, 1, &s->repetition_penalty}};
    char list[256] = "";
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (settings[i].value < 0 || is_given(p->call, settings[i].name)) continue;
        *settings[i].to = settings[i].value;
        const bool counts = s->temperature > 0 || settings[i].to == &s->repetition_penalty;
        if (counts && settings[i].value != settings[i].none)
            add_value(list, sizeof list, settings[i].name, settings[i].value);
    }
    if (own->top_k >= 0 && !is_given(p->call, "top-k")) s->top_k = own->top_k;
    if (*list)
        cli_tell("Settings of %s: %s. Options change them%s.", source, list,
                 s->temperature > 0 && !is_given(p->call, "temperature")
                     ? "; with --temperature 0 the most likely token is taken"
                     : "");
    if (*own->ignored) cli_tell("Settings of %s that have no effect here: %s.", source, own->ignored);
}

void cli_stops_add(cli_stops *stops, int32_t token) {
    if (token < 0 || stops->count == CLI_STOPS) return;
    for (int i = 0; i < stops->count; i++)
        if (stops->tokens[i] == token) return;
    stops->tokens[stops->count++] = token;
}
