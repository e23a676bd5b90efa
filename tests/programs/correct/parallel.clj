; pmap with a check in the function
(pmap (fn [id] (let [r (tool/call {:server "hr" :tool "get_employee" :args {:id id}})] (if (:ok r) (:name (:value r)) (:message r)))) [4 5 6])

; pmap and then a check of all
(let [rs (pmap #(tool/call {:server "shop" :tool "get_product" :args {:sku %}}) ["AB-0001" "AB-0005" "AB-0009"])]
  (if (every? :ok rs) (map #(-> % :value :name) rs) (fail "a product is missing")))

; pcalls of three services
(let [[people stats rate] (pcalls #(tool/call {:server "hr" :tool "headcount"})
                                  #(tool/call {:server "tickets" :tool "ticket-stats"})
                                  #(tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote "USD"}}))]
  (if (and (:ok people) (:ok stats) (:ok rate))
    [(-> people :value :total) (-> stats :value :total) (-> rate :value :rate)]
    (fail "one of three failed")))

; pmap over pairs
(->> [["EUR" "USD"] ["USD" "GBP"] ["GBP" "CHF"]]
     (pmap (fn [[a b]] (tool/value {:server "fx" :tool "rate" :args {:base a :quote b}})))
     (map :rate))

; results beside their ids
(->> ["CUS-0001" "CUS-0002" "CUS-0003"]
     (pmap (fn [id] [id (tool/call {:server "crm" :tool "customer_health" :args {:customer_id id}})]))
     (map (fn [[id r]] [id (if (:ok r) (-> r :value :score) "unknown")]))
     (into {}))

; split by :ok
(let [rs (pmap (fn [n] (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId n}})) (range 12 19))
      ok (filter :ok rs) failed (remove :ok rs)]
  {:subjects (count (map #(-> % :value :subject) ok)) :reasons (frequencies (map :reason failed))})

; a nested pmap
(->> ["AB-0001" "AB-0002"]
     (pmap (fn [sku] (pmap (fn [w] (:on_hand (tool/value {:server "shop" :tool "stock_level" :args {:sku sku :warehouse w}}))) ["north" "south"])))
     (mapv vec))

; pmap over rows of a list
(->> (tool/value {:server "hr" :tool "list_employees" :args {:limit 5}}) :employees
     (pmap (fn [{:keys [id name]}] [name (:band (tool/value {:server "hr" :tool "get_employee" :args {:id id}}))])))

; batches
(->> (range 1 13) (partition-all 4)
     (mapcat (fn [ids] (pmap #(:id (tool/value {:server "tickets" :tool "get-ticket" :args {:ticketId %}})) ids)))
     (reduce +))

; the fastest carrier for several zips
(pmap (fn [zip] (->> (tool/value {:server "shop" :tool "shipping_quote" :args {:zip zip :weight_kg 1.5}}) :quotes (sort-by :days) first :carrier))
      ["10115" "20095" "80331"])

; a helper inside pmap
(defn stock [sku]
  (let [r (tool/call {:server "shop" :tool "stock_level" :args {:sku sku}})]
    (if (:ok r) (:on_hand (:value r)) (do (println sku (:message r)) 0))))
(reduce + (pmap stock ["AB-0003" "AB-0004" "AB-0005"]))

; mapv instead, in order
(mapv (fn [p] (count (tool/value {:server "wiki" :tool "read_page" :args {:page_id p}}))) ["p1" "p2" "p3"])

; for with let and when
(for [sku ["AB-0001" "AB-0002" "AB-0003"]
      :let [r (tool/call {:server "shop" :tool "list_reviews" :args {:sku sku :min_rating 4}})]
      :when (:ok r)]
  [sku (count (-> r :value :reviews))])

; doseq that prints
(doseq [base ["EUR" "GBP"]]
  (let [r (tool/call {:server "fx" :tool "rates_on" :args {:date "2026-02-02" :base base}})]
    (println base (if (:ok r) (-> r :value :rates :USD) (:message r)))))
:printed

; run! over writes that are checked
(let [write (fn [id] (tool/call {:server "crm" :tool "add_note" :args {:customer_id id :text "seen"}}))
      rs (mapv write ["CUS-0001" "CUS-0002"])]
  (count (filter :ok rs)))

; keep with a check
(vec (keep (fn [id] (let [{:keys [ok value]} (tool/call {:server "hr" :tool "get_employee" :args {:id id}})] (when ok (:department value)))) [5 6 7]))

; some: the first warehouse that has enough
(some (fn [w] (let [r (tool/call {:server "shop" :tool "stock_level" :args {:sku "AB-0007" :warehouse w}})]
                (when (and (:ok r) (> (-> r :value :on_hand) 10)) w)))
      ["east" "south" "north"])

; map-indexed
(map-indexed (fn [i q] [i (:value (:result (tool/value {:server "fx" :tool "convert" :args {:amount (inc i) :from "EUR" :to q}})))]) ["USD" "GBP"])

; reduce that builds a map
(reduce (fn [m d] (assoc m d (count (:employees (tool/value {:server "hr" :tool "list_employees" :args {:department d}}))))) {} ["sales" "support"])

; a delay of decisions: only some rows need a call
(->> (tool/value {:server "tickets" :tool "list-tickets" :args {:limit 20}}) :data
     (filter #(= 5 (:priority %)))
     (remove #(= 13 (:id %)))
     (take 3)
     (pmap #(count (tool/value {:server "tickets" :tool "list-comments" :args {:ticketId (:id %)}})))
     (reduce + 0))

; fifty calls are within the budget
(count (pmap (fn [n] (:id (tool/value {:server "tickets" :tool "get-ticket" :args {:ticketId n}}))) (range 20 70)))

; a cache as a map through reduce
(let [orders (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 4}}))]
  (count (reduce (fn [cache sku] (if (contains? cache sku) cache (assoc cache sku (tool/value {:server "shop" :tool "get_product" :args {:sku sku}}))))
                 {} (mapcat #(map :sku (:lines %)) orders))))

; comp of a call and keys
(let [price (comp :price #(tool/value {:server "shop" :tool "get_product" :args {:sku %}}))] (map price ["AB-0010" "AB-0020"]))

; partial of a helper
(defn ask [server tool args] (let [r (tool/call {:server server :tool tool :args args})] (if (:ok r) (:value r) (fail (:message r)))))
(let [wiki (partial ask "wiki" "page_info")] (map (comp :author wiki #(hash-map :page_id %)) ["p1" "p2"]))

; results in a vector are looked at with let
(let [[a b] (mapv #(tool/call {:server "fx" :tool "rate" :args {:base % :quote "USD"}}) ["EUR" "GBP"])]
  (if (and (:ok a) (:ok b)) (- (get-in a [:value :rate]) (get-in b [:value :rate])) (str (:message a) (:message b))))
