#!/usr/bin/env python3
"""Judge the reading of PDF and office files by pdftotext and LibreOffice, and have hostile files read.

    benches/peers/documents.py PROGRAM FOLDER            share of words in common with the judges, file by file
    benches/peers/documents.py PROGRAM --hostile         bombs, loops and damage: time, memory and what is said of each
    benches/peers/documents.py PROGRAM --mutate SECONDS FOLDER   files with some of their bytes changed

The program is asked as it asks itself: it is started as `PROGRAM read-documents`, and answers questions on standard input.
"""

import json, os, random, re, resource, struct, subprocess, sys, tempfile, time, unicodedata, zipfile, zlib, io, statistics
from collections import Counter
from pathlib import Path

KINDS = {".pdf": 8, ".eml": 18}

class Reader:
    def __init__(self, program):
        self.program, self.child = program, None
    def start(self):
        self.child = subprocess.Popen([self.program, "read-documents"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, env={}, cwd="/")
    def memory(self):
        try:
            text = open(f"/proc/{self.child.pid}/status").read()
            return int(re.search(r"VmHWM:\s*(\d+)", text)[1]) // 1024
        except (OSError, TypeError):
            return 0
    def read(self, kind, file, seconds=10):
        """Returns the answer, processor time and peak memory in MiB."""
        if self.child is None or self.child.poll() is not None:
            self.start()
        before = self.used()
        import threading
        timer = threading.Timer(seconds * 3, self.child.kill)
        watch = threading.Thread(target=self.limit, args=(before + seconds, self.child), daemon=True)
        self.over = False
        timer.start(); watch.start()
        try:
            self.child.stdin.write(struct.pack("<BI", kind, len(file)) + file); self.child.stdin.flush()
            head = self.child.stdout.read(4)
            if len(head) < 4: raise EOFError
            body = self.child.stdout.read(struct.unpack("<I", head)[0])
            used, memory = self.used() - before, self.memory()
            self.over = True
            return json.loads(body), used, memory
        except (EOFError, BrokenPipeError, ValueError):
            self.over = True
            self.child.wait()
            return {"text": "", "problem": f"ended by {self.child.returncode}"}, float("nan"), 0
        finally:
            timer.cancel()
    def limit(self, until, child):
        while not self.over and child.poll() is None:
            if self.used() > until: child.kill()
            time.sleep(0.05)
    def used(self):
        try: return int(open(f"/proc/{self.child.pid}/schedstat").read().split()[0]) / 1e9
        except (OSError, IndexError): return 0.0

def words(text):
    return Counter(re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower()))

def in_common(ours, theirs):
    a, b = words(ours), words(theirs)
    total = sum(a.values()) + sum(b.values())
    return 1.0 if total == 0 else 2 * sum((a & b).values()) / total

def judge(path):
    if path.suffix.lower() == ".pdf":
        done = subprocess.run(["pdftotext", "-enc", "UTF-8", str(path), "-"], capture_output=True, timeout=120)
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
    with tempfile.TemporaryDirectory() as folder:
        profile = f"-env:UserInstallation=file:///tmp/documents-profile"
        def convert(to, source):
            subprocess.run(["soffice", profile, "--headless", "--convert-to", to, "--outdir", folder, str(source)],
                           capture_output=True, timeout=180)
        ending = path.suffix.lower()
        if ending in (".docx", ".odt", ".epub"):
            convert("txt:Text (encoded):UTF8", path)
            made = list(Path(folder).glob("*.txt"))
        elif ending in (".xlsx", ".ods"):
            convert("csv:Text - txt - csv (StarCalc):9,34,76,1,,0,false,false,false,false,false,-1", path)
            made = list(Path(folder).glob("*.csv"))
        else:
            convert("pdf", path)
            pdf = list(Path(folder).glob("*.pdf"))
            return judge(pdf[0]) if pdf else None
        return "\n".join(one.read_text("utf-8", "replace") for one in made) if made else None

def compare(program, folder):
    reader, rows = Reader(program), []
    for path in sorted(Path(folder).rglob("*")):
        if not path.is_file() or path.stat().st_size > 16 << 20: continue
        try: theirs = judge(path)
        except subprocess.TimeoutExpired: theirs = None
        if theirs is None:
            print(f"not judged\t{path}"); continue
        answer, used, memory = reader.read(KINDS.get(path.suffix.lower(), 16), path.read_bytes())
        # No more than a mebibyte of a text is read.
        ours = answer["text"]
        if len(ours.encode()) >= (1 << 20) - 4: theirs = theirs.encode()[: 1 << 20].decode("utf-8", "ignore")
        share = in_common(ours, theirs)
        rows.append((path.suffix.lower(), share, used))
        print(f"{share:.3f}\t{used:.2f}s\t{memory}MiB\t{answer.get('problem')}\t{path}", flush=True)
    for ending in sorted({row[0] for row in rows} | {""}):
        some = [row for row in rows if ending in ("", row[0])]
        shares = [row[1] for row in some]
        times = [row[2] for row in some if row[2] == row[2]]
        print(f"{ending or 'all'}: {len(some)} files, median {statistics.median(shares):.3f}, "
              f"{sum(share >= .95 for share in shares) / len(shares):.0%} at least .95, {sum(times):.1f} s in all")

def zipped(parts, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, body in parts: file.writestr(name, body)
    return out.getvalue()

def pdf(objects, trailer="/Root 1 0 R"):
    out, places = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        body = body if isinstance(body, bytes) else body.encode("latin-1")
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    for place in places: out += b"%010d 00000 n \n" % place
    return out + b"trailer <</Size %d %s>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, trailer.encode(), start)

def stream(body, more=""):
    body = body if isinstance(body, bytes) else body.encode("latin-1")
    return b"<</Length %d %s>>stream\n" % (len(body), more.encode()) + body + b"\nendstream"

def page(content, resources="/Font <</F 4 0 R>>", more=()):
    return pdf(["<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [3 0 R] /Count 1>>",
                f"<</Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R /Resources <<{resources}>>>>",
                "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>", content, *more])

def hostile():
    W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    docx = lambda body: zipped([("[Content_Types].xml", "<Types/>"), ("word/document.xml", body)])
    para = "<w:p><w:r><w:t>words</w:t></w:r></w:p>"
    show = "BT /F 12 Tf 9 700 Td (Words that are shown) Tj ET\n"
    plain, good = page(stream(show)), docx(f"<w:document {W}>{para * 50}</w:document>")
    dice = random.Random(7)
    files = {
        "zip bomb.docx": docx(f"<w:document {W}>" + para * 4_000_000),
        "flat zip bomb.docx": docx("<w:document>" + " " * 300_000_000),
        "many entries.docx": zipped([(f"e{n}", b"") for n in range(60_000)]),
        "zip in itself.docx": zipped([("word/document.xml", good), ("word/embedded.docx", good)]),
        "deep.docx": docx("<w:p>" * 3_000_000),
        "deep and closed.docx": docx("<a>" * 1_000_000 + "</a>" * 1_000_000),
        "entities.docx": docx('<!DOCTYPE a [<!ENTITY a "' + "x" * 9999 + '"><!ENTITY b "' + "&a;" * 9999 + '">]><w:p><w:t>' + "&b;" * 9999),
        "attributes.docx": docx("<w:p " + "".join(f"a{n}='{n}' " for n in range(1_000_000)) + "/>"),
        "external.docx": docx('<!DOCTYPE a SYSTEM "file:///etc/passwd"><w:p><w:t>&x;</w:t></w:p>'),
        "links.docx": zipped([("word/document.xml", para), ("word/_rels/document.xml.rels", "<R>" + "".join(
            f'<Relationship Type="x/hyperlink" Target="http://a.test/{n}"/>' for n in range(1_000_000)))]),
        "shared.xlsx": zipped([("xl/workbook.xml", "<sheets/>"), ("xl/sharedStrings.xml", "<sst><si><t>" + "x" * 1_000_000 + "</t></si></sst>"),
            ("xl/worksheets/sheet1.xml", "<sheetData>" + '<row><c t="s"><v>0</v></c></row>' * 1_000_000)]),
        "many shared.xlsx": zipped([("xl/workbook.xml", "<sheets/>"), ("xl/sharedStrings.xml", "<si/>" * 20_000_000)]),
        "far cell.xlsx": zipped([("xl/workbook.xml", "<sheets/>"), ("xl/worksheets/sheet1.xml", '<row r="9999999"><c r="ZZZ9999999"><v>1</v></c></row>')]),
        "many sheets.xlsx": zipped([("xl/workbook.xml", "<sheets/>")] + [(f"xl/worksheets/sheet{n}.xml", "<row><c><v>1</v></c></row>") for n in range(9000)]),
        "blanks.odt": zipped([("content.xml", '<text:p>' + '<text:s text:c="4294967295"/>' * 1_000_000)]),
        "repeated.ods": zipped([("content.xml", '<table:table-row table:number-rows-repeated="1000000000"><table:table-cell table:number-columns-repeated="1000000000"><text:p>x</text:p></table:table-cell></table:table-row>')]),
        "encrypted.odt": zipped([("META-INF/manifest.xml", "<manifest:encryption-data/>"), ("content.xml", os.urandom(9999))]),
        "noise.odt": zipped([("content.xml", os.urandom(999_999))]),
        "loop.epub": zipped([("META-INF/container.xml", '<rootfile full-path="a.opf"/>'), ("a.opf", '<item id="a" href="a.opf"/>' + '<spine>' + '<itemref idref="a"/>' * 1_000_000)]),
        "outside.epub": zipped([("META-INF/container.xml", '<rootfile full-path="../../etc/passwd"/>')]),
        "chapters.epub": zipped([("META-INF/container.xml", '<rootfile full-path="a.opf"/>'), ("a.opf", "".join(f'<item id="{n}" href="{n}.xhtml"/><itemref idref="{n}"/>' for n in range(9000)))] + [(f"{n}.xhtml", "<p>word") for n in range(9000)]),
        "quine head.docx": b"PK\x03\x04" + os.urandom(60_000),
        "only end.docx": b"PK\x05\x06" + b"\xff" * 18,
        "huge directory.docx": b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 65535, 65535, 0xffffffff, 0, 0),
        "cut.docx": good[: len(good) // 2],
        "old.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 100_000,
        "nested mail.eml": b"".join(b'Content-Type: multipart/mixed; boundary="%d"\r\n\r\n--%d\r\n' % (n, n) for n in range(100_000)),
        "mails in mails.eml": b"Content-Type: message/rfc822\r\n\r\n" * 100_000,
        "long head.eml": b"Subject: " + b"x" * 16_000_000,
        "many heads.eml": b"X: y\r\n" * 2_000_000 + b"\r\nwords",
        "encoded words.eml": b"Subject: " + b"=?utf-8?Q?=41?= " * 900_000 + b"\r\n\r\nwords",
        "parts.eml": b'Content-Type: multipart/mixed; boundary="a"\r\n\r\n' + b"--a\r\n\r\nx\r\n" * 900_000,
        "plain.pdf": plain,
        "kids in a ring.pdf": pdf(["<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [2 0 R 2 0 R 2 0 R] /Count 9999999>>"]),
        "deep tree.pdf": pdf(["<</Type /Catalog /Pages 2 0 R>>"] + [f"<</Type /Pages /Kids [{n} 0 R] /Count 1 /Parent {n - 2} 0 R>>" for n in range(3, 100_000)]),
        "wide tree.pdf": pdf(["<</Type /Catalog /Pages 2 0 R>>", "<</Type /Pages /Kids [" + "3 0 R " * 1_000_000 + "] /Count 1000000>>", "<</Type /Page /Contents 4 0 R>>", stream(show)]),
        "forms in forms.pdf": page(stream("/X0 Do"), "/Font <</F 4 0 R>> /XObject <</X0 6 0 R>>",
            [stream(f"/X{n + 1} Do " * 10, f"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</X{n + 1} {n + 7} 0 R>>>>") for n in range(40)]),
        "form in itself.pdf": page(stream("/X Do"), "/XObject <</X 6 0 R>>", [stream("/X Do /X Do", "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources <</XObject <</X 6 0 R>>>>")]),
        "flate bomb.pdf": page(stream(zlib.compress(b" " * 500_000_000), "/Filter /FlateDecode")),
        "flate of flate.pdf": page(stream(zlib.compress(zlib.compress(b"q " * 200_000_000)), "/Filter [/FlateDecode /FlateDecode]")),
        "many filters.pdf": page(stream("x" * 1000, "/Filter [" + "/ASCIIHexDecode " * 1_000_000 + "]")),
        "lzw.pdf": page(stream(os.urandom(5_000_000), "/Filter /LZWDecode")),
        "run length.pdf": page(stream(b"\x81 " * 5_000_000, "/Filter /RunLengthDecode")),
        "predictor.pdf": page(stream(zlib.compress(b"x" * 100), "/Filter /FlateDecode /DecodeParms <</Predictor 15 /Columns 2147483647 /Colors 2147483647 /BitsPerComponent 16>>")),
        "long length.pdf": plain.replace(b"/Length %d" % len(show), b"/Length 99999999999999"),
        "length of itself.pdf": plain.replace(b"/Length %d" % len(show), b"/Length 5 0 R"),
        "many words.pdf": page(stream(show * 400_000)),
        "states.pdf": page(stream("q " * 8_000_000)),
        "path.pdf": page(stream("0 0 m " + "1 1 l " * 2_500_000 + "W n " + show)),
        "numbers.pdf": page(stream("1e308 0 0 1e308 1e308 1e308 cm BT /F 1e308 Tf 1e308 1e308 Td (words) Tj ET " + show)),
        "arrays.pdf": page(stream("[" * 8_000_000)),
        "dictionaries.pdf": b"%PDF-1.7\n1 0 obj\n" + b"<</A " * 3_000_000,
        "names.pdf": page(stream("/F" + "#41" * 5_000_000 + " 1 Tf " + show)),
        "objects in objects.pdf": pdf(["<</Type /Catalog /Pages 2 0 R>>", stream("2 0 3 0 " , "/Type /ObjStm /N 2 /First 8 /Extends 2 0 R")]),
        "references.pdf": pdf(["<</Type /Catalog /Pages 2 0 R>>", "3 0 R", "4 0 R", "2 0 R"]),
        "prev in a ring.pdf": plain.replace(b"/Root 1 0 R", b"/Root 1 0 R /Prev 15"),
        "script.pdf": pdf(["<</Type /Catalog /Pages 2 0 R /OpenAction <</S /JavaScript /JS (while(1);)>> /AcroForm <</Fields [3 0 R]>>>>", "<</Type /Pages /Kids [] /Count 0>>", "<</FT /Tx /Kids [3 0 R] /Parent 3 0 R>>"]),
        "no page.pdf": b"%PDF-1.7\n" + os.urandom(5_000_000),
        "empty.pdf": b"%PDF-",
        "functions.pdf": page(stream("/P sh " + show), "/Font <</F 4 0 R>> /Shading <</P 6 0 R>>", ["<</ShadingType 1 /ColorSpace /DeviceRGB /Function <</FunctionType 3 /Domain [0 1] /Functions [7 0 R 7 0 R] /Bounds [.5] /Encode [0 1 0 1]>>>>", "<</FunctionType 3 /Domain [0 1] /Functions [7 0 R 7 0 R] /Bounds [.5] /Encode [0 1 0 1]>>"]),
        "picture.pdf": page(stream("/I Do " + show), "/Font <</F 4 0 R>> /XObject <</I 6 0 R>>", [stream("x", "/Type /XObject /Subtype /Image /Width 2147483647 /Height 2147483647 /BitsPerComponent 16 /ColorSpace /DeviceRGB")]),
    }
    for number in range(20):
        base, name = ((plain, "pdf"), (good, "docx"))[number % 2]
        bytes_ = bytearray(base)
        for _ in range(dice.randint(1, 60)): bytes_[dice.randrange(len(bytes_))] = dice.randrange(256)
        files[f"mutated{number}.{name}"] = bytes(bytes_)
    return files

def attack(program):
    worst, count = [0, 0], Counter()
    for name, file in hostile().items():
        if len(file) > 16 << 20: file = file[: 16 << 20]
        reader = Reader(program)
        began = time.time()
        answer, used, memory = reader.read(KINDS.get(Path(name).suffix, 16), file)
        took = time.time() - began
        count[str(answer.get("problem"))] += 1
        print(f"{took:6.2f}s {used:6.2f}s {memory:5d}MiB {len(answer['text']):8d} characters  {answer.get('problem')}\t{name} ({len(file)})", flush=True)
        if reader.child.poll() is None: reader.child.kill()
        reader.child.wait()
    print(sum(count.values()), dict(count))

def mutate(program, seconds, folder):
    dice, reader, count, worst = random.Random(), Reader(program), Counter(), 0
    paths = [path for path in Path(folder).rglob("*") if path.is_file() and path.stat().st_size < 1 << 20]
    until = time.time() + seconds
    while time.time() < until:
        path = dice.choice(paths)
        file = bytearray(path.read_bytes())
        for _ in range(dice.choice((1, 5, 30, 200))):
            at = dice.randrange(len(file))
            match dice.randrange(4):
                case 0: file[at] = dice.randrange(256)
                case 1: file[at : at + dice.randrange(60)] = b""
                case 2: file[at:at] = file[(other := dice.randrange(len(file))) : other + dice.randrange(200)]
                case 3: file[at : at + 1] = dice.choice((b"0", b"9999999999", b"-1", b"<<", b">>", b"[", b"endobj", b" 0 R", b"</"))
            if not file: file = bytearray(b"x")
        answer, used, _ = reader.read(KINDS.get(path.suffix.lower(), 16), bytes(file))
        count[str(answer.get("problem"))] += 1
        worst = max(worst, used if used == used else 0)
        if "ended" in str(answer.get("problem")):
            Path(f"/tmp/ended-{len(count)}-{path.name}").write_bytes(file)
    print(sum(count.values()), "files,", dict(count), f"slowest {worst:.2f} s of a processor")

if __name__ == "__main__":
    if sys.argv[2] == "--hostile": attack(sys.argv[1])
    elif sys.argv[2] == "--mutate": mutate(sys.argv[1], int(sys.argv[3]), sys.argv[4])
    else: compare(sys.argv[1], sys.argv[2])
