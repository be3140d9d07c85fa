/* For ThreadSanitizer, to which the simulator's streams are threads: the example without one of its
 * waits, which it must find, or with all. usage: races SCHEDULER WAIT (numbers of the enums) */
#include "cusim.h"
#include "example.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        cusim_config config;
        bool right;
        int error;
        cusim_config_default(&config);
        config.scheduler = (cusim_scheduler)atoi(argv[1]);
        config.seed = seed;
        config.check_order = false; /* TSan is to find it */
        cusim_reset(&config);
        error = example_run((example_wait)atoi(argv[2]), &right);
        if (error) {
            fprintf(stderr, "error %d\n", error);
            return 2;
        }
    }
    return 0;
}
