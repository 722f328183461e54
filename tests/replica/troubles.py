"""Faults between and inside processes: a network that delivers nothing, clocks that are set."""
import os
import socket
import struct
import subprocess
import threading


class Line:
    """A proxy to a port of this machine whose connection can be cut. While it is cut, bytes wait on both
    sides, as in a partitioned network; afterwards they arrive late, or the connections are lost."""

    def __init__(self, port):
        self.to, self.open, self.ended = port, threading.Event(), False
        self.open.set()
        self.sockets, self.lock = set(), threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.connect, args=(near,), daemon=True).start()

    def connect(self, near):
        self.open.wait()
        try:
            far = socket.create_connection(("127.0.0.1", self.to))
        except OSError:
            near.close()
            return
        with self.lock:
            self.sockets |= {near, far}
        threading.Thread(target=self.copy, args=(near, far), daemon=True).start()
        self.copy(far, near)

    def copy(self, source, to):
        try:
            while data := source.recv(65536):
                self.open.wait()
                to.sendall(data)
        except OSError:
            pass
        for one in (source, to):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        with self.lock:
            self.sockets.discard(source)
        source.close()

    def cut(self):
        self.open.clear()

    def mend(self, lost=False):
        with self.lock:
            for one in self.sockets if lost else ():
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.open.set()

    def end(self):
        self.listener.close()
        self.mend(lost=True)


class Clocks:
    """The clocks of a process, in seconds ahead of the machine's: of the day, which can be set, and since boot,
    which goes on while a machine sleeps and begins again with its next start."""

    def __init__(self, folder, name):
        self.path = os.path.join(folder, name + ".clocks")
        library = os.path.join(folder, "clocks.so")
        if not os.path.exists(library):
            here = os.path.dirname(os.path.abspath(__file__))
            subprocess.run(["cc", "-O1", "-shared", "-fPIC", os.path.join(here, "clocks.c"), "-o", library],
                           check=True)
        options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"    # the library comes first
        self.env = dict(os.environ, LD_PRELOAD=library, TAMIS_CLOCKS=self.path, ASAN_OPTIONS=options)
        self.day = self.boot = 0
        with open(self.path, "wb") as file:
            file.write(bytes(16))

    def set(self, day, boot=None):
        self.day, self.boot = day, self.boot if boot is None else boot
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=qq", int(self.day * 1e9), int(self.boot * 1e9)))
