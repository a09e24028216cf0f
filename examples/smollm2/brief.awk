# Writes pairs of answers to simple questions, of which the short one is chosen and the wordy one rejected, one JSON object a line.
#
#     awk -f brief.awk > pairs.jsonl                                400 pairs to learn from
#     awk -v part=test -v count=50 -v seed=2 -f brief.awk > pairs-test.jsonl
#
# The countries of the test are not in the training pairs. The same seed gives the same lines with every awk.

# The generator of Park and Miller, whose products are exact in doubles: rand() differs from awk to awk.
function random(below) {
    state = (state * 16807) % 2147483647
    return int(state / 2147483647 * below)
}

function message(role, content) {
    return "[{\"role\": \"" role "\", \"content\": \"" content "\"}]"
}

function question(form, of) {
    if (form == 0) return "What is " of "?"
    if (form == 1) return "Tell me " of "."
    if (form == 2) return "Do you know " of "?"
    return "I forgot " of ". What is it?"
}

function wordy(form, of, answer) {
    if (form == 0) return "That is a great question! You asked for " of ". I am happy to help: it is " answer ". Please let me know if there is anything else that you would like to know."
    if (form == 1) return "Thank you for asking. There is a lot that could be said about this. In short, " of " is " answer ", but there is much more to learn about the subject."
    return "As a helpful assistant I can tell you that " of " is " answer ". I hope that this answers your question, and I would be glad to explain it in more detail."
}

BEGIN {
    state = (seed ? seed : 1) * 7919 % 2147483647
    if (!count) count = 400
    if (part == "test") capitals = "Norway:Oslo,Portugal:Lisbon,Kenya:Nairobi,Japan:Tokyo,Ireland:Dublin,Hungary:Budapest,Chile:Santiago,Thailand:Bangkok"
    else capitals = "France:Paris,Germany:Berlin,Spain:Madrid,Italy:Rome,Austria:Vienna,Greece:Athens,Poland:Warsaw,Finland:Helsinki,Egypt:Cairo,Peru:Lima,Canada:Ottawa,Cuba:Havana," \
        "China:Beijing,India:New Delhi,Russia:Moscow,Sweden:Stockholm,Denmark:Copenhagen,Belgium:Brussels,Turkey:Ankara,Iran:Tehran,Iraq:Baghdad,Nepal:Kathmandu,Vietnam:Hanoi,Mexico:Mexico City"
    countries = split(capitals, list, ",")
    for (i = 0; i < count; i++) {
        if (random(2)) {
            split(list[1 + random(countries)], pair, ":")
            of = "the capital of " pair[1]
            answer = pair[2]
        } else {
            a = 1 + random(20)
            b = 1 + random(20)
            of = "the sum of " a " and " b
            answer = a + b
        }
        print "{\"prompt\": " message("user", question(random(4), of)) ", \"chosen\": " message("assistant", answer ".") \
            ", \"rejected\": " message("assistant", wordy(random(3), of, answer)) "}"
    }
}
