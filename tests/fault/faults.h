/* Calls of the library that fail when told to. Programs that use this link the library's objects
 * with --wrap for each call in faults.c; other libraries' calls are not touched. */
#ifndef JK_TEST_FAULTS_H
#define JK_TEST_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fault_kind {
    FAULT_NONE,
    FAULT_OPEN,    /* open, openat */
    FAULT_LOOK,    /* stat and its kin, readlink, realpath, fopen, mkdir, getrandom, dup, flock and
                   ftruncate */
    FAULT_READ,    /* pread */
    FAULT_WRITE,   /* pwrite */
    FAULT_RESERVE, /* fallocate */
    FAULT_SYNC,    /* fsync, fdatasync, which here wait for no disk */
    FAULT_NAME,    /* linkat, renameat */
    FAULT_CLOSE,   /* close: it fails, and the descriptor is gone */
    FAULT_MEMORY,  /* malloc, calloc, strdup, asprintf, ... */
    FAULT_MAP,     /* mmap */
    FAULT_THREAD,  /* pthread_create */
    FAULT_SPARE,   /* the same for the thread of spare memory, without which there is none */
} fault_kind;

/* From now on, call number `nth` (from 1) of a kind fails with `error`; with `onward` so do all
 * later ones. */
void fault_arm(fault_kind kind, int64_t nth, int error, bool onward);

/* Nothing fails any more. Returns how many calls of the armed kind there were. */
int64_t fault_disarm(void);

/* What systems differ in; zeros are a plain Linux. */
extern struct fault_system {
    size_t call_bytes; /* reads and writes move at most this much a call */
    bool no_tmpfile;   /* no nameless files */
} fault_system;

#endif
