//! The table of special forms.

use crate::packed_docs::packed_docs;

use super::{Expand, Special, binding, control, define, iteration, namespaces, threading};
use crate::host_functions::task;

macro_rules! special {
    (reserved $($row:tt)*) => {
        Special { is_reserved: true, ..special!($($row)*) }
    };
    ($name:literal, $min:literal .. $max:expr, [$($args:literal),*], $doc:literal, [$($example:tt),*], $expand:expr) => {
        Special {
            name: $name,
            min: $min,
            max: $max,
            notes: packed_docs!($doc, [$($args),*], [$($example),*]),
            is_reserved: false,
            expand: $expand,
        }
    };
}

/// No maximum number of parts.
const ANY: Option<usize> = None;

pub(super) static SPECIALS: &[Special] = &[
    special!(
        reserved "if",
        2..Some(3),
        ["test then else?"],
        "Evaluates then if test is truthy, else the other branch.",
        [("(if (> 5 3) \"bigger\" \"smaller\")", "\"bigger\""), ("(if nil 1)", "nil")],
        Expand::Form(control::if_)
    ),
    special!(
        "if-not",
        2..Some(3),
        ["test then else?"],
        "Evaluates then if test is falsy, else the other branch.",
        [("(if-not true \"yes\" \"no\")", "\"no\"")],
        Expand::Form(control::if_not)
    ),
    special!(
        "when",
        1..ANY,
        ["test body*"],
        "Evaluates the body if test is truthy, else gives nil.",
        [("(when true \"yes\")", "\"yes\"")],
        Expand::Form(control::when)
    ),
    special!(
        "when-not",
        1..ANY,
        ["test body*"],
        "Evaluates the body if test is falsy, else gives nil.",
        [("(when-not false \"yes\")", "\"yes\"")],
        Expand::Form(control::when_not)
    ),
    special!(
        "if-let",
        2..Some(3),
        ["[name value] then else?"],
        "Binds name to value and evaluates then if it is truthy, else the other branch.",
        [("(if-let [x nil] \"yes\" \"no\")", "\"no\"")],
        Expand::Form(control::if_let)
    ),
    special!(
        "when-let",
        1..ANY,
        ["[name value] body*"],
        "Binds name to value and evaluates the body if it is truthy.",
        [("(when-let [x 3] (* x 2))", "6")],
        Expand::Form(control::when_let)
    ),
    special!(
        "if-some",
        2..Some(3),
        ["[name value] then else?"],
        "Binds name to value and evaluates then if it is not nil, else the other branch.",
        [("(if-some [x false] x :nope)", "false")],
        Expand::Form(control::if_some)
    ),
    special!(
        "when-some",
        1..ANY,
        ["[name value] body*"],
        "Binds name to value and evaluates the body if it is not nil.",
        [("(when-some [x 42] (inc x))", "43")],
        Expand::Form(control::when_some)
    ),
    special!(
        "when-first",
        1..ANY,
        ["[name coll] body*"],
        "Binds name to the first item of coll and evaluates the body if there is one.",
        [("(when-first [x [10]] (* x 2))", "20"), ("(when-first [x []] x)", "nil")],
        Expand::Form(control::when_first)
    ),
    special!(
        "cond",
        0..ANY,
        ["test result …"],
        "Gives the result after the first truthy test, else nil.",
        [("(cond (< 5 3) \"yes\" :else \"no\")", "\"no\"")],
        Expand::Form(control::cond)
    ),
    special!(
        "condp",
        2..ANY,
        ["pred value test result … default?"],
        "Gives the result after the first test for which (pred test value) is truthy; after test :>> f calls f with what pred gave.",
        [("(condp some [1 2 3] #{0 9} :>> inc #{2} :>> dec)", "1"), ("(condp > 5 10 \"big\" 3 \"small\")", "\"big\"")],
        Expand::Form(control::condp)
    ),
    special!(
        "case",
        1..ANY,
        ["value constant result … default?"],
        "Gives the result after the constant that equals value; (a b) lists several.",
        [("(case :c (:a :b) 1 (:c :d) 2)", "2"), ("(case :z :a 1 99)", "99")],
        Expand::Form(control::case)
    ),
    special!(
        reserved "do",
        0..ANY,
        ["form*"],
        "Evaluates the forms in order and gives the value of the last.",
        [("(do 1 2 3)", "3")],
        Expand::Form(control::do_)
    ),
    special!(
        "and",
        0..ANY,
        ["form*"],
        "Gives the first falsy value, else the last.",
        [("(and nil \"x\")", "nil"), ("(and 1 2)", "2")],
        Expand::Form(control::and)
    ),
    special!(
        "or",
        0..ANY,
        ["form*"],
        "Gives the first truthy value, else the last.",
        [("(or nil false \"x\")", "\"x\"")],
        Expand::Form(control::or)
    ),
    special!(
        "task",
        2..Some(2),
        ["id form"],
        "Evaluates the form; where the run has a journal, only if it has no value of this id yet.",
        [("(task \"sum\" (+ 1 2))", "3")],
        Expand::Form(task::analyse)
    ),
    special!(
        "comment",
        0..ANY,
        ["form*"],
        "Evaluates nothing and gives nil.",
        [("(comment (/ 1 0))", "nil")],
        Expand::Form(control::comment)
    ),
    special!(
        reserved "quote",
        1..Some(1),
        ["form"],
        "Gives the form as data.",
        [("(quote [a 1])", "[a 1]")],
        Expand::Form(control::quote)
    ),
    special!(
        "let",
        1..ANY,
        ["[name value …] body*"],
        "Binds names, which may be patterns, for the body.",
        [("(let [x 1 y (+ x 1)] y)", "2"), ("(let [[a & more] [1 2 3]] more)", "[2 3]")],
        Expand::Form(binding::let_)
    ),
    special!(
        "loop",
        1..ANY,
        ["[name value …] body*"],
        "Like let; recur in tail position starts it over with new values.",
        [("(loop [i 0 acc 0] (if (< i 5) (recur (inc i) (+ acc i)) acc))", "10")],
        Expand::Form(binding::loop_)
    ),
    special!(
        reserved "recur",
        0..ANY,
        ["value*"],
        "Starts the innermost loop or function over with new values.",
        [("((fn [n acc] (if (> n 0) (recur (dec n) (* acc n)) acc)) 5 1)", "120")],
        Expand::Form(binding::recur)
    ),
    special!(
        "fn",
        1..ANY,
        ["name? [params] body*", "name? ([params] body*) …"],
        "Makes a function.",
        [("((fn [x] (* x 2)) 4)", "8"), ("((fn ([a] 1) ([a b] 2)) 0 0)", "2")],
        Expand::Form(binding::fn_)
    ),
    special!(
        "letfn",
        1..ANY,
        ["[(name [params] body*) …] body*"],
        "Binds functions that can call each other.",
        [("(letfn [(f [n] (if (= n 0) :even (g (dec n)))) (g [n] (if (= n 0) :odd (f (dec n))))] (f 3))", ":odd")],
        Expand::Form(binding::letfn)
    ),
    special!(
        reserved "def",
        1..Some(3),
        ["name doc? value"],
        "Binds a name for the rest of the program and gives its var.",
        [("(def x 42)", "#'x"), ("(def a 1) (def b (+ a 1)) b", "2")],
        Expand::Form(define::def)
    ),
    special!(
        "defonce",
        2..Some(3),
        ["name doc? value"],
        "Like def, but leaves a bound name as it is.",
        [("(def x 1) (defonce x 2) x", "1")],
        Expand::Form(define::defonce)
    ),
    special!(
        "defn",
        2..ANY,
        ["name doc? [params] body*", "name doc? ([params] body*) …"],
        "Binds a name to a function.",
        [("(defn twice [x] (* x 2)) (twice 21)", "42")],
        Expand::Form(define::defn)
    ),
    special!(
        "defn-",
        2..ANY,
        ["name doc? [params] body*"],
        "The same as defn.",
        [("(defn- one [] 1) (one)", "1")],
        Expand::Form(define::defn)
    ),
    special!(
        "declare",
        0..ANY,
        ["name*"],
        "Says that names are defined later; functions may use later names without it.",
        [("(declare twice) (defn four [x] (twice (twice x))) (defn twice [x] (* x 2)) (four 1)", "4")],
        Expand::Form(namespaces::declare)
    ),
    special!(
        "ns",
        1..ANY,
        ["name (:require [namespace :as alias :refer [name*]]*) (:import class*)"],
        "Gives namespaces other names; nothing needs to be loaded, and definitions have no namespace.",
        [("(ns report (:require [clojure.string :as text])) (text/upper-case \"a\")", "\"A\"")],
        Expand::Form(namespaces::ns)
    ),
    special!(
        "require",
        0..ANY,
        ["'[namespace :as alias :refer [name*]]*"],
        "Gives namespaces other names; nothing needs to be loaded.",
        [("(require '[clojure.set :refer [union]]) (union #{1} #{2})", "#{1 2}")],
        Expand::Form(namespaces::require)
    ),
    special!(
        "import",
        0..ANY,
        ["class*", "(package class*)*"],
        "Checks that classes are there; they need no import.",
        [("(import java.time.LocalDate) (LocalDate/of 2024 1 1)", "\"2024-01-01\"")],
        Expand::Form(namespaces::import)
    ),
    special!(
        "->",
        1..ANY,
        ["value step*"],
        "Puts the value into each step in turn as its first argument.",
        [("(-> {:a 1} (assoc :b 2) :b)", "2")],
        Expand::Macro(threading::first)
    ),
    special!(
        "->>",
        1..ANY,
        ["value step*"],
        "Puts the value into each step in turn as its last argument.",
        [("(->> [1 2 3 4] (filter odd?) (map inc))", "[2 4]")],
        Expand::Macro(threading::last)
    ),
    special!(
        "as->",
        2..ANY,
        ["value name step*"],
        "Binds name to the value of each step in turn.",
        [("(as-> 1 x (+ x 1) (* x 2))", "4")],
        Expand::Form(threading::as_)
    ),
    special!(
        "some->",
        1..ANY,
        ["value step*"],
        "Like ->, but stops at the first nil.",
        [("(some-> {:a nil} :a inc)", "nil")],
        Expand::Form(threading::some_first)
    ),
    special!(
        "some->>",
        1..ANY,
        ["value step*"],
        "Like ->>, but stops at the first nil.",
        [("(some->> [1 2] (map inc))", "[2 3]")],
        Expand::Form(threading::some_last)
    ),
    special!(
        "cond->",
        1..ANY,
        ["value test step …"],
        "Threads the value as first argument through the steps whose test is truthy.",
        [("(cond-> 1 true inc false dec)", "2")],
        Expand::Form(threading::cond_first)
    ),
    special!(
        "cond->>",
        1..ANY,
        ["value test step …"],
        "Threads the value as last argument through the steps whose test is truthy.",
        [("(cond->> 10 true (- 5))", "-5")],
        Expand::Form(threading::cond_last)
    ),
    special!(
        "doto",
        1..ANY,
        ["value step*"],
        "Puts the value into each step as its first argument, for what the steps do, and gives the value itself.",
        [("(doto [1 2] (println))", "[1 2]")],
        Expand::Form(threading::doto)
    ),
    special!(
        "for",
        2..ANY,
        ["[name coll …] body+"],
        "The vector of what the body gives for every item; :when, :while and :let may follow a pair.",
        [("(for [x [1 2 3] :when (odd? x) y [:a :b]] [x y])", "[[1 :a] [1 :b] [3 :a] [3 :b]]")],
        Expand::Form(iteration::for_)
    ),
    special!(
        "doseq",
        1..ANY,
        ["[name coll …] body*"],
        "Evaluates the body for every item and gives nil; takes what for takes.",
        [("(doseq [x [1 2]] x)", "nil")],
        Expand::Form(iteration::doseq)
    ),
    special!(
        "dotimes",
        1..ANY,
        ["[name n] body*"],
        "Evaluates the body n times with name bound to 0, 1 and so on; gives nil.",
        [("(dotimes [i 3] i)", "nil")],
        Expand::Form(iteration::dotimes)
    ),
];
