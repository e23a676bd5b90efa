; the list of customers is under :customers, not :data
;! data customers
(let [r (tool/call {:server "crm" :tool "list_customers" :args {:per_page 50}})]
  (if (:ok r)
    (map :name (:data (:value r)))
    (fail (:message r))))

; orders are under :items, not :orders
;! orders items
(let [{:keys [ok value message]} (tool/call {:server "shop" :tool "list_orders" :args {:status "paid"}})]
  (when-not ok (fail message))
  (->> (:orders value) (map :total) (reduce + 0)))

; a customer has an address with a city, and no city of its own
;! city
(defn unwrap [r] (if (:ok r) (:value r) (fail (:message r))))
(->> (unwrap (tool/call {:server "crm" :tool "list_customers" :args {:tier "premium"}}))
     :customers
     (map :city)
     frequencies)

; deals have :amount, not :value
;! list_deals value
(let [r (tool/call {:server "crm" :tool "list_deals" :args {:stage "won"}})]
  (if (:ok r)
    (->> r :value :deals (filter #(= "maya" (:owner %))) (map :value))
    []))

; the misspelled :ammount is nil in every deal
;! ammount amount
(let [r (tool/call {:server "crm" :tool "list_deals"})
      deals (if (:ok r) (get-in r [:value :deals]) (fail (:message r)))]
  (reduce (fn [total deal] (+ total (or (:ammount deal) 0))) 0 deals))

; employees are hired, they have no :start_date
;! start_date
(let [r (tool/call {:server "hr" :tool "list_employees" :args {:department "sales"}})]
  (if-not (:ok r)
    (fail (:message r))
    (sort-by :start_date (map #(select-keys % [:name :start_date]) (:employees (:value r))))))

; destructuring of a key that deals do not have
;! client_id customer_id
(let [r (tool/call {:server "crm" :tool "list_deals" :args {:stage "lead"}})]
  (if (:ok r)
    (for [{:keys [title client_id]} (:deals (:value r))] [title client_id])
    (:message r)))

; destructuring in a helper's parameters
;! headcounts by_department
(defn largest [{:keys [headcounts]}]
  (first (sort-by val > headcounts)))
(let [r (tool/call {:server "hr" :tool "headcount"})]
  (if (:ok r) (largest (:value r)) (fail (:message r))))

; a group by a key that no ticket has
;! status state
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:limit 50}})]
  (if (:ok r)
    (into {} (map (fn [[k v]] [k (count v)]) (group-by :status (get-in r [:value :data]))))
    (fail (:message r))))

; the number of matches is (count …): there is no :total_count
;! total_count
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:state "open"}})]
  (if (:ok r) {:open (get-in r [:value :meta :total_count])} {:error (:reason r)}))

; camel case where the schema has an underscore
;! nextCursor next_cursor
(loop [cursor nil seen 0]
  (let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:cursor cursor :limit 50}})]
    (if-not (:ok r)
      (fail (:message r))
      (let [seen (+ seen (count (:data (:value r))))
            following (get-in r [:value :meta :nextCursor])]
        (if following (recur following seen) seen)))))

; underscores where the schema has camel case
;! created_at createdAt
(let [r (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId 4}})]
  (if (:ok r)
    (let [ticket (:value r)] (str (:subject ticket) " since " (:created_at ticket)))
    (:message r)))

; a threaded key of the rate
;! exchange_rate rate
(let [r (tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote "USD"}})]
  (when-not (:ok r) (fail (:message r)))
  (some-> r :value :exchange_rate (* 100)))

; convert nests its amount under :result
;! amount
(let [r (tool/call {:server "fx" :tool "convert" :args {:amount 100 :from "EUR" :to "USD"}})]
  (if (:ok r)
    (str "You get " (:amount (:value r)))
    (fail (:message r))))

; holidays have a :date, and no :day
;! day date
(let [r (tool/call {:server "fx" :tool "holidays" :args {:country "DE" :year 2026}})]
  (if (:ok r) (mapv :day (-> r :value :holidays)) (fail (:message r))))

; contacts have one :name
;! first_name
(let [r (tool/call {:server "crm" :tool "list_contacts" :args {:customer_id "CUS-0001"}})]
  (if (:ok r)
    (mapv (fn [c] (str (:first_name c) " <" (:email c) ">")) (get-in r [:value :contacts]))
    (fail (:message r))))

; a where with a key that is not there keeps nothing
;! category_name category
(let [r (tool/call {:server "shop" :tool "list_products"})
      products (if (:ok r) (:products (:value r)) (fail (:message r)))]
  (count (filter (fn [p] (= "office" (:category_name p))) products)))

; a set of absences by a key of employees
;! employeeId employee_id
(let [r (tool/call {:server "hr" :tool "list_absences" :args {:from "2026-01-01" :to "2026-06-30" :type "sick"}})]
  (if (:ok r) (count (set (map :employeeId (:absences (:value r))))) (fail (:message r))))

; the chart has :reports, not :children
;! children reports
(defn size [node] (reduce + 1 (map size (:children node))))
(let [r (tool/call {:server "hr" :tool "org_chart" :args {:root_id 1 :depth 3}})]
  (if (:ok r) (size (:value r)) (fail (:message r))))

; order lines have :quantity, not :qty
;! qty quantity
(let [r (tool/call {:server "shop" :tool "get_order" :args {:order_id 1003}})]
  (if (:ok r)
    (reduce (fn [n line] (+ n (get line :qty 0))) 0 (-> r :value :order :lines))
    (fail (:message r))))

; get with a string key that is not there
;! unitPrice unit_price
(let [r (tool/call {:server "shop" :tool "get_order" :args {:order_id 1010}})]
  (if (:ok r)
    (apply max (map #(get % "unitPrice" 0) (get-in r [:value "order" "lines"])))
    (fail (:message r))))

; reviews have a :rating, not :stars
;! stars
(let [r (tool/call {:server "shop" :tool "list_reviews" :args {:sku "AB-0007"}})
      reviews (if (:ok r) (-> r :value :reviews) (fail (:message r)))
      rated (keep :stars reviews)]
  (if (seq rated) (/ (reduce + rated) (count rated)) "no ratings"))

; agents are :online, not :available
;! available
(let [r (tool/call {:server "tickets" :tool "list-agents"})]
  (if (:ok r) (count (filter :available (:value r))) (fail (:message r))))

; comments have a :body, not :text
;! text body
(let [r (tool/call {:server "tickets" :tool "list-comments" :args {:ticketId 5}})]
  (if (:ok r) (clojure.string/join "; " (map :text (:value r))) (fail (:message r))))

; :by_priority is not among the counts
;! by_priority by_state
(let [r (tool/call {:server "tickets" :tool "ticket-stats"})]
  (if (:ok r) (get (:by_priority (:value r)) "1" 0) (fail (:message r))))

; a state that the counts do not have
;! resolved
(let [r (tool/call {:server "tickets" :tool "ticket-stats"})]
  (if (:ok r) (get-in r [:value :by_state :resolved] 0) (fail (:message r))))

; quotes have :price, and the cheapest by :cost is any of them
;! cost
(let [r (tool/call {:server "shop" :tool "shipping_quote" :args {:zip "10115" :weight_kg 2.5}})]
  (if (:ok r)
    (:carrier (first (sort-by :cost (:quotes (:value r)))))
    (fail (:message r))))

; the rows of sales have :revenue, not :sales
;! sales revenue
(let [r (tool/call {:server "shop" :tool "sales_by_day" :args {:from "2026-01-01" :to "2026-12-31"}})]
  (if (:ok r)
    (->> r :value :days (map (juxt :date :sales)) (take 3))
    (fail (:message r))))

; :payload instead of :value, in a result
;! payload
(let [r (tool/call {:server "hr" :tool "headcount"})]
  (if (:ok r) (:payload r) (fail (:message r))))

; :result instead of :value, behind a check
;! result
(let [r (tool/call {:server "crm" :tool "search_customers" :args {:query "Labs"}})]
  (when (:ok r) (count (get-in r [:result :matches]))))

; :error instead of :message
;! error message
(let [r (tool/call {:server "hr" :tool "payroll_summary" :args {:month "2026-02"}})]
  (if (:ok r) (:gross (:value r)) (str "payroll failed: " (:error r))))

; the note has :note_id, and no :id
;! id note_id
(let [r (tool/call {:server "crm" :tool "add_note" :args {:customer_id "CUS-0003" :text "called back"}})]
  (if (:ok r) {:created (:id (:value r))} (fail (:message r))))

; a deal with a key of customers
;! country
(let [r (tool/call {:server "crm" :tool "get_deal" :args {:deal_id "DEAL-007"}})]
  (if (:ok r) (get (:value r) :country "unknown") (fail (:message r))))

; update of a counter by a key that is always nil
;! vet author
(let [r (tool/call {:server "tickets" :tool "list-comments" :args {:ticketId 12}})]
  (if (:ok r)
    (reduce (fn [m c] (update m (:vet c) (fnil inc 0))) {} (:value r))
    (fail (:message r))))

; sum over a key that products do not have, and nils fall out with keep
;! weight
(let [r (tool/call {:server "shop" :tool "list_products" :args {:category "kitchen"}})]
  (if (:ok r) (reduce + 0 (keep :weight (:products (:value r)))) (fail (:message r))))

; an index by a key that is not there has one entry
;! product_id sku
(let [r (tool/call {:server "shop" :tool "list_products"})
      by-id (into {} (map (juxt :product_id :name)) (if (:ok r) (:products (:value r)) (fail (:message r))))]
  (count by-id))

; :when with a key that is not there
;! is_verified verified
(let [r (tool/call {:server "shop" :tool "list_reviews" :args {:sku "AB-0002"}})]
  (if (:ok r)
    (for [review (:reviews (:value r)) :when (:is_verified review)] (:title review))
    (fail (:message r))))

; a key of pages that have no declared schema
;! updated
(let [r (tool/call {:server "wiki" :tool "page_info" :args {:page_id "p2"}})]
  (if (:ok r) {:last (:updated (:value r))} (fail (:message r))))

; a list of changes without a declared schema
;! modified
(let [r (tool/call {:server "wiki" :tool "recent_changes" :args {:days 7}})]
  (if (:ok r) (vec (take 2 (sort-by :modified (:value r)))) (fail (:message r))))

; a wrong key in update
;! totl total
(map #(update % :totl inc) (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 5}})))

; dissoc of a key that no order has
;! custmer_id customer_id
(map #(dissoc % :custmer_id) (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 5}})))

; a wrong key after keywordize-keys
;! statuss status
(let [rows (clojure.walk/keywordize-keys (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 5}})))]
  (frequencies (map :statuss rows)))

; a wrong key in rows that were changed by assoc
;! amount
(->> (tool/value {:server "shop" :tool "list_orders" :args {:limit 5}}) :items
     (map #(assoc % :seen true))
     (map :amount))

; contains? with a wrong key
;! statuss status
(filter #(contains? % :statuss) (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 5}})))

; rename-keys with a wrong key
;! statuss status
(map #(clojure.set/rename-keys % {:statuss :state}) (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 5}})))
