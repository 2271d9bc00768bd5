"""Asks pywb's CDX server and prints what it answers, one JSON object a line.

Usage: cdx.py COLLECTIONS < lines of query strings. COLLECTIONS is a folder that `wb-manager` made with the collection `archive`.
"""

import json
import os
import sys

from gevent import monkey

monkey.patch_all()

from pywb.apps.frontendapp import FrontEndApp  # noqa: E402
from werkzeug.test import Client  # noqa: E402

# What pywb says while it starts is no answer.
answers, sys.stdout = sys.stdout, sys.stderr
os.chdir(sys.argv[1])
client = Client(FrontEndApp())
for line in sys.stdin:
    answer = client.get(f"/archive/cdx?{line.strip()}")
    print(json.dumps([answer.status_code, answer.get_data(as_text=True)]), file=answers, flush=True)
