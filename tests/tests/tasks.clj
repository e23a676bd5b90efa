;; Tasks over the quickstart's upstreams, and for each the program that a model wrote who had seen the description of `lisp_eval`
;; and what `(doc …)` says of the five tools, and had run nothing. All 30 were right the first time; here they stay so.
;;
;; A task is `;;; ` and words, its context `;;: ` and JSON, its answer `;=> ` and what follows the prefix.

;;; How many pets of each species are there? A map species -> count.
(let [r (tool/call {:server "petstore" :tool "list-pets" :args {}})]
  (if (:ok r)
    (frequencies (map :species (:value r)))
    (fail (:message r))))
;=> {"cat" 72 "dog" 54 "parrot" 53 "rabbit" 61}

;;; The names of the five heaviest pets with their weights, heaviest first.
(let [r (tool/call {:server "petstore" :tool "list-pets" :args {}})]
  (if (:ok r)
    (->> (:value r)
         (filter :weight_kg)
         (sort-by :weight_kg >)
         (take 5)
         (mapv (juxt :name :weight_kg)))
    (fail (:message r))))
;=> [["Juno" 40.3] ["Iris" 40.0] ["Fig" 39.1] ["Clover" 39.0] ["Fig" 39.0]]

;;; The total amount of unpaid visits, in all.
(let [r (tool/call {:server "visits" :tool "list_visits" :args {:unpaid_only true}})]
  (if (:ok r)
    (reduce + (map :amount (:visits (:value r))))
    (fail (:message r))))
;=> 15475

;;; The three owners with the largest unpaid sums: [owner sum] pairs, largest first.
(defn call! [server tool args]
  (let [r (tool/call {:server server :tool tool :args args})]
    (if (:ok r) (:value r) (fail (:message r)))))

(let [owner-of (into {} (map (juxt :id :owner)) (call! "petstore" "list-pets" {}))
      visits (:visits (call! "visits" "list_visits" {:unpaid_only true}))]
  (->> visits
       (filter #(owner-of (:pet_id %)))
       (reduce (fn [m v] (update m (owner-of (:pet_id v)) (fnil + 0) (:amount v))) {})
       (sort-by (fn [[owner sum]] [(- sum) owner]))
       (take 3)
       vec))
;=> [["Margaret" 2030] ["Ada" 1985] ["Edsger" 1710]]

;;; For each vet, the average amount of a visit, rounded to two decimals. A map.
(let [r (tool/call {:server "visits" :tool "list_visits" :args {}})]
  (if (:ok r)
    (->> (:visits (:value r))
         (group-by :vet)
         (map (fn [[vet vs]]
                (let [avg (/ (reduce + (map :amount vs)) (double (count vs)))]
                  [vet (/ (Math/round (* 100.0 avg)) 100.0)])))
         (into {}))
    (fail (:message r))))
;=> {"Dr. Hopper" 122.43 "Dr. Liskov" 120.58 "Dr. Naur" 117.92}

;;; The number of visits in each month (as "2026-01"), sorted by month.
(let [r (tool/call {:server "visits" :tool "list_visits" :args {}})]
  (if (:ok r)
    (->> (:visits (:value r))
         (map #(subs (:date %) 0 7))
         frequencies
         (into (sorted-map)))
    (fail (:message r))))
;=> {"2026-01" 89 "2026-02" 98 "2026-03" 87 "2026-04" 102 "2026-05" 90 "2026-06" 84 "2026-07" 86 "2026-08" 94 "2026-09" 73 "2026-10" 97}

;;; The oldest pet (smallest `born`): its name, owner and age in whole years on 2026-06-30.
(import '(java.time LocalDate Period))

(let [r (tool/call {:server "petstore" :tool "list-pets" :args {}})]
  (if (:ok r)
    (let [p (->> (:value r) (filter :born) (sort-by :born) first)
          age (.getYears (Period/between (LocalDate/parse (:born p))
                                         (LocalDate/parse "2026-06-30")))]
      {:name (:name p) :owner (:owner p) :age age})
    (fail (:message r))))
;=> {:age 16 :name "Moss" :owner "Ada"}

;;; The names of the pets that have no microchip, sorted, without repeats.
(let [r (tool/call {:server "petstore" :tool "list-pets" :args {}})]
  (if (:ok r)
    (->> (:value r)
         (filter #(str/blank? (:microchip %)))
         (map :name)
         distinct
         sort
         vec)
    (fail (:message r))))
;=> []

;;; Which owners have more than one species? A sorted list of names.
(let [r (tool/call {:server "petstore" :tool "list-pets" :args {}})]
  (if (:ok r)
    (->> (:value r)
         (group-by :owner)
         (filter (fn [[_ pets]] (> (count (set (map :species pets))) 1)))
         (map key)
         sort
         vec)
    (fail (:message r))))
;=> ["Ada" "Barbara" "Edsger" "Frances" "Grace" "John" "Katherine" "Ken" "Margaret" "Tony"]

;;; The median weight of cats.
(let [r (tool/call {:server "petstore" :tool "list-pets" :args {:species "cat"}})]
  (if (:ok r)
    (let [ws (vec (sort (keep :weight_kg (:value r))))
          n (count ws)
          h (quot n 2)]
      (cond
        (zero? n) nil
        (odd? n) (nth ws h)
        :else (/ (+ (nth ws (dec h)) (nth ws h)) 2.0)))
    (fail (:message r))))
;=> 18.65

;;; The share of visits that are paid, as a percentage with one decimal (a number).
(let [r (tool/call {:server "visits" :tool "list_visits" :args {}})]
  (if (:ok r)
    (let [vs (:visits (:value r))
          paid (count (filter :paid vs))]
      (/ (Math/round (/ (* 1000.0 paid) (count vs))) 10.0))
    (fail (:message r))))
;=> 85.9

;;; Pets that never had a visit: how many?
(defn call! [server tool args]
  (let [r (tool/call {:server server :tool tool :args args})]
    (if (:ok r) (:value r) (fail (:message r)))))

(let [pets (call! "petstore" "list-pets" {})
      visited (set (map :pet_id (:visits (call! "visits" "list_visits" {}))))]
  (count (remove (comp visited :id) pets)))
;=> 6

;;; The most frequent reason of visits and how often it occurs.
(let [r (tool/call {:server "visits" :tool "list_visits" :args {}})]
  (if (:ok r)
    (->> (:visits (:value r))
         (map :reason)
         frequencies
         (apply max-key val))
    (fail (:message r))))
;=> ["limping after a walk" 194]

;;; For each owner on the watchlist (note "watchlist"), the number of unpaid visits of their pets.
(defn call! [server tool args]
  (let [r (tool/call {:server server :tool tool :args args})]
    (if (:ok r) (:value r) (fail (:message r)))))

(let [note (call! "notes" "read_note" {:name "watchlist"})
      pets (call! "petstore" "list-pets" {})
      owner-of (into {} (map (juxt :id :owner) pets))
      counts (frequencies (map (comp owner-of :pet_id)
                               (:visits (call! "visits" "list_visits" {:unpaid_only true}))))]
  (println note)
  (into {}
        (for [o (distinct (map :owner pets))
              :when (str/includes? (str note) o)]
          [o (get counts o 0)])))
;=> {"Ada" 16 "Grace" 14 "Ken" 12}

;;; The opening hours note: on how many days a week is the practice open, by what it says? Answer with the note's lines and the number of lines.
(defn call! [server tool args]
  (let [r (tool/call {:server server :tool tool :args args})]
    (if (:ok r) (:value r) (fail (:message r)))))

(let [listing (call! "notes" "list_notes" {})
      text (if (string? listing) listing (json/generate-string listing))
      candidates (distinct (re-seq #"(?i)[\w.-]*(?:open|hour)[\w.-]*" text))
      note (->> candidates
                (map #(tool/call {:server "notes" :tool "read_note" :args {:name %}}))
                (filter :ok)
                first)]
  (if note
    (let [lines (vec (remove str/blank? (str/split-lines (:value note))))]
      {:lines lines :count (count lines)})
    (fail (str "no opening hours note in: " text))))
;=> {:count 2 :lines ["Mon-Fri 8:00-18:00" "Sat 9:00-12:00"]}

;;; The pet with id 7 via get-pet: its name upper-cased and reversed.
(let [r (tool/call {:server "petstore" :tool "get-pet" :args {:petId 7}})]
  (if (:ok r)
    (-> r :value :name str/upper-case str/reverse)
    (fail (:message r))))
;=> "ONUJ"

;;; Get the pets 1, 5, 9 and 13 in parallel with get-pet and answer with their names in that order.
(->> [1 5 9 13]
     (map (fn [id] {:server "petstore" :tool "get-pet" :args {:petId id}}))
     (pmap tool/call)
     (mapv (fn [r] (if (:ok r) (:name (:value r)) (fail (:message r))))))
;=> ["Clover" "Luna" "Juno" "Juno"]

;;; Running total of the amounts of the first ten visits (by number).
(let [r (tool/call {:server "visits" :tool "list_visits" :args {}})]
  (if (:ok r)
    (->> (:visits (:value r))
         (sort-by :number)
         (take 10)
         (map :amount)
         (reductions +)
         vec)
    (fail (:message r))))
;=> [155 290 500 545 665 815 880 1005 1185 1255]

;;; The date of the latest visit of each of the first three pets (ids 1, 2, 3): a map id -> date or nil.
(let [r (tool/call {:server "visits" :tool "list_visits" :args {}})]
  (if (:ok r)
    (let [by-pet (group-by :pet_id (:visits (:value r)))]
      (into {} (for [id [1 2 3]]
                 [id (last (sort (map :date (get by-pet id))))])))
    (fail (:message r))))
;=> {1 "2026-10-15" 2 "2026-10-10" 3 "2026-10-08"}

;;; Words in the reasons of visits: the ten most frequent words (lower case), with counts, most frequent first, ties by alphabet.
(let [r (tool/call {:server "visits" :tool "list_visits" :args {}})]
  (if (:ok r)
    (->> (:visits (:value r))
         (mapcat #(re-seq #"[\p{L}\p{N}'-]+" (str/lower-case (:reason %))))
         frequencies
         (sort-by (fn [[w n]] [(- n) w]))
         (take 10)
         vec)
    (fail (:message r))))
;=> [["a" 194] ["after" 194] ["limping" 194] ["walk" 194] ["appetite" 193] ["days" 193] ["for" 193] ["lost" 193] ["two" 193] ["vaccination" 177]]

;;; The visit with the largest amount of each vet: a map vet -> {:number :amount}.
(let [r (tool/call {:server "visits" :tool "list_visits" :args {}})]
  (if (:ok r)
    (->> (:visits (:value r))
         (group-by :vet)
         (map (fn [[vet vs]]
                (let [v (apply max-key :amount vs)]
                  [vet {:number (:number v) :amount (:amount v)}])))
         (into {}))
    (fail (:message r))))
;=> {"Dr. Hopper" {:amount 220 :number 850} "Dr. Liskov" {:amount 220 :number 817} "Dr. Naur" {:amount 220 :number 718}}

;;; The days between the first and the last visit (by date).
(let [r (tool/call {:server "visits" :tool "list_visits" :args {}})]
  (if (:ok r)
    (let [dates (sort (map :date (:visits (:value r))))]
      (.between java.time.temporal.ChronoUnit/DAYS
                (java.time.LocalDate/parse (first dates))
                (java.time.LocalDate/parse (last dates))))
    (fail (:message r))))
;=> 298

;;; On which weekday are most visits? The weekday's name and the count.
(let [r (tool/call {:server "visits" :tool "list_visits" :args {}})]
  (if (:ok r)
    (->> (:visits (:value r))
         (map #(str/capitalize (str (.getDayOfWeek (java.time.LocalDate/parse (:date %))))))
         frequencies
         (apply max-key val))
    (fail (:message r))))
;=> ["Monday" 142]

;;; Bucket pets by weight: "<5", "5-15", ">15" (5 and 15 belong to the middle one), with counts.
(let [r (tool/call {:server "petstore" :tool "list-pets" :args {}})]
  (if (:ok r)
    (->> (:value r)
         (keep :weight_kg)
         (map #(cond (< % 5) "<5" (<= % 15) "5-15" :else ">15"))
         frequencies
         (merge {"<5" 0 "5-15" 0 ">15" 0}))
    (fail (:message r))))
;=> {"5-15" 65 "<5" 19 ">15" 156}

;;; Text report: one line per species, "species: n pets, avg weight x.x kg", sorted by species, as one string.
(let [r (tool/call {:server "petstore" :tool "list-pets" :args {}})]
  (if (:ok r)
    (->> (:value r)
         (group-by :species)
         (sort-by key)
         (map (fn [[species pets]]
                (let [ws (keep :weight_kg pets)]
                  (if (seq ws)
                    (format "%s: %d pets, avg weight %.1f kg"
                            species (count pets) (/ (reduce + ws) (double (count ws))))
                    (format "%s: %d pets, avg weight unknown" species (count pets))))))
         (str/join "\n"))
    (fail (:message r))))
;=> "cat: 72 pets, avg weight 20.3 kg\ndog: 54 pets, avg weight 21.9 kg\nparrot: 53 pets, avg weight 22.0 kg\nrabbit: 61 pets, avg weight 19.6 kg"

;;; Rows of data/orders ([{"id" 1 "total" "12.50"} …] in the context) with a total above 10: the sum as a number.
;;: {"orders":[{"id":1,"total":"12.50"},{"id":2,"total":"9.99"},{"id":3,"total":"100.00"}]}
(->> data/orders
     (map #(parse-double (:total %)))
     (filter #(> % 10))
     (reduce +))
;=> 112.5

;;; Parse the context's text data/csv ("name,qty\napple,3\npear,x\nfig,7") into maps and sum qty, counting what is not a number as 0.
;;: {"csv":"name,qty\napple,3\npear,x\nfig,7"}
(let [[header & rows] (map #(str/split % #",") (str/split-lines data/csv))
      maps (map #(zipmap (map keyword header) %) rows)]
  (reduce + (map #(or (parse-long (:qty %)) 0) maps)))
;=> 10

;;; Owners whose name starts with a vowel and how much they have paid altogether, sorted by name.
(defn call! [server tool args]
  (let [r (tool/call {:server server :tool tool :args args})]
    (if (:ok r) (:value r) (fail (:message r)))))

(let [pets (call! "petstore" "list-pets" {})
      owner-of (into {} (map (juxt :id :owner) pets))
      paid (reduce (fn [m {:keys [pet_id amount]}]
                     (update m (owner-of pet_id) (fnil + 0) amount))
                   {}
                   (filter :paid (:visits (call! "visits" "list_visits" {}))))]
  (->> (map :owner pets)
       distinct
       (filter #(re-find #"(?i)^[aeiou]" %))
       sort
       (mapv (fn [o] [o (get paid o 0)]))))
;=> [["Ada" 9535] ["Edsger" 9590]]

;;; Are there visits of pets that are not in the pet list? Their numbers, or an empty list.
(defn call! [server tool args]
  (let [r (tool/call {:server server :tool tool :args args})]
    (if (:ok r) (:value r) (fail (:message r)))))

(let [ids (set (map :id (call! "petstore" "list-pets" {})))]
  (->> (:visits (call! "visits" "list_visits" {}))
       (remove #(contains? ids (:pet_id %)))
       (mapv :number)))
;=> []

;;; Unpaid sum by species and vet: a nested map {species {vet sum}}.
(defn call! [server tool args]
  (let [r (tool/call {:server server :tool tool :args args})]
    (if (:ok r) (:value r) (fail (:message r)))))

(let [species-of (into {} (map (juxt :id :species)) (call! "petstore" "list-pets" {}))]
  (reduce (fn [m v]
            (update-in m [(get species-of (:pet_id v) "unknown") (:vet v)]
                       (fnil + 0) (:amount v)))
          {}
          (:visits (call! "visits" "list_visits" {:unpaid_only true}))))
;=> {"cat" {"Dr. Hopper" 1100 "Dr. Liskov" 1445 "Dr. Naur" 1370} "dog" {"Dr. Hopper" 1995 "Dr. Liskov" 1780 "Dr. Naur" 1060} "parrot" {"Dr. Hopper" 975 "Dr. Liskov" 1190 "Dr. Naur" 955} "rabbit" {"Dr. Hopper" 1325 "Dr. Liskov" 860 "Dr. Naur" 1420}}
