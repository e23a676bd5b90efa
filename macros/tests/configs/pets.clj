(let [r (tool/call {:server "petstore" :tool "list-pets"})]
  (if (:ok r) (count (:value r)) (fail (:message r))))
