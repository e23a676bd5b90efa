;; Special forms beyond the examples of their rows.

1 2 3
;=> 3

;; empty programs
;=> nil

(let [x 1] (let [x 2] x) x)
;=> 1

(let [x 10] (def saved x) (* saved 2))
;=> 20

(if (empty? []) "empty" "full")
;=> "empty"

(cond false "a" false "b")
;=> nil

(case "a" ("x" "a") [1] 2)
;=> [1]

(case nil nil "matched" :a "nope")
;=> "matched"

(case :z :a 1)
;=> nil

(case 1.0 1 :one :other)
;=> :one

(condp = :z :a 1 "default")
;=> "default"

(condp (fn [a b] (contains? a b)) 3 #{1 2} :low #{3 4} :high)
;=> :high

(if-let [x 0] "truthy" "falsy")
;=> "truthy"

(if-let [{:keys [a]} {:a 1}] a :none)
;=> 1

(let [x 5] (if-let [x nil] x x))
;=> 5

(when-some [x nil] (inc x))
;=> nil

(as-> 42 x)
;=> 42

(as-> {:a [1 2]} x (:a x) (map inc x) (reduce + x))
;=> 5

(some-> 1 inc)
;=> 2

(some-> {:a {:b nil}} :a :b inc)
;=> nil

(some->> nil (map inc))
;=> nil

(some-> false not)
;=> true

(cond-> 42)
;=> 42

(cond-> {:a 1} true (assoc :b 2) nil (assoc :c 3) :always (assoc :d 4))
;=> {:a 1 :b 2 :d 4}

(cond->> 10 true (- 5))
;=> -5

(-> {:a {:b 1}} (get-in [:a :b]) inc (* 10))
;=> 20

(->> (range 10) (filter odd?) (map #(* % %)) (take 3))
;=> [1 9 25]

(-> 5 (#(* % 2)))
;=> 10

(do)
;=> nil

(and)
;=> true

(or)
;=> nil

(and 1 nil 2)
;=> nil

(or false nil)
;=> nil

;; loop and recur
(loop [[head & tail] [1 2 3 4] sum 0] (if head (recur tail (+ sum head)) sum))
;=> 10

(loop [x 3 acc []] (if (pos? x) (recur (dec x) (conj acc x)) acc))
;=> [3 2 1]

(loop [a 1 b a] (if (< b 10) (recur b (+ a b)) [a b]))
;=> [8 13]

((fn [n acc] (cond (zero? n) acc :else (recur (dec n) (* acc n)))) 5 1)
;=> 120

((fn [x & more] (if more (recur (first more) (next more)) x)) 1 2 3)
;=> 3

(loop [i 0] (let [j (* i 2)] (when (< i 5) (recur (inc i)))))
;=> nil

(loop [i 0 fs []] (if (< i 3) (recur (inc i) (conj fs (fn [] i))) (map (fn [f] (f)) fs)))
;=> [0 1 2]

;; functions
((fn fact [n] (if (< n 2) 1 (* n (fact (dec n))))) 20)
;=> 2432902008176640000

(defn f ([] 0) ([a] 1) ([a b & more] [a b more])) [(f) (f 1) (f 1 2) (f 1 2 3 4)]
;=> [0 1 [1 2 nil] [1 2 [3 4]]]

(defn f "doubles" [x] (* 2 x)) (f 4)
;=> 8

(defn f [{:keys [a] :or {a 7}} [b & [c]]] [a b c]) (f {} [1 2])
;=> [7 1 2]

(defn f [a & {:keys [b c] :or {c 3}}] [a b c]) [(f 1 :b 2) (f 1 {:b 5})]
;=> [[1 2 3] [1 5 3]]

(#(+ %1 %2 (count %&)) 1 2 3 4)
;=> 5

(map #(vector % %) [1 2])
;=> [[1 1] [2 2]]

(#(42))
;=> 42

(let [n 3 f (fn [x] (fn [y] (+ x y n)))] ((f 1) 2))
;=> 6

(letfn [(ev? [n] (if (zero? n) true (od? (dec n)))) (od? [n] (if (zero? n) false (ev? (dec n))))] [(ev? 10) (map od? [1 2])])
;=> [true [true false]]

(defn a [] (b)) (defn b [] :later) (a)
;=> :later

(def x 1) (def x (inc x)) x
;=> 2

(defn f [] 1) (def f (fn [] 2)) (f)
;=> 2

(def map {}) map
;=> {}

(def compose comp) ((compose inc inc) 1)
;=> 3

(defonce x 1) (defonce x (fail "not evaluated")) x
;=> 1

(def f #'inc) (f 1)
;=> 2

(def y 3) (var? #'y)
;=> true

;; callable values
[(:a {:a 1}) (:b {:a 1} 2) ({:a 1} :a) ({"a" 1} :a) (#{1 2} 2) ([5 6] 1) ((comp str inc) 5)]
;=> [1 2 1 1 2 6 "6"]

(map :name [{:name "A"} {"name" "B"}])
;=> ["A" "B"]

(map {:a 1} [:a :b])
;=> [1 nil]

(:turn-count {"turn_count" 3})
;=> 3

;; destructuring
(let [[a [b c] & d :as all] [1 [2 3] 4 5]] [a b c d all])
;=> [1 2 3 [4 5] [1 [2 3] 4 5]]

(let [[a b] "xy" [c] nil] [a b c])
;=> ["x" "y" nil]

(let [{a :a {:keys [b]} :in :strs [s] :as m} {:a 1 :in {:b 2} "s" 3}] [a b s (count m)])
;=> [1 2 3 3]

(let [{:keys [a b] :or {b (+ 1 1)}} {:a 1 "b" nil}] [a b])
;=> [1 nil]

(for [x [1 2 3 4 5] :while (< x 4) :let [y (* x 10)] :when (odd? x)] y)
;=> [10 30]

(for [x [1 2] y [10 20 30] :while (< y 25)] [x y])
;=> [[1 10] [1 20] [2 10] [2 20]]

(for [[k v] {:a 1 :b 2}] (str k "=" v))
;=> [":a=1" ":b=2"]

(doseq [x [1 2] y ["a"]] (println x y))
;out 1 a
;out 2 a
;=> nil

(dotimes [i 3] (println i))
;out 0
;out 1
;out 2
;=> nil

;; moving a value at its last use does not change its copies
(let [v [1 2] w (conj v 3) x (conj v 4)] [v w x])
;=> [[1 2] [1 2 3] [1 2 4]]

(let [m {:a 1} f (fn [] (assoc m :b 2))] [(f) (f) m])
;=> [{:a 1 :b 2} {:a 1 :b 2} {:a 1}]

(let [v [1]] (loop [i 0 out []] (if (< i 2) (recur (inc i) (conj out (conj v i))) out)))
;=> [[1 0] [1 1]]

(let [v [1]] (for [i [2 3]] (conj v i)))
;=> [[1 2] [1 3]]

(let [v [1]] [(count v) (get v 0) (conj v 2)])
;=> [1 1 [1 2]]

(let [m {:a [1]} v (:a m)] [(conj v 2) m])
;=> [[1 2] {:a [1]}]

(defn f [v] (if (seq v) (conj v 1) v)) (let [a [0]] [(f a) a])
;=> [[0 1] [0]]

(let [x [1] y (if (get x 0) (conj x 2) x)] y)
;=> [1 2]

(let [xs [1 2 3]] (and (seq xs) (conj xs 4)))
;=> [1 2 3 4]

;; return and fail
(do (return {:a 1}) (fail "never"))
;=> {:a 1}

(map (fn [x] (if (= x 2) (return :two) x)) [1 2 3])
;=> :two

(fail "went wrong")
;=! fail 1:1 went wrong

(fail {:code 3})
;=! fail 1:1 {:code 3}

;; names with a namespace
[(str/join "," [1 2]) (clojure.string/upper-case "a") (clojure.core/inc 1) (core/map inc [1]) (set/union #{1} #{2}) (Math/abs -1) Double/NaN]
;=> ["1,2" "A" 2 [2] #{1 2} 1 ##NaN]

(clojure.core/let [x 1] x)
;=> 1

;; quoting
['a '[b 1] '(1 2) (quote c)]
;=> [a [b 1] [1 2] c]

;; context and history
[data/user-id (count data/items) data/missing *1 *2 *3]
;=> [7 3 nil 11 12 nil]

(->> data/items (filter #(> (:total %) 50)) (map :id))
;=> [2 3]

(budget/remaining)
;=> {}

(println "a" 1 :k [1 "x"]) (println)
;out a 1 :k [1 x]
;out 
;=> nil

;; Any constant is a key of a map pattern.
(let [{have true missing false} (group-by even? [1 2 4])] [have missing])
;=> [[2 4] [1]]

(let [{x nil y 1.5 z 'sym w '[1 2] :or {y 7}} {nil 1 'sym 3 [1 2] 4}] [x y z w])
;=> [1 7 3 4]

((fn [{big 100000000000000000000}] big) {100000000000000000000 :b})
;=> :b

(let [k :a {x k} {:a 1}] x)
;=! unsupported_pattern 1:15 (get m key)

(apply max-key :x [])
;=! arity_error 1:1 the collection is empty

(clojure.string/split "a||b" "||")
;=! type_error 1:1 write #"\|\|" to split on it

(require '[clojure.data.csv :as csv])
;=! invalid_form 1:11 csv/parse-string

(apropos "")
;=! runtime_error 1:1 (tool/servers) lists all upstreams

;; Any constant is a key of a map pattern.
(let [{x nil y true} {nil 1 true 2}] [x y])
;=> [1 2]
(let [{a 'foo b '[x y]} {'foo 1 '[x y] 2}] [a b])
;=> [1 2]
(let [{a (quote foo) b [1 2] c #{3} d {:k [nil]}} {'foo 1 [1 2] 2 #{3} 3 {:k [nil]} 4}] [a b c d])
;=> [1 2 3 4]
(let [x 1 {a [x]} {[1] 3}] a)
;=! unsupported_pattern 1:14 a key that is computed is looked up with (get m key)
(let [{a (first [1])} {1 3}] a)
;=! unsupported_pattern 1:10 expected a constant key
