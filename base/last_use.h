/* Things by the time of their last use, so that what nobody uses can be dropped, the longest unused first.
 *
 * A thing has a struct last_use, zeroed but for `thing`. Its owner's lock guards the list and all that is in it. */
#pragma once

struct last_use {
    void *thing;
    unsigned n_users; /* now; counted by the owner */
    struct last_use *newer, *older;
};

/* Zeroed, a list of none. */
struct last_uses {
    struct last_use *newest, *oldest;
};

/* Adds a thing that is not in the list, as the one used last. */
void last_uses_add(struct last_uses *list, struct last_use *use);
void last_uses_take_out(struct last_uses *list, struct last_use *use);

/* Makes a thing of the list the one used last. */
void last_uses_renew(struct last_uses *list, struct last_use *use);

/* Returns, of the things without users, the one not used for longest; NULL: each has users. */
void *last_uses_idle(const struct last_uses *list);
