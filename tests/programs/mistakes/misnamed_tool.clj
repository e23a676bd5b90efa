; singular
;! list_customer list_customers
(let [r (tool/call {:server "crm" :tool "list_customer"})] (if (:ok r) (count (:customers (:value r))) (fail (:message r))))

; plural
;! get_orders get_order
(let [r (tool/call {:server "shop" :tool "get_orders" :args {:order_id 1001}})] (if (:ok r) (:value r) (fail (:message r))))

; a hyphen for an underscore
;! list-deals list_deals
(let [r (tool/call {:server "crm" :tool "list-deals"})] (if (:ok r) (count (-> r :value :deals)) (fail (:message r))))

; an underscore for a hyphen
;! list_ticketz list-tickets
(->> (tool/call {:server "tickets" :tool "list_ticketz"}) :value :data (map :id))

; camel case
;! listEmployees list_employees
(-> (tool/call {:server "hr" :tool "listEmployees"}) :value :employees count)

; another verb
;! fetch_customer get_customer
(:name (:value (tool/call {:server "crm" :tool "fetch_customer" :args {:customer_id "CUS-0001"}})))

; the server's name in front with a dot
;! hr.headcount headcount
(tool/call {:server "hr" :tool "hr.headcount"})

; the server's name in front with a slash
;! wiki/read_page read_page
(tool/call {:server "wiki" :tool "wiki/read_page" :args {:page_id "p1"}})

; two underscores, as some clients write it
;! fx__rate rate
(tool/call {:server "fx" :tool "fx__rate" :args {:base "EUR" :quote "USD"}})

; a server that is a tool
;! headcount hr
(tool/call {:server "headcount" :tool "headcount"})

; a server with a near name
;! ticket tickets
(tool/call {:server "ticket" :tool "list-agents"})

; a server in upper case
;! CRM crm
(tool/call {:server "CRM" :tool "list_deals"})

; a tool in upper case
;! RATE rate
(tool/call {:server "fx" :tool "RATE" :args {:base "EUR" :quote "USD"}})

; a tool of another server
;! list_employees hr
(tool/call {:server "crm" :tool "list_employees"})

; a tool of another server, in a helper
;! shipping_quote
(defn quote-for [zip] (tool/call {:server "fx" :tool "shipping_quote" :args {:zip zip :weight_kg 1}}))
(:ok (quote-for "10115"))

; the name of a product
;! salesforce
(tool/call {:server "salesforce" :tool "list_deals"})

; a tool that does not exist anywhere
;! delete_customer
(tool/call {:server "crm" :tool "delete_customer" :args {:customer_id "CUS-0001"}})

; a letter too few
;! stock_leve stock_level
(map #(:ok (tool/call {:server "shop" :tool "stock_leve" :args {:sku %}})) ["AB-0001" "AB-0002"])

; two letters swapped
;! payrol_lsummary payroll_summary
(tool/call {:server "hr" :tool "payrol_lsummary" :args {:month "2026-01"}})

; the tool as a function of its server
;! list_orders
(crm/list_orders {:limit 5})

; the tool as a function of the right server
;! list_products
(let [r (shop/list_products {})] (count (:products r)))

; the tool as a function of the namespace tool
;! headcount
(:total (tool/headcount {}))

; the tool as a plain function
;! get_employee
(get_employee {:id 4})

; call-tool, as in other hosts
;! call-tool
(call-tool "hr" "headcount" {})

; tool/call with three arguments
;! tool/call
(tool/call "fx" "rate" {:base "EUR" :quote "USD"})

; one text for both
;! tool/call
(tool/call "hr/headcount")

; :name instead of :tool
;! name
(tool/call {:server "hr" :name "headcount"})

; :upstream instead of :server
;! upstream
(tool/call {:upstream "hr" :tool "headcount"})

; :function instead of :tool
;! function
(tool/call {:server "fx" :function "rate" :args {:base "EUR" :quote "USD"}})

; arguments beside :tool instead of under :args
;! customer_id
(tool/call {:server "crm" :tool "get_customer" :customer_id "CUS-0001"})

; :params instead of :args
;! params
(tool/call {:server "fx" :tool "rates_on" :params {:date "2026-02-02"}})

; no server
;! server
(tool/call {:tool "headcount"})

; the whole name in :tool
;! shop list_orders :server
(tool/call {:tool "shop/list_orders"})

; an operation under its path
;! tickets
(tool/call {:server "tickets" :tool "GET /tickets" :args {:state "open"}})

; the operation with an article
;! list-the-agents list-agents
(tool/call {:server "tickets" :tool "list-the-agents"})

; a tool in a threaded call map
;! get_prodct get_product
(-> {:server "shop" :tool "get_prodct" :args {:sku "AB-0001"}} tool/call :value :price)

; the tool in a branch that always runs
;! org_charts org_chart
(if (pos? 1) (tool/call {:server "hr" :tool "org_charts" :args {:root_id 1}}) nil)

; tools/call in the plural
;! tools tool/call
(tools/call {:server "hr" :tool "headcount"})

; doc of a tool that is not there
;! list_ordrs
(do (println (doc "shop/list_ordrs")) (:ok (tool/call {:server "shop" :tool "list_ordrs"})))
