;;; a
(+ 1 2)
;;; b
(->> (range 1000) (filter even?) (map (fn [n] (* n n))) (reduce +))
;;; c
(loop [turn 0 total 0] (if (< turn 1000000) (recur (inc turn) (+ total turn)) total))
;;; d
(let [per-group (group-by (fn [row] (get row "cat")) data)
      totals (map (fn [[cat rows]] [cat (reduce + (map (fn [row] (get row "amount")) rows))]) per-group)]
  (clojure.string/join " " (map (fn [[cat total]] (str cat "=" total)) (take 3 (sort-by second > totals)))))
;;; e
(defn fib [n] (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(fib 25)
;;; f
(let [words (map clojure.string/lower-case (clojure.string/split data #"\s+"))]
  (clojure.string/join " " (map second (take 10 (sort-by val > (frequencies words))))))
;;; g
(let [squares (reduce (fn [m k] (assoc m k (* k 2))) {} (range 100000))]
  (reduce (fn [total k] (+ total (get squares k))) 0 (range 100000)))
;;; h-each
(defn stage-{i} [state n]
  (let [last-score (get state "score" 0)
        score (if (> last-score 20) (- last-score n) (+ last-score n {i}))
        order {"id" {i} "title" "order {i}" "lines" [{"sku" "a-{i}" "qty" n} {"sku" "b-{i}" "qty" score}]}
        address {"street" "Main Street {i}" "city" {"name" "Springfield" "zip" "4971{i}"}}
        units (+ (get (get (get order "lines") 0) "qty") (get (get (get order "lines") 1) "qty"))
        note (str (get order "title") " to " (get (get address "city") "name") ": " units " units")]
    (assoc state "score" (mod (+ score units) 1000) "note" note "address" address)))
;;; h-start
(get (-> {"score" 1}
;;; h-call
  (stage-{i} {x})
;;; h-end
) "note")
