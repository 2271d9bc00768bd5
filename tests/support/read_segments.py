"""Reads every WARC file of a folder as others would, checks all digests, and prints one JSON object with counts.

FastWARC reads both codecs; warcio reads what it knows (gzip). Usage: read_segments.py FOLDER
"""

import collections
import hashlib
import json
import pathlib
import sys

from fastwarc.warc import ArchiveIterator, WarcRecordType
from warcio.archiveiterator import ArchiveIterator as WarcioIterator


def ends_its_head_with_bare_newlines(path, found):
    """Whether the payload is as its digest says behind a head of bare newlines.

    A recipient may take them for line ends, as browsers do (RFC 9112 section 2.2); FastWARC takes all for head.
    """
    for record in ArchiveIterator(str(path), record_types=WarcRecordType.response, parse_http=False):
        if record.record_id == found.record_id:
            head, _, body = record.reader.read().partition(b"\n\n")
            digest = "sha256:" + hashlib.sha256(body).hexdigest()
            return b"\r" not in head and record.headers["WARC-Payload-Digest"] == digest
    return False


folder = pathlib.Path(sys.argv[1])
by_fastwarc = collections.Counter()
by_warcio = collections.Counter()
targets = collections.Counter()
wrong = []
for path in sorted(folder.iterdir()):
    if not path.name.endswith((".warc.gz", ".warc.zst")):
        continue
    for record in ArchiveIterator(str(path), record_types=WarcRecordType.any_type, parse_http=False):
        kind = record.headers.get("WARC-Type")
        name = f"{record.record_id} of {record.headers.get('WARC-Target-URI')}"
        by_fastwarc[kind] += 1
        if kind in ("response", "revisit"):
            targets[record.headers.get("WARC-Target-URI")] += 1
        record.freeze()
        if "WARC-Block-Digest" in record.headers and not record.verify_block_digest():
            wrong.append(f"{path.name}: block digest of {name}")
        if kind != "response" or "WARC-Payload-Digest" not in record.headers:
            continue
        record.parse_http()
        if not record.verify_payload_digest() and not ends_its_head_with_bare_newlines(path, record):
            wrong.append(f"{path.name}: payload digest of {name}")
    if path.name.endswith(".gz"):
        with path.open("rb") as file:
            for record in WarcioIterator(file, check_digests="raise"):
                by_warcio[record.rec_type] += 1
                record.content_stream().read()
json.dump({"fastwarc": by_fastwarc, "warcio": by_warcio, "targets": targets, "wrong": wrong}, sys.stdout)
