package main

// Names of subjects.
const (
	nameEmptyDir  = "pod with an emptyDir"
	nameMade      = "PersistentVolume made before"
	nameExternal  = "external-provisioner"
	nameLocalPath = "local-path"
)

// cases returns all cases. Those that restart what serves volumes are the last: it is a fresh one before.
func cases() []benchCase {
	var all []benchCase
	for _, some := range [][]benchCase{claimCases(), clientCases(), memoryCases(), dataCases(), restartCases(), {rebootCase()}} {
		all = append(all, some...)
	}
	return all
}
