/* One instruction with its operands: drawn at random, run on the processor or on the model, recorded in a file. */
#ifndef TESTS_TILES_PROBLEM_H
#define TESTS_TILES_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { PROBLEM_BYTES = 1024 };

typedef enum {
    PROBLEM_TILES_BF16, /* rows × depth words of a times depth words × columns of b, added to the sums */
    PROBLEM_TILES_INT8,
    PROBLEM_PAIRS_BF16, /* 16 words of a and b each; rows, depth and columns are not used */
    PROBLEM_ROUND,      /* 16 floats of the sums become bf16, in their first 32 bytes; the others are 0 */
    PROBLEM_INSTRUCTIONS
} problem_instruction;

typedef struct {
    uint8_t instruction, rows, depth, columns;
} problem_head;

/* Rows lie one after the other, without gaps. `sums` is what the instruction changes. */
typedef struct {
    problem_head head;
    int a_bytes, b_bytes, sums_bytes;
    _Alignas(64) unsigned char a[PROBLEM_BYTES];
    _Alignas(64) unsigned char b[PROBLEM_BYTES];
    _Alignas(64) unsigned char sums[PROBLEM_BYTES];
} problem;

/* The next problem of a sequence that begins with any number but 0. */
void problem_draw(problem *p, problem_instruction instruction, uint64_t *random);

void problem_run_on_model(problem *p);

/* Needs a processor with AMX, and a process that may use it: an_isa_highest() is AN_ISA_AMX. */
void problem_run_on_processor(problem *p);

/* A problem as it was before and after the instruction. Each returns false at the end of the file or on an error. */
bool problem_write(FILE *file, const problem *before, const problem *after);
bool problem_read(FILE *file, problem *before, problem *after);

/* Is expected at the beginning of the file. */
#define PROBLEM_FILE_HEAD "anneal tiles 1\n"

#endif
