// Package gauges exports how the volumes and provisioners of a cluster are. It reads the agent's caches
// when it is asked, and never the API server, so that what is gone has no series.
package gauges
