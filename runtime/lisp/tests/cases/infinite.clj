;; Infinite sequences, and transducers.

(take 5 (concat [1 2] (repeat 9)))
;=> [1 2 9 9 9]

(take 4 (map + (range) (iterate #(* 2 %) 1)))
;=> [1 3 6 11]

(first (filter #(> (* % %) 50) (range)))
;=> 8

(for [x (range) :while (< x 3)] x)
;=> [0 1 2]

(let [[a b & more] (iterate inc 5)] [a b (take 2 more)])
;=> [5 6 [7 8]]

(loop [s (iterate inc 0) acc []] (if (= 3 (count acc)) acc (recur (rest s) (conj acc (first s)))))
;=> [0 1 2]

(zipmap [:a :b] (range))
;=> {:a 0 :b 1}

(take 4 (interleave (range) (repeat :s)))
;=> [0 :s 1 :s]

(take 3 (range 1 5 0))
;=> [1 1 1]

(reduce (fn [a x] (if (> a 100) (reduced a) (+ a x))) 0 (range))
;=> 105

(map inc (range))
;=! type_error 1:1 take what is needed first

{:a [(range)]}
;=! type_error 1:1 take what is needed first

(flatten (repeat [1]))
;=! type_error 1:1 take what is needed first

(map seq? [(range) (repeat 1)])
;=> [true true]

(count (iterate inc 0))
;=! type_error 1:1 take what is needed first

(transduce (comp (map inc) (filter odd?) (take 3)) + (range))
;=> 9

(into [] (comp (partition-all 2) (map vec)) [1 2 3 4 5])
;=> [[1 2] [3 4] [5]]

(into {} (map (juxt identity inc)) [1 2])
;=> {1 2 2 3}

(sequence (comp (distinct) (interpose :x)) [1 1 2])
;=> [1 :x 2]

(transduce (take-while pos?) + [1 2 -1 5])
;=> 3

(let [xf (fn [rf] (fn ([] (rf)) ([r] (rf r)) ([r x] (rf r (* 10 x)))))] (into [] xf [1 2]))
;=> [10 20]

(into [] (comp cat (take 3)) [[1 2] [3 4] [5]])
;=> [1 2 3]
