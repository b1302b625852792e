// Command volumes measures PaV on a real cluster, beside what Kubernetes alone takes for the same work and beside other
// provisioners. Both are measured in the same run and in turn, so that what slows the machine down slows all of them.
//
// A case is one work, such as a claim and a client pod that uses it. It has subjects, which do that work one after the
// other: a floor, the work as Kubernetes does it without any provisioner; peers, which are local-path-provisioner,
// external-provisioner with the smallest CSI driver (test/bench/driver), and lib-bucket-provisioner for buckets; and PaV.
// Each round measures all subjects and begins with another one. Before each measurement, nothing of the former one is
// left, and a random part of a second passes, as kubelet looks at its pods once a second. A first round fills caches and
// does not count.
//
// All times are taken in this process, from before the first request until the API server reports the state that is
// waited for, on watches that began before. The output is Markdown: the machine, and a table for each figure.
//
// test/bench/volumes/run ('make bench') boots a cluster, runs the command in its network, and takes the cluster away.
// The command changes that cluster only: it restarts pods and reboots the second node. It asserts nothing.
package main
