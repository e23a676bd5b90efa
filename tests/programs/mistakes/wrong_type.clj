; the id of a ticket is an integer, not a text with letters
;! ticketId integer
(let [r (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId "T-12"}})]
  (if (:ok r) (:subject (:value r)) (fail (:message r))))

; an order id as text
;! order_id integer
(let [r (tool/call {:server "shop" :tool "get_order" :args {:order_id "1003"}})]
  (if (:ok r) (-> r :value :order :total) (fail (:message r))))

; an employee by name where an id is asked for
;! id integer
(let [r (tool/call {:server "hr" :tool "get_employee" :args {:id "Ada Lum"}})]
  (if (:ok r) (:band (:value r)) (fail (:message r))))

; half a page
;! page integer
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:page (/ 3 2)}})]
  (if (:ok r) (count (:items (:value r))) (fail (:message r))))

; a limit as text
;! limit integer
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:limit "50"}})]
  (if (:ok r) (count (:items (:value r))) (fail (:message r))))

; a keyword that is not one of the values
;! tier gold
(let [r (tool/call {:server "crm" :tool "list_customers" :args {:tier :gold}})]
  (if (:ok r) (:total (:value r)) (fail (:message r))))

; a value of the enum in upper case
;! status PAID
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:status "PAID"}})]
  (if (:ok r) (:total (:value r)) (fail (:message r))))

; an enum value of another tool
;! stage closed
(let [stage "closed"
      r (tool/call {:server "crm" :tool "list_deals" :args {:stage stage}})]
  (if (:ok r) (count (:deals (:value r))) (fail (:message r))))

; a list where one value is asked for
;! status
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:status ["open" "paid"]}})]
  (if (:ok r) (:total (:value r)) (fail (:message r))))

; one value where a list is asked for
;! tags array
(let [r (tool/call {:server "shop" :tool "list_products" :args {:tags "eco"}})]
  (if (:ok r) (count (:products (:value r))) (fail (:message r))))

; numbers in a list of texts
;! tags string
(let [r (tool/call {:server "shop" :tool "list_products" :args {:tags [1 2]}})]
  (if (:ok r) (count (:products (:value r))) (fail (:message r))))

; a text where a boolean is asked for
;! pinned boolean
(let [r (tool/call {:server "crm" :tool "add_note" :args {:customer_id "CUS-0002" :text "hi" :pinned "yes"}})]
  (if (:ok r) (:note_id (:value r)) (fail (:message r))))

; a number where a boolean is asked for
;! express boolean
(let [r (tool/call {:server "shop" :tool "shipping_quote" :args {:zip "10115" :weight_kg 1 :express 1}})]
  (if (:ok r) (:quotes (:value r)) (fail (:message r))))

; a zip as a number
;! zip string
(let [r (tool/call {:server "shop" :tool "shipping_quote" :args {:zip 10115 :weight_kg 2}})]
  (if (:ok r) (-> r :value :quotes first :carrier) (fail (:message r))))

; a weight with its unit
;! weight_kg number
(let [r (tool/call {:server "shop" :tool "shipping_quote" :args {:zip "10115" :weight_kg "2 kg"}})]
  (if (:ok r) (:quotes (:value r)) (fail (:message r))))

; a map of the whole customer where its id is asked for
;! customer_id string
(let [r (tool/call {:server "crm" :tool "search_customers" :args {:query "Bank"}})
      customer (if (:ok r) (first (:matches (:value r))) (fail (:message r)))
      health (tool/call {:server "crm" :tool "customer_health" :args {:customer_id customer}})]
  (if (:ok health) (:score (:value health)) (fail (:message health))))

; nil for a required argument
;! customer_id
(let [ids {"Bank" "CUS-0007"}
      r (tool/call {:server "crm" :tool "get_customer" :args {:customer_id (ids "bank")}})]
  (if (:ok r) (:name (:value r)) (fail (:message r))))

; the arguments are a vector
;! args map
(tool/call {:server "hr" :tool "get_employee" :args [4]})

; the argument itself, without a map
;! args
(tool/call {:server "wiki" :tool "read_page" :args "p1"})

; arithmetic on a text of the answer
;! number
(let [r (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId 2}})]
  (if (:ok r) (+ 86400 (:createdAt (:value r))) (fail (:message r))))

; comparison of a text with a number
;! string integer different kinds
(let [r (tool/call {:server "hr" :tool "list_employees" :args {:department "finance"}})]
  (if (:ok r) (count (filter #(> (:hired %) 2020) (:employees (:value r)))) (fail (:message r))))

; split of a list
;! string
(let [r (tool/call {:server "hr" :tool "get_employee" :args {:id 11}})]
  (if (:ok r) (clojure.string/split (:skills (:value r)) #",") (fail (:message r))))

; a text is mapped over as if it were lines
;! title
(let [r (tool/call {:server "wiki" :tool "search_pages" :args {:query "Glossary"}})]
  (if (:ok r) (map :title (:value r)) (fail (:message r))))

; parse-long of a number
;? parse-long gives nil for what is not the text of an integer
(let [r (tool/call {:server "shop" :tool "get_order" :args {:order_id 1002}})]
  (if (:ok r) (parse-long (-> r :value :order :id)) (fail (:message r))))

; a number is called like a function
;! not_callable
(let [r (tool/call {:server "hr" :tool "headcount"})]
  (if (:ok r) (let [total (:total (:value r))] (total)) (fail (:message r))))

; a sum of maps
;! number
(let [r (tool/call {:server "crm" :tool "list_deals" :args {:owner "otto"}})]
  (if (:ok r) (apply + (:deals (:value r))) (fail (:message r))))

; upper-case of a nested object
;? upper-case takes the text of any value, as Clojure does
(let [r (tool/call {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0003"}})]
  (if (:ok r) (clojure.string/upper-case (:address (:value r))) (fail (:message r))))

; an instant parsed from a number
;! Instant/parse
(let [r (tool/call {:server "shop" :tool "get_order" :args {:order_id 1009}})]
  (if (:ok r) (Instant/parse (-> r :value :order :total)) (fail (:message r))))

; ids of orders are numbers, and no text equals them
;? equality of a number with a text is a valid question, and its answer is false
(count (filter #(= "1005" (:id %)) (tool/all {:server "shop" :tool "list_orders"})))

; a number in place of a date
;! from string
(let [r (tool/call {:server "shop" :tool "sales_by_day" :args {:from 20260101 :to 20260131}})]
  (if (:ok r) (count (:days (:value r))) (fail (:message r))))

; a parsed date is data, and has no days of its own
;! from
(let [day (LocalDate/of 2026 2 1)
      r (tool/call {:server "hr" :tool "list_absences" :args {:from {:day day} :to "2026-03-01"}})]
  (if (:ok r) (count (:absences (:value r))) (fail (:message r))))

; a set where an integer is asked for
;! priority integer
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:priority #{1 2}}})]
  (if (:ok r) (count (:data (:value r))) (fail (:message r))))

; a function as an argument
;! author
(tool/call {:server "wiki" :tool "recent_changes" :args {:author (fn [a] (= a "maya"))}})

; a missing argument
;! quote
(let [r (tool/call {:server "fx" :tool "rate" :args {:base "EUR"}})]
  (if (:ok r) (:rate (:value r)) (fail (:message r))))

; an argument that the tool does not have
;! currency
(let [r (tool/call {:server "fx" :tool "rates_on" :args {:date "2026-02-02" :currency "USD"}})]
  (if (:ok r) (:rates (:value r)) (fail (:message r))))

; no arguments where two are required
;! amount
(tool/call {:server "fx" :tool "convert"})

; an argument under a near name
;! page_size limit
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:page_size 10}})]
  (if (:ok r) (count (:items (:value r))) (fail (:message r))))

; an argument of an open schema is passed on, misspelled
;! departement department
(let [r (tool/call {:server "hr" :tool "list_employees" :args {:departement "sales"}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; an employee's whole id list
;! employee_id
(let [r (tool/call {:server "hr" :tool "list_absences" :args {:from "2026-01-01" :to "2026-12-31" :employee_id [1 2 3]}})]
  (if (:ok r) (count (:absences (:value r))) (fail (:message r))))

; texts in a list of integers
;! ids[0] integer
(let [r (tool/call {:server "hr" :tool "get_employees" :args {:ids ["3" "4"]}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; computed texts in a list of integers
;! ids[0] integer
(let [r (tool/call {:server "hr" :tool "get_employees" :args {:ids (map str [3 4])}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; a fraction in a list of integers
;! ids[1] integer
(let [r (tool/call {:server "hr" :tool "get_employees" :args {:ids [3 4.5]}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; records in a list of integers
;! ids[0] integer
(let [all (:employees (:value (tool/call {:server "hr" :tool "list_employees" :args {:limit 5}})))
      r (tool/call {:server "hr" :tool "get_employees" :args {:ids all}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; a text inside of an object
;! options.since integer
(let [r (tool/call {:server "hr" :tool "get_employees" :args {:ids [3] :options {:since "2024"}}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; the entries of a result are counted
;! count :value
(count (tool/call {:server "hr" :tool "list_employees" :args {:department "sales"}}))

; the entries of a named result are counted
;! count :value
(let [employees (tool/call {:server "hr" :tool "list_employees"})] (count employees))

; a result is asked whether it is empty
;! empty? :value
(if (empty? (tool/call {:server "hr" :tool "list_employees" :args {:band "Z9"}})) "nobody" "somebody")

; the entries of a result are counted behind a thread
;! count :value
(-> {:server "hr" :tool "list_employees" :args {:department "sales"}} tool/call count)

; a date is compared with a number
;! comparison different kinds
(count (filter #(> (:placed_at %) 2024) (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 5}}))))
