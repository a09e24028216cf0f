# Says how many answers are right to the letter.
#
#     awk -f exact.awk test.jsonl answers.jsonl      questions with `answer`, and what `anneal generate --chat --input test.jsonl` wrote

# The string behind the last KEY of a line, still quoted; both files write strings in the same way.
function string_behind(key,    at, text) {
    at = match($0, "\"" key "\": \"([^\"\\\\]|\\\\.)*\"")
    if (!at) return ""
    text = substr($0, at, RLENGTH)
    return substr(text, length(key) + 5)
}

FNR == NR { expected[FNR] = string_behind("answer"); next }
{ asked++; right += expected[FNR] != "" && string_behind("text") == expected[FNR] }
END { printf "%d of %d answers are right: %.3f\n", right, asked, asked ? right / asked : 0 }
