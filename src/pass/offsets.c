#include "pass/offsets.h"

#include "base/text/text.h"

/* Blocks tile [0, end) and are linked by address; free ones are also in a treap ordered by (bytes, offset). */
struct an_offset_block {
    int64_t offset, bytes;
    bool is_free;
    an_offset_block *previous, *next;
    an_offset_block *left, *right;
    uint64_t priority;
};

an_status an_offsets_create(an_offsets *offsets, an_context *ctx, size_t maximum) {
    *offsets =
        (an_offsets){.ctx = ctx, .capacity = 2 * maximum + 2}; /* between two taken blocks lies at most one free */
    return an_alloc(ctx, (void **)&offsets->blocks, offsets->capacity, sizeof *offsets->blocks);
}

void an_offsets_destroy(an_offsets *offsets) {
    if (offsets->ctx) an_release(offsets->ctx, (void **)&offsets->blocks, offsets->capacity, sizeof *offsets->blocks);
}

int64_t an_offset_of(const an_offset_block *block) {
    return block->offset;
}

static bool before(const an_offset_block *a, const an_offset_block *b) {
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->offset < b->offset;
}

/* Splits a tree into what is before `key` and the rest. */
static void split(an_offset_block *tree, const an_offset_block *key, an_offset_block **less, an_offset_block **rest) {
    while (tree) {
        if (before(tree, key)) {
            *less = tree;
            less = &tree->right;
            tree = tree->right;
        } else {
            *rest = tree;
            rest = &tree->left;
            tree = tree->left;
        }
    }
    *less = *rest = NULL;
}

static an_offset_block *merge(an_offset_block *a, an_offset_block *b) {
    an_offset_block *root = NULL, **at = &root;
    while (a && b) {
        if (a->priority > b->priority) {
            *at = a;
            at = &a->right;
            a = a->right;
        } else {
            *at = b;
            at = &b->left;
            b = b->left;
        }
    }
    *at = a ? a : b;
    return root;
}

static void tree_add(an_offsets *o, an_offset_block *block) {
    an_offset_block **at = &o->tree;
    block->priority =
        an_hash(&block->offset, sizeof block->offset, (uint64_t)block->bytes); /* the same plan every time */
    while (*at && (*at)->priority >= block->priority) at = before(*at, block) ? &(*at)->right : &(*at)->left;
    split(*at, block, &block->left, &block->right);
    *at = block;
}

static void tree_remove(an_offsets *o, an_offset_block *block) {
    an_offset_block **at = &o->tree;
    while (*at != block) at = before(*at, block) ? &(*at)->right : &(*at)->left;
    *at = merge(block->left, block->right);
}

/* The smallest free block that holds `bytes`, lowest first. */
static an_offset_block *tree_find(an_offsets *o, int64_t bytes) {
    an_offset_block *found = NULL;
    for (an_offset_block *b = o->tree; b;) {
        if (b->bytes >= bytes) {
            found = b;
            b = b->left;
        } else {
            b = b->right;
        }
    }
    return found;
}

static an_offset_block *block_new(an_offsets *o, int64_t offset, int64_t bytes, an_offset_block *after) {
    an_offset_block *b = o->spare;
    if (b)
        o->spare = b->next;
    else
        b = &o->blocks[o->used++];
    *b = (an_offset_block){.offset = offset, .bytes = bytes, .previous = after, .next = after ? after->next : NULL};
    if (b->next) b->next->previous = b;
    if (after) after->next = b;
    if (!b->next) o->last = b;
    return b;
}

static void block_drop(an_offsets *o, an_offset_block *b) {
    if (b->previous) b->previous->next = b->next;
    if (b->next)
        b->next->previous = b->previous;
    else
        o->last = b->previous;
    b->next = o->spare;
    o->spare = b;
}

an_offset_block *an_offsets_take(an_offsets *o, int64_t bytes) {
    an_offset_block *b = tree_find(o, bytes);
    if (b) {
        tree_remove(o, b);
    } else if (o->last && o->last->is_free) { /* grow the free end just enough */
        b = o->last;
        tree_remove(o, b);
        b->bytes = bytes;
    } else {
        b = block_new(o, o->last ? o->last->offset + o->last->bytes : 0, bytes, o->last);
    }
    b->is_free = false;
    if (b->bytes > bytes) {
        an_offset_block *rest = block_new(o, b->offset + bytes, b->bytes - bytes, b);
        rest->is_free = true;
        b->bytes = bytes;
        tree_add(o, rest);
    }
    if (b->offset + bytes > o->end) o->end = b->offset + bytes;
    return b;
}

void an_offsets_give(an_offsets *o, an_offset_block *b) {
    an_offset_block *previous = b->previous, *next = b->next;
    if (next && next->is_free) {
        tree_remove(o, next);
        b->bytes += next->bytes;
        block_drop(o, next);
    }
    if (previous && previous->is_free) {
        tree_remove(o, previous);
        previous->bytes += b->bytes;
        block_drop(o, b);
        b = previous;
    }
    b->is_free = true;
    tree_add(o, b);
}
