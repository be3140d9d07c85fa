// Planned failures and the count of calls that they are planned by.
#include "sim.h"

#include <cstdlib>

namespace cusim
{

bool take_fault(const char *call, PlannedFault *out)
{
    bool found = false;
    state.calls[call]++;
    state.calls_total++;
    for (size_t i = 0; i < state.faults.size();) {
        PlannedFault &fault = state.faults[i];
        if ((fault.call.empty() || fault.call == call) && --fault.nth == 0) {
            *out = fault;
            found = true;
            state.faults.erase(state.faults.begin() + static_cast<ptrdiff_t>(i));
        } else {
            i++;
        }
    }
    return found;
}

} // namespace cusim

using namespace cusim;

void cusim_fault(const char *call, uint64_t nth, cusim_fault_kind how, int error)
{
    Lock lock;
    state.faults.push_back({call ? call : "", nth, how, static_cast<cudaError_t>(error)});
}

size_t cusim_faults_left(void)
{
    Lock lock;
    return state.faults.size() + (state.fail_next != cudaSuccess);
}

uint64_t cusim_calls(const char *call)
{
    Lock lock;
    if (!call)
        return state.calls_total;
    auto found = state.calls.find(call);
    return found == state.calls.end() ? 0 : found->second;
}

const char *cusim_call_name(size_t index)
{
    Lock lock;
    for (const auto &entry : state.calls)
        if (index-- == 0)
            return entry.first.c_str();
    return nullptr;
}
