"""What a report says of the programs and of the machine."""

import glob
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


def caches():
    """Caches of the first CPU, such as "L1 Data 32K"."""
    found = []
    for folder in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        level, kind, size = (first_line(f"{folder}/{name}") for name in ("level", "type", "size"))
        found.append(f"L{level} {kind} {size}")
    return found


def first_line(path):
    with open(path, encoding="ascii") as file:
        return file.readline().strip()


def commit():
    """The commit the sources are at, with a mark when they were changed since."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or "unknown"
