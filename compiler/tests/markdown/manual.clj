(tool/value {:server "docs" :tool "read" :args {}})
