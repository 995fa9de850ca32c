package dataset

import "context"

// Cache keeps divisions of datasets in memory, so that a process loads each of them
// once, however many trainers ask for it. It is safe for concurrent use.
type Cache struct {
	lock  chan struct{} // holds a token while parts is in use
	parts map[any]*Parts
}

type cacheKey struct {
	name     string
	division Division
	dataDir  string
	outline  bool
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{lock: make(chan struct{}, 1), parts: make(map[any]*Parts)}
}

// Load returns the result of the function Load. The same division of the same dataset
// from the same data folder gives the same parts; a failure is not kept.
func (c *Cache) Load(ctx context.Context, name string, division Division, source Source) (*Parts, error) {
	e, err := find(name)
	if err != nil {
		return nil, err
	}
	if division, err = division.normal(e); err != nil {
		return nil, err
	}
	return c.Keep(ctx, cacheKey{name, division, source.DataDir, source.Outline}, func() (*Parts, error) { return e.load(ctx, division, source) })
}

// Keep returns what load returned the first time for a comparable key of a type of the caller's. One caller
// loads at a time; the others wait, until their context is done.
func (c *Cache) Keep(ctx context.Context, key any, load func() (*Parts, error)) (*Parts, error) {
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if parts, ok := c.parts[key]; ok {
		return parts, nil
	}
	parts, err := load()
	if err != nil {
		return nil, err
	}
	c.parts[key] = parts
	return parts, nil
}
