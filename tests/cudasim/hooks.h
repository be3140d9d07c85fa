// ThreadSanitizer and AddressSanitizer as seen from uninstrumented code: weak, absent without them.
#ifndef CUSIM_HOOKS_H
#define CUSIM_HOOKS_H

#include <cstddef>

#define CUSIM_WEAK extern "C" __attribute__((weak))

CUSIM_WEAK void __tsan_acquire(void *address);
CUSIM_WEAK void __tsan_release(void *address);
// Signed, as gcc itself declares them.
CUSIM_WEAK void __tsan_read_range(void *address, long bytes);
CUSIM_WEAK void __tsan_write_range(void *address, long bytes);
CUSIM_WEAK void *__tsan_create_fiber(unsigned flags);
CUSIM_WEAK void __tsan_destroy_fiber(void *fiber);
CUSIM_WEAK void __tsan_switch_to_fiber(void *fiber, unsigned flags);
CUSIM_WEAK void *__tsan_get_current_fiber(void);
CUSIM_WEAK void AnnotateIgnoreSyncBegin(const char *file, int line);
CUSIM_WEAK void AnnotateIgnoreSyncEnd(const char *file, int line);
CUSIM_WEAK void AnnotateIgnoreReadsBegin(const char *file, int line);
CUSIM_WEAK void AnnotateIgnoreReadsEnd(const char *file, int line);
CUSIM_WEAK void AnnotateIgnoreWritesBegin(const char *file, int line);
CUSIM_WEAK void AnnotateIgnoreWritesEnd(const char *file, int line);
CUSIM_WEAK void __asan_poison_memory_region(const volatile void *address, size_t bytes);
CUSIM_WEAK void __asan_unpoison_memory_region(const volatile void *address, size_t bytes);
CUSIM_WEAK void __sanitizer_start_switch_fiber(void **save, const void *stack, size_t bytes);
CUSIM_WEAK void __sanitizer_finish_switch_fiber(void *save, const void **stack, size_t *bytes);

namespace cusim
{

inline bool have_tsan()
{
    return __tsan_acquire != nullptr;
}

// While it ignores, TSan takes neither the simulator's accesses nor its locks for the program's.
inline void tsan_ignore_begin()
{
    if (!AnnotateIgnoreSyncBegin)
        return;
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

inline void tsan_ignore_end()
{
    if (!AnnotateIgnoreSyncBegin)
        return;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
}

// The edges that do count, made while everything else is ignored.
inline void tsan_release_inside(void *tag)
{
    if (!have_tsan())
        return;
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    __tsan_release(tag);
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

inline void tsan_acquire_inside(void *tag)
{
    if (!have_tsan())
        return;
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    __tsan_acquire(tag);
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

} // namespace cusim

#endif
