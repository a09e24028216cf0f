/* What ranks can divide among themselves, side by side: a table, and JSON. The picture is in strategies_svg.c. */
#include <stdio.h>
#include <string.h>

#include "base/options/settings.h"
#include "cli/plan/report.h"

int cli_strategies(const cli_report *report, cli_strategy strategies[CLI_MOST_STRATEGIES]) {
    int count = 0;
    for (int shard = AN_SHARD_NONE; report->training.trainer && shard < AN_SHARD_AUTO; shard++) {
        cli_strategy s;
        an_strategy_init(&s.strategy, sizeof s.strategy);
        an_plan_memory_init(&s.memory, sizeof s.memory);
        if (count == CLI_MOST_STRATEGIES ||
            an_trainer_strategy(report->training.trainer, (an_shard)shard, &s.strategy) != AN_OK ||
            an_trainer_strategy_memory(report->training.trainer, (an_shard)shard, &s.memory) != AN_OK)
            continue;
        strategies[count++] = s;
    }
    return count > 1 ? count : 0; /* of one alone, the plan says more */
}

an_plan_life cli_gradient_root(const cli_report *report) {
    an_plan_life root = {.size = sizeof root}, life;
    an_plan_life_init(&life, sizeof life);
    for (int64_t i = 0; an_plan_life_get(report->plan, report->form, i, &life) == AN_OK; i++)
        if (!strcmp(life.op, "collect_gradients") && life.bytes > root.bytes) root = life;
    return root;
}

/* ---- text ---- */

enum { NAME = 14, WIDE = 14, NARROW = 12, MOST_WIDE = 4, INDENT = 2 }; /* columns; so many wide ones fit in 80 */

static void print_row(const char *name, const cli_strategy *strategies, int count,
                      cli_text (*cell)(const cli_strategy *strategy, int kind), int kind) {
    printf("%*s%-*s", INDENT, "", NAME, name);
    for (int i = 0; i < count; i++) printf("%*s", count > MOST_WIDE ? NARROW : WIDE, cell(&strategies[i], kind).text);
    printf("\n");
}

static cli_text cell_of_name(const cli_strategy *s, int kind) {
    cli_text text;
    (void)kind;
    snprintf(text.text, sizeof text.text, "%s%s", s->strategy.name, s->strategy.automatic ? "*" : "");
    return text;
}

static cli_text none = {"-"};

static cli_text cell_of_kind(const cli_strategy *s, int kind) {
    cli_kind kinds[CLI_KINDS];
    cli_kinds(&s->memory, kinds);
    return s->strategy.possible ? cli_bytes((double)kinds[kind].bytes) : none;
}

static cli_text cell_of_peak(const cli_strategy *s, int kind) {
    (void)kind;
    return s->strategy.possible ? cli_bytes((double)s->memory.peak) : none;
}

static cli_text cell_of_sent(const cli_strategy *s, int kind) {
    (void)kind;
    return s->strategy.possible ? cli_bytes((double)s->strategy.sent) : none;
}

static cli_text cell_of_shared(const cli_strategy *s, int kind) {
    (void)kind;
    return s->strategy.possible ? cli_bytes((double)s->strategy.shared) : none;
}

static cli_text cell_of_time(const cli_strategy *s, int kind) {
    cli_text text;
    (void)kind;
    snprintf(text.text, sizeof text.text, "%.3g s", s->strategy.seconds);
    return s->strategy.possible ? text : none;
}

static cli_text cell_of_fit(const cli_strategy *s, int kind) {
    cli_text text;
    (void)kind;
    snprintf(text.text, sizeof text.text, "%s", s->strategy.fits ? "yes" : "no");
    return s->strategy.possible ? text : none;
}

/* Broken at spaces; what follows the first line is indented. */
static void print_wrapped(const char *text) {
    int indent = INDENT;
    while (*text) {
        const size_t room = (size_t)(cli_columns() > 40 ? cli_columns() - indent : 40);
        size_t length = strlen(text);
        if (length > room) {
            for (length = room; length > 0 && text[length] != ' ';) length--;
            if (length == 0) length = strcspn(text, " ");
        }
        printf("%*s%.*s\n", indent, "", (int)length, text);
        text += length;
        text += strspn(text, " ");
        indent = 2 * INDENT;
    }
}

void cli_write_strategies(const cli_report *report) {
    cli_strategy strategies[CLI_MOST_STRATEGIES];
    cli_kind kinds[CLI_KINDS];
    char text[2048];
    const int count = cli_strategies(report, strategies);
    if (count == 0) return;
    printf("\n");
    print_row(AN_SETTING(ranks.shard), strategies, count, cell_of_name, 0);
    cli_kinds(&strategies->memory, kinds);
    for (int k = 0; k < CLI_KINDS; k++) {
        bool occurs = false;
        for (int i = 0; i < count; i++) {
            cli_kind own[CLI_KINDS];
            cli_kinds(&strategies[i].memory, own);
            occurs = occurs || own[k].bytes > 0;
        }
        if (occurs) print_row(kinds[k].name, strategies, count, cell_of_kind, k);
    }
    print_row("peak", strategies, count, cell_of_peak, 0);
    print_row("sent in a step", strategies, count, cell_of_sent, 0);
    if (report->exchange.host_ranks > 1 || strategies->strategy.shared > 0)
        print_row("shared memory", strategies, count, cell_of_shared, 0);
    print_row("time of a step", strategies, count, cell_of_time, 0);
    print_row("fits here", strategies, count, cell_of_fit, 0);
    printf("\n");
    print_wrapped("Memory is that of the fullest rank, and a step's bytes are those of the rank that moves most. Times "
                  "are estimates, to compare strategies.");
    for (int i = 0; i < count; i++) {
        const an_strategy *s = &strategies[i].strategy;
        if (!s->automatic && s->possible) continue;
        snprintf(text, sizeof text, s->automatic ? "* auto takes %s: %s" : "%s cannot be used: %s", s->name, s->reason);
        print_wrapped(text);
    }
}

/* ---- JSON ---- */

void cli_write_strategies_json(const cli_report *report, an_json_writer *json) {
    cli_strategy strategies[CLI_MOST_STRATEGIES];
    const int count = cli_strategies(report, strategies);
    if (count == 0) return;
    an_json_write_array(json, "strategies");
    for (int i = 0; i < count; i++) {
        const an_strategy *s = &strategies[i].strategy;
        cli_kind kinds[CLI_KINDS];
        cli_kinds(&strategies[i].memory, kinds);
        an_json_write_object(json, NULL);
        an_json_write_string(json, "name", s->name);
        an_json_write_bool(json, "possible", s->possible);
        an_json_write_bool(json, "fits", s->fits);
        an_json_write_bool(json, "auto", s->automatic);
        an_json_write_bool(json, "taken", s->taken);
        an_json_write_string(json, "reason", s->reason);
        an_json_write_string(json, "room", s->room);
        if (s->possible) {
            an_json_write_integer(json, "rank", s->rank);
            an_json_write_integer(json, "peak_bytes", strategies[i].memory.peak);
            for (int k = 0; k < CLI_KINDS; k++) {
                char key[32];
                snprintf(key, sizeof key, "%s_bytes", kinds[k].name);
                an_json_write_integer(json, key, kinds[k].bytes);
            }
            an_json_write_integer(json, "sent_bytes", s->sent);
            an_json_write_integer(json, "shared_bytes", s->shared);
            an_json_write_real(json, "seconds", s->seconds);
        }
        an_json_write_end(json);
    }
    an_json_write_end(json);
}
