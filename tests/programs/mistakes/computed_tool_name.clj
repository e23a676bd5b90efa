; a tool made of a verb and a noun that is not there
;! list_orderss list_orders
(defn list-all [noun] (tool/call {:server "shop" :tool (str "list_" noun "s")}))
(:ok (list-all "orders"))

; plurals by adding an s
;! get_customers get_customer
(let [kind "customers"
      r (tool/call {:server "crm" :tool (str "get_" kind) :args {:customer_id "CUS-0001"}})]
  (if (:ok r) (:name (:value r)) (:message r)))

; a table of tools with one wrong entry
;! count_deals
(let [tools {"customers" "list_customers" "deals" "count_deals"}]
  (into {} (for [[k t] tools] [k (:ok (tool/call {:server "crm" :tool t}))])))

; servers and tools in two lists that do not belong together
;! crm headcount
(map (fn [s t] (:ok (tool/call {:server s :tool t}))) ["hr" "crm"] ["list_employees" "headcount"])

; a server from data
;! warehouse
(let [target (first ["warehouse" "shop"])]
  (:ok (tool/call {:server target :tool "list_products"})))

; a tool name from a keyword with a hyphen
;! list-ordrs
(let [op :list-ordrs]
  (:ok (tool/call {:server "shop" :tool (name op)})))

; a helper with swapped parameters
;! list_deals
(defn call [server tool] (tool/call {:server server :tool tool}))
(count (get-in (call "list_deals" "crm") [:value :deals]))

; camel case computed
;! listEmploye
(defn camel [& words] (apply str (first words) (map clojure.string/capitalize (rest words))))
(:ok (tool/call {:server "hr" :tool (camel "list" "employe")}))

; the tool is nil
;! tool
(let [tools {:rate "rate"}]
  (tool/call {:server "fx" :tool (:rates tools) :args {:base "EUR" :quote "USD"}}))

; a server that is nil
;! server
(defn ask [{:keys [srv tool]}] (tool/call {:server srv :tool tool}))
(ask {:server "hr" :tool "headcount"})

; the tool is a map from apropos
;! tool
(let [found (first (filter #(= "fx" (:name %)) (tool/servers)))]
  (tool/call {:server (:name found) :tool found}))

; a line of dir is taken for a name
;! list_absences
(let [line (first (dir "hr"))]
  (tool/call {:server "hr" :tool line :args {:from "2026-01-01" :to "2026-02-01"}}))

; a number in the name of a tool
;! rates_on
(map #(:ok (tool/call {:server "fx" :tool (str "rates_" %) :args {:date "2026-03-03"}})) ["in"])

; pmap over tools of which one is misspelled
;! get_dael get_deal
(->> ["get_deal" "get_dael"]
     (pmap #(tool/call {:server "crm" :tool % :args {:deal_id "DEAL-001"}}))
     (map (comp :stage :value)))

; a join of server and tool in the wrong place
;! hr.headcount
(let [full (clojure.string/join "." ["hr" "headcount"])]
  (:value (tool/call {:server "hr" :tool full})))

; a full name in one text
;! server
(let [full "wiki/page_info"
      [s t] (clojure.string/split full #"\.")]
  (:value (tool/call {:server s :tool t :args {:page_id "p1"}})))

; case decides
;! Get_Order get_order
(let [tool (clojure.string/join "_" (map clojure.string/capitalize ["get" "order"]))]
  (-> (tool/call {:server "shop" :tool tool :args {:order_id 1001}}) :value :order :total))

; a prefix that only some have
;! tickets
(for [t ["tickets" "agents"]]
  (count (:value (tool/call {:server "tickets" :tool (str "get-" t)}))))

; a tool of a server that was chosen by a condition
;! stock
(let [deep false
      tool (if deep "stock_level" "stock")]
  (-> (tool/call {:server "shop" :tool tool :args {:sku "AB-0001"}}) :value :on_hand))

; case over kinds with a wrong branch
;! policies policy_text
(defn tool-for [kind] (case kind :policy "policies" :people "list_employees"))
(:value (tool/call {:server "hr" :tool (tool-for :policy) :args {:name "travel"}}))

; apply of a partial
;! wikis wiki
(def on-wiki (partial hash-map :server "wikis" :tool))
(:value (tool/call (on-wiki "page_info" :args {:page_id "p1"})))

; assoc into a base call
;! search_page
(def base {:server "wiki" :args {:query "guide"}})
(count (:value (tool/call (assoc base :tool (subs "search_pages" 0 11)))))

; merge overrides the server
;! rate
(let [call (merge {:server "fx" :tool "rate" :args {:base "EUR" :quote "USD"}} {:server "crm"})]
  (:value (tool/call call)))

; the arguments are computed, too, and one has a wrong name
;! customer
(defn by-id [tool id] (tool/call {:server "crm" :tool tool :args {(keyword (first (clojure.string/split tool #"_"))) id}}))
(:ok (by-id "customer_health" "CUS-0001"))

; argument names from data
;! ticket_id
(let [arg "ticket_id"]
  (:ok (tool/call {:server "tickets" :tool "get-ticket" :args {(keyword arg) 3}})))

; an enum value from data
;! mid tier
(mapv #(:ok (tool/call {:server "crm" :tool "list_customers" :args {:tier %}})) ["free" "mid"])

; a computed bound
;! limit
(mapv #(:ok (tool/call {:server "shop" :tool "list_orders" :args {:limit (* 60 %)}})) [1 2])

; zipmap of arguments in another order
;! amount
(let [args (zipmap [:amount :from :to] ["EUR" "USD" 10])]
  (:value (tool/call {:server "fx" :tool "convert" :args args})))

; a misspelled key of the call map
;! tol
(let [k :tol] (tool/call {:server "hr" k "headcount"}))

; :arguments instead of :args
;! arguments
(let [call {:server "hr" :tool "get_employee" :arguments {:id 3}}] (tool/call call))

; a tool that the model remembers from elsewhere
;! query
(let [tool "query"] (tool/call {:server "crm" :tool tool :args {:sql "select 1"}}))

; a plural of the server
;! ticket
(let [server (subs "tickets" 0 6)] (tool/call {:server server :tool "list-agents"}))

; an index out of the list of tools
;! tool
(let [tools ["rate" "convert"]] (tool/call {:server "fx" :tool (get tools 2) :args {:base "EUR" :quote "USD"}}))

; format with the wrong number of underscores
;! stock__level
(tool/call {:server "shop" :tool (format "%s__%s" "stock" "level") :args {:sku "AB-0001"}})

; blank around a name
;! shop
(let [[s t] (clojure.string/split "shop , list_products" #",")] (:ok (tool/call {:server s :tool t})))

; a symbol is not a text
;! tool
(tool/call {:server "hr" :tool 'headcount-now})

; reduce over steps, the second of which is not a tool
;! list_notes
(reduce (fn [done step] (if (:ok (tool/call {:server "crm" :tool step})) (conj done step) done)) [] ["list_deals" "list_notes"])

; a random tool of a set
;! delete_page
(let [op (first (disj #{"delete_page" "read_page"} "read_page"))] (tool/call {:server "wiki" :tool op :args {:page_id "p1"}}))
