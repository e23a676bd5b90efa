/// a
1 + 2
/// b
Array.from({ length: 1000 }, (_, n) => n).filter((n) => n % 2 === 0).map((n) => n * n).reduce((total, n) => total + n, 0)
/// c
(() => { let total = 0; for (let turn = 0; turn < 1000000; turn++) total += turn; return total; })()
/// d
(() => {
  const totals = {};
  for (const row of JSON.parse(data)) totals[row.cat] = (totals[row.cat] ?? 0) + row.amount;
  const best = Object.entries(totals).sort((a, b) => b[1] - a[1]).slice(0, 3);
  return best.map(([cat, total]) => cat + "=" + total).join(" ");
})()
/// e
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
fib(25)
/// f
(() => {
  const counts = new Map();
  for (const part of data.split(/\s+/)) { const word = part.toLowerCase(); counts.set(word, (counts.get(word) ?? 0) + 1); }
  return [...counts.values()].sort((a, b) => b - a).slice(0, 10).join(" ");
})()
/// g
(() => {
  const m = new Map();
  for (let k = 0; k < 100000; k++) m.set(k, k * 2);
  let total = 0;
  for (let k = 0; k < 100000; k++) total += m.get(k);
  return total;
})()
/// h-each
function stage_{i}(state, n) {
  const lastScore = state.score ?? 0;
  const score = lastScore > 20 ? lastScore - n : lastScore + n + {i};
  const order = { "id": {i}, "title": "order {i}", "lines": [{ "sku": "a-{i}", "qty": n }, { "sku": "b-{i}", "qty": score }] };
  const address = { "street": "Main Street {i}", "city": { "name": "Springfield", "zip": "4971{i}" } };
  const units = order.lines[0].qty + order.lines[1].qty;
  const note = order.title + " to " + address.city.name + ": " + units + " units";
  return { "score": (((score + units) % 1000) + 1000) % 1000, "note": note, "address": address };
}
/// h-start
let state = { "score": 1 };
/// h-call
state = stage_{i}(state, {x});
/// h-end
state.note
