#!/usr/bin/env python3
"""`archive-lab subjects` beside scikit-learn: the same halves, words and constants.

    benches/peers/subjects.py ukwa-selected.tsv.gz --lab target/dist/archive-lab

Needs scikit-learn. Prints for each model the share right and the seconds to learn and to judge, means over the halves.
"""

import argparse
import csv
import gzip
import json
import os
import random
import re
import subprocess
import tempfile
import time

# One thread, as the lab.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB


def words(text):
    return re.findall(r"[^\W_]+", text.lower())


def read(path):
    """Each site once: title, URL, subjects in the order of the file."""
    sites = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            name = row["url"].partition("://")[2].rstrip("/").removeprefix("www.")
            site = sites.setdefault(name, (row["title"], row["url"], []))
            if row["primary"] not in site[2]:
                site[2].append(row["primary"])
    return list(sites.values())


def write(path, sites):
    with open(path, "w", encoding="utf-8") as file:
        file.write("primary\ttitle\turl\n")
        file.writelines(f"{subject}\t{title}\t{url}\n" for title, url, of in sites for subject in of)


def learn(learned, judged, vectors, model):
    """Share right and seconds; a site is learned as often as it has subjects, as in the lab."""
    start = time.perf_counter()
    pairs = [(f"{title} {url}", subject) for title, url, of in learned for subject in of]
    vectors.fit([f"{title} {url}" for title, url, _ in learned])
    model.fit(vectors.transform([text for text, _ in pairs]), [subject for _, subject in pairs])
    found = model.predict(vectors.transform([f"{title} {url}" for title, url, _ in judged]))
    seconds = time.perf_counter() - start
    return sum(subject in site[2] for subject, site in zip(found, judged)) / len(judged), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("selected")
    parser.add_argument("--lab", default="target/dist/archive-lab")
    parser.add_argument("--halves", type=int, default=3)
    args = parser.parse_args()
    sites = read(args.selected)
    found = {}
    for number in range(args.halves):
        random.Random(number).shuffle(sites)
        learned, judged = sites[: len(sites) // 2], sites[len(sites) // 2 :]
        with tempfile.TemporaryDirectory() as folder:
            known, others = os.path.join(folder, "known.tsv"), os.path.join(folder, "others.tsv")
            write(known, learned)
            write(others, judged)
            command = [args.lab, "subjects", "--selected", known, "--judge", others, "--json"]
            lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        bound = {}
        for line in map(json.loads, lines):
            found.setdefault(line["model"], []).append((line["right"], line["seconds"]))
            bound[line["model"]] = line["constants"][0]["bound"]
        counts, weights = CountVectorizer(analyzer=words), TfidfVectorizer(analyzer=words, sublinear_tf=True)
        bayes = MultinomialNB(alpha=bound["naive_bayes"])
        logistic = LogisticRegression(C=1 / bound["logistic"], max_iter=300)
        found.setdefault("scikit-learn MultinomialNB", []).append(learn(learned, judged, counts, bayes))
        found.setdefault("scikit-learn LogisticRegression", []).append(learn(learned, judged, weights, logistic))
    for model, runs in found.items():
        right, seconds = (sum(values) / len(runs) for values in zip(*runs))
        print(f"{model:32} {right:.3f} {seconds:8.2f} s")


if __name__ == "__main__":
    main()
