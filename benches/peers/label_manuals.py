#!/usr/bin/env python3
"""Labels pages of nine manuals by whether they are about security, as their makers' own indexes say.

    label_manuals.py ROOT URL > labels.tsv

ROOT holds the unpacked Debian packages apache2-doc, debian-handbook, libboost1.81-doc, openjdk-17-doc, postgresql-doc-15,
python3.11-doc, sqlite3-doc, debian-policy and developers-reference; URL is where they are served, with % for the number of the site
in this order, 1 to 9: http://127.0.1.%:8080/. Printed are lines of URL, class and group, as `archive lab focus --labels` takes them;
the class is `start` for the home page of a manual, `security` or `other`, the group is the manual. English pages only.

A page is about security if at least a third of the index entries that lead to it have a word of WORDS: general indexes (python, postgres,
policy), keywords (sqlite), directives with their modules (apache2). Where there is no index, the name of the Java package (openjdk) or the
page's title (boost, handbook, devref) says so.
"""

import html
import re
import sys
from pathlib import Path
from urllib.parse import quote, unquote

SITES = [
    ("apache2", "apache2-doc/usr/share/doc/apache2-doc/manual", "en/"),
    ("handbook", "debian-handbook/usr/share/doc/debian-handbook/html", "en-US/"),
    ("boost", "libboost1.81-doc/usr/share/doc/libboost1.81-doc", ""),
    ("openjdk", "openjdk-17-doc/usr/share/doc/openjdk-17-jre-headless/api", ""),
    ("postgres", "postgresql-doc-15/usr/share/doc/postgresql-doc-15/html", ""),
    ("python", "python3.11-doc/usr/share/doc/python3.11/html", ""),
    ("sqlite", "sqlite3-doc/usr/share/doc/sqlite3", ""),
    ("policy", "debian-policy/usr/share/doc/debian-policy", ""),
    ("devref", "developers-reference/usr/share/developers-reference", ""),
]

# Files with entries of an index, each a link, or text and links to where it is spoken of.
INDEXES = {
    "apache2": ["en/mod/directives.html", "en/sitemap.html"],
    "postgres": ["bookindex.html"],
    "python": ["genindex-all.html", "py-modindex.html"],
    "sqlite": ["keyword_index.html"],
    "policy": ["policy.html/genindex.html"],
}

WORDS = re.compile(
    r"secur|crypt|cipher|passw|authenti|authoriz|\bauth|\bssl|\btls|certificat|privilege|permission|firewall|signature|"
    r"kerberos|gssapi|sspi|\bldap|\bpam\b|radius|vulnerab|attack|sandbox|\bgrant|revoke|\broles?\b|access control|\bsha\d|\bmd5|"
    r"hmac|hashlib|\bsecrets?\b|\bmod_(auth|ssl|access|allow|session)|row.level|setuid|suexec|untrusted|injection|\bvpn\b|"
    r"intrusion|malicious|random number",
    re.IGNORECASE,
)

JAVA = re.compile(r"/(java/security|javax/security|javax/crypto|javax/net/ssl|javax/xml/crypto|org/ietf/jgss)/|/jdk\.security|/com/sun/security")

TAGS = re.compile(r"<[^>]+>")
ENTRY = re.compile(r"<(?:dt|li|td)\b[^>]*>(.*?)(?=<(?:dt|li|td|dl|ul|/dt|/li|/td)\b)", re.DOTALL)
LINK = re.compile(r'href="([^"#]+)(?:#[^"]*)?"[^>]*>(.*?)</a>', re.DOTALL)
TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.DOTALL | re.IGNORECASE)


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def words(markup):
    return html.unescape(TAGS.sub(" ", markup))


def entries(folder, name):
    """For each page that the index leads to, how many entries do, and how many of them speak of security."""
    found = {}
    for index in INDEXES[name]:
        path = folder / index
        for entry in ENTRY.findall(read(path)):
            says = bool(WORDS.search(words(entry)))
            for target, _ in LINK.findall(entry):
                if "://" in target:
                    continue
                page = (path.parent / unquote(target)).resolve()
                all_of, of_security = found.get(page, (0, 0))
                found[page] = (all_of + 1, of_security + says)
    return found


def main():
    root, url = Path(sys.argv[1]).resolve(), sys.argv[2]
    print("url\tclass\tgroup")
    for number, (name, folder, language) in enumerate(SITES, 1):
        folder = (root / folder).resolve()
        index = entries(folder, name) if name in INDEXES else {}
        for path in sorted((folder / language).rglob("*.htm*")):
            relative = path.relative_to(folder).as_posix()
            if name in INDEXES:
                all_of, of_security = index.get(path.resolve(), (0, 0))
                is_security = all_of > 0 and 3 * of_security >= all_of
            elif name == "openjdk":
                is_security = bool(JAVA.search("/" + relative))
            else:
                title = TITLE.search(read(path)[:65536])
                is_security = bool(title and WORDS.search(words(title.group(1))))
            start = relative in (language + "index.html", language + "index.htm")
            label = "start" if start else "security" if is_security else "other"
            base = url.replace("%", str(number))
            names = [relative] + ([relative[: -len("index.html")]] if path.name == "index.html" else [])
            for each in names:
                print(f"{base}{quote(each)}\t{label}\t{name}")


main()
