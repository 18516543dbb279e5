"""Output of a guest: what it printed between `@@ NAME` and `@@`."""


def blocks(path):
    """The blocks by name, and whether the guest came to its end."""
    name, lines, found = None, [], {}
    for line in open(path, errors="replace"):
        if line.startswith("@@"):
            if name:
                found[name] = "".join(lines)
            name, lines = line[2:].strip() or None, []
        elif name:
            lines.append(line)
    return found, "end" in found or name == "end"
