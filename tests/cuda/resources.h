/* resources.h -- registers and shared memory of the kernels of this program.
 *
 * A C++ compiler does not know them.  So a kernel has the most that nvcc may give it: as many registers as its __launch_bounds__ allow, and RT_SHARED
 * bytes of shared memory.  FAKE_PTXAS names a file with the real numbers: what `nvcc -Xptxas -v` has printed, for the architecture FAKE_ARCH.
 *
 * shim.h puts a kernel with launch bounds into a section whose name has the bounds: "launch_bounds.THREADS.RT_RESIDENT".  The sections and the names of kernels
 * are read from the program's own file (ELF).
 */
#ifndef RESOURCES_H
#define RESOURCES_H
#include "shim.h"
#include "../../runtime/constants.h"
#include "limits.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <link.h>
#include <map>
#include <string>
#include <vector>

struct KernelSymbol {
    std::string name; /* mangled */
    int threads, blocks;
};

/* A launch bound: a number, or one of the runtime's constants. */
static inline int bound_of(const std::string &word)
{
    const int n = word == "THREADS" || word == "RT_THREADS" ? RT_THREADS : word == "RT_RESIDENT" ? RT_RESIDENT : atoi(word.c_str());
    if (n < 1) {
        fprintf(stderr, "fake: the launch bound '%s' is unknown\n", word.c_str());
        exit(3);
    }
    return n;
}

static inline KernelSymbol kernel_symbol(const char *name, const std::string &section)
{
    const size_t first = section.find('.') + 1, second = section.find('.', first) + 1;
    return KernelSymbol{name, bound_of(section.substr(first, second - 1 - first)), bound_of(section.substr(second))};
}

static inline int take_base(dl_phdr_info *info, size_t, void *base)
{
    *(const char **)base = (const char *)info->dlpi_addr;
    return 1; /* the first is the program */
}

static inline std::map<const void *, KernelSymbol> read_kernels()
{
    std::ifstream f("/proc/self/exe", std::ios::binary);
    const std::vector<char> file((std::istreambuf_iterator<char>(f)), std::istreambuf_iterator<char>());
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)file.data();
    const Elf64_Shdr *section = (const Elf64_Shdr *)(file.data() + head->e_shoff);
    const char *names = file.data() + section[head->e_shstrndx].sh_offset, *base = nullptr;
    std::map<const void *, KernelSymbol> kernels;
    dl_iterate_phdr(take_base, &base);
    for (int i = 0; i < head->e_shnum; i++) {
        const Elf64_Sym *symbol = (const Elf64_Sym *)(file.data() + section[i].sh_offset);
        for (size_t k = 0; section[i].sh_type == SHT_SYMTAB && k < section[i].sh_size / sizeof *symbol; k++) {
            const char *of = symbol[k].st_shndx < head->e_shnum ? names + section[symbol[k].st_shndx].sh_name : "";
            if (ELF64_ST_TYPE(symbol[k].st_info) == STT_FUNC && strncmp(of, "launch_bounds.", strlen("launch_bounds.")) == 0)
                kernels[base + symbol[k].st_value] = kernel_symbol(file.data() + section[section[i].sh_link].sh_offset + symbol[k].st_name, of);
        }
    }
    return kernels;
}

/* The name of a function as it stands in each mangled name: "7dense_1" of _ZL7dense_1Pf. */
static inline std::string counted_name(const std::string &mangled)
{
    const size_t at = mangled.find_first_of("0123456789"), digits = at == std::string::npos ? 0 : mangled.find_first_not_of("0123456789", at) - at;
    return digits ? mangled.substr(at, digits + (size_t)atoi(mangled.c_str() + at)) : "";
}

static inline bool is_of(const std::string &mangled, const std::string &counted)
{
    const size_t at = counted.empty() ? std::string::npos : mangled.find(counted);
    return at != std::string::npos && (at == 0 || !isdigit(mangled[at - 1]));
}

/* Replaces the numbers of a kernel by those of ptxas, if FAKE_PTXAS has them. */
static inline void read_ptxas(KernelLimits *k, const std::string &counted, int arch)
{
    std::ifstream f(getenv("FAKE_PTXAS") ? getenv("FAKE_PTXAS") : "");
    const std::string sm = "sm_" + std::to_string(arch);
    bool ours = false;
    for (std::string line; std::getline(f, line);) {
        const size_t used = line.find("Used "), bytes = line.find(" bytes smem");
        if (line.find("Compiling entry function") != std::string::npos)
            ours = line.find(sm) != std::string::npos && is_of(line, counted);
        if (!ours || used == std::string::npos)
            continue;
        k->registers = atoi(line.c_str() + used + strlen("Used "));
        k->fixed = bytes == std::string::npos ? 0 : atoi(line.c_str() + line.rfind(' ', bytes - 1));
    }
}

/* A kernel without bounds may have all registers, and any number of threads that fits. */
static inline KernelLimits kernel_limits(const void *kernel, int arch)
{
    static const std::map<const void *, KernelSymbol> kernels = read_kernels();
    const auto found = kernels.find(kernel);
    KernelLimits k = {THREAD_REGISTERS, BLOCK_THREADS, RT_SHARED, 0, false};
    if (found != kernels.end()) {
        k.threads = found->second.threads;
        k.registers = registers_within(k.threads, found->second.blocks);
        read_ptxas(&k, counted_name(found->second.name), arch);
    }
    k.dynamic = SHARED_PLAIN - k.fixed;
    return k;
}

#endif
