; the value itself is an object, not the list
;! list_customers name
(let [r (tool/call {:server "crm" :tool "list_customers"})]
  (if (:ok r) (map :name (:value r)) (fail (:message r))))

; the list of comments is the value itself
;! comments
(let [r (tool/call {:server "tickets" :tool "list-comments" :args {:ticketId 3}})]
  (if (:ok r) (count (:comments (:value r))) (fail (:message r))))

; one order is wrapped under :order
;! total order
(let [r (tool/call {:server "shop" :tool "get_order" :args {:order_id 1001}})]
  (if (:ok r) {:total (:total (:value r))} (fail (:message r))))

; the result is taken for the value
;! value
(map :name (:customers (tool/call {:server "crm" :tool "list_customers"})))

; the result is taken for a list
;! list_employees
(count (tool/call {:server "hr" :tool "list_employees"}))

; the city is under :shipping :address
;! city
(let [r (tool/call {:server "shop" :tool "get_order" :args {:order_id 1004}})]
  (if (:ok r) (get-in r [:value :order :shipping :city]) (fail (:message r))))

; a list has no :sku: an item must be taken first
;! :lines sku
(let [r (tool/call {:server "shop" :tool "get_order" :args {:order_id 1005}})]
  (if (:ok r) (get-in r [:value :order :lines :sku]) (fail (:message r))))

; matches are maps, and the ids are inside
;! customers
(let [r (tool/call {:server "crm" :tool "search_customers" :args {:query "Bank"}})]
  (if (:ok r) (mapv :id (get-in r [:value :customers])) (fail (:message r))))

; :value twice
;! fx/rate value
(let [r (tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote "GBP"}})]
  (if (:ok r) (-> r :value :value :rate) (fail (:message r))))

; a path without :value
;! tool/call :address
(let [r (tool/call {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0001"}})]
  (if (:ok r) (get-in r [:address :city]) (fail (:message r))))

; content as MCP has it, not as programs see it
;! content
(let [r (tool/call {:server "hr" :tool "policy_text" :args {:name "travel"}})]
  (if (:ok r) (-> r :content first :text) (fail (:message r))))

; structuredContent is not a key of results
;! structuredContent
(let [r (tool/call {:server "hr" :tool "headcount"})]
  (if (:ok r) (-> r :structuredContent :total) (fail (:message r))))

; the rates are under :rates
;! USD rates
(let [r (tool/call {:server "fx" :tool "rates_on" :args {:date "2026-02-02"}})]
  (if (:ok r) (:USD (:value r)) (fail (:message r))))

; vals of the whole answer instead of the rates
;! +
(let [r (tool/call {:server "fx" :tool "rates_on" :args {:date "2026-02-03"}})]
  (if (:ok r) (reduce + (vals (:value r))) (fail (:message r))))

; the requester's customer is inside :requester
;! customerId
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:limit 50}})]
  (if (:ok r) (frequencies (map :customerId (-> r :value :data))) (fail (:message r))))

; meta is beside data, not inside
;! meta
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:limit 10}})]
  (if (:ok r) (get-in r [:value :data :meta :count]) (fail (:message r))))

; next_cursor is inside meta
;! next_cursor
(loop [cursor nil n 0]
  (let [{:keys [ok value message]} (tool/call {:server "tickets" :tool "list-tickets" :args {:cursor cursor}})]
    (if-not ok
      (fail message)
      (if-let [c (:next_cursor value)]
        (recur c (+ n (count (:data value))))
        (+ n (count (:data value)))))))

; a department's count is inside :by_department
;! engineering
(let [r (tool/call {:server "hr" :tool "headcount"})]
  (if (:ok r) (get-in r [:value "engineering"]) (fail (:message r))))

; reports of reports: a list has no :reports
;! reports
(let [r (tool/call {:server "hr" :tool "org_chart" :args {:root_id 1}})]
  (if (:ok r) (count (get-in r [:value :reports :reports])) (fail (:message r))))

; the amount is in an object
;! number map
(let [r (tool/call {:server "fx" :tool "convert" :args {:amount 20 :from "EUR" :to "CHF"}})]
  (if (:ok r) (* 2 (-> r :value :result)) (fail (:message r))))

; nested destructuring that skips a level
;! customer
(let [{:keys [ok] {{:keys [name]} :customer} :value :as r}
      (tool/call {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0006"}})]
  (if ok (str "Dear " name) (fail (:message r))))

; first of an object
;! first map
(let [r (tool/call {:server "crm" :tool "list_deals" :args {:owner "noor"}})]
  (if (:ok r) (:title (first (:value r))) (fail (:message r))))

; a filter over an object with one list
;! list_products category
(let [r (tool/call {:server "shop" :tool "list_products"})]
  (if (:ok r) (count (filter #(= "living" (:category %)) (:value r))) (fail (:message r))))

; a helper that skips :quotes
;! shipping_quote price
(defn cheapest [quotes] (:price (first (sort-by :price quotes))))
(let [r (tool/call {:server "shop" :tool "shipping_quote" :args {:zip "20095" :weight_kg 1}})]
  (if (:ok r) (cheapest (:value r)) (fail (:message r))))

; the days are under :days, and a reduce over the object gives nil sums
;! revenue
(let [r (tool/call {:server "shop" :tool "sales_by_day" :args {:from "2026-03-01" :to "2026-03-31"}})]
  (if (:ok r) (reduce (fn [sum day] (+ sum (or (:revenue day) 0))) 0 (:value r)) (fail (:message r))))

; the text of a policy is the value: it has no :text
;! string :text
(let [r (tool/call {:server "hr" :tool "policy_text" :args {:name "travel"}})]
  (if (:ok r) (:text (:value r)) (fail (:message r))))

; lines of text are taken for maps
;! string :title
(let [r (tool/call {:server "wiki" :tool "search_pages" :args {:query "guide"}})]
  (if (:ok r) (map :title (clojure.string/split-lines (:value r))) (fail (:message r))))

; an index into a map
;! nth
(let [r (tool/call {:server "crm" :tool "list_contacts" :args {:customer_id "CUS-0004"}})]
  (if (:ok r) (nth (:value r) 0) (fail (:message r))))

; an array index as a key of an object
;! headcount 0
(let [r (tool/call {:server "hr" :tool "headcount"})]
  (if (:ok r) (get-in r [:value 0]) (fail (:message r))))

; the author is not inside a page of its own
;! page
(let [r (tool/call {:server "wiki" :tool "page_info" :args {:page_id "p7"}})]
  (if (:ok r) (-> r :value :page :author) (fail (:message r))))

; skills are texts, not maps with a name
;! string :name
(let [r (tool/call {:server "hr" :tool "get_employee" :args {:id 9}})]
  (if (:ok r) (map :name (:skills (:value r))) (fail (:message r))))

; mapcat over a list of objects under a key of one level too high
;! reviews
(let [rs (pmap (fn [sku] (tool/call {:server "shop" :tool "list_reviews" :args {:sku sku}})) ["AB-0001" "AB-0002" "AB-0003"])]
  (if (every? :ok rs) (count (mapcat :reviews rs)) (fail "no reviews")))

; labels are a list of texts: keys of it are nil
;! labels bug
(let [r (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId 21}})]
  (if (:ok r) (if (get-in r [:value :labels :bug]) "a bug" "something else") (fail (:message r))))

; total is beside the items, the path goes through them
;! total
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:limit 1}})]
  (if (:ok r) (-> r :value :items :total) (fail (:message r))))

; keys of the wrapper are taken for data
;! list_absences days
(let [r (tool/call {:server "hr" :tool "list_absences" :args {:from "2026-01-01" :to "2026-12-31"}})]
  (if (:ok r) (apply max (map #(:days % 0) (:value r))) (fail (:message r))))

; as a REST client would: body and data
;! body
(let [r (tool/call {:server "tickets" :tool "list-agents"})]
  (if (:ok r) (count (get-in r [:body :data])) (fail (:message r))))

; update-in below a key that is not there makes a new entry
;! deals crm/get_deal
(let [r (tool/call {:server "crm" :tool "get_deal" :args {:deal_id "DEAL-010"}})]
  (if (:ok r) (-> (:value r) (update-in [:deals :amount] (fnil inc 0)) :deals) (fail (:message r))))

; the counts are under :counts
;! p1 counts
(let [r (tool/call {:server "wiki" :tool "word_counts"})]
  (if (:ok r) (get (:value r) "p1" 0) (fail (:message r))))
