/* The text form of a graph, `.ang` (docs/ang-format.md): a model, or a dump, which is a model and what passes noted on
 * it. an_graph_print and an_graph_parse are public; a dump is for tests of passes and for people who look at plans. */
#ifndef AN_IR_TEXT_FORM_H
#define AN_IR_TEXT_FORM_H

#include "ir/graph.h"

enum { AN_TEXT_VERSION = 1 };

/* The file of places in graphs that were read from text without places of their own; their lines are the text's. */
#define AN_TEXT_FILE "ang"

/* The model with every annotation. */
an_status an_graph_dump(const an_graph *g, an_text *text);

/* Reads a model or a dump. Only for text that is trusted, as in tests of passes: an offset or a kernel that no pass
 * chose would be believed. an_graph_parse, which everybody may call, refuses dumps. */
an_status an_graph_parse_dump(an_graph **graph, an_context *ctx, const char *text, size_t length);

/* Names of annotations' values, as the text has them; NULL ends them. */
extern const char *const an_phase_names[];
extern const char *const an_storage_names[];

#endif
