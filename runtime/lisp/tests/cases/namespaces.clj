;; Namespaces and their aliases.

(ns my.report "doc" (:require [clojure.string :as s] [clojure.set :refer [union]]) (:import [java.time LocalDate Duration] java.util.Date))
(s/upper-case (str (union #{"a"} #{})))
;=> "#{\"A\"}"

(require '[clojure.string :as text :refer [reverse]] 'clojure.walk)
(text/join "," [(reverse "ab") (clojure.core/reverse [1 2])])
;=> "ba,[2 1]"

(require '[clojure.java.io :as io])
;=! invalid_form 1:11 there is no namespace 'clojure.java.io'

(require '[clojure.string :refer [nope]])
;=! invalid_form 1:35 clojure.string has no such name

(import java.io.File)
;=! invalid_form 1:9 there is no class java.io.File

(require '[clojure.string :as t])
(t/nope "a")
;=! unbound_var 2:2 nope

[(clojure.core/inc 1) (core/inc 1) (string/trim " a ") (str/trim " a ") (walk/keywordize-keys {"a" 1})]
;=> [2 2 "a" "a" {:a 1}]

(Math/nope 1)
;=! unbound_var 1:2 nope is not available in Math

(defn f [x] {:pre [(pos? x)]} x)
;=! invalid_form 1:13 assert

(let [{:syms [a]} {'a 1}] a)
;=> 1

(lenght [1])
;=! unbound_var 1:2 nothing is bound to 'lenght'

(with-out-str (println 1))
;=! unbound_var 1:2 println-str

(str/uper-case "a")
;=! unbound_var 1:2 did you mean str/upper-case?

(.toUpercase "a")
;=! unsupported_method 1:2 did you mean .toUpperCase?

(assert (= 1 2) "numbers differ")
;=! runtime_error 1:1 numbers differ

(condp some [1 2 3] #{0 9} :>> inc #{2} :>> dec)
;=> 1

(even? 1.5)
;=> false

(subvec [1 2 3] 2 1)
;=! runtime_error 1:1 before the start

(format "%1000000000d" 1)
;=! type_error 1:1 at most 10000
