; ten orders a page, and 520 orders: the last pages are missing
;! cap_exhausted 50
(loop [p 1 acc []]
  (let [v (:value (tool/call {:server "shop" :tool "list_orders" :args {:page p :limit 10}}))
        acc (into acc (:items v))]
    (if (:next v) (recur (:next v) acc) (count acc))))

; one call for each of 64 employees
;! cap_exhausted
(count (keep #(:name (:value (tool/call {:server "hr" :tool "get_employee" :args {:id %}}))) (range 7 65)))

; pmap over all article numbers
;! cap_exhausted
(->> (range 12 70)
     (pmap #(-> (tool/call {:server "shop" :tool "stock_level" :args {:sku (format "AB-%04d" %)}}) :value :on_hand))
     (remove nil?)
     (reduce +))

; checks of :ok that skip refused calls
;! cap_exhausted
(->> (range 18 80)
     (map #(tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId %}}))
     (filter :ok)
     (map (comp :priority :value))
     frequencies)

; a refused call taken for a missing page
;! cap_exhausted
(defn exists? [n] (:ok (tool/call {:server "wiki" :tool "page_info" :args {:page_id (str "p" n)}})))
(count (filter exists? (concat (range 1 31) (range 1 31))))

; nested loops of customers and roles
;! cap_exhausted
(count (for [n (range 14 34) role ["buyer" "engineer" "finance"]
             c (get-in (tool/call {:server "crm" :tool "list_contacts" :args {:customer_id (format "CUS-%04d" n) :role role}}) [:value :contacts])]
         (:email c)))

; reduce with a fallback of zero
;! cap_exhausted
(reduce (fn [sum n] (+ sum (get-in (tool/call {:server "shop" :tool "get_order" :args {:order_id n}}) [:value :order :total] 0)))
        0 (range 1008 1068))

; a loop that ends at an empty page, and a refused call has none
;! cap_exhausted
(loop [page 1 seen 0]
  (let [items (-> (tool/call {:server "shop" :tool "list_orders" :args {:page page :limit 5}}) :value :items)]
    (if (seq items)
      (recur (inc page) (+ seen (count items)))
      seen)))

; a cursor loop that stops at a refused call
;! cap_exhausted
(loop [cursor nil n 0]
  (let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:cursor cursor :limit 2}})
        following (get-in r [:value :meta :next_cursor])
        n (+ n (count (-> r :value :data)))]
    (if following (recur following n) n)))

; doseq writes notes, and some are not written
;! cap_exhausted
(doseq [n (range 60)]
  (tool/call {:server "crm" :tool "add_note" :args {:customer_id "CUS-0001" :text (str "visit " n)}}))
"60 notes"

; a rate for every day of two months
;! cap_exhausted
(let [days (for [m [2 3] d (range 1 29)] (format "2026-%02d-%02d" m d))]
  (count (keep #(get-in (tool/call {:server "fx" :tool "rates_on" :args {:date %}}) [:value :rates "USD"]) days)))

; two calls for each of thirty customers
;! cap_exhausted
(defn profile [id]
  {:id id
   :name (-> (tool/call {:server "crm" :tool "get_customer" :args {:customer_id id}}) :value :name)
   :contacts (-> (tool/call {:server "crm" :tool "list_contacts" :args {:customer_id id}}) :value :contacts count)})
(count (map profile (map #(format "CUS-%04d" %) (range 14 44))))

; mapv and then some
;! cap_exhausted
(some #(when (= "CUS-0040" (-> % :value :customer_id)) (-> % :value :title))
      (mapv #(tool/call {:server "crm" :tool "get_deal" :args {:deal_id (format "DEAL-%03d" %)}}) (range 1 61)))

; more than 25 doc forms
;! discovery 25
(count (keep (fn [n] (doc (nth ["shop/list_orders" "hr/headcount" "fx/rate"] (mod n 3)))) (range 30)))

; apropos in a loop
;! discovery 25
(count (filter seq (map #(apropos (str "order " %)) (range 28))))

; meta of the same tool for each row
;! discovery 25
(let [r (tool/call {:server "shop" :tool "list_orders" :args {:limit 40}})
      items (if (:ok r) (-> r :value :items) (fail (:message r)))]
  (count (remove nil? (map (fn [_] (meta "shop/list_orders")) items))))

; dir of every server, ten times
;! discovery 25
(count (remove nil? (for [_ (range 10) s ["crm" "shop" "hr"]] (dir s))))

; a partition of pages in batches does not lower the number of calls
;! cap_exhausted
(->> (range 1 61)
     (partition-all 10)
     (mapcat (fn [batch] (pmap #(:value (tool/call {:server "wiki" :tool "page_info" :args {:page_id (str "p" (inc (mod % 30)))}})) batch)))
     (keep :words)
     count)

; a call inside sort-by
;! cap_exhausted
(count (sort-by #(or (-> (tool/call {:server "shop" :tool "stock_level" :args {:sku (format "AB-%04d" %)}}) :value :on_hand) 0) (range 12 68)))

; a call inside filter
;! cap_exhausted
(count (filter (fn [n] (= "paid" (-> (tool/call {:server "shop" :tool "get_order" :args {:order_id n}}) :value :order :status))) (range 1010 1065)))

; a call inside group-by
;! cap_exhausted
(count (group-by (fn [n] (-> (tool/call {:server "hr" :tool "get_employee" :args {:id n}}) :value :department)) (range 7 60)))

; map-indexed over texts
;! cap_exhausted
(reduce + (map-indexed (fn [i _] (count (str (:value (tool/call {:server "wiki" :tool "read_page" :args {:page_id (str "p" (+ 10 i))}}))))) (range 55)))

; a table of conversions
;! cap_exhausted
(let [cur ["EUR" "USD" "GBP" "CHF" "JPY" "SEK" "NOK" "DKK"]]
  (count (for [a cur b cur :let [v (-> (tool/call {:server "fx" :tool "convert" :args {:amount 1 :from a :to b}}) :value :result :value)] :when v] v)))

; iterate with take-while
;! cap_exhausted
(defn next-page [v] (:value (tool/call {:server "shop" :tool "list_orders" :args {:page (:next v) :limit 8}})))
(count (take-while :next (take 70 (iterate next-page {:next 1}))))

; a vector that collects what could be read
;! cap_exhausted
(count (reduce (fn [found n]
                 (if-let [t (:value (tool/call {:server "tickets" :tool "get-ticket" :args {:ticketId n}}))] (conj found (:id t)) found))
               [] (range 18 75)))

; recursion over the chart with a call each
;! cap_exhausted
(defn walk [n] (when (< n 60) (cons (get-in (tool/call {:server "hr" :tool "org_chart" :args {:root_id n}}) [:value :id]) (walk (inc n)))))
(count (remove nil? (walk 1)))

; a second pass over what a first pass has used up
;! cap_exhausted
(defn stock [sku] (-> (tool/call {:server "shop" :tool "stock_level" :args {:sku sku}}) :value :on_hand (or 0)))
(let [skus (map #(format "AB-%04d" %) (range 20 50))]
  {:before (reduce + (map stock skus)) :after (reduce + (map stock skus))})

; if-let takes a refused call for a free day
;! cap_exhausted
(count (for [d (range 1 29) t ["vacation" "sick"]
             :when (if-let [a (seq (get-in (tool/call {:server "hr" :tool "list_absences" :args {:from (format "2026-05-%02d" d) :to (format "2026-05-%02d" d) :type t}}) [:value :absences]))] a false)]
         [d t]))

; a retry loop without an end
;! cap_exhausted
(loop [n 0]
  (let [r (tool/call {:server "tickets" :tool "next-in-queue"})]
    (if (or (:value r) (= n 55)) n (recur (inc n)))))

; every? stops at the first refused call and says no
;! cap_exhausted
(every? #(-> (tool/call {:server "shop" :tool "get_product" :args {:sku (format "AB-%04d" (inc (mod % 50)))}}) :value) (range 60))

; juxt of two calls for every row
;! cap_exhausted
(let [customer #(-> (tool/call {:server "crm" :tool "customer_health" :args {:customer_id %}}) :value :score)
      contacts #(-> (tool/call {:server "crm" :tool "list_contacts" :args {:customer_id %}}) :value :contacts)]
  (count (map (juxt customer contacts) (map #(format "CUS-%04d" %) (range 14 41)))))

; the limit is asked for as one
;! cap_exhausted
(let [one (fn [p] (first (-> (tool/call {:server "shop" :tool "list_orders" :args {:limit 1 :page p}}) :value :items)))]
  (->> (range 1 80) (map one) (keep :coupon) frequencies))

; pcalls beyond the budget
;! cap_exhausted
(count (remove nil? (apply pcalls (map (fn [n] (fn [] (:value (tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote "USD"}})))) (range 52)))))

; the last employees are missing from the longest name
;! cap_exhausted
(apply max (map #(count (str (-> (tool/call {:server "hr" :tool "get_employee" :args {:id %}}) :value :name))) (range 8 64)))

; an into over a transducer that calls
;! cap_exhausted
(count (into [] (comp (map #(tool/call {:server "shop" :tool "list_reviews" :args {:sku (format "AB-%04d" %)}})) (map :value) (mapcat :reviews)) (range 1 60)))

; an average over fewer rows than it says
;! cap_exhausted
(let [ids (range 1009 1064)
      totals (keep #(-> (tool/call {:server "shop" :tool "get_order" :args {:order_id %}}) :value :order :total) ids)]
  (/ (reduce + totals) (count ids)))
