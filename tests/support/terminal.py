#!/usr/bin/python3
"""Runs a command on a terminal and prints what appears there, byte by byte.

    terminal.py [--errors FILE] COMMAND [ARGUMENT...]

With --errors only its standard error is a terminal; its standard output goes to FILE. Ends with the status of
the command.
"""
import os
import pty
import subprocess
import sys


def main(words):
    parent, child = pty.openpty()
    out = child
    if words[0] == "--errors":
        out, words = os.open(words[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), words[2:]
    run = subprocess.Popen(words, stdout=out, stderr=child)
    os.close(child)
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:  # the last to have it open has closed it
            break
        if not piece:
            break
        sys.stdout.buffer.write(piece)
    return run.wait()


sys.exit(main(sys.argv[1:]))
