/* The models that are measured against others, by name. bench/torch_peers.py has the same for PyTorch. */
#ifndef AN_BENCH_MODELS_H
#define AN_BENCH_MODELS_H

#include <anneal/anneal.h>
#include <anneal/graph.h>

/* gpt2-124m  with a vocabulary of 50,304, as PyTorch's users pad it; symbols batch, tokens
 * lenet      LeNet-5 with relu and max pooling, on 1×32×32; symbol batch
 * resnet18   ResNet-18 for small images (3×3 stem, no max pooling), on 3×32×32; symbol batch
 * mlp        32-128-128-8 with tanh and a squared error; symbol batch
 * product    one matrix product, no loss; symbols m, n, k
 * AN_ERR_UNKNOWN, without a message: no model has this name. */
an_status bench_model(an_graph **graph, an_context *ctx, const char *name, an_dtype dtype);

#endif
