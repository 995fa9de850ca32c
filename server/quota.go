package server

import "github.com/dpareto/dpareto/server/store"

// checkStudies refuses a further study in a store that is full.
func (s *Server) checkStudies(tx *store.ReadTx) error {
	most := s.access.limits.OrDefault().Studies
	if full, err := tx.HasStudies(most); err != nil || !full {
		return err
	}
	return s.access.limits.CheckStudies(most)
}
