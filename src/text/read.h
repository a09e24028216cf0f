/* Reading tokenizer.json. Every member is used, known to change nothing, or refused by name. */
#ifndef AN_TEXT_READ_H
#define AN_TEXT_READ_H

#include "base/text/json.h"
#include "text/tokenizer.h"

enum { AN_READ_PROBLEM = 256 };

typedef struct an_text_reader {
    an_tokenizer *tokenizer;
    an_json json;
    an_status status;              /* AN_OK, or of `problem` */
    char problem[AN_READ_PROBLEM]; /* beside those that the JSON has */
} an_text_reader;

/* What part of the file steps are in: names mean different things. */
typedef enum an_step_role { AN_ROLE_NORMALIZER, AN_ROLE_SPLITTER, AN_ROLE_DECODER, AN_ROLE_PROCESSOR } an_step_role;

/* Reads one value of the file: null, a step, or a Sequence of steps. */
bool an_read_steps(an_text_reader *reader, an_step_role role);

/* Makes a problem. Gives false. */
bool an_read_refuse(an_text_reader *reader, an_status status, const char *format, ...) AN_PRINTF(3, 4);
/* Takes an error that is on the context. */
bool an_read_failed(an_text_reader *reader, an_status status);
bool an_read_is(an_json_string string, const char *text);

#endif
