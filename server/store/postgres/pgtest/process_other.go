//go:build !unix

package pgtest

import "os/exec"

func detach(*exec.Cmd) {}

func runAs(*exec.Cmd, int, int) {}
