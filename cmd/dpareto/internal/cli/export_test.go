package cli

// CompletionPatience is how long the shell waits for a server.
var CompletionPatience = &completionPatience
