#include "quant/arithmetic/torch_functions.h"

#include "base/attempt.h"
#include "base/lock.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORDS = 624,    /* of a state, and that it gives before the next one */
    MIDDLE = 397,   /* how far apart words are combined */
    SPACING = 6720, /* states from one that is kept to the next */
    N_RECENT = 8,
};

struct state {
    uint64_t index; /* it gives the words from index * WORDS on */
    uint32_t words[WORDS];
};

struct mersenne {
    struct lock lock;   /* of all that follows */
    struct state *kept; /* those of index 0, SPACING, 2 SPACING ... */
    size_t n_kept;
    struct state recent[N_RECENT];
    unsigned next_recent;
};

static inline uint32_t twisted(uint32_t upper, uint32_t lower, uint32_t far)
{
    uint32_t mixed = (upper & 0x80000000) | (lower & 0x7fffffff);
    return far ^ mixed >> 1 ^ (0x9908b0df & -(mixed & 1));
}

static void advance(struct state *state)
{
    uint32_t *words = state->words;
    state->index++;
    for (int i = 0; i < WORDS - MIDDLE; i++)
        words[i] = twisted(words[i], words[i + 1], words[i + MIDDLE]);
    for (int i = WORDS - MIDDLE; i < WORDS - 1; i++)
        words[i] = twisted(words[i], words[i + 1], words[i + MIDDLE - WORDS]);
    words[WORDS - 1] = twisted(words[WORDS - 1], words[0], words[MIDDLE - 1]);
}

static uint32_t tempered(uint32_t word)
{
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680;
    word ^= word << 15 & 0xefc60000;
    return word ^ word >> 18;
}

static void release(void *context)
{
    struct mersenne *mersenne = context;
    free(mersenne->kept);
    lock_destroy(&mersenne->lock);
}

static void keep(struct mersenne *mersenne, const struct state *state)
{
    mersenne->kept = memory_grow(mersenne->kept, mersenne->n_kept, sizeof *mersenne->kept);
    mersenne->kept[mersenne->n_kept++] = *state;
}

struct mersenne *mersenne_new(struct arena *arena, uint32_t seed)
{
    struct mersenne *mersenne = arena_alloc(arena, sizeof *mersenne);
    struct state state = {.words = {seed}};
    lock_init(&mersenne->lock);
    arena_on_free(arena, release, mersenne);
    for (uint32_t i = 1; i < WORDS; i++)
        state.words[i] = 1812433253 * (state.words[i - 1] ^ state.words[i - 1] >> 30) + i;
    advance(&state);
    state.index = 0;
    keep(mersenne, &state);
    return mersenne;
}

/* Keeps states up to the last one that is not after `index`. */
static void keep_until(struct mersenne *mersenne, uint64_t index)
{
    struct state state = mersenne->kept[mersenne->n_kept - 1];
    while (mersenne->n_kept <= index / SPACING) {
        for (int i = 0; i < SPACING; i++)
            advance(&state);
        keep(mersenne, &state);
    }
}

/* Returns the state of an index. */
static struct state find_state(struct mersenne *mersenne, uint64_t index)
{
    attempt_lock(&mersenne->lock);
    keep_until(mersenne, index);
    const struct state *nearest = &mersenne->kept[index / SPACING];
    for (int i = 0; i < N_RECENT; i++)
        if (mersenne->recent[i].index <= index && mersenne->recent[i].index > nearest->index)
            nearest = &mersenne->recent[i];
    struct state state = *nearest;
    attempt_unlock(&mersenne->lock);
    while (state.index < index)
        advance(&state);
    return state;
}

static void remember(struct mersenne *mersenne, const struct state *state)
{
    attempt_lock(&mersenne->lock);
    mersenne->recent[mersenne->next_recent++ % N_RECENT] = *state;
    attempt_unlock(&mersenne->lock);
}

void mersenne_read(struct mersenne *mersenne, uint64_t first, size_t n, uint32_t *words)
{
    struct state state = find_state(mersenne, first / WORDS);
    for (size_t done = 0, at = first % WORDS; done < n; at = 0) {
        if (at == 0 && done > 0)
            advance(&state);
        for (; at < WORDS && done < n; at++)
            words[done++] = tempered(state.words[at]);
    }
    remember(mersenne, &state);
}
