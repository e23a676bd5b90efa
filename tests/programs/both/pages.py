# pages of orders until next is nil
page, n = 1, 0
while page:
    r = await call_tool("shop_list_orders", {"page": page, "limit": 100})
    n += len(r["items"])
    page = r.get("next")
return n

# a cursor
cursor, n = None, 0
while True:
    r = await call_tool("tickets_list_tickets", {"limit": 50, **({"cursor": cursor} if cursor else {})})
    n += len(r["data"])
    cursor = r["meta"].get("next_cursor")
    if not cursor:
        return n

# the number of pages is known after the first
r = await call_tool("crm_list_customers", {"per_page": 10})
rows = r["customers"]
for page in range(2, r["pages"] + 1):
    rows += (await call_tool("crm_list_customers", {"page": page, "per_page": 10}))["customers"]
return len(rows)

# the other pages side by side
from asyncio import gather
from collections import Counter
one = await call_tool("crm_list_customers", {"per_page": 20})
rest = await gather(*[call_tool("crm_list_customers", {"page": p, "per_page": 20}) for p in range(2, one["pages"] + 1)])
return Counter(c["tier"] for r in [one, *rest] for c in r["customers"])

# pages from the total
from asyncio import gather
total = (await call_tool("shop_list_orders", {"limit": 1}))["total"]
pages = await gather(*[call_tool("shop_list_orders", {"page": p, "limit": 100}) for p in range(1, (total + 99) // 100 + 1)])
return sum(o["total"] for r in pages for o in r["items"])

# a guard against too many pages
page, seen = 1, 0
while page and page <= 10:
    r = await call_tool("shop_list_orders", {"page": page, "limit": 20, "status": "paid"})
    seen += len(r["items"])
    page = r.get("next")
return seen

# recursion instead of loop
cursor, n = None, 0
while True:
    r = await call_tool("tickets_list_tickets", {"state": "open", "limit": 50, **({"cursor": cursor} if cursor else {})})
    n += len(r["data"])
    cursor = r["meta"].get("next_cursor")
    if not cursor:
        return n

# a map of counts over all pages
from collections import Counter
page, counts = 1, Counter()
while page:
    r = await call_tool("shop_list_orders", {"page": page, "limit": 100})
    counts.update(o["status"] for o in r["items"])
    page = r.get("next")
return counts

# an empty last page ends it
page, n = 1, 0
while True:
    rows = (await call_tool("crm_list_customers", {"page": page, "per_page": 50, "tier": "free"}))["customers"]
    if not rows:
        return n
    n += len(rows)
    page += 1

# iterate over pages
page, ids = 1, set()
while page:
    r = await call_tool("shop_list_orders", {"page": page, "limit": 100})
    ids |= {o["customer_id"] for o in r["items"]}
    page = r.get("next")
return len(ids)

# tool/value in a loop
page, n = 1, 0
while page:
    r = await call_tool("shop_list_orders", {"page": page, "limit": 100, "status": "shipped"})
    n += len(r["items"])
    page = r.get("next")
return n

# reduce over known pages with an early end
ids = []
for page in range(1, 12):
    rows = (await call_tool("crm_list_customers", {"page": page, "per_page": 5}))["customers"]
    if not rows:
        break
    ids += [c["id"] for c in rows]
return ids

# top three over all pages, kept small
page, best = 1, []
while page:
    r = await call_tool("shop_list_orders", {"page": page, "limit": 100})
    best = sorted(best + [[o["total"], o["id"]] for o in r["items"]], key=lambda o: -o[0])[:3]
    page = r.get("next")
return best

# every ticket of an agent
cursor, n = None, 0
while True:
    r = await call_tool("tickets_list_tickets", {"assigneeId": 2, "limit": 50, **({"cursor": cursor} if cursor else {})})
    n += len(r["data"])
    cursor = r["meta"].get("next_cursor")
    if not cursor:
        return n

# mapcat over a list of states
from collections import Counter
counts = Counter()
for state in ["open", "pending", "closed"]:
    r = await call_tool("tickets_list_tickets", {"state": state, "limit": 50})
    counts.update(t["state"] for t in r["data"])
return counts
