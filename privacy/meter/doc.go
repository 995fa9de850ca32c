// Package meter counts and limits the operations of accountants. It imports nothing of the module. What does
// numerical work takes a [Work] and adds its operations; a nil one counts nothing.
package meter
