/* jask-info --calibrate. */
#ifndef JASK_TOOLS_CLI_CALIBRATE_H
#define JASK_TOOLS_CLI_CALIBRATE_H

#include "cli_options.h"

/* Measure the device and the disk that the options name, and show the rates. Returns the exit code. */
int cli_calibrate(const cli_options *options);

#endif
