; all servers
(map :name (tool/servers))

; the tools of a server
(count (dir "shop"))

; documentation of a tool
(clojure.string/includes? (doc "shop/list_orders") "limit")

; a search for a tool
(boolean (seq (apropos "exchange rate")))

; metadata of a tool
(get-in (meta "crm/list_deals") ["annotations" "readOnlyHint"])

; documentation of the language
(string? (doc group-by))

; the first tool of a search is named
(first (apropos "stock of an article"))

; a call after documentation
(do (println (doc "fx/convert"))
    (-> (tool/value {:server "fx" :tool "convert" :args {:amount 2 :from "EUR" :to "USD"}}) :result :value))

; the server by a filter
(->> (tool/servers) (filter #(clojure.string/includes? (:description %) "rates")) (map :name))

; a name from data that is right
(let [server (first (filter #{"hr"} (map :name (tool/servers))))] (:total (tool/value {:server server :tool "headcount"})))

; tool names from a table
(let [tool-of {:people "list_employees" :absences "list_absences"}]
  (count (:employees (tool/value {:server "hr" :tool (:people tool-of)}))))

; names that are put together
(for [n ["customers" "deals"]] (count (tool/all {:server "crm" :tool (str "list_" n)})))

; the operation's own name
(count (tool/value {:server "tickets" :tool "listAgents"}))

; a call map in parts
(let [base {:server "shop" :args {:sku "AB-0006"}}]
  [(:price (tool/value (assoc base :tool "get_product"))) (count (:reviews (tool/value (assoc base :tool "list_reviews"))))])

; a case over kinds
(defn tool-for [kind] (case kind :rate "rate" :convert "convert"))
(:rate (tool/value {:server "fx" :tool (tool-for :rate) :args {:base "EUR" :quote "CHF"}}))

; arguments through merge
(count (:items (tool/value {:server "shop" :tool "list_orders" :args (merge {:limit 10} {:status "open"})})))

; arguments through assoc in a loop
(loop [args {:limit 50} n 0]
  (let [v (tool/value {:server "tickets" :tool "list-tickets" :args args})
        n (+ n (count (:data v)))]
    (if-let [c (-> v :meta :next_cursor)] (recur (assoc args :cursor c) n) n)))

; select-keys for arguments
(let [row {:base "EUR" :quote "USD" :amount 4}] (:rate (tool/value {:server "fx" :tool "rate" :args (select-keys row [:base :quote])})))

; zipmap for arguments
(:rate (tool/value {:server "fx" :tool "rate" :args (zipmap [:base :quote] ["EUR" "JPY"])}))

; the doc of several tools
(count (map doc ["shop/get_order" "shop/get_product" "hr/headcount"]))

; servers and how many tools each has
(into {} (map (fn [s] [(:name s) (count (dir (:name s)))]) (tool/servers)))

; a search that finds nothing
{:found (apropos "zebra quantum")}

; names of tools from lines
(map #(first (clojure.string/split % #" ")) (dir "fx"))

; a tool that does not read only
(get-in (meta "crm/add_note") ["annotations" "readOnlyHint"] "not said")

; whether a tool exists
(boolean (some #(clojure.string/starts-with? % "hr/org_chart") (dir "hr")))
