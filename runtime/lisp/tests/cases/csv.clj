;; CSV texts, read and written as RFC 4180 describes them.

(csv/parse-string "a,b\r\n1,\"x\r\ny\"\r\n")
;=> [["a" "b"] ["1" "x\r\ny"]]

(csv/parse-string "a,\"say \"\"hi\"\"\",\n")
;=> [["a" "say \"hi\"" ""]]

(csv/parse-string "")
;=> []

;; A byte order mark is not part of a field, and a blank line is not a row.
(csv/parse-string "\uFEFFid\n\n1\n" :header true)
;=> [{"id" "1"}]

(csv/parse-string "id;x\n1;\"a;b\"" {:header true :separator ";"})
;=> [{"id" "1" "x" "a;b"}]

;; A row that is shorter than the header lacks its last columns.
(csv/parse-string "a,b\n1" :header true)
;=> [{"a" "1"}]

(csv/parse-string "a,b\n1,2,3" :header true)
;=! type_error 1:1 line 2 has 3 fields, but the header names 2 columns

(csv/parse-string "a,a\n1,2" :header true)
;=! type_error 1:1 the header names the column "a" twice

(csv/parse-string "a\n\"b")
;=! type_error 1:1 a quote is not closed

(csv/parse-string "a" :delimiter ";")
;=! type_error 1:1 the options are :header and :separator

(csv/parse-string "a" :header)
;=! type_error 1:1 without a value

(csv/parse-string "a" :separator ";;")
;=! type_error 1:1 expected one ASCII character

(csv/parse-string nil)
;=! type_error 1:1 expected a string as argument 1

(csv/generate-string [["a" "b,c"] ["say \"hi\"" "x\ny"] [nil 1.5] [:k true]])
;=> "a,\"b,c\"\n\"say \"\"hi\"\"\",\"x\ny\"\n,1.5\nk,true\n"

;; Columns are all keys of the maps, in order; a map without a key has an empty cell.
(csv/generate-string [{:b 1} {:a 2}])
;=> "a,b\n,1\n2,\n"

(csv/generate-string [[1 2]] :header ["x" "y"] :separator "\t")
;=> "x\ty\n1\t2\n"

;; A row of one empty cell is not a blank line.
(csv/generate-string [[nil]])
;=> "\"\"\n"

(csv/generate-string [{:a [1]}])
;=! type_error 1:1 expected a text, number or boolean as a cell

(csv/generate-string [1])
;=! type_error 1:1 expected vectors or maps as rows

(let [rows [["x" "a \"b\""] ["1,2" "\n"]]] (= rows (csv/parse-string (csv/generate-string rows))))
;=> true

(count (csv/parse-string (apply str (repeat 5000 "some,cells,here\n"))))
;=> 5000

(clojure.data.csv/read-csv "a")
;=! unbound_var 1:2 csv/parse-string

; a keyword and a string of one name are one column
(csv/generate-string [{:a 1} {"a" 2 "b" 3}])
;=> "a,b\n1,\n2,3\n"

(csv/generate-string [{:a 1}] :header true)
;=> "a\n1\n"

(csv/generate-string [{:a 1} {:a 2}] {:header false})
;=> "1\n2\n"

(csv/parse-string "a" {:headers true})
;=! type_error 1:1 unknown option :headers; the options are :header and :separator
