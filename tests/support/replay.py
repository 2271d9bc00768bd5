"""Replays captures with pywb and prints what a browser would get, one JSON object a line.

Usage: replay.py FOLDER [--unpack-wacz] FILE... < lines of "TIMESTAMP URL". The files are added to a new collection in
FOLDER; TIMESTAMP has 14 digits. The modifier `id_` asks pywb for the page as it was captured.
"""

import hashlib
import json
import os
import sys

from gevent import monkey

monkey.patch_all()

from pywb.apps.frontendapp import FrontEndApp  # noqa: E402
from pywb.manager.manager import main  # noqa: E402
from werkzeug.test import Client  # noqa: E402

# What pywb says by itself is no answer.
answers, sys.stdout = sys.stdout, sys.stderr
os.chdir(sys.argv[1])
main(["init", "archive"])
main(["add", "archive", *sys.argv[2:]])
client = Client(FrontEndApp())
for line in sys.stdin:
    timestamp, url = line.split()
    answer = client.get(f"/archive/{timestamp}id_/{url}")
    replayed = {
        "time": answer.headers.get("Memento-Datetime", ""),
        "sha256": hashlib.sha256(answer.get_data()).hexdigest(),
    }
    print(json.dumps(replayed), file=answers, flush=True)
