; an argument of an open schema without a letter
;! departmnt department
(let [r (tool/call {:server "hr" :tool "list_employees" :args {:departmnt "sales"}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; an argument of an open schema in the plural
;! departments department
(let [r (tool/call {:server "hr" :tool "list_employees" :args {:departments "sales"}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; an argument of an open schema in camel case
;! Department department
(let [r (tool/call {:server "hr" :tool "list_employees" :args {"Department" "sales"}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; a misspelt argument in a helper
;! bnad band
(defn in-band [b] (tool/call {:server "hr" :tool "list_employees" :args {:bnad b}}))
(let [r (in-band "B2")] (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; a misspelt argument that is merged
;! limits limit
(let [base {:department "sales"} r (tool/call {:server "hr" :tool "list_employees" :args (merge base {:limits 5})})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))

; a misspelt argument for each of several calls
;! departmen department
(into {} (for [d ["sales" "support"]]
  (let [r (tool/call {:server "hr" :tool "list_employees" :args {:departmen d}})]
    [d (if (:ok r) (count (:employees (:value r))) (:message r))])))

; a misspelt argument whose name is computed
;! departmnt department
(let [k (str "depart" "mnt") r (tool/call {:server "hr" :tool "list_employees" :args {k "sales"}})]
  (if (:ok r) (count (:employees (:value r))) (fail (:message r))))
