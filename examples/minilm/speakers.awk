# Writes what the most frequent speakers of a play say as sentences with labels, one JSON object a line.
#
#     awk -v part=train -f speakers.awk tinyshakespeare.txt tinyshakespeare.txt > train.jsonl
#     awk -v part=test  -f speakers.awk tinyshakespeare.txt tinyshakespeare.txt > test.jsonl
#
# The text is read twice: first to count the speakers. Every fifth speech of each is in the test, all others are in the training data. `speakers` is how many
# speakers there are, 10 by default. A speech is a paragraph whose first line is a name and a colon.

BEGIN { RS = ""; FS = "\n" }

$1 !~ /^[A-Z][A-Za-z ]*:$/ || NF < 2 { next }
{ name = substr($1, 1, length($1) - 1) }

FNR == NR { speeches[name]++; next }

# Speakers with equally many speeches are chosen in the order of their names.
!is_chosen {
    is_chosen = 1
    for (i = 0; i < (speakers ? speakers : 10); i++) {
        best = ""
        for (other in speeches)
            if (!(other in chosen) && (best == "" || speeches[other] > speeches[best] || (speeches[other] == speeches[best] && other < best))) best = other
        if (best != "") chosen[best] = 0
    }
}

name in chosen {
    is_test = chosen[name]++ % 5 == 4
    if (is_test != (part == "test")) next
    text = $2
    for (i = 3; i <= NF; i++) text = text " " $i
    gsub(/\\/, "&&", text)
    gsub(/"/, "\\\"", text)
    print "{\"label\": \"" name "\", \"text\": \"" text "\"}"
}
