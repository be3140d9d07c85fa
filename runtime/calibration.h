/* The machine as it was measured once, in a small file of the user's cache directory for each host and
 * device. Contexts that nobody told a machine read it. */
#ifndef JK_RUNTIME_CALIBRATION_H
#define JK_RUNTIME_CALIBRATION_H

#include "runtime/device.h"
#include "runtime/file.h"
#include "runtime/log.h"
#include "runtime/machine_text.h"
#include "runtime/settings.h"

/* The file's text: `machine` as jk_machine_parse takes it; `identity` is what it was measured on,
 * `where` says in which directory files were. Longer ones are nobody's. */
#define JK_CALIBRATION_TEXT 4096
#define JK_CALIBRATION_IDENTITY 320
size_t jk_calibration_format(const char *identity, const char *where, const char *machine,
                             char text[JK_CALIBRATION_TEXT]);

/* The machine that a file's text holds. FORMAT says why there is none for `identity`. */
jask_status jk_calibration_parse(const char *text, const char *identity,
                                 char machine[JK_MACHINE_TEXT], jk_machine_said *out,
                                 jask_error *err);

/* Processors and device in words. */
jask_status jk_calibration_identity(const jk_device_info *info, char out[JK_CALIBRATION_IDENTITY],
                                    jask_error *err);

/* The path of the file for this host and device, to be freed. CONFIG where the environment names no
 * cache directory. */
jask_status jk_calibration_path(const jk_device_info *info, char **out, jask_error *err);

/* A file on its way to that path, which takes it whole or not at all; missing directories are made. */
jask_status jk_calibration_open(const char *path, jk_output **out, jask_error *err);
jask_status jk_calibration_keep(jk_output *output, const char *text, jask_error *err);

/* Where neither option nor environment said one, take the machine that was measured: into `settings`,
 * whose source says so, and *machine. One that cannot be used is left, with a note in the log. */
void jk_calibration_take(const jk_device_info *info, jk_settings *settings,
                         jk_machine_said *machine, jk_log *log);

#endif
