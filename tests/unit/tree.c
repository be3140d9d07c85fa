#include "tree.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *tree_open(void)
{
    char name[PATH_MAX];
    const char *parent = getenv("JASK_TEST_TMP");
    snprintf(name, sizeof name, "%s/jask-test-XXXXXX", parent ? parent : "/var/tmp");
    cr_assert_not_null(mkdtemp(name), "%s", name);
    char *tree = realpath(name, NULL);
    cr_assert_not_null(tree);
    return tree;
}

void tree_write(const char *tree, const char *path, const char *text)
{
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s%s", tree, path);
    for (char *slash = name + strlen(tree) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(name, 0777);
        *slash = '/';
    }
    FILE *file = fopen(name, "w");
    cr_assert_not_null(file, "%s", name);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *where)
{
    (void)st;
    (void)flag;
    (void)where;
    return remove(path);
}

void tree_remove(char *tree)
{
    nftw(tree, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(tree);
}

int tree_entries(const char *dir)
{
    int count = 0;
    DIR *d = opendir(dir);
    cr_assert_not_null(d, "%s", dir);
    for (const struct dirent *e; (e = readdir(d));)
        count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return count;
}

static char *entered;

void tree_enter(void)
{
    entered = tree_open();
    cr_assert_eq(chdir(entered), 0);
}

void tree_leave(void)
{
    cr_assert_eq(chdir("/"), 0);
    tree_remove(entered);
}
