"""What a power cut leaves, made from a folder after a kill and the shadow that interpose_shadow.c kept of it.

strict: nothing that was not synced: files have the content of their last fsync (none: they are empty), folders the entries of
        theirs.
mixed:  of everything that was not synced, an arbitrary part has reached the disk: each entry of a folder, each file's content on its
        own. More than any file system does, so what holds here holds there.
"""

import os
import pathlib


def read_entries(path):
    entries = {}
    for line in path.read_text().splitlines():
        kind, inode, name = line.split(" ", 2)
        name, _, target = name.partition("\t")
        entries[name] = (kind, int(inode), target)
    return entries


class Shadow:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        (self.path / "inodes").mkdir(parents=True)
        (self.path / "folders").mkdir()

    def record(self, folder):
        """Everything in a folder is on the disk."""
        lines = []
        for entry in os.scandir(folder):
            kind = "l" if entry.is_symlink() else "d" if entry.is_dir() else "f"
            target = "\t" + os.readlink(entry.path) if kind == "l" else ""
            lines.append(f"{kind} {entry.inode()} {entry.name}{target}\n")
            if kind == "d":
                self.record(entry.path)
            elif kind == "f":
                (self.path / f"inodes/{entry.inode()}").write_bytes(pathlib.Path(entry.path).read_bytes())
        (self.path / f"folders/{os.stat(folder).st_ino}").write_text("".join(lines))


class Cut:
    """random: None is strict, else a random.Random for mixed."""

    def __init__(self, live, shadow, random=None):
        self.random = random
        self.folders = {int(path.name): read_entries(path) for path in (shadow.path / "folders").iterdir()}
        self.contents = {int(path.name): path.read_bytes() for path in (shadow.path / "inodes").iterdir()}
        self.live_folders, self.live_contents = {}, {}
        self.root = os.stat(live).st_ino
        self.look(live)

    def look(self, folder):
        entries = self.live_folders[os.stat(folder).st_ino] = {}
        for entry in os.scandir(folder):
            kind = "l" if entry.is_symlink() else "d" if entry.is_dir() else "f"
            entries[entry.name] = (kind, entry.inode(), os.readlink(entry.path) if kind == "l" else "")
            if kind == "d":
                self.look(entry.path)
            elif kind == "f":
                self.live_contents[entry.inode()] = pathlib.Path(entry.path).read_bytes()

    def entries(self, inode):
        durable = self.folders.get(inode, {})
        if self.random is None or inode not in self.live_folders:
            return durable
        live = self.live_folders[inode]
        chosen = {}
        for name in sorted({**durable, **live}):
            entry = self.random.choice([durable.get(name), live.get(name)])
            if entry:
                chosen[name] = entry
        return chosen

    def content(self, inode):
        durable = self.contents.get(inode, b"")
        if self.random is None or inode not in self.live_contents:
            return durable
        live = self.live_contents[inode]
        if live.startswith(durable):  # written further: any length between
            return live[: self.random.choice([len(durable), len(live), self.random.randint(len(durable), len(live))])]
        return self.random.choice([durable, live])

    def write(self, target, inode=None):
        inode = self.root if inode is None else inode
        target = pathlib.Path(target)
        target.mkdir()
        for name, (kind, number, link) in self.entries(inode).items():
            if kind == "d":
                self.write(target / name, number)
            elif kind == "l":
                os.symlink(link, target / name)
            else:
                (target / name).write_bytes(self.content(number))
