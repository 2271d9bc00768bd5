"""This program and pywb as servers of the same archive, for comparisons."""

import argparse
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def arguments(text):
    """A parser of what all comparisons are given."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--pywb", type=lambda text: Path(text).absolute(), required=True, help="folder of pywb's programs")
    parser.add_argument("--program", default="target/dist/archive")
    return parser


def free():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def reached(port):
    for _ in range(600):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing answers at port {port}")


@contextlib.contextmanager
def served(given, workers=None):
    """The archive's index as CDXJ, and the ports of this program's replay and of pywb, whose collection `archive` it is. With `workers`,
    uwsgi serves pywb."""
    folder = Path(tempfile.mkdtemp())
    quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    archive, program = given.archive.resolve(), shutil.which(given.program) or str(Path(given.program).resolve())
    subprocess.run([given.pywb / "wb-manager", "init", "archive"], check=True, **quiet)
    index = folder / "collections/archive/indexes/index.cdxj"
    subprocess.run([program, "export", "--archive", archive, "cdxj", "--output", index], check=True, **quiet)
    for segment in archive.glob("segments/*.warc.gz"):
        os.symlink(segment, folder / "collections/archive/archive" / segment.name)
    # Pages without frame and banner, as they are compared with live ones.
    (folder / "config.yaml").write_text("framed_replay: false\n")
    (folder / "templates").mkdir(exist_ok=True)
    for name in ("banner.html", "frame_insert.html"):
        (folder / "templates" / name).write_text("")
    application, ours, theirs = free(), free(), free()
    serve = [program, "serve", "--archive", archive, "--listen", f"127.0.0.1:{application}", "--replay-listen", f"127.0.0.1:{ours}"]
    wayback = [given.pywb / "wayback", "-p", str(theirs)]
    if workers:
        options = ["--http-socket", f"127.0.0.1:{theirs}", "--http-keepalive", "--master", "--processes", str(workers)]
        options += ["--gevent", "100", "--lazy-apps", "--buffer-size", "65536", "--die-on-term", "--disable-logging"]
        wayback = [given.pywb / "uwsgi", *options, "--wsgi", "pywb.apps.wayback"]
    servers = [subprocess.Popen(serve, **quiet), subprocess.Popen(wayback, **quiet)]
    reached(ours), reached(theirs)
    try:
        yield index, ours, theirs
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()
        shutil.rmtree(folder)
