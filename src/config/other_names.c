/* What other tools call it: keys and values that people bring along, and what does the same job here. */
#include <string.h>
#include <strings.h>

#include "config/config.h"

#define SHARDING(value) "that is ranks.shard: " value " here"
#define LAUNCH                                                                                                       \
    "the number of ranks belongs to a launch and not to the run: start it with 'anneal train CONFIG -n 4', or with " \
    "mpirun or srun"
#define HOSTS "the launcher, mpirun or srun, knows the hosts and connects the ranks; there is nothing to set"

/* A key has another name here, or there is no such key, and a sentence says why. */
static const struct {
    const char *key, *path, *why;
} keys[] = {
    {"learning_rate", "optimizer.lr", NULL},
    {"max_lr", "optimizer.lr", NULL},
    {"batch_size", "batch.global", NULL},
    {"global_batch_size", "batch.global", NULL},
    {"micro_batch_size", "batch.micro", NULL},
    {"gradient_accumulation_steps", "batch.accumulate", NULL},
    {"max_steps", "run.steps", NULL},
    {"max_iters", "run.steps", NULL},
    {"num_epochs", "run.epochs", NULL},
    {"num_train_epochs", "run.epochs", NULL},
    {"output_dir", "run.dir", NULL},
    {"warmup_steps", "schedule.warmup", NULL},
    {"warmup_ratio", "schedule.warmup", NULL},
    {"warmup_iters", "schedule.warmup", NULL},
    {"min_lr", "schedule.min_ratio", NULL},
    {"lr_scheduler", "schedule.type", NULL},
    {"grad_clip", "train.clip_norm", NULL},
    {"max_grad_norm", "train.clip_norm", NULL},
    {"dtype", "train.precision", NULL},
    {"num_workers", "data.threads", NULL},
    {"save_steps", "save.every", NULL},
    {"eval_steps", "eval.every", NULL},
    {"logging_steps", "log.every", NULL},
    {"n_layer", "model.layers", NULL},
    {"n_head", "model.heads", NULL},
    {"n_embd", "model.width", NULL},
    {"d_model", "model.width", NULL},
    {"hidden_size", "model.width", NULL},
    {"block_size", "model.context", NULL},
    {"seq_len", "model.context", NULL},
    {"vocab_size", "model.vocabulary", NULL},
    /* several ranks: DistributedDataParallel, FSDP, DeepSpeed, torchrun */
    {"sharding_strategy", "ranks.shard", NULL},
    {"zero_stage", "ranks.shard", NULL},
    {"mixed_precision", "train.precision", NULL},
    {"auto_wrap_policy", NULL,
     "the blocks of the model are what is gathered at a time; ranks.unit.min_elements joins small ones"},
    {"min_num_params", "ranks.unit.min_elements", NULL},
    {"zero1", NULL, SHARDING("optimizer")},
    {"zero2", NULL, SHARDING("gradients")},
    {"zero3", NULL, SHARDING("full")},
    {"shard_grad_op", NULL, SHARDING("gradients")},
    {"full_shard", NULL, SHARDING("full")},
    {"hybrid_shard", NULL, SHARDING("hybrid")},
    {"fsdp", NULL, SHARDING("full")},
    {"no_shard", NULL, "that is ranks.shard: none here, where every rank has the whole model"},
    {"ddp", NULL, "that is ranks.shard: none here, where every rank has the whole model"},
    {"bucket_cap_mb", NULL,
     "the plan chooses in which pieces gradients are exchanged, and counts their memory; there is nothing to set"},
    {"no_sync", NULL,
     "gradients are exchanged once a step, after its last micro-batch (batch.accumulate); there is nothing to set"},
    {"find_unused_parameters", NULL,
     "the graph knows which parameters a step uses, and the gradients of others are zeros; there is nothing to set"},
    {"static_graph", NULL, "a model is compiled once and is the same in every step; there is nothing to set"},
    {"gradient_as_bucket_view", NULL, "gradients are exchanged from where they are; there is nothing to set"},
    {"sync_batchnorm", NULL,
     "batch norm uses the samples of one micro-batch, whatever the number of ranks, and running statistics are those "
     "of all ranks; batch.micro sets how many samples that is"},
    {"broadcast_buffers", NULL,
     "running statistics are combined over all ranks in every step, so they are never different; there is nothing to "
     "set"},
    {"set_epoch", NULL,
     "every epoch has its own order, which follows from run.seed and is the same for any number of ranks; there is "
     "nothing to set"},
    {"nproc_per_node", NULL, LAUNCH},
    {"num_processes", NULL, LAUNCH},
    {"world_size", NULL, LAUNCH},
    {"nnodes", NULL,
     "the number of hosts belongs to a launch and not to the run: mpirun and srun start ranks on several hosts"},
    {"node_rank", NULL, HOSTS},
    {"master_addr", NULL, HOSTS},
    {"master_port", NULL, HOSTS},
    {"sync_dist", NULL, "the loss and the metrics are those of all ranks anyway; there is nothing to set"},
    {"limit_all_gathers", NULL, "the plan limits how much is gathered ahead, and counts it; there is nothing to set"},
    {"cpu_offload", NULL,
     "weights and the state of the optimizer are in the host's memory anyway; there is nothing to set"},
    {"state_dict_type", NULL,
     "a checkpoint can be read on any number of ranks, whatever number wrote it, and 'anneal export' writes one file; "
     "there is nothing to set"},
};

static const struct {
    const char *path, *text;
    an_status status;
    const char *why;
} values[] = {
    {"train.matmul_precision", "high", AN_ERR_UNSUPPORTED,
     "CPUs have no TF32; use highest, or medium for products in bf16"},
    {"train.precision", "fp32", AN_ERR_PARSE, "use f32"},
    {"train.precision", "float32", AN_ERR_PARSE, "use f32"},
    {"train.precision", "fp16", AN_ERR_PARSE, "use f16"},
    {"train.precision", "float16", AN_ERR_PARSE, "use f16"},
    {"train.precision", "bfloat16", AN_ERR_PARSE, "use bf16"},
    {"train.precision", "float64", AN_ERR_PARSE, "use f64"},
    {"ranks.shard", "ddp", AN_ERR_PARSE, "use none: every rank then has everything"},
    {"ranks.shard", "no_shard", AN_ERR_PARSE, "use none: every rank then has everything"},
    {"ranks.shard", "fsdp", AN_ERR_PARSE, "use full"},
    {"ranks.shard", "fsdp2", AN_ERR_PARSE, "use full"},
    {"ranks.shard", "zero1", AN_ERR_PARSE, "use optimizer"},
    {"ranks.shard", "zero2", AN_ERR_PARSE, "use gradients"},
    {"ranks.shard", "zero3", AN_ERR_PARSE, "use full"},
    {"ranks.shard", "shard_grad_op", AN_ERR_PARSE, "use gradients"},
    {"ranks.shard", "full_shard", AN_ERR_PARSE, "use full"},
    {"ranks.shard", "hybrid_shard", AN_ERR_PARSE, "use hybrid"},
};

/* Case does not matter: some tools write such names in capitals. */
an_status an_config_other_key(an_config *config, an_spot place, const char *path, const char *key) {
    an_context *ctx = config->ctx;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcasecmp(keys[i].key, key) != 0) continue;
        if (keys[i].path)
            return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: unknown key '%s'; the key is called %s", AN_SPOT(place), path,
                            keys[i].path);
        return AN_ERROR(ctx, AN_ERR_UNKNOWN, "%s: unknown key '%s'; %s", AN_SPOT(place), path, keys[i].why);
    }
    return AN_OK;
}

an_status an_config_other_value(an_config *config, const an_option *option, const an_config_node *node,
                                const char *path) {
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (!strcmp(values[i].path, option->path) && !strcasecmp(values[i].text, node->text))
            return AN_ERROR(config->ctx, values[i].status, "%s: %s is '%s'; %s", AN_SPOT(node->place), path, node->text,
                            values[i].why);
    return AN_OK;
}
