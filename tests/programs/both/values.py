# orders with and without a coupon
from collections import Counter
r = await call_tool("shop_list_orders", {"limit": 50})
return Counter(o.get("coupon") or "none" for o in r["items"])

# a manager may be nil
r = await call_tool("hr_list_employees", {"department": "engineering"})
return sum(e.get("manager_id") is None for e in r["employees"])

# get with a default
return (await call_tool("tickets_get_ticket", {"ticketId": 5})).get("dueAt", "no due date")

# get-in with a default
r = await call_tool("tickets_list_tickets", {"limit": 10})
return [t.get("dueAt", "open end") for t in r["data"]]

# half days through a truthy key
r = await call_tool("fx_holidays", {"country": "DE", "year": 2026})
return [h["name"] for h in r["holidays"] if h.get("half_day")]

# some-> through what may be missing
r = await call_tool("tickets_get_ticket", {"ticketId": 7})
return (r.get("dueAt") or "none")[:10]

# tags may be missing or empty
r = await call_tool("shop_list_products", {})
return sum("eco" in (p.get("tags") or []) for p in r["products"])

# a key that the schema leaves open and some rows have
r = await call_tool("shop_list_orders", {"limit": 30})
return [[o["id"], o["coupon"]] for o in r["items"] if o.get("coupon")]

# fnil over a missing counter
counts = {"all": 0}
for c in await call_tool("tickets_list_comments", {"ticketId": 12}):
    counts[c["author"]] = counts.get(c["author"], 0) + 1
return counts

# next is missing or null on the last page
r = await call_tool("shop_list_orders", {"page": 6, "limit": 100})
return "last page" if r.get("next") is None else "more"

# a table with blanks
r = await call_tool("crm_list_customers", {"per_page": 4})
return [[c["id"], c.get("phone")] for c in r["customers"]]

# select-keys with an optional key
r = await call_tool("tickets_get_ticket", {"ticketId": 9})
return {k: r[k] for k in ["id", "subject", "dueAt"] if k in r}

# sort by an optional key, the missing ones last
r = await call_tool("tickets_list_tickets", {"limit": 20})
return [t["id"] for t in sorted(r["data"], key=lambda t: t.get("dueAt") or "9999")]

# the note may have been pinned
r = await call_tool("crm_add_note", {"customer_id": "CUS-0001", "text": "hello"})
return {"id": r["note_id"], "pinned": bool(r.get("pinned"))}

# an echo of an argument that was not given
r = await call_tool("fx_rate", {"base": "EUR", "quote": "GBP"})
return [r["rate"], r.get("on") or r.get("as_of")]

# words of pages that were not counted
r = await call_tool("wiki_word_counts", {})
return [r["counts"].get(p, 0) for p in ["p1", "p2", "p4"]]

# labels of a ticket may be empty
from collections import Counter
r = await call_tool("tickets_list_tickets", {"limit": 25})
return Counter((t.get("labels") or ["unlabelled"])[0] for t in r["data"])

# a fallback between two declared keys
r = await call_tool("tickets_list_tickets", {"limit": 6})
return [t.get("dueAt") or t.get("createdAt") for t in r["data"]]

# a hyphen in a keyword stands for an underscore
r = await call_tool("shop_stock_level", {"sku": "AB-0001"})
return r["on_hand"] - r["reserved"]

# pmap and then a check of all
from asyncio import gather
rs = await gather(*[call_tool("shop_get_product", {"sku": s}) for s in ["AB-0001", "AB-0005", "AB-0009"]])
return [r["name"] for r in rs]

# pcalls of three services
from asyncio import gather
people, stats, rate = await gather(
    call_tool("hr_headcount", {}), call_tool("tickets_ticket_stats", {}), call_tool("fx_rate", {"base": "EUR", "quote": "USD"})
)
return [people["total"], stats["total"], rate["rate"]]

# partial of a helper
return [(await call_tool("wiki_page_info", {"page_id": p}))["author"] for p in ["p1", "p2"]]

# results in a vector are looked at with let
a, b = [(await call_tool("fx_rate", {"base": c, "quote": "USD"}))["rate"] for c in ["EUR", "GBP"]]
return a - b

# a page's headings
import re
return re.findall(r"(?m)^#+ (.*)$", await call_tool("wiki_read_page", {"page_id": "p1"}))

# whether a page has open ends
return "TODO" in await call_tool("wiki_read_page", {"page_id": "p5"})

# titles of changes, from JSON without a schema
return list(dict.fromkeys(c["title"] for c in await call_tool("wiki_recent_changes", {"days": 7})))

# subjects cut short
r = await call_tool("tickets_list_tickets", {"limit": 3})
return [t["subject"][:8] for t in r["data"]]

# half of an even number as a page
r = await call_tool("shop_list_orders", {"page": 4 // 2, "limit": 10})
return len(r["items"])

# prints the first row
deals = (await call_tool("crm_list_deals", {}))["deals"]
print(deals[0])
return len(deals)

# comments in the program
return len((await call_tool("shop_list_orders", {"limit": 10}))["items"])
