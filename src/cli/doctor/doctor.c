/* anneal doctor: shows what this machine has, how much of it a process may use, and what would make a run faster. */
#include "cli/doctor/doctor.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json_write.h"

enum { JSON };
static const cli_option options[] = {
    [JSON] = {.name = "json", .help = "write JSON"},
    {0},
};

/* The system shows AMX to all, and gives it to those that ask and may. */
static const char *amx_state(const doctor_facts *f) {
    if (f->isa == AN_ISA_AMX) return "permitted";
    if (doctor_is_limited(f) && doctor_has(&f->limits, "amx_tile")) return "limited";
    return f->isa == AN_ISA_AVX512 && doctor_has(&f->limits, "amx_tile") ? "refused" : "none";
}

static int collect(const cli_call *call, doctor_facts *f) {
    an_context *ctx = NULL;
    an_status status = an_context_create(&ctx, NULL);
    if (status != AN_OK) return cli_failure(call, NULL, status);
    f->threads = an_context_threads(ctx);
    f->spin = an_context_spin(ctx);
    f->isa = an_context_isa(ctx);
    doctor_limits_read("", &f->limits);
    doctor_mpi_find(&f->mpi);
    doctor_opencl_find("", &f->opencl);
    doctor_openmp_find(f->openmp, sizeof f->openmp);
    const int threads =
        f->threads < f->limits.allowed ? f->threads : f->limits.allowed; /* more would not run at once */
    f->is_measured = cli_machine_measure(&f->machine, threads, f->isa) == AN_OK;
    an_context_destroy(&ctx);
    return CLI_DONE;
}

/* ---- for people ---- */

static void print_head(const char *name) {
    printf("%-13s ", name);
}

static void print_instructions(const doctor_facts *f) {
    print_head("instructions");
    int count = 0;
    for (const doctor_instruction *i = doctor_instructions; i->name; i++)
        if (doctor_has(&f->limits, i->name)) printf("%s%s", count++ > 0 ? " " : "", i->name);
    printf("%s\n", count > 0 ? "" : "none that the kernels use");
    print_head("level");
    printf("%s%s\n", an_isa_name(f->isa),
           f->isa == AN_ISA_AMX   ? ", the highest"
           : doctor_is_limited(f) ? ", limited by ANNEAL_MAX_ISA"
                                  : "");
    print_head("AMX");
    printf("%s\n", amx_state(f));
}

static void print_processors(const doctor_limits *l) {
    print_head("processors");
    if (l->allowed < l->online)
        printf("%d of %d for this process", l->allowed, l->online);
    else
        printf("%d", l->online);
    if (l->cores > 0) printf(", on %d core%s", l->cores, l->cores == 1 ? "" : "s");
    if (l->nodes > 0) printf(", %d memory node%s", l->nodes, l->nodes == 1 ? "" : "s");
    printf("; load %.1f\n", l->load);
    print_head("");
    if (l->quota > 0)
        printf("the cgroup allows %.3g\n", l->quota);
    else
        printf("no cgroup limit\n");
}

static void print_memory(const doctor_limits *l) {
    print_head("memory");
    printf("%s, %s of it available\n", cli_bytes((double)l->memory).text, cli_bytes((double)l->memory_available).text);
    print_head("");
    if (l->memory_limit > 0)
        printf("the cgroup allows %s\n", cli_bytes((double)l->memory_limit).text);
    else
        printf("no cgroup limit\n");
}

static void print_libraries(const doctor_facts *f) {
    const char *onednn = an_onednn_version();
    print_head("threads");
    printf("%d; idle ones %s\n", f->threads, cli_waiting(f->spin).text);
    print_head("OpenMP");
    printf("%s\n", *f->openmp ? f->openmp : "runtime not found");
    for (int i = 0; doctor_variables[i]; i++) {
        const char *value = getenv(doctor_variables[i]);
        if (!value) continue;
        print_head("");
        printf("%s=%s\n", doctor_variables[i], value);
    }
    print_head("oneDNN");
    printf("%s\n", *onednn ? onednn : "none: portable kernels only");
    print_head("MPI");
    if (*f->mpi.library) printf("%s (%s)", f->mpi.name, f->mpi.library);
    if (*f->mpi.launcher) printf("%s%s", *f->mpi.library ? ", " : "", f->mpi.launcher);
    printf("%s; plugins for %s\n", *f->mpi.library || *f->mpi.launcher ? "" : "none found",
           *an_mpi_version() ? an_mpi_version() : "none, so one rank only");
}

static void print_list(const char *head, const doctor_advice *advice) {
    printf("\n%s\n", head);
    for (int i = 0; i < advice->count; i++) {
        printf("%2d. ", i + 1);
        cli_print_wrapped(advice->text[i], 4, 4);
    }
}

static void print_text(const doctor_facts *f, const doctor_advice *warnings, const doctor_advice *advice) {
    print_head("anneal");
    printf("%s\n", an_version());
    print_head("processor");
    printf("%s\n", *f->limits.processor ? f->limits.processor : "not named");
    print_instructions(f);
    print_processors(&f->limits);
    print_memory(&f->limits);
    if (f->is_measured) {
        print_head("speed");
        printf("f32 %s", cli_amount(f->machine.f32, "FLOP/s").text);
        printf(", bf16 %s", cli_amount(f->machine.bf16, "FLOP/s").text);
        printf(", memory %s; measured just now\n", cli_amount(f->machine.bandwidth, "B/s").text);
    }
    print_libraries(f);
    if (warnings->count > 0) print_list("What can make a run fail:", warnings);
    print_list(advice->count > 0 ? "What would make it faster:" : "Nothing was found that would make it faster.",
               advice);
}

/* ---- for programs ---- */

static void write_text_or_null(an_json_writer *j, const char *key, const char *value) {
    if (*value)
        an_json_write_string(j, key, value);
    else
        an_json_write_null(j, key);
}

static void write_limit(an_json_writer *j, const char *key, double value) {
    if (value > 0)
        an_json_write_rounded(j, key, value);
    else
        an_json_write_null(j, key);
}

static void write_machine(an_json_writer *j, const doctor_facts *f) {
    const doctor_limits *l = &f->limits;
    write_text_or_null(j, "processor", l->processor);
    an_json_write_array(j, "instructions");
    for (const doctor_instruction *i = doctor_instructions; i->name; i++)
        if (doctor_has(l, i->name)) an_json_write_string(j, NULL, i->name);
    an_json_write_end(j);
    an_json_write_string(j, "isa", an_isa_name(f->isa));
    an_json_write_string(j, "amx", amx_state(f));
    an_json_write_integer(j, "processors", l->online);
    an_json_write_integer(j, "processors_allowed", l->allowed);
    an_json_write_integer(j, "cores", l->cores);
    an_json_write_integer(j, "memory_nodes", l->nodes);
    write_limit(j, "processors_limit", l->quota);
    an_json_write_rounded(j, "load", l->load);
    an_json_write_integer(j, "memory_bytes", l->memory);
    an_json_write_integer(j, "memory_available_bytes", l->memory_available);
    if (l->memory_limit > 0)
        an_json_write_integer(j, "memory_limit_bytes", l->memory_limit);
    else
        an_json_write_null(j, "memory_limit_bytes");
    write_limit(j, "f32_flops_per_second", f->machine.f32);
    write_limit(j, "bf16_flops_per_second", f->machine.bf16);
    write_limit(j, "bytes_per_second", f->machine.bandwidth);
}

static void write_list(an_json_writer *j, const char *key, const doctor_advice *advice) {
    an_json_write_array(j, key);
    for (int i = 0; i < advice->count; i++) an_json_write_string(j, NULL, advice->text[i]);
    an_json_write_end(j);
}

static void write_json(const doctor_facts *f, const doctor_advice *warnings, const doctor_advice *advice) {
    an_json_writer j = an_json_to_file(stdout, AN_JSON_LINES);
    an_json_write_object(&j, NULL);
    an_json_write_string(&j, "anneal", an_version());
    write_machine(&j, f);
    an_json_write_integer(&j, "threads", f->threads);
    if (isfinite(f->spin))
        an_json_write_rounded(&j, "spin_seconds", f->spin);
    else
        an_json_write_null(&j, "spin_seconds");
    an_json_write_object(&j, "openmp");
    an_json_write_integer(&j, "threads", f->threads);
    write_text_or_null(&j, "runtime", f->openmp);
    an_json_write_object(&j, "variables");
    for (int i = 0; doctor_variables[i]; i++)
        if (getenv(doctor_variables[i])) an_json_write_string(&j, doctor_variables[i], getenv(doctor_variables[i]));
    an_json_write_end(&j);
    an_json_write_end(&j);
    write_text_or_null(&j, "onednn", an_onednn_version());
    an_json_write_object(&j, "mpi");
    write_text_or_null(&j, "name", f->mpi.name);
    write_text_or_null(&j, "library", f->mpi.library);
    write_text_or_null(&j, "launcher", f->mpi.launcher);
    write_text_or_null(&j, "plugins", an_mpi_version());
    an_json_write_end(&j);
    write_list(&j, "warnings", warnings);
    write_list(&j, "advice", advice);
    an_json_write_finish(&j);
}

static int run(const cli_call *call) {
    static doctor_facts facts;
    static doctor_advice warnings, advice;
    const int code = collect(call, &facts);
    if (code != CLI_DONE) return code;
    doctor_warn(&facts, &warnings);
    doctor_advise(&facts, &advice);
    if (call->values[JSON])
        write_json(&facts, &warnings, &advice);
    else
        print_text(&facts, &warnings, &advice);
    return cli_finish(call);
}

const cli_command cli_doctor = {
    .name = "doctor",
    .summary = "show what this machine offers and how to make it faster",
    .text =
        "Shows the instruction sets that kernels can use, whether AMX is permitted, processors and memory with their "
        "limits, OpenMP, oneDNN and MPI, measures the speed of the machine, warns of what can make a run fail, and "
        "suggests what "
        "would make it faster.",
    .options = options,
    .run = run,
};
