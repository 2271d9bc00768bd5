"""Reads our segments with warcio and FastWARC; prints one line a record and what each says of its digests.

Line: READER FILE TYPE URI CONTENT-BYTES BLOCK-DIGEST PAYLOAD-DIGEST, where a digest is pass, fail or none.
"""

import gzip
import sys


def verdict(header, verify):
    return ("pass" if verify() else "fail") if header else "none"


def fastwarc(path):
    from fastwarc.warc import ArchiveIterator

    def each(parse_http):
        with open(path, "rb") as stream:
            for record in ArchiveIterator(stream, parse_http=parse_http):
                yield record

    # FastWARC verifies block digests before, payload digests after HTTP heads are parsed.
    blocks = []
    for record in each(False):
        uri = record.headers.get("WARC-Target-URI", "-")
        length = record.content_length
        blocks.append((str(record.record_type), uri, length,
                       verdict(record.headers.get("WARC-Block-Digest"), record.verify_block_digest)))
    payloads = []
    for record in each(True):
        # FastWARC knows payloads of HTTP messages only.
        has_payload = str(record.record_type) == "response"
        payloads.append(verdict(has_payload and record.headers.get("WARC-Payload-Digest"),
                                record.verify_payload_digest))
    for block, payload in zip(blocks, payloads, strict=True):
        print("fastwarc", path, *block, payload)


def warcio(path):
    from warcio.archiveiterator import ArchiveIterator

    with open(path, "rb") as stream:
        for record in ArchiveIterator(stream, check_digests=True):
            length = record.rec_headers.get_header("Content-Length")
            while record.raw_stream.read(65536):
                pass
            checker = record.digest_checker
            problems = " ".join(checker.problems)
            header = record.rec_headers.get_header
            block = "none" if not header("WARC-Block-Digest") else "fail" if "block" in problems else "pass"
            has_payload = record.rec_type in ("response", "resource") and header("WARC-Payload-Digest")
            payload = "none" if not has_payload else "fail" if "payload" in problems else "pass"
            print("warcio", path, record.rec_type, header("WARC-Target-URI") or "-", length, block, payload)


for path in sys.argv[1:]:
    fastwarc(path)
    if path.endswith(".gz"):
        warcio(path)
        # Every member must stand for itself.
        with gzip.open(path) as stream:
            stream.read()
