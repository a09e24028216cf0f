/* The banner: what a person should know about a run before its first step. */
#include <stdio.h>
#include <string.h>

#include "base/integer.h"
#include "base/options/settings.h"
#include "cli/train/open.h"

enum { NAME = 11, MOST = 1024, MOST_COLUMNS = 120 };

/* A row that is being written: its name, then words that are broken at spaces. */
typedef struct {
    cli_training *training;
    const char *name;
    char text[MOST];
    size_t length;
} row;

static row row_begin(cli_training *training, const char *name) {
    return (row){.training = training, .name = name};
}

#define ADD(r, ...)                                                                                    \
    do {                                                                                               \
        if ((r)->length < MOST)                                                                        \
            (r)->length += (size_t)snprintf((r)->text + (r)->length, MOST - (r)->length, __VA_ARGS__); \
    } while (0)

static void row_end(row *r) {
    const int columns = cli_columns() < MOST_COLUMNS ? cli_columns() : MOST_COLUMNS;
    const size_t room = (size_t)(columns > 40 ? columns - NAME : 40);
    const char *name = r->name, *rest = r->text;
    while (*rest) {
        size_t length = strlen(rest);
        if (length > room) {
            for (length = room; length > 0 && rest[length] != ' ';) length--;
            if (length == 0) length = strcspn(rest, " ");
        }
        cli_say(r->training, "%-*s%.*s", NAME, name, (int)length, rest);
        rest += length;
        rest += strspn(rest, " ");
        name = "";
    }
}

static const char *origin_mark(an_config_origin origin) {
    if (origin == AN_ORIGIN_DEFAULT) return " (default)";
    return origin == AN_ORIGIN_CHECKPOINT ? " (from the checkpoint)" : "";
}

/* "lr 1e-3, " with a mark where nobody gave it. */
static void add_value(row *r, const char *path, const char *label) {
    an_config *config = r->training->config;
    const char *text;
    const an_config_origin origin = an_config_origin_of(config, path);
    if (origin == AN_ORIGIN_NONE || an_config_string(config, path, &text) != AN_OK) return;
    ADD(r, "%s%s%s%s%s", r->length ? ", " : "", label, *label ? " " : "", text, origin_mark(origin));
}

/* Values that stand one behind another. */
typedef struct {
    const char *key, *label;
    bool when_given; /* not where it has its default */
} shown;

static void add_values(row *r, const shown *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!values[i].when_given || an_config_origin_of(r->training->config, values[i].key) > AN_ORIGIN_DEFAULT)
            add_value(r, values[i].key, values[i].label);
}
#define ADD_VALUES(r, values) add_values((r), (values), sizeof(values) / sizeof *(values))

/* The same of a list of numbers. */
static void add_list(row *r, const char *path, const char *label) {
    enum { MOST_NUMBERS = 8 };
    an_config *config = r->training->config;
    double numbers[MOST_NUMBERS];
    int count = 0;
    if (an_config_size(config, path) == 0 || an_config_reals(config, path, MOST_NUMBERS, numbers, &count) != AN_OK)
        return;
    ADD(r, ", %s", label);
    for (int i = 0; i < count && i < MOST_NUMBERS; i++) ADD(r, " %g", numbers[i]);
    ADD(r, "%s", origin_mark(an_config_origin_of(config, path)));
}

/* ---- rows ---- */

/* "; whole layers that are trained: classifier": layers that are trained beside an adapter, a new head among them. */
static void add_whole_layers(row *r) {
    const an_params *params = an_trainer_params(r->training->trainer);
    char last[128] = "";
    bool any = false;
    for (int64_t i = 0; params && i < an_params_count(params); i++) {
        an_param_info info;
        an_param_info_init(&info, sizeof info);
        if (an_params_info(params, i, &info) != AN_OK || !info.trainable || strstr(info.name, ".lora_")) continue;
        const char *dot = strrchr(info.name, '.');
        const int length = dot ? (int)(dot - info.name) : (int)strlen(info.name);
        if (any && (int)strlen(last) == length && !strncmp(last, info.name, (size_t)length)) continue;
        ADD(r, "%s%.*s", any ? ", " : "; whole layers that are trained: ", length, info.name);
        snprintf(last, sizeof last, "%.*s", length, info.name);
        any = true;
    }
}

static void say_model(cli_training *t) {
    row r = row_begin(t, "model");
    const char *what = "";
    an_config_string(t->config,
                     an_config_is(t->config, AN_SETTING(model.type), "pretrained") ? AN_SETTING(model.from)
                                                                                   : AN_SETTING(model.type),
                     &what);
    ADD(&r, "%s, %s parameters", what, cli_count(t->info.parameters).text);
    if (an_config_size(t->config, AN_SETTING(lora.targets)) > 0)
        add_value(&r, AN_SETTING(lora.rank), "of which an adapter is trained: rank");
    bool dora = false;
    if (an_config_bool(t->config, AN_SETTING(lora.dora), &dora) == AN_OK && dora) ADD(&r, ", with magnitudes (DoRA)");
    if (an_config_size(t->config, AN_SETTING(lora.targets)) > 0 ||
        an_config_origin_of(t->config, AN_SETTING(lora.from)) != AN_ORIGIN_NONE)
        add_whole_layers(&r);
    row_end(&r);
}

static void say_data(cli_training *t) {
    row r = row_begin(t, "data");
    const an_trainer_info *i = &t->info;
    ADD(&r, "%s sample%s", cli_count(i->samples).text, i->samples == 1 ? "" : "s");
    if (i->tokens > 1) ADD(&r, " of %lld tokens", (long long)i->tokens);
    if (i->evaluation_samples)
        ADD(&r, "; %s for evaluation", cli_count(i->evaluation_samples).text);
    else
        ADD(&r, "; no evaluation, because data.eval is not set");
    if (i->evaluation_samples && i->evaluation_micro != i->micro)
        ADD(&r, ", %s at a time", cli_count(i->evaluation_micro).text);
    row_end(&r);
}

/* "; by epoch: 8 micro-batches from epoch 1, 4 from epoch 5": epochs count from 1, the keys are finished epochs */
static void add_accumulation(row *r) {
    an_config *config = r->training->config;
    const int entries = an_config_size(config, AN_SETTING(batch.accumulate));
    for (int i = 0; i < entries && entries > 1; i++) {
        int64_t epoch;
        double accumulate;
        if (an_config_pair(config, AN_SETTING(batch.accumulate), i, &epoch, &accumulate) != AN_OK) return;
        ADD(r, "%s %.0f%s from epoch %lld", i ? "," : "; by epoch:", accumulate, i ? "" : " micro-batches",
            (long long)epoch + 1);
    }
}

/* The arithmetic, written out. */
static void say_batch(cli_training *t) {
    row r = row_begin(t, "batch");
    const an_trainer_info *i = &t->info;
    const int64_t leaf = an_divide_up(i->global, i->leaves);
    if (i->together > 1) { /* "2 micro-batches × 4 leaves × 8" */
        const int64_t together = i->together < i->leaves ? i->together : i->leaves;
        const int64_t runs = an_divide_up(i->leaves, together);
        ADD(&r, "%s samples a step = %lld micro-batch%s × %lld leaves × %lld", cli_count(i->global).text,
            (long long)runs, runs == 1 ? "" : "es", (long long)together, (long long)leaf);
        if (runs * together * leaf != i->global) ADD(&r, " at most");
    } else {
        const int64_t runs = an_divide_up(leaf, i->micro), micro = i->micro < leaf ? i->micro : leaf;
        ADD(&r, "%s sample%s a step = %lld lea%s × %lld micro-batch%s × %lld", cli_count(i->global).text,
            i->global == 1 ? "" : "s", (long long)i->leaves, i->leaves == 1 ? "f" : "ves", (long long)runs,
            runs == 1 ? "" : "es", (long long)micro);
        if (i->leaves * runs * micro != i->global) ADD(&r, " at most");
    }
    add_accumulation(&r);
    row_end(&r);
    r = row_begin(t, "run");
    ADD(&r, "%s step%s, %.3g epoch%s of %s", cli_count(i->steps).text, i->steps == 1 ? "" : "s", i->epochs,
        i->epochs == 1 ? "" : "s", cli_count(i->min_epoch_steps).text);
    if (i->max_epoch_steps > i->min_epoch_steps) ADD(&r, " to %s", cli_count(i->max_epoch_steps).text);
    ADD(&r, " steps");
    add_value(&r, AN_SETTING(run.seed), "seed");
    add_value(&r, AN_SETTING(run.max_time), "at most");
    row_end(&r);
}

static void say_optimizer(cli_training *t) {
    static const shown values[] = {{AN_SETTING(optimizer.eps), "eps", false},
                                   {AN_SETTING(optimizer.momentum), "momentum", false},
                                   {AN_SETTING(optimizer.dampening), "dampening", false},
                                   {AN_SETTING(optimizer.nesterov), "nesterov", false},
                                   {AN_SETTING(optimizer.weight_decay), "weight decay", false},
                                   {AN_SETTING(optimizer.layer_decay), "layer decay", true}};
    row r = row_begin(t, "optimizer");
    add_value(&r, AN_SETTING(optimizer.type), "");
    if (an_config_origin_of(t->config, AN_SETTING(schedule.max_lr)) == AN_ORIGIN_NONE)
        add_value(&r, AN_SETTING(optimizer.lr), "lr");
    else
        ADD(&r, ", lr %.3g (schedule.max_lr)", t->info.rate);
    add_list(&r, AN_SETTING(optimizer.betas), "betas");
    ADD_VALUES(&r, values);
    row_end(&r);
}

static void say_groups(cli_training *t) {
    const an_groups *groups = an_trainer_groups(t->trainer);
    for (int i = 0; i < an_groups_count(groups); i++) {
        an_group_info g;
        an_group_info_init(&g, sizeof g);
        row r = row_begin(t, i ? "" : "groups");
        if (an_groups_get(groups, i, &g) != AN_OK) continue;
        ADD(&r, "%s in %s tensor%s", cli_count(g.elements).text, cli_count(g.tensors).text, g.tensors == 1 ? "" : "s");
        if (*g.match) ADD(&r, " that match '%s'", g.match);
        if (g.frozen)
            ADD(&r, ": frozen");
        else
            ADD(&r, ": rate × %.4g, decay %.4g", g.lr_scale, g.weight_decay);
        if (g.tied) ADD(&r, ", tied");
        ADD(&r, " (%s%s)", g.first, g.tensors > 1 ? ", …" : "");
        row_end(&r);
    }
}

/* The schedule as it was resolved: its kind, and the rate at its corners. */
static void say_schedule(cli_training *t) {
    static const shown values[] = {{AN_SETTING(schedule.type), "", false},
                                   {AN_SETTING(schedule.warmup.steps), "warmup", true},
                                   {AN_SETTING(schedule.min_lr), "min_lr", true}};
    row r = row_begin(t, "schedule");
    const an_schedule *s = an_trainer_schedule(t->trainer);
    const int64_t last = t->info.steps - 1;
    const double rate = t->info.rate;
    int64_t peak = 0;
    ADD_VALUES(&r, values);
    if (an_config_origin_of(t->config, AN_SETTING(schedule.min_lr)) <= AN_ORIGIN_DEFAULT)
        add_value(&r, AN_SETTING(schedule.min_ratio), "min_ratio");
    if (s) {
        const int64_t looks = last < 10000 ? last : 10000; /* enough to see where the top is */
        for (int64_t i = 0; i <= looks; i++) {
            const int64_t at = looks ? (int64_t)((double)last * (double)i / (double)looks) : 0;
            if (an_schedule_factor(s, at) > an_schedule_factor(s, peak)) peak = at;
        }
        ADD(&r, ": %.3g at step 1", rate * an_schedule_factor(s, 0));
        if (peak > 0 && peak < last)
            ADD(&r, ", %.3g at %s", rate * an_schedule_factor(s, peak), cli_count(peak + 1).text);
        if (last > 0) ADD(&r, ", %.3g at %s", rate * an_schedule_factor(s, last), cli_count(last + 1).text);
    }
    row_end(&r);
}

static const char *recompute_name(an_recompute recompute) {
    return recompute == AN_RECOMPUTE_NONE    ? "none"
           : recompute == AN_RECOMPUTE_BLOCK ? "block"
           : recompute == AN_RECOMPUTE_FULL  ? "full"
                                             : "as configured";
}

static void say_precision(cli_training *t) {
    row r = row_begin(t, "precision");
    const an_trainer_info *i = &t->info;
    if (i->precision == AN_DTYPE_NONE)
        ADD(&r, "%s", an_dtype_name(i->dtype));
    else
        ADD(&r, "%s products%s and sums in %s", an_dtype_name(i->precision),
            an_config_size(t->config, AN_SETTING(lora.targets)) > 0 &&
                    an_config_is(t->config, AN_SETTING(lora.base), "auto")
                ? " and frozen matrices, trained weights"
                : ", weights",
            an_dtype_name(i->dtype));
    if (an_config_is(t->config, AN_SETTING(train.precision), "auto"))
        ADD(&r, "%s",
            i->precision == AN_DTYPE_BF16 ? " (auto: this machine is fast at it)"
            : i->dtype == AN_DTYPE_F64    ? " (auto: the data is f64)"
                                          : " (auto)");
    if (an_config_is(t->config, AN_SETTING(train.recompute.mode), "auto"))
        ADD(&r, ", recompute %s (auto)", recompute_name(i->recompute));
    else
        add_value(&r, AN_SETTING(train.recompute.mode), "recompute");
    row_end(&r);
}

static void say_clipping(cli_training *t) {
    row r = row_begin(t, "clipping");
    add_value(&r, AN_SETTING(train.clip_norm), "norm");
    if (!an_config_is(t->config, AN_SETTING(train.clip_value), "off")) {
        add_value(&r, AN_SETTING(train.clip_value), "value");
        ADD(&r, ", which changes the direction of a step");
    }
    row_end(&r);
}

static void say_average(cli_training *t) {
    if (an_config_is(t->config, AN_SETTING(train.ema.decay), "off")) return;
    row r = row_begin(t, "average");
    add_value(&r, AN_SETTING(train.ema.decay), "decay");
    ADD(&r, "; evaluations use the average of the weights");
    row_end(&r);
}

static void say_memory(cli_training *t) {
    row r = row_begin(t, "memory");
    an_plan_memory m;
    an_plan_memory_init(&m, sizeof m);
    if (an_plan_memory_get(an_trainer_plan(t->trainer), &m) != AN_OK) return;
    ADD(&r, "%s planned: weights %s, gradients %s", cli_bytes((double)m.peak).text, cli_bytes((double)m.weights).text,
        cli_bytes((double)m.gradients).text);
    if (m.leaves) ADD(&r, " and %s for the other leaves", cli_bytes((double)m.leaves).text);
    ADD(&r, ", optimizer %s, activations %s, copy for saves %s", cli_bytes((double)m.optimizer).text,
        cli_bytes((double)(m.activations + m.scratch + m.inputs)).text, cli_bytes((double)m.checkpoint).text);
    row_end(&r);
}

static void say_machine(cli_training *t) {
    row r = row_begin(t, "machine");
    an_ranks_info i;
    an_ranks_info_init(&i, sizeof i);
    if (an_context_ranks_info(t->ctx, &i) != AN_OK) return;
    const int threads = an_context_threads(t->ctx);
    ADD(&r, "%d rank%s × %d thread%s on %d core%s", i.ranks, i.ranks == 1 ? "" : "s", threads, threads == 1 ? "" : "s",
        i.host_processors, i.host_processors == 1 ? "" : "s");
    if (i.hosts > 1) ADD(&r, " of this host, which has %d of the ranks; %d hosts in all", i.host_ranks, i.hosts);
    ADD(&r, ", %s", an_isa_name(an_context_isa(t->ctx)));
    if (*i.mpi) ADD(&r, ", %s", i.mpi);
    if (threads > 1) ADD(&r, "; idle threads %s", cli_waiting(an_context_spin(t->ctx)).text);
    row_end(&r);
    if (i.host_threads > i.host_processors && i.host_processors > 0)
        cli_tell("warning: this host has %d threads of %d rank%s on %d core%s, so they wait for each other; set fewer "
                 "ranks.threads, or start fewer ranks",
                 i.host_threads, i.host_ranks, i.host_ranks == 1 ? "" : "s", i.host_processors,
                 i.host_processors == 1 ? "" : "s");
}

/* For which ranks, level and version this run is bit-identical: docs/bits.md. A resumed run has shown it when it
 * began. */
static void say_bits(cli_training *t) {
    row r = row_begin(t, "bits");
    if (an_trainer_resumed(t->trainer)) return;
    ADD(&r, "identical on ");
    if (t->info.leaves > 1) ADD(&r, "1 to ");
    ADD(&r, "%s rank%s", cli_count(t->info.leaves).text, t->info.leaves == 1 ? "" : "s");
    ADD(&r, ", at level %s with anneal %s", an_isa_name(an_context_isa(t->ctx)), an_version());
    row_end(&r);
}

/* Which kernels run, for the log only: each op with each kernel once. */
static void log_kernels(cli_training *t) {
    an_program *program = an_trainer_program(t->trainer);
    const int64_t count = an_program_profile_count(program, AN_FORM_TRAIN_FIRST);
    for (int64_t i = 0; i < count; i++) {
        an_profile_entry entry, before;
        an_profile_entry_init(&entry, sizeof entry);
        an_profile_entry_init(&before, sizeof before);
        char line[128];
        bool known = false;
        if (an_program_profile_entry(program, AN_FORM_TRAIN_FIRST, i, &entry) != AN_OK) return;
        for (int64_t k = 0; k < i && !known; k++)
            known = an_program_profile_entry(program, AN_FORM_TRAIN_FIRST, k, &before) == AN_OK &&
                    !strcmp(before.op, entry.op) && !strcmp(before.kernel, entry.kernel);
        snprintf(line, sizeof line, "kernel     %s=%s", entry.op, entry.kernel);
        if (!known) an_folder_log(t->folder, line);
    }
}

/* What ranks divide, and if nobody said what, why. */
static void say_sharding(cli_training *t) {
    row r = row_begin(t, "sharding");
    an_strategy s;
    an_strategy_init(&s, sizeof s);
    if (an_context_ranks(t->ctx) == 1) return;
    for (int shard = AN_SHARD_NONE; shard < AN_SHARD_AUTO; shard++) {
        if (an_trainer_strategy(t->trainer, (an_shard)shard, &s) != AN_OK || !s.taken) continue;
        ADD(&r, "%s", s.name);
        if (an_config_is(t->config, AN_SETTING(ranks.shard), "auto")) ADD(&r, " (auto: %s)", s.reason);
    }
    row_end(&r);
}

static void say_saves(cli_training *t) {
    row r = row_begin(t, "saves");
    if (an_config_is(t->config, AN_SETTING(save.every), "off"))
        ADD(&r, "after the last step only");
    else {
        add_value(&r, AN_SETTING(save.every), "every");
        if (an_config_is(t->config, AN_SETTING(save.keep_last), "all"))
            ADD(&r, ", keeps all");
        else {
            add_value(&r, AN_SETTING(save.keep_last), "keeps the last");
            ADD(&r, "%s", t->info.evaluation_samples ? ", and the best" : "");
        }
    }
    row_end(&r);
}

/* Where the run comes from, what has changed since, and what may not be enough. */
static void say_notes(cli_training *t) {
    const char *path = an_trainer_resumed(t->trainer), *notes = an_trainer_notes(t->trainer);
    if (path) {
        row r = row_begin(t, "resumes");
        ADD(&r, "after step %s, from %s", cli_count(an_trainer_next_step(t->trainer)).text, path);
        row_end(&r);
    }
    if (an_trainer_origin(t->trainer)) {
        row r = row_begin(t, "begun from");
        ADD(&r, "%s: its weights and moments, with a new schedule", an_trainer_origin(t->trainer));
        row_end(&r);
    }
    while (*notes) {
        const size_t length = strcspn(notes, "\n");
        row note = row_begin(t, "note");
        ADD(&note, "%.*s", (int)length, notes);
        row_end(&note);
        notes += length + (notes[length] != 0);
    }
}

int cli_banner(cli_training *training) {
    cli_training *t = training;
    const bool bold = cli_has_colors();
    if (bold) fputs("\033[1m", stdout);
    if (t->folder)
        cli_say(t, "anneal %s, %s", an_version(), an_folder_path(t->folder));
    else
        cli_say(t, "anneal %s, %s", an_version(), t->call->argument);
    if (bold) fputs("\033[0m", stdout);
    say_model(t);
    say_data(t);
    say_batch(t);
    say_optimizer(t);
    say_groups(t);
    say_schedule(t);
    say_clipping(t);
    say_average(t);
    say_precision(t);
    say_memory(t);
    say_machine(t);
    say_bits(t);
    say_sharding(t);
    say_saves(t);
    say_notes(t);
    if (t->folder) log_kernels(t);
    cli_say(t, "%s", "");
    fflush(stdout);
    return CLI_DONE;
}
