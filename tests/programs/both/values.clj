; orders with and without a coupon
(frequencies (map #(or (:coupon %) "none") (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 50}}))))

; a manager may be nil
(count (remove :manager_id (:employees (tool/value {:server "hr" :tool "list_employees" :args {:department "engineering"}}))))

; get with a default
(:dueAt (tool/value {:server "tickets" :tool "get-ticket" :args {:ticketId 5}}) "no due date")

; get-in with a default
(map #(:dueAt % "open end") (:data (tool/value {:server "tickets" :tool "list-tickets" :args {:limit 10}})))

; half days through a truthy key
(mapv :name (filter :half_day (:holidays (tool/value {:server "fx" :tool "holidays" :args {:country "DE" :year 2026}}))))

; some-> through what may be missing
(or (some-> (tool/value {:server "tickets" :tool "get-ticket" :args {:ticketId 7}}) :dueAt (subs 0 10)) "none")

; tags may be missing or empty
(count (filter #(some #{"eco"} (:tags %)) (:products (tool/value {:server "shop" :tool "list_products"}))))

; a key that the schema leaves open and some rows have
(vec (keep (fn [{:keys [id coupon]}] (when coupon [id coupon])) (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 30}}))))

; fnil over a missing counter
(reduce (fn [m {:keys [author]}] (update m author (fnil inc 0))) {:all 0} (tool/value {:server "tickets" :tool "list-comments" :args {:ticketId 12}}))

; next is missing or null on the last page
(if (:next (tool/value {:server "shop" :tool "list_orders" :args {:page 6 :limit 100}})) "more" "last page")

; a table with blanks
(mapv (juxt :id :phone) (:customers (tool/value {:server "crm" :tool "list_customers" :args {:per_page 4}})))

; select-keys with an optional key
(select-keys (tool/value {:server "tickets" :tool "get-ticket" :args {:ticketId 9}}) [:id :subject :dueAt])

; sort by an optional key, the missing ones last
(map :id (sort-by #(:dueAt % "9999") (:data (tool/value {:server "tickets" :tool "list-tickets" :args {:limit 20}}))))

; the note may have been pinned
(let [{:keys [note_id pinned]} (tool/value {:server "crm" :tool "add_note" :args {:customer_id "CUS-0001" :text "hello"}})]
  {:id note_id :pinned (boolean pinned)})

; an echo of an argument that was not given
(let [{:keys [rate on as_of]} (tool/value {:server "fx" :tool "rate" :args {:base "EUR" :quote "GBP"}})] [rate (or on as_of)])

; words of pages that were not counted
(let [{:keys [counts]} (tool/value {:server "wiki" :tool "word_counts"})] (map #(get counts % 0) ["p1" "p2" "p4"]))

; labels of a ticket may be empty
(->> (tool/value {:server "tickets" :tool "list-tickets" :args {:limit 25}}) :data (map #(or (first (:labels %)) "unlabelled")) frequencies)

; a fallback between two declared keys
(map #(or (:dueAt %) (:createdAt %)) (:data (tool/value {:server "tickets" :tool "list-tickets" :args {:limit 6}})))

; a hyphen in a keyword stands for an underscore
(let [{:keys [on_hand reserved]} (tool/value {:server "shop" :tool "stock_level" :args {:sku "AB-0001"}})] (- on_hand reserved))

; pmap and then a check of all
(pmap #(:name (tool/value {:server "shop" :tool "get_product" :args {:sku %}})) ["AB-0001" "AB-0005" "AB-0009"])

; pcalls of three services
(let [[people stats rate] (pcalls #(tool/value {:server "hr" :tool "headcount"})
                                  #(tool/value {:server "tickets" :tool "ticket-stats"})
                                  #(tool/value {:server "fx" :tool "rate" :args {:base "EUR" :quote "USD"}}))]
  [(:total people) (:total stats) (:rate rate)])

; partial of a helper
(map #(:author (tool/value {:server "wiki" :tool "page_info" :args {:page_id %}})) ["p1" "p2"])

; results in a vector are looked at with let
(apply - (map #(:rate (tool/value {:server "fx" :tool "rate" :args {:base % :quote "USD"}})) ["EUR" "GBP"]))

; a page's headings
(->> (tool/value {:server "wiki" :tool "read_page" :args {:page_id "p1"}}) (re-seq #"(?m)^#+ (.*)$") (map second))

; whether a page has open ends
(clojure.string/includes? (tool/value {:server "wiki" :tool "read_page" :args {:page_id "p5"}}) "TODO")

; titles of changes, from JSON without a schema
(distinct (map :title (tool/value {:server "wiki" :tool "recent_changes" :args {:days 7}})))

; subjects cut short
(mapv #(subs (:subject %) 0 (min 8 (count (:subject %)))) (:data (tool/value {:server "tickets" :tool "list-tickets" :args {:limit 3}})))

; half of an even number as a page
(count (:items (tool/value {:server "shop" :tool "list_orders" :args {:page (/ 4 2) :limit 10}})))

; prints the first row
(let [{:keys [deals]} (tool/value {:server "crm" :tool "list_deals"})] (println (first deals)) (count deals))

; comments in the program
(count (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 10}})))
