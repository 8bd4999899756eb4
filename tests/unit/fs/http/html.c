#include "fs/http/html.h"

#include "tests/unit/check.h"

#include <math.h>

int main(void)
{
    static const struct {
        double span;
        int most;
        double step;
    } rows[] = {{10, 10, 1},   {10, 6, 2},      {10, 2, 5},  {10, 1, 10},
                {7e8, 7, 1e8}, {7.1e8, 7, 2e8}, {3, 6, 0.5}, {1e-30, 5, 2e-31}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(fabs(plot_step(rows[i].span, rows[i].most) / rows[i].step - 1) < 1e-9);
    return check_done();
}
