; nested keys of a customer
(let [{{:keys [city country]} :address :keys [name]} (tool/value {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0009"}})]
  [name city country])

; :strs
(let [{:strs [total by_department]} (tool/value {:server "hr" :tool "headcount"})] [total (count by_department)])

; :as beside :keys
(let [{:keys [ok value] :as r} (tool/call {:server "fx" :tool "rate" :args {:base "EUR" :quote "RUB"}})]
  (if ok (:rate value) (select-keys r [:reason :message])))

; value inside the result
(let [{ok :ok {:keys [products]} :value} (tool/call {:server "shop" :tool "list_products" :args {:max_price 100}})]
  (if ok (count products) (fail "no products")))

; a vector of rows
(let [{[a b] :deals} (tool/value {:server "crm" :tool "list_deals" :args {:stage "won"}})] (map :id [a b]))

; the first and the rest
(let [[x & xs] (:products (tool/value {:server "shop" :tool "list_products"}))] [(:sku x) (count xs)])

; in the parameters of fn
(map (fn [{:keys [sku price]}] (str sku " " price)) (take 3 (:products (tool/value {:server "shop" :tool "list_products"}))))

; in a defn
(defn label [{:keys [id subject priority]}] (str "#" id " [" priority "] " subject))
(map label (:data (tool/value {:server "tickets" :tool "list-tickets" :args {:limit 4}})))

; renamed keys
(let [{n :name e :email} (tool/value {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0010"}})] (str n " <" e ">"))

; string keys renamed
(let [{t "title" a "author"} (tool/value {:server "wiki" :tool "page_info" :args {:page_id "p5"}})] [t a])

; in for
(for [{:keys [date revenue]} (:days (tool/value {:server "shop" :tool "sales_by_day" :args {:from "2026-03-01" :to "2026-03-31"}})) :when (> revenue 1000)] date)

; in doseq, with the index of entries
(doseq [[k v] (:by_state (tool/value {:server "tickets" :tool "ticket-stats"}))] (println k v))
:ok

; in loop
(loop [[{:keys [amount]} & more] (:deals (tool/value {:server "crm" :tool "list_deals" :args {:stage "won"}})) sum 0]
  (if amount (recur more (+ sum amount)) sum))

; :or for an optional key in rows
(map (fn [{:keys [sku discontinued] :or {discontinued "unknown"}}] [sku discontinued]) (take 4 (:products (tool/value {:server "shop" :tool "list_products"}))))

; requester of a ticket
(let [{{:keys [email customerId]} :requester} (tool/value {:server "tickets" :tool "get-ticket" :args {:ticketId 8}})] [email customerId])

; lines of an order, by position
(let [{{[{:keys [sku]}] :lines} :order} (tool/value {:server "shop" :tool "get_order" :args {:order_id 1011}})] sku)

; reduce with destructuring of both
(reduce (fn [[n sum] {:keys [total]}] [(inc n) (+ sum total)]) [0 0] (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 10}})))

; letfn
(letfn [(total [{:keys [lines]}] (reduce + (map (fn [{:keys [quantity unit_price]}] (* quantity unit_price)) lines)))]
  (map total (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 3}}))))

; as-> with keys
(as-> (tool/value {:server "hr" :tool "list_employees" :args {:department "sales"}}) v (:employees v) (map :name v) (distinct v))

; cond-> over a value
(let [{:keys [phone email]} (tool/value {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0011"}})]
  (cond-> {:mail email} phone (assoc :phone phone)))

; the tree
(defn names [{:keys [name reports]}] (cons name (mapcat names reports)))
(names (tool/value {:server "hr" :tool "org_chart" :args {:root_id 1 :depth 3}}))

; depth of the tree
(defn depth [node] (inc (reduce max 0 (map depth (:reports node)))))
(depth (tool/value {:server "hr" :tool "org_chart" :args {:root_id 1}}))

; tree-seq
(count (tree-seq (comp seq :reports) :reports (tool/value {:server "hr" :tool "org_chart" :args {:root_id 1}})))

; the leaves
(->> (tool/value {:server "hr" :tool "org_chart" :args {:root_id 1}}) (tree-seq :reports :reports) (filter #(empty? (:reports %))) (map :id))

; update of a row
(-> (tool/value {:server "crm" :tool "get_deal" :args {:deal_id "DEAL-003"}}) (update :amount * 2) (dissoc :owner) (select-keys [:id :amount]))

; assoc of a new key, which is then read
(->> (tool/value {:server "crm" :tool "list_deals" :args {:stage "won"}}) :deals
     (map #(assoc % :fee (* 0.02 (:amount %)))) (map :fee) (reduce +))

; rename-keys
(-> (tool/value {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0012"}})
    (clojure.set/rename-keys {:created_at :since}) :since (subs 0 4))

; maps of one's own beside rows
(let [rows (map (fn [{:keys [id total]}] {:order id :cents (int (* 100 total))}) (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 5}})))]
  (map :cents rows))

; own map with a key that is not always there
(let [rows (map (fn [{:keys [id total]}] (cond-> {:id id} (> total 200) (assoc :large true))) (:items (tool/value {:server "shop" :tool "list_orders" :args {:limit 20}})))]
  (count (filter :large rows)))

; merge of defaults and a row
(:city (merge {:city "unknown"} (:address (tool/value {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0014"}}))))

; keys of a config in the program
(let [limits {:bug 3 :billing 5}
      tickets (:data (tool/value {:server "tickets" :tool "list-tickets" :args {:limit 30}}))]
  (map (fn [[label n]] [label (get limits (keyword label) 0) n]) (frequencies (mapcat :labels tickets))))
