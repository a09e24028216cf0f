/* What anneal eval shows beside the metrics: classes, the ROC curve, and outputs. */
#ifndef AN_CLI_PREDICT_REPORT_H
#define AN_CLI_PREDICT_REPORT_H

#include <stdio.h>

#include "anneal/details.h"
#include "base/text/json_write.h"
#include "cli/train/open.h"

enum { CLI_ROC_POINTS = 1001 };

/* The name of a class, or else its number. */
cli_text cli_class_label(const cli_training *training, int64_t number);
/* Whether classes are shown at all: those of tokens are too many to tell anything. */
bool cli_shows_classes(const cli_training *training);

void cli_report_print(const cli_training *training);
/* As members of an object. */
void cli_report_write(const cli_training *training, an_json_writer *json);

/* The confusion matrix, and for two classes the ROC curve, as an SVG picture. An exit code, after a message. */
int cli_report_draw(const cli_training *training, const char *path);

#endif
