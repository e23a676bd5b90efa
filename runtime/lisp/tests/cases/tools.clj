;; The three programs of the aggregator's documentation, and calls around them.

(let [r (tool/call {:server "fs"
                    :tool   "read_text_file"
                    :args   {:path "/tmp/sandbox/notes.md"}})]
  (if (:ok r)
    (:value r)
    (fail (:message r))))
;=> "some notes"

(def unwrap
  (fn [r]
    (if (:ok r)
      (:value r)
      (fail (:message r)))))

(def open-prs
  (unwrap (tool/call {:server "github" :tool "list_prs" :args {:state "open" :limit 50}})))

(def watched-paths
  (unwrap (tool/call {:server "fs" :tool "read_text_file" :args {:path "/etc/watched-paths.txt"}})))

(def watch-set
  (set (clojure.string/split-lines watched-paths)))

(def hits
  (filter (fn [pr]
            (some watch-set (:files pr)))
          open-prs))

(map :number hits)
;=> [1 3]

(def ids [101 102 103 104 105 106 107 108 109 110])

(def items
  (pmap (fn [id]
          (tool/call {:server "store"
                      :tool   "get"
                      :args   {:id id}}))
        ids))

(def good (map :value (filter :ok items)))

(map :name good)
;=> ["item-101" "item-102" "item-103" "item-104" "item-106" "item-107" "item-108" "item-109" "item-110"]

(map tool/call [{:server "store" :tool "get" :args {:id 105}} {"server" "store" "tool" "get"}])
;=> [{:message "no item 105" :ok false :reason :tool_error} {:ok true :value nil :value_kind :none}]

(:value_kind (tool/call {:server "store" :tool "get" :args {:id 1}}))
;=> :json

(tool/value {:server "store" :tool "get" :args {:id 1}})
;=> {"id" 1 "name" "item-1"}

(map :name (pmap #(tool/value {:server "store" :tool "get" :args {:id %}}) [1 2]))
;=> ["item-1" "item-2"]

(tool/value {"server" "store" "tool" "get"})
;=> nil

(pmap tool/value [{:server "store" :tool "get" :args {:id 1}} {:server "store" :tool "get" :args {:id 105}}])
;=! tool_error 1:1 tool/value: store/get failed (tool_error): no item 105

(tool/value {:server "nope" :tool "x"})
;=! unknown_tool 1:1 no upstream 'nope' configured

(tool/value "fs")
;=! tool_error 1:1 tool/value takes a map

(map :id (tool/all {:server "store" :tool "list"}))
;=> [1 2 3 4 5 6]

(pmap (fn [n] (map :id (tool/all {:server "store" :tool "list" :max n}))) [1 3])
;=> [[1] [1 2 3]]

(tool/all {:server "store" :tool "list" :args {:broken true}})
;=! tool_error 1:1 tool/all: store/list failed (timeout): too slow, after 4 items

(tool/all {:server "store" :tool "list" :max 0})
;=! tool_error 1:1 tool/all: :max must be a positive integer, got an integer 0

(tool/all {:server "nope" :tool "x"})
;=! unknown_tool 1:1 no upstream 'nope' configured

(tool/all "fs")
;=! tool_error 1:1 tool/all takes a map

;limits tools=2
(tool/all {:server "store" :tool "list"})
;=! tool_error 1:1 the program made more than 2 calls of tools
;limits

(tool/call {:server "nope" :tool "x"})
;=! unknown_tool 1:1 no upstream 'nope' configured

(tool/call "fs")
;=! tool_error 1:1 takes a map

(tool/servers)
;=> [{"name" "fs"}]

(dir 'fs)
;=> ["fs/read_text_file - Read a file"]

(dir "nope")
;=! unknown_tool 1:1 no upstream 'nope'

(doc 'fs/read_text_file)
;=> "Read a file"

(doc if)
;=~ "if\nDescription: Evaluates then if test is truthy

(meta 'nope/x)
;=> nil

(first (apropos "store"))
;=> "store/get - Get an item"

(apropos "")
;=! runtime_error 1:1 apropos requires query (non-empty string), got ""

;; Sorted by score, then alphabetically. Words of different naming styles are equal.
(keep #(second (re-find #"local: (\S+)" %)) (apropos "group by" {:limit 3}))
;=> ["group-by" "extract" "partition-by"]

(apply = (map #(take 9 (apropos % {:limit 9})) ["upper case" "upperCase" "upper_case" "upper-case" "UPPER case"]))
;=> true

(keep #(second (re-find #"local: (\S+)" %)) (apropos "keywordize keys" {:limit 2}))
;=> ["clojure.walk/keywordize-keys" "clojure.set/rename-keys"]

(keep #(second (re-find #"local: (\S+)" %)) (apropos "sort" {:limit 3}))
;=> ["sort" "sort-by" "comparator"]

(last (apropos "keywordize keys" {:limit 2}))
;=~ "… 

(second (re-find #"more: (.*)" (last (apropos "keywordize keys" {:limit 2}))))
;=> "(apropos \"keywordize keys\" {:limit 50})"

;; A list that is not truncated has no mark.
(last (apropos "zip" {:limit 50}))
;=~ "local: 

(apropos "map" {:limit 0})
;=! runtime_error 1:1 apropos :limit must be an integer 1..50, got 0

(dir 'clojure.set {:limit 2 :offest 1})
;=! runtime_error 1:1 dir got unknown option :offest; its options are :limit and :offset

(ns-publics 'Math)
;=! runtime_error 1:1 no local discovery ref "Math" for ns-publics

;; parallel work
(pmap + [1 2 3] [10 20])
;=> [11 22]

(pmap inc nil)
;=> []

(pmap str "ab")
;=> ["a" "b"]

(pmap (fn [x] (reduce + (pmap (fn [y] (* x y)) (range 10)))) (range 20))
;=> [0 45 90 135 180 225 270 315 360 405 450 495 540 585 630 675 720 765 810 855]

(pcalls #(+ 1 1) #(* 2 3))
;=> [2 6]

(def x 1) (pmap (fn [y] (def x y)) [2 3]) x
;=> 1

(pmap (fn [x] (println x) x) [1 2])
;=> [1 2]

(pmap (fn [x] (if (> x 2) (fail x) x)) (range 100))
;=! fail 1:27 3

(pmap (fn [x] (return x)) [1])
;=! runtime_error 1:15 from inside pmap

(pmap (fn [x] (+ x nil)) [1 2 3])
;=! type_error 1:15

;limits workers=1
(pmap (fn [x] (pmap inc [x])) (range 5))
;=> [[1] [2] [3] [4] [5]]
