# Makes pairs of answers of what a model answered: its first sentence is chosen, and the whole answer rejected. Answers of one sentence, and such as begin with a list, make none.
#
#     awk -f pairs.awk questions.jsonl answers.jsonl > pairs.jsonl      answers of `anneal generate --chat --input questions.jsonl`

function answer_of(content) {
    return "[{\"role\": \"assistant\", \"content\": " content "}]"
}

FNR == NR {
    match($0, "\"messages\": \\[[^]]*\\]")
    asked[FNR] = substr($0, RSTART + 12, RLENGTH - 12)
    next
}
match($0, "\"text\": \"([^\"\\\\]|\\\\.)*\"") { # the string is still quoted, and may be written as it is
    text = substr($0, RSTART + 8, RLENGTH - 8)
    if (!match(text, /[.!?]( |\\u000a|\\n)/)) next
    first = substr(text, 1, RSTART) "\""
    if (first ~ /\\u000a|\\n/) next
    print "{\"prompt\": " asked[FNR] ", \"chosen\": " answer_of(first) ", \"rejected\": " answer_of(text) "}"
}
