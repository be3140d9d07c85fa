/* Where cuBLAS is found, on a machine whose dynamic linker knows of none and that has none in the
 * usual places: nothing outside the test's own folder can be loaded. There, the simulator stands
 * for it. */
#include "../unit/tree.h"
#include "runtime/cublas_table.h"
#include "runtime/settings.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define SONAME "libcublas.so." TEXT(CUBLAS_VER_MAJOR)
#define PACKAGES "lib/python3.11/site-packages/nvidia/"
#define SHARED_FOLDER PACKAGES "cu" TEXT(CUBLAS_VER_MAJOR) "/lib/" SONAME
#define OWN_FOLDER PACKAGES "cublas/lib/" SONAME

static char *tree;
static const char *first; /* that dlopen was asked for */
static char loaded[PATH_MAX];

void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);

void *__wrap_dlopen(const char *name, int flags)
{
    bool ours = strncmp(name, tree, strlen(tree)) == 0;
    void *library = __real_dlopen(ours ? name : "libnowhere.so", flags);
    if (!first)
        first = strcmp(name, SONAME) == 0 ? "soname" : "another";
    if (library)
        snprintf(loaded, sizeof loaded, "%s", name + strlen(tree));
    return library;
}

static void begin(void)
{
    tree = tree_open();
    unsetenv("VIRTUAL_ENV");
    unsetenv("HOME");
}

static void end(void)
{
    tree_remove(tree);
}

TestSuite(cublas_search, .init = begin, .fini = end);

/* `folder` begins with a slash, as all below. */
static void put_library(const char *folder, const char *file)
{
    char inside[1024], path[PATH_MAX];
    snprintf(inside, sizeof inside, "%s/%s", folder, file);
    tree_write(tree, inside, "");
    snprintf(path, sizeof path, "%s%s", tree, inside);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(symlink(jask_setting_environment(JK_SET_CUBLAS), path), 0, "%s", path);
}

static void point(const char *variable, const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", tree, folder);
    setenv(variable, path, 1);
}

/* The library that is found without being named is tree/folder/file. */
static void check_found(const char *folder, const char *file)
{
    char wanted[1024];
    jk_cublas blas;
    jask_error err;
    first = NULL;
    cr_assert_eq(jk_cublas_load(NULL, &blas, &err), JASK_OK, "%s", err.msg);
    snprintf(wanted, sizeof wanted, "%s/%s", folder, file);
    cr_assert_str_eq(loaded, wanted);
    cr_assert_str_eq(first, "soname");
    cr_assert_not_null(blas.cublasGemmEx_p);
    jk_cublas_unload(&blas);
}

Test(cublas_search, python_wheels_of_an_environment_and_of_the_user)
{
    point("HOME", "/home");
    put_library("/home/.local", OWN_FOLDER);
    check_found("/home/.local", OWN_FOLDER);
    put_library("/home/.local", SHARED_FOLDER);
    check_found("/home/.local", SHARED_FOLDER);
    point("VIRTUAL_ENV", "/env");
    check_found("/home/.local", SHARED_FOLDER);
    put_library("/env", OWN_FOLDER);
    check_found("/env", OWN_FOLDER);
    put_library("/env", SHARED_FOLDER);
    check_found("/env", SHARED_FOLDER);
    setenv("VIRTUAL_ENV", "", 1); /* says nothing */
    check_found("/home/.local", SHARED_FOLDER);
}

Test(cublas_search, a_folder_with_any_name)
{
    point("VIRTUAL_ENV", "/e[n]v*?\\ x");
    put_library("/e[n]v*?\\ x", SHARED_FOLDER);
    put_library("/env1x x", SHARED_FOLDER); /* not what was meant */
    check_found("/e[n]v*?\\ x", SHARED_FOLDER);
}

/* A file that is no library, or another version's, does not end the search. */
Test(cublas_search, goes_on_after_a_file_that_is_not_it)
{
    point("VIRTUAL_ENV", "/env");
    tree_write(tree, "/env/" SHARED_FOLDER, "not a library");
    put_library("/env", PACKAGES "cu0/lib/libcublas.so.0");
    put_library("/env", OWN_FOLDER);
    check_found("/env", OWN_FOLDER);
}

Test(cublas_search, tells_what_was_tried_where_there_is_none)
{
    char path[PATH_MAX];
    jk_cublas blas;
    jask_error err;
    point("VIRTUAL_ENV", "/env");
    tree_write(tree, "/env/" SHARED_FOLDER, "not a library");
    snprintf(path, sizeof path, "%s/env/%s", tree, SHARED_FOLDER);
    cr_assert_eq(jk_cublas_load(NULL, &blas, &err), JASK_ERR_DEVICE);
    for (int i = 0; i < 3; i++) {
        const char *const words[] = {SONAME, path, "JASK_CUBLAS"};
        cr_assert_not_null(strstr(err.msg, words[i]), "'%s' lacks '%s'", err.msg, words[i]);
    }
    /* A folder with a name that no path can have is no folder. */
    memset(path, '*', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    setenv("VIRTUAL_ENV", path, 1);
    cr_assert_eq(jk_cublas_load(NULL, &blas, &err), JASK_ERR_DEVICE);
}
