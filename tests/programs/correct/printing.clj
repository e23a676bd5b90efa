; a line for each agent
(doseq [{:keys [name team online]} (tool/value {:server "tickets" :tool "list-agents"})]
  (println name team (if online "online" "offline")))
"done"

; prints the message of a failure
(let [r (tool/call {:server "hr" :tool "payroll_summary" :args {:month "2026-04"}})]
  (println "ok?" (:ok r) (:message r))
  (:ok r))

; prints the whole result, which shows that it failed
(do (println (tool/call {:server "wiki" :tool "read_page" :args {:page_id "p404"}})) :looked)

; prints keys to learn the shape
(let [r (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId 3}})]
  (println (:ok r) (keys (:value r)))
  (sort (keys (:value r))))

; prints the first row
(let [r (tool/call {:server "crm" :tool "list_deals"})]
  (if (:ok r) (do (println (first (-> r :value :deals))) (count (-> r :value :deals))) (fail (:message r))))

; prints beside a value
(let [v (tool/value {:server "hr" :tool "headcount"})]
  (println "total" (:total v))
  (:by_department v))

; pr-str of a value
(pr-str (:result (tool/value {:server "fx" :tool "convert" :args {:amount 12 :from "EUR" :to "USD"}})))

; str of a result
(str (tool/call {:server "hr" :tool "policy_text" :args {:name "expenses"}}))

; prints inside a helper
(defn log [label x] (println label x) x)
(->> (tool/value {:server "shop" :tool "list_products" :args {:max_price 50}}) :products (log "cheap") (map :sku) count)

; the result of a failed call in a vector
[(tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote "XAU"}}) (:ok (tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote "USD"}}))]

; the result in a map
{:order (tool/call {:server "shop" :tool "get_order" :args {:order_id 1007}})}

; type of a value
(let [r (tool/call {:server "wiki" :tool "page_info" :args {:page_id "p1"}})]
  [(:value_kind r) (map? (:value r)) (string? (:value r))])

; a count of a value of any kind
(let [r (tool/call {:server "tickets" :tool "list-agents"})]
  (if (sequential? (:value r)) (count (:value r)) (fail (str "unexpected: " (:reason r)))))

; format of numbers
(let [{:keys [rate as_of]} (tool/value {:server "fx" :tool "rate" :args {:base "EUR" :quote "USD"}})]
  (format "%.3f on %s" rate as_of))

; the raw list
(:value (tool/call {:server "tickets" :tool "list-comments" :args {:ticketId 5}}))

; a part of a list
(take 2 (-> (tool/call {:server "crm" :tool "list_customers" :args {:per_page 5}}) :value :customers))

; a good value without a check is no mistake of the answer
(-> (tool/call {:server "hr" :tool "headcount"}) :value :total)

; names without a check
(map :name (:value (tool/call {:server "tickets" :tool "list-agents"})))

; a nested path without a check
(get-in (tool/call {:server "shop" :tool "get_order" :args {:order_id 1003}}) [:value :order :shipping :address :zip])

; a value that is nil for a good reason
{:next (-> (tool/call {:server "shop" :tool "list_orders" :args {:page 6 :limit 100}}) :value :next)}

; comments in the program
; the next line asks for the first page only
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:limit 10}})] ; ten of them
  (if (:ok r) (count (:items (:value r))) (fail (:message r))))

; several forms, the last counts
(def rate (:rate (tool/value {:server "fx" :tool "rate" :args {:base "EUR" :quote "USD"}})))
(defn in-usd [eur] (* rate eur))
(map in-usd [1 10 100])

; a def of a list
(def open (:data (tool/value {:server "tickets" :tool "list-tickets" :args {:state "open" :limit 50}})))
(println (count open) "open")
(->> open (sort-by :createdAt) first :id)

; if with a count
(let [ms (:matches (tool/value {:server "crm" :tool "search_customers" :args {:query "zzz"}}))]
  (if (empty? ms) "no customer of that name" (map :name ms)))

; return ends early
(let [v (tool/value {:server "tickets" :tool "ticket-stats"})]
  (when (> (-> v :by_state :open) 40) (return "too many open tickets"))
  (:total v))
