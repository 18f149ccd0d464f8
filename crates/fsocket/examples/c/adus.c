/* Sends or receives application data units of ten 512-byte pieces over an fsocket, and says what it saw.
 *
 *   adus receive PORT           prints the port it took, then receives until the sender closes
 *   adus send ADDRESS PORT N    sends N units
 *
 * Build: cc adus.c -I../../include -L../../../../target/release -lfairpace_fsocket -o adus
 */
#include <arpa/inet.h>
#include <fairpace_fsocket.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 10, PIECE = 512 };

static int fail(const char *what)
{
    int error = errno;
    fprintf(stderr, "%s: %s (%s)\n", what, strerror(error), f_strerror());
    return 1;
}

/* Short periods, so that even a short run changes its transport. */
static int set_up(int fd)
{
    static const char *const options[][2] = {
        {"t_running", "200ms"}, {"t_tcp", "20ms"}, {"epsilon", "1Gbps"}, {"max_rate", "20Mbps"},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (f_option(fd, options[i][0], options[i][1]) < 0)
            return -1;
    return 0;
}

static int send_adus(const char *address, int port, unsigned adus)
{
    struct sockaddr_in remote = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &remote.sin_addr) != 1) {
        fprintf(stderr, "%s is not an IPv4 address\n", address);
        return 2;
    }
    int fd = f_socket(NULL);
    if (fd < 0 || set_up(fd) < 0)
        return fail("f_socket");
    if (f_dst(fd, &remote) < 0)
        return fail("f_dst");
    for (unsigned n = 0; n < adus; n++)
        for (int i = 0; i < PIECES; i++) {
            unsigned char piece[PIECE];
            memset(piece, (int)((n + (unsigned)i) & 0xff), sizeof piece);
            if (f_send(fd, piece, sizeof piece, i == PIECES - 1) != PIECE)
                return fail("f_send");
        }
    if (f_close(fd) < 0)
        return fail("f_close");
    printf("sent %u units\n", adus);
    return 0;
}

static int receive_adus(int port)
{
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = f_socket(&local);
    if (fd < 0)
        return fail("f_socket");
    printf("port %d\n", ntohs(local.sin_port));
    fflush(stdout);
    unsigned adus = 0, wrong = 0;
    size_t in_adu = 0;
    for (;;) {
        unsigned char buffer[700];
        int end = 0;
        ssize_t got = f_recv_adu(fd, buffer, sizeof buffer, &end);
        if (got < 0)
            return fail("f_recv");
        if (got == 0)
            break;
        for (ssize_t i = 0; i < got; i++, in_adu++)
            if (buffer[i] != ((adus + in_adu / PIECE) & 0xff))
                wrong++;
        if (end) {
            if (in_adu != PIECES * PIECE)
                wrong++;
            in_adu = 0;
            adus++;
        }
    }
    if (f_close(fd) < 0)
        return fail("f_close");
    printf("received %u units, %u wrong\n", adus, wrong);
    return wrong > 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "receive") == 0)
        return receive_adus(atoi(argv[2]));
    if (argc == 5 && strcmp(argv[1], "send") == 0)
        return send_adus(argv[2], atoi(argv[3]), (unsigned)atoi(argv[4]));
    fprintf(stderr, "usage: adus receive PORT | adus send ADDRESS PORT N\n");
    return 2;
}
