; orders with and without a coupon
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:limit 50}})]
  (if (:ok r) (frequencies (map #(or (:coupon %) "none") (-> r :value :items))) (fail (:message r))))

; a phone that some customers do not have
(count (keep :phone (tool/all {:server "crm" :tool "list_customers"})))

; destructuring with :or
(let [{:keys [discontinued price] :or {discontinued false}} (tool/value {:server "shop" :tool "get_product" :args {:sku "AB-0004"}})]
  [price discontinued])

; a manager may be nil
(let [r (tool/call {:server "hr" :tool "list_employees" :args {:department "engineering"}})]
  (if (:ok r) (count (filter #(nil? (:manager_id %)) (-> r :value :employees))) (fail (:message r))))

; get with a default
(let [r (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId 5}})]
  (if (:ok r) (get (:value r) :dueAt "no due date") (fail (:message r))))

; get-in with a default
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:limit 10}})]
  (if (:ok r) (map #(get-in % [:dueAt] "open end") (-> r :value :data)) (fail (:message r))))

; contains?
(let [days (:holidays (tool/value {:server "fx" :tool "holidays" :args {:country "DE" :year 2026}}))]
  (map :date (filter #(contains? % :half_day) days)))

; half days through a truthy key
(let [r (tool/call {:server "fx" :tool "holidays" :args {:country "DE" :year 2026}})]
  (if (:ok r) (mapv :name (filter :half_day (-> r :value :holidays))) (fail (:message r))))

; none of the customers of one page may have a phone, and that is an answer
(let [{:keys [customers]} (tool/value {:server "crm" :tool "list_customers" :args {:per_page 1}})]
  {:phones (keep :phone customers)})

; assignees, nil for nobody
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:state "open" :limit 50}})]
  (if (:ok r) (into {} (map (fn [[k v]] [(or k "nobody") (count v)]) (group-by :assigneeId (-> r :value :data)))) (fail (:message r))))

; some-> through what may be missing
(let [r (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId 7}})]
  (if (:ok r) (or (some-> r :value :dueAt (subs 0 10)) "none") (fail (:message r))))

; when-let over an optional key
(let [c (tool/value {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0003"}})]
  (if-let [phone (:phone c)] (str "call " phone) (str "write to " (:email c))))

; tags may be missing or empty
(let [r (tool/call {:server "shop" :tool "list_products"})]
  (if (:ok r)
    (->> r :value :products (filter #(some #{"eco"} (:tags %))) count)
    (fail (:message r))))

; a key that the schema leaves open and some rows have
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:limit 30}})]
  (if (:ok r) (vec (keep (fn [{:keys [id coupon]}] (when coupon [id coupon])) (:items (:value r)))) (fail (:message r))))

; fnil over a missing counter
(let [r (tool/call {:server "tickets" :tool "list-comments" :args {:ticketId 12}})]
  (if (:ok r) (reduce (fn [m {:keys [author]}] (update m author (fnil inc 0))) {:all 0} (:value r)) (fail (:message r))))

; next is missing or null on the last page
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:page 6 :limit 100}})]
  (if (:ok r) (if (nil? (get-in r [:value :next])) "last page" "more") (fail (:message r))))

; not every product says whether it is discontinued
(let [{:keys [products]} (tool/value {:server "shop" :tool "list_products" :args {:category "kitchen"}})]
  {:on-sale (count (remove :discontinued products)) :gone (count (filter :discontinued products))})

; a table with blanks
(let [r (tool/call {:server "crm" :tool "list_customers" :args {:per_page 4}})]
  (if (:ok r) (mapv (juxt :id :phone) (:customers (:value r))) (fail (:message r))))

; select-keys with an optional key
(let [r (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId 9}})]
  (if (:ok r) (select-keys (:value r) [:id :subject :dueAt]) (fail (:message r))))

; nil from a nullable key in arithmetic is guarded
(let [{:keys [employees]} (tool/value {:server "hr" :tool "list_employees" :args {:limit 30}})]
  (reduce (fn [n {:keys [manager_id]}] (if manager_id (inc n) n)) 0 employees))

; sort by an optional key, the missing ones last
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:limit 20}})]
  (if (:ok r) (map :id (sort-by #(or (:dueAt %) "9999") (-> r :value :data))) (fail (:message r))))

; the note may have been pinned
(let [r (tool/call {:server "crm" :tool "add_note" :args {:customer_id "CUS-0001" :text "hello"}})]
  (if (:ok r) {:id (-> r :value :note_id) :pinned (boolean (-> r :value :pinned))} (fail (:message r))))

; an echo of an argument that was not given
(let [r (tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote "GBP"}})]
  (if (:ok r) [(-> r :value :rate) (or (-> r :value :on) (-> r :value :as_of))] (fail (:message r))))

; the base of rates may be left out
(let [v (tool/value {:server "fx" :tool "rates_on" :args {:date "2026-04-01"}})]
  (str (get v :base "EUR") ": " (get-in v [:rates :USD])))

; a currency that is not among the rates
(let [rates (:rates (tool/value {:server "fx" :tool "rates_on" :args {:date "2026-04-01"}}))]
  (if-let [sek (:SEK rates)] sek (str "no SEK among " (count rates))))

; a department without employees
(let [v (tool/value {:server "hr" :tool "headcount"})]
  (get-in v [:by_department :legal] 0))

; several departments of which some are not there
(let [by (:by_department (tool/value {:server "hr" :tool "headcount"}))]
  (map #(vector % (get by % 0)) ["sales" "legal" "finance"]))

; words of pages that were not counted
(let [r (tool/call {:server "wiki" :tool "word_counts"})]
  (if (:ok r) (map #(get-in r [:value :counts %] 0) ["p1" "p2" "p4"]) (fail (:message r))))

; labels of a ticket may be empty
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:limit 25}})]
  (if (:ok r) (->> r :value :data (map (comp first :labels)) (map #(or % "unlabelled")) frequencies) (fail (:message r))))

; a fallback between two declared keys
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:limit 6}})]
  (if (:ok r) (map #(or (:dueAt %) (:createdAt %)) (-> r :value :data)) (fail (:message r))))

; a hyphen in a keyword stands for an underscore
(let [r (tool/call {:server "shop" :tool "stock_level" :args {:sku "AB-0001"}})]
  (if (:ok r) (- (-> r :value :on-hand) (-> r :value :reserved)) (fail (:message r))))
