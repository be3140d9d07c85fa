/* Finding and loading cuBLAS at run time. */
#include "runtime/cublas_table.h"
#include "runtime/settings.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* The name of the version whose interface this build knows. */
#define SONAME "libcublas.so." TEXT(CUBLAS_VER_MAJOR)

/* In a folder with Python packages. Since CUDA 13 the libraries of all wheels share one folder. */
#define WHEEL "nvidia/cu" TEXT(CUBLAS_VER_MAJOR) "/lib/" SONAME
#define OLD_WHEEL "nvidia/cublas/lib/" SONAME

/* Where toolkits and Python wheels put it without telling the dynamic linker. What comes first is
 * more likely to be what the user wants. */
static const struct {
    enum { ANYWHERE, IN_VIRTUAL_ENV, IN_HOME } below;
    const char *pattern;
} places[] = {
    {IN_VIRTUAL_ENV, "/lib*/python3*/site-packages/" WHEEL},
    {IN_VIRTUAL_ENV, "/lib*/python3*/site-packages/" OLD_WHEEL},
    {ANYWHERE, "/usr/local/cuda/lib64/" SONAME},
    {ANYWHERE, "/usr/local/cuda-" TEXT(CUBLAS_VER_MAJOR) "*/lib64/" SONAME},
    {IN_HOME, "/.local/lib/python3*/site-packages/" WHEEL},
    {IN_HOME, "/.local/lib/python3*/site-packages/" OLD_WHEEL},
    {ANYWHERE, "/usr/local/lib/python3*/*-packages/" WHEEL},
    {ANYWHERE, "/usr/local/lib/python3*/*-packages/" OLD_WHEEL},
    {ANYWHERE, "/usr/lib/python3*/*-packages/" WHEEL},
    {ANYWHERE, "/usr/lib/python3*/*-packages/" OLD_WHEEL},
    {ANYWHERE, "/opt/*/lib/python3*/site-packages/" WHEEL},
    {ANYWHERE, "/opt/*/lib/python3*/site-packages/" OLD_WHEEL},
};

/* What was tried, as the message of the failure tells it. */
typedef struct jk_tried {
    char text[768];
    size_t used;
} jk_tried;

static void add_tried(jk_tried *tried, const char *name, const char *reason)
{
    size_t room = sizeof tried->text - tried->used;
    int len = snprintf(tried->text + tried->used, room, "%s%s (%s)", tried->used ? ", " : "", name,
                       reason);
    if (len > 0)
        tried->used += (size_t)len < room ? (size_t)len : room - 1;
}

/* The name of the first function that the library lacks; NULL when the table is complete. */
static const char *fill_table(jk_cublas *blas)
{
    void *symbol;
#define FILL(name)                                                                                 \
    symbol = dlsym(blas->library, #name);                                                          \
    if (!symbol)                                                                                   \
        return #name;                                                                              \
    memcpy(&blas->name##_p, &symbol, sizeof symbol);
    JK_CUBLAS_FUNCTIONS(FILL)
#undef FILL
    return NULL;
}

static bool try_name(const char *name, jk_cublas *out, jk_tried *tried)
{
    jk_cublas blas = {0};
    const char *missing;
    char reason[96];
    /* Local: its names are for nobody else. It stays when closed, because loading costs so much. */
    blas.library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!blas.library) {
        const char *why = dlerror();
        size_t skip = why && strncmp(why, name, strlen(name)) == 0 ? strlen(name) + 2 : 0;
        add_tried(tried, name, why ? why + skip : "cannot be loaded");
        return false;
    }
    missing = fill_table(&blas);
    if (missing) {
        snprintf(reason, sizeof reason, "has no %s", missing);
        add_tried(tried, name, reason);
        dlclose(blas.library);
        return false;
    }
    *out = blas;
    return true;
}

/* The pattern below a folder whose name stands for itself; false when that is too long. */
static bool join(const char *folder, const char *pattern, char *out, size_t out_size)
{
    size_t used = 0;
    for (; *folder; folder++) {
        if (used + 3 > out_size)
            return false;
        if (strchr("*?[\\", *folder))
            out[used++] = '\\';
        out[used++] = *folder;
    }
    return (size_t)snprintf(out + used, out_size - used, "%s", pattern) < out_size - used;
}

static bool try_pattern(const char *folder, const char *pattern, jk_cublas *out, jk_tried *tried)
{
    char whole[PATH_MAX];
    glob_t found;
    bool good = false;
    if (!folder || !join(folder, pattern, whole, sizeof whole) || glob(whole, 0, NULL, &found) != 0)
        return false;
    for (size_t i = 0; !good && i < found.gl_pathc; i++)
        good = try_name(found.gl_pathv[i], out, tried);
    globfree(&found);
    return good;
}

jask_status jk_cublas_load(const char *path, jk_cublas *out, jask_error *err)
{
    jk_python_folders python = jk_settings_python_folders();
    const char *folders[] = {
        [ANYWHERE] = "", [IN_VIRTUAL_ENV] = python.virtual_env, [IN_HOME] = python.home};
    jk_tried tried = {.used = 0};
    bool good;
    if (path) {
        good = try_name(path, out, &tried);
        return good ? JASK_OK
                    : jk_fail(err, JASK_ERR_DEVICE,
                              "products on a CUDA device need cuBLAS, and the one that was named "
                              "is not it: %s; correct JASK_CUBLAS (the option cublas)",
                              tried.text);
    }
    good = try_name(SONAME, out, &tried);
    for (size_t i = 0; !good && i < sizeof places / sizeof *places; i++)
        good = try_pattern(folders[places[i].below], places[i].pattern, out, &tried);
    good = good || try_name("libcublas.so", out, &tried);
    return good ? JASK_OK
                : jk_fail(err, JASK_ERR_DEVICE,
                          "products on a CUDA device need cuBLAS, which was not found: tried %s; "
                          "install it (the Python wheel nvidia-cublas will do), or name its file "
                          "with JASK_CUBLAS (the option cublas)",
                          tried.text);
}

void jk_cublas_unload(jk_cublas *blas)
{
    if (blas->library)
        dlclose(blas->library);
    memset(blas, 0, sizeof *blas);
}
