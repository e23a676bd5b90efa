//! Hints for names that Clojure or other languages have and PTC-Lisp lacks: what to write instead.

/// The hint for Clojure's readers of data.
const READERS: &str =
    "texts are read by what they hold: (parse-long s), (parse-double s), (parse-boolean s), (json/parse-string s)";

/// The hint for unsupported classes of `java.time`.
const TIME_CLASSES: &str = "the classes of java.time are LocalDate, LocalDateTime, Instant, OffsetDateTime, ZonedDateTime, ZoneId, \
     ZoneOffset, Duration, Period, ChronoUnit, DayOfWeek, Month and DateTimeFormatter; (dir 'java.time) lists what they have";

/// Names with their hints.
static HINTS: &[(&[&str], &str)] = &[
    (&["data"], "the whole context is not a value; read one key as data/name"),
    (
        &["try", "catch", "finally", "throw", "ex-info", "ex-data", "ex-message", "ex-cause", "error"],
        "errors cannot be caught: test for what may go wrong first, or end the program with (fail message)",
    ),
    (
        &[
            "atom",
            "swap!",
            "reset!",
            "swap-vals!",
            "reset-vals!",
            "compare-and-set!",
            "deref",
            "ref",
            "ref-set",
            "alter",
            "commute",
            "dosync",
            "agent",
            "send",
            "volatile!",
            "vswap!",
            "vreset!",
            "set!",
            "var-set",
            "alter-var-root",
            "with-local-vars",
            "add-watch",
            "with-redefs",
            "binding",
        ],
        "there is no mutable state; use let, loop or reduce",
    ),
    (&["index-by", "key-by"], "use (into {} (map (juxt :id identity)) rows), or group-by if several rows may have one key"),
    (&["while"], "nothing changes while a program runs, so that a test stays as it is; use loop and recur"),
    (
        &["defmacro", "eval", "macroexpand", "macroexpand-1", "resolve", "gensym", "load-string"],
        "there are no macros and no eval; write a function",
    ),
    (&["read-string", "read"], READERS),
    (
        &["use", "in-ns", "refer"],
        "nothing needs a declaration: leave it out and write (clojure.string/join …) or (str/join …) at once",
    ),
    (
        &["lazy-seq", "lazy-cat", "iterator-seq", "iteration"],
        "sequences are not lazy; (take-while pred (iterate f x)), loop or reduce find items one after the other",
    ),
    (&["with-out-str"], "println-str, pr-str and str give the text itself"),
    (&["printf"], "use (println (format …))"),
    (&["newline", "flush"], "each println is a line of its own"),
    (
        &["slurp", "spit", "line-seq", "file-seq", "read-line", "with-open"],
        "there is no file system and no input; use (tool/call …)",
    ),
    (
        &["instance?", "class", "class?", "cast", "satisfies?", "isa?", "bean"],
        "there are no classes; ask with string?, number?, map?, vector?, keyword? …, or look at (type x)",
    ),
    (
        &[
            "defprotocol",
            "defrecord",
            "deftype",
            "definterface",
            "extend-type",
            "extend-protocol",
            "reify",
            "proxy",
            "defstruct",
            "struct",
        ],
        "there are no types of a program's own; use maps and functions",
    ),
    (&["new"], "there are few objects to make: (java.util.Date. ms), (LocalDate/of 2024 1 31); use maps, vectors and functions"),
    (
        &["call", "tool-call", "call-tool", "invoke", "invoke-tool", "mcp"],
        "use (tool/call {:server \"…\" :tool \"…\" :args {…}})",
    ),
    (&["define"], "use def, or defn for functions"),
    (&["car", "head"], "use first"),
    (&["cdr", "tail"], "use rest"),
    (&["list-ref", "elt", "at", "index"], "use nth, or get"),
    (&["average", "mean"], "use avg, or avg-by for a field"),
    (&["any", "all", "exists?", "forall?"], "use some and every?"),
    (&["to-string", "toString", "string", "stringify"], "use str, or pr-str for readable data"),
    (&["to-int", "parse-number", "str->int", "string->number", "to-number", "number"], "use parse-long, or parse-double"),
    (&["now", "today", "current-date", "current-time"], "use (LocalDate/now), (Instant/now) or (System/currentTimeMillis)"),
    (&["halt-when"], "use take-while, or reduce with reduced"),
    (
        &["defmulti", "defmethod", "derive", "make-hierarchy"],
        "there are no multimethods; choose with case, cond or a map of functions",
    ),
    (
        &["bigint", "biginteger", "num", "bigdec", "rationalize", "numerator", "denominator", "short", "byte", "unchecked-int"],
        "integers have any size, and other numbers are doubles; leave it out, or use long or double",
    ),
    (
        &["unchecked-add", "unchecked-subtract", "unchecked-multiply", "unchecked-inc", "unchecked-dec", "unchecked-negate"],
        "integers do not overflow; use + - * inc dec",
    ),
    (&["transient", "persistent!", "conj!", "assoc!", "dissoc!", "disj!", "pop!"], "use conj, assoc and so on: they are as fast"),
    (&["future", "promise", "deliver", "send-off", "await", "go", "chan"], "for work at the same time use pmap or pcalls"),
    (
        &["delay", "force", "realized?"],
        "nothing is computed later: use let, or a function that is called where its value is needed",
    ),
    (
        &[
            "make-array",
            "into-array",
            "to-array",
            "aget",
            "aset",
            "alength",
            "int-array",
            "object-array",
            "byte-array",
            "char-array",
            "long-array",
            "double-array",
            "array-seq",
        ],
        "there are no arrays; use vectors",
    ),
    (&["time"], "subtract two calls of (System/currentTimeMillis)"),
    (&["hash"], "values are keys of maps as they are"),
    (&["random-uuid", "parse-uuid", "uuid?"], "there are no UUIDs; they are strings like others"),
    (&["with-meta", "vary-meta", "alter-meta!"], "values have no metadata"),
    (&["identical?"], "use ="),
    (&["re-matcher", "re-groups"], "re-find, re-matches and re-seq give the groups: [match group …]"),
    (&["null", "None", "Nil", "NULL"], "write nil"),
    (&["True", "TRUE"], "write true"),
    (&["False", "FALSE"], "write false"),
    (&["length", "len", "size"], "use count"),
    (&["append", "push", "add"], "use conj, or concat for whole collections"),
    (&["lambda", "defun", "function", "defn*"], "write (fn [x] …), #(…) or (defn name [x] …)"),
    (&["foreach", "for-each", "each"], "use doseq, or map for the results"),
    (&["elif", "elseif", "else", "switch", "match"], "use cond, with :else last, or case"),
    (&["setq", "setf", "const"], "use let, or def at the top level"),
    (&["var"], "write #'name"),
    (&["map-vals", "mapvals", "map-values"], "use update-vals"),
    (&["map-keys", "mapkeys"], "use update-keys"),
    (&["filter-vals", "filter-keys", "filter-map"], "use (into {} (filter (fn [[k v]] …) m))"),
    (
        &["contains", "includes", "member"],
        "use contains? for keys and members, (some #{x} coll) for items, clojure.string/includes? for texts",
    ),
    (&["slice", "sublist", "sub-list"], "use subvec, take and drop, or subs for a text"),
    (&["substring", "substr"], "use subs"),
    (&["concat-str", "strcat", "string-append"], "use str"),
    (&["fold", "foldl", "fold-left", "inject", "accumulate"], "use reduce"),
    (&["flat-map", "flatmap"], "use mapcat"),
    (&["uniq", "unique"], "use distinct"),
    (&["printnl", "puts", "echo", "log", "console", "console.log", "tap>"], "use println"),
    (&["return-value", "exit", "quit"], "use (return value), or (fail message)"),
    (&["sleep", "wait"], "a program cannot wait"),
];

/// Namespaces and classes with their hints. A class is named without its package.
static NAMESPACES: &[(&[&str], &str)] = &[
    (&["clojure.edn", "edn", "clojure.tools.reader"], READERS),
    (&["math", "clojure.math", "StrictMath"], "write Math, as in (Math/sqrt x)"),
    (
        &["cheshire.core", "cheshire", "clojure.data.json", "data.json", "jsonista.core", "jsonista", "JSON"],
        "(json/parse-string s) reads JSON, (json/generate-string x) writes it, without a require",
    ),
    (
        &["io", "clojure.java.io", "clojure.java.shell", "shell", "File", "Files", "Paths", "Path", "Scanner", "BufferedReader"],
        "there is no file system and no input; use (tool/call …)",
    ),
    (
        &["http", "clj-http.client", "client", "URL", "URI", "HttpClient", "URLEncoder", "URLDecoder"],
        "there is no network; use (tool/call …)",
    ),
    (&["Thread", "TimeUnit"], "a program cannot wait"),
    (&["async", "clojure.core.async", "Executors", "CompletableFuture"], "for work at the same time use pmap or pcalls"),
    (&["UUID"], "there are no UUIDs; they are strings like others"),
    (
        &[
            "LocalTime",
            "YearMonth",
            "MonthDay",
            "Year",
            "Clock",
            "ChronoField",
            "WeekFields",
            "TemporalAdjusters",
            "Calendar",
            "GregorianCalendar",
            "TimeZone",
            "SimpleDateFormat",
        ],
        TIME_CLASSES,
    ),
    (&["Date"], "(java.util.Date. ms) makes one of a timestamp; else use Instant, as in (Instant/parse s)"),
    (&["BigDecimal", "BigInteger", "BigInt"], "integers have any size, and other numbers are doubles; use + - * / and quot"),
    (
        &["Arrays", "Collections", "Array", "List", "Map", "Set", "ArrayList", "HashMap", "HashSet", "Collectors", "Stream"],
        "there are no Java collections; vectors, maps and sets have functions: (apropos \"word\") finds them",
    ),
    (&["Pattern", "Matcher"], "use re-find, re-matches and re-seq"),
    (&["Random", "ThreadLocalRandom"], "use rand, rand-int, rand-nth or shuffle"),
    (
        &["Objects", "Object", "Class", "RT", "Number"],
        "there are no classes; ask with string?, number?, map?, vector?, keyword? …",
    ),
    (&["Runtime", "ProcessBuilder", "Process"], "there is no operating system to ask"),
    (&["ctx", "context", "input", "inputs", "args", "params", "env"], "one key of the context is read as data/name"),
    (&["tools", "mcp", "upstream", "server", "servers"], "call tools with (tool/call {:server \"…\" :tool \"…\" :args {…}})"),
    (&["clojure.pprint", "pp", "pprint"], "pprint is there without a namespace"),
    (&["clojure.test", "clojure.spec.alpha", "spec", "malli.core", "schema.core"], "use assert, or (fail message)"),
    (
        &["clojure.data.csv", "data.csv", "clojure-csv.core", "semantic-csv.core"],
        "CSV texts are read with (csv/parse-string text :header true) and written with (csv/generate-string rows)",
    ),
    (&["medley.core", "medley"], "use update-vals, update-keys, (into {} (filter …) m) and distinct-by"),
];

/// Methods, without their dot, with their hints.
static METHODS: &[(&[&str], &str)] = &[
    (&[""], "write (.method x args), with the method's name after the dot"),
    (&["."], "write (-> x .method (.other arg)), which calls one method after the other"),
    (&[".."], "the dots are a placeholder for missing code: write the code, or nil"),
    (&["intValue", "longValue", "toInt"], "use (int x) or (long x)"),
    (&["doubleValue", "floatValue"], "use (double x)"),
    (&["toFixed", "setScale"], "use (format \"%.2f\" x)"),
    (&["toCharArray", "chars", "codePoints", "characters"], "(seq s) gives the characters"),
    (&["codePointAt", "charCodeAt"], "(int (nth s i)) gives the code of a character"),
    (&["put", "set", "setItem"], "use assoc, which gives a new map"),
    (&["getOrDefault"], "use (get m key default)"),
    (&["add", "push", "append", "addAll", "unshift"], "use conj or into, which give a new collection"),
    (&["remove", "delete"], "use dissoc for keys, disj for members, (remove pred coll) for items"),
    (&["entrySet"], "(seq m) gives the entries"),
    (&["keySet"], "use keys"),
    (&["values"], "use vals"),
    (&["stream", "toList", "collect", "toArray"], "leave it out: map, filter and reduce take collections"),
    (&["forEach", "each"], "use doseq, or map for the results"),
    (&["slice", "subList"], "use subvec, take and drop, or subs for a text"),
    (&["getClass", "hashCode", "getBytes", "clone", "notify", "wait"], "there are no objects to ask; see (type x)"),
    (&["getMessage", "printStackTrace", "getCause"], "errors cannot be caught: test for what may go wrong first"),
    (
        &["toLocalTime", "atTime"],
        "a date has .atStartOfDay, a date-time .toLocalDate and .getHour; (.format x \"HH:mm\") gives the time as a text",
    ),
    (&["with"], "use .withDayOfMonth, .withMonth or .withYear"),
    (&["println", "print", "log"], "use println"),
];

/// Classes whose constructors are not supported, with what to write instead.
static CONSTRUCTORS: &[(&[&str], &str)] = &[
    (&["Integer", "Long", "Short", "Byte"], "(parse-long s) reads a text, (long x) takes a number"),
    (&["Double", "Float"], "(parse-double s) reads a text, (double x) takes a number"),
    (
        &["BigDecimal", "BigInteger"],
        "integers have any size, and other numbers are doubles; read texts with parse-long or parse-double",
    ),
    (&["String", "StringBuilder", "StringBuffer"], "use str, or (clojure.string/join parts)"),
    (
        &["LocalDate", "LocalDateTime", "Instant", "Duration", "Period"],
        "use its functions, as in (LocalDate/of 2024 1 31) or (LocalDate/parse s)",
    ),
    (&["SimpleDateFormat", "DateTimeFormatter"], "(.format date \"yyyy-MM-dd\") takes the pattern itself"),
    (&["Exception", "RuntimeException", "Error", "IllegalArgumentException", "Throwable"], "end the program with (fail message)"),
    (&["ArrayList", "LinkedList", "Vector", "ArrayDeque", "Stack", "PriorityQueue"], "use a vector: [], conj, peek and pop"),
    (&["HashMap", "TreeMap", "LinkedHashMap"], "use a map: {} and assoc"),
    (&["HashSet", "TreeSet"], "use a set: #{} and conj"),
    (&["Random"], "use rand, rand-int, rand-nth or shuffle"),
    (&["File", "FileReader", "Scanner", "URL", "URI"], "there is no file system and no network; use (tool/call …)"),
    (&["Thread", "Object", "AtomicInteger", "AtomicLong"], "there is no mutable state; use let, loop or reduce"),
];

fn instead(table: &'static [(&'static [&'static str], &'static str)], name: &str) -> Option<&'static str> {
    table.iter().find(|(names, _)| names.contains(&name)).map(|(_, hint)| *hint)
}

/// The hint for an unsupported name.
pub(super) fn hint(name: &str) -> Option<&'static str> {
    instead(HINTS, name)
}

/// The hint for an unsupported namespace or class. The class may be written with its package.
pub(crate) fn namespace(written: &str) -> Option<&'static str> {
    let class = written.rsplit('.').next().filter(|class| class.starts_with(|c: char| c.is_ascii_uppercase()));
    let known = instead(NAMESPACES, class.unwrap_or(written));
    known.or_else(|| written.starts_with("java.time.").then_some(TIME_CLASSES))
}

/// The hint for an unsupported method, given without its dot.
pub(super) fn method(name: &str) -> Option<&'static str> {
    instead(METHODS, name)
}

/// The hint for an unsupported constructor of a class.
pub(super) fn constructor(class: &str) -> Option<&'static str> {
    instead(CONSTRUCTORS, class)
}
