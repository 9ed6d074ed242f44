/* tcp_address.h -- addresses of IPv4 and IPv6 with ports. */
#ifndef COMM_TCP_ADDRESS_H
#define COMM_TCP_ADDRESS_H
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

typedef union Address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} Address;

socklen_t address_length(const Address *a);
int address_port(const Address *a);
void address_set_port(Address *a, int port);
bool address_is_loopback(const Address *a);
/* Replaces an IPv4 address in the form of IPv6, ::ffff:10.0.0.1, by 10.0.0.1. */
void address_simplify(Address *a);
const char *address_text(const Address *a, char text[80]); /* "10.0.0.1:21000", "[::1]:21000" */

/* Opens a non-blocking socket that listens at this address; the address :: accepts both families.
 * Replaces port 0 by the port that the kernel has chosen.  Returns -1 and sets errno on failure. */
int address_listen(Address *a, int backlog);

#endif
