// Package definition says what is wrong with a PavProvisioner, without a cluster and without evaluating
// its templates. Admission and kubectl pav lint say the same, as both ask it. It reads plain data and
// nothing else: no API server, no file, no clock but for its own limits; and it changes nothing.
package definition
