; one of ten customers is locked and missing from the count
;! get_customer tool_error
(->> (range 8 18)
     (map (fn [n] (:value (tool/call {:server "crm" :tool "get_customer" :args {:customer_id (format "CUS-%04d" n)}}))))
     (keep :name)
     count)

; a name with a fallback hides the failure
;! get_employee tool_error
(let [r (tool/call {:server "hr" :tool "get_employee" :args {:id 6}})]
  (or (:name (:value r)) "?"))

; no payroll looks like a payroll of nothing
;! payroll_summary tool_error
(let [r (tool/call {:server "hr" :tool "payroll_summary" :args {:month "2026-03"}})]
  (get-in r [:value :gross] 0))

; no orders, or no answer?
;! get_order tool_error
(let [order (get-in (tool/call {:server "shop" :tool "get_order" :args {:order_id 1007}}) [:value :order])]
  (empty? (:lines order)))

; stock of three warehouses, one of which is closed
;! stock_level tool_error
(reduce + 0
  (for [w ["north" "south" "east"]]
    (or (-> (tool/call {:server "shop" :tool "stock_level" :args {:sku "AB-0002" :warehouse w}}) :value :on_hand) 0)))

; a deleted page has no lines
;! read_page tool_error
(defn lines [id]
  (let [text (:value (tool/call {:server "wiki" :tool "read_page" :args {:page_id id}}))]
    (if text (clojure.string/split-lines text) [])))
(count (mapcat lines ["p3" "p4" "p5"]))

; pmap over tickets, one of them rate limited
;! get-ticket rate_limited
(->> (range 10 16)
     (pmap #(:value (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId %}})))
     (map :priority)
     (remove nil?)
     (apply max))

; a service that is away
;! next-in-queue upstream_unavailable
(let [ticket (:value (tool/call {:server "tickets" :tool "next-in-queue"}))]
  (if (seq ticket) (:subject ticket) "the queue is empty"))

; when-let takes a failure for nothing
;! policy_text tool_error
(when-let [text (:value (tool/call {:server "hr" :tool "policy_text" :args {:name "expenses"}}))]
  (count text))

; if-let says that there are no risks
;! customer_health tool_error
(if-let [risks (seq (get-in (tool/call {:server "crm" :tool "customer_health" :args {:customer_id "CUS-0002"}}) [:value :risks]))]
  (vec risks)
  "no risks")

; some-> gives nil, and nil is taken for 1
;! rate tool_error
(let [rate (or (some-> (tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote "XAU"}}) :value :rate) 1)]
  (* 250 rate))

; a helper whose server and tool are parameters
;! rates_on tool_error
(defn fetch [server tool args] (:value (tool/call {:server server :tool tool :args args})))
(count (keys (:rates (fetch "fx" "rates_on" {:date "2026-01-01"}))))

; no calendar is taken for no holidays
;! holidays tool_error
(let [is-holiday (->> (tool/call {:server "fx" :tool "holidays" :args {:country "ZZ" :year 2026}}) :value :holidays (map :date) set)]
  (contains? is-holiday "2026-12-25"))

; the refund was refused
;! create_refund tool_error
(do (tool/call {:server "shop" :tool "create_refund" :args {:order_id 1002 :amount 10.5 :reason "late"}})
    "refunded 10.50")

; leave for three employees, and one request fails
;! request_leave tool_error
(count (map (fn [id] (tool/call {:server "hr" :tool "request_leave" :args {:employee_id id :from "2026-07-01" :days 3}})) [5 6 7]))

; doseq throws results away
;! get_customer tool_error
(doseq [id ["CUS-0012" "CUS-0013"]]
  (let [c (:value (tool/call {:server "crm" :tool "get_customer" :args {:customer_id id}}))]
    (tool/call {:server "crm" :tool "add_note" :args {:customer_id id :text (str "hello " (:name c))}})))
"done"

; a merge over failures
;! customer_health tool_error
(->> ["CUS-0001" "CUS-0005" "CUS-0007"]
     (map (fn [id] (merge {:id id} (:value (tool/call {:server "crm" :tool "customer_health" :args {:customer_id id}})))))
     (filter #(> (or (:score %) 0) 40))
     (mapv :id))

; zipmap of names with contacts that could not be read
;! list_contacts tool_error
(let [ids ["CUS-0011" "CUS-0013"]]
  (zipmap ids (map #(count (get-in (tool/call {:server "crm" :tool "list_contacts" :args {:customer_id %}}) [:value :contacts])) ids)))

; the check comes too late: only the last result is looked at
;! get-ticket upstream_unavailable
(loop [ids [16 17 18] subjects []]
  (let [r (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId (first ids)}})
        subjects (conj subjects (:subject (:value r)))]
    (if (next ids)
      (recur (rest ids) subjects)
      (if (:ok r) (remove nil? subjects) (fail "no ticket")))))

; destructuring of the value alone
;! get_employee tool_error
(let [{{:keys [name manager_id]} :value} (tool/call {:server "hr" :tool "get_employee" :args {:id 6}})]
  (str name (if manager_id " has a manager" " is at the top")))

; destructuring with :or
;! stock_level tool_error
(let [{{:keys [on_hand] :or {on_hand 0}} :value} (tool/call {:server "shop" :tool "stock_level" :args {:sku "AB-0004"}})]
  (if (pos? on_hand) "in stock" "sold out"))

; a ticket that does not exist
;! get-ticket 404
(let [t (:value (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId 900}}))]
  (if (= "closed" (:state t)) "closed" "still open"))

; no such deal
;! get_deal tool_error
(get-in (tool/call {:server "crm" :tool "get_deal" :args {:deal_id "DEAL-999"}}) [:value :stage] "lead")

; a total over deals by id, with one that is not there
;! get_deal tool_error
(reduce (fn [total id]
          (+ total (get-in (tool/call {:server "crm" :tool "get_deal" :args {:deal_id id}}) [:value :amount] 0)))
        0
        ["DEAL-001" "DEAL-002" "DEAL-71"])

; mapcat over lists of comments
;! list-comments rate_limited
(->> [12 13 14]
     (mapcat (fn [id] (:value (tool/call {:server "tickets" :tool "list-comments" :args {:ticketId id}}))))
     (map :author)
     distinct
     sort)

; a plan that is not there
;! get-sla tool_error
(let [hours (-> (tool/call {:server "tickets" :tool "get-sla" :args {:plan "plan-9"}}) :value :responseHours)]
  (if (nil? hours) "no promise" (str hours " hours")))

; cond over the value
;! convert tool_error
(let [v (get-in (tool/call {:server "fx" :tool "convert" :args {:amount 50 :from "EUR" :to "RUB"}}) [:value :result :value])]
  (cond (nil? v) "nothing" (> v 100) "much" :else "little"))

; a set of all names, one is missing
;! get_product tool_error
(set (keep #(get-in (tool/call {:server "shop" :tool "get_product" :args {:sku %}}) [:value "name"]) ["AB-0001" "AB-0061" "AB-0002"]))

; printing and no check
;! read_page tool_error
(doseq [id ["p1" "p9"]]
  (println id (count (str (:value (tool/call {:server "wiki" :tool "read_page" :args {:page_id id}}))))))
:printed

; not looks at the value, not at :ok
;! page_info tool_error
(if (not (:value (tool/call {:server "wiki" :tool "page_info" :args {:page_id "p77"}}))) "no page yet" "written")

; the last of several fallbacks
;! rate tool_error
(defn rate [to] (:rate (:value (tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote to}}))))
(into {} (for [c ["USD" "RUB" "GBP"]] [c (rate c)]))

; group-by over orders of which one is offline
;! get_order tool_error
(->> (range 1005 1009)
     (mapv #(-> (tool/call {:server "shop" :tool "get_order" :args {:order_id %}}) :value :order))
     (group-by :status)
     (map (fn [[k v]] [k (count v)]))
     (into {}))

; filter with identity drops failures
;! stock_level tool_error
(->> ["AB-0010" "AB-0011" "AB-0012"]
     (pmap (fn [sku] (get-in (tool/call {:server "shop" :tool "stock_level" :args {:sku sku}}) [:value :reserved])))
     (filter identity)
     (reduce +))

; a cache that keeps a failure
;! get_employee tool_error
(defn with-manager [cache id]
  (if (contains? cache id)
    cache
    (assoc cache id (get-in (tool/call {:server "hr" :tool "get_employee" :args {:id id}}) [:value :manager_id]))))
(reduce with-manager {} [5 6 6 7])

; a shipping table with a zip that no carrier serves
;! shipping_quote tool_error
(for [zip ["10115" "99999"]]
  [zip (count (-> (tool/call {:server "shop" :tool "shipping_quote" :args {:zip zip :weight_kg 3}}) (get :value) (get :quotes)))])

; a threshold on nil
;! customer_health tool_error
(let [score #(-> (tool/call {:server "crm" :tool "customer_health" :args {:customer_id %}}) :value (get :score 0))]
  (filterv #(< (score %) 10) ["CUS-0005" "CUS-0006"]))

; nil punning with first
;! list_contacts tool_error
(-> (tool/call {:server "crm" :tool "list_contacts" :args {:customer_id "CUS-0013" :role "buyer"}})
    :value :contacts first :email (or "nobody to write to"))
