;; Dates and times, as in java.time.

(LocalDate/parse "2024-02-30")
;=! type_error 1:1 "2024-02-30" is not a day: its month has 29 days

(LocalDate/parse nil)
;=! type_error 1:1 expected the text of a date or time

(str (LocalDate/parse "2023-10-27"))
;=> "2023-10-27"

(.isBefore (LocalDate/parse "2023-01-01") (java.util.Date. "2023-01-01T00:00:00Z"))
;=! type_error 1:1 a date cannot be compared with an instant

(.getTime (LocalDate/parse "2023-01-01"))
;=! type_error 1:1 expected an instant

(.plusDays (parse "2024-01-01T00:00:00Z") 1)
;=! type_error 1:1 (Duration/ofDays n)

[(.toDays (Duration/between (parse "2024-01-02T00:00:00Z") (parse "2024-01-01T01:00:00Z")))
 (.toMillis (Duration/between (parse "2024-01-01T00:00:00Z") (parse "2024-01-01T00:00:01.5Z")))]
;=> [0 1500]

(Duration/between (LocalDate/parse "2024-01-01") (LocalDate/parse "2024-01-02"))
;=! type_error 1:1 .toEpochDay

(map #(.getTime (java.util.Date. %)) ["2026-01-08T14:30:00Z" "2026-01-08T14:30:00" "2026-01-08" "Wed, 8 Jan 2026 14:30:00 +0000" 1767882600 1767882600000])
;=> [1767882600000 1767882600000 1767830400000 1767882600000 1767882600000 1767882600000]

(sort [(LocalDate/of 2024 3 1) (LocalDate/of 2023 12 31)])
;=> ["2023-12-31" "2024-03-01"]

(get {(LocalDate/of 2024 3 1) :x} (LocalDate/parse "2024-03-01"))
;=> :x

(= (parse "2024-01-01T02:00:00+02:00") (Instant/parse "2024-01-01T00:00:00Z"))
;=> true

(compare (LocalDate/of 2024 1 1) (LocalDate/of 2024 1 2))
;=> -1

(json/generate-string {"d" (LocalDate/of 2024 1 1)})
;=> "{\"d\":\"2024-01-01\"}"

; two keys of one text are one in JSON
(json/generate-string {1 2 "1" 3})
;=! type_error 2:1 the keys 1 and "1" are one in JSON

(group-by #(.getMonthValue %) (map #(LocalDate/parse %) ["2024-01-05" "2024-02-01" "2024-01-09"]))
;=> {1 ["2024-01-05" "2024-01-09"] 2 ["2024-02-01"]}

(map str [(Period/between (LocalDate/of 2023 1 31) (LocalDate/of 2024 3 1)) (Period/between (LocalDate/of 2024 3 31) (LocalDate/of 2024 2 29))])
;=> ["P1Y1M1D" "P-1M-2D"]

(map #(str (Duration/ofMillis %)) [0 1 -1 -1500 3661001 -90000])
;=> ["PT0S" "PT0.001S" "PT-0.001S" "PT-1.5S" "PT1H1M1.001S" "PT-1M-30S"]

(map #(.toMillis (Duration/parse %)) ["P1DT2H" "PT-1.5S" "-PT1M" "pt1h1m1.001s"])
;=> [93600000 -1500 -60000 3661001]

(Duration/parse "P1Y")
;=! type_error 1:1 ISO duration

(.between ChronoUnit/MONTHS (LocalDate/of 2024 1 31) (LocalDate/of 2024 3 30))
;=> 1

(.format (parse "2024-01-05T15:04:09Z") "EEE dd/MM/yy hh:mm:ss a")
;=> "Fri 05/01/24 03:04:09 PM"

(.format (LocalDate/of 2024 1 5) "HH:mm")
;=! type_error 1:1 a date has nothing for the pattern letter H

(.withDayOfMonth (LocalDate/of 2024 2 1) 30)
;=! type_error 1:1 no such date

(LocalDate/currentTimeMillis)
;=! unbound_var 1:2 currentTimeMillis is not available in LocalDate

(.format (LocalDate/of 2024 1 1) (clojure.string/join (repeat 1000 "y")))
;=! type_error 1:1 19 times at most

(.format (LocalDate/of 2024 1 1) (clojure.string/join (repeat 100000 "y")))
;=! type_error 1:1 at most 1024 bytes

(.plusDays (LocalDate/of 2024 1 1) 9223372036854775807)
;=! arithmetic_error 1:1 outside of the years

(first (apropos "uppercase" {:limit 1}))
;=> "local: clojure.string/upper-case - In upper case."

;; A zone whose offset changes is rejected: there is no time zone database.
(ZonedDateTime/ofInstant (Instant/now) (ZoneId/of "Europe/Berlin"))
;=! type_error 1:40 the zone "Europe/Berlin" has no fixed offset

(ZonedDateTime/parse "2024-01-15T10:30:00+01:00[Europe/Paris]")
;=! type_error 1:1 read the part in front of the [

(OffsetDateTime/parse "2024-01-15T10:30:00")
;=! type_error 1:1 an ISO date-time with an offset

(Duration/between "2024-01-01T00:00:00Z" "2024-01-02T00:00:00Z")
;=! type_error 1:1 (Instant/parse s)

;; Models mix instants and date-times with an offset.
(.isBefore (Instant/parse "2024-01-01T00:00:00Z") (OffsetDateTime/parse "2024-01-01T00:00:00Z"))
;=! type_error 1:1 an instant cannot be compared with a date-time with an offset

(json/generate-string {"at" (OffsetDateTime/parse "2024-01-15T10:30:00+02:00")})
;=> "{\"at\":\"2024-01-15T10:30+02:00\"}"

;; A class is not a value. Unsupported classes are rejected by name.
java.time.OffsetDateTime
;=! unbound_var 1:1 such as OffsetDateTime/parse; (dir 'OffsetDateTime) lists it all

ChronoUnit
;=! unbound_var 1:1 such as ChronoUnit/NANOS

(java.time.Foo/bar)
;=! unbound_var 1:2 there is no class 'java.time.Foo'

(YearMonth/parse "2024-01")
;=! unbound_var 1:2 ZoneOffset, Duration, Period, ChronoUnit

(ZonedDateTime/parse "2024-01-15T10:30[Europe/Berlin]")
;=! type_error 1:1 use UTC or a fixed offset

(.atZone (Instant/parse "2024-01-15T23:30:00Z") "America/New_York")
;=! type_error 1:1 there is no database of time zones

(.format (LocalDate/parse "2024-01-15") DateTimeFormatter/ISO_DATE_TIME)
;=! type_error 1:1 a date has no time, which the formatter writes

(.format (LocalDateTime/of 2024 1 15 10 30) DateTimeFormatter/ISO_INSTANT)
;=! type_error 1:1 which the formatter needs

(LocalDate/parse "2024-01-15x" DateTimeFormatter/ISO_DATE)
;=! type_error 1:1 "2024-01-15x" is not a date or time that is written as ISO_DATE

;; dir lists call forms and constants, and the number of further entries.
(first (dir 'java.time))
;=> "ChronoUnit/NANOS MICROS MILLIS SECONDS MINUTES HOURS DAYS WEEKS MONTHS YEARS - Constants, each of which is written like the first."

(filter (fn [line] (re-find #"^\(LocalDate/parse s\)|^Instant/EPOCH|^\(.between unit a b\)" line)) (dir 'java.time {:limit 200}))
;=> ["Instant/EPOCH - The start of 1970 in UTC, from which timestamps count." "(LocalDate/parse s) - The date of YYYY-MM-DD, or of a text as a pattern says; of a text with a time, the instant." "(.between unit a b) - Whole units from a to b, as in (.between ChronoUnit/DAYS a b)."]

(let [all (dir 'java.time {:limit 200}) page (dir 'java.time)]
  [(= (butlast page) (take 50 all)) (= (last page) (str "… " (- (count all) 50) " more: (dir 'java.time {:offset 50})"))])
;=> [true true]

(dir 'Math {:limit 1 :offset 1})
;=~ ["Math/PI - The ratio of a circle's circumference to its diameter." "…

(subs (doc java.time.ZoneId) 0 62)
;=> "java.time.ZoneId\nKind: class\n(ZoneId/of s) - The offset of a f"
