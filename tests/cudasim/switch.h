// Leave one stack for another. swapcontext does it everywhere, but with two system calls, which a
// kernel full of barriers would spend most of its time in.
#ifndef CUSIM_SWITCH_H
#define CUSIM_SWITCH_H

#include <cstddef>

#include <ucontext.h>

namespace cusim
{

#if defined(__x86_64__)

struct Context {
    void *top = nullptr; // of the stack that was left: the registers to go on with
};

extern "C" void cusim_switch(void **leave, void *enter);

inline void switch_context(Context &leave, Context &enter)
{
    cusim_switch(&leave.top, enter.top);
}

#else

struct Context {
    ucontext_t state{};
};

inline void switch_context(Context &leave, Context &enter)
{
    swapcontext(&leave.state, &enter.state);
}

#endif

// Entering the context calls entry(argument) on the stack; it must not return.
void prepare_context(Context &context, char *stack, size_t bytes, void (*entry)(void *),
                     void *argument);

} // namespace cusim

#endif
