;; Measures NAME.clj of a folder in JVM Clojure: read, compile and evaluate from text, the shortest of as many runs as fit into
;; the given seconds. Prints name, microseconds and answer, with tabs between.
(require '[clojure.edn :as edn] 'clojure.string)
(def data nil)

(defn input [dir name]
  (case name
    "d" #(edn/read-string (slurp (str dir "/d.edn")))
    "f" (let [text (slurp (str dir "/f.txt"))] (fn [] text))
    (fn [] nil)))

(let [[dir seconds] *command-line-args*]
  (doseq [name ["a" "b" "c" "d" "e" "f" "g" "h"]]
    (let [source (slurp (str dir "/" name ".clj"))
          input (input dir name)
          once (fn [] (def data (input)) (load-string source))
          answer (once)
          ends (+ (System/nanoTime) (long (* 1e9 (Double/parseDouble seconds))))]
      (loop [best Long/MAX_VALUE runs 0]
        (if (and (> (System/nanoTime) ends) (> runs 3))
          (println (str name "\t" (/ best 1000.0) "\t" answer))
          (let [started (System/nanoTime)]
            (once)
            (recur (min best (- (System/nanoTime) started)) (inc runs))))))))
