#include "cli/bench/profile.h"

#include <stdlib.h>
#include <string.h>

#include "cli/main/cli.h"

/* ---- reading ---- */

double cli_profile_attainable(const cli_machine *machine, const an_profile_entry *entry) {
    double speed = machine->f32;
    if (entry->dtype == AN_DTYPE_F64) speed = machine->f64;
    if (entry->dtype == AN_DTYPE_BF16) speed = machine->bf16;
    const double arithmetic = entry->flops / speed, memory = entry->bytes / machine->bandwidth;
    return arithmetic > memory ? arithmetic : memory;
}

static cli_profile_row *row_of(cli_profile *profile, const an_profile_entry *entry) {
    for (int i = 0; i < profile->row_count; i++) {
        cli_profile_row *row = &profile->rows[i];
        if (row->dtype == entry->dtype && !strcmp(row->op, entry->op) && !strcmp(row->kernel, entry->kernel))
            return row;
    }
    cli_profile_row *row = &profile->rows[profile->row_count++];
    *row = (cli_profile_row){.op = entry->op, .kernel = entry->kernel, .dtype = entry->dtype};
    return row;
}

static int by_seconds(const void *a, const void *b) {
    const double x = ((const cli_profile_row *)a)->seconds, y = ((const cli_profile_row *)b)->seconds;
    return (x < y) - (x > y);
}

an_status cli_profile_take(cli_profile *profile, const an_program *program, an_form form, double seconds) {
    cli_profile_free(profile);
    profile->entry_count = an_program_profile_count(program, form);
    profile->row_count = 0;
    profile->pass = seconds;
    profile->entries = calloc((size_t)profile->entry_count + 1, sizeof *profile->entries); /* + 1: calloc(0) is NULL */
    profile->rows = calloc((size_t)profile->entry_count + 1, sizeof *profile->rows);
    if (!profile->entries || !profile->rows) return AN_ERR_MEMORY;
    for (int64_t i = 0; i < profile->entry_count; i++) {
        an_profile_entry *entry = &profile->entries[i];
        an_profile_entry_init(entry, sizeof *entry);
        const an_status status = an_program_profile_entry(program, form, i, entry);
        if (status != AN_OK) return status;
        cli_profile_row *row = row_of(profile, entry);
        row->nodes++;
        row->seconds += entry->last;
        row->flops += entry->flops;
        row->bytes += entry->bytes;
        row->attainable += cli_profile_attainable(&profile->machine, entry);
    }
    qsort(profile->rows, (size_t)profile->row_count, sizeof *profile->rows, by_seconds);
    return AN_OK;
}

void cli_profile_free(cli_profile *profile) {
    free(profile->entries);
    free(profile->rows);
    profile->entries = NULL;
    profile->rows = NULL;
}

/* What runs between the instructions: copies of weights that a step makes anew, the clock, hooks. */
static double between(const cli_profile *profile) {
    double rest = profile->pass;
    for (int i = 0; i < profile->row_count; i++) rest -= profile->rows[i].seconds;
    return rest > 0 ? rest : 0;
}

/* An amount a second, or a share; 0 where the clock saw no time. */
static double over(double amount, double seconds) {
    return seconds > 0 ? amount / seconds : 0;
}

/* ---- table ---- */

enum { OP = 26, KERNEL = 18, DTYPE = 6 }; /* columns */
static const double milli = 1e3, percent = 100, giga = 1e-9;

void cli_profile_print(const cli_profile *profile) {
    const cli_machine *m = &profile->machine;
    printf("the best pass; the roof, measured just now: f32 %.0f GF/s, f64 %.0f GF/s, bf16 %.0f GF/s, "
           "memory %.1f GB/s\n\n",
           m->f32 * giga, m->f64 * giga, m->bf16 * giga, m->bandwidth * giga);
    printf("%-*s%-*s%-*s%6s%11s%9s%10s%9s%9s\n", OP, "op", KERNEL, "kernel", DTYPE, "type", "nodes", "ms", "share",
           "GF/s", "GB/s", "of roof");
    for (int i = 0; i < profile->row_count; i++) {
        const cli_profile_row *row = &profile->rows[i];
        printf("%-*s%-*s%-*s%6lld%11.3f%7.1f %%%10.1f%9.1f%7.0f %%\n", OP, row->op, KERNEL, row->kernel, DTYPE,
               an_dtype_name(row->dtype), (long long)row->nodes, row->seconds * milli,
               percent * over(row->seconds, profile->pass), giga * over(row->flops, row->seconds),
               giga * over(row->bytes, row->seconds), percent * over(row->attainable, row->seconds));
    }
    printf("%-*s%17.3f%7.1f %%\n", OP + KERNEL + DTYPE, "between nodes", between(profile) * milli,
           percent * over(between(profile), profile->pass));
    printf("%-*s%6lld%11.3f%7.1f %%\n", OP + KERNEL + DTYPE, "pass", (long long)profile->entry_count,
           profile->pass * milli, percent);
}

/* ---- JSON ---- */

void cli_profile_write_json(const cli_profile *profile, an_json_writer *j) {
    an_json_write_object(j, "machine");
    an_json_write_rounded(j, "f32_flops_per_second", profile->machine.f32);
    an_json_write_rounded(j, "f64_flops_per_second", profile->machine.f64);
    an_json_write_rounded(j, "bf16_flops_per_second", profile->machine.bf16);
    an_json_write_rounded(j, "bytes_per_second", profile->machine.bandwidth);
    an_json_write_end(j);
    an_json_write_array(j, "profile");
    for (int i = 0; i < profile->row_count; i++) {
        const cli_profile_row *row = &profile->rows[i];
        an_json_write_object(j, NULL);
        an_json_write_string(j, "op", row->op);
        an_json_write_string(j, "kernel", row->kernel);
        an_json_write_string(j, "dtype", an_dtype_name(row->dtype));
        an_json_write_integer(j, "nodes", row->nodes);
        an_json_write_rounded(j, "seconds", row->seconds);
        an_json_write_whole(j, "flops", row->flops);
        an_json_write_whole(j, "bytes", row->bytes);
        an_json_write_rounded(j, "attainable_seconds", row->attainable);
        an_json_write_end(j);
    }
    an_json_write_end(j);
    an_json_write_rounded(j, "between_seconds", between(profile));
}

/* ---- trace ---- */

/* Whole nanoseconds since the beginning of the trace, in microseconds, the format's unit: so that a bar never begins
 * before the one around it, or ends after it. */
static double time_in(const cli_trace_file *trace, double seconds) {
    static const double nano = 1e9, in_micro = 1e3;
    return (double)(int64_t)((seconds - trace->origin) * nano + 0.5) / in_micro;
}

void cli_trace_event(cli_trace_file *trace, const cli_trace_bar *bar, an_json_writer *j) {
    const double begin = time_in(trace, bar->begin);
    *j = an_json_to_file(trace->file, AN_JSON_FLAT);
    fputs(trace->events++ ? "," : "[\n", trace->file);
    an_json_write_object(j, NULL);
    an_json_write_string(j, "name", bar->name);
    an_json_write_string(j, "cat", bar->category);
    an_json_write_string(j, "ph", "X"); /* a complete event: a bar with its length */
    an_json_write_real(j, "ts", begin);
    an_json_write_real(j, "dur", time_in(trace, bar->end) - begin);
    an_json_write_integer(j, "pid", 1);
    an_json_write_integer(j, "tid", bar->row);
    an_json_write_object(j, "args");
}

void cli_trace_end(const cli_trace_file *trace) {
    fputs(trace->events ? "]\n" : "[]\n", trace->file);
}

void cli_profile_write_nodes(const cli_profile *profile, cli_trace_file *trace) {
    for (int64_t i = 0; i < profile->entry_count; i++) {
        const an_profile_entry *entry = &profile->entries[i];
        const cli_trace_bar bar = {.name = entry->op,
                                   .category = entry->backward ? "backward" : "forward",
                                   .row = CLI_TRACE_FIRST_ROW,
                                   .begin = entry->began,
                                   .end = entry->began + entry->last};
        an_json_writer j;
        cli_trace_event(trace, &bar, &j);
        an_json_write_integer(&j, "instruction", i);
        an_json_write_string(&j, "op", entry->op);
        an_json_write_string(&j, "kernel", entry->kernel);
        an_json_write_string(&j, "path", entry->path);
        an_json_write_string(&j, "dtype", an_dtype_name(entry->dtype));
        an_json_write_whole(&j, "flops", entry->flops);
        an_json_write_whole(&j, "bytes", entry->bytes);
        an_json_write_rounded(&j, "GF/s", giga * over(entry->flops, entry->last));
        an_json_write_rounded(&j, "GB/s", giga * over(entry->bytes, entry->last));
        an_json_write_rounded(&j, "of roof", over(cli_profile_attainable(&profile->machine, entry), entry->last));
        an_json_write_end(&j);
        an_json_write_finish(&j);
    }
}

void cli_profile_write_trace(const cli_profile *profile, FILE *file) {
    cli_trace_file trace = {.file = file, .origin = profile->entry_count ? profile->entries[0].began : 0};
    cli_profile_write_nodes(profile, &trace);
    cli_trace_end(&trace);
}
