; orders by status, of the first page
;! shop/list_orders 100 520 page tool/all
(let [{:keys [items]} (tool/value {:server "shop" :tool "list_orders" :args {:limit 100}})] (frequencies (map :status items)))

; customers without a number of items
;! crm/list_customers page 1 3 tool/all
(let [r (tool/call {:server "crm" :tool "list_customers"})]
  (if (:ok r) (count (keep :phone (:customers (:value r)))) (fail (:message r))))

; the first page by its number
;! shop/list_orders page 1 6
(->> (tool/value {:server "shop" :tool "list_orders" :args {:page 1 :limit 100}}) :items (map :total) (reduce +))

; the spend of each customer, from what fits into one page
;! shop/list_orders page 1
(let [customers (tool/all {:server "crm" :tool "list_customers"})
      orders (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 100}}))
      spent (update-vals (group-by :customer_id orders) #(reduce + (map :total %)))]
  (->> customers (sort-by #(- (get spent (:id %) 0))) (take 3) (map :name)))

; one list is read to its end, and another one of the same tool is not
;! shop/list_orders page 1
(let [paid (loop [page 1 rows []]
             (let [v (tool/value {:server "shop" :tool "list_orders" :args {:status "paid" :page page :limit 100}})
                   rows (into rows (:items v))]
               (if (:next v) (recur (:next v) rows) rows)))
      open (:items (tool/value {:server "shop" :tool "list_orders" :args {:status "open" :limit 100}}))]
  {:paid (count paid) :open (count open)})

; first pages of several lists at once
;! list-tickets page 1
(->> ["open" "closed"]
     (pmap #(:data (tool/value {:server "tickets" :tool "list-tickets" :args {:state %}})))
     (map count))

; the cursor is looked at and not used
;! tickets/list-tickets page 1
(let [{:keys [data meta]} (tool/value {:server "tickets" :tool "list-tickets" :args {:limit 50}})]
  (str (count data) " tickets, and more after " (count (:next_cursor meta))))

; a loop that stops before the last page
;! shop/list_orders up page 3 tool/all
(loop [page 1 rows []]
  (let [v (tool/value {:server "shop" :tool "list_orders" :args {:page page :limit 100}})
        rows (into rows (:items v))]
    (if (= page 3) (count (filter #(= "paid" (:status %)) rows)) (recur (inc page) rows))))

; the items are read by a helper, and the total elsewhere
;! crm/list_customers page 1
(defn rows-of [v k] (get v k))
(let [v (tool/value {:server "crm" :tool "list_customers"})]
  {:names (map :name (rows-of v :customers)) :shown (count (rows-of v :customers)) :total (:total v)})
