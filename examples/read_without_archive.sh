#!/usr/bin/env bash
# How is an archive read without this program? Prints the records of all segments, with zcat and zstd alone.
#
#   examples/read_without_archive.sh web.archive | grep -a '^WARC-Target-URI'
set -euo pipefail

archive=${1:?which archive}
dictionary=$(mktemp)
trap 'rm -f "$dictionary"' EXIT
for segment in "$archive"/segments/*.warc.*; do
    case $segment in
        *.gz) zcat "$segment" ;;
        *.zst)
            if [ "$(head -c 4 "$segment" | od -An -tx1 | tr -d ' ')" = 5d2a4d18 ]; then
                # A skippable frame with the dictionary comes first: 4 bytes of name, 4 of length, then a zstd frame.
                length=$(od -An -tu4 -j 4 -N 4 "$segment" | tr -d ' ')
                tail -c +9 "$segment" | head -c "$length" | zstd -dq > "$dictionary"
                zstd -dcq -D "$dictionary" "$segment"
            else
                zstd -dcq "$segment"
            fi ;;
    esac
done
