//! Predicates on one value. They return false instead of raising a fault for values of other kinds.

use super::arithmetic::is_even;
use super::row::rows;
use crate::Value;
use crate::args::{at, expected};
use crate::machine::{Machine, Raised};
use crate::number;
use crate::value::Kind;

macro_rules! predicates {
    ($namespace:literal: $($name:literal $function:ident $doc:literal ($yes:literal $(, $no:literal)?) $test:expr;)*) => {
        rows! { $namespace: $($name ["[x]"] $function, $doc { $yes => "true" $(, $no => "false")? };)* }
        $(fn $function(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
            let test: fn(&Value) -> bool = $test;
            Ok(Value::bool(test(at(args, 0))))
        })*
    };
}

predicates! { "clojure.core":
    "nil?" is_nil "Whether it is nil." ("(nil? nil)", "(nil? 0)") Value::is_nil;
    "some?" is_some "Whether it is not nil." ("(some? false)", "(some? nil)") |v| !v.is_nil();
    "any?" is_any "Always true." ("(any? nil)") |_| true;
    "true?" is_true "Whether it is true." ("(true? true)", "(true? 1)") |v| matches!(v, Value::True);
    "false?" is_false "Whether it is false." ("(false? false)", "(false? nil)") |v| matches!(v, Value::False);
    "boolean?" is_boolean "Whether it is true or false." ("(boolean? false)", "(boolean? nil)") |v| v.kind() == Kind::Bool;
    "number?" is_number "Whether it is a number." ("(number? 1.5)", "(number? \"1\")") is_number_value;
    "int?" is_int "Whether it is an integer." ("(int? 1)", "(int? 1.0)") is_integer_value;
    "integer?" is_integer "Whether it is an integer." ("(integer? 1)", "(integer? 1.0)") is_integer_value;
    "rational?" is_rational "Whether it is an integer." ("(rational? 1)", "(rational? 0.5)") is_integer_value;
    "float?" is_float "Whether it is a double." ("(float? 1.0)", "(float? 1)") |v| v.kind() == Kind::Double;
    "double?" is_double "Whether it is a double." ("(double? 1.0)", "(double? 1)") |v| v.kind() == Kind::Double;
    "decimal?" is_decimal "Always false: there are no decimals." ("(not (decimal? 1.0))") |_| false;
    "ratio?" is_ratio "Always false: there are no ratios." ("(not (ratio? 0.5))") |_| false;
    "string?" is_string "Whether it is a string." ("(string? \"a\")", "(string? :a)") |v| v.kind() == Kind::String;
    "char?" is_char "Whether it is a string of one character." ("(char? \\a)", "(char? \"ab\")") |v| matches!(v, Value::Str(text) if text.graphemes().take(2).count() == 1);
    "keyword?" is_keyword "Whether it is a keyword." ("(keyword? :a)", "(keyword? \"a\")") |v| v.kind() == Kind::Keyword;
    "simple-keyword?" is_simple_keyword "Whether it is a keyword." ("(simple-keyword? :a)", "(simple-keyword? \"a\")") |v| v.kind() == Kind::Keyword;
    "symbol?" is_symbol "Whether it is a quoted symbol." ("(symbol? 'a)", "(symbol? :a)") |v| v.kind() == Kind::Symbol;
    "ident?" is_ident "Whether it is a keyword or symbol." ("(ident? :a)", "(ident? \"a\")") |v| matches!(v.kind(), Kind::Keyword | Kind::Symbol);
    "vector?" is_vector "Whether it is a vector." ("(vector? [1])", "(vector? #{1})") |v| v.kind() == Kind::Vector;
    "map?" is_map "Whether it is a map." ("(map? {})", "(map? [])") |v| v.kind() == Kind::Map;
    "set?" is_set "Whether it is a set." ("(set? #{})", "(set? {})") |v| v.kind() == Kind::Set;
    "coll?" is_coll "Whether it is a vector, map or set." ("(coll? [])", "(coll? \"a\")") |v| matches!(v.kind(), Kind::Vector | Kind::Map | Kind::Set | Kind::InfiniteSeq);
    "sequential?" is_sequential "Whether it is a vector." ("(sequential? [])", "(sequential? {})") |v| matches!(v.kind(), Kind::Vector | Kind::InfiniteSeq);
    "seq?" is_seq "Whether it is a vector. Every finite sequence is one." ("(seq? (map inc [1]))", "(seq? {})") |v| matches!(v.kind(), Kind::Vector | Kind::InfiniteSeq);
    "list?" is_list "Whether it is a vector. Every finite sequence is one." ("(list? (list 1))", "(list? {})") |v| v.kind() == Kind::Vector;
    "associative?" is_associative "Whether assoc takes it: a vector or map." ("(associative? {})", "(associative? #{})") |v| matches!(v.kind(), Kind::Vector | Kind::Map);
    "counted?" is_counted "Whether it knows its number of items." ("(counted? [])", "(counted? 1)") |v| matches!(v.kind(), Kind::Vector | Kind::Map | Kind::Set | Kind::String);
    "indexed?" is_indexed "Whether nth takes it: a vector or string." ("(indexed? [])", "(indexed? {})") |v| matches!(v.kind(), Kind::Vector | Kind::String);
    "reversible?" is_reversible "Whether it has an order to reverse: a vector or string." ("(reversible? [])", "(reversible? {})") |v| matches!(v.kind(), Kind::Vector | Kind::String);
    "sorted?" is_sorted "Always false: no collection has an order of its own to choose." ("(not (sorted? {}))") |_| false;
    "seqable?" is_seqable "Whether seq takes it: a collection, string or nil." ("(seqable? nil)", "(seqable? 1)") |v| v.len().is_some() || v.kind() == Kind::InfiniteSeq;
    "map-entry?" is_map_entry "Always false: entries are vectors." ("(not (map-entry? [1 2]))") |_| false;
    "fn?" is_fn "Whether it is a function." ("(fn? inc)", "(fn? :a)") |v| v.kind() == Kind::Function;
    "ifn?" is_ifn "Whether it can be called: a function, keyword, map, set or var." ("(ifn? :a)", "(ifn? 1)") |v| matches!(v.kind(), Kind::Function | Kind::Keyword | Kind::Map | Kind::Set | Kind::Var);
    "var?" is_var "Whether it is a var." ("(not (var? 1))") |v| v.kind() == Kind::Var;
    "zero?" is_zero "Whether it is the number 0." ("(zero? 0.0)", "(zero? nil)") |v| sign(v) == Some(0);
    "pos?" is_pos "Whether it is a number above 0." ("(pos? 1)", "(pos? 0)") |v| sign(v) == Some(1);
    "neg?" is_neg "Whether it is a number below 0." ("(neg? -1)", "(neg? nil)") |v| sign(v) == Some(-1);
    "pos-int?" is_pos_int "Whether it is an integer above 0." ("(pos-int? 1)", "(pos-int? 0)") |v| is_integer_value(v) && sign(v) == Some(1);
    "neg-int?" is_neg_int "Whether it is an integer below 0." ("(neg-int? -1)", "(neg-int? 1)") |v| is_integer_value(v) && sign(v) == Some(-1);
    "nat-int?" is_nat_int "Whether it is an integer of 0 or more." ("(nat-int? 0)", "(nat-int? -1)") |v| is_integer_value(v) && sign(v) != Some(-1);
    "infinite?" is_infinite "Whether it is an infinite number." ("(infinite? ##Inf)", "(infinite? 1)") |v| v.as_f64().is_some_and(f64::is_infinite);
    "NaN?" is_not_a_number "Whether it is NaN." ("(NaN? ##NaN)", "(NaN? 1)") super::arithmetic::is_nan;
    "regex?" is_regex "Whether it is a regular expression." ("(regex? #\"a\")", "(regex? \"a\")") |v| v.kind() == Kind::Regex;
}

fn is_number_value(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::Double(_) | Value::BigInt(_))
}

fn is_integer_value(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::BigInt(_))
}

/// Returns -1, 0 or 1. `None` for NaN and for values that are not numbers.
fn sign(value: &Value) -> Option<i8> {
    let comparable = is_number_value(value) && !super::arithmetic::is_nan(value);
    comparable.then(|| number::compare(value, &Value::Int(0)) as i8)
}

pub(super) mod kinds {
    use super::{even, is_empty, odd, rows, type_of};
    rows! { "clojure.core":
        "even?" ["[n]"] even, "Whether it is an even integer; false for everything that is not an integer." { "(even? 4)" => "true", "(even? nil)" => "false" };
        "odd?" ["[n]"] odd, "Whether it is an odd integer; false for everything that is not an integer." { "(odd? 3)" => "true", "(odd? nil)" => "false" };
        "empty?" ["[coll]"] is_empty, "Whether a collection or string has no items, or is nil." { "(empty? [])" => "true", "(empty? [1])" => "false" };
        "type" ["[x]"] type_of, "The kind of a value as a keyword: :boolean :number :string :keyword :symbol :vector :map :set :regex :var :function :time :endless, or nil." { "(type 1)" => ":number", "(type [])" => ":vector", "(type nil)" => "nil" };
    }
}

fn is_empty(m: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let empty = match at(args, 0) {
        // The length would require counting graphemes.
        Value::Str(text) => Some(text.as_str().is_empty()),
        Value::InfiniteSeq(_) => Some(false),
        other => other.len().map(|len| len == 0),
    };
    match empty {
        Some(empty) => Ok(Value::bool(empty)),
        None => Err(expected(m, "empty?", "a collection", 0, at(args, 0))),
    }
}

/// Whether the argument is even. False for values that are not integral numbers.
fn even(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(is_even(at(args, 0)) == Some(true)))
}

fn odd(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    Ok(Value::bool(is_even(at(args, 0)) == Some(false)))
}

fn type_of(_: &mut Machine, args: &mut [Value]) -> Result<Value, Raised> {
    let name = match at(args, 0).kind() {
        Kind::Nil => return Ok(Value::Nil),
        Kind::Int | Kind::BigInt | Kind::Double => "number",
        kind => kind.name(),
    };
    Ok(Value::keyword(name))
}
