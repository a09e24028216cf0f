#include "pass/units.h"

#include <string.h>

/* The outermost block proper that a block or scope lies in; 0: none. */
static int outermost(const an_graph *g, int block) {
    int outer = 0;
    for (; block > 0; block = g->blocks[block].parent)
        if (!g->blocks[block].is_scope) outer = block;
    return outer;
}

static bool is_small(const an_graph *g, const an_unit *unit) {
    return unit->end - unit->begin < g->min_elements;
}

static bool may_join(const an_unit *a, const an_unit *b) {
    return !a->is_shared && !b->is_shared;
}

/* What lies in no block has no name to add. */
static void join(an_unit *unit, const an_unit *next) {
    unit->end = next->end;
    if (*next->last_name) unit->last_name = next->last_name;
    if (!*unit->name) unit->name = next->name;
}

int an_units_at(const an_unit *units, int count, int64_t element) {
    int low = 0, high = count - 1;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (units[middle].end > element)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int add_extras(const an_graph *g, an_unit *units, int count) {
    for (size_t i = 0; i < g->parameter_count; i++) {
        const an_parameter *p = &g->parameters[i];
        const int64_t padded = an_parameter_padded(p);
        for (int k = 0; k < p->extras; k++) {
            const an_unit *own = &units[an_units_at(units, count, p->offset)];
            units[count] = *own;
            units[count].begin = p->extra + k * padded;
            units[count].end = units[count].begin + padded;
            count++;
        }
    }
    return count;
}

size_t an_units_most(const an_graph *g) {
    size_t maximum = g->parameter_count;
    for (size_t i = 0; i < g->parameter_count; i++) maximum += (size_t)g->parameters[i].extras;
    return maximum;
}

int an_units_find(const an_graph *g, an_unit *units, int *extras, int *unit_of) {
    int count = 0, last = -1; /* the block of the last parameter */
    for (size_t i = 0; i < g->parameter_count; i++) {
        const an_parameter *p = &g->parameters[i];
        if (unit_of) unit_of[i] = -1;
        if (p->node->outputs[0].storage != AN_STORAGE_MASTER) continue;
        const int block = outermost(g, p->node->block);
        const char *name = block ? g->blocks[block].path : p->is_shared ? p->name : "";
        const an_unit own = {.begin = p->offset,
                             .end = p->offset + an_parameter_padded(p),
                             .name = name,
                             .last_name = name,
                             .is_shared = p->is_shared};
        if (count > 0 && may_join(&units[count - 1], &own) && (block == last || is_small(g, &units[count - 1])))
            join(&units[count - 1], &own);
        else
            units[count++] = own;
        last = block;
        if (unit_of) unit_of[i] = count - 1;
    }
    if (count > 1 && may_join(&units[count - 2], &units[count - 1]) && is_small(g, &units[count - 1])) {
        count--;
        join(&units[count - 1], &units[count]);
        for (size_t i = 0; unit_of && i < g->parameter_count; i++)
            if (unit_of[i] == count) unit_of[i] = count - 1;
    }
    for (int i = 0; i < count; i++) units[i].turn = i;
    const int all = add_extras(g, units, count);
    if (extras) *extras = all - count;
    return all;
}

size_t an_unit_describe(const an_unit *unit, char *text) {
    const bool several = unit->name != unit->last_name;
    const char *const parts[] = {unit->name, several ? " to " : "", several ? unit->last_name : ""};
    size_t length = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const size_t part = strlen(parts[i]);
        if (text) memcpy(text + length, parts[i], part);
        length += part;
    }
    if (text) text[length] = 0;
    return length + 1;
}
