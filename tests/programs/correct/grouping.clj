; orders by status
(frequencies (map :status (tool/all {:server "shop" :tool "list_orders"})))

; a status that no order has
(let [by (group-by :status (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 50}})))]
  {:open (count (get by "open")) :returned (count (get by "returned"))})

; keywords into a map of groups with text keys
(let [by (group-by :stage (:deals (tool/value {:server "crm" :tool "list_deals"})))]
  [(count (:won by)) (count (:lost by)) (count (:cancelled by))])

; revenue by month
(->> (tool/value {:server "shop" :tool "sales_by_day" :args {:from "2026-01-01" :to "2026-12-31"}}) :days
     (group-by #(subs (:date %) 0 7))
     (map (fn [[m ds]] [m (reduce + (map :revenue ds))]))
     (into (sorted-map)))

; the largest deal of each owner
(->> (tool/value {:server "crm" :tool "list_deals"}) :deals
     (group-by :owner)
     (map (fn [[o ds]] [o (:id (apply max-key :amount ds))]))
     (into {}))

; two levels
(let [ds (:deals (tool/value {:server "crm" :tool "list_deals"}))]
  (reduce (fn [m {:keys [owner stage amount]}] (update-in m [owner stage] (fnil + 0) amount)) {} ds))

; average rating
(let [rs (map :rating (:reviews (tool/value {:server "shop" :tool "list_reviews" :args {:sku "AB-0003"}})))]
  (if (seq rs) (/ (reduce + rs) (count rs)) 0))

; a median
(let [xs (vec (sort (map :total (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 99}})))))]
  (nth xs (quot (count xs) 2)))

; share of premium customers
(let [cs (:customers (tool/value {:server "crm" :tool "list_customers" :args {:per_page 50}}))]
  (/ (count (filter #(= "premium" (:tier %)) cs)) (count cs)))

; skills by department
(->> (tool/value {:server "hr" :tool "list_employees"}) :employees
     (mapcat (fn [{:keys [department skills]}] (map #(vector department %) skills)))
     frequencies (sort-by val >) (take 3))

; partition by hiring year
(->> (tool/value {:server "hr" :tool "list_employees"}) :employees
     (map #(subs (:hired %) 0 4)) frequencies)

; top five by total
(->> (tool/all {:server "shop" :tool "list_orders"})
     (sort-by :total >) (take 5) (map (juxt :id :total)))

; order lines flattened
(->> (tool/value {:server "shop" :tool "list_orders" :args {:limit 20}}) :items
     (mapcat (fn [o] (map #(assoc % :order (:id o)) (:lines o))))
     (map #(* (:quantity %) (:unit_price %)))
     (reduce +))

; the most frequent article
(->> (tool/all {:server "shop" :tool "list_orders"})
     (mapcat :lines) (map :sku) frequencies (sort-by val >) ffirst)

; a histogram of prices
(->> (tool/value {:server "shop" :tool "list_products"}) :products
     (map #(* 50 (quot (int (:price %)) 50))) frequencies (into (sorted-map)))

; sums with sum-by
(sum-by :amount (:deals (tool/value {:server "crm" :tool "list_deals" :args {:stage "lost"}})))

; min and max
(let [ps (map :price (:products (tool/value {:server "shop" :tool "list_products" :args {:category "office"}})))]
  {:from (apply min ps) :to (apply max ps)})

; merge-with over rows
(->> (tool/value {:server "hr" :tool "list_absences" :args {:from "2026-01-01" :to "2026-12-31"}}) :absences
     (map (fn [{:keys [type days]}] {type days}))
     (apply merge-with +))

; partition-by after a sort
(->> (tool/value {:server "shop" :tool "list_products"}) :products
     (sort-by :category) (partition-by :category) (map (fn [ps] [(:category (first ps)) (count ps)])))

; distinct cities
(->> (tool/value {:server "crm" :tool "list_customers" :args {:per_page 50}}) :customers (map (comp :city :address)) distinct sort)

; index of names to ids, several for a name
(->> (tool/value {:server "crm" :tool "list_customers" :args {:per_page 50}}) :customers
     (reduce (fn [m c] (update m (:name c) (fnil conj []) (:id c))) {})
     (filter (fn [[_ ids]] (> (count ids) 7))) (map first))

; running totals
(->> (tool/value {:server "shop" :tool "sales_by_day" :args {:from "2026-03-01" :to "2026-03-31"}}) :days
     (sort-by :date) (map :orders) (reductions +))

; some and not-any?
(let [rs (:reviews (tool/value {:server "shop" :tool "list_reviews" :args {:sku "AB-0003"}}))]
  {:broken (boolean (some #(= "Broken on arrival" (:title %)) rs)) :unverified (not-any? :verified rs)})

; counts by state as they come
(let [{:keys [by_state total]} (tool/value {:server "tickets" :tool "ticket-stats"})]
  (= total (reduce + (vals by_state))))

; the department with the most people
(let [{:keys [by_department]} (tool/value {:server "hr" :tool "headcount"})]
  (key (apply max-key val by_department)))

; a map over the entries of an open map
(into {} (map (fn [[k v]] [k (* 2 v)]) (:rates (tool/value {:server "fx" :tool "rates_on" :args {:date "2026-05-05"}}))))

; filter entries
(filter (fn [[_ n]] (> n 100)) (:counts (tool/value {:server "wiki" :tool "word_counts"})))

; keys as texts
(sort (keys (:counts (tool/value {:server "wiki" :tool "word_counts"}))))

; sort by two columns
(->> (tool/value {:server "hr" :tool "list_employees" :args {:department "finance"}}) :employees
     (sort-by (juxt :band :name)) (map :id) (take 4))

; juxt of several statistics
(let [xs (map :amount (:deals (tool/value {:server "crm" :tool "list_deals"})))]
  ((juxt count #(reduce + %) #(apply max %)) xs))
