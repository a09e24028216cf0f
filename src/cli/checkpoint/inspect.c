/* anneal inspect: shows what a checkpoint or a file of tensors is, and what it contains. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "anneal/chat.h"
#include "anneal/pretrained.h"
#include "anneal/text.h"
#include "base/options/settings.h"
#include "cli/checkpoint/source.h"
#include "cli/train/open.h"

enum { ALL, JSON };
static const cli_option options[] = {
    [ALL] = {.name = "all", .help = "also show the optimizer's tensors"},
    [JSON] = {.name = "json", .help = "write JSON"},
    {0},
};

/* ---- statistics ---- */

/* Of the finite elements, but for the two counts. */
typedef struct {
    int64_t finite, zeros, nonfinite;
    double minimum, maximum, mean, squares; /* squares: of the distances from the mean, in all */
} statistics;

/* Means of pieces are put together so that no large sums are subtracted from each other. */
static void add_piece(statistics *s, const double *numbers, int64_t count) {
    statistics p = {.minimum = INFINITY, .maximum = -INFINITY};
    for (int64_t i = 0; i < count; i++) {
        const double x = numbers[i];
        if (!isfinite(x)) {
            s->nonfinite++;
            continue;
        }
        p.finite++;
        p.zeros += x == 0;
        p.mean += x;
        p.minimum = x < p.minimum ? x : p.minimum;
        p.maximum = x > p.maximum ? x : p.maximum;
    }
    if (p.finite == 0) return;
    p.mean /= (double)p.finite;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(numbers[i])) p.squares += (numbers[i] - p.mean) * (numbers[i] - p.mean);
    const double all = (double)(s->finite + p.finite), between = p.mean - s->mean;
    s->squares += p.squares + between * between * (double)s->finite * (double)p.finite / all;
    s->mean += between * (double)p.finite / all;
    s->minimum = s->finite && s->minimum < p.minimum ? s->minimum : p.minimum;
    s->maximum = s->finite && s->maximum > p.maximum ? s->maximum : p.maximum;
    s->finite += p.finite;
    s->zeros += p.zeros;
}

static double deviation(const statistics *s) {
    return s->finite ? sqrt(s->squares / (double)s->finite) : 0;
}

static an_status measure(const cli_checkpoint *c, int64_t index, const an_checkpoint_tensor *t, cli_piece *piece,
                         statistics *s) {
    *s = (statistics){0};
    for (int64_t begin = 0; t->dtype != AN_DTYPE_NONE && begin < t->elements; begin += CLI_PIECE) {
        const int64_t count = t->elements - begin < CLI_PIECE ? t->elements - begin : CLI_PIECE;
        const an_status status = cli_piece_read(piece, c, index, t, begin, count);
        if (status != AN_OK) return status;
        add_piece(s, piece->numbers, count);
    }
    return AN_OK;
}

/* ---- what it is ---- */

/* Of the run; "": not known. */
typedef struct {
    char folder[CLI_PATH], model[64];
    int64_t seed, weights, elements, moments, averages;
} about;

static int learn(const cli_checkpoint *c, about *a) {
    an_config *config = NULL;
    const char *text = "";
    *a = (about){0};
    an_status status = cli_checkpoint_config(c, c->ctx, 0, NULL, &config);
    if (config && an_config_string(config, AN_SETTING(run.dir), &text) == AN_OK)
        snprintf(a->folder, sizeof a->folder, "%s", text);
    if (config && an_config_string(config, AN_SETTING(model.type), &text) == AN_OK)
        snprintf(a->model, sizeof a->model, "%s", text);
    else if (config)
        snprintf(a->model, sizeof a->model, "graph");
    if (config) an_config_count(config, AN_SETTING(run.seed), &a->seed);
    an_config_destroy(&config);
    for (int64_t i = 0; status == AN_OK && i < c->info.tensors; i++) {
        an_checkpoint_tensor t;
        an_checkpoint_tensor_init(&t, sizeof t);
        status = an_checkpoint_tensor_get(c->checkpoint, i, &t);
        if (status != AN_OK) break;
        a->weights += t.role == AN_SAVED_WEIGHT;
        a->moments += t.role == AN_SAVED_MOMENT;
        a->averages += t.role == AN_SAVED_AVERAGE;
        a->elements += t.role == AN_SAVED_WEIGHT ? t.elements : 0;
    }
    return status == AN_OK ? CLI_DONE : cli_refuse(c->call, c->ctx, NULL, status);
}

/* Runs without an end have no last step. */
static bool has_end(const an_checkpoint_info *i) {
    return i->steps < INT64_MAX;
}

static const char *precision_of(const an_checkpoint_info *i) {
    return strcmp(i->precision, "none") != 0 ? i->precision : "no lower precision";
}

static void show_run(const an_checkpoint_info *i, const about *a) {
    printf("  checkpoint   step %s", cli_count(i->step).text);
    if (has_end(i)) printf(" of %s", cli_count(i->steps).text);
    printf(", launch %s", cli_count(i->generation).text);
    if (i->kept) printf(", saved by the program as user step %lld", (long long)i->user_step);
    printf("\n");
    if (*a->folder) printf("  run          %s, model %s, seed %lld\n", a->folder, a->model, (long long)a->seed);
    printf("  computed by  anneal %s, %s, oneDNN %s, %s, %s lea%s", i->anneal, i->isa, *i->onednn ? i->onednn : "none",
           precision_of(i), cli_count(i->leaves).text, i->leaves == 1 ? "f" : "ves");
    if (*i->kernels) printf(", %s", i->kernels);
    if (i->bits_since) printf(", since step %s", cli_count(i->bits_since).text);
    printf("\n");
    if (i->origin)
        printf("  begun from   %s, after step %s, hash %s\n", i->origin, cli_count(i->origin_step).text,
               i->origin_hash);
    if (!isnan(i->loss)) printf("  last step    loss %.6g, lr %.6g, grad_norm %.6g\n", i->loss, i->rate, i->norm);
    if (!isnan(i->best_value)) printf("  best         %.6g, at step %s\n", i->best_value, cli_count(i->best_step).text);
    printf("  files        %s, %s\n", cli_count(i->files + 1).text, cli_bytes((double)i->bytes).text);
}

/* A GGUF file, or a folder that says what its tensors are. */
static bool is_published(const cli_checkpoint *c) {
    char path[CLI_PATH + 16], name[AN_KEY_TEXT], value[AN_KEY_TEXT];
    if (c->info.is_run) return false;
    if (an_checkpoint_key(c->checkpoint, 0, name, value) == AN_OK && *name) return true;
    const int length = snprintf(path, sizeof path, "%s/config.json", c->info.path);
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

/* How it is meant to generate, or what is wrong with that; nothing where nothing says it. */
static void show_sampling(const cli_checkpoint *c, const an_pretrained *p) {
    const char *sign = "";
    an_pretrained_sampling s;
    an_pretrained_sampling_init(&s, sizeof s);
    if (an_pretrained_sampling_get(p, &s) != AN_OK) {
        printf("  generation   unknown: %s\n", an_last_error(c->ctx));
        return;
    }
    const struct {
        const char *name;
        double value;
    } settings[] = {{"temperature", s.temperature},
                    {"top-k", (double)s.top_k},
                    {"top-p", s.top_p},
                    {"min-p", s.min_p},
                    {"repetition-penalty", s.repetition_penalty}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (settings[i].value < 0) continue;
        printf("%s %s %g", *sign ? sign : "  generation  ", settings[i].name, settings[i].value);
        sign = ",";
    }
    for (int i = 0; i < s.stop_count; i++) {
        if (i == 0) printf("%s ends at token", *sign ? sign : "  generation  ");
        printf(i ? ", %d" : " %d", s.stop_tokens[i]);
        sign = ",";
    }
    if (*s.ignored) printf("%s without effect: %s", *sign ? ";" : "  generation  ", s.ignored);
    if (*sign || *s.ignored) printf("\n");
}

/* A published model in a few lines; or why it is none that anneal can build. */
static void show_pretrained(const cli_checkpoint *c) {
    an_pretrained *p = NULL;
    an_pretrained_info i;
    an_pretrained_info_init(&i, sizeof i);
    if (an_pretrained_open(&p, c->ctx, c->info.path) != AN_OK || an_pretrained_info_get(p, &i) != AN_OK) {
        printf("  model        unknown: %s\n", an_last_error(c->ctx));
        an_pretrained_close(&p);
        return;
    }
    printf("  model        %s, from a %s\n", i.family, i.is_gguf ? "GGUF file" : "folder of Hugging Face");
    printf("  sizes        %s layers, width %s, feed-forward %s, %s heads of %s", cli_count(i.layers).text,
           cli_count(i.width).text, cli_count(i.hidden).text, cli_count(i.heads).text, cli_count(i.head_size).text);
    if (i.kv_heads != i.heads) printf(", %s key and value heads", cli_count(i.kv_heads).text);
    printf("\n  tokens       vocabulary %s, context %s", cli_count(i.vocabulary).text, cli_count(i.context).text);
    if (i.window) printf(", window %s", cli_count(i.window).text);
    if (i.rotary_base > 0) printf(", rotary base %g", i.rotary_base);
    if (i.rotary_factor > 0) printf(", scaled by %g", i.rotary_factor);
    printf("%s", i.tied ? ", tied head" : "");
    if (i.classes > 0) printf(", %s classes", cli_count(i.classes).text);
    printf("\n");
    show_sampling(c, p);
    an_pretrained_close(&p);
}

/* What `generate` and data of type chat make of texts; nothing where there is no tokenizer. */
static void show_text(const cli_checkpoint *c) {
    char memory[AN_CHAT_SYSTEM_BYTES];
    an_tokenizer *tokenizer = NULL;
    an_tokenizer_info i;
    an_chat_format format;
    an_tokenizer_info_init(&i, sizeof i);
    an_chat_format_init(&format, sizeof format);
    if (an_pretrained_tokenizer(&tokenizer, c->ctx, c->info.path) != AN_OK ||
        an_tokenizer_info_get(tokenizer, &i) != AN_OK)
        return;
    printf("  text         %s tokenizer of %s tokens", i.model, cli_count(i.count).text);
    if (an_pretrained_chat(&format, c->ctx, c->info.path, memory) == AN_OK)
        printf(", conversations as %s", an_chat_template_name((int)format.type));
    printf("\n");
    an_tokenizer_destroy(&tokenizer);
}

static void show_keys(const cli_checkpoint *c) {
    enum { WIDTH = 44 };
    char name[AN_KEY_TEXT], value[AN_KEY_TEXT];
    for (int64_t i = 0; an_checkpoint_key(c->checkpoint, i, name, value) == AN_OK && *name; i++)
        printf("  key          %-*s  %s\n", WIDTH, cli_name_of(name).text, cli_name_of(value).text);
}

static void show(const cli_checkpoint *c, const about *a, bool all) {
    const an_checkpoint_info *i = &c->info;
    printf("%s\n", i->path);
    if (i->is_run) {
        show_run(i, a);
    } else if (is_published(c)) {
        show_pretrained(c);
        show_text(c);
    } else {
        printf("  tensors only, not part of a run\n");
    }
    if (!i->is_run) show_keys(c);
    printf("  tensors      %s weight%s and running statistics, %s elements", cli_count(a->weights).text,
           a->weights == 1 ? "" : "s", cli_count(a->elements).text);
    if (a->averages) printf("; %s moving averages%s", cli_count(a->averages).text, all ? "" : " (shown with --all)");
    if (a->moments) printf("; %s optimizer tensors%s", cli_count(a->moments).text, all ? "" : " (shown with --all)");
    printf("\n\n");
}

static void write_pretrained(an_json_writer *j, const cli_checkpoint *c) {
    char name[AN_KEY_TEXT], value[AN_KEY_TEXT];
    an_pretrained *p = NULL;
    an_pretrained_info i;
    an_pretrained_info_init(&i, sizeof i);
    if (an_pretrained_open(&p, c->ctx, c->info.path) == AN_OK && an_pretrained_info_get(p, &i) == AN_OK) {
        an_json_write_object(j, "model");
        an_json_write_string(j, "family", i.family);
        an_json_write_integer(j, "layers", i.layers);
        an_json_write_integer(j, "heads", i.heads);
        an_json_write_integer(j, "kv_heads", i.kv_heads);
        an_json_write_integer(j, "head_size", i.head_size);
        an_json_write_integer(j, "width", i.width);
        an_json_write_integer(j, "hidden", i.hidden);
        an_json_write_integer(j, "vocabulary", i.vocabulary);
        an_json_write_integer(j, "context", i.context);
        an_json_write_integer(j, "window", i.window);
        an_json_write_rounded(j, "rotary_base", i.rotary_base);
        an_json_write_rounded(j, "rotary_factor", i.rotary_factor);
        an_json_write_bool(j, "tied", i.tied);
        an_json_write_integer(j, "classes", i.classes);
        an_json_write_end(j);
    } else {
        an_json_write_null(j, "model");
    }
    an_pretrained_close(&p);
    an_json_write_array(j, "keys");
    for (int64_t k = 0; an_checkpoint_key(c->checkpoint, k, name, value) == AN_OK && *name; k++) {
        an_json_write_object(j, NULL);
        an_json_write_string(j, "name", name);
        an_json_write_string(j, "value", value);
        an_json_write_end(j);
    }
    an_json_write_end(j);
}

static void write_run(an_json_writer *j, const an_checkpoint_info *i, const about *a) {
    an_json_write_integer(j, "step", i->step);
    if (has_end(i))
        an_json_write_integer(j, "steps", i->steps);
    else
        an_json_write_null(j, "steps");
    an_json_write_integer(j, "generation", i->generation);
    if (i->kept)
        an_json_write_integer(j, "user_step", i->user_step);
    else
        an_json_write_null(j, "user_step");
    an_json_write_string(j, "run", a->folder);
    an_json_write_string(j, "model", a->model);
    an_json_write_integer(j, "seed", a->seed);
    an_json_write_string(j, "anneal", i->anneal);
    an_json_write_string(j, "isa", i->isa);
    an_json_write_string(j, "onednn", i->onednn);
    an_json_write_string(j, "precision", i->precision);
    an_json_write_integer(j, "leaves", i->leaves);
    an_json_write_string(j, "kernels", i->kernels);
    an_json_write_integer(j, "bits_since", i->bits_since);
    if (i->origin) {
        an_json_write_object(j, "origin");
        an_json_write_string(j, "path", i->origin);
        an_json_write_integer(j, "step", i->origin_step);
        an_json_write_string(j, "hash", i->origin_hash);
        an_json_write_end(j);
    }
    an_json_write_rounded(j, "loss", i->loss);
    an_json_write_rounded(j, "lr", i->rate);
    an_json_write_rounded(j, "grad_norm", i->norm);
    an_json_write_rounded(j, "best_value", i->best_value);
    an_json_write_integer(j, "best_step", i->best_step);
    an_json_write_integer(j, "files", i->files + 1);
    an_json_write_integer(j, "bytes", i->bytes);
}

/* ---- tensors ---- */

static void show_head(int width) {
    printf("%-*s  %-4s  %-20s  %11s  %11s  %11s  %10s  %9s  %9s\n", width, "name", "type", "shape", "min", "max",
           "mean", "std", "zeros", "nonfinite");
}

static void show_tensor(const an_checkpoint_tensor *t, const statistics *s, int width) {
    printf("%-*s  %-4s  %-20s", width, cli_name_of(t->name).text, t->stored, cli_shape_of(t).text);
    if (s->finite)
        printf("  %11.4g  %11.4g  %11.4g  %10.4g", s->minimum, s->maximum, s->mean, deviation(s));
    else
        printf("  %11s  %11s  %11s  %10s", "-", "-", "-", "-");
    printf("  %9s  %9s\n", cli_count(s->zeros).text, cli_count(s->nonfinite).text);
}

static const char *role_name(an_saved_role role) {
    static const char *const names[] = {
        [AN_SAVED_WEIGHT] = "weight", [AN_SAVED_MOMENT] = "moment", [AN_SAVED_AVERAGE] = "average"};
    return names[role];
}

static void write_tensor(an_json_writer *j, const an_checkpoint_tensor *t, const statistics *s) {
    an_json_write_object(j, NULL);
    an_json_write_string(j, "name", t->name);
    an_json_write_string(j, "role", role_name(t->role));
    an_json_write_string(j, "type", t->stored);
    an_json_write_array(j, "shape");
    for (int d = 0; d < t->ndims; d++) an_json_write_integer(j, NULL, t->dims[d]);
    an_json_write_end(j);
    an_json_write_integer(j, "slices", t->slices);
    an_json_write_rounded(j, "min", s->finite ? s->minimum : NAN);
    an_json_write_rounded(j, "max", s->finite ? s->maximum : NAN);
    an_json_write_rounded(j, "mean", s->finite ? s->mean : NAN);
    an_json_write_rounded(j, "std", s->finite ? deviation(s) : NAN);
    an_json_write_integer(j, "zeros", s->zeros);
    an_json_write_integer(j, "nonfinite", s->nonfinite);
    an_json_write_end(j);
}

static int each_tensor(const cli_checkpoint *c, cli_piece *piece, an_json_writer *j) {
    const bool all = c->call->values[ALL] != NULL;
    int width = 4;
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && !j) show_head(width);
        for (int64_t i = 0; i < c->info.tensors; i++) {
            an_checkpoint_tensor t;
            an_checkpoint_tensor_init(&t, sizeof t);
            statistics s;
            an_status status = an_checkpoint_tensor_get(c->checkpoint, i, &t);
            if (status == AN_OK && !all && t.role != AN_SAVED_WEIGHT) continue;
            if (status == AN_OK && pass == 0) {
                const int length = (int)strlen(cli_name_of(t.name).text);
                width = length > width ? length : width;
                continue;
            }
            if (status == AN_OK) status = measure(c, i, &t, piece, &s);
            if (status != AN_OK) return cli_refuse(c->call, c->ctx, NULL, status);
            if (j)
                write_tensor(j, &t, &s);
            else
                show_tensor(&t, &s, width);
        }
    }
    return CLI_DONE;
}

static int show_all(const cli_checkpoint *c, const about *a, cli_piece *piece) {
    if (!c->call->values[JSON]) {
        show(c, a, c->call->values[ALL] != NULL);
        return each_tensor(c, piece, NULL);
    }
    an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
    an_json_write_object(&j, NULL);
    an_json_write_string(&j, "path", c->info.path);
    an_json_write_string(&j, "kind", c->info.is_run ? "checkpoint" : "tensors");
    if (c->info.is_run) write_run(&j, &c->info, a);
    if (is_published(c)) write_pretrained(&j, c);
    an_json_write_integer(&j, "weights", a->weights);
    an_json_write_integer(&j, "elements", a->elements);
    an_json_write_integer(&j, "moments", a->moments);
    an_json_write_integer(&j, "averages", a->averages);
    an_json_write_array(&j, "tensors");
    const int code = each_tensor(c, piece, &j);
    an_json_write_end(&j);
    an_json_write_finish(&j);
    return code;
}

static int run(const cli_call *call) {
    cli_checkpoint c;
    cli_piece piece = {0};
    about a;
    int code = cli_checkpoint_open(call, call->argument, &c);
    if (code == CLI_DONE) code = learn(&c, &a);
    if (code == CLI_DONE && !cli_piece_create(&piece)) code = cli_fail(call, "out of memory");
    if (code == CLI_DONE) code = show_all(&c, &a, &piece);
    cli_piece_destroy(&piece);
    cli_checkpoint_close(&c);
    return code == CLI_DONE ? cli_finish(call) : code;
}

const cli_command cli_inspect = {
    .name = "inspect",
    .argument = "PATH",
    .summary = "show what is in a checkpoint",
    .text =
        "Shows the run, step, last loss and best value of a checkpoint, and its tensors, each with type, shape, "
        "smallest and largest element, mean, standard deviation, and the number of elements that are zero or not "
        "finite. PATH is a checkpoint folder, a run folder (its newest checkpoint is used; RUN/best is its best one), "
        "a folder as Hugging Face "
        "has them, or a safetensors or GGUF file. Of a published model it also shows family and sizes, and of a GGUF "
        "file its keys; quantised tensors have the type that they are stored in, and the statistics of the numbers "
        "they "
        "stand for. "
        "The files are not checked against their hashes; 'anneal verify' does that.",
    .options = options,
    .run = run,
};
