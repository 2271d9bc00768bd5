"""Do the words around links to a page help searches? Known items, on an archive of the manuals (tools/realweb.sh).

link_contexts.py BINARY ARCHIVE QUERIES.tsv SITE…   (as http://127.0.1.5:8080/; needs an archive of these sites)

Takes the first 50 results of each search with their scores, adds what the contexts of links say of the words, and orders
them again. The weight of each design is chosen on all sites but one and judged on that one. Printed are the change of the
mean reciprocal rank with an interval of 95 % (bootstrap), and how many searches got better and worse."""
import collections, csv, json, math, random, re, subprocess, sys, unicodedata

binary, archive, queries, *sites = sys.argv[1:]
SHARES, LABELS, REACHES, WEIGHTS = (0, 2, 4, 6, 8, 12), (0, 4, 8, 16), (2, 4, 8), (0, 2, 4, 8, 12, 16)


def words(text):
    text = unicodedata.normalize("NFD", text or "").lower()
    return re.findall(r"[^\W_]+", "".join(c for c in text if not unicodedata.combining(c)))


def rows(*args):
    run = subprocess.run([binary, *args, "--archive", archive, "--json"], capture_output=True, text=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def fit(label, query, share):
    """Share of the words that a label has, and that times their share of it, as for link texts."""
    own = [word for word in label if word in share]
    covered = sum(share[word] for word in set(own))
    return covered, covered * len(own) / len(label) if label else 0


def near(context, anchor, reach):
    """The link text and so many words before and after it."""
    for at in range(len(context) - len(anchor) + 1):
        if context[at:at + len(anchor)] == anchor:
            return context[max(0, at - reach):at + len(anchor) + reach]
    return context[:len(anchor) + 2 * reach]


texts = rows("query", "page text is not empty select url, text")
has = collections.Counter(word for row in texts for word in set(words(row["text"])))
rarity = lambda word: math.log1p((max(0, len(texts) - has[word]) + .5) / (has[word] + .5))
around = collections.defaultdict(set)
for row in rows("query", "link kind = link and source.url != target.url select source, target, text, context"):
    around[row["target"].split("#")[0]].add((tuple(words(row["context"])), tuple(words(row["text"]))))

plain = lambda url: re.sub(r"/index\.html$", "/", url)
searches = []
for asked in csv.DictReader(open(queries), delimiter="\t", quoting=csv.QUOTE_NONE):
    if asked["site"] not in sites:
        continue
    typed = list(dict.fromkeys(words(asked["query"])))
    whole = sum(map(rarity, typed)) or 1
    share = {word: rarity(word) / whole for word in typed}
    wanted, found = {plain(url) for url in asked["relevant"].split()}, []
    host = asked["site"][7:].split(":")[0]
    for row in rows("search", "--limit", "50", f"{asked['query']} site:{host}"):
        urls = [row["url"], *row["also"]]
        contexts = [pair for url in urls for pair in around.get(url, ())]
        fits = [fit(context, typed, share) for context, _ in contexts]
        close = {reach: max((fit(near(*pair, reach), typed, share)[1] for pair in contexts), default=0) for reach in REACHES}
        factor = 1 + .05 * math.log1p(row["importance"])
        said = (max((f[0] for f in fits), default=0), max((f[1] for f in fits), default=0), close)
        found.append((row["score"] / factor, factor, said, any(plain(url) in wanted for url in urls)))
    searches.append((asked["site"], found))


def ranks(add):
    """Reciprocal rank of the first right page among ten, for each search."""
    def one(found):
        order = sorted(found, key=lambda page: -(page[0] + add(page[2])) * page[1])[:10]
        return next((1 / rank for rank, page in enumerate(order, 1) if page[3]), 0)
    return [one(found) for _, found in searches]


base = ranks(lambda said: 0)
print(f"as it is: {sum(base) / len(base):.3f} ({len(base)} searches)")
for name, grid, add in [
    ("context as a field", [(s, l) for s in SHARES for l in LABELS], lambda g: lambda said: g[0] * said[0] + g[1] * said[1]),
    ("words beside the link text", [(w, r) for w in WEIGHTS for r in REACHES], lambda g: lambda said: g[0] * said[2][g[1]]),
]:
    each, change = {weights: ranks(add(weights)) for weights in grid}, []
    for site in sites:
        mine = [number for number, (other, _) in enumerate(searches) if other == site]
        others = [number for number in range(len(searches)) if number not in set(mine)]
        best = max(grid, key=lambda weights: sum(each[weights][number] for number in others))
        gained = [each[best][number] - base[number] for number in mine]
        print(f"  {name}, weights of the others {best}, {site} {sum(gained) / len(gained):+.4f}")
        change += gained
    random.seed(1)
    drawn = sorted(sum(random.choices(change, k=len(change))) / len(change) for _ in range(4000))
    print(f"{name}: {sum(change) / len(change):+.4f} [{drawn[100]:+.4f}, {drawn[3900]:+.4f}], "
          f"better {sum(c > 0 for c in change)}, worse {sum(c < 0 for c in change)}")
