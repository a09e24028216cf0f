/* Records what a processor with AMX makes of random operands: record_tiles FILE writes recorded.bin, to which
 * test_model.c holds the model on every machine. */
#include <stdio.h>
#include <stdlib.h>

#include "base/isa.h"
#include "tiles/problem.h"

static const int counts[PROBLEM_INSTRUCTIONS] = {
    [PROBLEM_TILES_BF16] = 80, [PROBLEM_TILES_INT8] = 10, [PROBLEM_PAIRS_BF16] = 60, [PROBLEM_ROUND] = 60};

static bool record(FILE *file) {
    uint64_t random = 2026;
    bool is_written = fputs(PROBLEM_FILE_HEAD, file) >= 0;
    for (int instruction = 0; instruction < PROBLEM_INSTRUCTIONS; instruction++)
        for (int i = 0; i < counts[instruction] && is_written; i++) {
            problem before, after;
            problem_draw(&before, (problem_instruction)instruction, &random);
            after = before;
            problem_run_on_processor(&after);
            is_written = problem_write(file, &before, &after);
        }
    return is_written;
}

int main(int count, char **arguments) {
    if (count != 2 || an_isa_highest() != AN_ISA_AMX) {
        fprintf(stderr, "record_tiles FILE, on a machine with AMX\n");
        return EXIT_FAILURE;
    }
    FILE *file = fopen(arguments[1], "wb");
    const bool is_written = file && record(file);
    if (file && fclose(file) == 0 && is_written) return EXIT_SUCCESS;
    perror(arguments[1]);
    return EXIT_FAILURE;
}
