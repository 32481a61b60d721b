/* Finds by the hand-written pack and unpack which words move where, and compares. The datatypes are
 * written independently of them, so that each checks the other. */
#include "check.h"
#include <stdlib.h>
#include <string.h>

/* The value of a word in the arrays of a rank, different for each word and in each round. It is
 * below 2^30, so that it is no NaN as a part of a float or double: a copy of a signaling NaN in a
 * register may change it. */
static uint32_t value(int rank, uint32_t word, int round) {
    return (word * 0x9e3779b1u + rank * 0x85ebca6bu + round * 0xc2b2ae35u) >> 2;
}

/* Packs indices instead of values. */
static uint32_t *packed_indices(Check *c, int source, int target) {
    Exchange *e = c->exchange;
    uint32_t *indices = malloc(e->transfer_bytes);
    for (size_t i = 0; i < e->arrays_bytes / 4; i++) c->memory[i] = i;
    e->pattern->pack(&e->domain, source, target, (char *)c->memory, (char *)indices);
    return indices;
}

/* Unpacks the numbers 1, 2, .. and checks where they are. */
static uint32_t *unpacked_indices(Check *c, int source, int target) {
    Exchange *e = c->exchange;
    uint32_t *indices = malloc(e->transfer_bytes);
    for (size_t i = 0; i < c->words; i++) indices[i] = i + 1;
    memset(c->memory, 0, e->arrays_bytes);
    e->pattern->unpack(&e->domain, source, target, (char *)c->memory, (char *)indices);
    for (size_t i = 0; i < e->arrays_bytes / 4; i++)
        if (c->memory[i] != 0) indices[c->memory[i] - 1] = i;
    return indices;
}

/* A block ends where the next word does not follow: at the origin, at the target, at either. */
static void count_blocks(Check *c, const uint32_t *from, const uint32_t *to) {
    for (size_t i = 0; i < c->words; i++) {
        int is_last = i + 1 == c->words;
        int origin_ends = is_last || from[i + 1] != from[i] + 1;
        int target_ends = is_last || to[i + 1] != to[i] + 1;
        c->origin_blocks += origin_ends;
        c->target_blocks += target_ends;
        c->blocks += origin_ends || target_ends;
    }
}

void check_begin(Check *c, Exchange *e) {
    int rank = e->domain.rank;
    *c = (Check){.exchange = e, .words = e->transfer_bytes / 4, .memory = malloc(e->arrays_bytes)};
    c->left = malloc(e->transfers * sizeof *c->left);
    c->from = malloc(e->transfers * sizeof *c->from);
    c->to = malloc(e->transfers * sizeof *c->to);
    for (int i = 0; i < e->transfers; i++) {
        c->left[i] = packed_indices(c, rank, e->out[i].peer);
        c->from[i] = packed_indices(c, e->in[i].peer, rank);
        c->to[i] = unpacked_indices(c, e->in[i].peer, rank);
        count_blocks(c, c->from[i], c->to[i]);
    }
}

void check_end(Check *c) {
    for (int i = 0; i < c->exchange->transfers; i++) {
        free(c->left[i]);
        free(c->from[i]);
        free(c->to[i]);
    }
    free(c->left);
    free(c->from);
    free(c->to);
    free(c->memory);
}

void check_fill(Check *c) {
    Exchange *e = c->exchange;
    uint32_t *words = (uint32_t *)e->arrays;
    for (size_t i = 0; i < e->arrays_bytes / 4; i++) words[i] = value(e->domain.rank, i, 0);
}

static void store_into(const Check *c, int round, uint32_t *words) {
    for (int i = 0; i < c->exchange->transfers; i++)
        for (size_t k = 0; k < c->words; k++)
            words[c->left[i][k]] = value(c->exchange->domain.rank, c->left[i][k], round);
}

void check_store(Check *c, int round) { store_into(c, round, (uint32_t *)c->exchange->arrays); }

int check_arrived(const Check *c, int round) {
    const uint32_t *words = (const uint32_t *)c->exchange->arrays;
    for (int i = 0; i < c->exchange->transfers; i++)
        for (size_t k = 0; k < c->words; k++) {
            int source = c->exchange->in[i].peer;
            if (words[c->to[i][k]] != value(source, c->from[i][k], round)) return 0;
        }
    return 1;
}

int check_all(Check *c, int round) {
    Exchange *e = c->exchange;
    for (size_t i = 0; i < e->arrays_bytes / 4; i++) c->memory[i] = value(e->domain.rank, i, 0);
    store_into(c, round, c->memory);
    for (int i = 0; i < e->transfers; i++)
        for (size_t k = 0; k < c->words; k++)
            c->memory[c->to[i][k]] = value(e->in[i].peer, c->from[i][k], round);
    return memcmp(c->memory, e->arrays, e->arrays_bytes) == 0;
}
