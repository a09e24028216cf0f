/* Every sentence that a config can be refused with, word for word: the place, what is wrong, the remedy. */
#include "anneal/config.h"
#include "config/config.h"
#include "support/support.h"

typedef struct refusal {
    const char *text, *set; /* set NULL: none */
    const char *message;    /* its first line */
} refusal;

#define MODEL "model: {type: gpt2, layers: 2, heads: 2, width: 32, context: 16}\n"
#define DATA "data: {train: {type: text, path: a.txt}}\n"
#define BOTH MODEL DATA
#define EVAL "data: {train: {type: text, path: a.txt}, eval: {type: text, path: a.txt}}\n"
#define MLP "model: {type: mlp}\ndata: {train: {type: csv, path: a.csv}}\n"

static const refusal refusals[] = {
    /* ---- what YAML itself is ---- */
    {"", NULL, "run.yaml:1:1: 'model' is missing; a config needs at least model and data"},
    {"# nothing\n", NULL, "run.yaml:1:1: 'model' is missing; a config needs at least model and data"},
    {"- a\n- b\n", NULL, "run.yaml:1:1: this is a list; a config is a table of keys and needs at least model and data"},
    {"just a text", NULL,
     "run.yaml:1:1: this is a single value; a config is a table of keys and needs at least model and data"},
    {"model: [1, 2\n", NULL,
     "run.yaml:2:1: this is not valid YAML: did not find expected ',' or ']', while parsing a flow sequence; check "
     "brackets, quotes and indentation"},
    {"model: {type: gpt2\ndata: 3\n", NULL,
     "run.yaml:2:5: this is not valid YAML: did not find expected ',' or '}', while parsing a flow mapping; check "
     "brackets, quotes and indentation"},
    {"a: b: c\n", NULL,
     "run.yaml:1:5: this is not valid YAML: mapping values are not allowed in this context; check brackets, quotes and "
     "indentation"},
    {"model: \"open\n", NULL,
     "run.yaml:2:1: this is not valid YAML: found unexpected end of stream, while scanning a quoted scalar; check "
     "brackets, quotes and indentation"},
    {"\tmodel: 1\n", NULL, "run.yaml:1:1: found a tab; YAML must be indented with spaces"},
    {BOTH "run: &here {seed: 1}\n", NULL,
     "run.yaml:3:6: anchors (&name) are not supported in a config; write the value itself"},
    {BOTH "run: *there\n", NULL, "run.yaml:3:6: aliases (*name) are not supported in a config; write the value itself"},
    {BOTH "run: !!map {seed: 1}\n", NULL, "run.yaml:3:6: tags (!name) are not supported in a config; remove the tag"},
    {BOTH "---\nrun: 1\n", NULL, "run.yaml:4:1: a second document begins here, but a config is a single document"},
    {"%YAML 1.1\n---\nmodel: {type: gpt2, layers: 2, heads: 2, width: 32, context: 16}\n" DATA, NULL,
     "run.yaml:1:1: directives (%NAME) are not supported in a config; remove the line"},
    {BOTH "run: {seed: 1, seed: 2}\n", NULL,
     "run.yaml:3:16: 'seed' appears twice in one table, first at 3:7; remove one of them"},
    {BOTH BOTH, NULL, "run.yaml:3:1: 'model' appears twice in one table, first at 1:1; remove one of them"},
    {BOTH "? [a, b]\n: 1\n", NULL, "run.yaml:3:3: found a list where a key is expected; keys are names"},
    {BOTH "run: {dir: \"a\\0b\"}\n", NULL, "run.yaml:3:12: this text contains a NUL character; remove it"},
    {"a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n", NULL,
     "run.yaml:1:27: lists and tables are nested more than 24 levels deep; use fewer levels"},
    {BOTH "# \xff\n", NULL,
     "run.yaml:3:3: byte 108 of the text is not valid (invalid leading UTF-8 octet); a config must be UTF-8"},
    {BOTH "# \x01\n", NULL,
     "run.yaml:3:3: byte 108 of the text is not valid (control characters are not allowed); a config must be UTF-8"},
    {MODEL "data: {mixtures: [{type: mixture, parts: [{type: mixture, parts: [{type: mixture, parts: [array]}]}]}]}\n",
     NULL,
     "run.yaml:2:90: data.train.parts[0].parts[0].parts[0].parts is nested in 3 lists of the same kind; use fewer "
     "levels"},
    /* ---- keys ---- */
    {DATA, NULL, "run.yaml:1:1: 'model' is missing; a config needs at least model and data"},
    {MODEL, NULL, "run.yaml:1:1: 'data' is missing; a config needs at least model and data"},
    {"model: gpt2\ndata:\n", NULL,
     "run.yaml:2:6: data has no 'train'; set it to a table such as {type: text, path: FILE}"},
    {"model:\n" DATA, NULL,
     "run.yaml:1:7: model needs 'type'; set it to mlp, cnn, gpt2, llama, bert, pretrained, sequential or graph"},
    {BOTH "optimiser: {lr: 1}\n", NULL, "run.yaml:3:1: unknown key 'optimiser'; did you mean 'optimizer'?"},
    {BOTH "optimizer: {lrr: 1e-3}\n", NULL, "run.yaml:3:13: unknown key 'optimizer.lrr'; did you mean 'lr'?"},
    {BOTH "optimizer: {learning_rate: 1e-3}\n", NULL,
     "run.yaml:3:13: unknown key 'optimizer.learning_rate'; the key is called optimizer.lr"},
    {BOTH "optimizer: {sgd: {lr: 1}}\n", NULL, "run.yaml:3:13: unknown key 'optimizer.sgd'; write type: sgd"},
    {"model: {type: sequential, layers: [{linear: 8}]}\n" DATA, NULL,
     "run.yaml:1:37: unknown key 'model.layers[0].linear'; write type: linear"},
    /* names of other tools for several ranks */
    {BOTH "ranks: {bucket_cap_mb: 25}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.bucket_cap_mb'; the plan chooses in which pieces gradients are exchanged, and "
     "counts their memory; there is nothing to set"},
    {BOTH "ranks: {no_sync: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.no_sync'; gradients are exchanged once a step, after its last micro-batch "
     "(batch.accumulate); there is nothing to set"},
    {BOTH "ranks: {find_unused_parameters: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.find_unused_parameters'; the graph knows which parameters a step uses, and the "
     "gradients of others are zeros; there is nothing to set"},
    {BOTH "ranks: {static_graph: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.static_graph'; a model is compiled once and is the same in every step; there is "
     "nothing to set"},
    {BOTH "ranks: {sync_batchnorm: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.sync_batchnorm'; batch norm uses the samples of one micro-batch, whatever the "
     "number of ranks, and running statistics are those of all ranks; batch.micro sets how many samples that is"},
    {BOTH "ranks: {broadcast_buffers: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.broadcast_buffers'; running statistics are combined over all ranks in every "
     "step, so they are never different; there is nothing to set"},
    {BOTH "run: {set_epoch: 3}\n", NULL,
     "run.yaml:3:7: unknown key 'run.set_epoch'; every epoch has its own order, which follows from run.seed and is the "
     "same for any number of ranks; there is nothing to set"},
    {BOTH "nproc_per_node: 4\n", NULL,
     "run.yaml:3:1: unknown key 'nproc_per_node'; the number of ranks belongs to a launch and not to the run: start it "
     "with 'anneal train CONFIG -n 4', or with mpirun or srun"},
    {BOTH "ranks: {nnodes: 2}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.nnodes'; the number of hosts belongs to a launch and not to the run: mpirun and "
     "srun start ranks on several hosts"},
    {BOTH "ranks: {world_size: 4}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.world_size'; the number of ranks belongs to a launch and not to the run: start "
     "it with 'anneal train CONFIG -n 4', or with mpirun or srun"},
    {BOTH "ranks: {master_addr: host}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.master_addr'; the launcher, mpirun or srun, knows the hosts and connects the "
     "ranks; there is nothing to set"},
    {BOTH "log: {sync_dist: on}\n", NULL,
     "run.yaml:3:7: unknown key 'log.sync_dist'; the loss and the metrics are those of all ranks anyway; there is "
     "nothing to set"},
    {BOTH "fsdp: {}\n", NULL, "run.yaml:3:1: unknown key 'fsdp'; that is ranks.shard: full here"},
    {BOTH "ranks: {ddp: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.ddp'; that is ranks.shard: none here, where every rank has the whole model"},
    {BOTH "ranks: {zero1: on}\n", NULL, "run.yaml:3:9: unknown key 'ranks.zero1'; that is ranks.shard: optimizer here"},
    {BOTH "ranks: {zero2: on}\n", NULL, "run.yaml:3:9: unknown key 'ranks.zero2'; that is ranks.shard: gradients here"},
    {BOTH "zero3: on\n", NULL, "run.yaml:3:1: unknown key 'zero3'; that is ranks.shard: full here"},
    {BOTH "ranks: {FULL_SHARD: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.FULL_SHARD'; that is ranks.shard: full here"},
    {BOTH "ranks: {SHARD_GRAD_OP: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.SHARD_GRAD_OP'; that is ranks.shard: gradients here"},
    {BOTH "ranks: {NO_SHARD: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.NO_SHARD'; that is ranks.shard: none here, where every rank has the whole "
     "model"},
    {BOTH "ranks: {HYBRID_SHARD: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.HYBRID_SHARD'; that is ranks.shard: hybrid here"},
    {BOTH "ranks: {auto_wrap_policy: size}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.auto_wrap_policy'; the blocks of the model are what is gathered at a time; "
     "ranks.unit.min_elements joins small ones"},
    {BOTH "ranks: {limit_all_gathers: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.limit_all_gathers'; the plan limits how much is gathered ahead, and counts it; "
     "there is nothing to set"},
    {BOTH "ranks: {cpu_offload: on}\n", NULL,
     "run.yaml:3:9: unknown key 'ranks.cpu_offload'; weights and the state of the optimizer are in the host's memory "
     "anyway; there is nothing to set"},
    {BOTH "save: {state_dict_type: full}\n", NULL,
     "run.yaml:3:8: unknown key 'save.state_dict_type'; a checkpoint can be read on any number of ranks, whatever "
     "number wrote it, and 'anneal export' writes one file; there is nothing to set"},
    {BOTH "lr: 1e-3\n", NULL, "run.yaml:3:1: unknown key 'lr'; did you mean optimizer.lr?"},
    {BOTH "optimizer.lr: 1e-3\n", NULL, "run.yaml:3:1: unknown key 'optimizer.lr'; did you mean 'optimizer'?"},
    {BOTH "run:\n  stpes: 10\n", NULL, "run.yaml:4:3: unknown key 'run.stpes'; did you mean 'steps'?"},
    {BOTH "save: {wri: 2}\n", NULL, "run.yaml:3:8: unknown key 'save.wri'; did you mean 'writers'?"},
    {BOTH "save: {kee: 2}\n", NULL,
     "run.yaml:3:8: unknown key 'save.kee'; the keys of save are every, keep_last, keep_every, keep_named, stage, "
     "writers"},
    {BOTH "zzz: 1\n", NULL,
     "run.yaml:3:1: unknown key 'zzz'; the keys of a config are version, run, model, lora, data, batch, optimizer, "
     "schedule, "
     "train, eval, save, log, ranks"},
    {BOTH "optimizer: {groups: [{match: x, scale: 2}]}\n", NULL,
     "run.yaml:3:33: unknown key 'optimizer.groups[0].scale'; the keys of optimizer.groups[0] are match, lr_scale, "
     "weight_decay, freeze"},
    {BOTH "schedule: {warmup: {step: 5}}\n", NULL,
     "run.yaml:3:21: unknown key 'schedule.warmup.step'; did you mean 'steps'?"},
    {BOTH "optimizer: {groups: [{lr_scale: 2}]}\n", NULL,
     "run.yaml:3:22: optimizer.groups[0] needs 'match'; set it to a text"},
    {BOTH "version: 2\n", NULL,
     "run.yaml:3:10: this config has version 2, but this anneal reads only version 1; use a newer anneal"},
    {BOTH "version: 0\n", NULL, "run.yaml:3:10: version is '0'; it takes 1"},
    /* ---- types of a table ---- */
    {"model: {type: mlp, heads: 4}\n" DATA, NULL,
     "run.yaml:1:20: model of type 'mlp' has no key 'heads', which is for type gpt2, llama or bert; its keys are type, "
     "inputs, outputs, hidden, embedding, activation, batch_norm, dropout, loss, init"},
    {"model: {type: gpt3}\n" DATA, NULL,
     "run.yaml:1:15: model.type is 'gpt3'; it takes mlp, cnn, gpt2, llama, bert, pretrained, sequential or graph; did "
     "you mean "
     "'gpt2'?"},
    {"model: {type: llama, layers: 2}\n" DATA, NULL,
     "run.yaml:1:8: model of type 'llama' needs 'heads'; set it to a whole number of at least 1"},
    {"model: {type: sequential, layers: 4}\n" DATA, NULL,
     "run.yaml:1:35: model.layers is a single value; it takes a list of tables"},
    {"model: {type: sequential, layers: [{type: linear, filters: 3}]}\n" DATA, NULL,
     "run.yaml:1:51: model.layers[0] of type 'linear' has no key 'filters', which is for type convolution; its keys "
     "are type, size, bias, name"},
    {"model: {type: sequential, layers: [liner]}\n" DATA, NULL,
     "run.yaml:1:36: model.layers[0].type is 'liner'; it takes linear, convolution, max_pool, average_pool, flatten, "
     "relu, gelu, tanh, silu, sigmoid, dropout, batch_norm, layer_norm or rms_norm; did you mean 'linear'?"},
    {"model: {type: sequential, layers: []}\n" DATA, NULL,
     "run.yaml:1:35: model.layers is empty; it takes a list of tables"},
    {"model: {graph: a.ang, width: 3}\n" DATA, NULL,
     "run.yaml:1:23: model of type 'graph' has no key 'width', which is for type cnn, gpt2, llama or bert; its keys "
     "are "
     "type, graph, init"},
    {BOTH "schedule: {min_ratio: 0.1}\n", NULL,
     "run.yaml:3:12: schedule of type 'constant' has no key 'min_ratio', which is for type linear, cosine, "
     "cosine_restarts, wsd, polynomial or sqrt; its keys are type, warmup, per"},
    {BOTH "schedule: {type: cosine, gamma: 0.5}\n", NULL,
     "run.yaml:3:26: schedule of type 'cosine' has no key 'gamma', which is for type step or exponential; its keys are "
     "type, warmup, min_ratio, min_lr, floor, per"},
    {BOTH "schedule: {type: cosin}\n", NULL,
     "run.yaml:3:18: schedule.type is 'cosin'; it takes constant, linear, cosine, cosine_restarts, one_cycle, "
     "inverse_sqrt, wsd, step, exponential, polynomial, points, sequence or sqrt; did you mean 'cosine'?"},
    {BOTH "schedule: {type: step}\n", NULL,
     "run.yaml:3:11: schedule of type 'step' needs 'period'; set it to a length such as 250 steps, 2 epochs, 300M "
     "tokens, 50k samples or 3%, above 0"},
    {BOTH "optimizer: {momentum: 0.9}\n", NULL,
     "run.yaml:3:13: optimizer of type 'adamw' has no key 'momentum', which is for type sgd or rmsprop; its keys are "
     "type, lr, "
     "betas, eps, weight_decay, decay, decay_embeddings, groups, layer_decay"},
    {MODEL "data: {train: {type: text}}\n", NULL,
     "run.yaml:2:15: data.train of type 'text' needs 'path'; set it to the path of a file"},
    {MODEL "data: {train: {type: tokens, path: a, tokens: chars}}\n", NULL,
     "run.yaml:2:39: data.train of type 'tokens' has no key 'tokens', which is for type text; its keys are type, path, "
     "format, context, documents, border_targets, end_token, part, weight"},
    {MODEL "data: {train: {path: a.txt}}\n", NULL,
     "run.yaml:2:15: data.train needs 'type'; set it to idx, csv, images, npy, hdf5, jsonl, text, tokens, megatron, "
     "chat, preferences, sentences, mixture or stream"},
    {MODEL "data: {train: {type: txt, path: a.txt}}\n", NULL,
     "run.yaml:2:22: data.train.type is 'txt'; it takes idx, csv, images, npy, hdf5, jsonl, text, tokens, megatron, "
     "chat, preferences, sentences, mixture or stream; "
     "did you mean 'text'?"},
    /* ---- kinds of values ---- */
    {BOTH "optimizer: {lr: fast}\n", NULL, "run.yaml:3:17: optimizer.lr is 'fast'; it takes a number of at least 0"},
    {BOTH "optimizer: {lr: -1e-3}\n", NULL, "run.yaml:3:17: optimizer.lr is '-1e-3'; it takes a number of at least 0"},
    {BOTH "optimizer: {lr: \"1e-3\"}\n", NULL,
     "run.yaml:3:17: optimizer.lr is a text in quotes; it takes a number of at least 0, so remove the quotes"},
    {BOTH "optimizer: {lr: [1e-3]}\n", NULL, "run.yaml:3:17: optimizer.lr is a list; it takes a number of at least 0"},
    {BOTH "optimizer: {lr: }\n", NULL,
     "run.yaml:3:17: optimizer.lr has no value; it takes a number of at least 0, or remove the key"},
    {BOTH "optimizer: {lr: 1,5}\n", NULL,
     "run.yaml:3:19: unknown key 'optimizer.5'; write numbers with a decimal point, and lists in brackets: [4, 8]"},
    {BOTH "optimizer: {lr: nan}\n", NULL, "run.yaml:3:17: optimizer.lr is 'nan'; it takes a number of at least 0"},
    {BOTH "optimizer: {lr: 1e999}\n", NULL, "run.yaml:3:17: optimizer.lr is '1e999'; it takes a number of at least 0"},
    {BOTH "optimizer: {lr: 0x10}\n", NULL, "run.yaml:3:17: optimizer.lr is '0x10'; it takes a number of at least 0"},
    {BOTH "run: {seed: 1.5}\n", NULL, "run.yaml:3:13: run.seed is '1.5'; it takes a whole number of at least 0"},
    {BOTH "run: {seed: 99999999999999999999}\n", NULL,
     "run.yaml:3:13: run.seed is '99999999999999999999'; it takes a whole number of at least 0"},
    {BOTH "run: {steps: 0}\n", NULL, "run.yaml:3:14: run.steps is '0'; it takes a length such as 250 steps, above 0"},
    {BOTH "run: {steps: 2 epochs}\n", NULL,
     "run.yaml:3:14: run.steps is '2 epochs'; it takes a length such as 250 steps, above 0"},
    {BOTH "run: {steps: ten}\n", NULL,
     "run.yaml:3:14: run.steps is 'ten'; it takes a length such as 250 steps, above 0"},
    {BOTH "run: {max_time: 3}\n", NULL,
     "run.yaml:3:17: run.max_time is '3'; it takes off or slurm, or a duration such as 90s, 15m or 3h50m"},
    {BOTH "run: {max_time: 50m3h}\n", NULL,
     "run.yaml:3:17: run.max_time is '50m3h'; it takes off or slurm, or a duration such as 90s, 15m or 3h50m"},
    {BOTH "run: {isa: avx}\n", NULL,
     "run.yaml:3:12: run.isa is 'avx'; it takes auto, base, avx2, avx512 or amx; did you mean 'avx2'?"},
    {BOTH "run: [a]\n", NULL, "run.yaml:3:6: run is a list, but must be a table of keys"},
    {BOTH "train: {clip_norm: 0}\n", NULL, "run.yaml:3:20: train.clip_norm is '0'; it takes off, or a number above 0"},
    {BOTH "train: {clip_norm: none}\n", NULL,
     "run.yaml:3:20: train.clip_norm is 'none'; it takes off, or a number above 0"},
    {BOTH "train: {recompute: {budget: 6 gigs}}\n", NULL,
     "run.yaml:3:29: train.recompute.budget is '6 gigs'; it takes a size such as 6GiB or 500MB"},
    {BOTH "train: {recompute: blok}\n", NULL,
     "run.yaml:3:20: train.recompute.mode is 'blok'; it takes auto, none, block or full; did you mean 'block'?"},
    {BOTH "train: {precision: fp16}\n", NULL, "run.yaml:3:20: train.precision is 'fp16'; use f16"},
    {BOTH "train: {precision: int8}\n", NULL,
     "run.yaml:3:20: train.precision is 'int8'; it takes auto, f32, bf16, f16 or f64"},
    {BOTH "train: {matmul_precision: high}\n", NULL,
     "run.yaml:3:27: train.matmul_precision is 'high'; CPUs have no TF32; use highest, or medium for products in bf16"},
    {BOTH "log: {tensorboard: yes}\n", NULL, "run.yaml:3:20: log.tensorboard is 'yes'; it takes on or off"},
    {BOTH "optimizer: {betas: [0.9, 1.0]}\n", NULL,
     "run.yaml:3:26: optimizer.betas[1] is '1.0'; it takes a list of numbers of at least 0 and below 1"},
    {BOTH "optimizer: {betas: [0.9]}\n", NULL,
     "run.yaml:3:20: optimizer.betas has 1 numbers; it takes two, such as [0.9, 0.999]"},
    {BOTH "optimizer: {betas: {a: 1}}\n", NULL,
     "run.yaml:3:20: optimizer.betas is a table; it takes a list of numbers of at least 0 and below 1"},
    {BOTH "optimizer: {groups: {match: x}}\n", NULL,
     "run.yaml:3:21: optimizer.groups is a table; it takes a list of tables"},
    {BOTH "schedule: {warmup: [1]}\n", NULL, "run.yaml:3:20: schedule.warmup is a list, but must be a table of keys"},
    {BOTH "schedule: {warmup: 120%}\n", NULL,
     "run.yaml:3:20: schedule.warmup.steps is '120%'; it takes a length such as 250 steps, 2 epochs, 300M tokens, 50k "
     "samples or 3%"},
    {BOTH "schedule: {type: cosine, min_ratio: 1.5}\n", NULL,
     "run.yaml:3:37: schedule.min_ratio is '1.5'; it takes a number from 0 to 1"},
    {BOTH "schedule: {type: points, points: {a: 1}}\n", NULL,
     "run.yaml:3:35: 'a' is not a whole number; schedule.points takes a table that maps steps to numbers of at least "
     "0"},
    {BOTH "schedule: {type: points, points: {1: 1, 01: 2}}\n", NULL,
     "run.yaml:3:41: schedule.points has 1 twice; remove one"},
    {BOTH "schedule: {type: points, points: {}}\n", NULL,
     "run.yaml:3:34: a schedule of type points needs at least one point, such as {0: 0, 500: 1}"},
    {MODEL "data: {train: {type: text, path: a.txt, part: 90%..10%}}\n", NULL,
     "run.yaml:2:47: data.train.part is '90%..10%'; it takes a range such as 0%..90%"},
    {MODEL "data: {train: {type: text, path: a.txt, tokens: words}}\n", NULL,
     "run.yaml:2:49: data.train.tokens is 'words'; it takes bytes or chars"},
    {MODEL EVAL "eval: {best: val_los}\n", NULL,
     "run.yaml:3:14: eval.best.metric is 'val_los'; it takes val_loss, val_perplexity, val_accuracy, val_top5, "
     "val_mae, val_r2, val_precision, val_recall, val_f1, val_auc, val_margin, loss, perplexity, accuracy, top5, mae, "
     "r2, precision, recall, f1, auc or margin; did you mean 'val_loss'?"},
    {MODEL EVAL "eval: {metrics: [loss, acc]}\n", NULL,
     "run.yaml:3:24: eval.metrics[1] is 'acc'; it takes auto, or a list of loss, perplexity, accuracy, top5, mae, r2, "
     "precision, recall, f1, auc and margin; did you mean 'accuracy'?"},
    {MODEL EVAL "eval: {metrics: [loss, aux]}\n", NULL,
     "run.yaml:3:24: eval.metrics[1] is 'aux'; it takes auto, or a list of loss, perplexity, accuracy, top5, mae, r2, "
     "precision, recall, f1, auc and margin; did you mean 'auc'?"},
    {MODEL EVAL "eval: {every: 5 parsecs}\n", NULL,
     "run.yaml:3:15: eval.every is '5 parsecs'; it takes auto or off, or a length such as 250 steps, 2 epochs, 300M "
     "tokens, "
     "50k samples, 3% or 30m, above 0"},
    {BOTH "batch: {global: twelve}\n", NULL,
     "run.yaml:3:17: batch.global is 'twelve'; it takes a whole number of at least 1"},
    {BOTH "batch: {accumulate: {0: 0}}\n", NULL,
     "run.yaml:3:25: batch.accumulate.0 is '0'; it takes a whole number, or a table that maps finished epochs to "
     "whole numbers of at least 1"},
    {BOTH "ranks: {shard: fsdp}\n", NULL, "run.yaml:3:16: ranks.shard is 'fsdp'; use full"},
    {BOTH "ranks: {shard: NO_SHARD}\n", NULL,
     "run.yaml:3:16: ranks.shard is 'NO_SHARD'; use none: every rank then has everything"},
    {BOTH "ranks: {shard: FULL_SHARD}\n", NULL, "run.yaml:3:16: ranks.shard is 'FULL_SHARD'; use full"},
    {BOTH "ranks: {shard: SHARD_GRAD_OP}\n", NULL, "run.yaml:3:16: ranks.shard is 'SHARD_GRAD_OP'; use gradients"},
    {BOTH "ranks: {shard: HYBRID_SHARD}\n", NULL, "run.yaml:3:16: ranks.shard is 'HYBRID_SHARD'; use hybrid"},
    {BOTH "ranks: {shard: zero1}\n", NULL, "run.yaml:3:16: ranks.shard is 'zero1'; use optimizer"},
    {BOTH "ranks: {shard: zero2}\n", NULL, "run.yaml:3:16: ranks.shard is 'zero2'; use gradients"},
    {BOTH "ranks: {shard: zero3}\n", NULL, "run.yaml:3:16: ranks.shard is 'zero3'; use full"},
    {BOTH "ranks: {timeout: soon}\n", NULL,
     "run.yaml:3:18: ranks.timeout is 'soon'; it takes a duration such as 90s, 15m or 3h50m"},
    /* ---- what contradicts what ---- */
    {BOTH "run: {steps: 100, epochs: 2}\n", NULL,
     "run.yaml:3:19: run.steps is 100 and run.epochs is 2, but a run has only one length; remove one of them (for "
     "example with --set run.steps=)"},
    {BOTH "run:\n  tokens: 300M tokens\n  samples: 5k\n", NULL,
     "run.yaml:5:3: run.tokens is 300M tokens and run.samples is 5k, but a run has only one length; remove one of them "
     "(for example with --set run.tokens=)"},
    {BOTH "batch: {global: 32, micro: 4, accumulate: 4, leaves: 4}\n", NULL,
     "run.yaml:3:9: batch.global is 32, but micro 4 \303\227 accumulate 4 = 16; change one of them, "
     "or remove global"},
    {BOTH "batch: {global: 32, micro: 5, accumulate: 4}\n", NULL,
     "run.yaml:3:9: batch.global is 32, but micro 5 \303\227 accumulate 4 = 20; change one of them, or remove "
     "global"},
    {BOTH "batch: {accumulate: 4}\n", NULL,
     "run.yaml:3:9: batch.accumulate counts micro-batches, but batch.micro is auto; set batch.micro"},
    {BOTH "batch: {micro: 4, global: 32, accumulate: {0: 8, 4: 4}}\n", NULL,
     "run.yaml:3:31: batch.accumulate changes by epoch, and with it the number of samples in a step, but batch.global "
     "is fixed at 32; remove batch.global"},
    {BOTH "batch: {micro: 4, accumulate: {2: 8, 4: 4}}\n", NULL,
     "run.yaml:3:32: batch.accumulate begins after 2 epochs; add a value for 0, the start of the run"},
    {BOTH "batch: {global: 4, leaves: 8}\n", NULL,
     "run.yaml:3:20: batch.leaves is 8, but a step has 4 samples, so 4 leaves would be empty; set it to at most 4"},
    {BOTH "optimizer: {type: sgd, nesterov: on}\n", NULL,
     "run.yaml:3:24: optimizer.nesterov needs momentum, which is 0; set optimizer.momentum, for example to 0.9"},
    {BOTH "optimizer: {type: sgd, nesterov: on, momentum: 0.9, dampening: 0.1}\n", NULL,
     "run.yaml:3:24: optimizer.nesterov needs momentum without dampening, but dampening is 0.1; remove dampening"},
    {BOTH "schedule: {type: sequence, parts: [constant, linear], milestones: [10, 20]}\n", NULL,
     "run.yaml:3:67: a sequence has 2 parts and 2 milestones; it needs one milestone fewer than parts, because each "
     "milestone begins the next part"},
    {BOTH "schedule: {type: sequence, parts: [constant, linear, cosine], milestones: [20, 10]}\n", NULL,
     "run.yaml:3:80: the milestone '10' is not later than the one before it; sort the milestones"},
    {BOTH "train: {recompute: {mode: block, segments: 4}}\n", NULL,
     "run.yaml:3:34: train.recompute.mode and train.recompute.segments are both set; remove one of them"},
    {BOTH "eval: {every: 10}\n", NULL,
     "run.yaml:3:8: eval.every is set, but there is no data to evaluate on; set data.eval or data.split, or remove "
     "this key"},
    {BOTH "eval:\n  early_stop: {patience: 3}\n", NULL,
     "run.yaml:4:3: eval.early_stop is set, but there is no data to evaluate on; set data.eval or data.split, or "
     "remove this key"},
    {MODEL EVAL "eval: {metrics: [loss], best: val_accuracy}\n", NULL,
     "run.yaml:3:31: eval.best.metric is val_accuracy, but eval.metrics does not include accuracy; add it there"},
    {"model: {type: gpt2, width: 100, heads: 3}\n" DATA, NULL,
     "run.yaml:1:33: model.width 100 is not a multiple of model.heads 3 (remainder 1); use a width such as 99 or 102"},
    {"model: {type: llama, layers: 1, width: 32, heads: 4, kv_heads: 3}\n" DATA, NULL,
     "run.yaml:1:54: model.heads 4 is not a multiple of model.kv_heads 3 (remainder 1); every key head must serve the "
     "same number of heads"},
    {MODEL "data: {train: {type: text, path: a.txt, context: 32}}\n", NULL,
     "run.yaml:2:41: data.train.context is 32, but the model takes at most 16 tokens; lower it or raise model.context"},
    {MODEL "data: {threads: 2}\n", NULL,
     "run.yaml:2:7: data has no 'train'; set it to a table such as {type: text, path: FILE}"},
    {MODEL "data: {train: {type: text, path: a.txt}, capacity: 10}\n", NULL,
     "run.yaml:2:52: data.capacity is not supported yet; remove it"},
    {"model: mlp\ndata: {source: stream}\neval: {every: 5}\n", NULL,
     "run.yaml:3:8: eval.every is set, but there is no data to evaluate on; set data.eval or data.split, or remove "
     "this key"},
    {"model: mlp\ndata: {source: stream}\nrun: {epochs: 2}\n", NULL,
     "run.yaml:3:7: a stream has no end and therefore no epochs; set run.steps, run.samples or run.max_time"},
    {"model: mlp\ndata: {source: stream, train: {type: csv, path: a.csv}}\n", NULL,
     "run.yaml:2:16: data.source is 'stream', but data.train is different; source: stream is short for train: {type: "
     "stream}, so remove one of them"},
    {MODEL "data: {train: {type: text, path: a.txt}, mixtures: [{type: text, path: b.txt}]}\n", NULL,
     "run.yaml:2:42: data.mixtures and data.train are both set; mixtures is short for train: {type: mixture, parts: "
     "[...]}, so remove one of them"},
    {"model: mlp\ndata: {source: stream, eval: stream}\n", NULL,
     "run.yaml:2:30: evaluations cannot read a stream; use another type for data.eval, such as csv"},
    {"model: mlp\n" DATA, NULL,
     "run.yaml:2:16: data.train has type 'text', which gives tokens, but a model of type 'mlp' takes numbers; use idx, "
     "csv, images, npy, hdf5 or jsonl"},
    {MODEL "data: {train: {type: idx, path: a.idx}}\n", NULL,
     "run.yaml:2:16: data.train has type 'idx', which gives numbers, but a model of type 'gpt2' takes tokens; use "
     "text, tokens, megatron or chat"},
    {MODEL "data: {train: {type: mixture, parts: [{type: text, path: a.txt}, {type: csv, path: b.csv}]}}\n", NULL,
     "run.yaml:2:67: data.train.parts[1] has type 'csv', which gives numbers, but a model of type 'gpt2' takes tokens; "
     "use text, tokens, megatron or chat"},
    {MODEL "data: {train: {type: text, path: a.txt, tokens: chars}, eval: {type: text, path: a.txt}}\n", NULL,
     "run.yaml:2:41: data.train.tokens is chars and data.eval.tokens is bytes, but a model has one kind of token; make "
     "them the same"},
    {MODEL "data: {train: {type: tokens, path: a.bin, documents: apart}}\n", NULL,
     "run.yaml:2:43: data.train.documents is apart, but nothing says where a document ends; set data.train.end_token"},
    {"model: mlp\ndata: {train: {type: csv, path: a.csv, delimiter: \"ab\"}}\n", NULL,
     "run.yaml:2:40: data.train.delimiter is 'ab'; it must be one character that does not occur in numbers, such as "
     "\",\""},
    /* ---- settings ---- */
    {BOTH, "optimizer.lr", "--set optimizer.lr: this is not a setting; write KEY=VALUE, as in optimizer.lr=1e-3"},
    {BOTH, "=3", "--set =3: this is not a setting; write KEY=VALUE, as in optimizer.lr=1e-3"},
    {BOTH, "optimizer.lrr=1", "--set optimizer.lrr=1: unknown key 'optimizer.lrr'; did you mean 'lr'?"},
    {BOTH, "data.threads=9223372036854775807",
     "--set data.threads=9223372036854775807: data.threads is '9223372036854775807'; it takes a whole number from 0 to "
     "256"},
    {BOTH, "ranks.threads=4097",
     "--set ranks.threads=4097: ranks.threads is '4097'; it takes auto, or a whole number from 1 to 4096"},
    {BOTH, "optimizer.lr=fast", "--set optimizer.lr=fast: optimizer.lr is 'fast'; it takes a number of at least 0"},
    {BOTH, "optimizer.lr.x=1", "--set optimizer.lr.x=1: 'optimizer.lr' is a single value and has no keys"},
    {BOTH, "optimizer.groups[0].match=x",
     "--set optimizer.groups[0].match=x: 'optimizer.groups' has 0 elements, counted from 0, so element 0 does not "
     "exist"},
    {BOTH, "optimizer.groups.match=x",
     "--set optimizer.groups.match=x: 'optimizer.groups' is a list; choose an element, as in [0]"},
    {BOTH, "optimizer[0]=x", "--set optimizer[0]=x: 'optimizer' is not a list of tables"},
    {BOTH, "optimizer.groups[x].match=y",
     "--set optimizer.groups[x].match=y: 'optimizer.groups' needs a number in brackets, as in groups[0]"},
    {BOTH, "optimizer.betas=[0.9",
     "--set optimizer.betas=[0.9: this is not valid YAML: did not find expected ',' or ']', while parsing a flow "
     "sequence; check brackets, quotes and indentation"},
    {BOTH, "optimizer..lr=1",
     "--set optimizer..lr=1: unknown key 'optimizer.'; the keys of optimizer are type, lr, betas, eps, momentum, "
     "dampening, nesterov, alpha, centered, weight_decay, decay, decay_embeddings, groups, layer_decay"},
    {BOTH, "run.steps=10 epochs",
     "--set run.steps=10 epochs: run.steps is '10 epochs'; it takes a length such as 250 steps, above 0"},
    {BOTH "run: {epochs: 2}\n", "run.steps=10",
     "run.yaml:3:7: run.steps is 10 and run.epochs is 2, but a run has only one length; remove one of them (for "
     "example with --set run.epochs=)"},
    {BOTH, "model=", "run.yaml:1:1: 'model' is missing; a config needs at least model and data"},
    {BOTH, "model.type=mlp",
     "run.yaml:1:21: model of type 'mlp' has no key 'layers', which is for type gpt2, llama, bert or sequential; its "
     "keys "
     "are type, inputs, outputs, hidden, embedding, activation, batch_norm, dropout, loss, init"},
    {BOTH, "run.dir=\xff", "--set run.dir=?: this is not UTF-8; use UTF-8"},
};

static void check_one(an_context *ctx, const refusal *r) {
    an_config_options options;
    an_config_options_init(&options, sizeof options);
    an_config *config = NULL;
    char first[1024];
    options.file = "run.yaml";
    options.text = r->text;
    options.length = strlen(r->text);
    options.sets = &r->set;
    options.set_count = r->set != NULL;
    an_status status = an_config_create(&config, ctx, &options);
    if (status == AN_OK) fail_msg("was not refused: %s --set %s", r->text, r->set ? r->set : "");
    assert_null(config);
    snprintf(first, sizeof first, "%s", an_last_error(ctx));
    first[strcspn(first, "\n")] = 0;
    if (strcmp(first, r->message) != 0) fail_msg("\n%s\nsays  %s\nnot   %s", r->text, first, r->message);
}

static void test_every_refusal_has_its_sentence(void **state) {
    (void)state;
    ledger l = {0};
    an_context *ctx = NULL;
    const an_option_list *all;
    assert_int_equal(context_with_ledger(&ctx, &l, 1), AN_OK);
    OK(ctx, an_option_list_get(ctx, &all)); /* which the context keeps */
    const size_t held = l.held;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        check_one(ctx, &refusals[i]);
        assert_int_equal(l.held, held);
    }
    assert_true(sizeof refusals / sizeof *refusals >= 60);
    an_context_destroy(&ctx);
    assert_false(l.mismatch);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_refusal_has_its_sentence)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
