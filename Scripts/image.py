#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the image of Examples/Deployment/Dockerfile and tries it, without a container engine: each stage is a
Debian in a folder, and its steps run there with chroot. Needs root, debootstrap and some minutes.

The stage that begins with an image of Swift has this machine's toolchain, its configuration of git, and the folders from
which git takes packages, if that names any. What is committed is built. It fails if a step fails, if the program links
a library of Swift, if the health check does not tell a server that works from one that hangs or from none, and unless
SIGTERM ends the server with code 0.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "Examples/Deployment/Dockerfile"
# What the image of Swift has besides the toolchain.
SWIFT_PACKAGES = ("binutils,ca-certificates,git,libc6-dev,libcurl4,libedit2,libgcc-12-dev,libncurses6,libpython3.11,"
                  "libsqlite3-0,libstdc++-12-dev,libxml2,libz3-4,pkg-config,tzdata,zlib1g-dev")


def steps():
    """The steps of the file, as pairs of an instruction and its text."""
    text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.M)
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if line.strip():
            name, rest = line.split(None, 1)
            yield name, rest.strip()


class Stage:
    """A file system in which steps run."""

    def __init__(self, image, folder):
        self.folder, self.workdir, self.user, self.env = folder, "/", "0", {}
        suite = re.search(r"-?(bookworm|trixie)", image).group(1)
        extra = [f"--include={SWIFT_PACKAGES}"] if image.startswith("swift:") else []
        site = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"], check=True,
                              text=True, stdout=subprocess.PIPE).stdout.split()
        site = next(place for place in site if "security" not in place)
        run(["debootstrap", "--variant=minbase", *extra, suite, str(folder), site], stdout=subprocess.DEVNULL)
        for path in ("/etc/apt/sources.list", "/etc/apt/sources.list.d", "/etc/apt/apt.conf.d", "/etc/resolv.conf",
                     "/usr/share/keyrings"):
            target = folder / path[1:]
            if os.path.isdir(path):
                shutil.copytree(path, target, dirs_exist_ok=True)
            elif os.path.exists(path):
                shutil.copy(path, target)
        self.mount("/proc", "-t", "proc", "proc")
        self.mount("/dev", "--rbind", "/dev")
        if image.startswith("swift:"):
            swift = pathlib.Path(os.path.realpath(shutil.which("swift"))).parents[2]
            settings = subprocess.run(["git", "config", "--system", "--list", "--name-only"], text=True,
                                      stdout=subprocess.PIPE).stdout
            for path in {str(swift), *re.findall(r"^url\.(/.+)/\.insteadof$", settings, re.M)}:
                self.mount(path, "--bind", path)
            self.env["PATH"] = f"{swift}/usr/bin:/usr/sbin:/usr/bin:/sbin:/bin"
            if os.path.exists("/etc/gitconfig"):
                shutil.copy("/etc/gitconfig", folder / "etc/gitconfig")

    def mount(self, path, *how):
        target = self.folder / path.lstrip("/")
        target.mkdir(parents=True, exist_ok=True)
        run(["mount", *how, str(target)])

    def command(self, arguments):
        env = {"HOME": "/root", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **self.env}
        words = [f"{name}={value}" for name, value in env.items()]
        return ["chroot", f"--userspec={self.user}:{self.user}", str(self.folder), "env", "-i", *words,
                "sh", "-c", 'cd "$0" && exec "$@"', self.workdir, *arguments]


def run(command, **options):
    subprocess.run(command, check=True, **options)


def build(folder):
    """Runs all steps; returns the last stage, its program and its health check."""
    stage, names, entry, health = None, {}, None, None
    for name, text in steps():
        print(f"{name} {text}", flush=True)
        if name == "FROM":
            image, _, alias = text.partition(" AS ")
            stage = names[alias] = Stage(image, folder / (alias or "image"))
        elif name == "RUN":
            run(stage.command(["sh", "-c", text]))
        elif name == "WORKDIR":
            stage.workdir = text
            (stage.folder / text[1:]).mkdir(parents=True, exist_ok=True)
        elif name == "COPY" and text == ". .":
            # What is committed, without what the image does not need.
            ignored = [line for line in FILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
                       if line and line[0] not in "#*"]
            files = subprocess.run(["git", "archive", "HEAD", "--", ".", *[f":!{path}" for path in ignored]],
                                   cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
            run(["tar", "--extract", f"--directory={stage.folder}{stage.workdir}"], input=files)
        elif name == "COPY":
            source, path, target = re.fullmatch(r"--from=(\S+) (\S+) (\S+)", text).groups()
            shutil.copy(names[source].folder / path[1:], stage.folder / target[1:])
        elif name == "USER":
            stage.user = text
        elif name == "ENV":
            stage.env.update(word.split("=", 1) for word in text.split())
        elif name == "HEALTHCHECK":
            health = json.loads(text.partition("CMD ")[2])
        elif name == "ENTRYPOINT":
            entry = json.loads(text)
        elif name != "EXPOSE":
            sys.exit(f"the step {name} is not known here")
    return stage, entry, health


def attempt(stage, entry, health):
    """Starts the program, and asks for its health."""
    def is_well():
        return subprocess.run(stage.command(health), timeout=10, stderr=subprocess.DEVNULL).returncode == 0

    linked = subprocess.run(stage.command(["ldd", f"/usr/local/bin/{entry[0]}"]), check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    print(linked, end="")
    assert "libswift" not in linked and "not found" not in linked, "the program does not stand alone"
    assert not is_well(), "without a server the health check has to fail"
    server = subprocess.Popen(stage.command(entry))
    try:
        end = time.monotonic() + 20
        while not is_well():
            assert server.poll() is None and time.monotonic() < end, "the server is not well"
            time.sleep(0.1)
        users = re.search(r"^Uid:\s+(\d+)", pathlib.Path(f"/proc/{server.pid}/status").read_text(), re.M)
        assert users.group(1) == stage.user != "0", "the server runs as root"
        server.send_signal(signal.SIGSTOP)
        try:
            # An engine ends a check after its time-out.
            assert not subprocess.run(["timeout", "3", *stage.command(health)]).returncode == 0
        finally:
            server.send_signal(signal.SIGCONT)
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0, "SIGTERM does not end the server well"
    finally:
        server.kill()
    size = os.path.getsize(stage.folder / f"usr/local/bin/{entry[0]}")
    print(f"The image works; its program has {size / 1e6:.0f} MB.")


def main():
    if len(sys.argv) > 1:
        attempt(*build(pathlib.Path(sys.argv[1])))
        return
    # What is mounted is mounted for the process inside alone, so that nothing of it can be removed.
    folder = tempfile.mkdtemp(prefix="image-")
    os.chmod(folder, 0o755)
    inside = subprocess.run(["unshare", "--mount", "--propagation", "private", sys.executable, __file__, folder])
    shutil.rmtree(folder)
    sys.exit(inside.returncode)


if __name__ == "__main__":
    main()
