/* A file for each evaluation, so that a run that was killed and goes on writes the same files again. */
#include "cli/train/written.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "anneal/generate.h"
#include "base/integer.h"
#include "base/options/settings.h"
#include "base/text/json_write.h"

static const char *const key = AN_SETTING(eval.generate);

/* Tokens of a sample, sequences at a time, and how tokens are drawn. */
enum { TOKENS = 100, MOST = 16 };
static const double temperature = 0.8;

static int add_prompt(cli_writer *w, cli_training *t, const char *file, const char *line, size_t length) {
    const an_dataset *data = an_trainer_data(t->trainer);
    cli_prompt *larger = realloc(w->prompts, (size_t)(w->count + 1) * sizeof *larger);
    if (!larger) return cli_fail(t->call, "not enough memory for the prompts of %s", file);
    w->prompts = larger;
    cli_prompt *p = &larger[w->count++];
    *p = (cli_prompt){.text = malloc(length + 1),
                      .tokens = malloc((length + 1) * sizeof *p->tokens),
                      .written = malloc(TOKENS * AN_TOKEN_BYTES + 1)};
    if (!p->text || !p->tokens || !p->written)
        return cli_fail(t->call, "not enough memory for the prompts of %s", file);
    memcpy(p->text, line, length);
    p->text[length] = 0;
    if (length == 0)
        return cli_fail(t->call, "%s: line %lld: is empty; the model needs something to continue", file,
                        (long long)w->count);
    const an_status status = an_dataset_encode(data, line, length, p->tokens, (int64_t)length, &p->count);
    if (status != AN_OK)
        return cli_fail(t->call, "%s: line %lld: %s", file, (long long)w->count, an_last_error(t->ctx));
    if (p->count < t->info.tokens) return CLI_DONE;
    return cli_fail(t->call, "%s: line %lld: has %lld tokens, but the model's context of %lld must have room for more",
                    file, (long long)w->count, (long long)p->count, (long long)t->info.tokens);
}

static int read_prompts(cli_writer *w, cli_training *t, const char *path) {
    FILE *file = fopen(path, "rb");
    char *line = NULL;
    size_t room = 0;
    ssize_t length = 0;
    int code = file ? CLI_DONE : cli_fail(t->call, "%s: cannot be read: %s", path, strerror(errno));
    while (code == CLI_DONE && (length = getline(&line, &room, file)) >= 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r')) length--;
        code = add_prompt(w, t, path, line, (size_t)length);
    }
    if (code == CLI_DONE && ferror(file)) code = cli_fail(t->call, "%s: cannot be read: %s", path, strerror(errno));
    if (code == CLI_DONE && w->count == 0) code = cli_fail(t->call, "%s: is empty; write one prompt per line", path);
    if (file) fclose(file);
    free(line);
    return code;
}

int cli_writer_open(cli_writer *w, cli_training *t) {
    const char *path = NULL;
    int64_t vocabulary = 0;
    an_generator_options o;
    *w = (cli_writer){0};
    if (an_config_path(t->config, key, &path) != AN_OK || !path) return CLI_DONE;
    if (an_dataset_vocabulary(an_trainer_data(t->trainer), &vocabulary) != AN_OK || vocabulary == 0) {
        cli_tell("%s: %s needs data of type text: nothing says which texts other tokens stand for",
                 an_config_place(t->config, key), key);
        return CLI_MISUSED;
    }
    const int code = read_prompts(w, t, path);
    if (code != CLI_DONE) return code;
    an_generator_options_init(&o, sizeof o);
    o.max_sequences = an_smaller(MOST, w->count);
    const an_status status = an_generator_create(&w->generator, t->trainer, &o);
    return status == AN_OK ? CLI_DONE : cli_refuse(t->call, t->ctx, NULL, status);
}

void cli_writer_close(cli_writer *w) {
    for (int64_t i = 0; i < w->count; i++) {
        free(w->prompts[i].text);
        free(w->prompts[i].tokens);
        free(w->prompts[i].written);
    }
    free(w->prompts);
    an_generator_destroy(&w->generator);
}

static an_status add(cli_writer *w, int64_t at, uint64_t seed) {
    an_sampling_options o;
    an_sampling_options_init(&o, sizeof o);
    o.temperature = temperature;
    o.max_tokens = TOKENS;
    o.seed = seed;
    o.sequence = at;
    w->prompts[at].length = 0;
    return an_generator_add(w->generator, w->prompts[at].tokens, w->prompts[at].count, &o);
}

static an_status generate(cli_writer *w, const cli_training *t) {
    const an_dataset *data = an_trainer_data(t->trainer);
    an_generated tokens[MOST];
    an_generator_info info;
    int64_t seed = 0, next = 0, count = 1;
    an_status status = AN_OK;
    an_generator_info_init(&info, sizeof info);
    an_config_count(t->config, AN_SETTING(run.seed), &seed);
    while (status == AN_OK && (count > 0 || next < w->count)) {
        status = an_generator_info_get(w->generator, &info);
        for (; status == AN_OK && next < w->count && info.free > 0; next++, info.free--)
            status = add(w, next, (uint64_t)seed);
        if (status == AN_OK) status = an_generator_step(w->generator, tokens, &count);
        for (int64_t i = 0; status == AN_OK && i < count; i++) {
            cli_prompt *p = &w->prompts[tokens[i].sequence];
            int length = 0;
            status = an_dataset_token_text(data, tokens[i].token, p->written + p->length, &length);
            p->length += (size_t)length;
            p->written[p->length] = 0;
        }
    }
    return status;
}

/* False, with errno: it could not be written. */
static bool save(const cli_writer *w, const cli_training *t, int64_t step) {
    char path[4096];
    const char *folder = an_folder_path(t->folder);
    snprintf(path, sizeof path, "%s/samples", folder);
    if (mkdir(path, 0777) != 0 && errno != EEXIST) return false;
    snprintf(path, sizeof path, "%s/samples/step-%08lld.jsonl", folder, (long long)step);
    FILE *file = fopen(path, "w");
    if (!file) return false;
    for (int64_t i = 0; i < w->count; i++) {
        an_json_writer json = an_json_to_file(file, AN_JSON_FLAT);
        an_json_write_object(&json, NULL);
        an_json_write_string(&json, "prompt", w->prompts[i].text);
        an_json_write_string(&json, "text", w->prompts[i].written);
        an_json_write_finish(&json);
    }
    const bool good = !ferror(file);
    return fclose(file) == 0 && good;
}

void cli_writer_write(cli_writer *w, cli_training *t, int64_t step) {
    if (!w->generator) return;
    const char *why = NULL;
    if (an_generator_refresh(w->generator, t->trainer) != AN_OK)
        why = an_last_error(t->ctx);
    else if (t->is_first && generate(w, t) != AN_OK)
        why = an_last_error(NULL);
    else if (t->is_first && !save(w, t, step))
        why = strerror(errno);
    if (!why || w->has_failed) return;
    w->has_failed = true;
    cli_tell("warning: step %s: the samples of %s were not written: %s", cli_count(step).text, key, why);
}
