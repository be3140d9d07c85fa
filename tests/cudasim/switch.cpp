#include "switch.h"

#include <cstdint>

#if defined(__x86_64__)

// The registers that a call preserves lie below the return address of the one who left. A new stack
// looks as if cusim_begin had left it, with the function and its argument in such registers.
asm(R"(
    .text
    .globl cusim_switch
    .hidden cusim_switch
    .type cusim_switch, @function
cusim_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size cusim_switch, . - cusim_switch

    .globl cusim_begin
    .hidden cusim_begin
    .type cusim_begin, @function
cusim_begin:
    movq %r12, %rdi
    callq *%rbx
    ud2
    .size cusim_begin, . - cusim_begin
)");

extern "C" void cusim_begin(void);

namespace cusim
{

void prepare_context(Context &context, char *stack, size_t bytes, void (*entry)(void *),
                     void *argument)
{
    // A stack's end is a multiple of 16, as the called function expects.
    void **top = reinterpret_cast<void **>(stack + bytes) - 7;
    for (int i = 0; i < 7; i++)
        top[i] = nullptr;
    top[3] = argument;
    top[4] = reinterpret_cast<void *>(entry);
    top[6] = reinterpret_cast<void *>(cusim_begin);
    context.top = top;
}

} // namespace cusim

#else

namespace cusim
{

using Entry = void (*)(void *);

// makecontext passes nothing but ints.
static void begin(unsigned entry_low, unsigned entry_high, unsigned low, unsigned high)
{
    auto whole = [](unsigned l, unsigned h) { return static_cast<uint64_t>(h) << 32 | l; };
    reinterpret_cast<Entry>(whole(entry_low, entry_high))(
        reinterpret_cast<void *>(whole(low, high)));
}

void prepare_context(Context &context, char *stack, size_t bytes, void (*entry)(void *),
                     void *argument)
{
    uint64_t e = reinterpret_cast<uint64_t>(entry), a = reinterpret_cast<uint64_t>(argument);
    getcontext(&context.state);
    context.state.uc_stack.ss_sp = stack;
    context.state.uc_stack.ss_size = bytes;
    context.state.uc_link = nullptr;
    makecontext(&context.state, reinterpret_cast<void (*)()>(begin), 4, static_cast<unsigned>(e),
                static_cast<unsigned>(e >> 32), static_cast<unsigned>(a),
                static_cast<unsigned>(a >> 32));
}

} // namespace cusim

#endif
