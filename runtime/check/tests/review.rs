//! Programs with the findings of a review, and their cost.

use ptc_catalog::{Annotations, Catalog, McpStdio, Tool, Tools, Transport, Upstream};
use ptc_check::FindingKind;
use ptc_lisp::Program;

const fn tool(name: &'static str, definition: &'static str, read_only: Option<bool>) -> Tool {
    let annotations = Annotations { read_only, ..Annotations::NONE };
    Tool { name, definition, effects: annotations, annotations, ..Tool::EMPTY }
}

const ORDERS: &str = r##"{"outputSchema":{"type":"object","additionalProperties":false,"properties":{
    "orders":{"type":"array","items":{"$ref":"#/$defs/order"}},"total":{"type":"integer"},
    "next":{"anyOf":[{"type":"null"},{"type":"object","properties":{"cursor":{"type":"string"}},"additionalProperties":false}]},
    "extra":{"type":"object"},"any":{},
    "one":{"anyOf":[{"type":"object","properties":{"id":{}},"additionalProperties":false},{"type":"string"}]},
    "other":{"anyOf":[{"type":"string"},{"type":"object","properties":{"id":{}},"additionalProperties":false}]},
    "open":{"anyOf":[{"type":"object"},{"type":"object","properties":{"id":{}},"additionalProperties":false}]},
    "free":{"anyOf":[{"type":"object","properties":{"id":{}},"additionalProperties":false},{"type":"object"}]},
    "labels":{"type":"object","patternProperties":{"^x-":{}},"properties":{"x-b":{}},"additionalProperties":false}},
  "$defs":{"order":{"type":"object","properties":{"id":{"type":"integer"},"customer":{"type":"object","properties":{"name":{"type":"string"}}}}}}}}"##;

static CATALOG: Catalog = Catalog {
    digest: "",
    search_index: &[],
    upstreams: &[Upstream {
        name: "shop",
        description: "",
        transport: Transport::McpStdio(McpStdio::new("x")),
        tools: Tools::table(&[
            tool("cancel", "{}", Some(false)),
            tool("mystery", "{}", None),
            tool("orders", ORDERS, Some(true)),
        ]),
    }],
};

const TAKEN: &str = "taken: the result of shop/orders has no 'orders'; it has :ok and :value, or :reason and :message; what the tool gives is under :value";
const NONE_SUCH: &str = "path: the result of shop/orders has no 'orders'; it has :ok and :value, or :reason and :message; what the tool gives is under :value";

const ITEMS: &str = "taken: the items of the result of shop/orders are its keys with their values, which have no 'id'; it has :ok and :value, or :reason and :message; what the tool gives is under :value";
const SLIPPED: &str = "path: the items of the result of shop/orders are its keys with their values, which have no 'id'; it has :ok and :value, or :reason and :message; what the tool gives is under :value";
const TOTAL: &str = "taken: the result of shop/orders has no 'total'; it has :ok and :value, or :reason and :message; what the tool gives is under :value";
const UNCHECKED: &str = "unchecked: the value of shop/mystery is used without a look at :ok; when the call fails, :value is nil and :message says why";

/// Programs with the keys that they read in vain, marked `closed` if the schema excludes undeclared keys.
const MISSING_KEYS: &[(&str, &[&str])] = &[
    ("(:totl (:value $orders))", &["closed: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"]),
    (
        r#"(->> (tool/value {:server "shop" :tool "orders"}) :orders (map :idd))"#,
        &["open: shop/orders: what is at [:orders item] has no 'idd', by its output schema; did you mean 'id'?"],
    ),
    (
        "(let [{:keys [ok value]} $orders {:keys [totl]} value] (if ok totl 0))",
        &["closed: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    // Results are followed into and out of a function of the program, and reported once.
    (
        "(defn value-of [r] (if (:ok r) (:value r) (fail (:message r)))) [(:totl (value-of $orders)) (:total (value-of $orders))]",
        &["closed: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    (
        "(defn fetch [] (:value $orders)) (defn show [o] (:idd o)) (show (first (:orders (fetch)))) (show (first (:orders (fetch))))",
        &["open: shop/orders: what is at [:orders item] has no 'idd', by its output schema; did you mean 'id'?"],
    ),
    (
        "(defn again [r n] (if (zero? n) (:totl (:value r)) (again r (dec n)))) (again $orders 3)",
        &["closed: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    // An object is not the list that it contains.
    (
        "(map :id (:value $orders))",
        &[
            "open: shop/orders: the value is an object, whose entries [key value] have no 'id', by its output schema; its list is :orders",
        ],
    ),
    ("(map (fn [[k v]] (:id v)) (:value $orders))", &[]),
    ("(map :id (:orders (:value $orders)))", &[]),
    ("(defn value-of [r] (:value r)) (map :id (:orders (value-of $orders)))", &[]),
    // Functions that take keys, and copies with keywords for strings.
    (
        "(update (:value $orders) :totl inc)",
        &["open: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    (
        "(update-in (:value $orders) [:next :cursr] str)",
        &["open: shop/orders: what is at [:next] has no 'cursr', by its output schema; did you mean 'cursor'?"],
    ),
    (
        "(dissoc (:value $orders) :total :totl)",
        &["open: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    (
        "(contains? (:value $orders) :totl)",
        &["open: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    (
        "(find (:value $orders) :totl)",
        &["open: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    (
        "(clojure.set/rename-keys (:value $orders) {:totl :sum})",
        &["open: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    (
        "(:totl (clojure.walk/keywordize-keys (:value $orders)))",
        &["closed: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    ("(contains? $orders :ok)", &[]),
    ("(update (:value $orders) :total inc)", &[]),
    ("(:sum (assoc (:value $orders) :sum 1))", &[]),
    // `tool/all` gives the items of the list that the run finds in the answer, also if the tool is not paged.
    (r#"(map :id (tool/all {:server "shop" :tool "orders"}))"#, &[]),
    (
        r#"(map :idd (tool/all {:server "shop" :tool "orders"}))"#,
        &["open: shop/orders: what is at [:orders item] has no 'idd', by its output schema; did you mean 'id'?"],
    ),
    (r#"(map :id (tool/all {:server "shop" :tool "mystery"}))"#, &[]),
    // A name with two definitions may be either.
    ("(defn f [r] (:value r)) (defn f [r] {:totl 1}) (:totl (f $orders))", &[]),
    ("(:x (:value $mystery))", &[]),
];

#[test]
fn keys_that_output_schemas_do_not_have_are_found() {
    for (source, expected) in MISSING_KEYS {
        let missing = ptc_check::missing_keys(&compiled(source), &CATALOG, &ptc_lisp::Deadline::none());
        let found: Vec<String> = missing
            .into_iter()
            .map(|key| {
                let how = if key.is_closed { "closed" } else { "open" };
                format!("{how}: {}{}", key.finding.message, key.finding.hint.map_or_else(String::new, |hint| format!("; {hint}")))
            })
            .collect();
        assert_eq!(found, *expected, "{source}");
    }
}

/// Programs, in which `$t` is a call of the tool t, with their findings.
const FINDINGS: &[(&str, &[&str])] = &[
    (r#"(map :id (:orders (tool/value {:server "shop" :tool "orders"})))"#, &[]),
    (
        r#"(:totl (tool/value {:server "shop" :tool "orders"}))"#,
        &["path: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    ("(let [r $orders] (if (:ok r) (:total (:value r)) (:message r)))", &[]),
    ("(let [r $orders] (when (:ok r) (map :id (:orders (:value r)))))", &[]),
    (
        "(let [r $orders] (when (:ok r) (:totl (:value r))))",
        &["path: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    (
        "(let [r $orders] (when (:ok r) (get-in r [:value :sum])))",
        &[
            "path: shop/orders: the value has no 'sum', by its output schema; its keys: any, extra, free, labels, next, one, open, orders, other, total",
        ],
    ),
    (
        "(let [r $orders] (when (:ok r) (-> r :value :orders :id)))",
        &[
            "path: shop/orders: what is at [:orders] is an array, which has no 'id', by its output schema; take an item first, or map over it",
        ],
    ),
    (
        "(let [r $orders] (when (:ok r) (->> r :value :orders (map (fn [o] (get-in o [:customer :nam]))))))",
        &["path: shop/orders: what is at [:orders item :customer] has no 'nam', by its output schema; did you mean 'name'?"],
    ),
    (
        "(let [{:keys [ok value]} $orders] (when ok (for [o (:orders value)] (:idd o))))",
        &["path: shop/orders: what is at [:orders item] has no 'idd', by its output schema; did you mean 'id'?"],
    ),
    (
        "(let [r $orders] (when (:ok r) (get-in r [:value :next :cursr])))",
        &["path: shop/orders: what is at [:next] has no 'cursr', by its output schema; did you mean 'cursor'?"],
    ),
    (
        "(let [r $orders] (when (:ok r) (get-in r [:value :total :cents])))",
        &["path: shop/orders: what is at [:total] is an integer, which has no 'cents', by its output schema; "],
    ),
    // If a value may have one of two types, the one with keys is checked, in either order.
    (
        "(let [r $orders] (when (:ok r) (get-in r [:value :one :idd])))",
        &["path: shop/orders: what is at [:one] has no 'idd', by its output schema; did you mean 'id'?"],
    ),
    (
        "(let [r $orders] (when (:ok r) (get-in r [:value :other :idd])))",
        &["path: shop/orders: what is at [:other] has no 'idd', by its output schema; did you mean 'id'?"],
    ),
    // An open schema does not exclude anything.
    ("(let [r $orders] (when (:ok r) [(get-in r [:value :open :name]) (get-in r [:value :free :name])]))", &[]),
    ("(let [r $orders] (when (:ok r) (get-in r [:value :labels :x-a])))", &[]),
    ("(let [r $orders] (when (:ok r) [(get-in r [:value :extra :x]) (get-in r [:value :any :x :y])]))", &[]),
    ("(let [r $orders] (when (:ok r) (map :weight (:orders (:value r)))))", &[]),
    ("(let [r $mystery] (when (:ok r) (:x (:value r))))", &[]),
    (
        "(:total (:value $orders))",
        &[
            "unchecked: the value of shop/orders is used without a look at :ok; when the call fails, :value is nil and :message says why",
        ],
    ),
    (
        "(let [r $mystery v (:value r)] (map :id v))",
        &[
            "unchecked: the value of shop/mystery is used without a look at :ok; when the call fails, :value is nil and :message says why",
        ],
    ),
    (
        "(let [r $mystery] (map (fn [x] (:value r)) [1]))",
        &[
            "unchecked: the value of shop/mystery is used without a look at :ok; when the call fails, :value is nil and :message says why",
        ],
    ),
    // A result is not its value. If the program checks the result, a wrong key may be harmless.
    ("(map :id (:orders $orders))", &[TAKEN]),
    ("(let [r $orders] (count (get-in r [:orders 0 :id])))", &[TAKEN]),
    ("(let [{:keys [orders]} $orders] (for [o orders] (:id o)))", &[TAKEN]),
    ("(first (get $orders \"orders\"))", &[TAKEN]),
    ("(let [r $orders] (if (:ok r) (:total (:value r)) (:orders r)))", &[NONE_SUCH]),
    ("(let [r $orders] (or (:orders r) (:value r)))", &[NONE_SUCH]),
    ("(let [{:keys [ok value orders]} $orders] (when ok value))", &[NONE_SUCH]),
    ("(do (let [r $mystery] (:ok r)) (let [f (fn [x] x)] (:orders (f 1))))", &[]),
    ("(do (let [r $mystery] (:ok r)) (loop [m {:orders 1}] (:orders m)))", &[]),
    // The items of a result are its entries, and no such entry has keys.
    ("(map :id $orders)", &[ITEMS]),
    ("(for [o $orders] (:id o))", &[ITEMS]),
    ("(let [r $orders] (:id (first r)))", &[ITEMS]),
    ("(let [r $orders] (when (:ok r) (map :id r)))", &[SLIPPED]),
    (
        "(count $orders)",
        &[
            "call: count gets the result of shop/orders, which is a map whatever the tool gives; what the tool gives is under :value, where :ok is true",
        ],
    ),
    ("(for [[k v] $orders] (:id v))", &[]),
    ("(into {} (filter (fn [[k v]] v) $orders))", &[]),
    ("(let [r $orders] (when (:ok r) (count r)))", &[]),
    // A result is always truthy, so that testing it is not a check.
    ("(let [r $mystery] (when r (:value r)))", &[UNCHECKED]),
    ("(if-let [r $mystery] (:value r) :never)", &[UNCHECKED]),
    ("(let [r $mystery] (and (some? r) (:x (:value r))))", &[UNCHECKED]),
    ("(let [r $orders] (if r (count (:orders r)) 0))", &[TAKEN]),
    ("(let [r $mystery] (when (contains? r :value) (:value r)))", &[]),
    ("(let [r (when data/x $orders)] (when r (count (:orders r))))", &[]),
    // Values are followed through conditions, definitions and lists of results.
    (
        "(let [r $orders items (if (:ok r) (:orders (:value r)) [])] (map :idd items))",
        &["path: shop/orders: what is at [:orders item] has no 'idd', by its output schema; did you mean 'id'?"],
    ),
    (
        "(let [r $orders items (or (get-in r [:value :orders]) [])] (map :idd items))",
        &["path: shop/orders: what is at [:orders item] has no 'idd', by its output schema; did you mean 'id'?"],
    ),
    (
        "(def r $orders) (when (:ok r) (:totl (:value r)))",
        &["path: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    ("(def r $mystery) (defn f [] (:ok r)) (:value r)", &[]),
    ("(def r $orders) (def r {:orders [1]}) (count (:orders r))", &[]),
    (
        "(let [rs (pmap (fn [i] $orders) [1 2])] (for [r rs :when (:ok r)] (:totl (:value r))))",
        &["path: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    ("(let [rs (pmap (fn [i] $mystery) [1 2])] (map (fn [r] (:value r)) rs))", &[UNCHECKED]),
    ("(let [rs (pmap (fn [i] $mystery) [1 2])] (map :value (filter :ok rs)))", &[]),
    ("(let [rs (for [i [1 2]] $orders)] (count (mapcat :orders rs)))", &[NONE_SUCH]),
    ("(let [rs (mapv (fn [i] $orders) [1 2])] (reduce + (map :total rs)))", &[TOTAL]),
    ("(some (fn [i] $mystery) [1 2])", &[]),
    ("(count (pmap (fn [i] $orders) [1 2]))", &[]),
    ("(let [rs (pmap (fn [i] $orders) [1 2])] (:orders rs))", &[]),
    (
        "(let [r $orders] (when (:ok r) (reduce (fn [all o] (conj all (:idd o))) [] (:orders (:value r)))))",
        &["path: shop/orders: what is at [:orders item] has no 'idd', by its output schema; did you mean 'id'?"],
    ),
    (
        "(let [r $orders] (when (:ok r) (map-indexed (fn [at o] [at (:idd o)]) (:orders (:value r)))))",
        &["path: shop/orders: what is at [:orders item] has no 'idd', by its output schema; did you mean 'id'?"],
    ),
    (
        "(let [r $orders] (when (:ok r) (select-keys (:value r) [:total :totl])))",
        &["path: shop/orders: the value has no 'totl', by its output schema; did you mean 'total'?"],
    ),
    (
        "(let [r $orders] (when (:ok r) (map #(:idd (select-keys % [:id])) (:orders (:value r)))))",
        &["path: shop/orders: what is at [:orders item] has no 'idd', by its output schema; did you mean 'id'?"],
    ),
    ("(let [r (select-keys $orders [:ok :value])] (when (:ok r) (:value r)))", &[]),
    ("(let [r $orders ks [:totl]] (when (:ok r) (select-keys (:value r) (rest ks))))", &[]),
    // Code that receives the whole result may check it.
    ("(defn value-of [r] (if (:ok r) (:value r) (fail (:message r)))) (:x (value-of $mystery))", &[]),
    ("(let [r $mystery] [(:value r) r])", &[]),
    ("(let [r $mystery] (or (:value r) []))", &[]),
    ("(if-let [v (:value $mystery)] v :none)", &[]),
    ("$mystery", &[]),
];

/// Programs with their cost.
const COSTS: &[(&str, &str)] = &[
    ("(+ 1 2)", "no upstream calls"),
    ("$orders", "at most 1 upstream call, read-only"),
    ("[$orders $orders $cancel]", "at most 3 upstream calls, which change something"),
    ("[$orders $mystery]", "at most 2 upstream calls, with effects that its tools do not tell"),
    ("(if data/x $orders (do $orders $orders))", "at most 2 upstream calls, read-only"),
    ("(mapv (fn [x] $orders) [1 2 3])", "at most 3 upstream calls, read-only"),
    ("(mapv (fn [x] $orders) data/ids)", "any number of upstream calls, read-only"),
    ("(for [x [1 2] y (range 5)] $orders)", "at most 10 upstream calls, read-only"),
    ("(loop [n 3] (when (pos? n) $orders (recur (dec n))))", "any number of upstream calls, read-only"),
    ("(dotimes [n 3] $orders $mystery)", "at most 6 upstream calls, with effects that its tools do not tell"),
    ("(dotimes [_ -1] $orders)", "no upstream calls"),
    ("(dotimes [_ 2] (dotimes [_ 3] $orders))", "at most 6 upstream calls, read-only"),
    ("(dotimes [_ data/n] $orders)", "any number of upstream calls, read-only"),
    ("(let [f (fn [n] $orders)] (dotimes [n 4] (f n)))", "at most 4 upstream calls, read-only"),
    ("(reduce (fn [all id] (conj all $orders)) [] [1 2 3])", "at most 3 upstream calls, read-only"),
    ("(reduce (fn [all id] (conj all $orders)) [] data/ids)", "any number of upstream calls, read-only"),
    ("(map-indexed (fn [at id] $orders) [$orders 2])", "at most 3 upstream calls, read-only"),
    ("(loop [n 3] (if (pos? n) (recur (dec n)) $orders))", "any number of upstream calls, read-only"),
    ("(defn f [x] $orders) [(f 1) (f 2)]", "at most 2 upstream calls, read-only"),
    ("(defn f [x] $orders) (map f data/ids)", "any number of upstream calls, read-only"),
    ("(defn f [x] $orders)", "no upstream calls"),
    ("(defn f [n] (if (pos? n) (f (dec n)) 0)) (f 3) $orders", "at most 1 upstream call, read-only"),
    ("(defn f [n] $orders (if (pos? n) (f (dec n)) 0)) (f 3)", "any number of upstream calls, read-only"),
    ("(let [f (fn [] $orders)] (f) (f))", "at most 2 upstream calls, read-only"),
    ("(let [f (fn [] $orders)] (fn [] (f)))", "any number of upstream calls, read-only"),
    ("(pcalls #(do $orders) #(do $orders))", "at most 2 upstream calls, read-only"),
    ("[(map tool/call data/requests) $orders]", "any number of upstream calls, with effects that its tools do not tell"),
    ("[(map tool/call data/requests) $cancel]", "any number of upstream calls, which change something"),
    (
        "(apply tool/call [{:server \"shop\" :tool \"orders\"}])",
        "any number of upstream calls, with effects that its tools do not tell",
    ),
    ("(defn f [x] $orders) (defn f [x] [$orders $orders]) (f 1)", "any number of upstream calls, read-only"),
    ("(defn f [x] x) (defn f [x] (inc x)) (f 1) $orders", "at most 1 upstream call, read-only"),
    ("(def f (if data/x (fn [] $orders) (fn [] 1))) (f)", "any number of upstream calls, read-only"),
    ("(def xs [1 2]) (mapv (fn [x] $orders) xs)", "any number of upstream calls, read-only"),
    ("(let [f (fn [] $orders)] (letfn [(g [] (f))] (g)))", "any number of upstream calls, read-only"),
    ("(letfn [(g [] 1)] [(g) $orders])", "at most 1 upstream call, read-only"),
    ("(map tool/call data/requests)", "any number of upstream calls, with effects that its tools do not tell"),
    ("(map tool/value data/requests)", "any number of upstream calls, with effects that its tools do not tell"),
    (r#"(tool/all {:server "shop" :tool "orders"})"#, "any number of upstream calls, read-only"),
    (r#"(map (fn [n] (tool/value {:server "shop" :tool "orders"})) [1 2 3])"#, "at most 3 upstream calls, read-only"),
    (
        "(let [t data/tool] (tool/call {:server \"shop\" :tool t}))",
        "at most 1 upstream call, with effects that its tools do not tell",
    ),
];

fn compiled(text: &str) -> Program {
    let mut source = text.to_owned();
    for name in ["orders", "mystery", "cancel"] {
        source = source.replace(&format!("${name}"), &format!("(tool/call {{:server \"shop\" :tool \"{name}\"}})"));
    }
    Program::compile(&source).unwrap_or_else(|fault| panic!("{source}: {fault}"))
}

#[test]
fn results_are_followed() {
    for (text, expected) in FINDINGS {
        let review = ptc_check::review(&compiled(text), &CATALOG);
        let found: Vec<String> = review
            .findings
            .into_iter()
            .map(|finding| {
                let kind = match finding.kind {
                    FindingKind::UnknownPath => "path",
                    FindingKind::Unchecked => "unchecked",
                    FindingKind::ResultUsedAsValue => "taken",
                    FindingKind::Fails(_) | FindingKind::Suspicious | FindingKind::ResultUsedAsList => "call",
                };
                assert_eq!(finding.is_certain(), kind == "taken", "{text}");
                format!("{kind}: {}; {}", finding.message, finding.hint.unwrap_or_default())
            })
            .collect();
        assert_eq!(&found, expected, "{text}");
    }
}

/// Findings about output schemas and missing checks may be intended. Before a run, only findings that hold in every run are
/// reported, and list functions that receive a result.
#[test]
fn only_certain_findings_and_results_used_as_lists_precede_a_run() {
    for (text, expected) in FINDINGS {
        let found = ptc_check::check(&compiled(text), &CATALOG);
        let is_listed = |finding: &str| finding.contains("which is a map whatever the tool gives");
        let reported = expected.iter().filter(|finding| finding.starts_with("taken: ") || is_listed(finding)).count();
        assert_eq!(found.len(), reported, "{text}: {found:?}");
        let is_right = |finding: &ptc_check::Finding| finding.is_certain() || finding.kind == FindingKind::ResultUsedAsList;
        assert!(found.iter().all(is_right), "{text}");
    }
}

#[test]
fn calls_are_bounded() {
    for (text, expected) in COSTS {
        assert_eq!(ptc_check::review(&compiled(text), &CATALOG).cost.to_string(), *expected, "{text}");
    }
}
