;; Programs that try to exhaust a resource. The line after each lists its allowed outcomes:
;;   ;=! kind …    one of these limits or faults
;;   ;=*           a value or any limit
;; A line after `;x n` is repeated n times, with TURN replaced by 0 to n-1.
;; The wall-clock limit is allowed for all of them.

;; Infinite recursion.

(defn f [n] (+ 1 (f n))) (f 1)
;=! depth_exceeded

((fn f [n] (+ 1 (f n))) 1)
;=! depth_exceeded

(letfn [(f [n] (inc (g n))) (g [n] (inc (f n)))] (f 1))
;=! depth_exceeded

(defn f [x] (map f [x])) (f 1)
;=! depth_exceeded

(defn f [x] (sort-by f [x x])) (f 1)
;=! depth_exceeded

(defn f [x] (reduce (fn [a b] (f b)) [x x])) (f 1)
;=! depth_exceeded

(defn f [x] (apply f [x])) (f 1)
;=! depth_exceeded

(defn f [x] (for [y [x]] (f y))) (f 1)
;=! depth_exceeded

(defn f [x] (prewalk f [x])) (f 1)
;=! depth_exceeded memory_exceeded

(defn f [x] (update {:a x} :a f)) (f 1)
;=! depth_exceeded

(defn f [x] (str/replace "a" #"a" f)) (f 1)
;=! depth_exceeded

(defn f [x] (task "t" (f x))) (f 1)
;=! depth_exceeded

(defn f [x] (let [[a {:keys [b] :or {b (f x)}}] [x {}]] (if (and a (or false b)) (case b 1 (f b) (cond (f a) 1)) b))) (f 1)
;=! depth_exceeded

(let [f (reduce (fn [f _] (comp f inc)) inc (range 100000))] (f 1))
;=! depth_exceeded

(let [f (reduce (fn [f _] (fn [x] (f x))) inc (range 100000))] (f 1))
;=! depth_exceeded

(let [f (reduce (fn [f _] (partial f 1)) + (range 100000))] (f 1))
;=! depth_exceeded memory_exceeded

(let [f (reduce (fn [f _] (juxt f f)) inc (range 100000))] (f 1))
;=! depth_exceeded memory_exceeded

(let [f (reduce (fn [f _] (some-fn f)) nil? (range 100000))] (f 1))
;=! depth_exceeded

(defn f [n] (pmap (fn [x] (f x)) (range 3))) (f 1)
;=! depth_exceeded memory_exceeded

(defn f [n] (pcalls #(f 1) #(f 2))) (f 1)
;=! depth_exceeded memory_exceeded

(pmap (fn [x] ((fn g [n] (inc (g n))) x)) (range 50))
;=! depth_exceeded memory_exceeded

;; Infinite loops.

(loop [] (recur))
;=! timeout

(loop [x 1] (recur (inc x)))
;=! timeout

(defn f [] (recur)) (f)
;=! timeout

(loop [i 0] (doseq [x (range 1000)] x) (recur i))
;=! timeout

(loop [x 0.5] (recur (sqrt x)))
;=! timeout

(loop [] (re-find #"(a|b)*c" "ababababababababababab") (recur))
;=! timeout

(sort (fn [a b] (loop [] (recur))) [1 2 3])
;=! timeout

(sort-by (fn [x] (loop [] (recur))) [1 2 3])
;=! timeout

(pmap (fn [x] (loop [] (recur))) (range 20))
;=! timeout

(pmap (fn [x] (pmap (fn [y] (loop [] (recur))) (range 20))) (range 20))
;=! timeout

(while true 1)
;=! timeout unbound_var

;; Inconsistent comparators.

(sort (fn [a b] true) (range 20000))
;=*

(sort (fn [a b] (rand-nth [-1 0 1])) (range 20000))
;=*

;; Growing texts.

(loop [s "ab"] (recur (str s s)))
;=! memory_exceeded

(loop [s "é"] (recur (str s s)))
;=! memory_exceeded

(str/join "," (map (fn [_] (str/join (range 10000))) (range 100000)))
;=! memory_exceeded

(str/replace (apply str (range 20000)) #"[0-9]" (apply str (range 20000)))
;=! memory_exceeded

(str/replace (apply str (range 20000)) "1" (apply str (range 20000)))
;=! memory_exceeded

(loop [s "a"] (recur (str/replace s "a" "aa")))
;=! memory_exceeded

(loop [s "a"] (recur (str/replace s #"a" (fn [m] (str m m)))))
;=! memory_exceeded

(loop [s "a"] (recur (str/upper-case (str s s "ß"))))
;=! memory_exceeded

(loop [s "a"] (recur (pr-str s)))
;=! memory_exceeded

(loop [s "ab"] (recur (str/join (map str [s s]))))
;=! memory_exceeded

(format "%1000000000d" 1)
;=! memory_exceeded runtime_error type_error

(format "%.1000000000f" 1.5)
;=! memory_exceeded runtime_error type_error

(apply format (apply str (repeat 100000 "%10000d")) (range 100000))
;=! memory_exceeded runtime_error type_error unbound_var

(doseq [x (range 1000000)] (count (format (str "%" 100000 "s") x)))
;=*

(do (doseq [x (range 10000000)] (println "some text that is kept")) (loop [] (recur)))
;=! memory_exceeded

(loop [v [1]] (println v) (recur (into v v)))
;=! memory_exceeded

;; Growing collections.

(loop [v [1]] (recur (into v v)))
;=! memory_exceeded

(loop [v [1]] (recur (concat v v)))
;=! memory_exceeded

(loop [v []] (recur (conj v [1 2 3])))
;=! memory_exceeded

(loop [m {} i 0] (recur (assoc m i (str i)) (inc i)))
;=! memory_exceeded

(loop [s #{} i 0] (recur (conj s i) (inc i)))
;=! memory_exceeded

(loop [v []] (recur [v v]))
;=! memory_exceeded

(loop [v {}] (recur {:a v}))
;=! memory_exceeded

(loop [v {}] (recur {v v}))
;=! memory_exceeded

(loop [f inc] (recur (fn [x] (f x))))
;=! memory_exceeded

(range 1000000000000)
;=! memory_exceeded

(count (range 1000000000000))
;=! memory_exceeded

(reduce + (range 1000000000000))
;=! memory_exceeded

(vec (repeat 1000000000 1))
;=! memory_exceeded unbound_var

(repeat 1000000000000 (vec (range 1000)))
;=! memory_exceeded unbound_var

(for [x (range 100000) y (range 100000)] [x y])
;=! memory_exceeded

(for [x (range 3000) y (range 3000)] {:x x :y [y x]})
;=! memory_exceeded

(combinations (range 60) 30)
;=! memory_exceeded

(tree-seq (fn [x] true) (fn [x] [x x]) 1)
;=! memory_exceeded

(frequencies (range 100000000000))
;=! memory_exceeded

(partition 2 1 (range 10000000000))
;=! memory_exceeded

(partition 100000 1 (range 200000))
;=*

(partition-all 100000 1 (range 200000))
;=*

(reductions conj [] (range 100000))
;=*

(zipmap (range 10000000000) (range 10000000000))
;=! memory_exceeded

(into {} (map (fn [x] [x x]) (range 10000000)))
;=! memory_exceeded

(interleave (range 10000000) (range 10000000))
;=! memory_exceeded

(mapcat (fn [x] (range 1000000)) (range 1000000))
;=! memory_exceeded

(group-by (fn [x] x) (range 10000000))
;=! memory_exceeded

(vec (str/split (apply str (map (fn [i] "a,") (range 3000000))) #","))
;=! memory_exceeded

(re-seq #"." (apply str (range 2000000)))
;=! memory_exceeded

(seq (apply str (range 2000000)))
;=! memory_exceeded

(assoc [] 1000000000 1)
;=! memory_exceeded runtime_error type_error

(sort (map (fn [i] (str "key " i)) (range 3000000)))
;=! memory_exceeded

(pmap (fn [x] (loop [v [1]] (recur (into v v)))) (range 20))
;=! memory_exceeded

(pmap (fn [x] (vec (range 400000))) (range 100))
;=! memory_exceeded

(pmap (fn [x] x) (range 3000000))
;=*

(apply pcalls (map (fn [x] (fn [] (vec (range 100000)))) (range 200)))
;=! memory_exceeded

;; Growing numbers.

(loop [n 2] (recur (* n n)))
;=! memory_exceeded arithmetic_error

(loop [n 2] (recur (*' n n)))
;=! memory_exceeded arithmetic_error

(reduce * (range 1 10000000))
;=! memory_exceeded arithmetic_error

(reduce *' (range 1 100000))
;=*

(count (str (reduce *' (range 1 20000))))
;=*

(reduce (fn [n _] (*' n 123456789)) 1 (range 1000000))
;=! memory_exceeded arithmetic_error

(loop [n 3 i 0] (if (< i 24) (recur (*' n n) (inc i)) (str n)))
;=*

(let [n (loop [n 3 i 0] (if (< i 22) (recur (*' n n) (inc i)) n))] (quot n (inc' (quot n 7))))
;=*

(let [n (loop [n 3 i 0] (if (< i 18) (recur (*' n n) (inc i)) n))] (loop [i 0] (quot n 7) (mod n 1234567) (str n) (recur i)))
;=! timeout arithmetic_error memory_exceeded

(let [a (nth (iterate (fn [x] (* x x)) 3) 19) b (inc (nth (iterate (fn [x] (* x x)) 3) 18))] (loop [] (quot a b) (rem a b) (mod a b) (Math/floorDiv a b) (recur)))
;=! timeout

(let [a (nth (iterate (fn [x] (* x x)) 3) 19)] (loop [] (format "%d" a) (recur)))
;=! timeout

(let [a (nth (iterate (fn [x] (* x x)) 3) 19)] (apply / 1.0 (take 1000000 (cycle [a (+ 0 a)]))))
;=*

(let [a (nth (iterate (fn [x] (* x x)) 3) 19)] (count (str (apply bit-and (take 1000000 (cycle [a (+ 0 a)]))))))
;=*

(let [a (nth (iterate (fn [x] (* x x)) 3) 19)] (count (str (apply max (take 1000000 (cycle [a (+ 0 a)]))))))
;=*

(bit-shift-left 1 100000000000)
;=! memory_exceeded arithmetic_error type_error

(parse-long (apply str (map (fn [_] "9") (range 1000000))))
;=*

(Math/pow 10 1e308)
;=*

;; Deep values.

(reduce (fn [v _] [v]) [] (range 100000))
;=*

(pr-str (reduce (fn [v _] [v]) [] (range 100000)))
;=*

(let [deep (fn [] (reduce (fn [v _] [v]) [] (range 100000)))] [(= (deep) (deep)) (compare (deep) (deep)) (count #{(deep) (deep)}) (count (flatten (deep)))])
;=*

(let [deep (fn [] (reduce (fn [m _] {:k m}) {} (range 100000)))] [(= (deep) (deep)) (hash-map (deep) 1) (count (distinct [(deep) (deep)]))])
;=*

(let [deep (reduce (fn [s _] #{s}) #{} (range 100000))] (str deep))
;=*

(json/generate-string (reduce (fn [v _] [v]) [] (range 100000)))
;=*

(json/parse-string (apply str (map (fn [_] "[") (range 100000))))
;=*

(postwalk identity (reduce (fn [v _] [v]) [] (range 100000)))
;=*

(get-in (reduce (fn [m _] {:k m}) {} (range 100000)) (map (fn [_] :k) (range 100000)))
;=*

(assoc-in {} (range 100000) 1)
;=*

(update-in {} (range 100000) (fn [x] 1))
;=*

(tree-seq vector? seq (reduce (fn [v _] [v]) [] (range 100000)))
;=*

;; Values that share parts, whose printed form is exponentially long.

(reduce (fn [v _] [v v]) [] (range 40))
;=*

(pr-str (reduce (fn [v _] [v v]) [1] (range 40)))
;=! memory_exceeded

(str (reduce (fn [v _] {:a v :b v}) {} (range 40)))
;=! memory_exceeded

(println (reduce (fn [v _] [v v]) [1] (range 40)))
;=*

(json/generate-string (reduce (fn [v _] [v v]) [1] (range 40)))
;=! memory_exceeded runtime_error

(let [wide (fn [] (reduce (fn [v _] [v v]) [1] (range 40)))] (= (wide) (wide)))
;=*

(let [wide (fn [] (reduce (fn [v _] [v v]) [1] (range 40)))] [(compare (wide) (wide)) (count #{(wide) (wide)}) (get {(wide) 1} (wide)) (sort [(wide) (wide)])])
;=*

(let [wide (fn [x] (reduce (fn [v _] [v v]) [x] (range 40)))] (= (wide 1) (wide 2)))
;=*

(let [wide (fn [] (reduce (fn [v _] {v v}) {} (range 30)))] (= (wide) (wide)))
;=*

(flatten (reduce (fn [v _] [v v]) [1] (range 40)))
;=! memory_exceeded

(postwalk identity (reduce (fn [v _] [v v]) [1] (range 40)))
;=! memory_exceeded timeout

(keywordize-keys (reduce (fn [v _] {"a" v "b" v}) {} (range 40)))
;=! memory_exceeded timeout

(tree-seq vector? seq (reduce (fn [v _] [v v]) [1] (range 40)))
;=! memory_exceeded

(fail (reduce (fn [v _] [v v]) [1] (range 40)))
;=! fail

(task "t" (reduce (fn [v _] [v v]) [1] (range 40)))
;=*

(inc (reduce (fn [v _] [v v]) [1] (range 40)))
;=! type_error

(tool/call (reduce (fn [m _] {:a m :b m}) {} (range 40)))
;=! unknown_tool tool_error

(let [x (reduce (fn [v _] [v v]) [1] (range 40))] (loop [i 0] (hash x) (recur (inc i))))
;=! timeout unbound_var

;; Much work in a single step.

(let [a (vec (range 300000)) b (vec (range 300000))] (loop [i 0] (= a b) (recur (inc i))))
;=! timeout memory_exceeded

(let [a (vec (range 300000)) b (vec (range 300000))] (loop [i 0] (compare a b) (recur (inc i))))
;=! timeout memory_exceeded

(let [a (vec (range 300000)) b (vec (range 300000))] (sort (map (fn [i] (if (even? i) a b)) (range 20000))))
;=*

(let [a (vec (range 300000)) b (vec (range 300000))] (distinct (map (fn [i] (if (even? i) a b)) (range 20000))))
;=*

(let [a (vec (range 300000)) b (vec (range 300000))] (frequencies (map (fn [i] (if (even? i) a b)) (range 20000))))
;=*

(let [a (vec (range 300000)) b (vec (range 300000)) m {a 1}] (loop [i 0] (get m b) (recur (inc i))))
;=! timeout memory_exceeded

(let [a (vec (range 300000)) b (vec (range 300000))] (index-of (map (fn [i] a) (range 20000)) b))
;=*

(let [a (vec (range 300000)) b (conj (vec (range 299999)) 0)] (some #{b} (map (fn [i] a) (range 20000))))
;=*

(let [s (apply str (range 400000)) t (str s "x") u (str s "y")] (loop [i 0] (= t u) (compare t u) (recur (inc i))))
;=! timeout memory_exceeded

(let [s (apply str (map (fn [_] "é") (range 400000)))] (loop [i 0] (count s) (subs s 10 20) (reverse s) (recur (inc i))))
;=! timeout memory_exceeded

(let [s (apply str (range 400000))] (loop [i 0] (str/index-of s "nowhere") (str/includes? s "nowhere") (str/upper-case s) (recur (inc i))))
;=! timeout memory_exceeded

(let [s (apply str (range 200000))] (loop [i 0] (str/split s #"1") (str/replace s "1" "2") (recur (inc i))))
;=! timeout memory_exceeded

(let [v (vec (range 500000))] (loop [i 0] (last v) (reverse v) (vec (rest v)) (sort v) (recur (inc i))))
;=! timeout memory_exceeded

(let [v (vec (range 500000))] (loop [i 0] (pr-str v) (recur (inc i))))
;=! timeout memory_exceeded

(let [v (vec (range 300000))] (loop [i 0] (json/generate-string v) (recur (inc i))))
;=! timeout memory_exceeded

(let [s (json/generate-string (vec (range 300000)))] (loop [i 0] (json/parse-string s) (recur (inc i))))
;=! timeout memory_exceeded

(let [m (zipmap (range 100000) (range 100000))] (loop [i 0] (keys m) (merge m m) (into {} m) (select-keys m (range 50000)) (recur (inc i))))
;=! timeout memory_exceeded

(let [v (vec (range 300000)) w (vec (range 300000))] (loop [i 0] (concat v w) (interleave v w) (apply + v) (apply max w) (recur (inc i))))
;=! timeout memory_exceeded

(let [a (set (range 100000)) b (set (range 50000 150000))] (loop [i 0] (set/union a b) (set/difference a b) (set/subset? a b) (recur (inc i))))
;=! timeout memory_exceeded

(let [v (vec (range 200000))] (doseq [x v] (subvec v x) (nth v x) (count (rest v)) (take 5 v) (drop 5 v)))
;=*

(let [v (vec (range 100000))] (loop [v v] (if (seq v) (recur (conj (vec (rest v)) 1)) v)))
;=*

(loop [v (vec (range 300000))] (recur (vec (cons 1 (butlast v)))))
;=! timeout memory_exceeded

(loop [v (vec (range 200000))] (recur (shuffle v)))
;=! timeout memory_exceeded

(count (shuffle (vec (range 700000))))
;=*

;; Patterns.

(re-find #"(a+)+$" (str (apply str (map (fn [_] "a") (range 50000))) "!"))
;=*

(re-find #"(a|aa)+(?=!)" (apply str (map (fn [_] "a") (range 5000))))
;=*

(re-find #"^(a+)+\1b$" (apply str (map (fn [_] "a") (range 5000))))
;=*

(re-find #"(?=(a+))a*b\1" (apply str (map (fn [_] "a") (range 50000))))
;=*

(re-find #"(?:(?=a)a?)*(?!a)b" (apply str (map (fn [_] "a") (range 50000))))
;=*

(re-seq #"(?<=a)(a|aa)*(?=b)" (apply str (map (fn [_] "a") (range 50000))))
;=*

(re-matches #"(x+x+)+y" (apply str (map (fn [_] "x") (range 50000))))
;=*

(re-matches #"(x+x+)+\1y" (apply str (map (fn [_] "x") (range 50000))))
;=*

(re-seq #"(.*)*" (apply str (range 5000)))
;=*

(re-seq #".*?.*?.*?.*?=" (apply str (range 100000)))
;=*

(re-seq #"\w*\d*\w*!" (apply str (range 100000)))
;=*

(loop [] (re-find #"(?=a)b|(a|a)*c\1?" (apply str (map (fn [_] "a") (range 300)))) (recur))
;=! timeout runtime_error memory_exceeded

(re-pattern (apply str (map (fn [_] "(") (range 100000))))
;=*

(re-pattern "((a{1000}){1000}){1000}")
;=*

(re-find (re-pattern (str/join "|" (map (fn [i] (str "word" i)) (range 50000)))) "word49999")
;=*

(re-find (re-pattern (apply str (map (fn [_] "(a?)") (range 2000)))) (apply str (map (fn [_] "a") (range 2000))))
;=*

(loop [i 0] (re-pattern (str "(x{1,500}|y{1,500}){1,40}" i)) (recur (inc i)))
;=! timeout memory_exceeded parse_error runtime_error type_error

(map (fn [i] (re-pattern (str "(ab|c{1,100}){1,20}" i))) (range 100000))
;=*

(str/split (apply str (range 1000000)) #"(?=1)")
;=*

(str/replace (apply str (range 100000)) #"(?=1)|(?<=2)" "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")
;=*

;; Many searches of a short text, each without an interrupt check.

(count (re-seq #"(?s)a(?:.*z)?" (apply str (repeat 300000 "a"))))
;=! timeout

(count (re-seq #"a(?:[ab]*a[ab]{12}z)?" (apply str (repeatedly 60000 (fn [] (rand-nth ["a" "b"]))))))
;=! timeout

(count (str/split (apply str (repeat 300000 "a")) #"(?s)a(?:.*z)?"))
;=! timeout

(str/replace (apply str (repeat 300000 "a")) #"(?s)a(?:.*z)?" "b")
;=! timeout

(let [s (apply str (repeatedly 10000 (fn [] (rand-nth ["a" "b"]))))] (loop [] (re-find #"a(?:[ab]*a[ab]{12}z)?" s) (recur)))
;=! timeout

;; Backtracking steps over many characters or with many backtrack points.

(re-find #"a++b" (apply str (repeat 300000 "a")))
;=*

(re-find #"(?<=(?:|){9000}(?:bb|c))x" (apply str (repeat 100000 "b")))
;=*

;; Patterns whose search of an empty text is expensive.

(re-find #"[xy]*y[xy]{290}[a-w]" (str (apply str (repeat 400000 "xxy")) "!"))
;=*

(count (re-seq #"([xy]*)y([xy]{290})[a-w]" (str (apply str (repeat 100000 "xxyyx")) "z")))
;=*

(re-find #"([xy]{1,500}){1,8}[a-w]" (str (apply str (repeat 200000 "xxy")) "!"))
;=*

(loop [] (re-find #"([xy]{1,500}){1,2}[a-w]" (str (apply str (repeat 10000 "xxy")) "!")) (recur))
;=! timeout

(re-find #"(?<!q)[xy]*y[xy]{290}[a-w]" (apply str (repeat 100000 "xxy")))
;=*

(re-find #"(?=[xy]*[a-w])z" (apply str (repeat 300000 "xxy")))
;=*

(re-find #"(?:[xy](?![xy]*[a-w]))*z" (apply str (repeat 300000 "xxy")))
;=*

(re-find #"(?s)(?!q)(?:.|x)*z" (apply str (repeat 300000 "xxy")))
;=*

(re-find #"(?<=[xy]{1,60})[a-w]" (apply str (repeat 300000 "xxy")))
;=*

(re-find #"([xy]*)[a-w]\1" (apply str (repeat 300000 "xxy")))
;=*

(loop [] (re-seq #"(?>(?=(x|y))[xy])" (apply str (repeat 1000 "xxy"))) (recur))
;=! timeout

(re-pattern "(?=a)(?:(?:(?:x{0,99}(y)){0,99}(z)){0,99}){0,99}")
;=*

(re-pattern "(?=a)(?:){0,999999999}(?:(?:b?){999999}){999999}")
;=*

(re-find (re-pattern (apply str "(?=a)" (repeat 900 "(x?)"))) (apply str (repeat 900 "ax")))
;=*

;; Other programs.

(distinct (map str (range 200000)))
;=*

(let [m (reduce (fn [m i] (assoc m {m i} i)) {} (range 25))] (count (str m)))
;=*

(let [m (reduce (fn [m i] {m m}) {} (range 40))] [(count m) (= m m) (get m m)])
;=*

(memoize (fn [x] x))
;=*

(reduce (fn [a i] (assoc a (keyword (str "k" i)) i)) {} (range 1000000))
;=! memory_exceeded

(reduce (fn [s i] (conj s (symbol (str "k" i)))) #{} (range 1000000))
;=! memory_exceeded unbound_var

(apropos (apply str (map (fn [_] "map ") (range 100000))))
;=*

(apply (fn [& xs] (count xs)) (range 10000000))
;=*

(apply hash-map (range 10000000))
;=! memory_exceeded

(apply str (range 10000000))
;=! memory_exceeded

(let [f (fn f [n] (if (zero? n) [] (conj (f (dec n)) (range 10000))))] (f 3000))
;=! memory_exceeded

(defn f [n] (let [v (vec (range 1000))] (+ (count v) (f (inc n))))) (f 0)
;=! depth_exceeded memory_exceeded

(pmap (fn [x] (loop [v []] (recur (conj v (vec (range 250)))))) (range 8))
;=! memory_exceeded

(let [a (vec (range 300000)) b (vec (range 300000))] (loop [i 0] (= [a] [b]) (recur (inc i))))
;=! timeout memory_exceeded

(let [n (loop [n 3 i 0] (if (< i 18) (recur (*' n n) (inc i)) n))] (loop [i 0] (println n) (recur (inc i))))
;=! timeout memory_exceeded

(let [n (loop [n 3 i 0] (if (< i 18) (recur (*' n n) (inc i)) n))] (pr-str (map (fn [_] n) (range 100000))))
;=! timeout memory_exceeded

(let [n (loop [n 3 i 0] (if (< i 18) (recur (*' n n) (inc i)) n))] (json/generate-string (map (fn [_] n) (range 100000))))
;=! timeout memory_exceeded

(let [n (loop [n 3 i 0] (if (< i 19) (recur (*' n n) (inc i)) n))] [n n n])
;=*

(let [n (loop [n 3 i 0] (if (< i 19) (recur (*' n n) (inc i)) n))] (map n [1 2]))
;=! not_callable

(let [s (apply str (range 400000)) m {s 1}] (loop [i 0] (get m (str s "")) (recur (inc i))))
;=! timeout memory_exceeded

(let [v (reduce (fn [v _] [v 0]) [] (range 100000)) w (reduce (fn [v _] [v 0]) [] (range 100000))] [(= v w) (count #{v w}) (count (pr-str v)) (hash-map v 1)])
;=*

;; Infinite sequences.

(count (iterate inc 0))
;=! timeout memory_exceeded type_error runtime_error

(vec (iterate inc 0))
;=! timeout memory_exceeded type_error runtime_error

(first (filter neg? (iterate inc 0)))
;=! timeout

(take 1000000000 (cycle [1 2 3]))
;=! memory_exceeded

(take 1000000000 (repeatedly (fn [] (vec (range 1000)))))
;=! memory_exceeded

(last (take-while int? (range)))
;=! timeout memory_exceeded

(let [s (reduce (fn [s _] (map inc s)) (iterate inc 0) (range 100000))] (take 3 s))
;=*

(let [s (reduce (fn [s _] (cycle [s])) (repeat 1) (range 100000))] (take 3 s))
;=*

(into [] (comp (mapcat (fn [x] (repeat 1000 x))) (map str)) (range 100000))
;=! memory_exceeded

(transduce (map inc) + (range 100000000000))
;=! timeout memory_exceeded

(reduce + (iterate inc 1))
;=! timeout memory_exceeded type_error runtime_error

(apply + (repeat 1))
;=! timeout memory_exceeded type_error runtime_error

(= (iterate inc 0) (iterate inc 0))
;=*

(str (iterate inc 0))
;=*

(sort (cycle [1 2]))
;=! timeout memory_exceeded type_error runtime_error

(shuffle (cycle [1 2]))
;=! timeout memory_exceeded type_error runtime_error

;; Results of memoize.

(let [f (memoize (fn [n] (vec (range 1000))))] (doseq [i (range)] (f i)))
;=! memory_exceeded

(let [f (memoize (fn [g n] [g n]))] (doseq [i (range)] (f f i)))
;=! memory_exceeded

(doseq [i (range)] ((memoize (fn [n] (vec (range 100)))) i))
;=! timeout

((memoize (fn [x] 1)) (reduce (fn [v _] [v v]) [] (range 40)))
;=! timeout

(def f (memoize (fn [n] (if (zero? n) 0 (inc (f (dec n))))))) (f 1000000)
;=! depth_exceeded

;; Many calls by builtins that count no steps themselves.

(count (apply map vector (repeat 100000 (vec (range 1000)))))
;=! memory_exceeded timeout

(count (apply mapv hash-set (repeat 100000 (vec (range 1000)))))
;=! memory_exceeded timeout

(count (apply map (fn [& xs] xs) (repeat 100000 (vec (range 1000)))))
;=! memory_exceeded timeout

(count (apply map + (repeat 100000 (vec (range 1000)))))
;=! timeout

(count (apply interleave (repeat 100000 (vec (range 1000)))))
;=! memory_exceeded timeout

(count (map (apply juxt (repeat 100000 :a)) (range 1000)))
;=! memory_exceeded timeout

(count (map (apply comp (repeat 300000 :a)) (range 3000)))
;=! timeout

(count (map (apply every-pred (repeat 300000 (constantly true))) (range 3000)))
;=! timeout

(count (map (apply some-fn (repeat 300000 :a)) (range 3000)))
;=! timeout

(let [v (vec (range 200000))] (loop [] (pmap inc v) (recur)))
;=! timeout

(loop [] (pmap inc [1 2]) (recur))
;=! timeout

;; Relations.

(let [ms (mapv (fn [i] {:a i}) (range 100000))] (set/index ms ms))
;=! timeout memory_exceeded

(count (set/index (set (map (fn [i] {:a i}) (range 150000))) [:a]))
;=! memory_exceeded timeout

(count (set/project (set (map (fn [i] {:a i}) (range 10000))) (range 30000)))
;=! timeout memory_exceeded

(count (set/rename (map (fn [i] {:a i}) (range 10000)) (zipmap (range 30000) (range 30000))))
;=! timeout memory_exceeded

(let [ms (mapv (fn [i] {:a i}) (range 20000)) v (vec (range 200000))] (loop [] (set/index ms v) (recur)))
;=! timeout memory_exceeded

(let [ms (map (fn [i] {:a 1 :b i}) (range 20000))] (count (set/join ms ms {:a :a})))
;=! timeout memory_exceeded

(let [ms (mapv (fn [i] {:a i}) (range 20000)) by (zipmap (range 60000) (range 60000))] (loop [] (set/join ms ms by) (recur)))
;=! timeout memory_exceeded

;; Conversions of whole collections.

(count (frequencies (set (range 500000))))
;=! memory_exceeded timeout

(count (distinct (set (range 500000))))
;=! memory_exceeded timeout

(count (postwalk identity (zipmap (range 300000) (range 300000))))
;=! memory_exceeded timeout

(count (keywordize-keys (zipmap (range 300000) (range 300000))))
;=! memory_exceeded timeout

(count (reduce-kv conj [] (vec (range 900000))))
;=! memory_exceeded timeout

(let [v (vec (range 900000))] (count (set/difference v v)))
;=! memory_exceeded timeout

(count (set (map (fn [i] (str (mod (* i 7919) 100003) "-" i)) (range 200000))))
;=*

(let [v (vec (range 20000))] (count (set (mapv (fn [i] (conj v (mod (* i 7919) 100003))) (range 3000)))))
;=*

(count (str/split (apply str (repeat 7000000 ",x")) #","))
;=! memory_exceeded timeout

(count (str/split-lines (apply str (repeat 4000000 "\nx"))))
;=! memory_exceeded timeout

(count (str/replace (apply str (repeat 1000000 "x")) #"(?s).+" (apply str (repeat 100000 "$0"))))
;=! memory_exceeded timeout

(str/join (apply str (repeat 1000000 "x")) (range 100000))
;=! memory_exceeded timeout

;; Repeated work on texts.

(let [s (apply str (repeat 50000 "abcdéfghi "))] (loop [] (subs s 400000) (recur)))
;=! timeout

(let [s (apply str (repeat 50000 "abcdéfghi "))] (loop [] (count (str s "é")) (recur)))
;=! timeout

(let [s (apply str (repeat 50000 "abcdéfghi "))] (loop [] (get s 400000) (recur)))
;=! timeout

(let [s (apply str (repeat 50000 "abcdéfghi "))] (loop [] (.charAt s 400000) (recur)))
;=! timeout

(let [s (apply str (repeat 50000 "abcdéfghi "))] (loop [] (str/last-index-of #"[^z]*z" s) (recur)))
;=! timeout type_error

(let [m (zipmap (range 60000) (range 60000))] (loop [] (replace m m) (recur)))
;=! timeout

(let [long (fn [] (apply str (repeat 200000 "abcdefghij")))] (= (vec (repeat 200000 (long))) (vec (repeat 200000 (long)))))
;=*

(let [v (vec (repeat 1000 (apply str (repeat 500000 "abcdefghij"))))] (count (frequencies (map (fn [i] (conj v i)) (range 1000)))))
;=*

(let [s (apply str (repeat 500000 "abcdefghij"))] (loop [] (frequencies [s]) (recur)))
;=! timeout

(let [s (apply str (repeat 500000 "abcdefghij"))] (loop [] (.toUpperCase s) (recur)))
;=! timeout

(let [s (apply str (repeat 500000 "abcdefghij"))] (loop [] (format "%s" s) (recur)))
;=! timeout

(let [m (zipmap (range 60000) (range 60000))] (loop [] (replace m) (recur)))
;=! timeout

;; Regexes in the text, which are compiled before the program runs.

;x 2000
#"(x{1,50}|y{1,50}){1,40}TURN"
;=! parse_error

;x 1000
#"(?=(x{1,50}|y{1,50}){1,40}TURN)x"
;=! parse_error

;x 16
#"(?U)(?=a)\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\w\wTURN"
;=*

;x 2000
#"\p{L}{1,9}TURN"
;=! parse_error

;x 120
#"(?i)[a-z\p{L}]{1,3}\s+(foo|bar|TURN)"
;=*

;x 4
#"(x{1,50}|y{1,50}){1,40}TURN"
;=*

(let [r (apply str (repeat 100 "(?=(x{1,50}|y{1,50}){1,40}0)"))] (re-find (re-pattern r) "xxx"))
;=*

(loop [i 0] (re-pattern (str "(x{1,50}|y{1,50}){1,40}" i)) (recur (inc i)))
;=! timeout

(reduce (fn [all i] (conj all (re-pattern (str "(x{1,50}|y{1,50}){1,40}" i)))) [] (range))
;=! memory_exceeded timeout

;; Literals with thousands of keys.

(def v (vec (range 20000)))
(def f (fn [i] (conj v (mod (* i 7919) 100003))))
(loop [] (hash-set
;x 3000
(f TURN)
) (recur))
;=! timeout memory_exceeded

(def v (vec (range 20000)))
(def f (fn [i] (conj v (mod (* i 7919) 100003))))
(loop [] #{
;x 3000
(f TURN)
} (recur))
;=! timeout memory_exceeded

;; One long comparison of equal values that share no parts.

(def t (apply str (repeat 40000 "a")))
(defn texts [] (mapv (fn [_] (str (subs t 1) "a")) (range 200)))
(let [a (texts) b (texts) v (vec (for [x a y b] x)) w (vec (for [x a y b] y))] (= v w))
;=*

(def t (apply str (repeat 40000 "a")))
(defn names [] (mapv (fn [_] (keyword (str (subs t 1) "a"))) (range 200)))
(let [a (names) b (names)] (loop [] (= (vec (for [x a y b] x)) (vec (for [x a y b] y))) (recur)))
;=! timeout memory_exceeded

(def n (loop [n 3 i 0] (if (< i 19) (recur (*' n n) (inc i)) n)))
(= (vec (repeat 300000 n)) (vec (repeat 300000 (inc' (dec' n)))))
;=*

(def n (loop [n 3 i 0] (if (< i 19) (recur (*' n n) (inc i)) n)))
(let [v (mapv (fn [i] [(inc' (dec' n)) i]) (range 60))] (loop [] (hash-set (vec (repeat 9000 v)) (conj (vec (repeat 8999 v)) [])) (recur)))
;=! timeout memory_exceeded

(defn rows [] (mapv (fn [_] (vec (range 20))) (range 500)))
(let [a (rows) b (rows)] (loop [] (= (vec (for [x a y b] x)) (vec (for [x a y b] y))) (recur)))
;=! timeout memory_exceeded

(defn rows [] (mapv (fn [_] [1 2]) (range 500)))
(let [a (rows) b (rows)] (loop [] (= (vec (for [x a y b] x)) (vec (for [x a y b] y))) (recur)))
;=! timeout memory_exceeded

(defn grid [] (mapv (fn [_] (vec (range 1000))) (range 150)))
(let [all (mapv (fn [_] (grid)) (range 8))] (loop [] (sort all) (recur)))
;=! timeout memory_exceeded

(let [v (vec (range 2000))] (count (distinct (map (fn [i] (assoc v 1500 (- i))) (range 20000)))))
;=! timeout memory_exceeded

(def n (loop [n 3 i 0] (if (< i 19) (recur (*' n n) (inc i)) n)))
(let [v (vec (repeat 1000 n))] (count (frequencies (map (fn [i] (conj v i)) (range 20000)))))
;=! timeout memory_exceeded

(def t (apply str (repeat 100000 "a")))
(def v (vec (take 32000 (cycle (mapv (fn [_] [(str (subs t 1) "a")]) (range 150))))))
(loop [] (set v) (recur))
;=! timeout memory_exceeded

(def t (apply str (repeat 100000 "a")))
(def v (vec (take 32000 (cycle (mapv (fn [_] (str (subs t 1) "a")) (range 150))))))
(loop [] (zipmap v v) (group-by identity v) (recur))
;=! timeout memory_exceeded

(def n (loop [n 3 i 0] (if (< i 19) (recur (*' n n) (inc i)) n)))
(let [v (vec (repeat 300000 n)) w (vec (repeat 300000 (inc' (dec' n))))] (return (= v w)))
;=*

(def n (loop [n 3 i 0] (if (< i 19) (recur (*' n n) (inc i)) n)))
(let [v (vec (repeat 300000 n))] (pmap (fn [k] (= v (vec (repeat 300000 (+' k (-' n k)))))) (range 1 20)))
;=*

;; Values whose rendering after the program takes long.

(def n (loop [n 3 i 0] (if (< i 19) (recur (*' n n) (inc i)) n)))
(vec (repeat 100000 n))
;=*

(def n (loop [n 3 i 0] (if (< i 19) (recur (*' n n) (inc i)) n)))
(zipmap (map (fn [i] (+' n i)) (range 40)) (repeat 1))
;=*

(def n (loop [n 3 i 0] (if (< i 15) (recur (*' n n) (inc i)) n)))
(vec (repeat 3000 (reduce (fn [x _] [x n]) [n n] (range 20))))
;=*

(vec (repeat 3000 (reduce (fn [x _] [x]) (vec (range 40000)) (range 31))))
;=*

(vec (repeat 3000 (reduce (fn [x _] {x x}) (vec (range 40000)) (range 8))))
;=*

(fail (vec (repeat 3000 (reduce (fn [x _] [x]) (vec (range 40000)) (range 31)))))
;=! fail

;; Memory that one thread frees is not available to other threads after a rejection.

(count (pmap (fn [i] (pmap (fn [j] (vec (range 20000))) (range 100))) (range 100)))
;=! memory_exceeded

(loop [s "a"] (recur (str s "b" s)))
;=! memory_exceeded

;; Values that fill the memory, followed by a walk over all of them.

(json/generate-string (vec (range 1200000)))
;=! memory_exceeded

(count (map (fn [j] (vec (range 1000))) (range 10000)))
;=! memory_exceeded

;; A long record of a CSV text before many short ones.

(let [s (reduce (fn [s _] (str s s)) "x" (range 21))] (csv/parse-string (str s "\n" (apply str (repeat 200000 "a\n")))))
;=*

(csv/parse-string (str (apply str (repeat 300000 ",")) "\n" (apply str (repeat 200000 "a\n"))))
;=*
