# Writes questions to which the model has much to say, one JSON object a line.
#
#     awk -f brief.awk > questions.jsonl                          240 questions to learn from
#     awk -v part=test -f brief.awk > questions-test.jsonl        48 about other things

BEGIN {
    if (part == "test") things = "a spider,snow,a violin,bread,the Moon,a whale,a mountain,a kite,a clock,honey,a desert,a chess board"
    else things = "a river,a bicycle,the Sun,coffee,a volcano,a horse,a bridge,rain,a library,an apple,a computer,the ocean,a piano,cheese,a forest,a rocket,a castle,salt,an elephant,a garden," \
        "a train,the wind,a candle,a book,a bee,sugar,a boat,a school,ice,a telescope,a market,a tree,wool,a lighthouse,an island,a hammer,tea,an owl,a map,glass," \
        "a city,a rose,fire,a drum,a camel,rice,a mirror,thunder,a farm,a wheel,gold,a cat,a ladder,a lake,paper,a cloud,a penguin,a harbour,a pencil,wine"
    split("What is %?|Tell me about %.|Why do people like %?|How would you describe % to a child?", forms, "|")
    count = split(things, list, ",")
    for (i = 1; i <= count; i++)
        for (form = 1; form <= 4; form++) {
            question = forms[form]
            sub(/%/, list[i], question)
            print "{\"messages\": [{\"role\": \"user\", \"content\": \"" question "\"}]}"
        }
}
