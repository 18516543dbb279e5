"""What a report says of the programs and of the machine."""

import subprocess

from places import resolve


def version(program, name, option="--version"):
    """The first line a program says of itself when it is called by this name."""
    command = subprocess.run([name, option], executable=resolve(program), capture_output=True, text=True, check=False)
    return next(iter((command.stdout + command.stderr).splitlines()), "unknown")


def kernel_default(name):
    with open(f"/proc/sys/net/ipv4/{name}", encoding="ascii") as file:
        return file.read().strip()


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown CPU")
