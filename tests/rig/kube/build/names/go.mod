module names

go 1.26

require github.com/coredns/coredns v1.12.4
