{:file data/file
 :total (sum-by :amount (:rows data/input))}
