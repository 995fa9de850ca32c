package dataset

import "context"

// Cache keeps splits of Adult in memory, so that a process loads each of them
// once, however many trainers ask for it. It is safe for concurrent use.
type Cache struct {
	lock   chan struct{} // holds a token while splits is in use
	splits map[cacheKey][2]*Dataset
}

type cacheKey struct {
	split   AdultSplit
	dataDir string
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	return &Cache{lock: make(chan struct{}, 1), splits: make(map[cacheKey][2]*Dataset)}
}

// Adult returns what the function Adult does. The same split from the same data
// folder is the same pair of datasets; a failure is not kept. One caller loads at
// a time; the others wait, until their context is done.
func (c *Cache) Adult(ctx context.Context, split AdultSplit, source Source) (train, test *Dataset, err error) {
	split, err = split.normal()
	if err != nil {
		return nil, nil, err
	}
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	key := cacheKey{split, source.DataDir}
	if pair, ok := c.splits[key]; ok {
		return pair[0], pair[1], nil
	}
	if train, test, err = Adult(ctx, split, source); err != nil {
		return nil, nil, err
	}
	c.splits[key] = [2]*Dataset{train, test}
	return train, test, nil
}
