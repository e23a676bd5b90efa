;; Runs the cases of the neighbouring folders in real Clojure and writes its answers into the files.
;;
;;   clojure regenerate.clj */*.cases
;;
;; A case is a program; its further lines are indented. The line after it is the answer of Clojure, `;=> value` or
;; `;=! ExceptionClass`, written by this script. If PTC-Lisp differs, a line `;ptc value ; title` follows, with the title
;; of an entry of DIVERGENCES.md (`;ptc !kind ; title` for a fault). The script keeps this line.
(ns regenerate
  (:require [clojure.string :as str] [clojure.set] [clojure.walk]))

(defn model
  "A value in PTC-Lisp's model: one kind of sequence, characters are strings, no ratios."
  [v]
  (cond
    (map? v) (into {} (map (fn [[k x]] [(model k) (model x)])) v)
    (set? v) (into #{} (map model) v)
    (sequential? v) (mapv model v)
    (char? v) (str v)
    (ratio? v) (double v)
    (instance? clojure.lang.BigInt v) (bigint v)
    :else v))

(defn text [v]
  (-> (pr-str (model v)) (str/replace #"(\d)[NM](?=[\s,\]})]|$)" "$1")))

(defn fresh-ns []
  (let [n (create-ns (gensym "case"))]
    (binding [*ns* n]
      (refer-clojure)
      (require '[clojure.string :as str] '[clojure.set :as set] '[clojure.walk :as walk])
      (import '[java.time DayOfWeek Duration Instant LocalDate LocalDateTime Month OffsetDateTime Period ZoneId ZoneOffset
                           ZonedDateTime]
              '[java.time.format DateTimeFormatter]
              '[java.time.temporal ChronoUnit]))
    n))

(defn answer [program]
  (let [n (fresh-ns)
        work (future
               (binding [*ns* n *out* (java.io.StringWriter.)]
                 (try
                   (str ";=> " (text (reduce (fn [_ form] (eval form)) nil (read-string (str "[" program "\n]")))))
                   (catch Throwable t
                     (str ";=! " (.getSimpleName (class (or (.getCause t) t))))))))
        out (deref work 3000 ";=! Timeout")]
    (future-cancel work)
    (remove-ns (ns-name n))
    out))

(defn answered
  "The lines of a file with Clojure's answer below each program."
  [lines]
  (loop [[line & more] lines, out []]
    (cond
      (nil? line) out
      (or (str/blank? line) (str/starts-with? line ";")) (recur more (conj out line))
      :else (let [[rest-of-it more] (split-with #(str/starts-with? % " ") more)
                  program (cons line rest-of-it)]
              (recur more (conj (into out program) (answer (str/join "\n" program))))))))

(doseq [path *command-line-args*]
  (let [lines (str/split-lines (slurp path))
        kept (remove #(or (str/starts-with? % ";=>") (str/starts-with? % ";=!")) lines)]
    (spit path (str (str/join "\n" (answered kept)) "\n"))))
(System/exit 0)
