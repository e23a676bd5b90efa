;; Errors of the reader.

(+ 1 2
;=! parse_error 1:1 '(' opened at 1:1 is never closed

(let [x 1) x)
;=! parse_error 1:10 ')' cannot close '[' opened at 1:6

(+ 1 2))
;=! parse_error 1:8 closes nothing

"abc
;=! parse_error 1:1 never closed

{:a 1 :b}
;=! parse_error 1:1 a map needs a value for every key

:a/b
;=! parse_error 1:1 write :a-b

:a.b
;=! parse_error 1:1 a keyword cannot contain '.'

1/2
;=! parse_error 1:1 there are no ratios

1.5M
;=! parse_error 1:1 numbers take no suffix

@x
;=! parse_error 1:1 there are no atoms

#(map #(inc %) %)
;=! parse_error 1:7 #() cannot be nested in another

"a\q"
;=! parse_error 1:3 is not an escape

\abc
;=! parse_error 1:1 is not a character

(str "é
é" 1 (
;=! parse_error 2:6 opened at 2:6

#"("
;=! parse_error 1:1 pattern

;; Errors of special forms.

(if)
;=! invalid_arity 1:2 expected (if test then else?)

(let [x] x)
;=! invalid_form 1:6 a value for every name

(let x x)
;=! invalid_form 1:6 found a name

(fn x)
;=! invalid_form 1:1 a vector of parameters

(recur 1)
;=! invalid_form 1:1 recur

(loop [x 1] (+ 1 (recur 2)))
;=! invalid_form 1:18 recur

(loop [x 1] (recur 1 2))
;=! invalid_arity 1:13 recur got 2 values for a loop that binds 1

(fn [a &] a)
;=! invalid_form 1:5 exactly one name

(let [[1] [2]] 1)
;=! unsupported_pattern 1:8 found a number

(let [{:foo x} {}] x)
;=! unsupported_pattern 1:8 :foo is not supported

(def 5 1)
;=! invalid_form 1:6 needs a name

(defn if [x] x)
;=! invalid_form 1:7 special form

(cond 1)
;=! invalid_form 1:1 a result for every test

(case 1 1 :a 1 :b)
;=! invalid_form 1:14 tests 1 twice

(map if [1])
;=! invalid_form 1:6 special form

()
;=! invalid_form 1:1 calls nothing

(fn [x] %1)
;=! invalid_placeholder 1:9

#(+ %x 1)
;=! invalid_placeholder 1:5

;; Unknown names.

(filterr odd? [1])
;=! unbound_var 1:2 did you mean filter?

(let [total 1] (+ totl 1))
;=! unbound_var 1:19 did you mean total?

(clojure.string/jion "," [1])
;=! unbound_var 1:2 did you mean clojure.string/join?

(foo/bar 1)
;=! unbound_var 1:2 there is no namespace 'foo'

(tool/search {})
;=! unknown_tool 1:2 (tool/call

(try 1 (catch Exception e 2))
;=! unbound_var 1:2 cannot be caught

(atom 1)
;=! unbound_var 1:2 no mutable state

(.getClass 1)
;=! unsupported_method 1:2 no objects to ask

(.foo 1)
;=! unsupported_method 1:2 supported methods:

data
;=! unbound_var 1:1 data/name

(later) (defn later [] 1)
;=! unbound_var 1:1 used before it is defined

;; Faults at run time.

(+ 1
   nil)
;=! type_error 1:1 found nil

(defn f [x]
  (inc x))
(f "a")
;=! type_error 2:3 found a string

(defn f [x] x) (f 1 2)
;=! arity_error 1:16 f takes [x], got 2 arguments

(inc 1 2)
;=! arity_error 1:1 inc takes 1 argument, got 2

(map)
;=! arity_error 1:1 map takes at least 1 argument, got 0

(1 2)
;=! not_callable 1:1 data is written [1 2]

(let [f nil] (f 1))
;=! not_callable 1:14 found nil

("a" {})
;=! not_callable 1:1 (get m "key")

(let [[a] 5] a)
;=! destructure_error 1:8 found an integer 5

(let [{:keys [a]} [1]] a)
;=! destructure_error

(quot 1 0)
;=! arithmetic_error 1:1 division by zero

(apply + 1 2)
;=! type_error 1:1

(for [x 5] x)
;=! type_error 1:9 found an integer 5
