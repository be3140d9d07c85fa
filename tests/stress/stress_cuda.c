/* The pipeline's threads under stress on the CUDA device: products as stress_pipeline makes them, on a
 * simulated card that does what is queued in any order that streams and events allow. Exits 0 when all
 * is right. usage: stress_cuda [ROUNDS] */
#include "products.h"

#include "cusim.h"
#include "runtime/settings.h"

#include <stdio.h>
#include <stdlib.h>

/* A card for a few products; each has an order of its own. */
enum { PRODUCTS_A_CARD = 4 };

static void insert_card(uint64_t seed)
{
    cusim_config config;
    cusim_config_default(&config);
    config.seed = seed;
    config.scheduler = seed % 2 ? CUSIM_PCT : CUSIM_THREADS;
    config.max_delay_us = seed % 4 ? 0 : 50;
    config.separate_hosts = true;
    cusim_reset(&config);
}

static int check_clean(void)
{
    char leaks[512] = "";
    if (cusim_report_count(NULL) == 0 && cusim_leaks(leaks, sizeof leaks) == 0)
        return 0;
    fprintf(stderr, "stress: %s\nleft: %s\n", cusim_report(0), leaks);
    return 1;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 60;
    jk_device_options options = {.cublas = jask_setting_environment(JK_SET_CUBLAS)};
    jask_context *ctx = stress_context();
    jk_device_ref card;
    jask_error err;
    int failed = 0;
    for (int i = 0; i < rounds && !failed; i += PRODUCTS_A_CARD) {
        insert_card((uint64_t)(i / PRODUCTS_A_CARD + 1));
        stress_must(jk_device_select("cuda", &options, &card, &err), &err);
        for (int j = i; j < rounds && j < i + PRODUCTS_A_CARD; j++) {
            stress_product(ctx, &card);
            stress_gradients(ctx, &card);
        }
        jk_device_release(&card);
        failed = check_clean();
    }
    jask_context_close(ctx);
    printf("%d products, and as many pairs of gradients\n", rounds);
    return failed;
}
