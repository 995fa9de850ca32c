package server

import "github.com/dpareto/dpareto/server/store"

// checkStudies refuses a further study in a store that is full.
func (s *Server) checkStudies(tx *store.ReadTx) error {
	n, err := tx.CountStudies(s.access.limits.Studies)
	if err != nil {
		return err
	}
	return s.access.limits.CheckStudies(n)
}
