/* Settings: one table, three sources. The only place that reads the environment. */
#ifndef JK_RUNTIME_SETTINGS_H
#define JK_RUNTIME_SETTINGS_H

#include "common/base.h"

typedef enum jk_setting_id {
    JK_SET_MEMORY_BUDGET,
    JK_SET_HOST_BUDGET,
    JK_SET_SCRATCH_DIR,
    JK_SET_ALLOW_TMPFS,
    JK_SET_DEVICE,
    JK_SET_PLANNER,
    JK_SET_MACHINE,
    JK_SET_PIPELINE,
    JK_SET_SYNC,
    JK_SET_IO_THREADS,
    JK_SET_IO,
    JK_SET_PRECISION,
    JK_SET_DETERMINISTIC,
    JK_SET_CUBLAS,
    JK_SET_LOG_LEVEL,
    JK_SET_COUNT
} jk_setting_id;

typedef struct jk_setting_value {
    char *text;         /* as given, or the default's text; NULL when unset without a default */
    const char *source; /* "option", "environment", "default"; of the machine also "calibration" */
    uint64_t number;    /* size, count, bool (0/1) */
} jk_setting_value;

typedef struct jk_settings {
    jk_setting_value value[JK_SET_COUNT];
} jk_settings;

/* Resolve every setting: explicit beats environment beats default. CONFIG names the option or
 * variable and quotes the value when one cannot be read; sizes, choices and counts are checked
 * here. */
jask_status jk_settings_init(jk_settings *out, const jask_options *options, jask_error *err);
void jk_settings_fini(jk_settings *settings);

/* Where the Python packages of this user lie: in an activated environment, and under the home
 * folder. NULL where the process's environment does not say. */
typedef struct jk_python_folders {
    const char *virtual_env;
    const char *home;
} jk_python_folders;
jk_python_folders jk_settings_python_folders(void);

/* The user has told OpenBLAS which kernels to take. */
bool jk_settings_openblas_core(void);

/* The user's cache directory, `below` (a path with a slash in front, or "") in `folder`; folder NULL
 * where the environment names none. */
typedef struct jk_cache_folder {
    const char *folder;
    const char *below;
} jk_cache_folder;
jk_cache_folder jk_settings_cache_folder(void);

#endif
