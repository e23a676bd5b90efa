; overdue tickets, as of a day
(let [today "2026-06-01"]
  (->> (tool/value {:server "tickets" :tool "list-tickets" :args {:state "open" :limit 50}}) :data
       (filter #(when-let [d (:dueAt %)] (neg? (compare d today)))) (map :id)))

; leave that fits
(let [r (tool/call {:server "hr" :tool "request_leave" :args {:employee_id 5 :from "2026-08-03" :days 5}})]
  (if (:ok r) (str (-> r :value :request_id) " is " (-> r :value :status)) (str "refused: " (:message r))))

; leave of a sealed file
(let [{:keys [ok reason message]} (tool/call {:server "hr" :tool "request_leave" :args {:employee_id 6 :from "2026-08-03" :days 5}})]
  (if ok "requested" (str (name reason) ": " message)))

; an alternative when the first upstream fails
(let [a (tool/call {:server "fx" :tool "rates_on" :args {:date "2026-01-01"}})
      b (when-not (:ok a) (tool/call {:server "fx" :tool "rates_on" :args {:date "2026-01-02"}}))]
  (cond (:ok a) (-> a :value :rates :USD) (:ok b) (-> b :value :rates :USD) :else (fail (:message b))))

; the next working day through a loop
(loop [d 1]
  (let [r (tool/call {:server "fx" :tool "rates_on" :args {:date (format "2026-01-%02d" d)}})]
    (if (or (:ok r) (> d 5)) (-> r :value :date) (recur (inc d)))))

; a refund only where the order is old enough
(let [o (:order (tool/value {:server "shop" :tool "get_order" :args {:order_id 1012}}))]
  (if (and (= "shipped" (:status o)) (< (:total o) 100))
    (:refund_id (tool/value {:server "shop" :tool "create_refund" :args {:order_id (:id o) :amount (:total o) :reason "late"}}))
    {:kept (:status o)}))

; premium customers first
(->> (tool/value {:server "crm" :tool "list_customers" :args {:per_page 50}}) :customers
     (sort-by (fn [{:keys [tier]}] (.indexOf ["premium" "standard" "free"] tier))) first :tier)

; the cheaper of two carriers
(let [qs (:quotes (tool/value {:server "shop" :tool "shipping_quote" :args {:zip "10115" :weight_kg 2}}))
      best (apply min-key :price qs)]
  [(:carrier best) (:price best)])

; an SLA by name
(let [r (tool/call {:server "tickets" :tool "get-sla" :args {:plan "plan-1"}})]
  (if (:ok r) (if (:weekend (:value r)) "all week" "working days") (fail (:message r))))

; an SLA that is not there
(let [r (tool/call {:server "tickets" :tool "get-sla" :args {:plan "plan-7"}})]
  (if (= :tool_error (:reason r)) "no such plan" (:value r)))

; who is online
(let [on (filter :online (tool/value {:server "tickets" :tool "list-agents"}))]
  (if (seq on) (map :name on) ["nobody"]))

; a team without members on duty
(let [r (tool/call {:server "tickets" :tool "list-agents" :args {:team "first line"}})]
  (if (:ok r) {:online (count (filter :online (:value r)))} (fail (:message r))))

; customers with a name that is taken twice
(->> (tool/value {:server "crm" :tool "list_customers" :args {:per_page 50}}) :customers (map :name) frequencies (filter #(> (val %) 7)) keys sort)

; health by risk
(let [r (tool/call {:server "crm" :tool "customer_health" :args {:customer_id "CUS-0020"}})]
  (if (:ok r)
    (let [{:keys [score risks]} (:value r)] (if (or (< score 50) (seq risks)) {:call risks} {:fine score}))
    {:unknown (:message r)}))

; a threshold with an equal
(let [v (tool/value {:server "tickets" :tool "ticket-stats"})] (>= (:median_hours v 0) 6.5))

; when several things must hold
(let [{:keys [on_hand reserved]} (tool/value {:server "shop" :tool "stock_level" :args {:sku "AB-0001"}}) free (- on_hand reserved)]
  (cond (zero? free) "sold out" (< free 5) "few" :else free))

; priorities as words
(->> (tool/value {:server "tickets" :tool "list-tickets" :args {:limit 10}}) :data
     (map #(case (int (:priority %)) 1 "low" 2 "low" 3 "normal" "high")) frequencies)

; a plan of calls as data
(let [plan [["hr" "headcount" {} [:total]] ["tickets" "ticket-stats" {} [:by_state :open]] ["fx" "rate" {:base "EUR" :quote "USD"} [:rate]]]]
  (for [[s t a path] plan]
    (let [r (tool/call {:server s :tool t :args a})] (if (:ok r) (get-in (:value r) path) (:message r)))))

; keep asking until the budget of the program
(loop [n 0]
  (let [r (tool/call {:server "tickets" :tool "next-in-queue"})]
    (cond (:ok r) (:value r) (= n 2) (str "gave up: " (name (:reason r))) :else (recur (inc n)))))

; the customer of an order, or a word
(let [o (tool/call {:server "shop" :tool "get_order" :args {:order_id 1007}})]
  (if (:ok o) (-> o :value :order :customer_id) "offline"))

; a nested failure is passed on as data
(defn safe [r] (if (:ok r) {:data (:value r)} {:error (:message r)}))
(let [{:keys [data error]} (safe (tool/call {:server "shop" :tool "get_order" :args {:order_id 1007}}))]
  (or error (:order data)))

; an own result type with its own keys
(defn attempt [r] (if (:ok r) [:good (:value r)] [:bad (:reason r)]))
(let [[tag v] (attempt (tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote "GBP"}}))]
  (if (= tag :good) (:rate v) v))

; the message is shortened
(let [r (tool/call {:server "tickets" :tool "next-in-queue"})]
  (if (:ok r) (:value r) (let [m (:message r)] (subs m 0 (min 20 (count m))))))

; not-found of a search is not a failure
(let [{:keys [matches]} (tool/value {:server "crm" :tool "search_customers" :args {:query "Unknown Ltd"}})]
  (if-let [c (first matches)] (:name c) "not a customer"))

; two checks in one condition
(let [a (tool/call {:server "crm" :tool "get_deal" :args {:deal_id "DEAL-001"}})
      b (tool/call {:server "crm" :tool "get_deal" :args {:deal_id "DEAL-002"}})]
  (if (and (:ok a) (:ok b)) (> (-> a :value :amount) (-> b :value :amount)) "one is missing"))
