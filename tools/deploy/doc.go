// Package deploy checks what is in the folder deploy against the published types of Kubernetes,
// CloudNativePG, the Prometheus Operator and Compose, and starts the program with the settings of the
// manifests. It is a module of its own, so that the program depends on none of these types.
package deploy
