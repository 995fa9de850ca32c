package operate

// CopyStore is for tests that run the program, which imports this package.
var CopyStore = copyStore
