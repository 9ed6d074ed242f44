/* fiber.cpp -- runs the threads of a block in turns on the processor (shim.h). */
#include "shim.h"
#include "fiber.h"
#include <cstdio>
#include <cstdlib>
#include <vector>

ShimIndex threadIdx, blockIdx, gridDim;

namespace {

enum { STACK = 64 * 1024, LANES = 32, MOST = 1024, SHARED_ROOM = 48 * 1024 }; /* 48 KB: what every GPU gives a block */

struct Fiber {
    void *stack_pointer;
    bool done, waits; /* at the block's barrier, since turn number */
    unsigned since;
};
struct Warp {
    uint64_t slot[2][LANES]; /* of this exchange and the one before: nobody is two ahead */
    int arrived, live;
    unsigned turn;
};

Fiber fiber[MOST];
Warp warp[MOST / LANES];
std::vector<unsigned char> stacks, shared_memory(SHARED_ROOM);
void *scheduler;
const std::function<void()> *body;
unsigned current;
int arrived, live;
unsigned turn;
long site_skipped = -1;

extern "C" void fiber_switch(void **save, void *to);
#if defined __x86_64__
__asm__(".text\n.globl fiber_switch\nfiber_switch:\n"
        " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp, (%rdi)\n mov %rsi, %rsp\n"
        " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");
enum { SAVED = 6 };
#else
#error "fiber_switch is written for x86-64"
#endif

void leave()
{
    fiber_switch(&fiber[current].stack_pointer, scheduler);
}

/* Waits until all that still run have come here. */
void meet(int &here, int of, unsigned &which)
{
    const unsigned mine = which;
    if (++here == of) {
        here = 0;
        which++;
    }
    while (which == mine)
        leave();
}

/* A thread that has ended counts at no barrier any more. */
void end_thread()
{
    Warp &w = warp[current / LANES];
    fiber[current].done = true;
    live--, w.live--;
    if (live && arrived == live)
        arrived = 0, turn++;
    if (w.live && w.arrived == w.live)
        w.arrived = 0, w.turn++;
    leave();
}

void entry()
{
    (*body)();
    end_thread();
    abort();
}

void begin_thread(unsigned i)
{
    const uintptr_t top = ((uintptr_t)&stacks[(size_t)STACK * (i + 1) - 1] & ~(uintptr_t)63) - 64;
    void **at = (void **)top;
    *--at = nullptr;
    *--at = (void *)entry;
    for (int k = 0; k < SAVED; k++)
        *--at = nullptr;
    fiber[i] = Fiber{at, false, false, 0};
    warp[i / LANES].live++;
}

/* The order in which threads take turns: warps, and lanes inside of each. */
void shuffle(std::vector<unsigned> &order, int kind, unsigned block)
{
    const unsigned n = (unsigned)order.size();
    uint32_t state = 2463534242u + (uint32_t)kind * 7919u + block;
    auto random = [&state](unsigned below) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        return state % below;
    };
    for (unsigned i = 0; i < n; i++)
        order[i] = kind == 1 ? n - 1 - i : i;
    for (unsigned i = n - 1; kind > 1 && i > 0; i--) /* inside a warp */
        std::swap(order[i], order[i - i % LANES + random(i % LANES + 1)]);
    for (unsigned w = n / LANES - 1; kind > 1 && w > 0; w--) {
        const unsigned other = random(w + 1);
        for (unsigned i = 0; i < LANES; i++)
            std::swap(order[w * LANES + i], order[other * LANES + i]);
    }
}

bool can_run(const Fiber &f)
{
    return !f.done && !(f.waits && f.since == turn);
}

/* A turn for each of 32 threads, or, ahead: until all of them have ended or stand at the block's barrier. */
void run_warp(const unsigned *lane, bool ahead)
{
    bool ran;
    do {
        ran = false;
        for (int i = 0; i < LANES; i++)
            if (can_run(fiber[lane[i]])) {
                ran = true;
                threadIdx.x = current = lane[i];
                fiber_switch(&scheduler, fiber[current].stack_pointer);
            }
    } while (ahead && ran);
}

void run_block(const char *kernel, unsigned block, std::vector<unsigned> &order, int kind)
{
    const unsigned n = (unsigned)order.size();
    blockIdx.x = block;
    memset(shared_memory.data(), 0xff, shared_memory.size());
    memset(warp, 0, sizeof warp);
    arrived = 0, live = (int)n;
    for (unsigned i = 0; i < n; i++)
        begin_thread(i);
    shuffle(order, kind, block);
    for (long rounds = 0; live; rounds++) {
        for (unsigned at = 0; at < n; at += LANES)
            run_warp(&order[at], kind != 0);
        if (rounds > 10000000) {
            fprintf(stderr, "shim: the threads of %s wait for each other for ever\n", kernel);
            exit(3);
        }
    }
}

} // namespace

void *shim_shared(size_t bytes)
{
    if (bytes > shared_memory.size()) {
        fprintf(stderr, "shim: more than %d bytes of shared memory\n", SHARED_ROOM);
        exit(3);
    }
    return shared_memory.data();
}

void shim_barrier(int site)
{
    if (site == site_skipped)
        return;
    fiber[current].waits = true;
    fiber[current].since = turn;
    meet(arrived, live, turn);
    fiber[current].waits = false;
}

uint64_t shim_exchange(uint64_t mine, int from)
{
    const unsigned me = current;
    Warp &w = warp[me / LANES];
    uint64_t *slot = w.slot[w.turn % 2];
    slot[me % LANES] = mine;
    meet(w.arrived, w.live, w.turn);
    return slot[from];
}

void fiber_run(const char *kernel, int blocks, int threads, const std::function<void()> &thread)
{
    const char *skip = getenv("SHIM_SKIP"), *order = getenv("SHIM_ORDER");
    std::vector<unsigned> turns((size_t)threads);
    site_skipped = skip ? atol(skip) : -1;
    stacks.resize((size_t)STACK * (size_t)threads);
    body = &thread;
    gridDim.x = (unsigned)blocks;
    for (int b = 0; b < blocks; b++)
        run_block(kernel, (unsigned)b, turns, order ? atoi(order) : 0);
}
