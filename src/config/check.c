/* Finds contradictions between keys. Each key is valid by itself here. Every rule states, with numbers, what does not
 * go together and what to change. Valid settings that are probably mistakes become warnings. */
#include <stdio.h>
#include <string.h>

#include "config/config.h"

/* The place of a key that was given, or of the config. */
static an_spot spot_of(const an_config *c, const char *path) {
    const an_config_node *node = an_config_find(c, path);
    return node && node->origin != AN_ORIGIN_DEFAULT ? node->key_place : (an_spot){c->name, 1, 1};
}

static bool given(const an_config *c, const char *path) {
    return an_config_origin_of(c, path) > AN_ORIGIN_DEFAULT;
}

/* Whether it has the default of an earlier version, as the complete configs of that version do. */
static bool was_default(const an_config_node *node) {
    static const char *const former[][2] = {{"eval.every", "500 steps"}};
    for (size_t i = 0; node->option && i < sizeof former / sizeof *former; i++)
        if (!strcmp(node->option->path, former[i][0]) && !strcmp(node->text, former[i][1])) return true;
    return false;
}

/* Whether a value, or one inside of it, was given and is another than the default: a config that was written whole,
 * with all its defaults, means the same as the short one. */
static bool says_more(const an_config_node *node) {
    if (!node || node->origin <= AN_ORIGIN_DEFAULT) return false;
    const char *text = node->option ? an_option_default(node->option) : NULL;
    if (node->type == AN_CONFIG_SCALAR) return (!text || strcmp(node->text, text) != 0) && !was_default(node);
    if (node->type == AN_CONFIG_LIST) return true;
    for (const an_config_node *n = node->first; n; n = n->next)
        if (says_more(n)) return true;
    return false;
}

static const char *text_of(const an_config *c, const char *path) {
    const an_config_node *node = an_config_find(c, path);
    return node && node->type == AN_CONFIG_SCALAR ? node->text : "";
}

/* A number that is one: not absent, not a word. */
static bool count_of(const an_config *c, const char *path, int64_t *value) {
    return an_read_count(text_of(c, path), value);
}

/* Whether the type of a source has one of these flags. */
static bool has_flag(const an_config *c, const char *type, unsigned flags) {
    const an_kind *kind = an_kind_find(c->ctx, AN_KINDS_DATA, text_of(c, type));
    return kind && kind->flags & flags;
}

/* A value that nothing reads is hardly meant. */
static an_status warn_if_unused(an_config *c, const char *path, bool is_used, const char *why) {
    if (is_used || !says_more(an_config_find(c, path))) return AN_OK;
    return an_config_warn(c, spot_of(c, path), "%s has no effect: %s", path, why);
}

/* ---- run ---- */

static an_status check_run(an_config *c) {
    static const char *const lengths[] = {"run.steps", "run.epochs", "run.tokens", "run.samples"};
    const char *first = NULL;
    for (int i = 0; i < 4; i++) {
        if (!given(c, lengths[i])) continue;
        if (first) {
            const bool later = an_config_origin_of(c, first) > an_config_origin_of(c, lengths[i]);
            return AN_ERROR(c->ctx, AN_ERR_ARGUMENT,
                            "%s: %s is %s and %s is %s, but a run has only one length; remove one of them (for example "
                            "with --set %s=)",
                            AN_SPOT(spot_of(c, lengths[i])), first, AN_QUOTE(text_of(c, first)), lengths[i],
                            AN_QUOTE(text_of(c, lengths[i])), later ? lengths[i] : first);
        }
        first = lengths[i];
    }
    return AN_OK;
}

/* ---- model ---- */

static an_status check_model(an_config *c) {
    int64_t width, heads, kv_heads, context, samples;
    static const char *const sources[] = {"data.train", "data.eval"};
    if (count_of(c, "model.width", &width) && count_of(c, "model.heads", &heads) && width % heads != 0)
        return AN_ERROR(c->ctx, AN_ERR_ARGUMENT,
                        "%s: model.width %lld is not a multiple of model.heads %lld (remainder %lld); use a width such "
                        "as %lld or %lld",
                        AN_SPOT(spot_of(c, given(c, "model.heads") ? "model.heads" : "model.width")), (long long)width,
                        (long long)heads, (long long)(width % heads),
                        (long long)(width > heads ? width - width % heads : heads),
                        (long long)((uint64_t)(width - width % heads) + (uint64_t)heads));
    if (count_of(c, "model.kv_heads", &kv_heads) && count_of(c, "model.heads", &heads) && heads % kv_heads != 0)
        return AN_ERROR(c->ctx, AN_ERR_ARGUMENT,
                        "%s: model.heads %lld is not a multiple of model.kv_heads %lld (remainder %lld); every key "
                        "head must serve the same number of heads",
                        AN_SPOT(spot_of(c, "model.kv_heads")), (long long)heads, (long long)kv_heads,
                        (long long)(heads % kv_heads));
    for (int i = 0; i < 2; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s.context", sources[i]);
        if (count_of(c, "model.context", &context) && count_of(c, path, &samples) && samples > context)
            return AN_ERROR(c->ctx, AN_ERR_ARGUMENT,
                            "%s: %s is %lld, but the model takes at most %lld tokens; lower it or raise model.context",
                            AN_SPOT(spot_of(c, path)), path, (long long)samples, (long long)context);
    }
    return AN_OK;
}

/* ---- data ---- */

static an_status check_source_keys(an_config *c, const char *source) {
    char documents[64], end[64], delimiter[64], type[64], borders[64];
    bool border_targets = true;
    snprintf(type, sizeof type, "%s.type", source);
    snprintf(borders, sizeof borders, "%s.border_targets", source);
    snprintf(documents, sizeof documents, "%s.documents", source);
    snprintf(end, sizeof end, "%s.end_token", source);
    snprintf(delimiter, sizeof delimiter, "%s.delimiter", source);
    if (an_config_is(c, documents, "apart") &&
        an_option_find(c->options, "data.train", "end_token", text_of(c, type)) && !an_config_find(c, end))
        return AN_ERROR(c->ctx, AN_ERR_ARGUMENT, "%s: %s is apart, but nothing says where a document ends; set %s",
                        AN_SPOT(spot_of(c, documents)), documents, end);
    an_read_bool(text_of(c, borders), &border_targets);
    if (!border_targets && an_config_is(c, documents, "join"))
        AN_TRY_RETURN(an_config_warn(c, spot_of(c, borders),
                                     "%s has no effect while %s is join; set documents to apart", borders, documents));
    const char *text = text_of(c, delimiter);
    if (*text && (text[1] || (unsigned char)text[0] >= 0x80 || strchr("\"\n\r.+-0123456789", text[0])))
        return AN_ERROR(c->ctx, AN_ERR_ARGUMENT,
                        "%s: %s is '%s'; it must be one character that does not occur in numbers, such as \",\"",
                        AN_SPOT(spot_of(c, delimiter)), delimiter, AN_QUOTE(text));
    return AN_OK;
}

/* The names of all kinds of data that give such samples: "text|tokens". */
static void list_data(const an_config *c, unsigned samples, char *names, size_t capacity) {
    size_t used = 0;
    *names = 0;
    for (const an_kind *const *k = c->ctx->kinds[AN_KINDS_DATA]; k && *k && used < capacity; k++)
        if ((*k)->samples == samples)
            used += (size_t)snprintf(names + used, capacity - used, "%s%s", used ? "|" : "", (*k)->name);
}

/* Whether the samples of a source are what the model takes; either may leave that open. */
static an_status check_source(an_config *c, const char *source) {
    an_context *ctx = c->ctx;
    char path[64], names[256];
    snprintf(path, sizeof path, "%s.type", source);
    const an_kind *data = an_kind_find(ctx, AN_KINDS_DATA, text_of(c, path));
    const an_kind *model = an_kind_find(ctx, AN_KINDS_MODEL, text_of(c, "model.type"));
    const unsigned gives = data ? data->samples : 0, takes = model ? model->samples : 0;
    if (!gives || !takes || gives & takes) return check_source_keys(c, source);
    const bool sentences = takes == AN_GIVES_SENTENCES, tokens = takes & AN_GIVES_TOKENS;
    list_data(c, takes & AN_GIVES_TOKENS ? AN_GIVES_TOKENS : takes, names, sizeof names);
    const char *what = sentences ? "sentences with classes" : tokens ? "tokens" : "numbers";
    if (sentences || gives == AN_GIVES_SENTENCES)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %s has type '%s', but a model of type '%s' takes %s; use %s",
                        AN_SPOT(spot_of(c, path)), source, data->name, model->name, what, AN_WORDS(names));
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: %s has type '%s', which gives %s, but a model of type '%s' takes %s; use %s",
                    AN_SPOT(spot_of(c, path)), source, data->name, tokens ? "numbers" : "tokens", model->name, what,
                    AN_WORDS(names));
}

/* What is trained on tells nothing in an evaluation. */
static an_status check_overlap(an_config *c) {
    double from[2], to[2];
    const char *train = text_of(c, "data.train.path"), *eval = text_of(c, "data.eval.path");
    if (!*train || strcmp(train, eval) != 0) return AN_OK;
    AN_TRY_RETURN(an_config_range(c, "data.train.part", &from[0], &to[0]));
    AN_TRY_RETURN(an_config_range(c, "data.eval.part", &from[1], &to[1]));
    if (from[0] >= to[1] || from[1] >= to[0]) return AN_OK;
    return an_config_warn(c, spot_of(c, "data.eval"),
                          "data.eval and data.train overlap (part %s and part %s of the same file), so the evaluation "
                          "does not measure how well the model generalises",
                          text_of(c, "data.eval.part"), text_of(c, "data.train.part"));
}

static bool splits(const an_config *c) {
    return !an_config_is(c, "data.split.eval", "off");
}

/* A mixture may have a sample twice, and then on both sides. */
static an_status check_split(an_config *c) {
    static const char *const words[] = {"shuffle", "stratify", "time"};
    const an_config_node *by_node = an_config_find(c, "data.split.by"), *seed = an_config_find(c, "data.split.seed");
    if (!splits(c) && (says_more(by_node) || says_more(seed)))
        return AN_ERROR(
            c->ctx, AN_ERR_ARGUMENT,
            "%s: data.split does not say how many samples evaluate; set data.split.eval to a share such as 20%%",
            AN_SPOT(spot_of(c, "data.split")));
    if (!splits(c)) return AN_OK;
    if (an_config_find(c, "data.eval"))
        return AN_ERROR(c->ctx, AN_ERR_ARGUMENT,
                        "%s: data.split and data.eval are both set, but a run evaluates on one of them; remove one",
                        AN_SPOT(spot_of(c, "data.split")));
    if (has_flag(c, "data.train.type", AN_KIND_ENDLESS | AN_KIND_MIXTURE))
        return AN_ERROR(c->ctx, AN_ERR_ARGUMENT, "%s: data.split cannot split a %s; set data.eval instead",
                        AN_SPOT(spot_of(c, "data.split")), text_of(c, "data.train.type"));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (an_config_is(c, "data.split.by", words[i])) return AN_OK;
    const char *by = text_of(c, "data.split.by");
    if (!strncmp(by, "group ", 6) && has_flag(c, "data.train.type", AN_KIND_TABLE)) return AN_OK;
    return AN_ERROR(c->ctx, AN_ERR_ARGUMENT,
                    "%s: data.split.by is '%s'; it takes shuffle, stratify or time, and for csv also group and the "
                    "name of a column, such as 'group patient'",
                    AN_SPOT(spot_of(c, "data.split.by")), AN_QUOTE(by));
}

static an_status check_unused_data(an_config *c) {
    const bool has_tables = has_flag(c, "data.train.type", AN_KIND_TABLE | AN_KIND_MIXTURE);
    const bool scales = an_words_have("standard|range", text_of(c, "data.normalize.inputs")) ||
                        an_words_have("standard|range", text_of(c, "data.normalize.targets"));
    AN_TRY_RETURN(warn_if_unused(c, "data.missing.method", has_tables, "only tables (csv) have missing cells"));
    AN_TRY_RETURN(warn_if_unused(c, "data.missing.value", an_config_is(c, "data.missing.method", "constant"),
                                 "data.missing.method is not constant"));
    return warn_if_unused(c, "data.normalize.fit", scales, "data.normalize.inputs and data.normalize.targets are off");
}

static an_status check_data(an_config *c) {
    an_context *ctx = c->ctx;
    const an_config_node *data = an_config_find(c, "data");
    if (!an_config_find(c, "data.train"))
        return AN_ERROR(ctx, AN_ERR_PARSE,
                        "%s: data has no 'train'; set it to a table such as {type: text, path: FILE}",
                        AN_SPOT(data->place));
    const bool is_stream = has_flag(c, "data.train.type", AN_KIND_ENDLESS);
    if (is_stream && given(c, "run.epochs"))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: a stream has no end and therefore no epochs; set run.steps, run.samples or run.max_time",
                        AN_SPOT(spot_of(c, "run.epochs")));
    if (has_flag(c, "data.eval.type", AN_KIND_ENDLESS))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: evaluations cannot read a stream; use another type for data.eval, such as csv",
                        AN_SPOT(spot_of(c, "data.eval.type")));
    AN_TRY_RETURN(check_source(c, "data.train"));
    AN_TRY_RETURN(check_source(c, "data.eval"));
    for (int i = 0; i < an_config_size(c, "data.train.parts"); i++) {
        char part[64];
        snprintf(part, sizeof part, "data.train.parts[%d]", i);
        AN_TRY_RETURN(check_source(c, part));
    }
    AN_TRY_RETURN(check_overlap(c));
    AN_TRY_RETURN(check_split(c));
    AN_TRY_RETURN(check_unused_data(c));
    if (!is_stream && an_config_is(c, "data.normalize.fit", "running"))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: data.normalize.fit is running, which is for streams; the samples of other data are all "
                        "known before the first step, so set it to a number of them such as 'first 10000 samples'",
                        AN_SPOT(spot_of(c, "data.normalize.fit")));
    const char *train = text_of(c, "data.train.tokens"), *eval = text_of(c, "data.eval.tokens");
    if (*train && *eval && strcmp(train, eval) != 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: data.train.tokens is %s and data.eval.tokens is %s, but a model has one kind of token; "
                        "make them the same",
                        AN_SPOT(spot_of(c, given(c, "data.eval.tokens") ? "data.eval.tokens" : "data.train.tokens")),
                        train, eval);
    return AN_OK;
}

/* A stream has no epochs: the default length goes. */
static void drop_epochs(an_config *c) {
    an_config_node *run = an_config_find(c, "run"), *before = NULL;
    if (!has_flag(c, "data.train.type", AN_KIND_ENDLESS)) return;
    for (an_config_node *n = run->first; n; before = n, n = n->next) {
        if (strcmp(n->key, "epochs") != 0) continue;
        *(before ? &before->next : &run->first) = n->next;
        if (run->last == n) run->last = before;
        run->count--;
        return;
    }
}

/* ---- batch ---- */

static an_status accumulate_by_epoch(an_config *c, const an_config_node *table) {
    if (given(c, "batch.global"))
        return AN_ERROR(c->ctx, AN_ERR_ARGUMENT,
                        "%s: batch.accumulate changes by epoch, and with it the number of samples in a step, but "
                        "batch.global is fixed at %s; remove batch.global",
                        AN_SPOT(table->key_place), text_of(c, "batch.global"));
    int64_t first = 0;
    an_read_count(table->first->key, &first);
    if (first != 0)
        return AN_ERROR(c->ctx, AN_ERR_ARGUMENT,
                        "%s: batch.accumulate begins after %lld epochs; add a value for 0, the start of the run",
                        AN_SPOT(table->first->key_place), (long long)first);
    return AN_OK;
}

static an_status add_global(an_config *c, int64_t global) {
    an_config_node *batch = an_config_find(c, "batch"), *node = NULL;
    char text[32];
    AN_TRY_RETURN(an_config_node_create(c, &node, AN_CONFIG_SCALAR, AN_ORIGIN_DEFAULT, batch->place));
    snprintf(text, sizeof text, "%lld", (long long)global);
    AN_TRY_RETURN(an_arena_string(&c->arena, &node->text, text, strlen(text)));
    node->key = "global";
    node->option = an_option_find(c->options, "batch", "global", NULL);
    node->next = batch->first;
    batch->first = node;
    batch->count++;
    return AN_OK;
}

static an_status check_accumulate(an_config *c, const an_config_node *table) {
    an_context *ctx = c->ctx;
    int64_t accumulate = 0, micro, product, global;
    if (table->count == 0)
        return AN_ERROR(
            ctx, AN_ERR_PARSE,
            "%s: batch.accumulate is empty; it takes a number, or a table that maps finished epochs to numbers",
            AN_SPOT(table->key_place));
    if (!count_of(c, "batch.micro", &micro))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: batch.accumulate counts micro-batches, but batch.micro is auto; set batch.micro",
                        AN_SPOT(table->key_place));
    if (table->count > 1) return accumulate_by_epoch(c, table);
    an_read_count(table->first->text, &accumulate);
    if (!an_multiply_i64(micro, accumulate, &product))
        return AN_ERROR(ctx, AN_ERR_OVERFLOW,
                        "%s: batch.micro %lld × accumulate %lld does not fit in 64 bits; lower one of them",
                        AN_SPOT(table->key_place), (long long)micro, (long long)accumulate);
    if (!count_of(c, "batch.global", &global)) return add_global(c, product);
    if (product == global) return AN_OK;
    return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                    "%s: batch.global is %lld, but micro %lld × accumulate %lld = %lld; change one of them, or remove "
                    "global",
                    AN_SPOT(spot_of(c, "batch.global")), (long long)global, (long long)micro, (long long)accumulate,
                    (long long)product);
}

static bool has_batch_norm(const an_config *c) {
    bool found = false;
    an_read_bool(text_of(c, "model.batch_norm"), &found);
    for (int i = 0; i < an_config_size(c, "model.layers") && !found; i++) {
        char path[64];
        snprintf(path, sizeof path, "model.layers[%d].type", i);
        found = an_config_is(c, path, "batch_norm");
    }
    return found;
}

static an_status check_batch(an_config *c) {
    an_context *ctx = c->ctx;
    const an_config_node *accumulate = an_config_find(c, "batch.accumulate");
    int64_t global, leaves, micro;
    if (accumulate) AN_TRY_RETURN(check_accumulate(c, accumulate));
    const bool has_global = count_of(c, "batch.global", &global);
    if (has_global && count_of(c, "batch.leaves", &leaves) && leaves > global)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: batch.leaves is %lld, but a step has %lld sample%s, so %lld leaves would be empty; set it "
                        "to at most %lld",
                        AN_SPOT(spot_of(c, "batch.leaves")), (long long)leaves, (long long)global,
                        global == 1 ? "" : "s", (long long)(leaves - global), (long long)global);
    if (has_global && count_of(c, "batch.micro", &micro) && micro > global)
        AN_TRY_RETURN(
            an_config_warn(c, spot_of(c, "batch.micro"),
                           "batch.micro is %lld, but a step has %lld sample%s, so every step is a single micro-batch",
                           (long long)micro, (long long)global, global == 1 ? "" : "s"));
    if (has_batch_norm(c) && count_of(c, "batch.micro", &micro) && micro < 16)
        AN_TRY_RETURN(
            an_config_warn(c, spot_of(c, "batch.micro"),
                           "batch norm over micro-batches of %lld sample%s is noisy; 16 or more samples are usual",
                           (long long)micro, micro == 1 ? "" : "s"));
    return AN_OK;
}

/* ---- optimizer ---- */

static an_status check_optimizer(an_config *c) {
    an_context *ctx = c->ctx;
    const an_config_node *betas = an_config_find(c, "optimizer.betas");
    double momentum = 0, dampening = 0, decay = 1;
    bool nesterov = false;
    if (betas && betas->type == AN_CONFIG_LIST && betas->count != 2) /* else it is auto */
        return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: optimizer.betas has %d numbers; it takes two, such as [0.9, 0.999]",
                        AN_SPOT(betas->place), betas->count);
    an_read_bool(text_of(c, "optimizer.nesterov"), &nesterov);
    an_read_real(text_of(c, "optimizer.momentum"), &momentum);
    an_read_real(text_of(c, "optimizer.dampening"), &dampening);
    if (nesterov && !(momentum > 0))
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: optimizer.nesterov needs momentum, which is 0; set optimizer.momentum, for example to 0.9",
                        AN_SPOT(spot_of(c, "optimizer.nesterov")));
    if (nesterov && dampening != 0)
        return AN_ERROR(
            ctx, AN_ERR_ARGUMENT,
            "%s: optimizer.nesterov needs momentum without dampening, but dampening is %s; remove dampening",
            AN_SPOT(spot_of(c, "optimizer.nesterov")), text_of(c, "optimizer.dampening"));
    an_read_real(text_of(c, "optimizer.layer_decay"), &decay);
    if (decay < 0.5 || decay > 1)
        AN_TRY_RETURN(an_config_warn(c, spot_of(c, "optimizer.layer_decay"),
                                     "optimizer.layer_decay is %s; 0.85 to 0.95 is usual",
                                     text_of(c, "optimizer.layer_decay")));
    return AN_OK;
}

/* ---- schedule ---- */

/* PyTorch would give an optimizer like sgd a momentum here, because its schedule asks for one. */
static an_status check_moved_momentum(an_config *c, const an_config_node *schedule) {
    const an_config_node *type = an_config_node_find(schedule, "type"),
                         *moves = an_config_node_find(schedule, "momentum");
    double momentum = 0;
    bool on = false;
    if (!type || !moves || strcmp(type->text, "one_cycle") != 0 || !an_config_find(c, "optimizer.momentum"))
        return AN_OK;
    an_read_bool(moves->text, &on);
    an_read_real(text_of(c, "optimizer.momentum"), &momentum);
    if (!on || momentum > 0) return AN_OK;
    return an_config_warn(c, type->place,
                          "one_cycle changes the momentum of %s, but optimizer.momentum is 0 and stays 0; set "
                          "optimizer.momentum, for example to 0.9, or set schedule.momentum to off",
                          text_of(c, "optimizer.type"));
}

static an_status check_schedule(an_config *c, const an_config_node *schedule) {
    an_context *ctx = c->ctx;
    AN_TRY_RETURN(check_moved_momentum(c, schedule));
    const an_config_node *parts = an_config_node_find(schedule, "parts"),
                         *milestones = an_config_node_find(schedule, "milestones");
    const an_config_node *points = an_config_node_find(schedule, "points");
    an_length before = {.unit = AN_LENGTH_TIME}, length;
    if (points && points->count == 0)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: a schedule of type points needs at least one point, such as {0: 0, 500: 1}",
                        AN_SPOT(points->place));
    if (!parts || !milestones) return AN_OK;
    if (milestones->count != parts->count - 1)
        return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                        "%s: a sequence has %d parts and %d milestones; it needs one milestone fewer than parts, "
                        "because each milestone begins the next part",
                        AN_SPOT(milestones->place), parts->count, milestones->count);
    for (const an_config_node *n = milestones->first; n; n = n->next) {
        if (!an_read_length(n->text, n->option->units, &length)) continue;
        if (length.unit == before.unit && length.amount <= before.amount)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                            "%s: the milestone '%s' is not later than the one before it; sort the milestones",
                            AN_SPOT(n->place), AN_QUOTE(n->text));
        before = length;
    }
    for (const an_config_node *n = parts->first; n; n = n->next) AN_TRY_RETURN(check_schedule(c, n));
    return AN_OK;
}

/* ---- train ---- */

static an_status check_train(an_config *c) {
    static const char *const ways[] = {"train.recompute.mode", "train.recompute.segments", "train.recompute.budget"};
    an_context *ctx = c->ctx;
    const char *first = NULL;
    for (int i = 0; i < 3; i++) {
        if (!says_more(an_config_find(c, ways[i]))) continue;
        if (first)
            return AN_ERROR(ctx, AN_ERR_ARGUMENT, "%s: %s and %s are both set; remove one of them",
                            AN_SPOT(spot_of(c, ways[i])), first, ways[i]);
        first = ways[i];
    }
    const char *precision = text_of(c, "train.precision");
    if (an_config_is(c, "train.matmul_precision", "medium") && an_words_have("bf16|f16|f64", precision))
        AN_TRY_RETURN(an_config_warn(c, spot_of(c, "train.matmul_precision"),
                                     "train.matmul_precision affects only f32 and has no effect with precision %s",
                                     precision));
    return AN_OK;
}

/* ---- eval ---- */

static an_status check_metric(an_config *c, const char *path) {
    const an_config_node *metrics = an_config_find(c, "eval.metrics");
    const char *metric = text_of(c, path), *name = strncmp(metric, "val_", 4) ? metric : metric + 4;
    if (!given(c, path) || !metrics || metrics->type != AN_CONFIG_LIST || !strcmp(name, "loss") || !strcmp(name, "off"))
        return AN_OK;
    for (const an_config_node *n = metrics->first; n; n = n->next)
        if (!strcmp(n->text, name)) return AN_OK;
    return AN_ERROR(c->ctx, AN_ERR_ARGUMENT, "%s: %s is %s, but eval.metrics does not include %s; add it there",
                    AN_SPOT(spot_of(c, path)), path, metric, name);
}

static an_status check_eval(an_config *c) {
    an_context *ctx = c->ctx;
    const an_config_node *eval = an_config_find(c, "eval");
    if (!an_config_find(c, "data.eval") && !splits(c) && says_more(eval))
        for (const an_config_node *n = eval->first; n; n = n->next)
            if (says_more(n))
                return AN_ERROR(ctx, AN_ERR_ARGUMENT,
                                "%s: eval.%s is set, but there is no data to evaluate on; set data.eval or data.split, "
                                "or remove this "
                                "key",
                                AN_SPOT(n->key_place), n->key);
    AN_TRY_RETURN(check_metric(c, "eval.best.metric"));
    return check_metric(c, "eval.early_stop.metric");
}

static an_status check_schedules(an_config *c) {
    an_length warmup;
    AN_TRY_RETURN(warn_if_unused(
        c, "schedule.warmup.start_factor",
        an_read_length(text_of(c, "schedule.warmup.steps"), "steps|epochs|tokens|samples|share", &warmup) &&
            warmup.amount > 0,
        "the warm-up has no steps"));
    return check_schedule(c, an_config_find(c, "schedule"));
}

an_status an_config_check(an_config *config) {
    static an_status (*const rules[])(an_config * config) = {
        check_run,       check_data,  check_model, check_batch,          check_optimizer,
        check_schedules, check_train, check_eval,  an_config_check_lora, an_config_check_lengths};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) AN_TRY_RETURN(rules[i](config));
    drop_epochs(config);
    return AN_OK;
}
