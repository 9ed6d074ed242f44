/* fiber.cpp -- runs the threads of a block in turns on the processor (shim.h). */
#include "shim.h"
#include "fiber.h"
#include <cstdio>
#include <cstdlib>
#include <vector>

ShimIndex threadIdx, blockIdx, gridDim;

namespace {

enum { STACK = 64 * 1024, LANES = 32, MOST = 1024, SHARED_ROOM = 48 * 1024 /* what every GPU allows a block */, WALL = 64, BRICK = 0xa5 };

struct Fiber {
    void *stack_pointer;
    bool done, waits, waits_grid; /* waits: at the barrier of the block; waits_grid: at the barrier of all blocks */
    unsigned since;
};
struct Copy {
    void *to;
    const void *from;
    size_t bytes;
};
/* The asynchronous copies of a thread that it has not waited for.  ends: where its groups end. */
struct Copies {
    std::vector<Copy> copy;
    std::vector<size_t> ends;
};
struct Warp {
    uint64_t slot[2][LANES]; /* of this exchange and the one before: no lane is two exchanges ahead */
    int arrived, live;
    unsigned generation;
};
struct Block {
    unsigned index;
    Fiber fiber[MOST];
    Copies copies[MOST];
    Warp warp[MOST / LANES];
    std::vector<unsigned char> shared, chip; /* memory of a stage; memory of the launch, with a red zone after it */
    std::vector<unsigned> order; /* the order in which its threads take turns */
    int arrived, live;
    unsigned generation;
};

std::vector<Block> blocks_at_work;
Block *block; /* the current one */
std::vector<unsigned char> stacks;
void *scheduler;
const Task *body;
unsigned current;
int grid_arrived, grid_live; /* threads of all blocks: at the common barrier; still running */
unsigned grid_generation;
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
    fiber_switch(&block->fiber[current].stack_pointer, scheduler);
}

/* Waits until all running lanes have reached this exchange. */
void barrier_wait(int &here, int of, unsigned &which)
{
    const unsigned mine = which;
    if (++here == of) {
        here = 0;
        which++;
    }
    while (which == mine)
        leave();
}

/* A thread that has ended no longer counts at barriers. */
void end_thread()
{
    Warp &w = block->warp[current / LANES];
    block->fiber[current].done = true;
    block->live--, w.live--, grid_live--;
    if (block->live && block->arrived == block->live)
        block->arrived = 0, block->generation++;
    if (w.live && w.arrived == w.live)
        w.arrived = 0, w.generation++;
    if (grid_live && grid_arrived == grid_live)
        grid_arrived = 0, grid_generation++;
    leave();
}

void entry()
{
    (*body)();
    end_thread();
    abort();
}

void begin_thread(Block &b, unsigned i, size_t which)
{
    const uintptr_t top = ((uintptr_t)&stacks[(size_t)STACK * (which + 1) - 1] & ~(uintptr_t)63) - 64;
    void **at = (void **)top;
    *--at = nullptr;
    *--at = (void *)entry;
    for (int k = 0; k < SAVED; k++)
        *--at = nullptr;
    b.fiber[i] = Fiber{at, false, false, false, 0};
    b.copies[i].copy.clear(), b.copies[i].ends.clear();
    b.warp[i / LANES].live++;
}

unsigned random_below(uint32_t &state, unsigned below)
{
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return state % below;
}

/* The order in which threads take turns: warps, and lanes inside of each. */
void shuffle(std::vector<unsigned> &order, int kind, unsigned index)
{
    const unsigned n = (unsigned)order.size();
    uint32_t state = 2463534242u + (uint32_t)kind * 7919u + index;
    for (unsigned i = 0; i < n; i++)
        order[i] = kind == 1 ? n - 1 - i : i;
    for (unsigned i = n - 1; kind > 1 && i > 0; i--) /* inside a warp */
        std::swap(order[i], order[i - i % LANES + random_below(state, i % LANES + 1)]);
    for (unsigned w = n / LANES - 1; kind > 1 && w > 0; w--) {
        const unsigned other = random_below(state, w + 1);
        for (unsigned i = 0; i < LANES; i++)
            std::swap(order[w * LANES + i], order[other * LANES + i]);
    }
}

bool can_run(const Fiber &f)
{
    return !f.done && !(f.waits && f.since == block->generation) && !(f.waits_grid && f.since == grid_generation);
}

/* Gives each of 32 threads a turn; ahead: until all of them have ended or wait at a barrier.  False: no thread could run. */
bool run_warp(const unsigned *lane, bool ahead)
{
    bool ran, any = false;
    do {
        ran = false;
        for (int i = 0; i < LANES; i++)
            if (can_run(block->fiber[lane[i]])) {
                ran = any = true;
                threadIdx.x = current = lane[i];
                fiber_switch(&scheduler, block->fiber[current].stack_pointer);
            }
    } while (ahead && ran);
    return any;
}

void begin_chip(Block &b, size_t bytes)
{
    b.chip.assign(bytes, 0xff);
    b.chip.resize(bytes + WALL, BRICK);
}

void look_at_wall(const Block &b, const char *kernel)
{
    for (size_t i = b.chip.size() - WALL; i < b.chip.size(); i++)
        if (b.chip[i] != BRICK) {
            fprintf(stderr, "shim: %s writes after the end of its memory on the chip\n", kernel);
            exit(3);
        }
}

void begin_block(Block &b, unsigned index, unsigned threads, size_t first_stack, int kind)
{
    b.index = index;
    b.shared.assign(SHARED_ROOM, 0xff);
    memset(b.warp, 0, sizeof b.warp);
    b.arrived = 0, b.live = (int)threads, b.generation = 0;
    for (unsigned i = 0; i < threads; i++)
        begin_thread(b, i, first_stack + i);
    b.order.resize(threads);
    shuffle(b.order, kind, index);
}

/* Gives each warp of a block a turn. */
bool run_block(Block &b, int kind)
{
    bool any = false;
    block = &b;
    blockIdx.x = b.index;
    for (size_t at = 0; at < b.order.size(); at += LANES)
        any |= run_warp(&b.order[at], kind != 0);
    return any;
}

void stuck(const char *kernel)
{
    fprintf(stderr, "shim: the threads of %s wait for each other for ever\n", kernel);
    exit(3);
}

void run_whole(Block &b, const char *kernel, int kind)
{
    for (long rounds = 0; b.live; rounds++)
        if (!run_block(b, kind) || rounds > 10000000)
            stuck(kernel);
}

/* Runs blocks in step, or each as far as it can before the next one, from the last one or at random. */
void run_together(const char *kernel, int kind)
{
    uint32_t state = 88172645u + (uint32_t)kind;
    const unsigned n = (unsigned)blocks_at_work.size();
    while (grid_live > 0) {
        bool any = false;
        const unsigned first = kind > 1 ? random_below(state, n) : 0;
        for (unsigned i = 0; i < n; i++) {
            Block &b = blocks_at_work[kind == 1 ? n - 1 - i : (first + i) % n];
            bool ran;
            do
                any |= ran = run_block(b, kind);
            while (kind != 0 && ran);
        }
        if (!any)
            stuck(kernel);
    }
}

int read_order(int threads, int blocks)
{
    const char *skip = getenv("SHIM_SKIP"), *order = getenv("SHIM_ORDER");
    site_skipped = skip ? atol(skip) : -1;
    stacks.resize((size_t)STACK * (size_t)threads * (size_t)blocks);
    return order ? atoi(order) : 0;
}

} // namespace

void *shim_shared(size_t bytes)
{
    if (bytes > block->shared.size()) {
        fprintf(stderr, "shim: more than %d bytes of shared memory\n", SHARED_ROOM);
        exit(3);
    }
    return block->shared.data();
}

void *shim_chip()
{
    return block->chip.data();
}

void shim_barrier(int site)
{
    if (site == site_skipped)
        return;
    Fiber &f = block->fiber[current];
    f.waits = true;
    f.since = block->generation;
    barrier_wait(block->arrived, block->live, block->generation);
    f.waits = false;
}

/* A stage must not read shared memory of the stage before it, so the last thread at the barrier overwrites it. */
void shim_grid_barrier(int site)
{
    if (site == site_skipped)
        return;
    Fiber &f = block->fiber[current];
    f.waits_grid = true;
    f.since = grid_generation;
    if (grid_arrived + 1 == grid_live)
        for (Block &b : blocks_at_work)
            b.shared.assign(SHARED_ROOM, 0xff);
    barrier_wait(grid_arrived, grid_live, grid_generation);
    f.waits_grid = false;
}

void shim_copy_start(void *to, const void *from, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)from, *chip = block->chip.data();
    if (at >= chip && at < chip + block->chip.size()) {
        fprintf(stderr, "shim: an asynchronous copy reads from shared memory\n");
        exit(3);
    }
    memset(to, 0xff, bytes);
    block->copies[current].copy.push_back(Copy{to, from, bytes});
}

void shim_copy_group()
{
    Copies &c = block->copies[current];
    c.ends.push_back(c.copy.size());
}

void shim_copy_wait(int groups)
{
    Copies &c = block->copies[current];
    if (c.ends.size() <= (size_t)groups)
        return;
    const size_t done = c.ends.size() - (size_t)groups, end = c.ends[done - 1];
    for (size_t i = 0; i < end; i++)
        if (c.copy[i].from)
            memcpy(c.copy[i].to, c.copy[i].from, c.copy[i].bytes);
        else
            memset(c.copy[i].to, 0, c.copy[i].bytes);
    c.copy.erase(c.copy.begin(), c.copy.begin() + (std::ptrdiff_t)end);
    c.ends.erase(c.ends.begin(), c.ends.begin() + (std::ptrdiff_t)done);
    for (size_t &e : c.ends)
        e -= end;
}

uint64_t shim_exchange(uint64_t mine, int from)
{
    const unsigned me = current;
    Warp &w = block->warp[me / LANES];
    uint64_t *slot = w.slot[w.generation % 2];
    slot[me % LANES] = mine;
    barrier_wait(w.arrived, w.live, w.generation);
    return slot[from];
}

void fiber_run(const char *kernel, int blocks, int threads, const Task &thread, int chip_bytes)
{
    const int kind = read_order(threads, 1);
    body = &thread;
    gridDim.x = (unsigned)blocks;
    blocks_at_work.resize(1);
    for (int b = 0; b < blocks; b++) {
        grid_live = threads, grid_arrived = 0;
        begin_block(blocks_at_work[0], (unsigned)b, (unsigned)threads, 0, kind);
        begin_chip(blocks_at_work[0], (size_t)chip_bytes);
        run_whole(blocks_at_work[0], kernel, kind);
        look_at_wall(blocks_at_work[0], kernel);
    }
}

void fiber_run_together(const char *kernel, int blocks, int threads, int chip_bytes, const Task &thread)
{
    const int kind = read_order(threads, blocks);
    body = &thread;
    gridDim.x = (unsigned)blocks;
    blocks_at_work.resize((size_t)blocks);
    grid_live = blocks * threads, grid_arrived = 0;
    for (int b = 0; b < blocks; b++)
        begin_block(blocks_at_work[(size_t)b], (unsigned)b, (unsigned)threads, (size_t)b * (size_t)threads, kind);
    for (Block &b : blocks_at_work)
        begin_chip(b, (size_t)chip_bytes);
    run_together(kernel, kind);
    for (const Block &b : blocks_at_work)
        look_at_wall(b, kernel);
}
