#include "pass/units.h"

/* The outermost block proper that a block or scope lies in; 0: none. */
static int outermost(const an_graph *g, int block) {
    int outer = 0;
    for (; block > 0; block = g->blocks[block].parent)
        if (!g->blocks[block].is_scope) outer = block;
    return outer;
}

int an_units_find(const an_graph *g, an_unit *units, int *unit_of) {
    int count = 0, last = -1; /* the block of the last unit */
    for (size_t i = 0; i < g->parameter_count; i++) {
        const an_parameter *p = &g->parameters[i];
        if (unit_of) unit_of[i] = -1;
        if (p->node->outputs[0].storage != AN_STORAGE_MASTER) continue;
        const int block = outermost(g, p->node->block);
        if (count == 0 || block != last) {
            units[count++] = (an_unit){.begin = p->offset, .name = block ? g->blocks[block].path : ""};
            last = block;
        }
        units[count - 1].end = p->offset + (p->elements + AN_PAGE - 1) / AN_PAGE * AN_PAGE;
        if (unit_of) unit_of[i] = count - 1;
    }
    return count;
}
