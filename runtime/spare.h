/* One block of memory that was given back, spare for the next one who asks for as much: memory that is new to a
 * process is zeroed first, on a virtual machine perhaps even fetched from the host. Soon it is the system's to
 * take, too. For several threads at once. */
#ifndef JK_RUNTIME_SPARE_H
#define JK_RUNTIME_SPARE_H

#include "common/base.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct jk_spare {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the offerer's: no child can use it, or end it */
    void *mem;              /* NULL: nothing is spare, or it is being offered */
    size_t bytes;
    double due;     /* when it is to be offered to the system, on jk_clock_seconds */
    size_t offered; /* so much from its start the system may take */
    bool offering;  /* the offerer has it, and will put it back */
    bool wanted;    /* before more is offered */
    pid_t process;  /* where the offerer runs; 0: nowhere. A process that is forked off has none. */
    pthread_t offerer;
    bool closing;
} jk_spare;

void jk_spare_open(jk_spare *spare);
/* Unmaps what is spare. */
void jk_spare_close(jk_spare *spare);

/* What is spare, if it is that large; NULL when not, and then nothing is spare any more, so that a budget is
 * never taken twice. */
void *jk_spare_take(jk_spare *spare, size_t bytes);

/* How much of what counts as taken is spare: none once the system may take all. */
size_t jk_spare_bytes(jk_spare *spare);

/* Memory that was mapped, not to be used any more. It is unmapped at once where some is spare already, or no thread
 * can be had to offer it to the system. */
void jk_spare_give(jk_spare *spare, void *mem, size_t bytes);

#endif
