; pages have at most 100 orders
;! limit 100
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:limit 500}})]
  (if (:ok r) (count (:items (:value r))) (fail (:message r))))

; page numbers begin at 1
;! page 1
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:page 0}})]
  (if (:ok r) (:total (:value r)) (fail (:message r))))

; a computed page of 0
;! page 1
(defn page [n]
  (let [r (tool/call {:server "crm" :tool "list_customers" :args {:page n :per_page 10}})]
    (if (:ok r) (:customers (:value r)) (fail (:message r)))))
(count (mapcat page (range 3)))

; per_page is at most 50
;! per_page 50
(->> (tool/call {:server "crm" :tool "list_customers" :args {:per_page 1000}}) :value :customers count)

; ratings go from 1 to 5
;! min_rating 5
(let [r (tool/call {:server "shop" :tool "list_reviews" :args {:sku "AB-0002" :min_rating 6}})]
  (if (:ok r) (count (:reviews (:value r))) (fail (:message r))))

; a rating of zero
;! min_rating 1
(let [threshold 0
      r (tool/call {:server "shop" :tool "list_reviews" :args {:sku "AB-0002" :min_rating threshold}})]
  (if (:ok r) (count (:reviews (:value r))) (fail (:message r))))

; a parcel of 45 kg
;! weight_kg 30
(let [weights [12.5 45]]
  (for [w weights]
    (let [r (tool/call {:server "shop" :tool "shipping_quote" :args {:zip "10115" :weight_kg w}})]
      (if (:ok r) (-> r :value :quotes first :price) (fail (:message r))))))

; a parcel without weight
;! weight_kg 0
(let [r (tool/call {:server "shop" :tool "shipping_quote" :args {:zip "10115" :weight_kg 0}})]
  (if (:ok r) (:quotes (:value r)) (fail (:message r))))

; a zip of four digits
;! zip pattern
(let [r (tool/call {:server "shop" :tool "shipping_quote" :args {:zip "1011" :weight_kg 1}})]
  (if (:ok r) (:quotes (:value r)) (fail (:message r))))

; an article number in lower case
;! sku pattern
(let [r (tool/call {:server "shop" :tool "get_product" :args {:sku "ab-0001"}})]
  (if (:ok r) (:price (:value r)) (fail (:message r))))

; an article number with three digits, computed
;! sku pattern
(map (fn [n] (tool/call {:server "shop" :tool "stock_level" :args {:sku (str "AB-" (+ 100 n))}})) (range 2))

; customer ids have four digits
;! customer_id pattern
(let [r (tool/call {:server "crm" :tool "get_customer" :args {:customer_id "CUS-12"}})]
  (if (:ok r) (:name (:value r)) (fail (:message r))))

; a country by its name
;! country pattern
(let [r (tool/call {:server "crm" :tool "list_customers" :args {:country "Germany"}})]
  (if (:ok r) (:total (:value r)) (fail (:message r))))

; a search of one letter
;! query 2
(let [r (tool/call {:server "crm" :tool "search_customers" :args {:query "L"}})]
  (if (:ok r) (count (:matches (:value r))) (fail (:message r))))

; an empty search
;! query
(let [q (clojure.string/trim "  ")
      r (tool/call {:server "wiki" :tool "search_pages" :args {:query q}})]
  (if (:ok r) (:value r) (fail (:message r))))

; two letters where three are needed
;! q 3
(let [r (tool/call {:server "tickets" :tool "search-tickets" :args {:q "ap"}})]
  (if (:ok r) (count (:results (:value r))) (fail (:message r))))

; a note that is longer than 80 characters
;! text 80
(tool/call {:server "crm" :tool "add_note"
            :args {:customer_id "CUS-0001" :text (apply str (repeat 30 "call again "))}})

; an empty note
;! text
(tool/call {:server "crm" :tool "add_note" :args {:customer_id "CUS-0001" :text ""}})

; a negative amount
;! min_amount 0
(let [r (tool/call {:server "crm" :tool "list_deals" :args {:min_amount -1}})]
  (if (:ok r) (count (:deals (:value r))) (fail (:message r))))

; a refund of nothing
;! amount 0
(let [r (tool/call {:server "shop" :tool "create_refund" :args {:order_id 1003 :amount 0 :reason "late"}})]
  (if (:ok r) (:refund_id (:value r)) (fail (:message r))))

; a refund in thousandths
;! amount 0.01
(let [total 10.0
      r (tool/call {:server "shop" :tool "create_refund" :args {:order_id 1003 :amount (/ total 16) :reason "late"}})]
  (if (:ok r) (:refund_id (:value r)) (fail (:message r))))

; a price of zero as the upper bound
;! max_price 0
(let [r (tool/call {:server "shop" :tool "list_products" :args {:max_price 0}})]
  (if (:ok r) (count (:products (:value r))) (fail (:message r))))

; four tags where three are allowed
;! tags 3
(let [r (tool/call {:server "shop" :tool "list_products" :args {:tags ["new" "sale" "eco" "bulky"]}})]
  (if (:ok r) (count (:products (:value r))) (fail (:message r))))

; no tags at all
;! tags 1
(let [wanted (filter #{"old"} ["new" "sale"])
      r (tool/call {:server "shop" :tool "list_products" :args {:tags wanted}})]
  (if (:ok r) (count (:products (:value r))) (fail (:message r))))

; the same tag twice
;! tags unique
(let [r (tool/call {:server "shop" :tool "list_products" :args {:tags ["sale" "sale"]}})]
  (if (:ok r) (count (:products (:value r))) (fail (:message r))))

; a date with a month 13
;! from date
(let [r (tool/call {:server "shop" :tool "sales_by_day" :args {:from "2026-13-01" :to "2026-12-31"}})]
  (if (:ok r) (count (:days (:value r))) (fail (:message r))))

; a date as people write it
;! from date
(let [r (tool/call {:server "hr" :tool "list_absences" :args {:from "01.03.2026" :to "2026-03-31"}})]
  (if (:ok r) (count (:absences (:value r))) (fail (:message r))))

; an instant where a date is asked for
;! date
(let [r (tool/call {:server "fx" :tool "rates_on" :args {:date "2026-02-02T00:00:00Z"}})]
  (if (:ok r) (get-in r [:value :rates "USD"]) (fail (:message r))))

; the 30th of February, computed
;! to date
(let [month "02"
      r (tool/call {:server "shop" :tool "sales_by_day" :args {:from (str "2026-" month "-01") :to (str "2026-" month "-30")}})]
  (if (:ok r) (count (:days (:value r))) (fail (:message r))))

; a currency in lower case
;! base pattern
(let [r (tool/call {:server "fx" :tool "rate" :args {:base "eur" :quote "USD"}})]
  (if (:ok r) (:rate (:value r)) (fail (:message r))))

; a currency of two letters
;! to 3
(let [r (tool/call {:server "fx" :tool "convert" :args {:amount 5 :from "EUR" :to "US"}})]
  (if (:ok r) (-> r :value :result :value) (fail (:message r))))

; more than a million
;! amount 1000000
(let [r (tool/call {:server "fx" :tool "convert" :args {:amount (* 2000 1000) :from "EUR" :to "USD"}})]
  (if (:ok r) (-> r :value :result :value) (fail (:message r))))

; a year of the last century
;! year 2020
(let [r (tool/call {:server "fx" :tool "holidays" :args {:country "DE" :year 1999}})]
  (if (:ok r) (count (:holidays (:value r))) (fail (:message r))))

; seven digits
;! digits 6
(let [r (tool/call {:server "fx" :tool "convert" :args {:amount 1 :from "EUR" :to "USD" :digits 7}})]
  (if (:ok r) (:result (:value r)) (fail (:message r))))

; a chart ten levels deep
;! depth 4
(let [r (tool/call {:server "hr" :tool "org_chart" :args {:root_id 1 :depth 10}})]
  (if (:ok r) (count (:reports (:value r))) (fail (:message r))))

; a month with one digit
;! month pattern
(let [r (tool/call {:server "hr" :tool "payroll_summary" :args {:month "2026-3"}})]
  (if (:ok r) (:net (:value r)) (fail (:message r))))

; changes of a year
;! days 30
(let [r (tool/call {:server "wiki" :tool "recent_changes" :args {:days 365}})]
  (if (:ok r) (count (:value r)) (fail (:message r))))

; priority 6
;! priority 5
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:priority 6}})]
  (if (:ok r) (count (:data (:value r))) (fail (:message r))))

; leave of 60 days
;! days 30
(let [r (tool/call {:server "hr" :tool "request_leave" :args {:employee_id 4 :from "2026-08-01" :days 60}})]
  (if (:ok r) (:status (:value r)) (fail (:message r))))

; an id twice
;! ids unique 4
(let [r (tool/call {:server "hr" :tool "get_employees" :args {:ids [4 5 4]}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; computed ids with one twice
;! ids unique
(let [r (tool/call {:server "hr" :tool "get_employees" :args {:ids (map #(quot % 2) (range 2 8))}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; a part that is not in the list of parts
;! parts[1] contract skills
(let [r (tool/call {:server "hr" :tool "get_employees" :args {:ids [4] :parts ["contract" "skill"]}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; an order that is not in its list, inside of an object
;! options.order asc desc
(let [r (tool/call {:server "hr" :tool "get_employees" :args {:ids [4] :options {:order "up"}}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))
