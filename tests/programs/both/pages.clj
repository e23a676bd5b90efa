; pages of orders until next is nil
(count (tool/all {:server "shop" :tool "list_orders"}))

; a cursor
(count (tool/all {:server "tickets" :tool "list-tickets"}))

; the number of pages is known after the first
(count (tool/all {:server "crm" :tool "list_customers" :args {:per_page 10}}))

; the other pages side by side
(frequencies (map :tier (tool/all {:server "crm" :tool "list_customers"})))

; pages from the total
(reduce + (map :total (tool/all {:server "shop" :tool "list_orders"})))

; a guard against too many pages
(count (tool/all {:server "shop" :tool "list_orders" :args {:status "paid"} :max 200}))

; recursion instead of loop
(count (tool/all {:server "tickets" :tool "list-tickets" :args {:state "open"}}))

; a map of counts over all pages
(frequencies (map :status (tool/all {:server "shop" :tool "list_orders"})))

; an empty last page ends it
(count (tool/all {:server "crm" :tool "list_customers" :args {:tier "free"}}))

; iterate over pages
(count (distinct (map :customer_id (tool/all {:server "shop" :tool "list_orders"}))))

; tool/value in a loop
(count (tool/all {:server "shop" :tool "list_orders" :args {:status "shipped"}}))

; reduce over known pages with an early end
(mapv :id (tool/all {:server "crm" :tool "list_customers"}))

; top three over all pages, kept small
(->> (tool/all {:server "shop" :tool "list_orders"}) (map (juxt :total :id)) (sort-by first >) (take 3) vec)

; every ticket of an agent
(count (tool/all {:server "tickets" :tool "list-tickets" :args {:assigneeId 2}}))

; mapcat over a list of states
(->> ["open" "pending" "closed"]
     (mapcat #(tool/all {:server "tickets" :tool "list-tickets" :args {:state %}}))
     (map :state)
     frequencies)
