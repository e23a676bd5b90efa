; the usual helper
(defn value-of [r] (if (:ok r) (:value r) (fail (:message r))))
(count (:customers (value-of (tool/call {:server "crm" :tool "list_customers" :args {:per_page 50}}))))

; a check in place
(let [r (tool/call {:server "hr" :tool "headcount"})]
  (if (:ok r) (:total (:value r)) (:message r)))

; destructuring of the result
(let [{:keys [ok value message]} (tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote "USD"}})]
  (if ok (* 100 (:rate value)) (fail message)))

; a failure that is looked at
(let [r (tool/call {:server "hr" :tool "payroll_summary" :args {:month "2026-02"}})]
  (if (:ok r) (:value r) {:failed (:reason r) :why (:message r)}))

; failures are counted, not hidden
(let [rs (map #(tool/call {:server "hr" :tool "get_employee" :args {:id %}}) [5 6 7])]
  {:read (count (filter :ok rs)) :failed (count (remove :ok rs))})

; a table of names and errors
(into {} (for [id ["CUS-0012" "CUS-0013"]]
           (let [r (tool/call {:server "crm" :tool "get_customer" :args {:customer_id id}})]
             [id (if (:ok r) (get-in r [:value :name]) (str "error: " (:message r)))])))

; separate the good from the bad
(let [rs (pmap (fn [w] (assoc (tool/call {:server "shop" :tool "stock_level" :args {:sku "AB-0002" :warehouse w}}) :warehouse w)) ["north" "south" "east"])
      {good true bad false} (group-by :ok rs)]
  {:on-hand (reduce + (map (comp :on_hand :value) good)) :missing (mapv :warehouse bad)})

; case over the reason
(let [r (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId 13}})]
  (case (:reason r) :rate_limited "later" nil (:subject (:value r)) "failed"))

; only :reason is asked for
(let [{:keys [reason value]} (tool/call {:server "tickets" :tool "next-in-queue"})]
  (if reason (str "no ticket: " (name reason)) (:subject value)))

; when-not with fail
(let [r (tool/call {:server "crm" :tool "list_deals" :args {:stage "won"}})]
  (when-not (:ok r) (fail {:step "deals" :message (:message r)}))
  (reduce + (map :amount (-> r :value :deals))))

; every result must be good
(let [rs (map #(tool/call {:server "shop" :tool "get_product" :args {:sku %}}) ["AB-0001" "AB-0002"])]
  (if (every? :ok rs) (mapv #(-> % :value :price) rs) (fail "a product is missing")))

; the first good result of two
(let [ask (fn [q] (tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote q}}))
      r (first (filter :ok (map ask ["XAU" "USD"])))]
  (-> r :value :quote))

; a helper with server and tool
(defn fetch [server tool args]
  (let [r (tool/call {:server server :tool tool :args args})]
    (if (:ok r) (:value r) (fail (str server "/" tool ": " (:message r))))))
(+ (:total (fetch "hr" "headcount" {})) (:total (fetch "tickets" "ticket-stats" {})))

; a helper with a default for failures
(defn or-else [r default] (if (:ok r) (:value r) default))
(or-else (tool/call {:server "wiki" :tool "read_page" :args {:page_id "p404"}}) "no such page")

; a helper that takes a function
(defn with-value [r f] (if (:ok r) (f (:value r)) [:failed (:reason r)]))
(with-value (tool/call {:server "shop" :tool "get_order" :args {:order_id 1007}}) #(-> % :order :total))

; the value when it is good, through and
(let [r (tool/call {:server "crm" :tool "search_customers" :args {:query "Labs"}})]
  (or (and (:ok r) (count (-> r :value :matches))) (fail (:message r))))

; if-not first
(let [r (tool/call {:server "tickets" :tool "list-agents"})]
  (if-not (:ok r) (fail (:message r)) (map :name (:value r))))

; cond with the check first
(let [r (tool/call {:server "crm" :tool "customer_health" :args {:customer_id "CUS-0005"}})]
  (cond (not (:ok r)) (str "unknown: " (:message r))
        (> (get-in r [:value :score]) 50) "well"
        :else "at risk"))

; keep the good values of a list and say how many are missing
(let [rs (map #(tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId %}}) (range 11 19))
      good (keep #(when (:ok %) (:value %)) rs)]
  {:priorities (frequencies (map :priority good)) :unread (- (count rs) (count good))})

; true? and false?
(let [r (tool/call {:server "fx" :tool "convert" :args {:amount 3 :from "EUR" :to "RUB"}})]
  (if (true? (:ok r)) (-> r :value :result :value) (if (false? (:ok r)) "suspended" "?")))

; the check with get
(let [r (tool/call {:server "fx" :tool "holidays" :args {:country "ZZ" :year 2026}})]
  (if (get r :ok) (count (get-in r [:value :holidays])) (get r :message)))

; string keys for the call
(let [r (tool/call {"server" "hr" "tool" "headcount"})]
  (if (:ok r) (get-in r [:value :by_department :support]) (fail (:message r))))

; a chain of two checked calls
(let [found (tool/call {:server "crm" :tool "search_customers" :args {:query "Granite"}})]
  (if (:ok found)
    (if-let [id (-> found :value :matches first :id)]
      (let [r (tool/call {:server "crm" :tool "get_customer" :args {:customer_id id}})]
        (if (:ok r) (-> r :value :email) (fail (:message r))))
      "no match")
    (fail (:message found))))

; the whole failed result is the answer
(tool/call {:server "hr" :tool "policy_text" :args {:name "expenses"}})

; a failed result among others is printed whole
(mapv #(tool/call {:server "wiki" :tool "read_page" :args {:page_id %}}) ["p1" "p9"])

; select-keys of results
(map #(select-keys % [:ok :reason]) [(tool/call {:server "fx" :tool "rates_on" :args {:date "2026-01-01"}})])

; results by name, checked later
(let [calls {:people (tool/call {:server "hr" :tool "headcount"}) :tickets (tool/call {:server "tickets" :tool "ticket-stats"})}
      bad (keys (remove (comp :ok val) calls))]
  (if (seq bad) (fail (str "failed: " bad)) (into {} (map (fn [[k r]] [k (-> r :value :total)]) calls))))

; reduced at the first failure
(reduce (fn [sum id]
          (let [r (tool/call {:server "shop" :tool "get_order" :args {:order_id id}})]
            (if (:ok r) (+ sum (-> r :value :order :total)) (reduced {:sum sum :stopped-at id}))))
        0 [1005 1006 1007 1008])

; a write that says whether it worked
(let [r (tool/call {:server "shop" :tool "create_refund" :args {:order_id 1002 :amount 10.5 :reason "late"}})]
  (if (:ok r) (str "refund " (-> r :value :refund_id)) (str "not refunded: " (:message r))))

; tool/value ends the program when a call fails
(count (:employees (tool/value {:server "hr" :tool "list_employees" :args {:department "sales"}})))

; an argument that an open schema does not name
(let [r (tool/call {:server "hr" :tool "list_employees" :args {:department "sales" :trace "on"}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; an undeclared argument beside the declared one that is near
(let [r (tool/call {:server "hr" :tool "list_employees" :args {:band "B2" :bands "all" :limit 3}})]
  (if (:ok r) {:found (count (:employees (:value r)))} (fail (:message r))))

; integers in a list, some of them doubles without a fraction
(let [r (tool/call {:server "hr" :tool "get_employees" :args {:ids [3 (/ 8 2) 5] :parts [:skills "contract"]}})]
  (if (:ok r) (pos? (count (:employees (:value r)))) (fail (:message r))))

; a set of ids
(let [r (tool/call {:server "hr" :tool "get_employees" :args {:ids #{3 4} :options {:order :desc :since 2020}}})]
  (if (:ok r) (pos? (count (:employees (:value r)))) (fail (:message r))))

; the keys of a result that is checked are counted
(let [r (tool/call {:server "hr" :tool "list_employees" :args {:department "sales"}})]
  (if (:ok r) (count r) (fail (:message r))))
