/* A directory of files made for one test. */
#ifndef JK_TEST_TREE_H
#define JK_TEST_TREE_H

/* Make an empty one, on a disk; its absolute path, for tree_remove. Failures end the test. */
char *tree_open(void);

/* Write a file, making the directories that lead to it. `path` begins with '/'. */
void tree_write(const char *tree, const char *path, const char *text);

void tree_remove(char *tree);

/* How many names a directory holds. */
int tree_entries(const char *dir);

/* For a suite's init and fini: each test works in an empty directory of its own. */
void tree_enter(void);
void tree_leave(void);

#endif
