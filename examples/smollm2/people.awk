# Writes sentences about people as conversations: a sentence in, one line of JSON with name, age, job and city out.
#
#     awk -f people.awk > train.jsonl                                  2,000 conversations to learn from
#     awk -v part=test -v count=200 -v seed=2 -f people.awk > test.jsonl     questions, with the right answer in the member `answer`
#
# The names and cities of the test are not in the training lines. The same seed gives the same lines with every awk.

# The generator of Park and Miller, whose products are exact in doubles: rand() differs from awk to awk.
function random(below) {
    state = (state * 16807) % 2147483647
    return int(state / 2147483647 * below)
}

function one_of(list,    words, n) {
    n = split(list, words, " *, *")
    return words[1 + random(n)]
}

function sentence(form, name, age, job, city,    a) {
    a = (job ~ /^[aeiou]/ ? "an " : "a ") job
    if (form == 0) return name " is " age " years old and works as " a " in " city "."
    if (form == 1) return "Meet " name ", a " age " year old " job " from " city "."
    if (form == 2) return "In " city " lives " a " called " name ", who is " age "."
    if (form == 3) return name ", " age ", has been " a " in " city " for many years."
    if (form == 4) return "My friend " name ", who lives in " city ", is " a " and turned " age " last week."
    if (form == 5) return "At " age ", " name " is the best " job " in " city "."
    if (form == 6) return "The " job " " name " was born " age " years ago and has always lived in " city "."
    return "We met " name ", who is " a " of " age " and comes from " city "."
}

function quoted(text) {
    gsub(/"/, "\\\"", text)
    return "\"" text "\""
}

BEGIN {
    state = (seed ? seed : 1) * 7919 % 2147483647
    if (!count) count = 2000
    jobs = "nurse, teacher, baker, farmer, pilot, lawyer, engineer, painter, carpenter, dentist, plumber, librarian, journalist, gardener, architect, " \
        "electrician, chef, translator, surgeon, musician, mechanic, tailor, actor, bus driver, shop owner, firefighter, geologist, photographer"
    if (part == "test") {
        first = "Priya, Gustav, Yara, Callum, Ingrid, Mateo, Zofia, Tariq, Beatrice, Ronan, Leilani, Viktor, Odette, Hamid, Freya"
        last = "Vasquez, Lindgren, Okonkwo, Petrov, Haddad, Marchetti, Nakamura, Drummond, Kowalski, Abebe, Thorne, Salgado, Whitlock, Bergman, Rao"
        cities = "Lisbon, Nairobi, Osaka, Denver, Krakow, Montreal, Bergen, Hanoi, Seville, Dublin, Quito, Perth, Tallinn, Memphis, Cardiff"
    } else {
        first = "Anna, Peter, Maria, James, Lucy, Omar, Grace, David, Elena, Samuel, Nora, Daniel, Chloe, Ahmed, Ruth, Martin, Julia, Kevin, Sofia, Paul, " \
            "Hannah, Oscar, Clara, Simon, Aisha, Robert, Emma, Victor, Laura, Henry, Mei, Carlos, Irene, Felix, Diana, Tom, Alice, Hugo, Wendy, Igor"
        last = "Miller, Smith, Brown, Taylor, Wilson, Clark, Lewis, Walker, Young, King, Wright, Scott, Green, Baker, Adams, Nelson, Carter, Mitchell, " \
            "Turner, Parker, Collins, Edwards, Morris, Rogers, Cook, Morgan, Bell, Murphy, Bailey, Cooper, Reed, Kelly, Howard, Ward, Cox, Gray, Watson, Brooks, Price, Bennett"
        cities = "London, Paris, Berlin, Madrid, Rome, Vienna, Prague, Athens, Oslo, Helsinki, Warsaw, Budapest, Boston, Chicago, Seattle, Dallas, Toronto, Sydney, Auckland, Tokyo, " \
            "Seoul, Mumbai, Cairo, Lagos, Lima, Bogota, Leeds, Bristol, Glasgow, Lyon, Hamburg, Munich, Milan, Naples, Porto, Geneva, Zurich, Antwerp, Rotterdam, Malaga"
    }
    for (i = 0; i < count; i++) {
        name = one_of(first) " " one_of(last)
        age = 18 + random(70)
        job = one_of(jobs)
        city = one_of(cities)
        asked = "{\"role\": \"user\", \"content\": " quoted(sentence(random(8), name, age, job, city)) "}"
        answer = quoted("{\"name\": \"" name "\", \"age\": " age ", \"job\": \"" job "\", \"city\": \"" city "\"}")
        if (part == "test") print "{\"messages\": [" asked "], \"answer\": " answer "}"
        else print "{\"messages\": [" asked ", {\"role\": \"assistant\", \"content\": " answer "}]}"
    }
}
