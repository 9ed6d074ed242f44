/* tcp_address.c -- see tcp_address.h. */
#define _GNU_SOURCE
#include "comm/tcp_address.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

socklen_t address_length(const Address *a)
{
    return a->any.sa_family == AF_INET6 ? sizeof a->v6 : sizeof a->v4;
}

void address_set_port(Address *a, int port)
{
    *(a->any.sa_family == AF_INET6 ? &a->v6.sin6_port : &a->v4.sin_port) = htons((uint16_t)port);
}

int address_port(const Address *a)
{
    return ntohs(a->any.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
}

bool address_is_loopback(const Address *a)
{
    return a->any.sa_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr)
                                        : ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
}

void address_simplify(Address *a)
{
    if (a->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
        return;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = a->v6.sin6_port};
    memcpy(&v4.sin_addr, a->v6.sin6_addr.s6_addr + 12, 4);
    a->v4 = v4;
}

const char *address_text(const Address *a, char text[80])
{
    char host[INET6_ADDRSTRLEN] = "?";
    const bool six = a->any.sa_family == AF_INET6;
    inet_ntop(a->any.sa_family, six ? (const void *)&a->v6.sin6_addr : &a->v4.sin_addr, host,
              sizeof host);
    snprintf(text, 80, six ? "[%s]:%d" : "%s:%d", host, address_port(a));
    return text;
}

int address_listen(Address *at, int backlog)
{
    Address a = *at;
    const int fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1, no = 0;
    socklen_t n = address_length(&a);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (a.any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (bind(fd, &a.any, n) != 0 || listen(fd, backlog) != 0 || getsockname(fd, &a.any, &n) != 0) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    *at = a;
    return fd;
}
