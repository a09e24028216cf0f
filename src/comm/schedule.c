#include "comm/schedule.h"

#include "base/integer.h"
#include "comm/pieces.h"

an_rounds an_rounds_make(const an_borders *borders, const int *radices, int rounds) {
    an_rounds s = {.borders = *borders, .rounds = 0, .sizes = {1}};
    const int ranks = borders->ranks;
    int radix = ranks;
    if (!radices &&
        ranks >
            /* the smallest power of two, so that groups are subtrees, with which the fewest rounds will do */
            AN_MOST_RADIX) {
        int bits = 1, fewest = 1;
        while (((int64_t)1 << bits) < ranks) bits++;
        for (int64_t reach = AN_MOST_RADIX; reach < ranks; reach *= AN_MOST_RADIX) fewest++;
        radix = 1 << an_divide_up(bits, fewest);
    }
    for (int size = 1; size < ranks; s.rounds++) {
        int64_t times = radices && s.rounds < rounds ? radices[s.rounds] : radices ? ranks : radix;
        if (s.rounds == AN_MOST_ROUNDS - 1) times = ranks;
        size = (int)an_smaller(size * times, ranks);
        s.sizes[s.rounds + 1] = size;
    }
    return s;
}

/* ---- groups ---- */

static int group_first(const an_rounds *s, int rank, int level) {
    return rank / s->sizes[level] * s->sizes[level];
}

/* Ranks of the group that begins at `first`. */
static int group_ranks(const an_rounds *s, int first, int level) {
    return (int)an_smaller(s->sizes[level], s->borders.ranks - first);
}

an_leaf_range an_rounds_leaves(const an_rounds *schedule, int rank, int level) {
    const int first = group_first(schedule, rank, level);
    const int last = first + group_ranks(schedule, first, level) - 1;
    const an_leaf_range begin = an_borders_range(&schedule->borders, first);
    const an_leaf_range end = an_borders_range(&schedule->borders, last);
    return (an_leaf_range){begin.begin, end.end, begin.leaves};
}

int an_rounds_groups(const an_rounds *schedule, int rank, int round) {
    const int first = group_first(schedule, rank, round + 1);
    return (int)an_divide_up(group_ranks(schedule, first, round + 1), schedule->sizes[round]);
}

int an_rounds_group_rank(const an_rounds *schedule, int rank, int round, int group) {
    return group_first(schedule, rank, round + 1) + group * schedule->sizes[round];
}

/* ---- cells ---- */

int an_cell_holder(const an_cell *cell, int group) {
    return group == cell->groups - 1 ? cell->last : cell->first + group * cell->size;
}

static int64_t piece_begin(const an_cell *cell, int group) {
    const int64_t before = an_smaller((int64_t)group * cell->size, cell->ranks);
    return cell->pages.begin + (cell->pages.end - cell->pages.begin) * before / cell->ranks;
}

an_page_range an_cell_piece(const an_cell *cell, int group) {
    return (an_page_range){piece_begin(cell, group), piece_begin(cell, group + 1)};
}

an_page_range an_cell_slice(const an_cell *cell, int group, const an_part *part) {
    const an_page_range piece = an_cell_piece(cell, an_piece_number(part->turn, group, cell->groups));
    const int64_t pages = piece.end - piece.begin;
    return (an_page_range){piece.begin + pages * part->index / part->count,
                           piece.begin + pages * (part->index + 1) / part->count};
}

/* The pages around `page` that one rank of a group holds, and which rank that is. */
typedef struct holding {
    an_page_range pages;
    int rank;
} holding;

static holding find_holding(const an_rounds *s, const an_page_range *bucket, int level, int first, int64_t page);

/* The cell around `page` of the groups of `level` that the group of the next level, which begins at rank `first`,
 * consists of. All of them but the last have the same borders between pages, so two are looked at. */
static an_cell find_cell(const an_rounds *s, const an_page_range *bucket, int level, int first, int64_t page) {
    const int size = s->sizes[level], ranks = group_ranks(s, first, level + 1);
    const int groups = (int)an_divide_up(ranks, size), last_first = first + (groups - 1) * size;
    const holding held = find_holding(s, bucket, level, first, page);
    an_cell cell = {held.pages, groups, 0, held.rank, held.rank + last_first - first, size, ranks};
    if (groups > 1 && group_ranks(s, last_first, level) < size) {
        const holding other = find_holding(s, bucket, level, last_first, page);
        cell.pages.begin = an_larger(cell.pages.begin, other.pages.begin);
        cell.pages.end = an_smaller(cell.pages.end, other.pages.end);
        cell.last = other.rank;
    }
    return cell;
}

/* At most as deep as there are rounds; a group in which all are full looks at one of them, so it is
 * O(rounds²) and not 2^rounds. */
static holding find_holding(const an_rounds *s, const an_page_range *bucket, int level, int first, int64_t page) {
    if (level == 0) return (holding){*bucket, first};
    const an_cell cell = find_cell(s, bucket, level - 1, first, page);
    int low = 0, high = cell.groups -
                        1; /* the last piece that does not begin behind the page: the empty ones before it end there */
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (piece_begin(&cell, middle) <= page)
            low = middle;
        else
            high = middle - 1;
    }
    return (holding){an_cell_piece(&cell, low), an_cell_holder(&cell, low)};
}

/* The next pages that this rank holds at a level: the whole bucket at first, then its pieces of the
 * cells of the round before. */
static bool next_held(const an_rounds *s, const an_page_range *bucket, int level, int rank, int64_t from,
                      an_page_range *held) {
    if (level == 0) {
        *held = *bucket;
        return from < bucket->end;
    }
    for (an_cell cell; an_rounds_cell(s, bucket, rank, level - 1, from, &cell); from = cell.pages.end) {
        *held = an_cell_piece(&cell, cell.mine);
        if (from < held->end && held->begin < held->end) return true;
    }
    return false;
}

bool an_rounds_cell(const an_rounds *schedule, const an_page_range *bucket, int rank, int round, int64_t from,
                    an_cell *cell) {
    an_page_range held;
    if (!next_held(schedule, bucket, round, rank, from, &held)) return false;
    const int first = group_first(schedule, rank, round + 1);
    *cell = find_cell(schedule, bucket, round, first, an_larger(from, held.begin));
    cell->mine = (rank - first) / schedule->sizes[round];
    return true;
}

/* ---- nodes ---- */

int an_rounds_nodes(const an_rounds *schedule, int rank, int level) {
    an_tree_node nodes[AN_FOREST_MOST];
    const an_leaf_range range = an_rounds_leaves(schedule, rank, level);
    return an_forest_nodes(&range, nodes);
}

int64_t an_rounds_joins(const an_rounds *schedule, int rank, int round, int *joins) {
    const an_leaf_range all = an_rounds_leaves(schedule, rank, round + 1);
    const int groups = an_rounds_groups(schedule, rank, round);
    int64_t parts[AN_FOREST_MOST + 1], waiting = 0, count = 0;
    for (int group = 0; group < groups; group++) {
        an_tree_node nodes[AN_FOREST_MOST];
        const int group_rank = an_rounds_group_rank(schedule, rank, round, group);
        const an_leaf_range range = an_rounds_leaves(schedule, group_rank, round);
        const int more = an_forest_nodes(&range, nodes);
        for (int i = 0; i < more; i++, count++) {
            int before = 0;
            for (; an_forest_joins(&all, parts, waiting, nodes[i].first); waiting--) before++;
            parts[waiting++] = nodes[i].first;
            if (joins) joins[count] = before;
        }
    }
    int end = 0;
    for (; an_forest_joins(&all, parts, waiting, INT64_MAX); waiting--) end++;
    if (joins) joins[count] = end;
    return count;
}

/* The pieces of a cell have three lengths at most: all but the last differ by one page, and the last one ends where the
 * cell does. */
enum { LENGTHS = 3 };
typedef struct piece_lengths {
    int64_t pages[LENGTHS], pieces[LENGTHS];
} piece_lengths;

/* Piece g begins at ⌊g·N·size / ranks⌋ = g·q + ⌊g·rest / ranks⌋, so of the first G - 1 pieces, ⌊(G - 1)·rest / ranks⌋
 * have q + 1 pages. */
static piece_lengths count_lengths(const an_cell *cell) {
    const int64_t pages = cell->pages.end - cell->pages.begin, before = cell->groups - 1;
    const int64_t q = pages * cell->size / cell->ranks, rest = pages * cell->size % cell->ranks;
    const int64_t longer = before * rest / cell->ranks;
    return (piece_lengths){{q, q + 1, cell->pages.end - piece_begin(cell, cell->groups - 1)},
                           {before - longer, longer, 1}};
}

/* What all groups of a cell hold of the slice together, and how many of them hold a page. */
static void count_slices(const an_cell *cell, const an_part *part, int64_t *pages, int64_t *slices) {
    const piece_lengths lengths = count_lengths(cell);
    *pages = *slices = 0;
    for (int i = 0; i < LENGTHS; i++) {
        const int64_t length = lengths.pages[i];
        const int64_t slice = length * (part->index + 1) / part->count - length * part->index / part->count;
        *pages += lengths.pieces[i] * slice;
        if (slice > 0) *slices += lengths.pieces[i];
    }
}

an_traffic an_rounds_traffic(const an_rounds *schedule, const an_round_nodes *nodes, const an_page_range *bucket,
                             const an_part *part, int rank, int round, int64_t *kept) {
    const int64_t mine = nodes->mine, others = nodes->all - nodes->mine;
    an_traffic t = {0, 0, 0, 0, 0, 0, 0, 0};
    an_cell cell;
    *kept = 0;
    for (int64_t from = bucket->begin; an_rounds_cell(schedule, bucket, rank, round, from, &cell);
         from = cell.pages.end) {
        const an_page_range own = an_cell_slice(&cell, cell.mine, part);
        const int64_t pages = own.end - own.begin, has_pages = pages > 0;
        int64_t all_pages, all_slices;
        count_slices(&cell, part, &all_pages, &all_slices);
        *kept += pages;
        t.gathered_in += others * pages;
        t.gathers_in += others * has_pages;
        t.returned_out += pages * (cell.groups - 1);
        t.returns_out += has_pages * (cell.groups - 1);
        t.gathered_out += mine * (all_pages - pages);
        t.gathers_out += mine * (all_slices - has_pages);
        t.returned_in += all_pages - pages;
        t.returns_in += all_slices - has_pages;
    }
    return t;
}

void an_traffic_add(an_traffic *traffic, const an_traffic *more) {
    traffic->gathered_out += more->gathered_out;
    traffic->gathered_in += more->gathered_in;
    traffic->returned_out += more->returned_out;
    traffic->returned_in += more->returned_in;
    traffic->gathers_out += more->gathers_out;
    traffic->gathers_in += more->gathers_in;
    traffic->returns_out += more->returns_out;
    traffic->returns_in += more->returns_in;
}
