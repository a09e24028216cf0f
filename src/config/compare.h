/* Compares two configs of one run: which values differ, and which of them a resumed run may change.
 *
 * Values are compared by their meaning (6GiB is 6144MiB, 2000 is 2000 steps, a file is its absolute path), key by key
 * in the order of the options. The table of options (options.def) says what may change.
 */
#ifndef AN_CONFIG_COMPARE_H
#define AN_CONFIG_COMPARE_H

#include "config/config.h"

enum { AN_CHANGE_PATH = 128, AN_CHANGE_VALUE = 72 };

typedef struct an_config_change {
    char path[AN_CHANGE_PATH];                            /* "optimizer.groups[0].lr_scale" */
    char before[AN_CHANGE_VALUE], after[AN_CHANGE_VALUE]; /* for messages: long ones are cut; "not given" */
    an_config_change_kind kind;
    const char *reason; /* why the kind; lives for ever */
} an_config_change;

typedef struct an_config_changes {
    an_context *ctx;
    an_config_change *items;
    size_t count, capacity;
    bool restarts; /* a new run begins with the checkpoint: refusals say so */
} an_config_changes;

/* What "auto" stood for when the run began, as {"train.precision", "bf16"}: in either config it is read as this. */
typedef struct an_config_auto {
    const char *path, *text;
} an_config_auto;

/* Fills `changes`, which is zero before; released with an_config_changes_destroy, also after an error. */
an_status an_config_compare(an_config_changes *changes, const an_config *before, const an_config *after,
                            const an_config_auto *autos, size_t auto_count);
void an_config_changes_destroy(an_config_changes *changes);

/* Gives every key that `config` leaves at its default the value that `before` has, and takes it off the list of
 * changes, with a line in `notes`. Keys that may change freely, the instructions and types keep what they have. The
 * config gets a new tree (config->root). */
an_status an_config_inherit(an_config_changes *changes, const an_config *before, an_config *config, an_text *notes);

/* For a new run that begins with the checkpoint's state: leaves only the changes that would be another model on the
 * list. The others get a line in `notes`. */
void an_config_changes_restart(an_config_changes *changes, an_text *notes);

/* A set of kinds. */
#define AN_CHANGES(kind) (1U << (kind))

/* AN_ERR_ARGUMENT if there is a change of a kind that is not in `allowed` (free ones always are). The message has a
 * line for each of them, with its place in the new config; if they do not all fit, it says how many more there are. */
an_status an_config_changes_check(const an_config_changes *changes, an_config *after, unsigned allowed);
/* The whole text of that message, to be released with an_string_release; NULL: all changes are allowed. */
an_status an_config_changes_refusal(const an_config_changes *changes, an_config *after, unsigned allowed, char **text);

/* What a change of this option would be ("data.eval.path", without the brackets of lists). False: there is no such
 * option, or it is a table whose keys say it. */
bool an_config_rule_find(const an_option_list *all, const char *path, an_config_change_kind *kind, const char **reason);

#endif
