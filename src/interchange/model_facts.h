/* Facts about a model that follow from its graph, whatever built it: sizes, heads, rotary positions, epsilon,
 * activation. The configurations of other tools state the same facts, so the two can be compared. */
#ifndef AN_INTERCHANGE_MODEL_FACTS_H
#define AN_INTERCHANGE_MODEL_FACTS_H

#include "ir/graph.h"
#include "pretrained/facts.h"

typedef struct an_model_facts {
    struct {
        bool known;  /* false: the graph has nothing of the kind */
        bool varies; /* layers differ */
        double value;
    } facts[AN_FACTS];
} an_model_facts;

/* Without the number of tokens in a sample, and without which parameters are one: only a trainer knows that. */
void an_model_facts_of(an_model_facts *facts, const an_graph *graph);

#endif
