/* Which thing was not used for longest. */
#include "base/last_use.h"
#include "tests/unit/check.h"

#include <stddef.h>

enum { N = 4 };

int main(void)
{
    struct last_use uses[N];
    struct last_uses list = {0};
    CHECK(last_uses_idle(&list) == NULL);
    for (size_t i = 0; i < N; i++) {
        uses[i] = (struct last_use){.thing = &uses[i]};
        last_uses_add(&list, &uses[i]);
    }
    CHECK(last_uses_idle(&list) == &uses[0]);
    last_uses_renew(&list, &uses[0]); /* 1 2 3 0 */
    last_uses_renew(&list, &uses[2]); /* 1 3 0 2 */
    last_uses_renew(&list, &uses[2]); /* the last one stays last */
    CHECK(last_uses_idle(&list) == &uses[1]);
    uses[1].n_users = uses[3].n_users = 1;
    CHECK(last_uses_idle(&list) == &uses[0]);
    last_uses_take_out(&list, &uses[0]);
    CHECK(last_uses_idle(&list) == &uses[2]);
    uses[2].n_users = 1;
    CHECK(last_uses_idle(&list) == NULL);
    uses[1].n_users = 0;
    CHECK(last_uses_idle(&list) == &uses[1]);
    last_uses_take_out(&list, &uses[1]);
    last_uses_take_out(&list, &uses[2]);
    CHECK(list.newest == &uses[3] && list.oldest == &uses[3]);
    last_uses_take_out(&list, &uses[3]);
    CHECK(list.newest == NULL && list.oldest == NULL);
    return check_done();
}
