package main

// Names of subjects.
const (
	nameEmptyDir  = "pod with an emptyDir"
	nameMade      = "PersistentVolume made before"
	nameExternal  = "external-provisioner"
	nameLocalPath = "local-path"
	nameLibrary   = "lib-bucket-provisioner"
)

// cases returns all cases. Those that restart what serves volumes come late: it is a fresh one before. Buckets are enabled for the last
// case, and stay so.
func cases() []benchCase {
	var all []benchCase
	for _, some := range [][]benchCase{claimCases(), clientCases(), memoryCases(), dataCases(), restartCases(), {rebootCase(), bucketCase()}} {
		all = append(all, some...)
	}
	return all
}
