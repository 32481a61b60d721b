/* Checks that each element has arrived, and that no other memory has changed. */
#ifndef CHECK_H
#define CHECK_H

#include "exchange.h"

/* The words of 4 bytes that leave and arrive, in the order of the packed buffer: their indices in
 * the arrays of the source, and of the target. */
typedef struct {
    Exchange *exchange;
    size_t words;     /* of a transfer */
    uint32_t **left;  /* for each outgoing transfer, indices in this rank's arrays */
    uint32_t **from;  /* for each incoming one, indices in the source's arrays */
    uint32_t **to;    /* and in this rank's arrays */
    uint32_t *memory; /* as large as the arrays */
    size_t origin_blocks, target_blocks, blocks; /* of what arrives here */
} Check;

void check_begin(Check *c, Exchange *e);
void check_end(Check *c);

/* Gives all words of the arrays their value of round 0. */
void check_fill(Check *c);

/* Gives the words that leave their value of this round. */
void check_store(Check *c, int round);

/* Whether the words of this round have arrived. */
int check_arrived(const Check *c, int round);

/* The same for all words of the arrays: those that do not arrive must have kept their value. */
int check_all(Check *c, int round);

#endif
