/* task.h -- a call without arguments, kept by value: std::function without <functional>, which each compiled program would read for a
 * third of a second. */
#ifndef TASK_H
#define TASK_H

class Task
{
    struct Call {
        int owners = 1;
        virtual void run() = 0;
        virtual ~Call() {}
    };
    template <class F> struct Kept : Call {
        F f;
        Kept(const F &g) : f(g) {}
        void run() override { f(); }
    };
    Call *call;

  public:
    template <class F> Task(const F &f) : call(new Kept<F>(f)) {}
    Task(const Task &other) : call(other.call) { __atomic_add_fetch(&call->owners, 1, __ATOMIC_RELAXED); }
    Task &operator=(const Task &) = delete;
    ~Task()
    {
        if (__atomic_sub_fetch(&call->owners, 1, __ATOMIC_ACQ_REL) == 0)
            delete call;
    }
    void operator()() const { call->run(); }
};

#endif
