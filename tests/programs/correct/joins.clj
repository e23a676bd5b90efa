; names of customers with won deals
(defn value-of [r] (if (:ok r) (:value r) (fail (:message r))))
(let [deals (:deals (value-of (tool/call {:server "crm" :tool "list_deals" :args {:stage "won" :min_amount 80000}})))
      ids (distinct (remove #{"CUS-0013"} (map :customer_id deals)))]
  (pmap #(:name (value-of (tool/call {:server "crm" :tool "get_customer" :args {:customer_id %}}))) (take 5 ids)))

; an index by id
(let [customers (:customers (tool/value {:server "crm" :tool "list_customers" :args {:per_page 50}}))
      by-id (into {} (map (juxt :id identity) customers))
      orders (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 20}}))]
  (map (fn [o] [(:id o) (get-in by-id [(:customer_id o) :name])]) orders))

; zipmap of ids and names
(let [r (tool/call {:server "hr" :tool "list_employees"})
      people (if (:ok r) (-> r :value :employees) (fail (:message r)))
      name-of (zipmap (map :id people) (map :name people))]
  (map (fn [p] [(:name p) (name-of (:manager_id p) "nobody")]) (take 6 people)))

; spend of each tier
(let [customers (:customers (tool/value {:server "crm" :tool "list_customers" :args {:per_page 50}}))
      tier-of (into {} (map (juxt :id :tier)) customers)
      orders (tool/all {:server "shop" :tool "list_orders"})]
  (reduce (fn [m {:keys [customer_id total]}] (update m (tier-of customer_id "unknown") (fnil + 0) total)) {} orders))

; products of the lines of an order
(let [order (:order (tool/value {:server "shop" :tool "get_order" :args {:order_id 1001}}))]
  (->> (:lines order)
       (pmap (fn [{:keys [sku quantity]}]
               (let [p (tool/value {:server "shop" :tool "get_product" :args {:sku sku}})]
                 [(:name p) quantity])))
       (into [])))

; tickets of customers with a name
(let [tickets (:data (tool/value {:server "tickets" :tool "list-tickets" :args {:state "open" :limit 10}}))
      names (into {} (for [c (:customers (tool/value {:server "crm" :tool "list_customers" :args {:per_page 50}}))] [(:id c) (:name c)]))]
  (for [t tickets] {:ticket (:id t) :customer (get names (get-in t [:requester :customerId]))}))

; absences with names, an employee at a time and each once
(let [absences (:absences (tool/value {:server "hr" :tool "list_absences" :args {:from "2026-01-01" :to "2026-03-31" :type "sick"}}))
      people (:employees (tool/value {:server "hr" :tool "list_employees"}))
      by-id (group-by :id people)]
  (->> absences
       (map (fn [{:keys [employee_id days]}] {:name (-> (by-id employee_id) first :name) :days days}))
       (group-by :name)
       (map (fn [[n xs]] [n (reduce + (map :days xs))]))
       (into (sorted-map))))

; agents and what they have open
(let [agents (tool/value {:server "tickets" :tool "list-agents"})
      open (:data (tool/value {:server "tickets" :tool "list-tickets" :args {:state "open" :limit 50}}))
      load (frequencies (map :assigneeId open))]
  (sort-by second > (map (juxt :name #(get load (:id %) 0)) agents)))

; set operations over ids
(let [ordered (set (map :customer_id (tool/all {:server "shop" :tool "list_orders"})))
      known (set (map :id (:customers (tool/value {:server "crm" :tool "list_customers" :args {:per_page 50}}))))]
  {:without-orders (count (clojure.set/difference known ordered)) :unknown (count (clojure.set/difference ordered known))})

; amounts in one currency
(let [rate (:rate (tool/value {:server "fx" :tool "rate" :args {:base "USD" :quote "EUR"}}))
      deals (:deals (tool/value {:server "crm" :tool "list_deals" :args {:owner "maya"}}))]
  (reduce + (map (fn [{:keys [amount currency]}] (if (= currency "USD") (* rate amount) amount)) deals)))

; contacts of the largest customer
(let [deals (:deals (tool/value {:server "crm" :tool "list_deals" :args {:stage "won"}}))
      sums (reduce (fn [m d] (update m (:customer_id d) (fnil + 0) (:amount d))) {} (remove #(= "CUS-0013" (:customer_id %)) deals))
      [id amount] (first (sort-by val > sums))]
  {:id id :amount amount :contacts (map :email (:contacts (tool/value {:server "crm" :tool "list_contacts" :args {:customer_id id}})))})

; stock for the lines of several orders, failures told
(let [orders (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 5}}))
      skus (distinct (mapcat #(map :sku (:lines %)) orders))]
  (for [sku skus]
    (let [r (tool/call {:server "shop" :tool "stock_level" :args {:sku sku}})]
      [sku (if (:ok r) (- (-> r :value :on_hand) (-> r :value :reserved)) (:message r))])))

; clojure.set/join of two lists
(let [a (map #(select-keys % [:id :name]) (:customers (tool/value {:server "crm" :tool "list_customers" :args {:per_page 50}})))
      b (map #(select-keys % [:customer_id :stage]) (:deals (tool/value {:server "crm" :tool "list_deals" :args {:stage "lead"}})))
      by-id (group-by :id a)]
  (count (filter #(contains? by-id (:customer_id %)) b)))

; rename and merge
(let [c (tool/value {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0008"}})
      h (tool/value {:server "crm" :tool "customer_health" :args {:customer_id "CUS-0008"}})]
  (merge (select-keys c [:id :name]) {:city (-> c :address :city)} (select-keys h [:score])))

; a report of three services
(let [people (tool/value {:server "hr" :tool "headcount"})
      stats (tool/value {:server "tickets" :tool "ticket-stats"})
      rates (tool/value {:server "fx" :tool "rates_on" :args {:date "2026-03-02" :base "EUR"}})]
  {:per-person (/ (:total stats) (:total people)) :open (-> stats :by_state :open) :usd (-> rates :rates :USD)})

; comments of the tickets with the highest priority
(->> (tool/value {:server "tickets" :tool "list-tickets" :args {:priority 5 :limit 5}})
     :data
     (map :id)
     (remove #{13})
     (pmap (fn [id] [id (count (tool/value {:server "tickets" :tool "list-comments" :args {:ticketId id}}))]))
     (into {}))

; people without absences
(let [away (->> (tool/value {:server "hr" :tool "list_absences" :args {:from "2026-01-01" :to "2026-12-31"}}) :absences (map :employee_id) set)]
  (->> (tool/value {:server "hr" :tool "list_employees"}) :employees (remove (comp away :id)) count))

; reviews beside prices
(let [skus ["AB-0001" "AB-0002" "AB-0003"]
      price #(:price (tool/value {:server "shop" :tool "get_product" :args {:sku %}}))
      ratings #(map :rating (:reviews (tool/value {:server "shop" :tool "list_reviews" :args {:sku %}})))]
  (for [s skus :let [rs (ratings s)]]
    {:sku s :price (price s) :rating (when (seq rs) (double (/ (reduce + rs) (count rs))))}))

; two lists side by side with map
(let [days (:days (tool/value {:server "shop" :tool "sales_by_day" :args {:from "2026-01-01" :to "2026-12-31"}}))
      sorted (sort-by :date days)]
  (take 3 (map (fn [a b] [(:date b) (- (:orders b) (:orders a))]) sorted (rest sorted))))

; mapcat with let
(->> (tool/value {:server "crm" :tool "search_customers" :args {:query "Ember" :limit 5}})
     :matches
     (mapcat (fn [{:keys [id name]}]
               (let [{:keys [contacts]} (tool/value {:server "crm" :tool "list_contacts" :args {:customer_id id}})]
                 (map #(assoc (select-keys % [:email :role]) :customer name) contacts))))
     (group-by :role)
     (map (fn [[role cs]] [role (count cs)]))
     (into {:all 0}))
