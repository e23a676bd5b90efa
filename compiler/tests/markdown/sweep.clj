(tool/value {:server "shop" :tool data/tool :args {}})
