"""Lists what FastWARC reads in WARC files: one JSON array a record, with file, type, URL and the SHA-256 of its block.

Usage: list_records.py FILE…
"""

import hashlib
import json
import sys

from fastwarc.warc import ArchiveIterator, WarcRecordType

for path in sys.argv[1:]:
    try:
        for record in ArchiveIterator(path, record_types=WarcRecordType.any_type, parse_http=False):
            block = hashlib.sha256(record.reader.read()).hexdigest()
            url = (record.headers.get("WARC-Target-URI") or "").strip("<>")
            print(json.dumps([path, record.headers.get("WARC-Type") or "", url, block]))
    except Exception as error:  # A broken file ends here for FastWARC.
        print(f"{path}: {error}", file=sys.stderr)
