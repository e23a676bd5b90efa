### a
answer = 1 + 2
answer
### b
answer = sum([n * n for n in range(1000) if n % 2 == 0])
answer
### c
def count():
    turn = 0
    total = 0
    while turn < 1000000:
        total += turn
        turn += 1
    return total
answer = count()
answer
### d
import json
def top():
    totals = {}
    for row in json.loads(data):
        totals[row["cat"]] = totals.get(row["cat"], 0) + row["amount"]
    best = sorted(totals.items(), key=lambda entry: entry[1], reverse=True)[:3]
    return " ".join([cat + "=" + str(total) for cat, total in best])
answer = top()
answer
### e
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)
answer = fib(25)
answer
### f
def top():
    counts = {}
    for word in data.split():
        word = word.lower()
        counts[word] = counts.get(word, 0) + 1
    best = sorted(counts.items(), key=lambda entry: entry[1], reverse=True)[:10]
    return " ".join([str(count) for word, count in best])
answer = top()
answer
### g
def look_up():
    m = {}
    for k in range(100000):
        m[k] = k * 2
    total = 0
    for k in range(100000):
        total += m[k]
    return total
answer = look_up()
answer
### h-each
def stage_{i}(state, n):
    last_score = state.get("score", 0)
    score = last_score - n if last_score > 20 else last_score + n + {i}
    order = {"id": {i}, "title": "order {i}", "lines": [{"sku": "a-{i}", "qty": n}, {"sku": "b-{i}", "qty": score}]}
    address = {"street": "Main Street {i}", "city": {"name": "Springfield", "zip": "4971{i}"}}
    units = order["lines"][0]["qty"] + order["lines"][1]["qty"]
    note = order["title"] + " to " + address["city"]["name"] + ": " + str(units) + " units"
    return {"score": (score + units) % 1000, "note": note, "address": address}
### h-start
state = {"score": 1}
### h-call
state = stage_{i}(state, {x})
### h-end
answer = state["note"]
answer
