#!/usr/bin/env python3
"""Sends and receives application data units over one fsocket, from Python, by ctypes.

usage: adus.py LOCAL PORT REMOTE PORT N    LOCAL and REMOTE are IPv4 or IPv6 addresses

Both ends are started like this, within seven seconds of each other. Each sends N units of ten 512-byte pieces, receives N, and says what
came. The library is found by the dynamic linker, as `libfairpace_fsocket.so.0`.
"""

import ctypes
import ipaddress
import os
import socket
import sys
import threading

PIECES, PIECE = 10, 512
lib = ctypes.CDLL("libfairpace_fsocket.so.0", use_errno=True)
lib.f_strerror.restype = ctypes.c_char_p
lib.f_send.restype = lib.f_recv_adu.restype = ctypes.c_ssize_t
lib.f_send.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
lib.f_recv_adu.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int)]


class In(ctypes.Structure):
    _fields_ = [("family", ctypes.c_ushort), ("port", ctypes.c_uint16), ("ip", ctypes.c_ubyte * 4), ("zero", ctypes.c_ubyte * 8)]


class In6(ctypes.Structure):
    _fields_ = [
        ("family", ctypes.c_ushort),
        ("port", ctypes.c_uint16),
        ("flowinfo", ctypes.c_uint32),
        ("ip", ctypes.c_ubyte * 16),
        ("scope", ctypes.c_uint32),
    ]


def address(ip, port):
    ip = ipaddress.ip_address(ip)
    packed = (ctypes.c_ubyte * len(ip.packed))(*ip.packed)
    if ip.version == 4:
        return In(family=socket.AF_INET, port=socket.htons(port), ip=packed)
    return In6(family=socket.AF_INET6, port=socket.htons(port), ip=packed)


def check(value, call):
    if value < 0:
        error = ctypes.get_errno()
        sys.exit(f"{call}: {os.strerror(error)} ({lib.f_strerror().decode()})")
    return value


def send(fd, units):
    for n in range(units):
        for i in range(PIECES):
            piece = bytes([(n + i) & 0xFF]) * PIECE
            check(lib.f_send(fd, piece, PIECE, i == PIECES - 1), "f_send")


def receive(fd, units):
    """How many whole units came, and how many bytes were not as they were sent."""
    came, wrong, unit = 0, 0, b""
    buffer, end = ctypes.create_string_buffer(700), ctypes.c_int()
    while came < units:
        got = check(lib.f_recv_adu(fd, buffer, len(buffer), ctypes.byref(end)), "f_recv_adu")
        if got == 0:
            break
        unit += buffer.raw[:got]
        if end.value:
            expected = b"".join(bytes([(came + i) & 0xFF]) * PIECE for i in range(PIECES))
            wrong += unit != expected
            came, unit = came + 1, b""
    return came, wrong


def main():
    if len(sys.argv) != 6:
        sys.exit(__doc__.strip())
    local, remote, units = address(sys.argv[1], int(sys.argv[2])), address(sys.argv[3], int(sys.argv[4])), int(sys.argv[5])
    open_socket, name_peer = (lib.f_socket6, lib.f_dst6) if isinstance(local, In6) else (lib.f_socket, lib.f_dst)
    fd = check(open_socket(ctypes.byref(local)), "f_socket")
    # Short periods, so that even a short run changes its transport.
    options = {"directions": "2", "t_running": "200ms", "t_tcp": "20ms", "epsilon": "1Gbps", "max_rate": "20Mbps"}
    for name, value in options.items():
        check(lib.f_option(fd, name.encode(), value.encode()), "f_option")
    check(name_peer(fd, ctypes.byref(remote)), "f_dst")
    result = []
    receiving = threading.Thread(target=lambda: result.extend(receive(fd, units)))
    receiving.start()
    send(fd, units)
    receiving.join()
    check(lib.f_close(fd), "f_close")
    print(f"sent {units} units, received {result[0]}, {result[1]} wrong")
    sys.exit(result != [units, 0])


main()
