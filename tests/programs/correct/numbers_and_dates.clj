; half of an even number as a page
(let [pages 4 r (tool/call {:server "shop" :tool "list_orders" :args {:page (/ pages 2) :limit 10}})]
  (if (:ok r) (count (-> r :value :items)) (fail (:message r))))

; quot for a page
(-> (tool/value {:server "crm" :tool "list_customers" :args {:page (inc (quot 25 20)) :per_page 20}}) :page)

; bounds exactly met
[(count (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 100 :page 5}})))
 (count (:quotes (tool/value {:server "shop" :tool "shipping_quote" :args {:zip "10115" :weight_kg 30}})))]

; a refund in cents
(:amount (tool/value {:server "shop" :tool "create_refund" :args {:order_id 1004 :amount 12.34 :reason "damaged"}}))

; a refund of a whole number
(:refund_id (tool/value {:server "shop" :tool "create_refund" :args {:order_id 1005 :amount 12 :reason "late"}}))

; a refund of a rounded part
(let [total (-> (tool/value {:server "shop" :tool "get_order" :args {:order_id 1006}}) :order :total)
      part (/ (Math/round (* 50.0 total)) 100.0)]
  (:amount (tool/value {:server "shop" :tool "create_refund" :args {:order_id 1006 :amount part :reason "unwanted"}})))

; 0.1 is a multiple of 0.01
(:amount (tool/value {:server "shop" :tool "create_refund" :args {:order_id 1008 :amount 0.1 :reason "late"}}))

; a small weight
(->> (tool/value {:server "shop" :tool "shipping_quote" :args {:zip "00001" :weight_kg 0.01 :express false}}) :quotes (map :price) (apply min))

; a date as text
(count (:days (tool/value {:server "shop" :tool "sales_by_day" :args {:from "2026-02-28" :to "2026-12-31"}})))

; a leap day
(:date (tool/value {:server "fx" :tool "rates_on" :args {:date "2028-02-29"}}))

; a date that was computed
(let [day (.plusDays (LocalDate/of 2026 1 31) 1)]
  (:date (tool/value {:server "fx" :tool "rates_on" :args {:date (str day)}})))

; a date as a value
(:date (tool/value {:server "fx" :tool "rates_on" :args {:date (LocalDate/of 2026 6 1)}}))

; first and last day of a month
(let [from (LocalDate/of 2026 3 1) to (.minusDays (.plusMonths from 1) 1)]
  (count (:absences (tool/value {:server "hr" :tool "list_absences" :args {:from (str from) :to (str to)}}))))

; a date out of an instant
(let [{:keys [createdAt]} (tool/value {:server "tickets" :tool "get-ticket" :args {:ticketId 2}})]
  (:date (tool/value {:server "fx" :tool "rates_on" :args {:date (subs createdAt 0 10)}})))

; hours between two instants
(let [{:keys [createdAt dueAt]} (tool/value {:server "tickets" :tool "get-ticket" :args {:ticketId 1}})]
  (.toHours (Duration/between (Instant/parse createdAt) (Instant/parse dueAt))))

; orders of a month
(->> (tool/all {:server "shop" :tool "list_orders"})
     (filter #(clojure.string/starts-with? (:placed_at %) "2026-03")) count)

; the newest order
(->> (tool/all {:server "shop" :tool "list_orders"}) (sort-by :placed_at) last :id)

; a keyword as an enum value
(count (:customers (tool/value {:server "crm" :tool "list_customers" :args {:tier :premium :per_page 50}})))

; arguments with text keys
(count (:deals (tool/value {:server "crm" :tool "list_deals" :args {"stage" "won"}})))

; nil for an optional argument
(let [owner nil] (count (:deals (tool/value {:server "crm" :tool "list_deals" :args {:stage "won" :owner owner}}))))

; a tool without arguments, with an empty map
(:total (tool/value {:server "hr" :tool "headcount" :args {}}))

; a list of tags
(count (:products (tool/value {:server "shop" :tool "list_products" :args {:tags ["eco" "new"]}})))

; tags from a set
(count (:products (tool/value {:server "shop" :tool "list_products" :args {:tags (vec #{"sale"})}})))

; a double where a number is asked for
(count (:deals (tool/value {:server "crm" :tool "list_deals" :args {:min_amount 1.5e4}})))

; a large amount
(-> (tool/value {:server "fx" :tool "convert" :args {:amount 1000000 :from "EUR" :to "USD"}}) :result :currency)

; digits at both ends
(for [d [0 6]] (-> (tool/value {:server "fx" :tool "convert" :args {:amount 1 :from "EUR" :to "USD" :digits d}}) :result :value))

; an id out of a text
(let [id (parse-long (re-find #"\d+" "order 1009"))] (-> (tool/value {:server "shop" :tool "get_order" :args {:order_id id}}) :order :id))

; an id with leading zeros
(:id (tool/value {:server "crm" :tool "get_customer" :args {:customer_id (format "CUS-%04d" 7)}}))

; a note of exactly 80 characters
(count (:text (tool/value {:server "crm" :tool "add_note" :args {:customer_id "CUS-0001" :text (apply str (repeat 80 "x"))}})))

; a note of 80 letters that take two bytes each
(count (:text (tool/value {:server "crm" :tool "add_note" :args {:customer_id "CUS-0001" :text (apply str (repeat 80 "ä"))}})))

; an argument that the open schema does not name
(count (:employees (tool/value {:server "hr" :tool "list_employees" :args {:department "sales" :sort "name"}})))

; years at both ends
(map #(count (:holidays (tool/value {:server "fx" :tool "holidays" :args {:country "DE" :year %}}))) [2020 2030])

; a rounded average
(let [xs (map :total (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 50}})))]
  (/ (Math/round (* 100.0 (/ (reduce + xs) (count xs)))) 100.0))

; growth in percent
(let [[a b] (map :revenue (sort-by :date (:days (tool/value {:server "shop" :tool "sales_by_day" :args {:from "2026-03-01" :to "2026-03-31"}}))))]
  (format "%.1f%%" (* 100.0 (/ (- b a) a))))
