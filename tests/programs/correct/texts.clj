; lines of a policy
(count (clojure.string/split-lines (tool/value {:server "hr" :tool "policy_text" :args {:name "travel"}})))

; a number out of a text
(let [text (tool/value {:server "hr" :tool "policy_text" :args {:name "remote-work"}})]
  (parse-long (second (re-find #"(\d+) EUR" text))))

; id and title of lines with tabs
(->> (tool/value {:server "wiki" :tool "search_pages" :args {:query "guide"}})
     clojure.string/split-lines
     (map #(clojure.string/split % #"\t"))
     (map (fn [[id title]] {:id id :title title})))

; a page's headings
(let [r (tool/call {:server "wiki" :tool "read_page" :args {:page_id "p1"}})]
  (if (:ok r)
    (->> (:value r) clojure.string/split-lines (filter #(clojure.string/starts-with? % "#")) (map #(clojure.string/replace % #"^#+ " "")))
    (fail (:message r))))

; the items of a list in a page
(let [page (tool/value {:server "wiki" :tool "read_page" :args {:page_id "p3"}})]
  (map second (re-seq #"(?m)^- (.+)$" page)))

; whether a page has open ends
(let [r (tool/call {:server "wiki" :tool "read_page" :args {:page_id "p5"}})]
  (if (:ok r) (clojure.string/includes? (:value r) "TODO") (fail (:message r))))

; CSV by hand
(->> (tool/value {:server "crm" :tool "export_contacts" :args {:role "buyer"}})
     clojure.string/split-lines
     (map #(clojure.string/split % #","))
     (map (fn [[id customer name]] [customer name]))
     (take 3))

; pages with few words
(let [text (tool/value {:server "wiki" :tool "read_page" :args {:page_id "p2"}})]
  (count (re-seq #"\w+" text)))

; titles of changes, from JSON without a schema
(let [r (tool/call {:server "wiki" :tool "recent_changes" :args {:days 7}})]
  (if (:ok r) (distinct (map :title (:value r))) (fail (:message r))))

; authors of changes
(->> (tool/value {:server "wiki" :tool "recent_changes" :args {:days 30}}) (map :author) frequencies (sort-by val >) first)

; a page's data without a schema
(let [{:keys [title author words]} (tool/value {:server "wiki" :tool "page_info" :args {:page_id "p2"}})]
  (str title " by " author " (" words " words)"))

; string keys of data without a schema
(let [info (tool/value {:server "wiki" :tool "page_info" :args {:page_id "p3"}})]
  [(get info "title") (count (get info "labels"))])

; the kind of a value decides
(let [r (tool/call {:server "wiki" :tool "read_page" :args {:page_id "p6"}})]
  (case (:value_kind r) :text (count (:value r)) :json (keys (:value r)) (:message r)))

; slug of a name
(let [{:keys [name]} (tool/value {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0001"}})]
  (-> name clojure.string/lower-case (clojure.string/replace #"[^a-z]+" "-")))

; a table for people
(let [{:keys [deals]} (tool/value {:server "crm" :tool "list_deals" :args {:stage "won" :min_amount 70000}})]
  (->> deals (map #(format "%-10s %8d %s" (:id %) (:amount %) (:currency %))) (clojure.string/join "\n")))

; the domain of addresses
(->> (tool/value {:server "crm" :tool "list_contacts" :args {:customer_id "CUS-0002"}}) :contacts
     (map #(last (clojure.string/split (:email %) #"@"))) set)

; a search in subjects
(->> (tool/value {:server "tickets" :tool "search-tickets" :args {:q "invoice"}}) :results
     (filter #(re-find #"(?i)wrong" (:subject %))) (map :id) (take 5))

; subjects cut short
(let [r (tool/call {:server "tickets" :tool "list-tickets" :args {:limit 3}})]
  (if (:ok r) (mapv #(let [s (:subject %)] (subs s 0 (min 8 (count s)))) (-> r :value :data)) (fail (:message r))))

; blank lines are left out
(->> (tool/value {:server "wiki" :tool "read_page" :args {:page_id "p8"}})
     clojure.string/split-lines (remove clojure.string/blank?) (mapv count))

; words of several pages, with a check of each
(for [id ["p1" "p4" "p5"]]
  (let [r (tool/call {:server "wiki" :tool "read_page" :args {:page_id id}})]
    [id (if (:ok r) (count (clojure.string/split (:value r) #"\s+")) (:reason r))]))

; JSON text of a result
(json/generate-string (select-keys (tool/value {:server "crm" :tool "get_deal" :args {:deal_id "DEAL-001"}}) [:id :stage]))

; initials
(->> (tool/value {:server "hr" :tool "list_employees" :args {:department "support"}}) :employees
     (map (fn [{:keys [name]}] (apply str (map first (clojure.string/split name #" "))))) distinct sort)

; pretty text of a customer
(let [{:keys [name tier] {:keys [city country]} :address} (tool/value {:server "crm" :tool "get_customer" :args {:customer_id "CUS-0004"}})]
  (str name " (" tier "), " city " " country))

; a diff of two texts
(let [a (set (clojure.string/split-lines (tool/value {:server "hr" :tool "policy_text" :args {:name "travel"}})))
      b (set (clojure.string/split-lines (tool/value {:server "wiki" :tool "read_page" :args {:page_id "p1"}})))]
  {:common (count (clojure.set/intersection a b)) :only-policy (count (clojure.set/difference a b))})

; the longest title
(->> (tool/value {:server "wiki" :tool "recent_changes"}) (map :title) (apply max-key count))
