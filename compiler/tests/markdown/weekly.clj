(tool/value {:server "shop" :tool "orders" :args {:since "2026-11-01" :most 80}})
