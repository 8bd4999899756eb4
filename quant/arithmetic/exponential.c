#include "quant/arithmetic/torch_functions.h"

#include <math.h>

enum { STEPS = 128 }; /* to a factor of 2 */

/* 2^(i / 128) as the nearest float, and the remainder. */
static const struct power {
    float high, low;
} powers[STEPS] = {
    /* Three on a line. */
    /* clang-format off */
    {0x1p+0f, 0}, {0x1.0163dap+0f, 0x1.3f6666p-25f}, {0x1.02c9a4p+0f, -0x1.887fap-28f},
    {0x1.04315ep+0f, 0x1.0dcffp-25f}, {0x1.059b0ep+0f, -0x1.9d4f52p-25f}, {0x1.0706b2p+0f, 0x1.3bbedcp-25f},
    {0x1.087452p+0f, -0x1.e2990ep-26f}, {0x1.09e3ecp+0f, 0x1.58de7p-25f}, {0x1.0b5586p+0f, 0x1.9f3122p-25f},
    {0x1.0cc922p+0f, 0x1.6e48fep-25f}, {0x1.0e3ec4p+0f, -0x1.a585ccp-25f}, {0x1.0fb66ap+0f, 0x1.ffda64p-25f},
    {0x1.11301ep+0f, -0x1.fdb496p-25f}, {0x1.12abdcp+0f, 0x1.b0c73p-30f}, {0x1.1429aap+0f, 0x1.d525bcp-25f},
    {0x1.15a98cp+0f, 0x1.14b1cap-25f}, {0x1.172b84p+0f, -0x1.c15742p-27f}, {0x1.18af94p+0f, -0x1.dcdc86p-26f},
    {0x1.1a35bep+0f, 0x1.6df96ep-25f}, {0x1.1bbe08p+0f, 0x1.011734p-26f}, {0x1.1d4874p+0f, -0x1.d2e8cap-25f},
    {0x1.1ed502p+0f, 0x1.7e6c8ep-27f}, {0x1.2063b8p+0f, 0x1.0c519ap-25f}, {0x1.21f49ap+0f, -0x1.d0446ep-25f},
    {0x1.2387a6p+0f, 0x1.ceac48p-25f}, {0x1.251ce4p+0f, 0x1.f654c8p-25f}, {0x1.26b456p+0f, 0x1.789f38p-26f},
    {0x1.284dfep+0f, 0x1.f5638p-28f}, {0x1.29e9ep+0f, -0x1.5c0424p-25f}, {0x1.2b87fep+0f, -0x1.e4a4cep-25f},
    {0x1.2d285ap+0f, 0x1.b900c2p-26f}, {0x1.2ecafap+0f, 0x1.27c5eap-25f}, {0x1.306fep+0f, 0x1.4636e2p-25f},
    {0x1.32171p+0f, -0x1.d993e8p-27f}, {0x1.33c08cp+0f, -0x1.b37d2p-25f}, {0x1.356c56p+0f, -0x1.b5803cp-30f},
    {0x1.371a74p+0f, -0x1.18aac6p-25f}, {0x1.38cae6p+0f, 0x1.a0bb0cp-25f}, {0x1.3a7db4p+0f, -0x1.634c02p-25f},
    {0x1.3c32dcp+0f, 0x1.89d472p-27f}, {0x1.3dea64p+0f, 0x1.824684p-25f}, {0x1.3fa45p+0f, 0x1.2b2006p-26f},
    {0x1.4160a2p+0f, 0x1.f72e2ap-28f}, {0x1.431f5ep+0f, -0x1.abd5dap-26f}, {0x1.44e086p+0f, 0x1.8624b4p-30f},
    {0x1.46a41ep+0f, 0x1.a3a00ap-25f}, {0x1.486a2cp+0f, -0x1.47d866p-25f}, {0x1.4a32bp+0f, -0x1.e50584p-25f},
    {0x1.4bfdaep+0f, -0x1.593abcp-25f}, {0x1.4dcb2ap+0f, -0x1.8088bcp-26f}, {0x1.4f9b28p+0f, -0x1.2c5a6cp-25f},
    {0x1.516daap+0f, 0x1.67b32p-27f}, {0x1.5342b6p+0f, -0x1.2c561p-25f}, {0x1.551a4cp+0f, 0x1.4bb242p-25f},
    {0x1.56f474p+0f, -0x1.295b04p-25f}, {0x1.58d12ep+0f, -0x1.6d07p-25f}, {0x1.5ab07ep+0f, -0x1.5bd5ecp-27f},
    {0x1.5c9268p+0f, 0x1.4b28d6p-25f}, {0x1.5e76f2p+0f, -0x1.4a5bd6p-25f}, {0x1.605e1cp+0f, -0x1.a248fep-26f},
    {0x1.6247ecp+0f, -0x1.f8b55p-25f}, {0x1.643464p+0f, -0x1.66679cp-25f}, {0x1.662388p+0f, 0x1.2a9112p-27f},
    {0x1.68155ep+0f, -0x1.766ad2p-25f}, {0x1.6a09e6p+0f, 0x1.9fcef4p-26f}, {0x1.6c0128p+0f, -0x1.5e84a8p-25f},
    {0x1.6dfb24p+0f, -0x1.cd72e8p-27f}, {0x1.6ff7ep+0f, -0x1.ab9aep-26f}, {0x1.71f75ep+0f, 0x1.1d8beep-25f},
    {0x1.73f9a4p+0f, 0x1.14b02ep-25f}, {0x1.75feb6p+0f, -0x1.37b306p-25f}, {0x1.780694p+0f, 0x1.fbcba8p-25f},
    {0x1.7a1148p+0f, -0x1.829fdp-25f}, {0x1.7c1edp+0f, 0x1.30c132p-28f}, {0x1.7e2f34p+0f, -0x1.261634p-25f},
    {0x1.804276p+0f, -0x1.783cbep-25f}, {0x1.82589ap+0f, -0x1.accc7cp-26f}, {0x1.8471a4p+0f, 0x1.88f1ecp-26f},
    {0x1.868d9ap+0f, -0x1.2edb44p-26f}, {0x1.88ac7ep+0f, -0x1.9d665ap-26f}, {0x1.8ace54p+0f, 0x1.15506ep-27f},
    {0x1.8cf322p+0f, -0x1.29576ep-25f}, {0x1.8f1aeap+0f, -0x1.baa232p-26f}, {0x1.9145bp+0f, 0x1.723ff8p-25f},
    {0x1.93737cp+0f, -0x1.e64744p-25f}, {0x1.95a44cp+0f, 0x1.790a42p-25f}, {0x1.97d82ap+0f, -0x1.0d8d84p-31f},
    {0x1.9a0f18p+0f, -0x1.e6bf08p-25f}, {0x1.9c4918p+0f, 0x1.51f848p-27f}, {0x1.9e8632p+0f, -0x1.873738p-26f},
    {0x1.a0c668p+0f, -0x1.2886a6p-26f}, {0x1.a309bep+0f, 0x1.8945a6p-25f}, {0x1.a5503cp+0f, -0x1.b83b54p-25f},
    {0x1.a799e2p+0f, -0x1.99e994p-25f}, {0x1.a9e6b6p+0f, -0x1.50c048p-25f}, {0x1.ac36bcp+0f, -0x1.606432p-31f},
    {0x1.ae89fap+0f, -0x1.a94b14p-26f}, {0x1.b0e072p+0f, 0x1.31b6ccp-25f}, {0x1.b33a2cp+0f, -0x1.ec3a82p-26f},
    {0x1.b59728p+0f, 0x1.bcab28p-25f}, {0x1.b7f77p+0f, -0x1.a09438p-25f}, {0x1.ba5b04p+0f, -0x1.ebdf36p-25f},
    {0x1.bcc1eap+0f, -0x1.f687c6p-25f}, {0x1.bf2c26p+0f, -0x1.0a387ep-26f}, {0x1.c199bep+0f, -0x1.3d56b2p-27f},
    {0x1.c40ab6p+0f, -0x1.7c2c98p-39f}, {0x1.c67f12p+0f, 0x1.cafa2ap-25f}, {0x1.c8f6dap+0f, -0x1.7f230ap-25f},
    {0x1.cb720ep+0f, -0x1.8837ccp-27f}, {0x1.cdf0b6p+0f, -0x1.54478p-25f}, {0x1.d072d4p+0f, 0x1.40f13p-25f},
    {0x1.d2f87p+0f, 0x1.01b13ep-25f}, {0x1.d5818ep+0f, -0x1.822dbcp-27f}, {0x1.d80e32p+0f, -0x1.26cf8ep-25f},
    {0x1.da9e6p+0f, 0x1.ed9942p-27f}, {0x1.dd322p+0f, -0x1.9fc974p-25f}, {0x1.dfc974p+0f, -0x1.908c94p-25f},
    {0x1.e26462p+0f, -0x1.614bdap-25f}, {0x1.e502eep+0f, 0x1.e2cffep-26f}, {0x1.e7a52p+0f, -0x1.0e2cep-26f},
    {0x1.ea4afap+0f, 0x1.52486cp-27f}, {0x1.ecf482p+0f, 0x1.b1ccfep-25f}, {0x1.efa1bep+0f, 0x1.cc2b44p-25f},
    {0x1.f252b4p+0f, -0x1.1288aep-25f}, {0x1.f50766p+0f, -0x1.246ebp-26f}, {0x1.f7bfdap+0f, 0x1.b397c2p-25f},
    {0x1.fa7c18p+0f, 0x1.9e90d8p-28f}, {0x1.fd3c22p+0f, 0x1.71ee3ep-25f},
    /* clang-format on */
};

/* Returns exp(n ln2 / 128 + rest), with rest + rest^2 / 2 for exp(rest) - 1, rounding each operation. */
float exponential(float x)
{
    static const float steps_per_unit = 0x1.715476p+7f;                     /* 128 / ln2 */
    static const float step_high = 0x1.63p-8f, step_low = -0x1.bd0106p-20f; /* ln2 / 128 */
    static const float largest = 0x1.5d58ap+6f;                             /* 126 ln2 */
    if (!(fabsf(x) <= largest))
        return (float)exp((double)x);
    float n = rintf(x * steps_per_unit);
    float rest = x - n * step_high;
    rest -= n * step_low;
    float factor = rest + rest * rest * 0.5f;
    int number = (int)n;
    const struct power *power = &powers[number & (STEPS - 1)];
    float result = power->high + (power->high * factor + power->low);
    return ldexpf(result, (number - (number & (STEPS - 1))) / STEPS);
}
