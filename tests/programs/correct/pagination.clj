; pages of orders until next is nil
(loop [page 1 acc []]
  (let [r (tool/call {:server "shop" :tool "list_orders" :args {:page page :limit 100}})]
    (if-not (:ok r)
      (fail (:message r))
      (let [acc (into acc (-> r :value :items))
            following (-> r :value :next)]
        (if following (recur following acc) (count acc))))))

; a cursor
(loop [cursor nil n 0]
  (let [{:keys [ok value message]} (tool/call {:server "tickets" :tool "list-tickets" :args {:cursor cursor :limit 50}})]
    (when-not ok (fail message))
    (let [n (+ n (count (:data value)))]
      (if-let [c (get-in value [:meta :next_cursor])] (recur c n) n))))

; the number of pages is known after the first
(defn page [n]
  (let [r (tool/call {:server "crm" :tool "list_customers" :args {:page n :per_page 10}})]
    (if (:ok r) (:value r) (fail (:message r)))))
(let [{:keys [pages customers]} (page 1)]
  (count (into customers (mapcat (comp :customers page) (range 2 (inc pages))))))

; the other pages side by side
(let [fetch (fn [n] (let [r (tool/call {:server "crm" :tool "list_customers" :args {:page n :per_page 20}})]
                      (if (:ok r) (:value r) (fail (:message r)))))
      one (fetch 1)]
  (->> (range 2 (inc (:pages one))) (pmap fetch) (mapcat :customers) (concat (:customers one)) (map :tier) frequencies))

; pages from the total
(let [call (fn [args] (let [r (tool/call {:server "shop" :tool "list_orders" :args args})] (if (:ok r) (:value r) (fail (:message r)))))
      total (:total (call {:limit 1}))
      pages (quot (+ total 99) 100)]
  (->> (range 1 (inc pages)) (pmap #(:items (call {:page % :limit 100}))) (apply concat) (map :total) (reduce +)))

; only what is needed: stop at the first express order
(loop [page 1]
  (let [r (tool/call {:server "shop" :tool "list_orders" :args {:page page :limit 50}})]
    (if (:ok r)
      (or (first (keep #(when (= "express" (-> % :shipping :method)) (:id %)) (-> r :value :items)))
          (when-let [n (-> r :value :next)] (recur n)))
      (fail (:message r)))))

; a guard against too many pages
(loop [page 1 seen 0]
  (if (> page 10)
    {:at-least seen}
    (let [r (tool/call {:server "shop" :tool "list_orders" :args {:page page :limit 20 :status "paid"}})]
      (if (:ok r)
        (let [seen (+ seen (count (:items (:value r))))]
          (if-let [n (:next (:value r))] (recur n seen) seen))
        (fail (:message r))))))

; recursion instead of loop
(defn all-from [cursor]
  (let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:limit 50 :cursor cursor :state "open"}})]
    (if (:ok r)
      (let [{:keys [data meta]} (:value r)]
        (if (:next_cursor meta) (concat data (all-from (:next_cursor meta))) data))
      (fail (:message r)))))
(count (all-from nil))

; a map of counts over all pages
(loop [page 1 counts {}]
  (let [r (tool/call {:server "shop" :tool "list_orders" :args {:page page :limit 100}})
        v (if (:ok r) (:value r) (fail (:message r)))
        counts (merge-with + counts (frequencies (map :status (:items v))))]
    (if (nil? (:next v)) counts (recur (:next v) counts))))

; an empty last page ends it
(loop [page 1 n 0]
  (let [r (tool/call {:server "crm" :tool "list_customers" :args {:page page :per_page 50 :tier "free"}})]
    (if (:ok r)
      (let [rows (-> r :value :customers)]
        (if (empty? rows) n (recur (inc page) (+ n (count rows)))))
      (fail (:message r)))))

; a failure in the middle is told with what was read
(loop [ids (range 11 16) done []]
  (if-let [id (first ids)]
    (let [r (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId id}})]
      (if (:ok r) (recur (rest ids) (conj done (-> r :value :id))) {:done done :failed id :why (:reason r)}))
    {:done done}))

; iterate over pages
(let [page (fn [n] (let [r (tool/call {:server "shop" :tool "list_orders" :args {:page n :limit 100}})] (if (:ok r) (:value r) (fail (:message r)))))
      pages (map page (range 1 7))]
  (count (distinct (map :customer_id (mapcat :items pages)))))

; first page only, and says so
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:limit 5}})]
  (if (:ok r)
    {:shown (map :id (-> r :value :data)) :of (-> r :value :meta :count) :more (some? (-> r :value :meta :next_cursor))}
    (fail (:message r))))

; the budget is looked at before a loop
(let [left (:value (select-keys {:value 50} [:value]))]
  (loop [page 1 n 0]
    (if (> page (min left 6))
      n
      (let [r (tool/call {:server "shop" :tool "list_orders" :args {:page page :limit 100}})]
        (if (:ok r) (recur (inc page) (+ n (count (-> r :value :items)))) (fail (:message r)))))))

; tool/value in a loop
(loop [page 1 sum 0]
  (let [{:keys [items next]} (tool/value {:server "shop" :tool "list_orders" :args {:page page :limit 100 :status "shipped"}})
        sum (+ sum (count items))]
    (if next (recur next sum) sum)))

; reduce over known pages with an early end
(reduce (fn [acc page]
          (let [r (tool/call {:server "crm" :tool "list_customers" :args {:page page :per_page 5}})]
            (cond (not (:ok r)) (fail (:message r))
                  (empty? (:customers (:value r))) (reduced acc)
                  :else (into acc (map :id (:customers (:value r)))))))
        [] (range 1 12))

; top three over all pages, kept small
(loop [page 1 best []]
  (let [v (tool/value {:server "shop" :tool "list_orders" :args {:page page :limit 100}})
        best (->> (:items v) (map (juxt :total :id)) (concat best) (sort-by first >) (take 3))]
    (if-let [n (:next v)] (recur n (vec best)) (vec best))))

; a page as text for people
(let [{:keys [customers page pages]} (tool/value {:server "crm" :tool "list_customers" :args {:page 2 :per_page 5}})]
  (str "page " page " of " pages ": " (clojure.string/join ", " (map :name customers))))

; every ticket of an agent
(let [tickets-of (fn [agent]
                   (loop [c nil acc []]
                     (let [r (tool/call {:server "tickets" :tool "list-tickets" :args (cond-> {:assigneeId agent :limit 50} c (assoc :cursor c))})
                           v (if (:ok r) (:value r) (fail (:message r)))
                           acc (into acc (:data v))]
                       (if-let [c (-> v :meta :next_cursor)] (recur c acc) acc))))]
  (count (tickets-of 2)))

; mapcat over a list of states
(->> ["open" "pending" "closed"]
     (mapcat (fn [s] (let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:state s :limit 50}})]
                       (if (:ok r) (:data (:value r)) (fail (:message r))))))
     (map :state)
     frequencies)

; only how many there are
[(:total (tool/value {:server "shop" :tool "list_orders"})) (:pages (tool/value {:server "crm" :tool "list_customers"}))]
