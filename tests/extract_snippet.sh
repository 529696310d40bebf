#!/bin/sh
# Prints the n-th cpp snippet of a document: extract_snippet.sh FILE N
awk -v n="$2" '/^```cpp/ { ++k; inside = (k == n); next } /^```/ { inside = 0 } inside' "$1"
